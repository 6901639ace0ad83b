"""Commits of nouns with small files: one record is made, changed or taken away."""

from __future__ import annotations

from typing import Any

from attrs import define, evolve

from craftd.errors import (
    AlreadyExists,
    InvalidParams,
    InvalidState,
    Issue,
    NotFound,
    Ref,
    ValidationFailed,
    VersionConflict,
)
from craftd.model import patch as patches
from craftd.model.labels import descendants
from craftd.model.noun import Facts, Noun
from craftd.model.records import Item, Record
from craftd.workspace.commit import Commit, Planned
from craftd.workspace.journal import Change
from craftd.workspace.tables import DocumentUnit


@define(eq=False, kw_only=True)
class RecordCommit(Commit):
    """A change of one record. key: its document; facts: what pure rules need, with `now` of the round put in."""

    noun: Noun
    key: str
    id: str
    workspace: str | None
    facts: Facts

    @property
    def unit(self) -> str:
        return self.key

    @property
    def ref(self) -> Ref:
        return Ref(self.noun.name, self.id, self.workspace)

    def _facts(self, now: int) -> Facts:
        return evolve(self.facts, now=now)

    def _current(self, unit: DocumentUnit) -> Record:
        unit.require_writable(self.ref)
        value = unit.records().get(self.id)
        if value is None:
            raise NotFound(self.ref)
        return value

    def _refuse_misplaced(self, unit: DocumentUnit, value: Record) -> None:
        """Raises ValidationFailed for what is wrong with *value* beside the other records of its file."""
        others = {id: record for id, record in unit.records().items() if id != self.id}
        wrong = self.noun.among(self.id, value, {**others, self.id: value})
        if wrong:
            raise ValidationFailed(tuple(wrong), self.ref)

    def _expect(self, unit: DocumentUnit, expected: str | None) -> None:
        if expected is not None:
            item = unit.row(self.id).item()
            if item.version != expected:
                raise VersionConflict(self.ref, {"version": item.version, "item": item.as_json()})


@define(eq=False, kw_only=True)
class CreateRecord(RecordCommit):
    """Answers the new Item."""

    value: Record

    def plan(self, unit: DocumentUnit, now: int) -> Planned:
        unit.require_writable(self.ref)
        existing = unit.records().get(self.id)
        if existing is not None:
            raise AlreadyExists(self.ref, unit.row(self.id).item().as_json())
        elsewhere = unit.table.index.get(self.id)
        if elsewhere is not None and elsewhere.unit != self.key:
            raise AlreadyExists(self.ref, elsewhere.item().as_json())
        refuse_errors(self.noun, self.value, None, self.ref)
        self._refuse_misplaced(unit, self.value)
        unit.stage(self.id, self.value)
        item = unit.row(self.id).item()
        return Planned(item, [Change(f"{self.noun.name}/didCreate", self.noun.name, {"item": item.as_json()})])


@define(eq=False)
class Updated:
    item: Item
    changed: bool


@define(eq=False, kw_only=True)
class UpdateRecord(RecordCommit):
    """Answers Updated."""

    patch: dict[str, Any]
    expected: str | None = None

    def plan(self, unit: DocumentUnit, now: int) -> Planned:
        old = self._current(unit)
        self._expect(unit, self.expected)
        new = patches.apply(old, self.patch)
        if not patches.diff(old, new):
            unit.confirm()
            return Planned(Updated(unit.row(self.id).item(), changed=False))
        if self.noun.touch is not None:
            new = self.noun.touch(new, self._facts(now))
        refuse_immutable(self.noun, old, new, self.ref)
        refuse_errors(self.noun, new, old, self.ref)
        self._refuse_misplaced(unit, new)
        unit.stage(self.id, new)
        item = unit.row(self.id).item()
        members = {"changes": [{"id": self.id, "version": item.version}], "patch": patches.diff(old, new)}
        change = Change(f"{self.noun.name}/didChange", self.noun.name, members)
        return Planned(Updated(item, changed=True), [change])


@define(eq=False, kw_only=True)
class DeleteRecord(RecordCommit):
    """A damaged folder may go, and a link goes as a link; what cannot lose a record safely refuses when it is saved."""

    expected: str | None = None
    missing_ok: bool = False

    def plan(self, unit: DocumentUnit, now: int) -> Planned:
        gone = self._gone(unit)
        for id in gone:
            unit.stage(id, None)
        return Planned(
            None, [Change(f"{self.noun.name}/didDelete", self.noun.name, {"id": id}) for id in reversed(gone)]
        )

    def _gone(self, unit: DocumentUnit) -> list[str]:
        """Ids of all that goes with it."""
        records = unit.records()
        if self.id not in records:
            if self.missing_ok:
                unit.confirm()
                return []
            raise NotFound(self.ref)
        self._expect(unit, self.expected)
        if self.id in self.noun.required or self.noun.is_kept(records[self.id]):
            raise InvalidState(f"{self.ref} belongs to every workspace and cannot be deleted", "required", (), self.ref)
        return [self.id, *descendants(self.id, records)]


def refuse_errors(noun: Noun, value: Record, old: Record | None, ref: Ref) -> None:
    """Raises ValidationFailed for what is wrong with *value*, except faults it already had in *old*.

    A record that was broken by hand can thus be mended one field after the other.
    """
    errors = [
        evolve(issue, severity="error")
        for issue in noun.validate(value, old)
        if issue.severity == "error" or issue.code in noun.refused
    ]
    if old is not None and errors:
        known = {(issue.path, issue.message) for issue in noun.validate(old, old)}
        errors = [issue for issue in errors if (issue.path, issue.message) not in known]
    if errors:
        raise ValidationFailed(tuple(errors), ref)


def refuse_immutable(noun: Noun, old: Record, new: Record, ref: Ref) -> None:
    fixed = noun.immutable | ({noun.id_member} if noun.id_member else set())
    changed = patches.diff(
        {name: old[name] for name in fixed if name in old}, {name: new[name] for name in fixed if name in new}
    )
    if changed:
        names = [*changed.get("set", {}), *(pointer.lstrip("/") for pointer in changed.get("unset", ()))]
        raise ValidationFailed(tuple(Issue(path=name, message="cannot be changed") for name in names), ref)


def check_patch(patch: Any) -> dict[str, Any]:
    """*patch* as given, or InvalidParams naming what is wrong with its shape."""
    issues = patches.check(patch)
    if issues:
        raise InvalidParams(tuple(issues))
    checked: dict[str, Any] = patch
    return checked
