"""What is known of files that are no records, from when somebody wants to hear of them.

Nothing says what happened to a file, so what was there is remembered: a fingerprint per file of every folder that is
watched. The subfolders of a session are watched, and known, while it is open: somebody looks at it, follows it, or
changed it a while ago.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from craftd.model.files import is_hidden
from craftd.store import atomic, layout
from craftd.store.atomic import Fingerprint
from craftd.workspace.commit import Done
from craftd.workspace.files import LookAtFile
from craftd.workspace.journal import DISK

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace

OPEN_SECONDS: Final = 600.0
"""How long a session counts as open after the last change of it."""

_ANOTHER: Final = Fingerprint(0, 0, 0, 0)
"""Of a file that was there, and may have changed since it was looked at."""


class SeenFiles:
    """Made and used on the event loop; `known` and `certain` are also read by the thread of the scope."""

    def __init__(self, workspace: Workspace) -> None:
        self.on = False
        """Somebody has asked for files."""
        self.known: dict[str, Fingerprint] = {}
        self._workspace = workspace
        self._open: dict[str, float] = {}
        """Sessions whose subfolders are watched; monotonic seconds of the last sign that somebody wants them."""
        self._scanning: set[str] = set()
        """Places that are being looked at for the first time: "" or a session's id."""
        self._early: set[str] = set()
        """Paths that were reported in the meantime, and"""
        self._ours: set[str] = set()
        """paths of which readers were told in the meantime."""
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, sessions: Iterable[str] = ()) -> None:
        """Somebody wants to hear of files; of these sessions from now on."""
        if not self.on:
            self.on = True
            self._scan("")
        for session in sessions:
            self.want(session)

    def want(self, session: str) -> None:
        """*session* is open."""
        if not self.on:
            return
        fresh = session not in self._open
        self._open[session] = time.monotonic()
        if fresh:
            self._scan(session)

    def keep_house(self) -> None:
        """Leave the sessions that nobody has open any more."""
        now = time.monotonic()
        for session, last in list(self._open.items()):
            if self._workspace.is_followed(session):
                self._open[session] = now
            elif now - last >= OPEN_SECONDS and session not in self._scanning:
                del self._open[session]
                prefix = f"sessions/{session}/"
                for path in [path for path in self.known if path.startswith(prefix) and path.count("/") > 2]:
                    del self.known[path]
                self._workspace.unwatch_session(session)

    def covers(self, path: str) -> bool:
        """Whether changes of this file are told."""
        parts = tuple(path.split("/"))
        if not self.on or any(map(is_hidden, parts)) or layout.noun_of(parts) is not None:
            return False
        if parts[0] == "sessions" and len(parts) > 3 and parts[1] not in self._open:
            return False
        return self._workspace.watches("/".join(parts[:-1]))

    def certain(self, path: str) -> bool:
        """Whether `known` says what was there."""
        return not self._is_scanned(path) and self.covers(path)

    def _is_scanned(self, path: str) -> bool:
        parts = path.split("/")
        return "" in self._scanning or (parts[0] == "sessions" and len(parts) > 3 and parts[1] in self._scanning)

    def settle(self, path: str, now: Fingerprint | None) -> None:
        """This is what readers know of the file."""
        if self._is_scanned(path):
            self._ours.add(path)
        if now is None:
            self.known.pop(path, None)
        else:
            self.known[path] = now

    def note(self, paths: Iterable[str]) -> list[asyncio.Future[Done]]:
        """Something happened to these files, or to folders that held some."""
        if not self.on:
            return []
        wanted: set[str] = set()
        for path in paths:
            found = [path] if path in self.known else [known for known in self.known if known.startswith(f"{path}/")]
            for one in found or [path]:
                if self._is_scanned(one):
                    self._early.add(one)
                elif self.covers(one):
                    wanted.add(one)
        futures = [self._workspace.quietly(LookAtFile(origin=DISK, path=path)) for path in sorted(wanted)]
        return [future for future in futures if future is not None]

    async def sweep(self) -> list[asyncio.Future[Done]]:
        """Look for what no watch told."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if not self.on:
            return []
        before = dict(self.known)
        now = await self._workspace.in_pool(self._list, "")
        return self.note({path for path in before.keys() | now.keys() if before.get(path) != now.get(path)})

    def _scan(self, place: str) -> None:
        self._scanning.add(place)
        task = self._workspace.supervise(self._scanned(place))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _scanned(self, place: str) -> None:
        try:
            found = await self._workspace.in_pool(self._first_look, place)
            self.known |= {path: mark for path, mark in found.items() if path not in self._ours}
        finally:
            self._scanning.discard(place)
        early = {path for path in self._early if not self._is_scanned(path)}
        for path in (early & self.known.keys()) - self._ours:  # it changed before or after it was looked at
            self.known[path] = _ANOTHER
        self._early -= early
        self._ours = {path for path in self._ours if self._is_scanned(path)}
        self.note(early)

    def _first_look(self, place: str) -> dict[str, Fingerprint]:
        """In a thread: begin to watch, then see what is there."""
        if not place:
            self._workspace.wait_for_watches()
            return self._list("")
        self._workspace.watch_session(place)
        return self._list(f"sessions/{place}")

    def _list(self, top: str) -> dict[str, Fingerprint]:
        """All files that are covered, below *top*."""
        found: dict[str, Fingerprint] = {}
        root = self._workspace.place.root
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(root / folder) as entries:
                    for entry in entries:
                        path = f"{folder}/{entry.name}" if folder else entry.name
                        if is_hidden(entry.name):
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            if self._workspace.watches(path):
                                waiting.append(path)
                        elif entry.is_file(follow_symlinks=False) and self.covers(path):
                            found[path] = atomic.of_stat(entry.stat(follow_symlinks=False))
            except OSError:
                continue  # it went while we looked
        return found
