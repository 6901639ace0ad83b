"""May anything be written now? The Craft Agents app and craftd never write the same folder at the same time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field

from craftd.errors import ReadOnly
from craftd.store import atomic
from craftd.store.locks import AppLock, FolderLock

log = logging.getLogger(__name__)


@define(eq=False)
class Guard:
    """Holds the app's lock while craftd has something to protect. Called from the threads of all scopes.

    changed: told when writing became possible or impossible (from any thread). last: monotonic seconds of the last
    permitted round.
    """

    lock: AppLock
    clock: Callable[[], float]
    changed: Callable[[], None] = lambda: None
    last: float = 0.0
    holder: dict[str, Any] | None = None
    _writers: int = 0
    _state: threading.Condition = field(factory=threading.Condition)

    @property
    def read_only(self) -> bool:
        return self.holder is not None

    @property
    def held(self) -> bool:
        return self.lock.still_ours()

    def permit(self) -> None:
        """Take the lock, or make sure it is still ours. Raises ReadOnly while somebody else lives in it."""
        with self._state:
            self._take()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The lock is ours, and not given back before the end of the block. Raises what `permit` raises."""
        with self._state:
            self._take()
            self._writers += 1
        try:
            yield
        finally:
            with self._state:
                self._writers -= 1
                self._state.notify_all()

    def look(self) -> None:
        """Notice that a stranger came or went, without taking the lock."""
        with self._state:
            found = self.lock.inspect()
            self._set(None if found is None or found.ours else found.as_json())

    def give_back(self, unless: Callable[[], bool] = lambda: False) -> bool:
        """Others may write, now that nobody here does; no if *unless* says so in that moment."""
        with self._state:
            self._state.wait_for(lambda: not self._writers)
            if unless():
                return False
            self.lock.give_back()
            return True

    def _take(self) -> None:
        stranger = self.lock.take()
        self._set(None if stranger is None else stranger.as_json())
        if self.holder is not None:
            raise ReadOnly(self.holder)
        self.last = self.clock()

    def _set(self, holder: dict[str, Any] | None) -> None:
        before, self.holder = self.holder, holder
        if before != holder:
            self.changed()


@define(eq=False)
class FolderGuard:
    """The right to write in one workspace folder: nobody else's daemon has it, and the app is not running.

    The folder's lock is kept for as long as the workspace is open. changed: told when another daemon took or left it.
    """

    app: Guard
    lock: FolderLock
    changed: Callable[[], None] = lambda: None
    _other: dict[str, Any] | None = None
    _mutex: threading.Lock = field(factory=threading.Lock)

    @property
    def holder(self) -> dict[str, Any] | None:
        """Who keeps us from writing."""
        return self._other or self.app.holder

    @property
    def protected(self) -> bool:
        """False where the file system has no locks: a second machine could write too."""
        return self.lock.protected

    def look(self) -> None:
        """Have the folder's lock if it is free. Raises: OSError (the folder is not there)."""
        with self._mutex:
            found = self.lock.take()
            before, self._other = self._other, None if found is None else found.as_json()
            if before != self._other:
                self.changed()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """See `Guard.writing`. Raises: ReadOnly, OSError."""
        self.look()
        if self._other is not None:
            raise ReadOnly(self._other)
        with self.app.writing():
            yield

    def give_back(self) -> None:
        with self._mutex:
            self.lock.give_back()


def tidy(guard: Guard | FolderGuard, folders: Iterable[Path]) -> None:
    """Remove what a killed daemon had begun to write in *folders*, if that may be now."""
    left = [path for folder in folders for path in atomic.leftovers(folder)]
    if not left:
        return  # nothing is written, so no lock is taken
    try:
        with guard.writing():
            for path in left:
                atomic.discard(path)
    except (ReadOnly, OSError) as error:
        log.info("what a killed daemon left stays for now: %s", error)
