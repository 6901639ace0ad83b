"""Search: the texts of sessions and of what else a workspace has, the newest first.

Files are read when somebody asks; no index is kept. A search works in a few pool threads at most, gives what it has
found in order while it goes on, and ends when nobody waits for it or its time is over.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from attrs import define, field, frozen

from craftd.errors import CraftdError, InvalidParams
from craftd.model import json_text
from craftd.model.long_results import FOLDER
from craftd.model.portable import TOKEN
from craftd.model.records import Record
from craftd.model.search import Needle, OutOfTime, Place, each_line_with, found_in, meets, texts_of
from craftd.store import scan
from craftd.store.scan import Stop, Stopped
from craftd.workspace import record_files, session_files
from craftd.workspace.files import Ground
from craftd.workspace.index import compile_filter
from craftd.workspace.project_files import MEMORY
from craftd.workspace.rows import SessionRow

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace

OF_SESSIONS: Final = ("sessions", "messages", "plans", "notes")
NOUNS: Final = (*OF_SESSIONS, "projects", "memory", "sources", "skills")

SECONDS: Final = 5.0
MOST_SECONDS: Final = 60.0
SECONDS_OF_TEXT: Final = 2.0
"""That an expression may take in one text: it is not to be stopped before."""
LIMIT: Final = 100
MOST: Final = 500
MATCHES: Final = 3
MOST_MATCHES: Final = 20
"""Places shown of one record."""
MOST_COUNTED: Final = 1_000
"""Places counted in one record."""
MOST_BYTES: Final = 4 << 30
"""Of transcripts for one search."""
LONG_RESULT: Final = 8 << 20
"""Bytes of a result that was kept out of its line."""

THREADS: Final = 2
"""Of one search."""
TURNS: Final = 4
"""Groups at work at once for all searches of a workspace."""
GROUPS: Final = (8, 32, 128, 512)
"""Records of the first groups and of all others; small ones first, so that the first matches come at once."""
GROUP_BYTES: Final = 32 << 20

_STAND_IN: Final = re.compile(rf"\[Response too large.*?/{FOLDER}/([A-Za-z0-9._-]+)", re.DOTALL)
_KEPT_OUT: Final = f"{FOLDER}/".encode()
_TOKEN: Final = TOKEN.encode()
_TEXTS: Final = {
    "projects": ("name", "description"),
    "sources": ("name", "tagline", "guide"),
    "skills": ("name", "description", "content"),
}
_turns: WeakKeyDictionary[Any, asyncio.Semaphore] = WeakKeyDictionary()

Key = tuple[int, int, str]
_FIRST: Final = (-1, 0, "")
"""Before all keys."""


@frozen(kw_only=True)
class Match:
    """noun, id: of the record whose member *field* it is in. type, timestamp: of a message.

    path: of the file that has a result kept out of its line.
    """

    noun: str
    id: str | None
    field: str
    place: Place
    type: str | None = None
    timestamp: int | None = None
    path: str | None = None


@define(eq=False)
class Found:
    """A record in which something was found. count: of places; more: they were not counted to the end."""

    noun: str
    id: str
    title: str | None
    matches: list[Match] = field(factory=list)
    count: int = 0
    more: bool = False


@frozen
class Target:
    """A record to look into. key: its place in the order."""

    key: Key
    noun: str
    id: str
    row: SessionRow | None = None
    title: str | None = None
    texts: tuple[tuple[str, str], ...] = ()
    file: tuple[str, ...] | None = None

    @property
    def size(self) -> int:
        return 0 if self.row is None or self.row.fingerprint is None else self.row.fingerprint.size


@frozen
class Seen:
    """What became of a target. begun, ended: whether the time was enough to look at it, and to its end."""

    target: Target
    found: Found | None = None
    begun: bool = False
    ended: bool = False


@frozen(kw_only=True)
class Outcome:
    """searched, of: records looked at by this call, and those that it would have been. stopped: limit, time, bytes."""

    searched: int
    of: int
    next_cursor: str | None
    stopped: str | None


@frozen(kw_only=True)
class Query:
    """What somebody wants to know. seconds: that it may take."""

    text: str
    needle: Needle
    nouns: frozenset[str]
    filter: Record | None = None
    limit: int = LIMIT
    matches: int = MATCHES
    seconds: float = SECONDS

    @cached_property
    def digest(self) -> str:
        """The same for a query and what goes on with it."""
        kind = type(self.needle).__name__
        text = json_text.canonical([self.text, kind, sorted(self.nouns), self.filter])
        return hashlib.blake2b(text, digest_size=6).hexdigest()


async def search(
    workspace: Workspace, query: Query, cursor: str | None, tell: Callable[[list[Found], int, int], None]
) -> Outcome:
    """tell(found, searched, of): told of what was found, in order, as soon as it is known. Raises: InvalidParams."""
    targets = _targets(workspace, query)
    after = None if cursor is None else _read_cursor(cursor, query.digest)
    if after is not None:
        targets = [target for target in targets if target.key > after]
    work = _Work(workspace.ground(), query, Stop(), time.monotonic() + query.seconds)
    turns = _turns.setdefault(workspace, asyncio.Semaphore(TURNS))

    async def look(group: list[Target]) -> list[Seen]:
        await turns.acquire()
        looking = asyncio.ensure_future(workspace.in_pool(work.group, group))
        looking.add_done_callback(lambda _: turns.release())  # who is taken back has its turn until its thread ends
        return await asyncio.shield(looking)

    waiting: deque[asyncio.Task[list[Seen]]] = deque()
    coming = _groups(targets)
    searched = given = 0
    last: Key | None = None
    stopped: str | None = None
    try:
        while stopped is None and searched < len(targets):
            while len(waiting) < THREADS and (group := next(coming, None)) is not None:
                waiting.append(asyncio.create_task(look(group)))
            found: list[Found] = []
            for seen in await waiting.popleft():
                if not seen.ended:
                    stopped = "bytes" if work.bytes > MOST_BYTES else "time"
                    if last is not None or not seen.begun:
                        break
                searched, last = searched + 1, seen.target.key
                if seen.found is not None:
                    found.append(seen.found)
                    given += 1
                    if given == query.limit and stopped is None:
                        stopped = "limit"
                if stopped is not None:
                    break
            tell(found, searched, len(targets))
    finally:
        work.stop.now()
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    if stopped == "limit" and searched == len(targets):
        stopped = None
    more = stopped is not None and searched < len(targets)
    return Outcome(
        searched=searched,
        of=len(targets),
        next_cursor=_write_cursor(query.digest, last or after or _FIRST) if more else None,
        stopped=stopped,
    )


def _targets(workspace: Workspace, query: Query) -> list[Target]:
    """Everything to look into, in its order. Raises: InvalidParams."""
    index = workspace.sessions
    matches = compile_filter(query.filter, index.specials, index.fields)
    targets: list[Target] = []
    if query.nouns & set(OF_SESSIONS):
        rows: Iterable[SessionRow] = index if matches is None else filter(matches, index)
        targets += (Target((0, -row.at, row.id), "sessions", row.id, row) for row in rows)
    for number, noun in enumerate(NOUNS):
        if noun in OF_SESSIONS or noun not in query.nouns:
            continue
        table = workspace.tables["projects" if noun == "memory" else noun]
        for row in table.index:
            key, name = (number, 0, row.id), row.value.get("name")
            title = name if isinstance(name, str) else None
            if noun == "memory":
                place = (*row.unit.split("/")[:2], MEMORY)
                targets.append(Target(key, noun, row.id, title=title, file=place))
            else:
                texts = ((name, row.value.get(name)) for name in _TEXTS[noun])
                kept = tuple((name, text) for name, text in texts if isinstance(text, str))
                targets.append(Target(key, noun, row.id, title=title, texts=kept))
    return sorted(targets, key=lambda target: target.key)


def _groups(targets: list[Target]) -> Iterator[list[Target]]:
    group: list[Target] = []
    size, number = 0, 0
    for target in targets:
        group.append(target)
        size += target.size
        if len(group) >= GROUPS[min(number, len(GROUPS) - 1)] or size >= GROUP_BYTES:
            yield group
            group, size, number = [], 0, number + 1
    if group:
        yield group


def _write_cursor(digest: str, key: Key) -> str:
    return base64.urlsafe_b64encode(json_text.dumps([digest, *key])).decode()


def _read_cursor(cursor: str, digest: str) -> Key:
    try:
        made, group, at, id = json_text.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, TypeError, binascii.Error):
        raise InvalidParams.of("cursor", "is no cursor of a search") from None
    if made != digest:
        raise InvalidParams.of("cursor", "belongs to another query")
    if type(group) is not int or type(at) is not int or type(id) is not str:
        raise InvalidParams.of("cursor", "is no cursor of a search")
    return group, at, id


# In pool threads


@define(eq=False)
class _Work:
    """One search. deadline: of `time.monotonic`. bytes: of transcripts so far; threads may miscount a little."""

    ground: Ground
    query: Query
    stop: Stop
    deadline: float
    bytes: int = 0

    @property
    def left(self) -> float:
        return self.deadline - time.monotonic()

    def check(self) -> None:
        """Raises: Stopped, OutOfTime."""
        self.stop.check()
        if self.left <= 0 or self.bytes > MOST_BYTES:
            raise OutOfTime

    def group(self, targets: list[Target]) -> list[Seen]:
        """What is in them; of what comes after the end of the time, nothing."""
        seen: list[Seen] = []
        try:
            holding = self._holding(targets) if "messages" in self.query.nouns else None
            for target in targets:
                found = Found(target.noun, target.id, target.title)
                self.check()
                ended = self._look(target, found, holding)
                seen.append(Seen(target, found if found.count else None, begun=True, ended=ended))
                if not ended:
                    break
        except OutOfTime:
            seen.append(Seen(targets[len(seen)]))
        except Stopped:
            pass  # nobody waits for it
        return seen

    def _holding(self, targets: Sequence[Target]) -> set[str] | None:
        """Sessions that may have messages with what is sought; None: all of them. Raises: Stopped, OutOfTime."""
        sieve, program = self.query.needle.sieve, scan.ripgrep()
        if sieve is None or program is None:
            return None
        rows = [target.row for target in targets if target.row is not None]
        asked = [row.id for row in rows if row.fingerprint is not None and not self._meets(row)]
        if not asked:
            return None
        names = [f"{id}/session.jsonl" for id in asked]
        folder = self.ground.root / "sessions"
        pattern = f"{sieve.pattern}|{FOLDER}/"
        try:
            files = scan.files_with(program, pattern, folder, names, self.stop, self.left)
        except TimeoutError:
            raise OutOfTime from None
        if files is None:
            return None
        return {name.partition("/")[0] for name in files} | ({row.id for row in rows} - set(asked))

    def _meets(self, row: SessionRow) -> bool:
        """Whether a token of the session's path may stand for a part of what is sought."""
        return meets(self.query.needle.folded, row.place.directory(row.id).casefold())

    def _look(self, target: Target, found: Found, holding: set[str] | None) -> bool:
        """Whether it came to the end. Raises: Stopped."""
        try:
            for match in self._matches(target, found, holding):
                if len(found.matches) < self.query.matches:
                    found.matches.append(match)
                found.count += 1
                if found.count >= MOST_COUNTED:
                    found.more = True
                    break
        except OutOfTime:
            found.more = True
            return False
        finally:
            if found.count and target.row is not None:
                name = target.row.stored.get("name")
                found.title = name if isinstance(name, str) else None
        return True

    def _matches(self, target: Target, found: Found, holding: set[str] | None) -> Iterator[Match]:
        if target.row is not None:
            yield from self._in_session(target.row, holding)
            return
        texts = target.texts
        if target.file is not None:
            try:
                texts = (("text", record_files.read_text(self.ground, target.file).shown),)
            except (CraftdError, OSError):
                texts = ()
        for name, text in texts:
            for place in self._places(text):
                yield Match(noun=target.noun, id=target.id, field=name, place=place)

    def _places(self, text: str) -> Iterator[Place]:
        try:
            for place in found_in(text, self.query.needle, min(self.left, SECONDS_OF_TEXT)):
                yield place
                self.check()
        except OutOfTime:
            self.check()  # that text alone took too long

    def _in_session(self, row: SessionRow, holding: set[str] | None) -> Iterator[Match]:
        nouns, sieve = self.query.nouns, self.query.needle.sieve
        if "sessions" in nouns and (sieve is None or any(True for _ in sieve.places(row.header))):
            name = row.stored.get("name")
            for place in self._places(name) if isinstance(name, str) else ():
                yield Match(noun="sessions", id=row.id, field="name", place=place)
        if "messages" in nouns and (holding is None or row.id in holding):
            yield from self._in_messages(row)
        folder = row.place.directory(row.id)
        if "plans" in nouns and os.path.isdir(f"{folder}/{session_files.PLANS}"):
            yield from self._in_plans(row.id)
        if "notes" in nouns and os.path.exists(f"{folder}/{session_files.NOTES}"):
            text = self._text(session_files.folder_of(row.id, session_files.NOTES))
            for place in self._places(text):
                yield Match(noun="notes", id=row.id, field="text", place=place)

    def _in_plans(self, session: str) -> Iterator[Match]:
        try:
            plans = session_files.listed(self.ground, session)
        except (CraftdError, OSError):
            return
        for plan in plans:
            self.check()
            text = self._text(session_files.folder_of(session, session_files.PLANS, plan.name))
            for place in self._places(text):
                yield Match(noun="plans", id=plan.name, field="text", place=place)

    def _text(self, parts: tuple[str, ...]) -> str:
        """ "" for what is not served, or too long to be."""
        try:
            return record_files.read_text(self.ground, parts).shown
        except (CraftdError, OSError):
            return ""

    def _in_messages(self, row: SessionRow) -> Iterator[Match]:
        sieve, through = self.query.needle.sieve, self._meets(row)

        def places(block: bytes) -> Iterator[int]:
            self.bytes += len(block)
            self.check()
            if sieve is not None:
                yield from sieve.places(block)
                yield from each_line_with(block, _KEPT_OUT)
                if through:
                    yield from each_line_with(block, _TOKEN)

        def every(block: bytes) -> Iterator[int]:
            self.bytes += len(block)
            self.check()
            yield from each_line_start(block)

        folder = row.place.folder(row.id)
        try:
            for record in scan.records(
                folder / "session.jsonl", str(folder), every if sieve is None else places, self.stop
            ):
                self.check()
                yield from self._in_message(row.id, record)
        except OSError:
            return  # it went while we looked

    def _in_message(self, session: str, record: Record) -> Iterator[Match]:
        id, kind, at = record.get("id"), record.get("type"), record.get("timestamp")
        for name, text in texts_of(record):
            path = None
            if name == "toolResult" and (kept_out := _STAND_IN.match(text)) is not None:
                parts = session_files.folder_of(session, FOLDER, kept_out[1])
                try:
                    text, path = record_files.read_head(self.ground, parts, LONG_RESULT), "/".join(parts)
                except (CraftdError, OSError):
                    pass  # the file has gone; of its text there is what the line says
            for place in self._places(text):
                yield Match(
                    noun="messages",
                    id=id if isinstance(id, str) else None,
                    field=name,
                    place=place,
                    type=kind if isinstance(kind, str) else None,
                    timestamp=at if type(at) is int else None,
                    path=path,
                )


def each_line_start(block: bytes) -> Iterator[int]:
    at = 0
    while at < len(block):
        yield at
        end = block.find(b"\n", at)
        if end < 0:
            return
        at = end + 1
