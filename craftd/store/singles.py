"""Records that are JSON files of their own at places known beforehand: each holds one object, and may be missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from craftd.errors import Corrupt, Issue, NotFound, Ref
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record
from craftd.store import atomic, confine, files
from craftd.store.atomic import DirectoryNotFlushed, Fingerprint
from craftd.store.files import Document, JsonForm, Problem


@frozen(kw_only=True)
class Singles:
    """Shelf of a noun with one file per record.

    fixed: id -> file. rooms: prefix of ids -> (folder, file): that file in every folder of the folder.
    check(value, id): what is wrong with a value, `Noun.validate` and what its place says.
    absent: id -> what is served while there is no file; without an entry, `{}`. The first change writes it.
    """

    noun: Noun
    fixed: Mapping[str, str] = field(factory=dict)
    rooms: Mapping[str, tuple[str, str]] = field(factory=dict)
    check: Callable[[Any, str], Iterator[Issue]]
    absent: Mapping[str, Record] = field(factory=dict)
    form: JsonForm = field(factory=lambda: JsonForm(newline=True))

    def keys(self, root: Path) -> list[str]:
        found = list(self.fixed.values())
        for folder, file in self.rooms.values():
            found += [f"{folder}/{name}/{file}" for name, _ in files.visible_folders(root, folder)]
        return sorted(found)

    def key_of(self, path: str) -> str | None:
        """A folder of a room counts as its file: with the folder the record comes and goes."""
        if path in self.fixed.values():
            return path
        for folder, file in self.rooms.values():
            first, _, rest = path.partition("/")
            name, _, inner = rest.partition("/")
            if first == folder and name and not name.startswith(".") and inner in ("", file):
                return f"{folder}/{name}/{file}"
        return None

    def key_for(self, id: str, value: Record) -> str:
        """Raises: NotFound for an id that has no place here."""
        if id in self.fixed:
            return self.fixed[id]
        for prefix, (folder, file) in self.rooms.items():
            if id.startswith(prefix):
                return f"{folder}/{id.removeprefix(prefix)}/{file}"
        raise NotFound(Ref(self.noun.name, id))

    def load(self, root: Path, key: str) -> Document | None:
        id = self._id(key)
        if id not in self.fixed and not (root / key).parent.is_dir():
            return None
        try:
            found = files.read(root / key)
        except files.Unreadable as error:
            problem = Problem(message=error.message, code="unreadable")
            document = self._unusable(key, None, atomic.glance(root / key), problem)
        else:
            document = self._document(key, *(found or (None, None)))
        return evolve(document, linked=(root / key).parent.is_symlink())

    def save(
        self, root: Path, key: str, document: Document | None, changes: Mapping[str, Record | None], facts: Facts
    ) -> Document | None:
        [(id, new)] = changes.items()
        if document is None or new is None:  # its folder is gone
            raise NotFound(Ref(self.noun.name, id))
        if not document.sound:
            raise Corrupt(f"{key} cannot be used as it is", (root / key).as_uri(), Ref(self.noun.name, id))
        confine.check_writable(root, root / key)
        data = document.content[key]
        stored = self.absent.get(id, {}) if data is None else self.form.parse(data).value
        target = files.graft(stored, document.records[id], new)
        if data is not None and files.same(stored, target):
            return document
        changed = self.form.format(target, data)
        if id in self.fixed:
            files.make_folders((root / key).parent, root)
        try:
            print = atomic.replace(root / key, changed, expect=document.prints[key])
        except DirectoryNotFlushed as error:
            error.result = self._document(key, changed, error.result)
            raise
        return self._document(key, changed, print)

    def _id(self, key: str) -> str:
        for id, file in self.fixed.items():
            if key == file:
                return id
        folder, name, _ = key.split("/")
        return next(prefix for prefix, room in self.rooms.items() if room[0] == folder) + name

    def _document(self, key: str, data: bytes | None, print: Fingerprint | None) -> Document:
        id = self._id(key)
        if data is None:
            value = dict(self.absent.get(id, {}))
            return Document(key=key, records={id: value}, prints={key: print}, content={key: None})
        parsed = self.form.parse(data)
        if parsed.problems:
            return self._unusable(key, data, print, *parsed.problems)
        found = [evolve(issue, id=id) for issue in self.check(parsed.value, id)]
        issues = files.in_file(key, self.noun.name, self.form, data, found)
        return Document(key=key, records={id: parsed.value}, prints={key: print}, issues=issues, content={key: data})

    def _unusable(self, key: str, data: bytes | None, print: Fingerprint | None, *problems: Problem) -> Document:
        id = self._id(key)
        return Document(
            key=key,
            records={id: {}},
            prints={key: print},
            issues=tuple(problem.issue(key, self.noun.name, id) for problem in problems),
            sound=False,
            content={key: data},
        )
