"""The commit that changes a draft: it is there as long as it says something."""

from __future__ import annotations

from typing import Any, Final

from attrs import define

from craftd.errors import VersionConflict
from craftd.model import drafts
from craftd.model import patch as patches
from craftd.model.records import Item, Record
from craftd.workspace.changes import RecordCommit, Updated, refuse_errors
from craftd.workspace.commit import Planned
from craftd.workspace.journal import Change
from craftd.workspace.tables import DocumentUnit

ABSENT: Final = ""
"""Version of a draft that is not there."""


def empty(session: str) -> Item:
    return Item(session, ABSENT, {"text": ""})


@define(eq=False, kw_only=True)
class SetDraft(RecordCommit):
    """Answers Updated. given: the members that change; None takes one away. expected: "" = there must be none."""

    given: dict[str, Any]
    expected: str | None = None

    def plan(self, unit: DocumentUnit, now: int) -> Planned:
        unit.require_writable(self.ref)
        old = unit.records().get(self.id)
        there = empty(self.id) if old is None else unit.row(self.id).item()
        if self.expected is not None and there.version != self.expected:
            raise VersionConflict(self.ref, {"version": there.version, "item": there.as_json()})
        merged: Record = {"text": "", **(old or {}), **self.given}
        new = {name: member for name, member in merged.items() if member is not None}
        if drafts.is_empty(new):
            return self._gone(unit, old)
        if old is not None and not patches.diff(old, new):
            unit.confirm()
            return Planned(Updated(there, changed=False))
        refuse_errors(self.noun, new, old, self.ref)
        unit.stage(self.id, new)
        item = unit.row(self.id).item()
        if old is None:
            change = Change("drafts/didCreate", "drafts", {"item": item.as_json()})
        else:
            members = {"changes": [{"id": self.id, "version": item.version}], "patch": patches.diff(old, new)}
            change = Change("drafts/didChange", "drafts", members)
        return Planned(Updated(item, changed=True), [change])

    def _gone(self, unit: DocumentUnit, old: Record | None) -> Planned:
        if old is None:
            unit.confirm()
            return Planned(Updated(empty(self.id), changed=False))
        unit.stage(self.id, None)
        change = Change("drafts/didDelete", "drafts", {"id": self.id})
        return Planned(Updated(empty(self.id), changed=True), [change])
