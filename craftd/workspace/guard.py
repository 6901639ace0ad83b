"""May anything be written now? The Craft Agents app and craftd never write the same folder at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from attrs import define, field

from craftd.errors import ReadOnly
from craftd.store.locks import AppLock


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
    _mutex: threading.Lock = field(factory=threading.Lock)

    @property
    def read_only(self) -> bool:
        return self.holder is not None

    @property
    def held(self) -> bool:
        return self.lock.still_ours()

    def permit(self) -> None:
        """Take the lock, or make sure it is still ours. Raises ReadOnly while somebody else lives in it."""
        with self._mutex:
            stranger = self.lock.take()
            self._set(None if stranger is None else stranger.as_json())
            if self.holder is not None:
                raise ReadOnly(self.holder)
            self.last = self.clock()

    def look(self) -> None:
        """Notice that a stranger came or went, without taking the lock."""
        with self._mutex:
            found = self.lock.inspect()
            self._set(None if found is None or found.ours else found.as_json())

    def give_back(self) -> None:
        """Everything is folded and flushed: others may write."""
        with self._mutex:
            self.lock.give_back()

    def _set(self, holder: dict[str, Any] | None) -> None:
        before, self.holder = self.holder, holder
        if (before is None) != (holder is None):
            self.changed()
