"""Files that are looked at and hold no records (yet): what is wrong with each kind of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from attrs import evolve, frozen

from craftd.errors import Issue, NotFound, Ref
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record
from craftd.store import atomic, conflicts, files
from craftd.store.atomic import Fingerprint
from craftd.store.files import Document, JsonForm, Problem

ISSUES = "issues/"
"""What keys begin with: the same file may be the document of a noun as well."""

Check: TypeAlias = Callable[[bytes, Mapping[str, Any]], Iterable[Issue]]

NO_RECORDS = Noun(name="issues", verbs=frozenset(), id_member=None)

_JSON = JsonForm()


@frozen(kw_only=True)
class Kind:
    """One kind of file. noun: of its issues. pattern: where, relative to the scope; `*` is a folder of any name.

    check(data, beside): issues of the content, with `path` in it and `range`; must not raise. beside: files that it
    also depends on, as parsed JSON where there is such.
    """

    noun: str
    pattern: str
    check: Check
    beside: tuple[str, ...] = ()

    def fits(self, path: str) -> bool:
        """Folders whose name begins with a dot hold nothing that counts."""
        return re.fullmatch(re.escape(self.pattern).replace(r"\*", r"[^/.][^/]*"), path) is not None

    def paths(self, root: Path) -> list[str]:
        """Files of this kind that may be there."""
        folder, star, rest = self.pattern.partition("/*/")
        if not star:
            return [self.pattern]
        return [f"{folder}/{name}/{rest}" for name, _ in files.visible_folders(root, folder)]


def json(check: Callable[..., Iterable[Issue]], *, bom: bool = True) -> Check:
    """A file of JSON whose value *check* judges, and with it, where it takes them, the files beside.

    bom: whether the app reads a file that begins with a byte order mark.
    """

    def judge(data: bytes, beside: Mapping[str, Any]) -> Iterable[Issue]:
        if not bom and data.startswith(files.BOM):
            message = "begins with a byte order mark, which the app does not read here"
            return [Issue(path="", message=message, code="not-json", range=files.whole_line(1))]
        parsed = _JSON.parse(data)
        if not parsed.sound:
            return [problem.issue("", "") for problem in parsed.problems]
        found = list(check(parsed.value, beside) if beside else check(parsed.value))[: files.MOST_ISSUES]
        ranges = _JSON.ranges_of(data, {issue.path for issue in found})
        return [evolve(issue, range=ranges[issue.path]) for issue in found]

    return judge


@frozen(kw_only=True)
class Checked:
    """Shelf of documents without records: one for each file of *kinds* that is there, and for conflict copies.

    copies: whether these are looked for.
    """

    kinds: tuple[Kind, ...]
    noun: Noun = NO_RECORDS
    copies: bool = False

    def keys(self, root: Path) -> list[str]:
        paths = (path for kind in self.kinds for path in kind.paths(root))
        there = [path for path in paths if os.path.lexists(root / path)]
        return sorted(ISSUES + path for path in {*there, *(conflicts.in_records(root) if self.copies else ())})

    def key_of(self, path: str) -> str | None:
        """The document that depends on a file; on one that others have beside them, the first of those."""
        return next((key for key in self.keys_of(path)), None)

    def keys_of(self, path: str) -> set[str]:
        """All documents that depend on a file, or on what lies in a folder."""
        found = {ISSUES + path for kind in self.kinds if kind.fits(path)}
        if self.copies and conflicts.counts(path):
            found.add(ISSUES + path)
        for kind in self.kinds:
            if any(file == path or file.startswith(f"{path}/") for file in kind.beside):
                found.add(ISSUES + kind.pattern)
        for kind in self.kinds:
            inside = f"{path}/{kind.pattern.rpartition('/')[2]}"
            if kind.fits(inside):
                found.add(ISSUES + inside)
        return found

    def key_for(self, id: str, value: Record) -> str:
        raise NotFound(Ref(self.noun.name, id))

    def load(self, root: Path, key: str) -> Document | None:
        path = key.removeprefix(ISSUES)
        if self.copies and (copy := conflicts.at(root, path)) is not None:
            prints = {one: atomic.glance(root / one) for one in (path, copy.original)}
            return Document(key=key, prints=prints, issues=(copy.issue,))
        kind = next((kind for kind in self.kinds if kind.fits(path)), None)
        if kind is None:
            return None
        beside, prints = self._beside(root, kind)
        try:
            found = files.read(root / path)
        except files.Unreadable as error:
            issue = Problem(message=error.message, code="unreadable").issue(path, kind.noun)
            return Document(key=key, prints={path: atomic.glance(root / path), **prints}, issues=(issue,), sound=False)
        if found is None:
            return None
        data, print = found
        issues = tuple(_in_file(kind, path, data, beside))
        sound = not any(issue.code in files.HALF_WRITTEN for issue in issues)
        return Document(key=key, prints={path: print, **prints}, issues=issues, sound=sound)

    def check(self, noun: str, path: str, data: bytes, root: Path) -> list[Issue]:
        """What `load` would report of the file *path* if it held *data*. path: of a file of *noun* below *root*, or the
        name alone of one that is nowhere yet."""
        kind = next(kind for kind in self.kinds if kind.noun == noun)
        return _in_file(kind, path, data, self._beside(root, kind)[0])

    def _beside(self, root: Path, kind: Kind) -> tuple[dict[str, Any], dict[str, Fingerprint | None]]:
        values: dict[str, Any] = {}
        prints: dict[str, Fingerprint | None] = {}
        for path in kind.beside:
            try:
                found = files.read(root / path)
            except files.Unreadable:
                prints[path], found = atomic.glance(root / path), None
            else:
                prints[path] = None if found is None else found[1]
            values[path] = None if found is None else _JSON.parse(found[0]).value
        return values, prints

    def save(
        self, root: Path, key: str, document: Document | None, changes: Mapping[str, Record | None], facts: Facts
    ) -> Document | None:
        raise NotFound(Ref(self.noun.name, key))


def _in_file(kind: Kind, path: str, data: bytes, beside: Mapping[str, Any]) -> list[Issue]:
    return [
        evolve(
            issue, path=path, message=files.at(issue.path, issue.message), code=issue.code or "schema", noun=kind.noun
        )
        for issue in kind.check(data, beside)
    ][: files.MOST_ISSUES]
