"""What a workspace sees of its files: the watcher, sweeps for what no watch told, files that vanished.

Everything seen becomes a commit that looks at one unit; the unit finds out whether anything changed.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from attrs import define

from craftd.model.ids import is_session_id
from craftd.store import atomic, conflicts
from craftd.store.layout import CHECKED
from craftd.store.watch import GONE, Watcher
from craftd.workspace import foreign
from craftd.workspace.commit import Commit, Done, Planned, Unit
from craftd.workspace.journal import DISK
from craftd.workspace.rows import SessionRow
from craftd.workspace.sessions import SESSIONS, Reconcile

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace

log = logging.getLogger(__name__)

DELETED_AFTER = 1.0
"""Seconds a session's file must be missing before it counts as deleted: some programs unlink and then rename."""

SETTINGS = "config.json"
"""The one file of the folder itself that is read: by the global scope."""


class Eyes:
    """Made and used on the event loop."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._loop = asyncio.get_running_loop()
        self._watcher: Watcher | None = None
        self._blind = False
        self._vanished: dict[str, asyncio.Event] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._sweep_again = False
        self._closed = False
        self._sessions: set[str] = set()
        self.failed = 0
        """Folders that could not be watched, and"""
        self.overflows = 0
        """times the system dropped events, by watchers that had to be replaced."""

    # Life

    def open(self) -> None:
        """Begin to watch; what changed before the watches stood is looked for once they do."""
        watcher = Watcher(self._workspace.place.root, self._paths_changed, self._lost)
        self._watcher, self._blind = watcher, False
        for session in self._sessions:
            watcher.watch_session(session)
        watcher.start()
        self._workspace.supervise(self._look_once(watcher))

    async def _look_once(self, watcher: Watcher) -> None:
        await self._loop.run_in_executor(self._workspace.around.pool, watcher.ready.wait)
        await self.sweep()

    def close(self) -> None:
        self._closed = True
        if self._watcher is not None:
            self._watcher.stop()

    @property
    def closed(self) -> bool:
        return self._closed

    def wait(self) -> None:
        """In a thread: until the watches stand."""
        if self._watcher is not None:
            self._watcher.ready.wait()

    def wants(self, folder: str) -> bool:
        """Is the folder (relative to the workspace) one that is watched?"""
        return self._watcher is not None and self._watcher.wants(folder)

    def watch_session(self, session: str) -> None:
        """In a thread: its subfolders too."""
        self._sessions.add(session)
        if self._watcher is not None:
            self._watcher.watch_session(session)

    def unwatch_session(self, session: str) -> None:
        self._sessions.discard(session)
        if self._watcher is not None:
            self._watcher.unwatch_session(session)

    def status(self) -> dict[str, int]:
        """watches: folders watched; failedWatches, overflows: why some changes came late."""
        watcher = self._watcher
        assert watcher is not None
        return {
            "watches": watcher.watches,
            "failedWatches": self.failed + watcher.failed,
            "overflows": self.overflows + watcher.overflows,
        }

    # From the watcher's thread

    def _paths_changed(self, paths: set[str]) -> None:
        news = {path for path in paths if not self._is_echo(path)}
        files = paths if self._workspace.files.on else set()
        if news or files:
            self._loop.call_soon_threadsafe(self._seen, news, files)

    def _is_echo(self, path: str) -> bool:
        """Whether the file of a session is the one its row was read from: we wrote it, or have looked already."""
        if not path.startswith(SESSIONS) or conflicts.counts(path):
            return False
        row: SessionRow | None = self._workspace.sessions.get(path.split("/")[1])
        if row is None or row.fingerprint is None:
            return False
        return atomic.glance(self._workspace.place.folder(row.id) / "session.jsonl") == row.fingerprint

    def _lost(self, reason: str) -> None:
        self._loop.call_soon_threadsafe(self._missed, reason)

    # On the loop

    def hint(self, paths: Iterable[str]) -> None:
        """Somebody says that these files (absolute) changed."""
        root = self._workspace.place.root
        named = {os.path.relpath(path, root) for path in paths if path.startswith(f"{root}/")}
        self._seen(named, named)

    def _seen(self, paths: Iterable[str], files: Iterable[str]) -> None:
        self._workspace.files.note(files)
        if SETTINGS in paths:
            self._workspace.around.settings_changed()
        units: set[str] = set()
        for path in paths:
            found = self._units_of(path)
            units |= found
            if not found and "/" not in path:
                self._sweep_soon()  # a whole room came or went
        self.look_at(units)

    def _units_of(self, path: str) -> set[str]:
        """What is to be read anew; with a folder, records of several nouns may have come or gone."""
        if path.startswith(SESSIONS):
            id = path.split("/")[1]
            return ({SESSIONS + id} if is_session_id(id) else set()) | CHECKED.keys_of(path)
        keys = (table.shelf.key_of(path) for table in self._workspace.tables.values())
        return {key for key in keys if key is not None} | CHECKED.keys_of(path)

    def _missed(self, reason: str) -> None:
        if self._closed:
            return
        log.warning("%s: %s; looking at everything", self._workspace.id, reason)
        if reason == GONE:
            self._blind = True
        self._sweep_soon()

    def look_at(self, units: Iterable[str]) -> list[asyncio.Future[Done]]:
        if self._closed:
            return []
        futures = [self._workspace.quietly(_look(unit)) for unit in sorted(units)]
        return [future for future in futures if future is not None]

    # Sweeping

    def _sweep_soon(self) -> None:
        """One sweep at a time, and one more if something was missed while it ran."""
        if self._closed:
            return
        if self._sweeping is not None and not self._sweeping.done():
            self._sweep_again = True
            return
        self._sweeping = self._workspace.supervise(self._sweep_until_quiet())

    async def _sweep_until_quiet(self) -> None:
        while True:
            self._sweep_again = False
            await self.sweep()
            if not self._sweep_again:
                return

    async def sweep(self) -> None:
        """One stat per known file, one look for new ones; what differs is read again."""
        if self._blind and self._workspace.place.root.is_dir():
            self._renew()
        changed = await self._loop.run_in_executor(self._workspace.around.pool, self._differences)
        futures = self.look_at(changed)
        futures += await self._workspace.files.sweep()
        if futures:
            await asyncio.wait(futures)

    def _renew(self) -> None:
        """The folder is there again, or another one in its place."""
        watcher = self._watcher
        if watcher is not None and not self._closed:
            self.failed += watcher.failed
            self.overflows += watcher.overflows
            self._loop.run_in_executor(self._workspace.around.pool, watcher.stop)
            self.open()

    def _differences(self) -> set[str]:
        workspace = self._workspace
        if not workspace.place.root.is_dir():
            return set()
        units = foreign.changed_sessions(workspace.place, workspace.sessions.rows)
        for table in (*workspace.tables.values(), workspace.checked):
            units |= foreign.changed_documents(workspace.place.root, table)
        return units

    # Files that vanished

    def missing(self, id: str) -> None:
        """A session's file is not there: deleted, or between somebody's unlink and rename."""
        if id not in self._vanished and not self._closed:
            self._vanished[id] = asyncio.Event()
            self._loop.call_later(DELETED_AFTER, self._decide, id)

    def _decide(self, id: str) -> None:
        decided = self._vanished[id]
        future = None if self._closed else self._workspace.quietly(Reconcile(origin=DISK, id=id, final=True))

        def done(_: Any = None) -> None:
            del self._vanished[id]
            decided.set()

        if future is None:
            done()
        else:
            future.add_done_callback(done)

    async def decided(self) -> None:
        """Wait until what is missing now counts as deleted or is back."""
        for decision in list(self._vanished.values()):
            await decision.wait()


@define(eq=False, kw_only=True)
class Look(Commit):
    """Look at a document of records; its unit does the work.

    One after the other: which document a record belongs to depends on what the others turned out to hold.
    """

    promises = False
    key: str

    @property
    def unit(self) -> str:
        return self.key

    def plan(self, unit: Unit, now: int) -> Planned:
        return Planned(None)


def _look(unit: str) -> Commit:
    if unit.startswith(SESSIONS):
        return Reconcile(origin=DISK, id=unit.removeprefix(SESSIONS))
    return Look(origin=DISK, key=unit, reads=frozenset({f"{unit.partition('/')[0]}/"}))
