"""Records of the nouns with small files: what is published of one noun, and the unit that changes one document."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from craftd.errors import Corrupt, Forbidden, Issue, Ref
from craftd.model import json_text
from craftd.model.noun import Facts, Noun
from craftd.model.patch import diff
from craftd.model.records import Record, version_of
from craftd.store import atomic
from craftd.store.atomic import DirectoryNotFlushed, Fingerprint
from craftd.store.entries import Entries, Moves
from craftd.store.files import Document, Shelf
from craftd.store.folders import Folders
from craftd.store.locate import ABSENCE_MS
from craftd.workspace.commit import Unit
from craftd.workspace.index import Index
from craftd.workspace.journal import Change
from craftd.workspace.rows import PlainRow


@define(eq=False)
class Table:
    """Everything published of one noun. documents: as last read; records of an unsound one stay the last good ones.

    hidden: records that cannot be published because another document holds their id, by document.
    """

    noun: Noun
    shelf: Shelf
    index: Index
    documents: dict[str, Document] = field(factory=dict)
    hidden: dict[str, frozenset[str]] = field(factory=dict)
    safe: dict[str, dict[str, Fingerprint | None]] = field(factory=dict)
    """Files of documents that a power loss cannot undo any more. Thread of the scope."""

    def free(self, root: Path, id: str, key: str) -> bool:
        """Whether the document *key* may hold the record *id*: no other one does, or it is not there any more."""
        row: PlainRow | None = self.index.get(id)
        return row is None or row.unit == key or not (root / row.unit).exists()

    def records(self, key: str) -> dict[str, Record]:
        """In the order of the document."""
        rows = sorted((row for row in self.index if row.unit == key), key=lambda row: row.place)
        return {row.id: row.value for row in rows}

    def issues(self) -> dict[str, list[Issue]]:
        """What is wrong with this noun's files, by path relative to the workspace."""
        found: dict[str, list[Issue]] = {}
        for key, document in self.documents.items():
            for issue in document_issues(self, key, document, self.hidden.get(key, frozenset())):
                found.setdefault(issue.path, []).append(issue)
        return found

    def find(self, name: str) -> PlainRow | None:
        """By id, else by the name of its folder or one of the noun's aliases (a project's slug)."""
        row: PlainRow | None = self.index.get(name)
        if row is None and self.noun.aliases:
            inside = (r for r in self.index if r.unit.rpartition("/")[2] == name)
            called = (r for r in self.index if any(r.value.get(alias) == name for alias in self.noun.aliases))
            row = next(inside, None) or next(called, None)
        return row


def sort_value(row: PlainRow, name: str) -> Any:
    """`Index.sort_value` of these nouns."""
    return row.place if name == "place" else row.value.get(name)


def row_of(noun: Noun, id: str, unit: str, value: Record, document: Document, place: int = 0) -> PlainRow:
    info = dict(noun.info(value))
    issues = [issue.as_json() for issue in document.issues if issue.id == id]
    if issues:
        info["issues"] = issues
    return PlainRow(id, unit, value, version_of(value, noun.volatile), info, noun.light, place)


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
    renames: dict[str, str] = field(factory=dict)
    order: dict[str | None, list[str]] = field(factory=dict)
    _confirm: bool = False
    _incoming: tuple[Document, Mapping[str, bytes]] | None = None
    _late: list[Change] = field(factory=list)
    _hidden: frozenset[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._hidden = self.table.hidden.get(self.key, frozenset())

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
        self.staged.pop(id, None)  # behind what it may depend on
        self.staged[id] = value

    def stage_rename(self, old: str, new: str) -> None:
        """Stage that the entry *old* keeps its place under another id; the records are staged by themselves."""
        self.renames[old] = new
        self.order = {
            new if parent == old else parent: [new if id == old else id for id in ids]
            for parent, ids in self.order.items()
        }

    def stage_folder(self, document: Document, contents: Mapping[str, bytes]) -> None:
        """Stage that *contents* become all that its folder holds: *document*."""
        self.staged = dict(document.records)
        self._incoming = document, contents

    def stage_order(self, parent: str | None, ids: Sequence[str]) -> None:
        self.order[parent] = list(ids)

    def level(self, parent: str | None) -> list[str]:
        """Ids of one level, in order."""
        there = _levels(self.records()).get(parent, [])
        place = {id: at for at, id in enumerate(self.order.get(parent, ()))}
        return sorted(there, key=lambda id: place.get(id, len(place)))

    @property
    def dirty(self) -> bool:
        return bool(self.staged or self.order or self._confirm or self._incoming)

    def confirm(self) -> None:
        """Somebody is about to be told that it is stored as it is, whoever wrote it."""
        self._confirm = self.table.safe.get(self.key) != self._prints

    @property
    def _prints(self) -> dict[str, Fingerprint | None]:
        return {} if self.document is None else self.document.prints

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
        ours = all(not self.table.free(self.root, id, self.key) for id in self._hidden)
        if self.document is not None and self._unchanged(self.document) and ours:
            return []
        loaded = self._load()
        if self.document is None and loaded is None and not self.base:
            return []
        before, old_issues = self.base, self._issues()
        self.document, self._hidden = loaded, frozenset()
        if loaded is None:
            self.base = {}
        elif loaded.sound or not before:
            self.base = self._own(loaded)
        before = {**self._taken_over(), **before}
        changes = changes_between(self.noun, before, self.base, self._row)
        return changes + issue_changes(old_issues, self._issues())

    def _load(self) -> Document | None:
        """The document; not in the moment in which somebody saves it: a file is missing, or half of it is there."""
        deadline = time.monotonic() + ABSENCE_MS / 1000
        while True:
            loaded = self.table.shelf.load(self.root, self.key)
            unfinished = self._misses_a_file(loaded) or (loaded is not None and self._is_half_written(loaded))
            if not unfinished or time.monotonic() > deadline:
                return loaded
            time.sleep(0.002)

    def _misses_a_file(self, loaded: Document | None) -> bool:
        prints = {} if loaded is None else loaded.prints
        known = {} if self.document is None else self.document.prints
        return any(
            mark is not None and prints.get(path) is None and (self.root / path).parent.is_dir()
            for path, mark in known.items()
        )

    def _is_half_written(self, loaded: Document) -> bool:
        if loaded.sound or (self.document is not None and self.document.prints == loaded.prints):
            return False
        return any(mark is not None and atomic.is_fresh(mark) for mark in loaded.prints.values())

    def _own(self, document: Document) -> dict[str, Record]:
        """Its records but those that another document holds."""
        self._hidden = frozenset(id for id in document.records if not self.table.free(self.root, id, self.key))
        return {id: value for id, value in document.records.items() if id not in self._hidden}

    def _taken_over(self) -> dict[str, Record]:
        """Records that were published from a document that is gone: its folder was renamed."""
        rows = (self.table.index.get(id) for id in self.base)
        return {row.id: row.value for row in rows if row is not None and row.unit != self.key}

    def _unchanged(self, document: Document) -> bool:
        return all(atomic.glance(self.root / path) == known for path, known in document.prints.items())

    def _issues(self) -> dict[str, list[Issue]]:
        found: dict[str, list[Issue]] = {}
        for issue in self._all_issues():
            found.setdefault(issue.path, []).append(issue)
        return found

    def _all_issues(self) -> list[Issue]:
        return document_issues(self.table, self.key, self.document, self._hidden)

    def _row(self, id: str, value: Record, place: int = 0) -> PlainRow:
        incoming = None if self._incoming is None else self._incoming[0]
        document = incoming or self.document or Document(key=self.key)
        return row_of(self.noun, id, self.key, value, document, place)

    def row(self, id: str) -> PlainRow:
        return self._row(id, self.records()[id])

    def write(self) -> None:
        if self._incoming is not None:
            self._install(self._incoming[1])
        changes = {
            id: value
            for id, value in self.staged.items()
            if (value is not None or id in self.base)
            and json_text.canonical(value) != json_text.canonical(self.base.get(id))
        }
        if changes or self.order:
            try:
                self._settle(self._save(changes))
            except DirectoryNotFlushed as error:
                self._settle(error.result)  # the new bytes are there; what is not safe yet is their name
                raise
            self.table.safe[self.key] = dict(self._prints)
        elif self._confirm:
            atomic.make_safe(self.root, [self.root / path for path in self._prints or (self.key,)])
            self.table.safe[self.key] = dict(self._prints)
        self.discard()

    def _install(self, contents: Mapping[str, bytes]) -> None:
        """What else is staged comes on top."""
        assert isinstance(self.table.shelf, Folders)
        staged = dict(self.staged)
        try:
            self._settle(self.table.shelf.install(self.root, self.key, self.document, contents, self.facts.now))
        except DirectoryNotFlushed as error:
            self._settle(error.result)
            raise
        self.staged = staged
        self.table.safe[self.key] = dict(self._prints)

    def told_late(self) -> list[Change]:
        late, self._late = self._late, []
        return late

    def _save(self, changes: Mapping[str, Record | None]) -> Document | None:
        shelf = self.table.shelf
        if isinstance(shelf, Entries):
            moves = Moves(renames=self.renames, order=self.order)
            return shelf.save(self.root, self.key, self.document, changes, self.facts, moves)
        return shelf.save(self.root, self.key, self.document, changes, self.facts)

    def _settle(self, saved: Document | None) -> None:
        before = self._issues()
        self.document = saved
        self._late += issue_changes(before, self._issues())
        self.base = dict(saved.records) if saved is not None else {}
        self.discard()

    def discard(self) -> None:
        self.staged.clear()
        self.renames.clear()
        self.order.clear()
        self._confirm = False
        self._incoming = None

    def publish(self) -> None:
        self._show_document()
        table = self.table
        for id in [row.id for row in table.index if row.unit == self.key and row.id not in self.base]:
            table.index.remove(id)
        for place, (id, value) in enumerate(self.base.items()):
            row, old = self._row(id, value, place), table.index.get(id)
            same = old is not None and (old.version, old.info, old.place) == (row.version, row.info, place)
            if old is None or not same or old.value is not value:
                table.index.put(row)

    def publish_first(self) -> None:
        """The same while nobody has listed anything and nothing of this document is shown."""
        self._show_document()
        self.table.index.fill([self._row(id, value, at) for at, (id, value) in enumerate(self.base.items())])

    def _show_document(self) -> None:
        table = self.table
        if self.document is None:
            table.documents.pop(self.key, None)
        else:
            table.documents[self.key] = self.document
        if self._hidden:
            table.hidden[self.key] = self._hidden
        else:
            table.hidden.pop(self.key, None)


def document_issues(table: Table, key: str, document: Document | None, hidden: frozenset[str]) -> list[Issue]:
    """What is wrong with a document, in itself and beside the others."""
    issues = [] if document is None else list(document.issues)
    for id in sorted(hidden):
        row = table.index.get(id)
        where = "another file" if row is None else row.unit
        message = f"{id} is the id of {where} too, which counts"
        issues.append(Issue(path=key, message=message, code="duplicate-id", noun=table.noun.name, id=id))
    return issues


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
    return changes + (reorderings(noun, before, after) if noun.ordered else [])


def reorderings(noun: Noun, before: Mapping[str, Record], after: Mapping[str, Record]) -> list[Change]:
    """`didReorder` for every level in another order than the one that follows from what came and went."""
    old, new = _levels(before), _levels(after)
    changes = []
    for parent, ids in new.items():
        stayed = [id for id in old.get(parent, ()) if id in ids]
        if [*stayed, *(id for id in ids if id not in stayed)] != ids:
            changes.append(reordering(noun, parent, ids))
    return changes


def reordering(noun: Noun, parent: str | None, ids: Sequence[str]) -> Change:
    within = {} if parent is None else {"parent": parent}
    return Change(f"{noun.name}/didReorder", noun.name, {**within, "ids": list(ids)})


def _levels(records: Mapping[str, Record]) -> dict[str | None, list[str]]:
    """Ids in order, by the record they are in."""
    levels: dict[str | None, list[str]] = {}
    for id, value in records.items():
        parent = value.get("parent")
        levels.setdefault(parent if isinstance(parent, str) else None, []).append(id)
    return levels


def issue_changes(before: Mapping[str, list[Issue]], after: Mapping[str, list[Issue]]) -> list[Change]:
    """`issues/didChange` for every file whose list is another one now."""
    return [
        Change(
            "issues/didChange", "issues", {"path": path, "issues": [issue.as_json() for issue in after.get(path, [])]}
        )
        for path in sorted(before.keys() | after.keys())
        if before.get(path, []) != after.get(path, [])
    ]
