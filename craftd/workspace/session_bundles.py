"""Sessions that leave a workspace in a bundle, and come in from one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import define

from craftd.errors import AlreadyExists, Busy, Corrupt, CraftdError, Forbidden, Issue, Ref, ValidationFailed
from craftd.model import lineage, markdown, session_bundles, sessions
from craftd.model.branches import turn_of
from craftd.model.bundles import OnConflict
from craftd.model.portable import parse_line
from craftd.model.records import Item, Record, version_of
from craftd.model.secret_text import redacted, without_secrets
from craftd.model.session_bundles import Here
from craftd.store import atomic, disk, files, session_export
from craftd.store.json_stream import Bytes
from craftd.store.session_bundle import PackedSession
from craftd.store.session_export import Sink
from craftd.workspace import arrivals, telling
from craftd.workspace.arrivals import Arrival
from craftd.workspace.branching import ANCHORS, transcript_of
from craftd.workspace.commit import Planned, io_error
from craftd.workspace.importing import NAMES_TRIED, Came
from craftd.workspace.journal import Origin
from craftd.workspace.sessions import SessionCommit

if TYPE_CHECKING:
    from craftd.workspace.rows import SessionRow
    from craftd.workspace.sessions import SessionUnit
    from craftd.workspace.workspace import Workspace

LOOKS: Final = 3
"""How often a session that changes in this moment is looked at again before the caller is told."""


# -- out --


async def export(workspace: Workspace, id: str, sink: Sink) -> list[Issue]:
    """Write the bundle of a session as it is now; sink is called in a thread. Answers what stays out.

    Raises: as `at_rest`; TooLarge, Busy, OSError.
    """
    warnings: list[Issue] = []

    def warn(path: str, code: str, message: str) -> None:
        warnings.append(Issue(path=path, message=message, severity="warning", code=code, noun="sessions", id=id))

    def write(row: SessionRow, transcript: Bytes) -> None:
        folder = row.place.folder(id)
        branch = session_bundles.branch_info(row.stored, _turn(row))
        line = sessions.header_line(row.stored, str(folder))
        session_export.write_bundle(sink, folder, transcript, line, branch, warn)

    await at_rest(workspace, id, write)
    return warnings


def _turn(row: SessionRow) -> str | None:
    """What the provider calls the place of the last final message."""
    final, provider = row.stored.get("lastFinalMessageId"), row.stored.get("sdkSessionId")
    if not isinstance(final, str) or not isinstance(provider, str):
        return None
    for path in ANCHORS:
        try:
            found = files.read(row.place.folder(row.id) / path)
        except files.Unreadable:
            continue
        value = None if found is None else files.JsonForm().parse(found[0]).value
        if (turn := turn_of(value, final, provider)) is not None:
            return turn
    return None


async def export_markdown(workspace: Workspace, id: str, sink: Sink, *, redact: bool, tools: bool) -> int:
    """Write a session for people; sink is called in a thread. Answers how much was taken out as secret.

    Raises: as `at_rest`; TooLarge, OSError.
    """
    count = 0

    def write(row: SessionRow, transcript: Bytes) -> None:
        nonlocal count
        for section, found in _sections(row, transcript, redact, tools):
            count += found
            sink(section.encode("utf-8", "replace"))

    await at_rest(workspace, id, write)
    return count


def _sections(row: SessionRow, transcript: Bytes, redact: bool, tools: bool) -> Iterator[tuple[str, int]]:
    """The document piece by piece, and how many secrets were taken out of each."""
    home = row.place.home.rstrip("/")

    def clean(section: str) -> tuple[str, int]:
        section, count = redacted(section)
        return (section.replace(home, "~") if home else section), count

    head = markdown.head(row.value, row.id)
    yield clean(head) if redact else (head, 0)
    for raw in session_export.messages(transcript, row.place.directory(row.id)):
        record = None if raw is None else parse_line(raw, ".")  # paths from the session's folder on
        if not isinstance(record, dict):
            continue
        members = 0
        if redact and tools and "toolInput" in record:
            given, members = without_secrets(record["toolInput"])
            record = {**record, "toolInput": given}
        section = markdown.message(record, tools=tools)
        found, count = clean(section) if redact else (section, 0)
        yield found, members + count


async def at_rest(workspace: Workspace, id: str, work: Callable[[SessionRow, Bytes], None]) -> None:
    """Call *work* in a thread with a session and its transcript, up to the size that belongs to it.

    Raises: NotFound, InvalidParams, Corrupt (no header can be read), Forbidden (a link), Busy.
    """
    for _ in range(LOOKS):
        await workspace.transcript(id)
        if await workspace.in_pool(partial(_with_transcript, work), workspace.session(id)):
            return
    raise Busy(f"sessions/{id} changes all the time", 200)


def _with_transcript(work: Callable[[SessionRow, Bytes], None], row: SessionRow) -> bool:
    """False, with nothing done, if the file is another one than *row* was read from."""
    folder = row.place.folder(row.id)
    if not row.readable or row.fingerprint is None:
        raise Corrupt(f"sessions/{row.id} is damaged: repair it first", folder.as_uri(), Ref("sessions", row.id))
    with _opened(folder, row.fingerprint) as transcript:
        if transcript is None:
            return False
        work(row, transcript)
        return True


@contextmanager
def _opened(folder: Path, known: atomic.Fingerprint) -> Iterator[Bytes | None]:
    """The transcript up to the size that is *known*; None if it is another file by now."""
    if folder.is_symlink():
        raise Forbidden(f"{folder.name} is a link: it is not exported", path=f"sessions/{folder.name}")
    fd = disk.open_read(transcript_of(folder))
    try:
        there = atomic.of_stat(os.fstat(fd))
        same = (there.device, there.inode) == (known.device, known.inode) and there.size >= known.size
        yield Bytes(known.size, fd) if same else None
    finally:
        disk.close(fd)


# -- in --


@define(eq=False, kw_only=True)
class BringIn(SessionCommit):
    """Give the arrival its place. Answers the new Item. overwrite: what is there goes into the trash.

    Raises: AlreadyExists, Forbidden (a link is there).
    """

    removes = True
    arrival: Arrival
    overwrite: bool = False

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        header = self.arrival.header
        value = sessions.view(header, unit.directory, str(unit.place.root), unit.place.home)
        item = Item(unit.id, version_of(header, sessions.VOLATILE), value, {})
        if self.arrival.placed:  # by a try before this one
            unit.confirm()
            return Planned(item)
        if unit.gone and unit.row is not None:
            unit.require()
        there = os.path.lexists(unit.folder)
        if there and not self.overwrite:
            raise AlreadyExists(unit.ref)
        if unit.folder.is_symlink():
            raise Forbidden(f"{unit.id} is a link: it is read, never written", path=f"sessions/{unit.id}")
        unit.arrive(self.arrival, f"{now}-{unit.id}" if there else None)
        gone = [telling.deleted(unit.id)] if unit.row is not None else []
        return Planned(item, [*gone, telling.created(item)])


@define(eq=False, kw_only=True)
class ImportingSessions:
    """told(id): of each session. has(noun, id): whether a record is there, connections among them."""

    workspace: Workspace
    origin: Origin
    connection: object
    on_conflict: OnConflict
    told: Callable[[str], None]
    has: Callable[[str, str], bool]

    async def sessions(self, them: tuple[PackedSession, ...]) -> tuple[Came, list[Issue]]:
        """One after the other, parents first. Raises: IoError, ReadOnly, ServerCancelled; what came in before stays."""
        came, warnings = Came(), []
        for one in _parents_first(them):
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError
            self.told(one.id)
            try:
                id, found = await self._session(one, came.renamed)
            except AlreadyExists:
                came.skipped.append(one.id)
            except CraftdError as error:
                came.fail(one.id, error)
            else:
                came.imported.append(one.id)
                warnings += found
                if id != one.id:
                    came.renamed[one.id] = id
        return came, warnings

    async def _session(self, packed: PackedSession, renamed: dict[str, str]) -> tuple[str, list[Issue]]:
        """The session's id. Raises: AlreadyExists if it is not to be imported."""
        for id in self._names(packed.id):
            if id == packed.id and self.on_conflict != "overwrite" and os.path.lexists(self.workspace.place.folder(id)):
                continue  # no need to build what has no place
            arrival, warnings = await self._staged(packed, id, renamed)
            commit = BringIn(
                origin=self.origin,
                connection=self.connection,
                id=id,
                arrival=arrival,
                overwrite=self.on_conflict == "overwrite",
            )
            try:
                await self.workspace.commit(commit)
            except AlreadyExists:
                continue
            finally:
                await self.workspace.in_pool(Arrival.discard, arrival)
            return id, warnings
        raise AlreadyExists(Ref("sessions", packed.id, self.workspace.id))

    def _names(self, id: str) -> Iterator[str]:
        yield id
        if self.on_conflict == "rename":
            for _ in range(NAMES_TRIED):
                yield self.workspace.new_session_id(self.workspace.verbs.promised("sessions"))

    async def _staged(self, packed: PackedSession, id: str, renamed: dict[str, str]) -> tuple[Arrival, list[Issue]]:
        """In a thread; nothing is left of it should nobody wait any more."""
        future = asyncio.ensure_future(self.workspace.in_pool(lambda id: self._stage(packed, id, renamed), id))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(_drop)
            raise
        except OSError as error:
            raise io_error(error) from error
        except ValueError as error:  # Malformed, or what stands for a file is none any more
            raise Busy(f"the bundle is not what it was when it was judged: {error}", 0) from error

    def _parent_of(self, id: str) -> str | None:
        row: SessionRow | None = self.workspace.sessions.get(id)
        return None if row is None else lineage.parent_of(row.stored)

    def _stage(self, packed: PackedSession, id: str, renamed: dict[str, str]) -> tuple[Arrival, list[Issue]]:
        place = self.workspace.place
        here = Here(
            id=id,
            root=str(place.root),
            directory=place.directory(id),
            home=place.home,
            exists=os.path.isdir,
            has=lambda noun, name: self.has(noun, renamed.get(name, name) if noun == "sessions" else name),
        )
        header, warnings = session_bundles.arrived(packed.arriving(here.directory), here, copied=id != packed.id)
        if isinstance(parent := header.get("parentSessionId"), str):
            header["parentSessionId"] = parent = renamed.get(parent, parent)
            if lineage.leads_back(id, parent, self._parent_of):
                del header["parentSessionId"]
                message = f"{parent} stems from it here, and is not its parent"
                path = "session.header.parentSessionId"
                warnings.append(Issue(path=path, message=message, severity="warning", noun="sessions", id=id))
        if packed.left_out:
            message = f"{packed.left_out} messages are no objects and are left out"
            warnings.append(Issue(path="messages", message=message, severity="warning", noun="sessions", id=id))
        with self.workspace.guard.writing():
            arrivals.ready(place)
            staged = packed.stage(place.folder(id), sessions.header_line(header, here.directory))
            try:
                return Arrival.of(staged, id, place, header), warnings
            except BaseException:
                atomic.discard(staged)
                raise


def _drop(future: asyncio.Future[tuple[Arrival, list[Issue]]]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result()[0].discard()


def _parents_first(them: tuple[PackedSession, ...]) -> list[PackedSession]:
    """In the order of the bundle, but none before its parent."""
    left = {one.id: one for one in them}
    done: list[PackedSession] = []
    for first in them:
        line: list[PackedSession] = []
        one: PackedSession | None = first
        while one is not None and left.pop(one.id, None) is not None:
            line.append(one)
            one = left.get(one.parent or "")
        done += reversed(line)
    return done


async def transfer(workspace: Workspace, value: Record, origin: Origin, connection: object) -> Item:
    """The session that the app's remote transfer *value* makes. Raises: ValidationFailed."""
    made, wrong = session_bundles.transferred(value)
    if wrong:
        raise ValidationFailed(tuple(wrong), Ref("bundles", ""))
    done = await workspace.verbs.create("sessions", made, None, origin, connection)
    item: Item = done.answer
    return item
