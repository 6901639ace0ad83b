"""One open workspace: its snapshot for readers, its queue for writers, its eyes on the disk."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import date
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol, TypeVar

from attrs import define, field

from craftd.errors import (
    Corrupt,
    CraftdError,
    InternalError,
    InvalidParams,
    Issue,
    NotFound,
    ReadOnly,
    Ref,
    ServerCancelled,
)
from craftd.model import sessions as session_rules
from craftd.model.ids import is_session_id, new_session_id
from craftd.model.noun import Facts
from craftd.model.nouns import NOUNS
from craftd.model.records import Record
from craftd.model.settings import Above
from craftd.store import trash
from craftd.store.atomic import ForeignWrite
from craftd.store.checked import ISSUES
from craftd.store.layout import CHECKED, SHELVES, written_folders
from craftd.store.locks import FolderLock
from craftd.store.machine import Machine
from craftd.store.transcript import Stale, Transcript
from craftd.workspace import cache, foreign
from craftd.workspace.bundles import AUTOMATIONS, AutomationsUnit
from craftd.workspace.commit import Commit, Done, Planned, Unit, run_ahead
from craftd.workspace.debts import Debt
from craftd.workspace.eyes import Eyes
from craftd.workspace.files import (
    FILES,
    FileCommit,
    FileUnit,
    Ground,
    Prepared,
    WriteFile,
    prepare_early,
    session_of,
)
from craftd.workspace.filters import session_filters
from craftd.workspace.first_reading import FirstReading
from craftd.workspace.guard import FolderGuard, Guard, tidy
from craftd.workspace.index import Index
from craftd.workspace.journal import DAEMON, DISK, Change, Journal, now_ms
from craftd.workspace.lineage import Sessions, Taken
from craftd.workspace.live import Live
from craftd.workspace.queue import Queue
from craftd.workspace.reshaping import finish_all
from craftd.workspace.retention import Retention
from craftd.workspace.rows import Place, SessionRow, sound_of
from craftd.workspace.seen import SeenFiles
from craftd.workspace.sessions import SESSIONS, Fold, Mend, Reconcile, SessionCommit, SessionUnit
from craftd.workspace.tables import DocumentUnit, Table, sort_value
from craftd.workspace.tails import Tails
from craftd.workspace.trash import TRASH, TrashUnit
from craftd.workspace.verbs import Verbs

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_R = TypeVar("_R")

PREPARE_ABOVE = 1024 * 1024
"""Bytes of a session file from which its copy is made outside the queue."""

OPEN_TRANSCRIPTS = 128
"""Sessions whose line table stays in memory; each has a handle on its file."""

FOLD_AFTER = 60.0
"""Seconds without a change after which line 1 is brought up to date."""

MEND_AFTER = 1.0
"""Seconds in which a file that was left with half a line at its end may still be completed by who wrote it."""

SWEEP_EVERY = 45.0
"""Seconds between two looks at everything, for what no watch told us."""

HOUSE_EVERY = 5.0
"""Seconds between two looks at what is due, and for the folder's lock while another daemon has it."""

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Starts a task whose exception is never lost."""


class Listener(Protocol):
    def __call__(self, scope: str | None, change: Change) -> None: ...


@define(eq=False, kw_only=True)
class Surroundings:
    """What all scopes of a daemon share. clock: ms since 1970; spawn: starts a supervised task; pool: for slow work.

    settings_changed: told when the `config.json` of an open workspace changed. others: folders that may lie in a
    workspace and are not its own. is_followed: whether a client wants to hear of the files of a workspace's session.
    above: the settings that count for all sessions of a workspace.
    """

    guard: Guard
    pool: Executor
    spawn: Spawn
    home: str
    cache: Path
    clock: Callable[[], int] = now_ms
    machine: Callable[[], Machine] = Machine.here
    pick: Callable[[int], int] = random.SystemRandom().randrange
    fold_after: float = FOLD_AFTER
    sweep_every: float = SWEEP_EVERY
    house_every: float = HOUSE_EVERY
    settings_changed: Callable[[], None] = lambda: None
    live: dict[str, Live] = field(factory=dict)
    """By registry id; what is said of a workspace's sessions outlives its closing and opening."""
    others: Callable[[], Sequence[Path]] = tuple
    is_followed: Callable[[str, str], bool] = lambda workspace, session: False
    above: Callable[[str], Above] = lambda workspace: Above()


@define(eq=False)
class Workspace:
    """id: registry id. Made by `Workspace.open`."""

    id: str
    place: Place
    around: Surroundings
    journal: Journal
    sessions: Sessions
    tables: dict[str, Table]
    checked: Table
    guard: FolderGuard
    listeners: set[Listener] = field(factory=set)
    transcripts: OrderedDict[str, Transcript] = field(factory=OrderedDict)
    owed: dict[str, list[Debt]] = field(factory=dict)
    """What we acknowledged and a foreign save undid, by session, until it is done again."""
    _thread: ThreadPoolExecutor = field(init=False)
    _queue: Queue = field(init=False)
    _eyes: Eyes = field(init=False)
    _loop: asyncio.AbstractEventLoop = field(init=False)
    _touched: dict[str, float] = field(factory=dict)
    _folding: set[str] = field(factory=set)
    _tasks: list[asyncio.Task[Any]] = field(factory=list)
    _tidying: asyncio.Task[None] = field(init=False)
    _verifying: asyncio.Task[None] = field(init=False)
    _finishing: asyncio.Task[None] = field(init=False)
    _told: bool = False
    _closed: bool = False
    verbs: Verbs = field(init=False)

    files: SeenFiles = field(init=False)
    retention: Retention = field(init=False)
    tails: Tails = field(factory=Tails)
    first_reading: FirstReading = field(factory=FirstReading)

    def __attrs_post_init__(self) -> None:
        self.verbs = Verbs(self)
        self.files = SeenFiles(self)
        self.retention = Retention(self)

    # Opening and closing

    @classmethod
    async def open(cls, id: str, root: Path, around: Surroundings) -> Workspace:
        """Lock the folder, read what is there, start to watch. Raises NotFound (no such folder), ReadOnly, OSError."""
        loop = asyncio.get_running_loop()
        workspace = await loop.run_in_executor(around.pool, cls._load, id, root, around)
        workspace._start(loop)
        return workspace

    @classmethod
    def _load(cls, id: str, root: Path, around: Surroundings) -> Workspace:
        workspace = cls._empty(id, root, around)
        workspace.guard.look()
        known = cache.read(workspace._cache_file, workspace.place)
        for name, table in workspace.tables.items():
            before = None if known is None else known.documents.get(name, {})
            workspace.journal.missed += workspace._load_table(table, before)
        workspace._load_table(workspace.checked, None)
        workspace.sessions.fill(foreign.first_look(workspace.place, {} if known is None else known.sessions))
        workspace._verify_some(foreign.VERIFY_AT_ONCE)
        if known is not None:
            workspace.journal.missed += foreign.while_away(known.sessions, workspace.sessions.rows)
        return workspace

    @classmethod
    def look_once(cls, id: str, root: Path, around: Surroundings) -> Workspace:
        """Everything that is there now, read whole, to be asked and not changed: nothing is locked or watched.

        Raises: NotFound (no such folder).
        """
        workspace = cls._empty(id, root, around)
        for table in (*workspace.tables.values(), workspace.checked):
            workspace._load_table(table, None)
        workspace.sessions.fill(foreign.first_look(workspace.place, {}))
        workspace._verify_some(None)
        return workspace

    @classmethod
    def _empty(cls, id: str, root: Path, around: Surroundings) -> Workspace:
        if not root.is_dir():
            raise NotFound(Ref("workspaces", id))
        real = Path(os.path.realpath(root))
        place = Place(real, around.home, around.live.setdefault(id, Live()))
        guard = FolderGuard(around.guard, FolderLock(real))
        epoch = token_hex(4)
        tables: dict[str, Table] = {}
        for name, shelf in SHELVES.items():
            noun = NOUNS[name]
            fields, sorts = frozenset(noun.fields), frozenset({"id", "place"} if noun.ordered else {"id"})
            tables[name] = Table(
                noun, shelf, Index(epoch, noun.sort, fields=fields, sorts=sorts, sort_value=sort_value)
            )
        checked = Table(CHECKED.noun, CHECKED, Index(epoch, "id"))
        sessions = Sessions(epoch, "-lastMessageAt", graves=trash.ids(real))
        workspace = cls(id, place, around, Journal(id, epoch), sessions, tables, checked, guard)
        sessions.specials = session_filters(workspace)
        sessions.fields = frozenset((*session_rules.PERSISTENT, *session_rules.COMPUTED))
        sessions.sort_value = _session_sort_value
        return workspace

    def _load_table(self, table: Table, before: Mapping[str, dict[str, Record]] | None) -> list[Change]:
        """Read the records of a noun; what changed since they were as *before* (None: not known)."""
        root, facts = self.place.root, self.facts()
        changes: list[Change] = []
        for key in sorted({*table.shelf.keys(root), *(before or ())}):
            base = {} if before is None else before.get(key, {})
            unit = DocumentUnit(key, root, table, facts, None, base)
            changes += unit.refresh()
            unit.publish_first()
        return [] if before is None else [change for change in changes if change.topic == table.noun.name]

    def _verify_some(self, budget: int | None) -> None:
        """Read whole what never was, up to *budget* bytes: small workspaces are exact from the first answer."""
        for row in list(self.sessions):
            if row.body is None and row.fingerprint is not None:
                if budget is not None and (budget := budget - row.fingerprint.size) < 0:
                    return
                self.sessions.put(foreign.verified(row))

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"scope-{self.id[:12]}")
        self._queue = Queue(self, self._thread, self.around.pool)
        self._eyes = Eyes(self)
        self._tasks.append(self.around.spawn(self._queue.run()))
        self._eyes.open()
        self._verifying = self.supervise(self._read_first())
        self.supervise(self._keep_house())
        self._tidying = self.supervise(self._tidy())
        self._finishing = self.supervise(self._finish())

    def supervise(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start *work*; it ends with the workspace at the latest. If it fails, the others go on without it."""
        self._tasks[1:] = [task for task in self._tasks[1:] if not task.done()]
        task = self.around.spawn(_logged(work))
        self._tasks.append(task)
        return task

    async def close(self) -> None:
        """Refuse new changes, finish and fold what there is, write the cache, give everything back."""
        if self._closed:
            return
        self._closed = True
        await self._loop.run_in_executor(self.around.pool, self._eyes.close)
        for task in self._tasks[1:]:
            task.cancel()
        await self._queue.drained()
        await self.fold_all()
        self._queue.refuse(ServerCancelled("the daemon stops"))
        await self._queue.drained()
        self._tasks[0].cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._loop.run_in_executor(self.around.pool, self._shut)

    def _shut(self) -> None:
        documents = {name: {key: table.records(key) for key in table.documents} for name, table in self.tables.items()}
        cache.write(self._cache_file, self.place, self.sessions, documents)
        for transcript in self.transcripts.values():
            transcript.close()
        self.transcripts.clear()
        self._thread.shutdown()
        self.guard.give_back()

    @property
    def state(self) -> Path:
        """The daemon's own folder."""
        return self.around.cache.parent

    @property
    def _cache_file(self) -> Path:
        return self.around.cache / f"{self.id}.json"

    # Reading

    def status(self) -> dict[str, Any]:
        """What `daemon/status` says about it."""
        holder = self.guard.holder
        return {
            "id": self.id,
            "path": str(self.place.root),
            "epoch": self.epoch,
            "revision": self.revision,
            "sessions": len(self.sessions),
            **self._eyes.status(),
            "readOnly": holder is not None,
            **({} if holder is None else {"holder": holder}),
            "protected": self.protected,
        }

    @property
    def epoch(self) -> str:
        return self.journal.epoch

    @property
    def revision(self) -> int:
        return self.journal.revision

    def is_at(self, root: Path) -> bool:
        """Whether this is the workspace of the folder *root*, or of what was there while it is away."""
        return not root.is_dir() or Path(os.path.realpath(root)) == self.place.root

    @property
    def read_only(self) -> bool:
        return self.guard.holder is not None

    @property
    def protected(self) -> bool:
        """False where the file system has no locks: a second machine could write too."""
        return self.guard.protected

    @property
    def unsettled(self) -> bool:
        """Whether something is still to be written: changes that wait or run, values that line 1 does not have yet."""
        return not self._queue.idle or any(row.behind for row in list(self.sessions))

    def session(self, id: str, member: str = "id") -> SessionRow:
        """*member*: of the params, that holds it. Raises InvalidParams (no session id at all), NotFound."""
        self.check_session_id(id, member)
        row: SessionRow | None = self.sessions.get(id)
        if row is None:
            raise NotFound(Ref("sessions", id, self.id))
        return row

    @staticmethod
    def check_session_id(id: str, member: str = "id") -> None:
        if not is_session_id(id):
            raise InvalidParams.of(member, "is no session id: letters, digits, hyphens and underscores only")

    async def transcript(self, id: str) -> Transcript:
        """The open transcript of a session, for reading. Raises: InvalidParams, NotFound, Corrupt (no file to read)."""
        for _ in range(3):
            row = self.session(id)
            transcript = self.transcripts.get(id)
            if transcript is not None and transcript.fingerprint == row.fingerprint:
                return transcript
            await self._queue.commit(Reconcile(origin=DISK, id=id))
        transcript = self.transcripts.get(id)
        if transcript is None:
            uri = (self.place.folder(id) / "session.jsonl").as_uri()
            raise Corrupt(
                row.damage[0]["message"] if row.damage else "cannot be read", uri, Ref("sessions", id, self.id)
            )
        return transcript

    def watches(self, folder: str) -> bool:
        """Is the folder (relative) one that is watched?"""
        return self._eyes.wants(folder)

    def wait_for_watches(self) -> None:
        """In a thread."""
        self._eyes.wait()

    def watch_session(self, session: str) -> None:
        """In a thread: its subfolders too."""
        self._eyes.watch_session(session)

    def unwatch_session(self, session: str) -> None:
        self._eyes.unwatch_session(session)

    def is_followed(self, session: str) -> bool:
        """Whether a client looks at *session* or wants to hear of its files."""
        return self.place.live.is_viewed(session) or self.around.is_followed(self.id, session)

    def ground(self) -> Ground:
        """Where its files are served."""
        return Ground(self.place.root, self.place.root, self.around.others())

    async def in_pool(self, work: Callable[[_T], _R], argument: _T) -> _R:
        """Run slow work that only reads in a pool thread."""
        return await self._loop.run_in_executor(self.around.pool, work, argument)

    def unread(self) -> tuple[str, ...]:
        """Ids of the sessions with unread messages that are neither hidden nor archived, the latest first."""
        rows = [row for row in self.sessions if row.is_unread]
        return tuple(row.id for row in sorted(rows, key=lambda row: (-row.at, row.id)))

    def has(self, noun: str, id: str) -> bool:
        if noun == "sessions":
            return self.sessions.get(id) is not None
        return self.tables[noun].find(id) is not None

    def labels(self) -> dict[str, Record]:
        """All labels by id, in the order of their file. Any thread."""
        rows = sorted(list(self.tables["labels"].index.rows.values()), key=lambda row: row.place)
        return {row.id: row.value for row in rows}

    def issues(self) -> dict[str, list[Issue]]:
        """Everything that is wrong with files, by path relative to the workspace."""
        if not self.place.root.is_dir():
            message = f"the folder {self.place.root} is not there; what is listed is what was known of it"
            gone = Issue(path="", message=message, code="folder-missing", noun="workspaces", id=self.id)
            return {"": [gone]}
        found: dict[str, list[Issue]] = {}
        for table in (*self.tables.values(), self.checked):
            for path, issues in table.issues().items():
                found.setdefault(path, []).extend(issues)
        for row in self.sessions:
            if row.damage:
                found[foreign.issue_path(row.id)] = foreign.damage_issues(row.id, row.damage)
        found |= foreign.empty_folders(self.place.root, self.around.clock())
        return found | foreign.conflict_copies(self.place.root)

    # Writing

    async def commit(self, commit: Commit) -> Done:
        """Queue *commit* and wait until it is durable and announced."""
        if isinstance(commit, FileCommit) and (session := session_of(commit.parts)) is not None:
            self.files.want(session)
        if isinstance(commit, SessionCommit):
            self._touched[commit.id] = time.monotonic()
            self.files.want(commit.id)
        return await self._queue.commit(commit)

    def submit(self, commit: SessionCommit) -> asyncio.Future[Done]:
        """Queue *commit* now; the future holds its answer."""
        self._touched[commit.id] = time.monotonic()
        return self._queue.submit(commit)

    def new_session_id(self, promised: Counter[str]) -> str:
        """A free id; *promised*: those of sessions that are about to be made."""
        today = date(*time.localtime(self.around.clock() / 1000)[:3])
        return new_session_id(today, self.around.pick, Taken(self.sessions, promised))

    def facts(self, table: Table | None = None, id: str | None = None, promised: Iterable[str] = ()) -> Facts:
        """What a pure rule may know; for a new record of *table*: which names are taken, *promised* ones among them,
        and the *id* asked for.
        """
        taken: frozenset[str] = frozenset()
        beside: dict[str, Record] = {}
        if table is not None:
            folders = (key.rpartition("/")[2] for key in table.documents)
            taken = frozenset((*table.index.rows, *folders, *promised))
            beside = {row.id: row.value for row in table.index}
        around = self.around
        return Facts(now=around.clock(), pick=around.pick, home=around.home, taken=taken, id=id, beside=beside)

    def tell_missed(self) -> None:
        """Announce what changed on disk while no daemon ran: somebody listens now."""
        if self.journal.missed:
            for change in self.journal.catch_up(self.now()):
                self.announce(change)
        if not self._told:
            self._told = True
            self.supervise(self._verify(lambda row: row.away is not None))

    async def fold_all(self) -> None:
        """Bring line 1 of every session up to date; a session that cannot be folded stays as it is."""
        behind = [row.id for row in self.sessions if row.behind]
        results = await asyncio.gather(*(self._fold(id) for id in behind), return_exceptions=True)
        for error in results:
            if isinstance(error, BaseException) and not isinstance(error, CraftdError):
                raise error

    async def _fold(self, id: str) -> None:
        await self._queue.commit(Fold(origin=DAEMON, id=id))

    # What the queue needs (Backing)

    def now(self) -> int:
        return self.around.clock()

    def writing(self, unit: Unit) -> AbstractContextManager[None]:
        return self.guard.writing()

    def announce(self, change: Change) -> None:
        for listener in list(self.listeners):
            listener(self.id, change)

    def open_unit(self, key: str) -> Unit:
        """Raises NotFound when the folder of the workspace is gone: it is never made again."""
        if not self.place.root.is_dir():
            raise NotFound(Ref("workspaces", self.id))
        if key.startswith(FILES):
            return FileUnit(key, self.ground(), self.files)
        if key == AUTOMATIONS:
            return AutomationsUnit(self.place.root)
        if key == TRASH:
            return TrashUnit(self.place.root)
        if key.startswith(SESSIONS):
            id = key.removeprefix(SESSIONS)
            return SessionUnit(
                key,
                self.place,
                self.sessions,
                self.around.pick,
                self.transcripts.get(id),
                self.sessions.get(id),
                owed=self.owed.get(id, []),
                viewed=self.place.live.is_viewed(id),
            )
        table = self.checked if key.startswith(ISSUES) else self.table_of(key)
        return DocumentUnit(key, self.place.root, table, self.facts(), table.documents.get(key), table.records(key))

    def table_of(self, path: str) -> Table:
        """The table a document key belongs to."""
        for table in self.tables.values():
            if table.shelf.key_of(path) is not None:
                return table
        raise InternalError(f"no noun lives in {path}")

    def preparation(self, key: str, commits: Sequence[Commit]) -> Callable[[], Any] | None:
        if key.startswith(FILES):
            return self._preparation_of_file(commits[0])
        if not key.startswith(SESSIONS):
            return None
        id = key.removeprefix(SESSIONS)
        transcript, row = self.transcripts.get(id), self.sessions.get(id)
        if works := [work for commit in commits if (work := commit.ahead()) is not None]:
            return partial(run_ahead, works, (transcript, None))
        size = row.fingerprint.size if row is not None and row.fingerprint is not None else 0
        heavy = size > PREPARE_ABOVE and any(commit.rewrites for commit in commits)
        if transcript is not None and not heavy:
            return None
        if transcript is None and not self.place.folder(id).exists():
            return None
        return lambda: self._prepare(key, transcript, commits if heavy else ())

    def _preparation_of_file(self, commit: Commit) -> Callable[[], Any] | None:
        if not isinstance(commit, WriteFile) or not commit.source.heavy:
            return None
        ground = self.ground()

        def prepare() -> Any:
            try:
                with self.guard.writing():
                    return prepare_early(ground, commit)
            except (ReadOnly, OSError):
                return None

        return prepare

    def _prepare(self, key: str, transcript: Transcript | None, commits: Sequence[Commit]) -> Any:
        """In a pool thread; no commit on this unit runs meanwhile.

        What fails here is tried again in the round, where it gets its verdict.
        """
        id = key.removeprefix(SESSIONS)
        row: SessionRow | None = self.sessions.get(id)
        if transcript is None:
            path = self.place.folder(id) / "session.jsonl"
            try:
                transcript = Transcript.load(path, str(path.parent), sound_of(row))
            except OSError:
                return None, None
        prepared = None
        if commits and row is not None and row.readable and transcript.writable and transcript.check():
            viewed = self.place.live.is_viewed(id)
            unit = SessionUnit(
                key, self.place, self.sessions, self.around.pick, transcript, row, header=row.stored, viewed=viewed
            )
            for commit in commits:
                try:
                    commit.plan(unit, self.now())
                except (CraftdError, OSError, ForeignWrite, Stale):
                    continue
            if unit.rewrites:
                try:
                    prepared = transcript.prepare(unit.complete(), replaced=unit.draft.replaced)
                except (OSError, ForeignWrite):
                    pass
        return transcript, prepared

    def prepared(self, unit: Unit, result: Any) -> None:
        if isinstance(unit, FileUnit):
            unit.take(result)
            return
        assert isinstance(unit, SessionUnit)
        unit.transcript, unit.prepared = result

    def abandoned(self, result: Any) -> None:
        if isinstance(result, Prepared):
            result.discard()
        if not isinstance(result, tuple):
            return
        transcript, prepared = result
        if prepared is not None:
            prepared.discard()
        if transcript is not None and transcript not in self.transcripts.values():
            transcript.close()

    def settled(self, units: Sequence[Unit]) -> None:
        """After a round, in the thread: keep the transcripts that were used, close the longest unused."""
        for unit in units:
            if isinstance(unit, FileUnit):
                unit.tidy()
            if isinstance(unit, SessionUnit):
                if unit.prepared is not None:  # its commits came to nothing
                    unit.prepared.discard()
                if unit.transcript is None:
                    self.transcripts.pop(unit.id, None)
                else:
                    self.transcripts[unit.id] = unit.transcript
                    self.transcripts.move_to_end(unit.id)
                self._settle_debts(unit)
                if unit.gone and unit.row is not None:
                    self._loop.call_soon_threadsafe(self._eyes.missing, unit.id)
                elif unit.row is not None and unit.row.behind and unit.transcript and unit.transcript.needs_fold:
                    self._loop.call_soon_threadsafe(self._fold_soon, unit.id)
        for id in list(self.transcripts)[: max(0, len(self.transcripts) - OPEN_TRANSCRIPTS)]:
            row = self.sessions.get(id)
            if row is not None and row.behind:  # it alone knows which of the lines are not on line 1
                self._loop.call_soon_threadsafe(self.quietly, Fold(origin=DAEMON, id=id))
            else:
                self.transcripts.pop(id).close()

    def _settle_debts(self, unit: SessionUnit) -> None:
        if unit.owed:
            self.owed[unit.id] = unit.owed
            self._loop.call_soon_threadsafe(self._loop.call_later, MEND_AFTER, self._mend, unit.id)
        else:
            self.owed.pop(unit.id, None)

    def _mend(self, id: str) -> None:
        if id in self.owed and not self._closed:
            self.quietly(Mend(origin=DAEMON, id=id))

    def _fold_soon(self, id: str) -> None:
        if not self._closed:
            self.quietly(Fold(origin=DAEMON, id=id, only_if_due=True))

    def quietly(self, commit: Commit) -> asyncio.Future[Done] | None:
        """Submit work nobody waits for; its failure is logged, not raised."""
        try:
            future = self._queue.submit(commit)
        except ServerCancelled:
            return None
        future.add_done_callback(_log_failure)
        return future

    # Foreign edits

    def hint(self, paths: Iterable[str]) -> None:
        """Somebody says that these files (absolute) changed."""
        self._eyes.hint(paths)

    async def sync(self) -> None:
        """Barrier: everything done to files and asked of the queue before this call is published after it."""
        await asyncio.wait([self._tidying, self._verifying, self._finishing])
        await self._eyes.sweep()
        await self._eyes.decided()
        self.tell_missed()
        await self._verify(lambda row: row.away is not None)
        await self._queue.commit(Nothing(origin=DAEMON))

    async def _read_first(self) -> None:
        """Read whole what the workspace was opened without."""
        self.first_reading.total = sum(row.body is None and row.fingerprint is not None for row in self.sessions)
        try:
            await self._verify(lambda row: row.body is None, self.first_reading.step)
        finally:
            self.first_reading.finish()

    async def _verify(self, wanted: Callable[[SessionRow], bool], read: Callable[[], None] = lambda: None) -> None:
        """Read whole what was only known by its first line, or changed while no daemon ran. read: told of each."""
        rows: list[SessionRow] = list(self.sessions)
        for row in rows:
            if not wanted(row) or row.fingerprint is None or self.sessions.get(row.id) is not row:
                continue
            fresh = await self.in_pool(foreign.verified, row) if row.away is None else row
            read()
            if self.sessions.get(row.id) is not row:
                continue
            if fresh is not row and foreign.shows_the_same(fresh, row):
                self.sessions.put(fresh)
                continue
            future = self.quietly(Reconcile(origin=DISK, id=row.id))
            if future is None:
                return
            await asyncio.wait([future])

    async def _keep_house(self) -> None:
        """Fold what has been quiet, sweep now and then."""
        last_sweep = time.monotonic()
        while True:
            was_read_only = self.read_only
            await asyncio.sleep(min(self.around.house_every, self.around.fold_after / 4))
            now = time.monotonic()
            await self._loop.run_in_executor(self.around.pool, self._look_at_lock)
            if not self.read_only:
                self.retention.keep_house()
                self._write_what_is_due(now)
                if was_read_only:
                    self._tidying = self.supervise(self._tidy())
                    self._finishing = self.supervise(self._finish())
            self.files.keep_house()
            if now - last_sweep >= self.around.sweep_every:
                last_sweep = now
                await self._eyes.sweep()

    def _write_what_is_due(self, now: float) -> None:
        for id, at in list(self._touched.items()):
            if now - at >= self.around.fold_after:
                row = self.sessions.get(id)
                if row is None or not row.behind:
                    del self._touched[id]
                elif id not in self._folding:  # one that fails is due again at the next look
                    self._fold_when_due(id)
        for id in list(self.owed):
            self._mend(id)

    def _fold_when_due(self, id: str) -> None:
        future = self.quietly(Fold(origin=DAEMON, id=id))
        if future is not None:
            self._folding.add(id)
            future.add_done_callback(lambda _: self._folding.discard(id))

    async def _tidy(self) -> None:
        """Remove what a killed daemon left; not where another machine may be writing in this moment."""
        if self.protected:
            await self._loop.run_in_executor(self.around.pool, tidy, self.guard, written_folders(self.place.root))

    async def _finish(self) -> None:
        """What a daemon before this one began and could not end."""
        if not self.read_only:
            await finish_all(self)

    def _look_at_lock(self) -> None:
        try:
            self.guard.look()
        except OSError:
            pass  # the folder is not there; the registry says so


@define(eq=False, kw_only=True)
class Nothing(Commit):
    """A place in the queue."""

    promises = False

    @property
    def unit(self) -> str:
        return "labels/config.json"

    def plan(self, unit: Unit, now: int) -> Planned:
        return Planned(None)


def _session_sort_value(row: SessionRow, name: str) -> Any:
    return row.at if name == "lastMessageAt" else row.value.get(name)


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        log.exception("background work failed")


def _log_failure(future: asyncio.Future[Done]) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        log.warning("background work failed: %s", error)
