"""What executors say and nobody stores: passed on to who wants it, in order, merged or dropped when it is too much.

One lane per session. Text that streams in is gathered for a moment; a lane sends 50 events in a second, and what does
not fit waits, grows together, and at last goes. What is stored afterwards is the truth.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from craftd.errors import InvalidParams, TooLarge
from craftd.model import json_text
from craftd.model.records import Record
from craftd.server.connection import Connection
from craftd.server.outbox import notification
from craftd.workspace.live import ACTIVITIES, Live
from craftd.workspace.telling import EVENT_BODY

GATHER_SECONDS: Final = 0.05
"""Pieces of text that come within this time are one event."""
PER_SECOND: Final = 50
"""Events of one session."""
MOST_WAITING: Final = 100
MOST_BYTES: Final = 1 << 20
"""Events of one session; the oldest goes when there are more."""
MOST_TEXT: Final = 64 * 1024
"""Characters of pieces that were gathered."""
MOST_LANES: Final = 256
"""Sessions whose rate is remembered although nothing of them waits."""

_DELTA: Final = "text_delta"
_STATE: Final = "state"


@define(eq=False)
class _Waiting:
    client: str
    event: Record
    size: int


@define(eq=False)
class _Lane:
    """tokens: events that may be sent now; at: when that was counted, in seconds of the loop."""

    tokens: float
    at: float
    waiting: deque[_Waiting] = field(factory=deque)
    timer: asyncio.TimerHandle | None = None


class Relay:
    """connections: everybody who may have subscribed."""

    def __init__(self, connections: Mapping[str, Connection]) -> None:
        self._connections = connections
        self._lanes: dict[tuple[str, str], _Lane] = {}
        self._parties: dict[Connection, dict[str, Live]] = {}
        self._loop = asyncio.get_running_loop()

    def publish(self, scope: str, live: Live, connection: Connection, session: str, event: Record) -> None:
        """Pass *event* of a session of the workspace *scope* on. Raises: InvalidParams, TooLarge."""
        kind = event.get("type")
        if not isinstance(kind, str) or not kind:
            raise InvalidParams.of("event.type", "must be a non-empty string")
        size = len(json_text.dumps(event))
        if size > EVENT_BODY:
            raise TooLarge("an event", EVENT_BODY, size)
        if kind == _STATE:
            activity = event.get("state")
            if activity not in ACTIVITIES:
                raise InvalidParams.of("event.state", f"must be one of {', '.join(ACTIVITIES)}")
            self.remember(scope, live, connection)
            live.say(connection, session, activity)
        self._take(scope, session, _Waiting(connection.id, event, size))

    def remember(self, scope: str, live: Live, connection: Connection) -> None:
        """Something of *connection* in *live* is to be released when it goes."""
        self._parties.setdefault(connection, {})[scope] = live

    def gone(self, connection: Connection) -> None:
        """Release what it said and looked at; who follows a session hears that nobody is at work on it."""
        for scope, live in self._parties.pop(connection, {}).items():
            for session in live.release(connection):
                event = {"type": _STATE, "state": live.activity(session) or "idle"}
                self._take(scope, session, _Waiting(connection.id, event, 0))

    def flush(self, scope: str | None, session: str) -> None:
        """A stored fact about *session* comes next: what was said before it goes first."""
        if scope is not None and (lane := self._lanes.get((scope, session))) is not None and lane.waiting:
            self._drain(scope, session, lane)

    def _take(self, scope: str, session: str, new: _Waiting) -> None:
        lane = self._lane(scope, session)
        if new.event["type"] == _DELTA and self._gathered(lane, new):
            return
        if new.event["type"] == _STATE:  # an older one that still waits is no news any more
            old = [one for one in lane.waiting if one.event["type"] == _STATE and one.client == new.client]
            for one in old:
                lane.waiting.remove(one)
        lane.waiting.append(new)
        while len(lane.waiting) > MOST_WAITING or sum(one.size for one in lane.waiting) > MOST_BYTES:
            lane.waiting.remove(next((one for one in lane.waiting if one.event["type"] != _STATE), lane.waiting[0]))
        if new.event["type"] != _DELTA:
            self._drain(scope, session, lane)
        elif lane.timer is None:
            lane.timer = self._loop.call_later(GATHER_SECONDS, self._drain, scope, session, lane)

    @staticmethod
    def _gathered(lane: _Lane, new: _Waiting) -> bool:
        """Whether a piece of text was added to one that waits."""
        last = lane.waiting[-1] if lane.waiting else None
        if last is None or last.client != new.client or last.event["type"] != _DELTA:
            return False
        one, more = last.event.get("delta"), new.event.get("delta")
        if not isinstance(one, str) or not isinstance(more, str) or len(one) + len(more) > MOST_TEXT:
            return False
        if {**last.event, "delta": ""} != {**new.event, "delta": ""}:
            return False
        last.event = {**last.event, "delta": one + more}
        last.size += new.size
        return True

    def _lane(self, scope: str, session: str) -> _Lane:
        lane = self._lanes.get((scope, session))
        if lane is None:
            if len(self._lanes) >= MOST_LANES:
                self._lanes = {key: lane for key, lane in self._lanes.items() if lane.waiting}
            lane = self._lanes[scope, session] = _Lane(PER_SECOND, self._loop.time())
        return lane

    def _drain(self, scope: str, session: str, lane: _Lane) -> None:
        """Send what the rate allows; the rest when it allows more."""
        if lane.timer is not None:
            lane.timer.cancel()
            lane.timer = None
        now = self._loop.time()
        lane.tokens, lane.at = min(PER_SECOND, lane.tokens + (now - lane.at) * PER_SECOND), now
        while lane.waiting and lane.tokens >= 1:
            lane.tokens -= 1
            self._send(scope, session, lane.waiting.popleft())
        if lane.waiting:
            wait = (1 - lane.tokens) / PER_SECOND
            lane.timer = self._loop.call_later(max(wait, 0.001), self._drain, scope, session, lane)

    def _send(self, scope: str, session: str, one: _Waiting) -> None:
        params: dict[str, Any] = {"workspace": scope, "session": session, "event": one.event, "client": one.client}
        frame: bytes | None = None
        for connection in tuple(self._connections.values()):
            if connection.outbox.takes_relayed(scope, session):
                frame = frame or notification("sessions/didPublish", params)
                connection.outbox.put(frame)
