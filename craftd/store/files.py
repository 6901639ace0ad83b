"""Small files that hold records: what a document is, what every shelf can do, and JSON files.

A shelf knows where the records of one noun lie and how to change them there; `layout.py` lists all shelves. A document
is the unit that is read, compared and replaced together: one file with many records, or one folder with one record.
Damage is an `Issue` with file and line, never an exception: one bad file must not hide its neighbours.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from attrs import define, evolve, field, frozen

from craftd.errors import Issue
from craftd.model import json_places, json_text, portable
from craftd.model.json_places import Range
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record
from craftd.store import atomic, disk
from craftd.store.atomic import Fingerprint

LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a configuration file, guide or skill that are read; a larger one is a mistake, and would stop the daemon."""

MOST_ISSUES: Final = 100
"""Of one file; who has more begins with these, and a file made to have a million of them holds nobody up."""

HALF_WRITTEN: Final = frozenset({"not-json", "not-yaml", "not-utf8"})
"""Codes of what a file shows while somebody is about to write it."""

BOM: Final = b"\xef\xbb\xbf"


@frozen(kw_only=True)
class Document:
    """Records that are read and replaced together, and the files they were read from.

    key: path of the file or folder, relative to the workspace ("labels/config.json", "projects/atlas").
    records: complete values by id, paths expanded, in file order; what could be read of a damaged one.
    prints: relative path of every file it depends on; None = was not there.
    issues: path relative to the workspace, `range` with the line where it is known.
    sound: False = cannot be parsed or breaks what must hold; last good records stay good, and nothing may be saved.
    linked: the folder is a link: read, never written; deleting it deletes the link.
    content: what saving needs of the file, bytes by relative path.
    """

    key: str
    records: dict[str, Record] = field(factory=dict)
    prints: dict[str, Fingerprint | None] = field(factory=dict)
    issues: tuple[Issue, ...] = ()
    sound: bool = True
    linked: bool = False
    content: Mapping[str, bytes | None] = field(factory=dict, eq=False, repr=False)


class Shelf(Protocol):
    """Where the records of one noun lie. Paths and keys are relative to the workspace, with slashes."""

    @property
    def noun(self) -> Noun: ...

    def keys(self, root: Path) -> list[str]:
        """All documents there can be now, sorted; some of them may turn out to be nothing when loaded."""
        ...

    def key_of(self, path: str) -> str | None:
        """The document that a changed file or folder belongs to, if any."""
        ...

    def key_for(self, id: str, value: Record) -> str:
        """Where a new record goes. Raises: InvalidParams for a name that is none."""
        ...

    def load(self, root: Path, key: str) -> Document | None:
        """Read a document; None = there is no such record. Never raises for what is on the disk."""
        ...

    def save(
        self, root: Path, key: str, document: Document | None, changes: Mapping[str, Record | None], facts: Facts
    ) -> Document | None:
        """Make *changes* (None = delete) durable and answer what `load` would now.

        *document* is the one the changes were computed on (None: there was nothing). Only members that differ are
        touched. Raises: ForeignWrite (the files are not the ones *document* was read from; nothing was done), OSError,
        DirectoryNotFlushed (the document is its result), ValidationFailed; Corrupt and Forbidden for documents that are
        not sound or are linked.
        """
        ...


@frozen(kw_only=True)
class Problem:
    """Something wrong in one file; line: 1-based, None = unknown. range: where it is known more exactly."""

    message: str
    code: str
    line: int | None = None
    range: Range | None = None
    severity: str = "error"

    def issue(self, path: str, noun: str, id: str | None = None) -> Issue:
        return Issue(
            path=path,
            message=self.message,
            code=self.code,
            severity=self.severity,
            range=self.range if self.range is not None or self.line is None else whole_line(self.line),
            noun=noun,
            id=id,
        )


@frozen(kw_only=True)
class Parsed:
    """What a file says. sound: False = it cannot be edited without losing something."""

    value: Any
    problems: tuple[Problem, ...] = ()
    sound: bool = True


class Form(Protocol):
    """How one file holds one value. Pure: bytes in, bytes out."""

    def parse(self, data: bytes) -> Parsed:
        """Never raises; the value is `{}` where nothing can be read."""
        ...

    def format(self, value: Any, data: bytes | None) -> bytes:
        """*data* (None: a new file) changed so that it parses to *value*; the rest stays byte for byte.

        Raises: ValidationFailed for a value that the form cannot hold.
        """
        ...

    def ranges_of(self, data: bytes, paths: Collection[str]) -> Mapping[str, Range | None]:
        """Where the members at the dotted *paths* stand, or their nearest parents that are there."""
        ...


@frozen(kw_only=True)
class JsonForm:
    """A JSON file that holds an object, in the app's form: two spaces, no byte order mark.

    newline: whether a new file ends with LF; an old one ends as it did.
    """

    newline: bool = False

    def parse(self, data: bytes) -> Parsed:
        try:
            value = json_text.loads(data.removeprefix(BOM))
        except ValueError as error:
            return Parsed(value={}, problems=(_not_json(data, error),), sound=False)
        if not isinstance(value, dict):
            problem = Problem(message="the file must hold an object", code="schema", line=1)
            return Parsed(value={}, problems=(problem,), sound=False)
        return Parsed(value=value)

    def format(self, value: Any, data: bytes | None) -> bytes:
        newline = self.newline if data is None else data.endswith(b"\n")
        return json_text.dumps_indented(value, newline=newline)

    def ranges_of(self, data: bytes, paths: Collection[str]) -> Mapping[str, Range | None]:
        return json_places.ranges_of(data.removeprefix(BOM).decode(), paths)


def in_file(
    file: str, noun: str, form: Form, data: bytes, found: Sequence[Issue], elsewhere: Collection[str] = ()
) -> tuple[Issue, ...]:
    """*found*, whose paths are dotted places in what *data* holds, as issues of the file, with their ranges.

    elsewhere: paths that stand in no place of this file.
    """
    shown = found[:MOST_ISSUES]
    ranges = form.ranges_of(data, {issue.path for issue in shown} - set(elsewhere)) if shown else {}
    return tuple(
        evolve(
            issue,
            path=file,
            message=at(issue.path, issue.message),
            code=issue.code or "schema",
            range=ranges.get(issue.path),
            noun=noun,
        )
        for issue in shown
    )


def at(path: str, message: str) -> str:
    """How a message says its place in the file."""
    if not path:
        return message
    shown = path if len(path) <= 200 else f"{path[:199]}\N{HORIZONTAL ELLIPSIS}"
    return f"{shown}: {message}"


def _not_json(data: bytes, error: ValueError) -> Problem:
    reason, text, offset = str(error), "", 0
    if isinstance(error, UnicodeDecodeError):
        reason, text = "not UTF-8", error.object[: error.start].decode()
        offset = len(text)
    elif isinstance(error, json.JSONDecodeError):
        reason, text, offset = error.msg, error.doc, error.pos
    end = offset + (text[offset : offset + 1] not in ("", "\n"))
    range = json_places.range_between(text, offset, end)
    return Problem(message=f"no JSON: {reason}", code="not-json", range=range)


def graft(stored: Any, old: Any, new: Any) -> Any:
    """*stored* with the difference between *old* and *new*: equal members and those that neither has stay as stored."""
    if not (isinstance(stored, dict) and isinstance(old, dict) and isinstance(new, dict)):
        return stored if same(old, new) else new
    result: Record = {}
    for name, member in stored.items():
        if name in new:
            result[name] = graft(member, old[name], new[name]) if name in old else new[name]
        elif name not in old:
            result[name] = member
    return result | {name: member for name, member in new.items() if name not in stored}


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is 1.0 and not true, the order of keys is no matter."""
    return one is other or json_text.canonical(one) == json_text.canonical(other)


@define
class Unreadable(Exception):
    """A file is there but cannot be read; the message is for people."""

    message: str


def read(path: Path) -> tuple[bytes, Fingerprint] | None:
    """Content and fingerprint; None where there is no file. Raises: Unreadable."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("is no regular file")
        if status.st_size > LARGEST:
            raise Unreadable(f"is larger than {LARGEST} bytes")
        return atomic.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error
    except atomic.ForeignWrite as error:
        raise Unreadable("changes while it is read") from error


def require_unchanged(root: Path, prints: Mapping[str, Fingerprint | None]) -> None:
    """Raises: ForeignWrite when a file is not the one it was."""
    for name, known in prints.items():
        if atomic.glance(root / name) != known:
            raise atomic.ForeignWrite(root / name)


def make_folders(path: Path, root: Path) -> None:
    """Make *path* and its missing parents below *root*, durably. The root is never made: it may be an absent disk."""
    missing: list[Path] = []
    while path != root and not path.is_dir():
        missing.append(path)
        path = path.parent
    if not root.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(root))
    for folder in reversed(missing):
        try:
            disk.make_directory(folder)
        except FileExistsError:
            continue
        disk.flush_directory(folder.parent)


def visible_folders(root: Path, folder: str) -> Iterator[tuple[str, bool]]:
    """Names of the folders in *folder*, sorted, and whether each is a link; dot names are never records."""
    try:
        entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if not entry.name.startswith(".") and _is_folder(entry):
            yield entry.name, entry.is_symlink()


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads in a circle
        return False


def expanded(value: Record, paths: tuple[tuple[str, ...], ...], root: Path) -> Record:
    """*value* with the home folder written out at *paths*; relative ones start at the workspace, not at the process."""
    return _at_paths(value, paths, lambda path: portable.expand_home(path, home(), str(root)))


def contracted(value: Record, paths: tuple[tuple[str, ...], ...]) -> Record:
    return _at_paths(value, paths, lambda path: portable.contract_home(path, home()))


def _at_paths(value: Record, paths: tuple[tuple[str, ...], ...], change: Any) -> Record:
    for first, *rest in paths:
        member = value.get(first)
        if rest and isinstance(member, dict):
            value = {**value, first: _at_paths(member, (tuple(rest),), change)}
        elif not rest and isinstance(member, str):
            value = {**value, first: change(member)}
    return value


def home() -> str:
    """The home folder as the app sees it: `$HOME`, else what the system's user list says."""
    return os.path.expanduser("~")


def encoded(text: str) -> bytes:
    """UTF-8, half surrogate pairs as U+FFFD: the app's own writer does the same."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def whole_line(line: int) -> dict[str, Any]:
    """LSP range of a 1-based line; an end beyond the line means its end (LSP 3.17, Position)."""
    return {"start": {"line": line - 1, "character": 0}, "end": {"line": line, "character": 0}}
