"""Records that are entries of a list, or of a tree of lists, in one JSON file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from craftd.errors import Corrupt, Issue, Ref, ValidationFailed
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record
from craftd.store import atomic, confine, files
from craftd.store.atomic import DirectoryNotFlushed, Fingerprint
from craftd.store.files import Document, JsonForm, Problem

PARENT = "parent"
"""Member of a nested record that names the one above it; on disk the place says it."""


@frozen(kw_only=True)
class Moves:
    """What no record says. renames: new ids by old ones, in this order. order: ids of levels, by what they are in."""

    renames: Mapping[str, str] = field(factory=dict)
    order: Mapping[str | None, Sequence[str]] = field(factory=dict)


NO_MOVES = Moves()


@frozen(kw_only=True)
class Entries:
    """Shelf of a noun whose records share one JSON file.

    file: where. member: key of the list in it. around: members of a new file, the empty list among them.
    children: key of an entry's own entries; None = a flat list. naming: member of the file that holds an id.
    inherited(root): what an older version of the app kept elsewhere. check(file): what is wrong beside the entries.

    While there is no file what is inherited is served, else the noun's defaults; the first change writes them. A file
    that cannot be used (no JSON, no list, something missing that must be there) serves the defaults too, is not sound,
    and is never written over.
    """

    noun: Noun
    file: str
    member: str
    around: Record
    children: str | None = None
    naming: str | None = None
    inherited: Callable[[Path], list[Record]] = lambda root: []
    check: Callable[[Record], Iterable[Issue]] = lambda file: ()
    form: JsonForm = field(factory=JsonForm)

    def keys(self, root: Path) -> list[str]:
        return [self.file]

    def key_of(self, path: str) -> str | None:
        return self.file if path in (self.file, self.file.rpartition("/")[0]) else None

    def key_for(self, id: str, value: Record) -> str:
        return self.file

    def load(self, root: Path, key: str) -> Document | None:
        try:
            found = files.read(root / self.file)
        except files.Unreadable as error:
            problem = Problem(message=error.message, code="unreadable")
            document = self._unusable(None, atomic.glance(root / self.file), problem)
        else:
            document = self._absent(root) if found is None else self._document(*found)
        return evolve(document, linked=(root / self.file).parent.is_symlink())

    def save(
        self,
        root: Path,
        key: str,
        document: Document | None,
        changes: Mapping[str, Record | None],
        facts: Facts,
        moves: Moves = NO_MOVES,
    ) -> Document | None:
        document = document or self._absent(root)
        confine.check_writable(root, root / self.file)
        if not document.sound:
            ref = Ref(self.noun.name, next(iter(changes)))
            raise Corrupt(f"{self.file} cannot be used as it is", (root / self.file).as_uri(), ref)
        data = document.content[self.file]
        stored = self._file(document.records) if data is None else self.form.parse(data).value
        forest = _Forest(stored[self.member], self.noun.id_member or "id", self.children)
        forest.change(_renamed(document.records, moves.renames, forest), changes)
        for parent, ids in moves.order.items():
            forest.arrange(parent, ids)
        whole = {**stored, self.member: forest.entries}
        if self.naming is not None and self.naming in stored:
            whole[self.naming] = self._named(stored[self.naming], changes, moves)
        changed = self.form.format(whole, data)
        files.make_folders((root / self.file).parent, root)
        try:
            print = atomic.replace(root / self.file, changed, expect=document.prints[self.file])
        except DirectoryNotFlushed as error:
            error.result = self._document(changed, error.result)
            raise
        return self._document(changed, print)

    def _named(self, id: Any, changes: Mapping[str, Record | None], moves: Moves) -> Any:
        """What `naming` holds after *changes*; where that record goes, what a new file has."""
        for old, new in moves.renames.items():
            id = new if id == old else id
        gone = isinstance(id, str) and id in changes and changes[id] is None
        return self.around[self.naming or ""] if gone else id

    def _defaults(self) -> dict[str, Record]:
        return {value[self.noun.id_member or "id"]: dict(value) for value in self.noun.defaults}

    def new_file(self) -> Record:
        return self._file(self._defaults())

    def _file(self, records: Mapping[str, Record]) -> Record:
        forest = _Forest([], self.noun.id_member or "id", self.children)
        forest.change({}, records)
        return {**self.around, self.member: forest.entries}

    def _absent(self, root: Path) -> Document:
        inherited = {value[self.noun.id_member or "id"]: value for value in self.inherited(root)}
        return Document(
            key=self.file,
            records=inherited or self._defaults(),
            prints={self.file: None},
            content={self.file: None},
        )

    def _document(self, data: bytes, print: Fingerprint | None) -> Document:
        parsed = self.form.parse(data)
        if parsed.problems:
            return self._unusable(data, print, *parsed.problems)
        entries = parsed.value.get(self.member)
        issues = list(self.check(parsed.value))
        if not isinstance(entries, list):
            issues.append(Issue(path=self.member, message="must be a list", code="schema"))
            return evolve(self._unusable(data, print), issues=self._in_file(data, issues))
        records: dict[str, Record] = {}
        places: dict[str | None, str] = {None: self.member}
        for path, id, value in _Forest(entries, self.noun.id_member or "id", self.children).walk(self.member):
            wrong = self._wrong(id, value, records)
            if id is not None and value is not None and id not in records:
                records[id], places[id] = value, path
                wrong += self.noun.among(id, value, records)
            issues += [_below(path, evolve(found, id=id)) for found in wrong]
        missing = self.noun.must_hold(records)
        issues += [_below(places[found.id], found) for found in missing]
        return Document(
            key=self.file,
            records=self._defaults() if missing else records,
            prints={self.file: print},
            issues=self._in_file(data, issues),
            sound=not missing,
            content={self.file: data},
        )

    def _wrong(self, id: str | None, value: Record | None, records: Mapping[str, Record]) -> list[Issue]:
        if value is None:
            return [Issue(path="", message="must be an object", code="schema")]
        if id is None:
            return [Issue(path=self.noun.id_member or "id", message="must be text", code="schema")]
        wrong = self.noun.validate(value, None)
        if id in records:
            wrong.append(Issue(path="id", message=f"{id!r} stands here for the second time", code="duplicate-id"))
        return wrong

    def _in_file(self, data: bytes, issues: Sequence[Issue]) -> tuple[Issue, ...]:
        return files.in_file(self.file, self.noun.name, self.form, data, issues)

    def _unusable(self, data: bytes | None, print: Fingerprint | None, *problems: Problem) -> Document:
        return Document(
            key=self.file,
            records=self._defaults(),
            prints={self.file: print},
            issues=tuple(problem.issue(self.file, self.noun.name) for problem in problems),
            sound=False,
            content={self.file: data},
        )


def _below(path: str, found: Issue) -> Issue:
    return evolve(found, path=f"{path}.{found.path}" if found.path else path)


def _renamed(records: Mapping[str, Record], renames: Mapping[str, str], forest: _Forest) -> dict[str, Record]:
    """Give entries of *forest* another id, in place; the *records* that are there then."""
    found = dict(records)
    for old, new in renames.items():
        if old in found and forest.give_id(old, new):
            found[new] = {**found.pop(old), forest.id_member: new}
            for id, value in found.items():
                if value.get(PARENT) == old and forest.children is not None:
                    found[id] = {**value, PARENT: new}
    return found


class _Forest:
    """The list of entries as parsed, changed in place. What is no entry, or has no id, is kept where it is."""

    def __init__(self, entries: list[Any], id_member: str, children: str | None) -> None:
        self.entries = entries
        self.id_member = id_member
        self.children = children

    def walk(self, path: str) -> Iterator[tuple[str, str | None, Record | None]]:
        """Depth first: dotted path, id and value (None where there is none) of every entry."""
        yield from self._walk(self.entries, path, None)

    def _walk(
        self, entries: list[Any], path: str, parent: str | None
    ) -> Iterator[tuple[str, str | None, Record | None]]:
        for index, entry in enumerate(entries):
            here = f"{path}.{index}"
            id = self._id(entry)
            yield here, id, self._value(entry, parent)
            if self.children is not None and isinstance(entry, dict):
                below = entry.get(self.children)
                if isinstance(below, list):
                    yield from self._walk(below, f"{here}.{self.children}", id)

    def _id(self, entry: Any) -> str | None:
        id = entry.get(self.id_member) if isinstance(entry, dict) else None
        return id if isinstance(id, str) else None

    def _value(self, entry: Any, parent: str | None) -> Record | None:
        if not isinstance(entry, dict):
            return None
        if self.children is None:
            return dict(entry)
        value = {name: member for name, member in entry.items() if name not in (self.children, PARENT)}
        return value if parent is None else {**value, PARENT: parent}

    def change(self, old: Mapping[str, Record], changes: Mapping[str, Record | None]) -> None:
        """Raises: ValidationFailed for a parent that is not there or is below the entry itself."""
        for id, value in changes.items():
            if value is None:
                self._delete(self.entries, id)
            elif id in old:
                self._update(id, old[id], value)
            else:
                self._home(id, value).append(self._node(value))

    def give_id(self, old: str, new: str) -> bool:
        found = self._find(self.entries, old)
        if found is not None:
            siblings, index = found
            siblings[index] = {**siblings[index], self.id_member: new}
        return found is not None

    def arrange(self, parent: str | None, ids: Sequence[str]) -> None:
        """Put the entries of a level in this order; those that are not named, and what is no entry, behind them."""
        level = self.entries if parent is None else self._home("", {PARENT: parent})
        place = {id: at for at, id in enumerate(ids)}
        level.sort(key=lambda entry: place.get(self._id(entry) or "", len(place)))

    def _node(self, value: Record) -> Record:
        return {name: member for name, member in value.items() if self.children is None or name != PARENT}

    def _update(self, id: str, old: Record, new: Record) -> None:
        found = self._find(self.entries, id)
        if found is None:  # deleted with its parent in the same change
            self._home(id, new).append(self._node(new))
            return
        siblings, index = found
        node = files.graft(siblings[index], self._node(old), self._node(new))
        siblings[index] = node
        if self.children is not None and old.get(PARENT) != new.get(PARENT):
            del siblings[index]
            self._home(id, new).append(node)

    def _home(self, id: str, value: Record) -> list[Any]:
        """The list a new or moved entry is appended to."""
        parent = value.get(PARENT) if self.children is not None else None
        if parent is None or self.children is None:
            return self.entries
        found = None if parent == id else self._find(self.entries, parent)
        if found is None:
            issue = Issue(path=PARENT, message=f"there is no {parent!r} it could be in", code="parent-unknown")
            raise ValidationFailed((issue,))
        siblings, index = found
        below = siblings[index].setdefault(self.children, [])
        if not isinstance(below, list):
            raise ValidationFailed((Issue(path=PARENT, message=f"{parent!r} can hold nothing", code="schema"),))
        return below

    def _find(self, entries: list[Any], id: str) -> tuple[list[Any], int] | None:
        for index, entry in enumerate(entries):
            if self._id(entry) == id:
                return entries, index
            below = entry.get(self.children) if self.children is not None and isinstance(entry, dict) else None
            if isinstance(below, list) and (found := self._find(below, id)) is not None:
                return found
        return None

    def _delete(self, entries: list[Any], id: str) -> None:
        """Every entry of that id, with what is below it."""
        entries[:] = [entry for entry in entries if self._id(entry) != id]
        for entry in entries:
            below = entry.get(self.children) if self.children is not None and isinstance(entry, dict) else None
            if isinstance(below, list):
                self._delete(below, id)
                if not below:
                    del entry[self.children]
