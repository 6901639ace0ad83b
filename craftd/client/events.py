"""Subscriptions: what one part of a program wants to hear of a scope, and the one subscription that the daemon sees.

The daemon knows one subscription per connection and scope. A `Feed` asks for everything its listeners want, hands on to
each what it wants, each revision once, and asks again, from where they stand, after the connection was lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, cast

from craftd.client.failures import CallFailed

if TYPE_CHECKING:
    from types import TracebackType

    from craftd.client.client import Client
    from craftd.client.connection import Connection, Message, Request
    from craftd.client.shapes import Notification

QUEUE_EVENTS = 4096
QUEUE_BYTES = 8 << 20
"""What waits for a program that does not take its events; beyond that they lapse. The daemon's own limits."""

AGAIN_SECONDS = 0.2
"""Until a daemon that is too busy to take a subscription is asked again."""

_ALL_BUT = frozenset({"files"})
"""Topics that must be asked for by name."""


class Position(NamedTuple):
    """A moment of a scope: comparable only within the same epoch."""

    epoch: str
    revision: int


class Lapsed(NamedTuple):
    """Changes before *revision* were not delivered; from here on delivery is live again: list now, nothing is missing.

    reason: as the daemon says; "queue": this program did not take its events; "since": the position was not known.
    """

    epoch: str
    revision: int
    reason: str


class Reconnected(NamedTuple):
    """The connection was lost and is back. replayed: everything missed follows; False: list, as after `Lapsed`."""

    epoch: str
    revision: int
    replayed: bool


Event: TypeAlias = "Notification | Lapsed | Reconnected"


class Listener:
    """What one part of a program wants of a scope. position: how far it has been told. begun: the daemon knows."""

    def __init__(
        self,
        topics: Iterable[str] | None = None,
        sessions: Iterable[str] | None = None,
        *,
        ephemeral: bool = False,
        since: Mapping[str, Any] | Position | None = None,
    ) -> None:
        self.topics = topics if topics is None or topics == "*" else frozenset(topics)
        self.sessions = None if sessions is None else frozenset(sessions)
        self.ephemeral = ephemeral
        if since is not None and not isinstance(since, Position):
            since = Position(since["epoch"], since["revision"])
        self.position = since
        self.begun = False

    def tell(self, event: Event, size: int) -> None:
        """Called in the step in which the event came, in *size* bytes."""
        raise NotImplementedError

    def fail(self, failure: Exception) -> None:
        """Nothing more will come."""
        raise NotImplementedError

    def wants(self, noun: str, params: Mapping[str, Any]) -> bool:
        if self.topics != "*" and (noun in _ALL_BUT if self.topics is None else noun not in self.topics):
            return False
        return self.sessions is None or not (about := _sessions_of(noun, params)) or bool(about & self.sessions)


class Told(Listener):
    """Hands everything to a function, a failure last."""

    def __init__(self, hear: Callable[[Event | Exception], None], **wanted: Any) -> None:
        super().__init__(**wanted)
        self._hear = hear

    def tell(self, event: Event, size: int) -> None:
        self._hear(event)

    def fail(self, failure: Exception) -> None:
        self._hear(failure)


def _sessions_of(noun: str, params: Mapping[str, Any]) -> set[str]:
    """The sessions that a notification is about; none where it belongs to no session."""
    if "session" in params:
        return {params["session"]}
    if noun != "sessions":
        return set()
    about = [params.get("item", params), *params.get("changes", ())]
    return {each["id"] for each in about if "id" in each}


class Feed:
    """All listeners to one scope. scope: registry id of a workspace; None: the configuration."""

    def __init__(self, scope: str | None) -> None:
        self.scope = scope
        self.listeners: list[Listener] = []

    def send(self, connection: Connection, *, again: bool = False) -> Request:
        """Ask for what the listeners want, from where they stand. again: on a new connection, nobody waits for it."""
        since = self._since()
        topics = self._topics()
        sessions = [listener.sessions for listener in self.listeners]
        params: dict[str, Any] = {} if self.scope is None else {"workspace": self.scope}
        if topics is not None:
            params["topics"] = topics
        if all(each is not None for each in sessions):
            params["sessions"] = sorted(set().union(*(each or () for each in sessions)))
        if any(listener.ephemeral for listener in self.listeners):
            params["ephemeral"] = True
        if since is not None:
            params["since"] = since._asdict()
        then = partial(self._subscribed, list(self.listeners), since, again)
        request = connection.request("events/subscribe", params, then)
        if again:
            request.future.add_done_callback(partial(self._asked_again, connection))
        return request

    def _asked_again(self, connection: Connection, answered: asyncio.Future[Any]) -> None:
        """The workspace may be gone, or the daemon busy. A connection that is lost comes back once more."""
        failure = None if answered.cancelled() else answered.exception()
        if isinstance(failure, CallFailed):
            if failure.retryable:
                asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._send_once_more, connection)
            else:
                self.fail(failure)

    def _send_once_more(self, connection: Connection) -> None:
        if connection.failure is None and self.listeners:
            self.send(connection, again=True)

    def fail(self, failure: Exception) -> None:
        for listener in list(self.listeners):
            listener.fail(failure)

    def _since(self) -> Position | None:
        """The earliest position of the epoch that most recently was told of."""
        known = [listener.position for listener in self.listeners if listener.position is not None]
        return min(
            (each for each in known if each.epoch == known[0].epoch), key=lambda each: each.revision, default=None
        )

    def _topics(self) -> list[str] | str | None:
        wanted = [listener.topics for listener in self.listeners]
        named = set().union(*(each for each in wanted if each is not None and each != "*"))
        if "*" in wanted or (None in wanted and named & _ALL_BUT):
            return "*"
        return None if None in wanted else sorted(named)

    def _subscribed(
        self, asked: list[Listener], since: Position | None, again: bool, answer: Mapping[str, Any]
    ) -> None:
        now = Position(answer["epoch"], answer["revision"])
        for listener in asked:
            before, listener.begun = listener.position, True
            complete = answer["replay"] == "complete" and before is not None and before.epoch == now.epoch
            if not complete:
                listener.position = now
            if before is not None and again:
                listener.tell(Reconnected(*now, complete), 0)
            elif before is not None and not complete:
                listener.tell(Lapsed(*now, "since"), 0)

    def hear(self, message: Message, size: int) -> None:
        """Hand on a notification of this scope."""
        params: dict[str, Any] = message["params"]
        event = cast("Notification", message)
        noun, _, what = message["method"].partition("/")
        for listener in [each for each in self.listeners if each.begun]:
            if what == "didPublish":  # of no revision
                if listener.ephemeral and listener.wants(noun, params):
                    listener.tell(event, size)
                continue
            now, before = Position(params["epoch"], params["revision"]), listener.position
            if message["method"] == "events/didLapse":
                listener.position = now
                listener.tell(Lapsed(*now, params.get("reason", "")), size)
            elif before is None or before.epoch != now.epoch or before.revision < now.revision:
                listener.position = now
                if noun == "events" or listener.wants(noun, params):
                    listener.tell(event, size)

    def hear_of_daemon(self, message: Message, size: int) -> None:
        """Hand on what the daemon says about itself."""
        for listener in [each for each in self.listeners if each.begun]:
            listener.tell(cast("Notification", message), size)


class Events(Listener):
    """An iterator of what happens, made by `Client.subscribe`: `async with ... as events: async for event in events`.

    Gives every notification as it came, and `Lapsed` and `Reconnected` where something may be missing. At most 4,096
    events or 8 MiB wait to be taken; what comes then is dropped, with them, and `Lapsed` says so.
    """

    def __init__(self, client: Client, workspace: str | None, **wanted: Any) -> None:
        super().__init__(**wanted)
        self._client = client
        self._workspace = workspace
        self._feed: Feed | None = None
        self._events: deque[tuple[Event, int, Position | None]] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self._failure: Exception | None = None
        self._taken: Position | None = None

    @property
    def taken(self) -> Position | None:
        """Where the program stands that has taken what it was given: `since` for another time."""
        return self._taken if self._events else self.position

    async def __aenter__(self) -> Self:
        self._feed = await self._client.listen(self, self._workspace)
        self._taken = self.position
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._feed is not None:
            self._client.unlisten(self, self._feed)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._failure is not None:
                raise self._failure
            self._news.clear()
            await self._news.wait()
        return self._take()

    def arrived(self) -> list[Event]:
        """What has come and was not taken yet, without waiting. After an answer: everything that came before it."""
        return [self._take() for _ in range(len(self._events))]

    def _take(self) -> Event:
        event, size, self._taken = self._events.popleft()
        self._bytes -= size
        return event

    def tell(self, event: Event, size: int) -> None:
        if len(self._events) >= QUEUE_EVENTS or self._bytes + size > QUEUE_BYTES:
            self._events.clear()
            self._bytes = size = 0
            if self.position is not None:
                event = Lapsed(*self.position, "queue")
        self._events.append((event, size, self.position))
        self._bytes += size
        self._news.set()

    def fail(self, failure: Exception) -> None:
        self._failure = self._failure or failure
        self._news.set()
