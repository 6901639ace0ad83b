"""A session bundle in a file: judged whole, then turned into a folder beside the place where it is going.

Of the bundle, one message, or a piece of one file, is in memory at a time. Nothing is written before `stage`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from attrs import define, evolve, field, frozen

from craftd.errors import Issue
from craftd.model import bundles, json_text, session_bundles
from craftd.model.messages import Counters
from craftd.model.portable import dump_line, parse_line, retarget
from craftd.model.records import Record
from craftd.model.session_bundles import Arriving, Origin
from craftd.store import atomic
from craftd.store.json_stream import Bytes, Cursor, Malformed, Text, decoded

MOST_ISSUES: Final = 100
AT_ONCE: Final = 256
COUNTED_BYTES: Final = 1 << 20
"""Messages that wait to be counted, and about how many bytes of them."""
MOST_SESSIONS: Final = 10_000
"""Messages that are counted together."""
HEADER_BYTES: Final = 4 << 20


@frozen
class Packed:
    """A file in a bundle."""

    path: str
    size: int
    text: Text


@frozen(kw_only=True)
class PackedSession:
    """A session in a bundle, which was judged. id: as the bundle says. left_out: messages that are no objects."""

    content: Bytes
    id: str
    header: bytes
    messages: int
    origin: str | None
    counters: Counters
    first_user: bytes | None
    files: tuple[Packed, ...]
    branch: Record | None
    left_out: int

    @property
    def parent(self) -> str | None:
        parent = _loaded(self.header).get("parentSessionId")
        return parent if isinstance(parent, str) else None

    def arriving(self, directory: str) -> Arriving:
        """What the header of a session in *directory* follows from."""
        counters = evolve(self.counters, directory=directory)
        if self.first_user is not None:
            record = self._record(self.first_user, directory)
            first = Counters(directory=directory).extend(() if record is None else (record,))
            counters = evolve(counters, preview=first.preview)
        return Arriving(self.header, self.origin, counters, self.branch)

    def stage(self, folder: Path, header_line: bytes) -> Path:
        """The session's folder, complete beside *folder*; for `atomic.put_folder`. Raises: OSError, ValueError."""
        contents: dict[str, atomic.Content] = {
            "session.jsonl": partial(self._transcript, str(folder), header_line),
            **{file.path: partial(decoded, self.content, file.text) for file in self.files},
        }
        return atomic.stage_folder(folder, contents, session_bundles.FOLDERS)

    def _transcript(self, directory: str, header_line: bytes) -> Iterator[bytes]:
        yield header_line + b"\n"
        cursor = Cursor(self.content, self.messages)
        for _ in cursor.items():
            if (record := self._record(cursor.raw(), directory)) is not None:
                yield dump_line(record, directory) + b"\n"

    def _record(self, raw: bytes, directory: str) -> Record | None:
        record = parse_line(raw if self.origin is None else retarget(raw, self.origin, directory), directory)
        return record if isinstance(record, dict) else None


@frozen(kw_only=True)
class Contents:
    """What came. rest: all but the sessions, where it is a bundle of resources. transfer: the app's remote transfer."""

    sessions: tuple[PackedSession, ...] = ()
    rest: Any = None
    transfer: Record | None = None


def read(content: Bytes) -> tuple[Contents, list[Issue]]:
    """What *content* holds, and what is wrong with it: then nothing of it may be used. Raises: OSError."""
    issues: list[Issue] = []
    try:
        cursor = Cursor(content)
        if cursor.peek() != b"{":
            found = Contents(rest=cursor.value(bundles.LARGEST))
        else:
            found = _contents(cursor, content, issues)
        cursor.end()
    except Malformed as error:
        return Contents(), [Issue(path="", message=f"is no JSON: {error}", code="not-json")]
    return found, issues[:MOST_ISSUES]


def _contents(cursor: Cursor, content: Bytes, issues: list[Issue]) -> Contents:
    session = _Session(content, "", issues)
    packed: list[_Session] = []
    members: Record = {}
    for name in cursor.members():
        if name == "resources" and cursor.peek() == b"{":
            members[name] = {}
            for noun in cursor.members():
                if noun == "sessions" and cursor.peek() == b"[":
                    packed = list(_entries(cursor, content, issues))
                else:
                    members[name][noun] = cursor.value(bundles.LARGEST)
        elif name in ("session", "files", "branchInfo"):
            session.take(name, cursor)
        else:
            members[name] = cursor.value(bundles.LARGEST)
    if session_bundles.is_transfer(members):
        return Contents(transfer=members)
    if session.begun:
        session.version = members.get("version")
        return Contents(sessions=_judged([session]))
    return Contents(sessions=_judged(packed), rest=members)


def _entries(cursor: Cursor, content: Bytes, issues: list[Issue]) -> Iterator[_Session]:
    for at in cursor.items():
        if at == MOST_SESSIONS:
            issues[MOST_ISSUES - 1 :] = []
            message = f"has more than {MOST_SESSIONS} sessions"
            issues.append(Issue(path="resources.sessions", message=message, code="too-many-sessions"))
        if at >= MOST_SESSIONS:
            cursor.skip()
        else:
            yield _entry(cursor, content, f"resources.sessions.{at}.", issues)


def _entry(cursor: Cursor, content: Bytes, place: str, issues: list[Issue]) -> _Session:
    session = _Session(content, place, issues)
    if cursor.peek() != b"{":
        session.wrong("", "must be an object")
        cursor.skip()
        session.broken = True
        return session
    for name in cursor.members():
        session.take(name, cursor)
    return session


def _judged(sessions: list[_Session]) -> tuple[PackedSession, ...]:
    seen: set[str] = set()
    found = []
    for one in sessions:
        packed = one.packed()
        if packed is not None:
            if packed.id in seen:
                one.wrong("session.header.id", f"{packed.id} is there twice", "duplicate-id")
            seen.add(packed.id)
            found.append(packed)
    return tuple(found)


@define(eq=False)
class _Session:
    """Gathers what a bundle says of one session, member by member."""

    content: Bytes
    place: str
    issues: list[Issue]
    version: Any = None
    begun: bool = False
    broken: bool = False
    _header: bytes | None = None
    _origin: Origin | None = None
    _messages: int | None = None
    _walked: bool = False
    _counters: Counters = field(factory=Counters)
    _first_user: bytes | None = None
    _left_out: int = 0
    _files: list[Packed] | None = None
    _branch: Any = None

    def wrong(self, path: str, message: str, code: str = "schema") -> None:
        if len(self.issues) < MOST_ISSUES:
            self.issues.append(Issue(path=f"{self.place}{path}".rstrip("."), message=message, code=code))

    def take(self, name: str, cursor: Cursor) -> None:
        match name:
            case "version":
                self.version = cursor.value()
            case "session" if not self.begun and cursor.peek() == b"{":
                self.begun = True
                for member in cursor.members():
                    self._take_session(member, cursor)
            case "files" if self._files is None and cursor.peek() == b"[":
                self._files = []
                self._take_files(cursor, self._files)
            case "branchInfo":
                self._branch = cursor.value(HEADER_BYTES)
            case "session" | "files":
                self.begun = True
                twice = (name == "session" and self._messages is not None) or (name == "files" and self._files)
                kind = "an object" if name == "session" else "a list"
                self.wrong(name, "is there twice" if twice else f"must be {kind}")
                self.broken = True
                cursor.skip()
            case _:
                cursor.skip()

    def _take_session(self, name: str, cursor: Cursor) -> None:
        if name == "header" and cursor.peek() == b"{" and self._header is None:
            self._header = cursor.raw(HEADER_BYTES)
            header = _loaded(self._header)
            self._origin = Origin(header)
            for path, message in session_bundles.wrong_header(header):
                self.wrong(f"session.header.{path}".rstrip("."), message)
        elif name == "messages" and cursor.peek() == b"[" and self._messages is None:
            self._messages = cursor.offset
            if self._origin is None:
                cursor.skip()  # walked through when it is known where they come from
            else:
                self._walk(cursor)
        else:
            if name in ("header", "messages"):
                self.wrong(f"session.{name}", f"must be {'an object' if name == 'header' else 'a list'}")
                self.broken = True
            cursor.skip()

    def _walk(self, cursor: Cursor) -> None:
        """Look at every message."""
        assert self._origin is not None
        self._walked = True
        held: list[Record] = []
        size = 0
        for _ in cursor.items():
            raw = cursor.raw()
            record = _loaded(raw)
            if not isinstance(record, dict):
                self._left_out += 1
                continue
            self._origin.look(raw)
            if self._first_user is None and record.get("type") == "user":
                self._first_user = raw
            held.append(record)
            size += len(raw)
            if len(held) == AT_ONCE or size > COUNTED_BYTES:
                self._counters, size = self._counters.extend(held), 0
                held.clear()
        self._counters = self._counters.extend(held) if held else self._counters

    def _take_files(self, cursor: Cursor, files: list[Packed]) -> None:
        taken: set[str] = set()
        folders = set(session_bundles.FOLDERS)
        total = 0
        for index in cursor.items():
            place = f"files.{index}"
            if len(taken) > session_bundles.MOST_FILES:
                cursor.skip()
                continue
            if cursor.peek() != b"{":
                self.wrong(place, "must be an object")
                cursor.skip()
                continue
            path, size, text = self._take_file(cursor, place)
            why = session_bundles.wrong_file(path)
            if why is not None:
                self.wrong(f"{place}.relativePath", why, "bad-path")
                continue
            above = {path[:at] for at, char in enumerate(path) if char == "/"}
            if path in taken or path in folders or above & taken:
                self.wrong(f"{place}.relativePath", f"{path} is there twice", "duplicate-file")
                continue
            taken.add(path)
            folders |= above
            total += size
            if text is not None:
                files.append(Packed(path, size, text))
        if len(taken) > session_bundles.MOST_FILES:
            self.wrong("files", f"are more than {session_bundles.MOST_FILES}", "too-many-files")
        if total > session_bundles.FILES_BYTES:
            self.wrong("files", f"have more than {session_bundles.FILES_BYTES} bytes", "too-large")

    def _take_file(self, cursor: Cursor, place: str) -> tuple[Any, int, Text | None]:
        members: Record = {}
        text: Text | None = None
        for name in cursor.members():
            if name == "contentBase64" and cursor.peek() == b'"':
                text = cursor.text()
            else:
                members[name] = cursor.value(HEADER_BYTES)
        if text is None:
            self.wrong(f"{place}.contentBase64", "is no base64", "bad-base64")
            return members.get("relativePath"), 0, None
        try:
            size = sum(map(len, decoded(self.content, text)))
        except ValueError as error:
            self.wrong(f"{place}.contentBase64", str(error), "bad-base64")
            return members.get("relativePath"), 0, None
        told = members.get("size")
        if isinstance(told, bool) or told != size:
            self.wrong(f"{place}.size", f"is not {size}, which the content has", "bad-size")
        return members.get("relativePath"), size, text

    def packed(self) -> PackedSession | None:
        """The whole, once everything was taken; None where too much is wrong."""
        if self.broken:
            return None
        if isinstance(self.version, bool) or self.version != session_bundles.VERSION:
            self.wrong("version", f"must be {session_bundles.VERSION}")
        if self._header is None or self._origin is None:
            self.wrong("session.header", "must be an object")
        if self._messages is None:
            self.wrong("session.messages", "must be a list")
        if self._files is None:
            self.wrong("files", "must be a list")
        if self._header is None or self._origin is None or self._messages is None or self._files is None:
            return None
        if not self._walked:
            self._walk(Cursor(self.content, self._messages))
        return PackedSession(
            content=self.content,
            id=str(_loaded(self._header).get("id")),
            header=self._header,
            messages=self._messages,
            origin=self._origin.directory,
            counters=self._counters,
            first_user=self._first_user,
            files=tuple(self._files),
            branch=self._branch if isinstance(self._branch, dict) else None,
            left_out=self._left_out,
        )


def _loaded(raw: bytes) -> Any:
    try:
        return json_text.loads(raw)
    except ValueError as error:
        raise Malformed(str(error)) from None
