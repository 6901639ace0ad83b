"""New sessions that begin as another one: branches up to a message, and copies.

What is long is done in a pool thread, beside the place where the session is going to be; the commit gives it its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from attrs import define, field

from craftd.errors import Busy, Corrupt, CraftdError, Forbidden, NotFound, Ref
from craftd.model import branches, json_text, sessions
from craftd.model.branches import Origin as From
from craftd.model.records import Item, Record
from craftd.store import atomic, disk
from craftd.store.copying import Original
from craftd.store.json_stream import Bytes
from craftd.store.transcript import Stale
from craftd.workspace import arrivals, telling
from craftd.workspace.arrivals import Arrival
from craftd.workspace.commit import Done, Planned, io_error
from craftd.workspace.journal import Origin
from craftd.workspace.rows import SessionRow, row_of
from craftd.workspace.sessions import SESSIONS, SUBFOLDERS, CreateSession

if TYPE_CHECKING:
    from craftd.workspace.sessions import SessionUnit
    from craftd.workspace.workspace import Workspace

ANCHORS = ("meta/claude-turn-anchors.json", "meta/pi-turn-anchors.json")


@define(eq=False, kw_only=True)
class CopySession(CreateSession):
    """Answers the new Item. message: the last one of a branch; None = everything is copied, its files too.

    Raises: NotFound (the session, or a message), Corrupt, Forbidden (a link), ValidationFailed, AlreadyExists.
    """

    workspace: Workspace
    source: str
    message: str | None
    _lock: Lock = field(factory=Lock, init=False)
    _arrival: Arrival | None = field(default=None, init=False)
    _settled: Record | None = field(default=None, init=False)
    """What its value came to be."""
    _at: int = field(default=0, init=False)
    """When it was built, ms: what is compared later must not differ by the time."""
    _error: CraftdError | None = field(default=None, init=False)
    _given_up: bool = field(default=False, init=False)

    def ahead(self) -> Callable[[], None] | None:
        return None if self._arrival is not None or self._error is not None else self._prepare

    def _prepare(self) -> None:
        with self._lock:
            if self._given_up or os.path.lexists(self.workspace.place.folder(self.id)):
                return  # no need to build what has no place
            try:
                self._arrival = self._built()
            except CraftdError as error:
                self._error = error
            except FileNotFoundError:  # somebody saves it at this moment, or it has gone: its turn will tell
                self._error = Busy(f"sessions/{self.source} is being saved by another program", 200)
            except OSError as error:
                self._error = io_error(error)

    def give_up(self) -> None:
        """In a thread: nobody waits any more. Nothing is left of what did not come to its place."""
        with self._lock:
            self._given_up = True
            if self._arrival is not None:
                self._arrival.discard()

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        if self._arrival is not None and self._arrival.placed:  # by a try before this one
            unit.confirm()
            return Planned(self._item(self._arrival))
        self.refuse_taken(unit)
        if self._error is not None:
            self._row()  # one that went meanwhile is the reason
            raise self._error
        if self._arrival is None:
            raise Stale
        if not json_text.equal(self._settled, self._judged()):  # a project went, or a label
            self._arrival.discard()
            self._arrival = None
            raise Stale
        unit.arrive(self._arrival, None)
        item = self._item(self._arrival)
        return Planned(item, [telling.created(item)])

    def _item(self, arrival: Arrival) -> Item:
        return row_of(self.id, self.workspace.place, arrival.header, arrival.transcript).item()

    # In a pool thread

    def _row(self) -> SessionRow:
        row: SessionRow | None = self.workspace.sessions.get(self.source)
        if row is None:
            raise NotFound(Ref("sessions", self.source, self.workspace.id))
        folder = row.place.folder(row.id)
        if not row.readable or row.fingerprint is None:
            raise Corrupt(f"sessions/{row.id} is damaged: repair it first", folder.as_uri(), Ref("sessions", row.id))
        if folder.is_symlink():
            raise Forbidden(f"{row.id} is a link: nothing is copied from it", path=f"sessions/{row.id}")
        return row

    def _judged(self) -> Record:
        origin = self._row().value
        if self.message is None:
            base = {**branches.copied_value(origin), "id": self.id}
            value = {**base, **self.value}
            return self.judged(value, base, self.workspace.sessions, self._at)
        value = branches.branch_value(self.value, origin, partial(self.known, "projects"))
        return self.judged(value, None, self.workspace.sessions, self._at)

    def _built(self) -> Arrival:
        """Raises: CraftdError, OSError; nothing is left then."""
        place, row = self.workspace.place, self._row()
        self._at = self.workspace.now()
        self._settled = self._judged()
        directory, folder = place.directory(self.id), place.folder(self.id)
        with _open(row) as transcript:
            original = Original(place.root, row.id, transcript, self.message)
            original.look(directory)
            if self.message is not None and not original.found:
                raise NotFound(Ref("messages", self.message, self.workspace.id))
            header = self._header(row, original)
            line = sessions.header_line(header, directory)
            paths = original.named if self.message is not None else original.every_file()
            contents = original.contents(line, paths, self._sidecars(original))
            with self.workspace.guard.writing():
                arrivals.ready(place)
                staged = atomic.stage_folder(folder, contents, SUBFOLDERS)
        try:
            return Arrival.of(staged, self.id, place, header)
        except BaseException:
            atomic.discard(staged)
            raise

    def _header(self, row: SessionRow, original: Original) -> Record:
        place, directory = self.workspace.place, self.workspace.place.directory(self.id)
        root = str(place.root)
        assert self._settled is not None
        header = sessions.new_header(self._settled, self._at, root, directory, place.home)
        origin = From(row.id, row.stored, place.directory(row.id))
        message = original.counters.last_id if self.message is None else self.message
        if message is not None:
            turn = self._turn(original, message, origin.provider)
            connection = header.get("llmConnection")
            header |= branches.branch_fields(origin, message, turn, connection, root, directory, place.home)
        return sessions.ordered({**header, **original.counters.header_fields()})

    @staticmethod
    def _turn(original: Original, message: str, provider: str | None) -> str | None:
        turns = (branches.turn_of(original.sidecar(path), message, provider) for path in ANCHORS)
        return next((turn for turn in turns if turn is not None), None)

    def _sidecars(self, original: Original) -> dict[str, bytes]:
        """What a branch has of the names its provider gave to messages."""
        if self.message is None:
            return {}
        path = ANCHORS[1]
        kept = branches.anchors_of(original.sidecar(path), frozenset(original.ids))
        return {} if kept is None else {path: json_text.dumps(kept)}


@contextmanager
def _open(row: SessionRow) -> Iterator[Bytes]:
    """Its transcript as far as it is known; a file that somebody has just put in its place, as it is."""
    path = transcript_of(row.place.folder(row.id))
    fd = disk.open_read(path)
    try:
        there, known = atomic.of_stat(os.fstat(fd)), row.fingerprint
        same = known is not None and there.inode == known.inode and there.size >= known.size
        yield Bytes(known.size if known is not None and same else there.size, fd)
    finally:
        disk.close(fd)


def transcript_of(folder: Path) -> Path:
    """The file that a session is read from: the app's complete `.tmp` where there is nothing else."""
    path = folder / "session.jsonl"
    rescue = path.with_name(f"{path.name}.tmp")
    return rescue if not path.exists() and rescue.exists() else path


async def copy(
    workspace: Workspace,
    source: str,
    message: str | None,
    value: Record,
    id: str | None,
    origin: Origin,
    connection: object,
) -> Done:
    """A new session that begins as *source*. The answer is its Item."""
    made: list[CopySession] = []

    def make(**members: Any) -> CopySession:
        reads = members.pop("reads") | {SESSIONS + source, "projects/"}
        made.append(CopySession(workspace=workspace, source=source, message=message, reads=reads, **members))
        return made[-1]

    try:
        return await workspace.verbs.create("sessions", value, id, origin, connection, make)
    finally:
        for commit in made:
            await workspace.in_pool(CopySession.give_up, commit)
