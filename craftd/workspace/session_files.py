"""Plans and notes of a session: texts in its folder."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from attrs import define

from craftd.errors import Corrupt, Forbidden, NotFound, Ref, VersionConflict
from craftd.model import plans
from craftd.model.ids import is_session_id
from craftd.model.records import Item, Record
from craftd.model.sessions import ordered
from craftd.workspace import record_files
from craftd.workspace.commit import Done, Planned
from craftd.workspace.files import DeleteFile, FileCommit, FileUnit, Ground
from craftd.workspace.index import Index
from craftd.workspace.record_files import Found, begun
from craftd.workspace.sessions import SessionCommit, SessionUnit

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace

PLANS: Final = "plans"
NOTES: Final = "notes.md"
HEAD_BYTES: Final = 16 * 1024
"""Of a plan, in which a list looks for its title."""

_FIELDS: Final = frozenset({"title", "size", "modifiedAt"})


def folder_of(session: str, *names: str) -> tuple[str, ...]:
    return ("sessions", session, *names)


# Notes


def notes_item(text: str, version: str, session: str) -> Item:
    """text: "" and version "" where there is no file."""
    return Item(session, version, {"text": text})


def notes(ground: Ground, session: str) -> Item:
    """In a pool thread. Raises: TooLarge, Forbidden."""
    text = record_files.read_text(ground, folder_of(session, NOTES))
    return notes_item(text.shown, text.version, session)


# Plans


def plan_item(session: str, file: Found, text: str, *, whole: bool) -> Item:
    """text: what the file says, or its head where it is not *whole*."""
    value: Record = {"title": plans.title_of(text) or file.name.removesuffix(plans.SUFFIX)}
    if whole:
        value["text"] = text
    value |= {"size": file.size, "modifiedAt": file.modified_at}
    info: Record = {"path": "/".join(folder_of(session, PLANS, file.name))}
    if whole:
        info["outline"] = plans.outline(text)
    return Item(file.name, file.version, value, info)


def listed(ground: Ground, session: str) -> list[Found]:
    """Plans, the newest first. In a pool thread."""
    found = record_files.found_in(ground, folder_of(session, PLANS))
    return [file for file in found if plans.is_name(file.name)]


def plan_index(ground: Ground, session: str, epoch: str) -> Index:
    """All plans without their texts. In a pool thread."""
    items = []
    for file in listed(ground, session):
        try:
            head = record_files.read_head(ground, folder_of(session, PLANS, file.name), HEAD_BYTES)
        except NotFound:
            continue  # it went while we looked
        items.append(plan_item(session, file, head, whole=False))
    return record_files.index_of(items, epoch, _FIELDS)


def plan(ground: Ground, session: str, id: str) -> Item:
    """The plan with its text. In a pool thread. Raises: NotFound, TooLarge."""
    found = record_files.read_found(ground, folder_of(session, PLANS, id))
    if found is None:
        raise NotFound(Ref("plans", id))
    return plan_item(session, found[0], found[1].shown, whole=True)


def edited(text: str, title: str | None, new: str | None) -> str:
    """What the *text* of a plan becomes; None: as it is."""
    text = text if new is None else new
    return text if title is None else plans.with_title(text, title)


@define(eq=False, kw_only=True)
class ExpectFile(FileCommit):
    """Say whether a file is there as it is expected; nothing is changed. Raises: NotFound, VersionConflict."""

    promises = False
    missing_ok: bool = False

    def plan(self, unit: FileUnit, now: int) -> Planned:
        with unit.ground.found(self.parts, follow=False) as spot:
            self._check_changeable(spot)
            if spot.status is None and not self.missing_ok:
                raise NotFound(self.ref)
            self._expect(spot)
        return Planned(None)


@define(eq=False, kw_only=True)
class ForgetPlan(SessionCommit):
    """Let no plan wait that is about to go. A session that cannot be changed keeps what it says.

    Answers what was said of it, None where it is not this one that waits.
    """

    rewrites = True
    plan_id: str

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        header = unit.header
        if not unit.exists or header is None:
            return Planned(None)
        pending = header.get(plans.PENDING)
        path = pending.get("planPath") if isinstance(pending, dict) else None
        if not isinstance(path, str) or not path.endswith("/" + "/".join(folder_of(self.id, PLANS, self.plan_id))):
            return Planned(None)
        try:
            unit.require_writable()
        except (Corrupt, Forbidden):
            return Planned(None)
        old = unit.value()
        unit.change({name: value for name, value in header.items() if name != plans.PENDING})
        return Planned(pending, unit.changed_since(old))


@define(eq=False, kw_only=True)
class RememberPlan(SessionCommit):
    """Let a plan wait again that did not go. One that was set meanwhile stays."""

    rewrites = True
    pending: Record

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        if not unit.exists or unit.header is None or plans.PENDING in unit.header:
            return Planned(None)
        header, old = unit.require_writable(), unit.value()
        unit.change(ordered({**header, plans.PENDING: self.pending}))
        return Planned(None, unit.changed_since(old))


async def delete(workspace: Workspace, delete: DeleteFile) -> Done:
    """Carry out *delete*; if it takes a plan, no session waits for it afterwards.

    First what names the plan: a crash in between leaves a plan that nobody waits for, not the opposite.
    """
    parts = delete.parts
    if len(parts) == 4 and parts[:3] == folder_of(parts[1], PLANS) and is_session_id(parts[1]):
        origin, connection = delete.origin, delete.connection
        expect = ExpectFile(
            origin=origin,
            connection=connection,
            parts=parts,
            record=delete.record,
            expected=delete.expected,
            missing_ok=delete.missing_ok,
        )
        await workspace.commit(expect)
        forget = ForgetPlan(origin=origin, connection=connection, id=parts[1], plan_id=parts[3])
        forgotten = (await begun(workspace.commit(forget))).answer
        try:
            return await workspace.commit(delete)
        except VersionConflict:  # it was changed in this moment, and stays
            if forgotten is not None:
                again = RememberPlan(origin=origin, connection=connection, id=parts[1], pending=forgotten)
                await workspace.commit(again)
            raise
    return await workspace.commit(delete)


async def item(workspace: Workspace, noun: str, session: str, id: str) -> Item:
    """The notes or the plan *id* of a session as they are now. Raises: CraftdError."""
    read = partial(notes, session=session) if noun == "notes" else partial(plan, session=session, id=id)
    return await workspace.in_pool(read, workspace.ground())
