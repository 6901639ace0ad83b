"""The trash of a workspace: deleted sessions listed, given back, removed for good; and what is old put into it."""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from craftd.errors import AlreadyExists, CraftdError, InvalidParams, NotFound, Ref
from craftd.model import ids, sessions
from craftd.model.records import Item, Record, version_of
from craftd.model.retention import is_days
from craftd.store import atomic, disk, folders, trash
from craftd.store.lines import read_head
from craftd.store.locate import locate, scan_file
from craftd.store.transcript import Transcript
from craftd.store.trash import Entry
from craftd.workspace import foreign, telling
from craftd.workspace.arrivals import Arrival
from craftd.workspace.commit import Commit, Planned, Unit
from craftd.workspace.index import PAGE, PAGE_MOST
from craftd.workspace.journal import Change, Origin
from craftd.workspace.many import in_parts
from craftd.workspace.rows import Place, damage_json, row_of
from craftd.workspace.sessions import SessionCommit

if TYPE_CHECKING:
    from craftd.workspace.sessions import SessionUnit
    from craftd.workspace.workspace import Workspace

log = logging.getLogger(__name__)

TRASH: Final = "trash/"
"""Key of the unit."""

DAY_MS: Final = 86_400_000

AT_WORK: Final = ("running", "waiting")
"""What executors say of a session that is not to be purged."""

FIRST_MS: Final = 10**12
"""In the year 2001: a smaller time was meant in seconds."""


# -- listed --


@frozen
class Listed:
    """One page. next: where the following one begins."""

    items: list[Item]
    next: str | None
    total: int


def listed(place: Place, limit: int | None, cursor: str | None) -> Listed:
    """In a thread: what is in the trash, the latest first. Raises: InvalidParams."""
    count = PAGE if limit is None else min(limit, PAGE_MOST)
    if count < 1:
        raise InvalidParams.of("limit", "must be at least 1")
    found = trash.entries(place.root)
    start = 0
    if cursor is not None:
        after = Entry.of(cursor)
        if after is None:
            raise InvalidParams.of("cursor", "is no cursor of this list")
        start = sum((-entry.at, entry.id) <= (-after.at, after.id) for entry in found)
    page = found[start : start + count]
    items = [item for entry in page if (item := _item(place, entry)) is not None]
    return Listed(items, page[-1].name if page and start + count < len(found) else None, len(found))


def _item(place: Place, entry: Entry) -> Item | None:
    """Its line 1, as clients saw it; None if it went in this moment."""
    folder, directory = entry.folder(place.root), place.directory(entry.id)
    info: dict[str, Any] = {"session": entry.id, "deletedAt": entry.at}
    if folder.is_symlink():
        linked = {"code": "linked", "message": "the session's folder is a link"}
        return Item(entry.name, "unreadable", {"id": entry.id}, {**info, "damage": [linked]})
    try:
        fd = disk.open_read(locate(folder / "session.jsonl"))
    except FileNotFoundError:
        return None
    except OSError as error:
        unreadable = {"code": "header-unreadable", "message": f"cannot be read: {error.strerror}"}
        return Item(entry.name, "unreadable", {"id": entry.id}, {**info, "damage": [unreadable]})
    try:
        head = read_head(fd, os.fstat(fd).st_size, directory, entry.id)
    finally:
        disk.close(fd)
    if head.damage:
        info["damage"] = [damage_json(damage) for damage in head.damage]
    if head.header is None or not head.sound:
        return Item(entry.name, "unreadable", {"id": entry.id}, info)
    value = sessions.view(head.header, directory, str(place.root), place.home)
    light = {name: value[name] for name in sessions.LIGHT if name in value}
    return Item(entry.name, version_of(head.header, sessions.VOLATILE), light, info)


# -- given back --


@define(eq=False)
class _Returning(Arrival):
    """A session that comes out of the trash. What does not come to its place stays there."""

    entry: Entry = field(kw_only=True)
    root: Path = field(kw_only=True)
    readable: bool = field(kw_only=True)

    @classmethod
    def read(cls, entry: Entry, place: Place) -> _Returning:
        """In a thread. Raises: OSError."""
        directory = place.directory(entry.id)
        there = locate(entry.folder(place.root) / "session.jsonl")
        transcript = Transcript(
            place.folder(entry.id) / "session.jsonl", directory, there, *scan_file(there, entry.id, directory)
        )
        header = foreign.readable_header(transcript)
        now = {} if header is None else sessions.caught_up(header, transcript.counters)
        return cls(there.parent, now, transcript, entry=entry, root=place.root, readable=header is not None)

    def take_place(self, folder: Path, kept: Path | None) -> None:
        try:
            trash.give_back(self.entry, self.root, folder)
        except atomic.DirectoryNotFlushed:
            self._settle(safe=False)
            raise
        self._settle(safe=True)


@define(eq=False, kw_only=True)
class Restore(SessionCommit):
    """Give a session back its name and place. Answers the new Item. entry: None = its last deletion.

    Raises: NotFound (nothing of it is in the trash), AlreadyExists (its name is taken).
    """

    place: Place
    entry: Entry | None = None
    found: _Returning | None = field(default=None, init=False)

    @classmethod
    def named(cls, id: str, place: Place, origin: Origin, connection: object) -> Restore:
        """*id*: of an entry, or of a session. Raises: InvalidParams."""
        entry = Entry.of(id)
        session = id if entry is None else entry.id
        if not ids.is_session_id(session):
            raise InvalidParams.of("id", "names nothing in the trash: letters, digits, hyphens and underscores only")
        # Whatever was asked for before is to be in the trash, or out of it, when this one is looked for.
        reads = frozenset({f"sessions/{session}", TRASH})
        return cls(origin=origin, connection=connection, id=session, reads=reads, place=place, entry=entry)

    def ahead(self) -> Callable[[], None] | None:
        return None if self.found is not None else self._read

    def _read(self) -> None:
        """In a pool thread; what fails here is tried again in the round, where it gets its verdict."""
        try:
            self.found = self._look()
        except (CraftdError, OSError):
            pass

    def _look(self) -> _Returning:
        """Raises: NotFound, OSError."""
        root = self.place.root
        entry = trash.latest(root, self.id) if self.entry is None else self.entry
        if entry is None or (root / folders.TRASH).is_symlink() or not trash.is_session(root, entry):
            raise NotFound(Ref("sessions", self.id if entry is None else entry.name))
        return _Returning.read(entry, self.place)

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        if self.found is not None and self.found.placed:  # by a try before this one
            unit.confirm()
            return Planned(self._item())
        if unit.gone and unit.row is not None:
            unit.require()
        if unit.exists or os.path.lexists(unit.folder):
            there = unit.item().as_json() if unit.exists and unit.header is not None else None
            raise AlreadyExists(unit.ref, there)
        if self.found is None or not self.found.transcript.check():
            self.found = self._look()
        unit.arrive(self.found, None)
        if not self.found.readable:
            unit.header = None
        item = self._item()
        return Planned(item, [telling.created(item)])

    def _item(self) -> Item:
        assert self.found is not None
        header = self.found.header if self.found.readable else None
        return row_of(self.id, self.place, header, self.found.transcript).item()


# -- removed for good --


@define(eq=False)
class TrashUnit(Unit):
    """What leaves the trash in a round. hidden: folders that did, to be removed outside of it."""

    root: Path
    key: str = TRASH
    hidden: list[Path] = field(factory=list)
    _staged: list[Entry] = field(factory=list)

    def stage(self, them: Sequence[Entry]) -> None:
        self._staged += [entry for entry in them if entry not in self._staged]

    def entries(self) -> list[Entry]:
        return [entry for entry in trash.entries(self.root) if entry not in self._staged]

    @property
    def dirty(self) -> bool:
        return bool(self._staged)

    def refresh(self) -> list[Change]:
        return []

    def write(self) -> None:
        self.hidden += trash.take_out(self.root, self._staged)
        self._staged.clear()

    def discard(self) -> None:
        self._staged.clear()

    def publish(self) -> None:
        pass


@define(eq=False, kw_only=True)
class EmptyTrash(Commit):
    """Answers the names of what went, and the unit's folders to be removed. names: of entries, None = all that went
    there before the moment *before* (ms since 1970 UTC).

    Raises: NotFound (a name is not there; nothing is removed).
    """

    names: Sequence[str] | None
    before: int | None = None

    @property
    def unit(self) -> str:
        return TRASH

    def plan(self, unit: TrashUnit, now: int) -> Planned:
        there = {entry.name: entry for entry in unit.entries()}
        if self.names is None:
            going = [entry for entry in there.values() if self.before is None or entry.at < self.before]
        else:
            for name in self.names:
                if name not in there:
                    raise NotFound(Ref("sessions", name))
            going = [there[name] for name in self.names]
        unit.stage(going)
        return Planned(([entry.name for entry in going], unit.hidden))


async def empty(workspace: Workspace, commit: EmptyTrash) -> list[str]:
    """Carry out *commit*; the names of what went."""
    done = await workspace.commit(commit)
    names: list[str]
    names, hidden = done.answer
    for name in names:
        log.info("removed %s from the trash of %s", name, workspace.place.root)
    if hidden:  # also when nobody waits for the answer any more
        await asyncio.wait([workspace.supervise(_remove(workspace, hidden))])
    return names


async def _remove(workspace: Workspace, folders: Sequence[Path]) -> None:
    for folder in folders:
        await workspace.in_pool(atomic.discard, folder)


# -- what is old --


def moment(days: float, now: int, member: str = "olderThanDays") -> int:
    """The moment *days* before *now*, ms since 1970 UTC. Raises: InvalidParams."""
    if not is_days(days):
        raise InvalidParams.of(member, "must be a number of days, more than 0")
    return now - math.ceil(min(days, 1e9) * DAY_MS)


def is_due(value: Record, before: int) -> bool:
    """Whether a session was archived before the moment *before*, as far as that is certain.

    Only whole milliseconds of this century say when: a time in seconds, as text, or none at all, says nothing.
    """
    at = value.get("archivedAt")
    return value.get("isArchived") is True and type(at) is int and FIRST_MS <= at < before


def due(workspace: Workspace, before: int) -> list[str]:
    """Ids of the sessions to purge, sorted. One that works at this moment is not."""
    rows = [row for row in workspace.sessions if b'"isArchived":true' in row.header]
    busy = workspace.place.live.sessions(*AT_WORK)
    return sorted(row.id for row in rows if row.id not in busy and is_due(row.value, before))


@define(eq=False, kw_only=True)
class PurgeSession(SessionCommit):
    """Into the trash with it, if it is still due. Answers its id, None where it stays."""

    before: int

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        if not unit.exists or unit.gone or unit.header is None or not is_due(unit.value(), self.before):
            return Planned(None)
        if unit.place.live.activity(unit.id) in AT_WORK:  # since it was looked for
            return Planned(None)
        entry = trash.free(unit.place.root, now, unit.id)
        unit.delete(entry.name)
        log.info("purging %s, archived at %s: now %s in the trash", unit.folder, unit.value()["archivedAt"], entry.name)
        return Planned(unit.id, [telling.deleted(unit.id)])


async def purge(
    workspace: Workspace,
    ids: Sequence[str],
    before: int,
    origin: Origin,
    connection: object = None,
    told: Callable[[int], None] = lambda done: None,
) -> list[str]:
    """Move the sessions *ids*, as far as they are still due, to the trash; which those were.

    *told* how many are done. Raises: see `in_parts`.
    """
    commits = [PurgeSession(origin=origin, connection=connection, id=id, before=before) for id in ids]
    answers = await in_parts(workspace, commits, told)
    return [id for id in answers if id is not None]
