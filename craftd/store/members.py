"""Records that are the members of one object in a JSON file, by their ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from craftd.errors import Corrupt, Issue, Ref, TooLarge
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record
from craftd.store import atomic, confine, files
from craftd.store.atomic import DirectoryNotFlushed, Fingerprint
from craftd.store.files import LARGEST, Document, JsonForm, Problem


@frozen(kw_only=True)
class Members:
    """Shelf of a noun whose records are what *member* of *file* holds.

    stamp: the key of the file that says when it was written, ms. usable(entry): whether it is a record; what is none
    is kept as it is. check(file): what is wrong with the whole. While there is no file there is no record.
    """

    noun: Noun
    file: str
    member: str
    stamp: str
    usable: Callable[[Any], bool]
    check: Callable[[Any], Iterator[Issue]]
    form: JsonForm = field(factory=JsonForm)

    def keys(self, root: Path) -> list[str]:
        return [self.file]

    def key_of(self, path: str) -> str | None:
        return self.file if path == self.file else None

    def key_for(self, id: str, value: Record) -> str:
        return self.file

    def load(self, root: Path, key: str) -> Document | None:
        try:
            found = files.read(root / self.file)
        except files.Unreadable as error:
            problem = Problem(message=error.message, code="unreadable")
            return self._unusable(None, atomic.glance(root / self.file), problem)
        return self._document(*(found or (None, None)))

    def save(
        self, root: Path, key: str, document: Document | None, changes: Mapping[str, Record | None], facts: Facts
    ) -> Document | None:
        assert document is not None
        ref = Ref(self.noun.name, next(iter(changes)))
        if not document.sound:
            raise Corrupt(f"{self.file} cannot be used as it is", (root / self.file).as_uri(), ref)
        confine.check_writable(root, root / self.file)
        data = document.content[self.file]
        stored = {self.member: {}} if data is None else self.form.parse(data).value
        entries = dict(stored[self.member])
        for id, value in changes.items():
            if value is None:
                entries.pop(id, None)
            else:
                entries[id] = value
        changed = self.form.format({**stored, self.member: entries, self.stamp: facts.now}, data)
        if len(changed) > LARGEST:
            raise TooLarge(f"{self.file} with {ref}", LARGEST, len(changed))
        try:
            print = atomic.replace(root / self.file, changed, expect=document.prints[self.file])
        except DirectoryNotFlushed as error:
            error.result = self._document(changed, error.result)
            raise
        return self._document(changed, print)

    def _document(self, data: bytes | None, print: Fingerprint | None) -> Document:
        if data is None:
            return Document(key=self.file, prints={self.file: print}, content={self.file: None})
        parsed = self.form.parse(data)
        if parsed.problems:
            return self._unusable(data, print, *parsed.problems)
        issues = files.in_file(self.file, self.noun.name, self.form, data, list(self.check(parsed.value)))
        entries = parsed.value.get(self.member)
        known = entries if isinstance(entries, dict) else {}
        return Document(
            key=self.file,
            records={id: entry for id, entry in known.items() if self.usable(entry)},
            prints={self.file: print},
            issues=issues,
            sound=isinstance(entries, dict),
            content={self.file: data},
        )

    def _unusable(self, data: bytes | None, print: Fingerprint | None, *problems: Problem) -> Document:
        return Document(
            key=self.file,
            prints={self.file: print},
            issues=tuple(problem.issue(self.file, self.noun.name) for problem in problems),
            sound=False,
            content={self.file: data},
        )
