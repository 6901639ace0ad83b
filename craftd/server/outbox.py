"""What one client asked to be told, and the bounded queue to it.

Everything leaves in the order it was put in. Answers are never dropped. When too much waits, events are no longer put
in: the client is told so (`events/didLapse`) and from which revision on it is told everything again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from attrs import define

from craftd.protocol import codec
from craftd.protocol.framing import encode
from craftd.workspace.journal import Change

LAPSE_BYTES = 8 << 20
LAPSE_FRAMES = 4096
"""A client that is this far behind lists faster than it catches up."""
HARD_BYTES = 64 << 20
"""Only answers come this far: at most 64 are worked on, each a page of about 1 MiB."""
STALL_SECONDS = 30.0
"""A client that takes no byte for so long is gone."""
QUIET_BYTES = 1 << 20
"""Above this no further request of the client is begun: it does not read the answers it has."""

_CHUNK = 128 << 10
"""Bytes handed to the system in one call."""
_ALL_BUT = frozenset({"files"})
"""Topics that must be asked for by name."""


class Sink(Protocol):
    """The writing half of a transport. It calls `Outbox.pause` and `resume` as its own buffer fills and drains."""

    def write(self, frames: Sequence[bytes]) -> None:
        """Frames with their header (`framing.encode`); who needs another form makes it of the body."""
        ...

    def buffered(self) -> int:
        """Bytes taken by `write` and not yet by the operating system."""
        ...

    def close(self, code: int = 1000, reason: str = "") -> None:
        """End the connection after what was written has gone out. code, reason: what a WebSocket is closed with."""
        ...

    def abort(self) -> None:
        """End it now."""
        ...


@define(eq=False, kw_only=True)
class Subscription:
    """What a connection wants to know of one scope.

    topics: nouns, None = all but `files`, "*" = all. sessions: narrows what belongs to a session. ephemeral: also what
    executors publish and nobody stores.
    epoch, revision: how far the scope has come; told: the last revision that the client heard of.
    """

    epoch: str
    revision: int
    topics: frozenset[str] | str | None = None
    sessions: frozenset[str] | None = None
    ephemeral: bool = False
    told: int = 0
    lapsed: bool = False

    def __attrs_post_init__(self) -> None:
        self.told = self.revision

    @property
    def wants_files(self) -> bool:
        return self.topics == "*" or (isinstance(self.topics, frozenset) and "files" in self.topics)

    def wants(self, change: Change) -> bool:
        return wants(change, self.topics, self.sessions)


def wants(change: Change, topics: frozenset[str] | str | None, sessions: frozenset[str] | None) -> bool:
    """Does *change* pass the filter of `events/subscribe` and `events/read`?"""
    return _covers(change.topic, change.session, topics, sessions)


def _covers(
    topic: str, session: str | None, topics: frozenset[str] | str | None, sessions: frozenset[str] | None
) -> bool:
    if topics is None:
        if topic in _ALL_BUT:
            return False
    elif topics != "*" and topic not in topics:
        return False
    return sessions is None or session is None or session in sessions


def notification(method: str, params: Mapping[str, Any]) -> bytes:
    """One frame."""
    return encode(codec.dumps({"jsonrpc": "2.0", "method": method, "params": params}))


class Outbox:
    """Frames on their way to one client. drained: called when there is room again; dead: called with the reason."""

    def __init__(self, sink: Sink, drained: Callable[[], None], dead: Callable[[str], None]) -> None:
        self.subscriptions: dict[str | None, Subscription] = {}
        self.size = 0
        """Bytes waiting here."""
        self._sink = sink
        self._drained = drained
        self._dead = dead
        self._loop = asyncio.get_running_loop()
        self._frames: deque[bytes] = deque()
        self._scheduled = False
        self._paused = False
        self._closed = False
        self._lapsed = False
        self._handed = 0
        self._accepted = 0
        self._stalled_since: float | None = None
        self._check: asyncio.TimerHandle | None = None

    # In

    def put(self, frame: bytes) -> None:
        """Queue one frame; it leaves in this turn of the event loop together with its neighbours."""
        if self._closed:
            return
        self._frames.append(frame)
        self.size += len(frame)
        if self.size > HARD_BYTES:
            self._dead(f"more than {HARD_BYTES} bytes wait to be read")
        elif not self._scheduled and not self._paused:
            self._scheduled = True
            self._loop.call_soon(self.flush)

    def deliver(self, scope: str | None, change: Change, frame: bytes) -> None:
        """Queue *frame* (of *change*, shared by all clients) if this client wants it and can take it."""
        subscription = self.subscriptions.get(scope)
        if subscription is None:
            return
        subscription.revision = max(subscription.revision, change.revision)  # a replay is behind it
        if subscription.lapsed or not subscription.wants(change):
            return
        if change.unsent:
            subscription.lapsed = self._lapsed = True
            self._recover()
            return
        if self.size + len(frame) > LAPSE_BYTES or len(self._frames) >= LAPSE_FRAMES:
            self._lapsed = True
            for each in self.subscriptions.values():
                each.lapsed = True
            return
        subscription.told = max(subscription.told, change.revision)
        self.put(frame)

    def takes_relayed(self, scope: str, session: str) -> bool:
        """Whether what is published about *session* and not stored goes to this client: it wants it, and it reads."""
        subscription = self.subscriptions.get(scope)
        if subscription is None or not subscription.ephemeral or subscription.lapsed:
            return False
        return self.size <= QUIET_BYTES and _covers("sessions", session, subscription.topics, subscription.sessions)

    def lapse(self, scope: str | None, reason: str, epoch: str, revision: int) -> None:
        """Say that changes of *scope* before (*epoch*, *revision*) were not delivered."""
        subscription = self.subscriptions.get(scope)
        if subscription is not None:
            subscription.epoch, subscription.revision = epoch, revision
            if not subscription.lapsed:  # a lapse that is still to be announced will carry this position
                self._tell(scope, subscription, "events/didLapse", reason=reason)

    def checkpoint(self) -> None:
        """Say how far the scopes have come that had nothing for this client."""
        for scope, subscription in self.subscriptions.items():
            if subscription.revision > subscription.told and not subscription.lapsed:
                self._tell(scope, subscription, "events/checkpoint")

    def _tell(self, scope: str | None, subscription: Subscription, method: str, **more: str) -> None:
        subscription.told = subscription.revision
        where = {} if scope is None else {"workspace": scope}
        position = {"epoch": subscription.epoch, "revision": subscription.revision}
        self.put(notification(method, {**where, **position, **more}))

    # Out

    def pause(self) -> None:
        """The sink's buffer is full."""
        self._paused = True
        self._stalled_since = None
        if self._check is None:
            self._check = self._loop.call_later(STALL_SECONDS / 6, self._look)

    def resume(self) -> None:
        """The sink's buffer has drained."""
        self._paused = False
        self.flush()

    def close(self) -> None:
        """Take nothing more; what waits is lost."""
        self._closed = True
        self._frames.clear()
        self.size = 0
        if self._check is not None:
            self._check.cancel()

    @property
    def empty(self) -> bool:
        """Everything has been handed to the sink."""
        return not self._frames

    def cork(self) -> None:
        """What is put from here on leaves with the next `flush`, which is the caller's to call."""
        self._scheduled = True

    def flush(self) -> None:
        """Hand over what the sink takes."""
        self._scheduled = False
        frames = self._frames
        before = self.size
        while frames and not self._paused:
            chunk = [frames.popleft()]
            length = len(chunk[0])
            while frames and length + len(frames[0]) <= _CHUNK:
                chunk.append(frames.popleft())
                length += len(chunk[-1])
            self.size -= length
            self._handed += length
            self._sink.write(chunk)
        if self.size != before:
            if self._lapsed:
                self._recover()
            self._drained()

    def _recover(self) -> None:
        """Deliver again to a client that has caught up to half."""
        if self.size > LAPSE_BYTES // 2 or len(self._frames) > LAPSE_FRAMES // 2:
            return
        self._lapsed = False
        for scope, subscription in self.subscriptions.items():
            if subscription.lapsed:
                subscription.lapsed = False
                self._tell(scope, subscription, "events/didLapse", reason="overflow")

    def _look(self) -> None:
        """Has the client taken a byte since the last look?"""
        self._check = None
        if self._closed or not self._paused:
            return
        now = self._loop.time()
        accepted = self._handed - self._sink.buffered()
        if accepted != self._accepted or self._stalled_since is None:
            self._accepted, self._stalled_since = accepted, now
        elif now - self._stalled_since >= STALL_SECONDS:
            self._dead(f"no byte was read for {STALL_SECONDS:g} seconds")
            return
        self._check = self._loop.call_later(STALL_SECONDS / 6, self._look)
