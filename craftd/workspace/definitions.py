"""Commits of definitions that sessions name, statuses and labels: ask first, give another id, put in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define

from craftd.errors import AlreadyExists, Corrupt, Forbidden, InvalidParams, InvalidState, Issue, NotFound
from craftd.model import patch as patches
from craftd.model import sessions
from craftd.model.records import Record
from craftd.store.entries import PARENT, Entries
from craftd.workspace.changes import DeleteRecord, RecordCommit, Updated
from craftd.workspace.commit import Planned
from craftd.workspace.journal import Change
from craftd.workspace.sessions import SessionCommit, SessionUnit
from craftd.workspace.tables import DocumentUnit, reordering


@define(eq=False, kw_only=True)
class AskToDelete(DeleteRecord):
    """Answers the ids that would go: none if there is none and that is right. move_to: must be another one there."""

    promises = False
    move_to: str | None = None

    def plan(self, unit: DocumentUnit, now: int) -> Planned:
        if isinstance(unit.table.shelf, Entries):
            unit.require_writable(self.ref)
        gone = self._gone(unit)
        if self.move_to is not None and (self.move_to in gone or self.move_to not in unit.records()):
            raise InvalidParams.of("moveTo", f"there is no other {self.noun.singular} {self.move_to!r}")
        return Planned(tuple(gone))


@define(eq=False, kw_only=True)
class RenameRecord(RecordCommit):
    """Another id for a record, in its place and with what is in it. Answers Updated.

    dry: only ask whether that is possible.
    """

    new_id: str
    expected: str | None = None
    dry: bool = False

    def plan(self, unit: DocumentUnit, now: int) -> Planned:
        value = self._current(unit)
        self._expect(unit, self.expected)
        records = unit.records()
        if self.id in self.noun.required:
            raise InvalidState(f"{self.ref} belongs to every workspace and keeps its id", "required", (), self.ref)
        if self.new_id == self.id:
            return Planned(Updated(unit.row(self.id).item(), changed=False))
        if self.new_id in records:
            raise AlreadyExists(self.ref, unit.row(self.new_id).item().as_json())
        if self.dry:
            return Planned(Updated(unit.row(self.id).item(), changed=True))
        level = unit.level(value.get(PARENT))
        renamed = {**value, self.noun.id_member or "id": self.new_id}
        below = {id: {**child, PARENT: self.new_id} for id, child in records.items() if child.get(PARENT) == self.id}
        unit.stage_rename(self.id, self.new_id)
        unit.stage(self.id, None)
        for id, staged in {self.new_id: renamed, **below}.items():
            unit.stage(id, staged)
        item = unit.row(self.new_id).item()
        name = self.noun.name
        changes = [Change(f"{name}/didCreate", name, {"item": item.as_json()})]
        if below:
            versions = [{"id": id, "version": unit.row(id).version} for id in below]
            patch = {"set": {PARENT: self.new_id}}
            changes.append(Change(f"{name}/didChange", name, {"changes": versions, "patch": patch}))
        changes.append(Change(f"{name}/didDelete", name, {"id": self.id}))
        if self.noun.ordered and level[-1] != self.id:
            order = [self.new_id if id == self.id else id for id in level]
            changes.append(reordering(self.noun, value.get(PARENT), order))
        return Planned(Updated(item, changed=True), changes)


@define(eq=False, kw_only=True)
class ReorderRecords(RecordCommit):
    """The full order of one level; parent: what it is in. id: none's."""

    id: str = ""
    parent: str | None = None
    ids: Sequence[str]

    def plan(self, unit: DocumentUnit, now: int) -> Planned:
        unit.require_writable(self.ref)
        if self.parent is not None and self.parent not in unit.records():
            raise InvalidParams.of("parent", f"there is no {self.noun.singular} {self.parent!r}")
        level = unit.level(self.parent) if self.noun.ordered else list(unit.records())
        refuse_other_ids(self.ids, level)
        if not self.noun.ordered:
            return Planned(None, self._renumber(unit))
        if list(self.ids) == level:
            return Planned(None)
        unit.stage_order(self.parent, self.ids)
        return Planned(None, [reordering(self.noun, self.parent, self.ids)])

    def _renumber(self, unit: DocumentUnit) -> list[Change]:
        """Give every record its place as `order`."""
        changes = []
        records = unit.records()
        for at, id in enumerate(self.ids):
            old, new = records[id], {**records[id], "order": at}
            if patch := patches.diff(old, new):
                unit.stage(id, new)
                members = {"changes": [{"id": id, "version": unit.row(id).version}], "patch": patch}
                changes.append(Change(f"{self.noun.name}/didChange", self.noun.name, members))
        return changes


def refuse_other_ids(ids: Sequence[str], level: Sequence[str]) -> None:
    """Raises InvalidParams if *ids* are not exactly those of the *level*."""
    unknown, missing = set(ids) - set(level), set(level) - set(ids)
    issues = [Issue(path="ids", message=f"there is no {id!r} in this level") for id in sorted(unknown)]
    issues += [Issue(path="ids", message=f"lacks {id!r}: the whole level is needed") for id in sorted(missing)]
    if len(set(ids)) != len(ids):
        issues.append(Issue(path="ids", message="names one of them twice"))
    if issues:
        raise InvalidParams(tuple(issues))


@define(eq=False, kw_only=True)
class AdaptSession(SessionCommit):
    """What follows for one session. Answers whether anything did; nothing does for one that cannot be changed.

    instead(value): what it becomes; *value* itself if it stays as it is.
    """

    rewrites = True
    instead: Callable[[Record], Record]

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        try:
            stored = unit.require_writable()
        except (NotFound, Corrupt, Forbidden):
            return Planned(False)
        old = unit.value()
        new = self.instead(old)
        if new is old:
            return Planned(False)
        unit.change(sessions.ordered(sessions.to_stored(stored, old, new, unit.place.home)))
        return Planned(True, unit.changed_since(old))
