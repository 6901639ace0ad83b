"""Records of the nouns with small files: what is published of one noun, and the unit that changes one document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from craftd.errors import Corrupt, Forbidden, Issue, Ref
from craftd.model import json_text
from craftd.model.noun import Facts, Noun
from craftd.model.patch import diff
from craftd.model.records import Record, version_of
from craftd.store import atomic
from craftd.store.files import Document, Shelf
from craftd.workspace.commit import Unit
from craftd.workspace.index import Index
from craftd.workspace.journal import Change
from craftd.workspace.rows import PlainRow


@define(eq=False)
class Table:
    """Everything published of one noun. documents: as last read; records of an unsound one stay the last good ones."""

    noun: Noun
    shelf: Shelf
    index: Index
    documents: dict[str, Document] = field(factory=dict)

    def records(self, key: str) -> dict[str, Record]:
        return {row.id: row.value for row in self.index if row.unit == key}

    def issues(self) -> dict[str, list[Issue]]:
        """What is wrong with this noun's files, by path relative to the workspace."""
        found: dict[str, list[Issue]] = {}
        for document in self.documents.values():
            for issue in document.issues:
                found.setdefault(issue.path, []).append(issue)
        return found

    def find(self, name: str) -> PlainRow | None:
        """By id, else by one of the noun's aliases (a project's slug)."""
        row: PlainRow | None = self.index.get(name)
        if row is None and self.noun.aliases:
            row = next((r for r in self.index if any(r.value.get(alias) == name for alias in self.noun.aliases)), None)
        return row


def row_of(noun: Noun, id: str, unit: str, value: Record, document: Document) -> PlainRow:
    info = dict(noun.info(value))
    issues = [issue.as_json() for issue in document.issues if issue.id == id]
    if issues:
        info["issues"] = issues
    return PlainRow(id, unit, value, version_of(value, noun.volatile), info, noun.light)


@define(eq=False)
class DocumentUnit(Unit):
    """One document inside a round. records: the last good ones, with what is staged on top."""

    key: str
    root: Path
    table: Table
    facts: Facts
    document: Document | None
    base: dict[str, Record]
    staged: dict[str, Record | None] = field(factory=dict)
    _refreshed: bool = False

    @property
    def noun(self) -> Noun:
        return self.table.noun

    def records(self) -> dict[str, Record]:
        merged: dict[str, Record] = dict(self.base)
        for id, value in self.staged.items():
            if value is None:
                merged.pop(id, None)
            else:
                merged[id] = value
        return merged

    def stage(self, id: str, value: Record | None) -> None:
        self.staged[id] = value

    @property
    def dirty(self) -> bool:
        return bool(self.staged)

    def require_writable(self, ref: Ref) -> None:
        """Raises Corrupt (its file cannot be parsed) or Forbidden (it is a link)."""
        if self.document is None:
            return
        if not self.document.sound:
            problem = self.document.issues[0].message if self.document.issues else "cannot be parsed"
            raise Corrupt(
                f"{self.key}: {problem}; nothing is written over it", self.root.joinpath(self.key).as_uri(), ref
            )
        if self.document.linked:
            raise Forbidden(f"{self.key} is a link: it is read, never written", path=self.key)

    def refresh(self) -> list[Change]:
        if self.document is not None and self._unchanged(self.document):
            return []
        loaded = self.table.shelf.load(self.root, self.key)
        if self.document is None and loaded is None and not self.base:
            return []
        before, old_issues = self.base, self._issues()
        self.document = loaded
        if loaded is None:
            self.base = {}
        elif loaded.sound or not before:
            self.base = dict(loaded.records)
        changes = changes_between(self.noun, before, self.base, self._row)
        return changes + issue_changes(old_issues, self._issues())

    def _unchanged(self, document: Document) -> bool:
        return all(atomic.fingerprint(self.root / path) == known for path, known in document.prints.items())

    def _issues(self) -> dict[str, list[Issue]]:
        found: dict[str, list[Issue]] = {}
        for issue in self.document.issues if self.document is not None else ():
            found.setdefault(issue.path, []).append(issue)
        return found

    def _row(self, id: str, value: Record) -> PlainRow:
        document = self.document or Document(key=self.key)
        return row_of(self.noun, id, self.key, value, document)

    def row(self, id: str) -> PlainRow:
        return self._row(id, self.records()[id])

    def write(self) -> None:
        changes = {
            id: value
            for id, value in self.staged.items()
            if (value is not None or id in self.base)
            and json_text.canonical(value) != json_text.canonical(self.base.get(id))
        }
        if changes:
            saved = self.table.shelf.save(self.root, self.key, self.document, changes, self.facts)
            self.document = saved
            self.base = dict(saved.records) if saved is not None else {}
        self.staged.clear()

    def discard(self) -> None:
        self.staged.clear()

    def publish(self) -> None:
        table = self.table
        if self.document is None:
            table.documents.pop(self.key, None)
        else:
            table.documents[self.key] = self.document
        for id in [row.id for row in table.index if row.unit == self.key and row.id not in self.base]:
            table.index.remove(id)
        for id, value in self.base.items():
            row, old = self._row(id, value), table.index.get(id)
            if old is None or old.version != row.version or old.info != row.info or old.value is not value:
                table.index.put(row)


def changes_between(noun: Noun, before: Mapping[str, Record], after: Mapping[str, Record], row: Any) -> list[Change]:
    """The changes that lead a mirror from *before* to *after*; row(id, value) makes the row of a new value."""
    changes = [Change(f"{noun.name}/didDelete", noun.name, {"id": id}) for id in before if id not in after]
    for id, value in after.items():
        old = before.get(id)
        if old is None:
            item = row(id, value).item().as_json()
            changes.append(Change(f"{noun.name}/didCreate", noun.name, {"item": item}))
        elif patch := diff(old, value):
            version = row(id, value).version
            members = {"changes": [{"id": id, "version": version}], "patch": patch}
            changes.append(Change(f"{noun.name}/didChange", noun.name, members))
    return changes


def issue_changes(before: Mapping[str, list[Issue]], after: Mapping[str, list[Issue]]) -> list[Change]:
    """`issues/didChange` for every file whose list is another one now."""
    return [
        Change(
            "issues/didChange", "issues", {"path": path, "issues": [issue.as_json() for issue in after.get(path, [])]}
        )
        for path in sorted(before.keys() | after.keys())
        if before.get(path, []) != after.get(path, [])
    ]
