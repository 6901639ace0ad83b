"""What changed on disk below one folder, as relative paths; what may have been missed is said, so that callers sweep.

The only file that knows watchdog. On Linux its inotify reader (`InotifyFD`, one thread and one kernel queue for the
process) is used without its observer and emitters, and this file keeps the table of watched folders itself, because
the ones above it walk everything, hold all events up to 0.5 s behind a folder that was moved out, keep watching it
there, and after an overflow take all watches off first, which floods the queue again from 16,384 folders on.
Elsewhere watchdog's observer of the platform watches everything and the same rules pick from what it reports.

A folder is watched first and listed second, so nothing in it falls between. Paths are hints: one report may stand for
several changes, one change may be reported twice, and nothing is said about what happened; look at the file.
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

if sys.platform == "linux":
    from watchdog.observers.inotify_c import (
        CallbackId,
        InotifyConstants,
        InotifyEvent,
        InotifyFD,
        Mask,
        WatchDescriptor,
    )

log = logging.getLogger(__name__)

WORKSPACE: Mapping[str, int] = {
    "labels": 1,
    "statuses": 2,  # icons/
    "sources": 3,
    "skills": 3,
    "projects": 3,  # <slug>/assets/
    "tasks": 4,  # <slug>/runs/<run>/run-log.jsonl
    "sessions": 2,  # the subfolders of those that are open, see SESSION_LEVELS: always, they would be six more for each
}
"""Folders of a workspace and how many levels of each are watched, itself being the first.

What craftd serves of a source or skill lies in its own folder; the third level holds the `scripts/` and `references/`
that texts point at. Below that come installed packages and checkouts: thousands of folders that nothing here reads.
"""

HOME: Mapping[str, int] = {"permissions": 1, "themes": 1, "tool-icons": 1}
"""The same for the configuration folder, whose `workspaces/`, `logs/` and `craftd/` are somebody else's business."""

SESSION_LEVELS = 4
"""The same for a session that is open: `sessions/<id>/downloads/assets/`."""

UNWATCHED = frozenset({"node_modules", "__pycache__", "venv"})

QUIET = 0.02
"""Seconds a path must be quiet before it is reported."""
LONGEST = 0.2
"""Seconds after which a path that never gets quiet is reported all the same."""

OVERFLOW = "overflow"
"""The system dropped events: anything may have changed."""
UNWATCHED_FOLDER = "unwatched"
"""A folder could not be watched or listed (limit of watches, rights): what happens in it goes unseen."""
GONE = "gone"
"""The watched folder itself was moved, deleted or unmounted. Nothing comes after this; start a new watcher."""


class Watcher:
    """Watches *root* from a thread of its own, which also makes all callbacks, one at a time.

    on_paths: relative POSIX paths, "a/b"; names that are not UTF-8 carry surrogate escapes. A new or moved-in folder
    comes with what was found in it. Own temporary names (`.*.tmp`) and folders whose name starts with a dot are
    left out. Linked folders are not entered.
    on_lost: OVERFLOW, UNWATCHED_FOLDER or GONE; many failures at once make one call.
    rooms: folder names in *root* -> levels watched, see WORKSPACE.
    ready is set when all watches stand: what changes after that is reported, what changed before needs a look.
    """

    def __init__(
        self,
        root: Path,
        on_paths: Callable[[set[str]], None],
        on_lost: Callable[[str], None],
        rooms: Mapping[str, int] = WORKSPACE,
    ) -> None:
        self.root = os.path.realpath(root)
        self.ready = threading.Event()
        self.overflows = 0
        self.failed = 0
        """Folders that could not be watched or listed, counted at every attempt."""
        self._on_paths = on_paths
        self._on_lost = on_lost
        self._rooms = rooms
        self._opened: frozenset[str] = frozenset()
        self._changed = threading.Condition()
        self._pending: dict[str, tuple[float, float]] = {}  # path -> first and last seen (monotonic seconds)
        self._losses: dict[str, None] = {}  # an ordered set
        self._stopping = False
        self._folders: _Folders = _folders(self)
        self._thread = threading.Thread(target=self._run, name="craftd-watch", daemon=True)

    def start(self) -> None:
        """Return at once; `ready` tells when the watches stand."""
        self._thread.start()

    def stop(self) -> None:
        """No callback starts after this returns (unless called from one)."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._folders.close()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self.ready.set()

    def watch_session(self, session: str) -> None:
        """Also watch the subfolders of *session*, now and when they appear. Read them after this returns."""
        with self._changed:
            self._opened |= {session}
        self._folders.place(f"sessions/{session}")

    def unwatch_session(self, session: str) -> None:
        with self._changed:
            self._opened -= {session}
        self._folders.drop_below(f"sessions/{session}")

    @property
    def watches(self) -> int:
        """Number of folders watched; 1 where the system watches a whole tree."""
        return self._folders.count

    # For the folder tables below.

    @property
    def stopping(self) -> bool:
        return self._stopping

    def wants(self, folder: str) -> bool:
        """Is the folder with this relative path ("" = root) one to watch?"""
        if not folder:
            return True
        parts = folder.split("/")
        if any(part.startswith(".") or part in UNWATCHED for part in parts):
            return False
        return len(parts) <= self._levels(parts)

    def wants_below(self, folder: str) -> bool:
        """May a folder directly in *folder* be one to watch?"""
        if not folder:
            return True
        parts = folder.split("/")
        return len(parts) < self._levels(parts)

    def _levels(self, parts: list[str]) -> int:
        if len(parts) > 1 and parts[0] == "sessions" and parts[1] in self._opened:
            return SESSION_LEVELS
        return self._rooms.get(parts[0], 0)

    def note(self, paths: Iterable[str]) -> None:
        now = time.monotonic()
        with self._changed:
            idle = not self._pending
            for path in paths:
                first, _ = self._pending.get(path, (now, now))
                self._pending[path] = (first, now)
            if idle and self._pending:
                self._changed.notify()

    def lost(self, reason: str) -> None:
        with self._changed:
            if reason == OVERFLOW:
                self.overflows += 1
            elif reason == UNWATCHED_FOLDER:
                self.failed += 1
            self._losses[reason] = None
            self._changed.notify()

    def _run(self) -> None:
        self._folders.open()
        self.ready.set()
        while (batch := self._next()) is not None:
            losses, paths = batch
            try:
                for reason in losses:
                    self._on_lost(reason)
                if paths:
                    self._on_paths(paths)
            except Exception:  # one failing report must not end all later ones
                log.exception("a change on disk could not be handed on")

    def _next(self) -> tuple[list[str], set[str]] | None:
        """Wait for something to report: losses, paths; None at the end."""
        with self._changed:
            while not self._stopping:
                now = time.monotonic()
                paths = {
                    path
                    for path, (first, last) in self._pending.items()
                    if now >= last + QUIET or now >= first + LONGEST
                }
                losses = list(self._losses)
                if paths or losses:
                    self._losses.clear()
                    for path in paths:
                        del self._pending[path]
                    return losses, paths
                self._changed.wait(QUIET if self._pending else None)
        return None


def _is_noise(name: str, is_folder: bool) -> bool:
    return name.startswith(".") and (is_folder or name.endswith(".tmp"))


class _Folders(Protocol):
    """The folders watched for one Watcher, named by their paths below its root ("" = root)."""

    @property
    def count(self) -> int: ...
    def open(self) -> None: ...
    def place(self, top: str) -> None: ...
    def drop_below(self, top: str) -> None: ...
    def close(self) -> None: ...


class _ObservedFolders:
    """The whole tree under watchdog's observer of this platform; the rules are applied to what it reports."""

    count = 1

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._observer = Observer()

    def open(self) -> None:
        handler = FileSystemEventHandler()
        handler.on_any_event = self._on_event  # type: ignore[method-assign]
        # Without a filter its own walk causes events (opened, closed unwritten) that it then has to handle.
        kinds: list[type[FileSystemEvent]] = [
            FileCreatedEvent,
            FileModifiedEvent,
            FileDeletedEvent,
            FileMovedEvent,
            DirCreatedEvent,
            DirDeletedEvent,
            DirMovedEvent,
        ]
        try:
            self._observer.schedule(handler, self._watcher.root, recursive=True, event_filter=kinds)
            self._observer.start()
        except OSError as error:
            log.warning("cannot watch: %s", errno.errorcode.get(error.errno or 0, error.errno))
            self._watcher.lost(GONE)

    def place(self, top: str) -> None:
        """Everything is watched already."""

    def drop_below(self, top: str) -> None:
        """The rules leave it out."""

    def close(self) -> None:
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()

    def _on_event(self, event: FileSystemEvent) -> None:
        if self._watcher.stopping:
            return
        for path in (event.src_path, event.dest_path):
            if not path:
                continue
            relative = os.path.relpath(os.fsdecode(path), self._watcher.root).replace(os.sep, "/")
            if relative == ".":
                if isinstance(event, (DirDeletedEvent, DirMovedEvent)):
                    self._watcher.lost(GONE)
                continue
            folder, _, name = relative.rpartition("/")
            if self._watcher.wants(folder) and not _is_noise(name, event.is_directory):
                self._watcher.note((relative,))


if sys.platform == "linux":
    # No DELETE_SELF: the kernel's IGNORED says the same of every folder. No ATTRIB, OPEN, CLOSE: no content in them.
    _MASK = Mask(
        InotifyConstants.IN_CREATE
        | InotifyConstants.IN_DELETE
        | InotifyConstants.IN_MODIFY
        | InotifyConstants.IN_MOVED_FROM
        | InotifyConstants.IN_MOVED_TO
        | InotifyConstants.IN_MOVE_SELF
        | InotifyConstants.IN_ONLYDIR
        | InotifyConstants.IN_DONT_FOLLOW
    )
    _ids = itertools.count(1)
    _VANISHED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
    _CHUNK = 1000

    class _InotifyFolders:
        """A table of kernel watches that follows the events, in the order in which the kernel queued them.

        An event about a folder's name ends what was known under that name and then looks at what is there now. So
        after the last event about a name its watch is right, whatever came in between: moved, exchanged, deleted and
        made again. A watch belongs to a folder (inode), not a name: asking for it again answers the same number.
        """

        def __init__(self, watcher: Watcher) -> None:
            self._watcher = watcher
            self._reader: InotifyFD  # since open()
            self._is_open = False
            self._lock = threading.RLock()
            self._by_watch: dict[WatchDescriptor, tuple[str, CallbackId]] = {}
            self._by_path: dict[str, WatchDescriptor] = {}
            self._below: dict[str, set[str]] = {}  # path -> watched paths directly in it

        @property
        def count(self) -> int:
            return len(self._by_watch)

        def open(self) -> None:
            try:
                self._reader = InotifyFD.get_instance()
            except OSError as error:  # 128 of them per user is a common limit
                self._failed(error.errno)
                return
            with self._lock:
                self._is_open = not self._watcher.stopping
            if "" not in self._place("", report=False) and self._is_open:
                self._watcher.lost(GONE)

        def place(self, top: str) -> None:
            self._place(top, report=False)

        def drop_below(self, top: str) -> None:
            with self._lock:
                for path in tuple(self._below.get(top, ())):
                    self._drop(path)

        def _drop(self, top: str) -> None:
            with self._lock:
                paths = [top]
                for path in paths:  # grows while it is read
                    paths.extend(self._below.get(path, ()))
                for path in reversed(paths):
                    if (watch := self._by_path.get(path)) is not None:
                        self._take_off(watch)

        def close(self) -> None:
            with self._lock:
                self._is_open = False
                watches = [(watch, id_) for watch, (_, id_) in self._by_watch.items()]
                self._by_watch.clear()
                self._by_path.clear()
                self._below.clear()
            # Each removal queues an event: leave the reader, which others share, room to take them out.
            for start in range(0, len(watches), _CHUNK):
                self._reader.remove_callbacks(watches[start : start + _CHUNK])

        # Called by watchdog's reader thread.

        def on_event(self, event: InotifyEvent) -> None:
            try:
                self._on_event(event)
            except Exception:  # would end the reader, and with it all watching in this process
                log.exception("an event could not be read")
                self._watcher.lost(OVERFLOW)

        def on_queue_overflow(self) -> None:
            with self._lock:
                known = set(self._by_path)
                for path in known - self._place("", report=False):
                    self._drop(path)
            self._watcher.lost(OVERFLOW)

        def on_watch_deleted(self, wd: WatchDescriptor) -> None:
            with self._lock:
                if wd in self._by_watch and self._forget(wd) == "":
                    self._watcher.lost(GONE)

        def _on_event(self, event: InotifyEvent) -> None:
            with self._lock:
                parent, _ = self._by_watch.get(event.wd, (None, None))
            if parent is None:
                return
            if not event.name:
                if event.is_move_self and parent == "":
                    self._drop("")
                    self._watcher.lost(GONE)
                return
            name = os.fsdecode(event.name)
            if _is_noise(name, event.is_directory):
                return
            path = f"{parent}/{name}" if parent else name
            self._watcher.note((path,))
            if event.is_directory:
                if event.is_delete or event.is_moved_from:
                    self._drop(path)
                if self._watcher.wants(path):
                    self._place(path, report=True)

        def _place(self, top: str, report: bool) -> set[str]:
            """Watch *top* and what is wanted below it, and report what was found there; the paths now watched."""
            placed: set[str] = set()
            waiting = [top]
            while waiting:
                path = waiting.pop()
                with self._lock:
                    if not self._put_on(path):
                        continue
                placed.add(path)
                if report or self._watcher.wants_below(path):
                    found, folders = self._list(path)
                    waiting.extend(folders)
                    if report:
                        self._watcher.note(found)
            return placed

        def _list(self, path: str) -> tuple[list[str], list[str]]:
            """Paths of all entries of a folder, and of the folders among them that are to be watched."""
            found: list[str] = []
            folders: list[str] = []
            try:
                with os.scandir(self._full(path)) as entries:
                    for entry in entries:
                        is_folder = entry.is_dir(follow_symlinks=False)
                        if _is_noise(entry.name, is_folder):
                            continue
                        child = f"{path}/{entry.name}" if path else entry.name
                        found.append(child)
                        if is_folder and self._watcher.wants(child):
                            folders.append(child)
            except OSError as error:
                if error.errno not in _VANISHED:
                    self._failed(error.errno)
            return found, folders

        def _put_on(self, path: str) -> bool:
            """Make the table right for the folder that is at *path* now; False if none is, or it cannot be watched."""
            if not self._is_open:
                return False
            id_ = CallbackId(next(_ids))  # a fresh one each time: the reader complains about one it has already
            try:
                watch = self._reader.add_callback(os.fsencode(self._full(path)), _MASK, self, id_)
            except OSError as error:
                if error.errno not in _VANISHED:
                    self._failed(error.errno)
                return False
            if watch == -1:  # how the reader answers EACCES
                self._reader.remove_callbacks([(watch, id_)])
                self._failed(errno.EACCES)
                return False
            if watch in self._by_watch:
                self._reader.remove_callbacks([(watch, id_)])
                id_ = self._by_watch[watch][1]
                self._forget(watch)
            if (other := self._by_path.get(path)) is not None:
                self._take_off(other)
            self._by_watch[watch] = (path, id_)
            self._by_path[path] = watch
            if path:
                self._below.setdefault(path.rpartition("/")[0], set()).add(path)
            return True

        def _take_off(self, watch: WatchDescriptor) -> None:
            id_ = self._by_watch[watch][1]
            self._forget(watch)
            self._reader.remove_callbacks([(watch, id_)])

        def _forget(self, watch: WatchDescriptor) -> str:
            path, _ = self._by_watch.pop(watch)
            del self._by_path[path]
            parent = path.rpartition("/")[0]
            if path and (siblings := self._below.get(parent)) is not None:
                siblings.discard(path)
                if not siblings:
                    del self._below[parent]
            return path

        def _full(self, path: str) -> str:
            return os.path.join(self._watcher.root, path) if path else self._watcher.root

        def _failed(self, number: int | None) -> None:
            log.warning("a folder cannot be watched: %s", errno.errorcode.get(number or 0, number))
            self._watcher.lost(UNWATCHED_FOLDER)

    _folders: Callable[[Watcher], _Folders] = _InotifyFolders
else:
    _folders = _ObservedFolders
