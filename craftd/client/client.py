"""A client of the daemon for programs that run on asyncio: calls, events, and a connection that comes back.

What happens to calls when the connection is lost: those that only read are asked again. A change is sent again, with
its key, to the same daemon, which makes it once; whether another daemon would make it twice cannot be known, so that
is `ConnectionLost` with `maybe_done`. Messages that have ids are sent again to any daemon: it knows them. What had not
been sent is sent once there is a connection; nobody waits longer than `patience` for one.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from craftd.client.address import Address
from craftd.client.again import KEYED, READS
from craftd.client.connection import Connection, Message, Progress, tell
from craftd.client.events import Events, Feed, Listener, Position
from craftd.client.failures import CallFailed, ConnectionLost
from craftd.client.line import Line

if TYPE_CHECKING:
    from ssl import SSLContext
    from types import TracebackType

    from craftd.client.calls import Calls
else:
    Calls = object  # as long as the rest together to import, and not needed by who calls by name

PATIENCE = 30.0
"""Seconds that a call waits for a connection."""


def connect(
    url: str | None = None,
    *,
    name: str = "a Python program",
    workspaces: Iterable[str] | None = None,
    token: str | None = None,
    tls: SSLContext | None = None,
    start: bool = True,
    executor: bool = False,
    reconnect: bool = True,
    patience: float = PATIENCE,
    on_connection: Callable[[bool], None] | None = None,
) -> Connecting:
    """A client: `async with connect() as client`, or `client = await connect()` and later `await client.close()`.

    url: `unix:/path`, `tcp://`, `tcps://`, `ws://` or `wss://host:port`; None: the daemon of $CRAFT_CONFIG_DIR (default
    ~/.craft-agent), which is started if it does not run, unless start is False.
    name: who is shown in `craftd status`. workspaces: ids or folders; with exactly one, calls need not name it; None:
    those of the working directory. token: for TCP and WebSocket; on this machine the one in the configuration folder
    is taken by itself. tls: for tcps and wss, when not the system's certificates decide.
    executor: this program does the work of sessions, and may publish what is not stored.
    reconnect: connect again when the connection is lost, at once if there are subscriptions, else with the next call.
    patience: seconds that a call waits for a connection. on_connection: called with False when the connection is lost
    and with True when it is back.
    Raises: NotReached, CallFailed, ConnectionLost.
    """
    address = Address(url, name=name, workspaces=workspaces, token=token, tls=tls, start=start, executor=executor)
    return Connecting(lambda: Client(address, reconnect=reconnect, patience=patience, on_connection=on_connection))


class Connecting:
    """A client to come: to be awaited, or entered."""

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = make
        self._client: Client | None = None

    def __await__(self) -> Generator[Any, None, Client]:
        return self._open().__await__()

    async def _open(self) -> Client:
        self._client = self._make()
        await self._client.open()
        return self._client

    async def __aenter__(self) -> Client:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()


class Client(Calls):
    """Made by `connect`. Every method is a call: `client.sessions.list(...)`, or by its name, `client.call(...)`."""

    def __init__(
        self, address: Address, *, reconnect: bool, patience: float, on_connection: Callable[[bool], None] | None
    ) -> None:
        self._address = address
        self._on_connection = on_connection
        self._feeds: dict[str | None, Feed] = {}
        self._ids: dict[str, str] = {}
        self._stopped = False
        """The daemon was told to stop: it is not for us to start another."""
        self._line = Line(
            lambda lost: address.dial(self._hear, lost, may_start=not self._stopped),
            self._back,
            self._told,
            needed=lambda: bool(self._feeds),
            comes_back=reconnect,
            patience=patience,
        )

    if not TYPE_CHECKING:

        def __getattr__(self, noun: str) -> Any:
            from craftd.client.calls import Calls

            nouns = vars(Calls(self))
            if noun not in nouns:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {noun!r}")
            self.__dict__.update(nouns)
            return nouns[noun]

    async def open(self) -> None:
        """The first connection. Raises: NotReached, CallFailed, ConnectionLost."""
        await self._line.open()

    async def close(self) -> None:
        """Hang up. Iterators and calls that wait fail with ConnectionLost."""
        await self._line.close()

    @property
    def connected(self) -> bool:
        return self._line.connection is not None

    @property
    def hello(self) -> Mapping[str, Any]:
        """What `daemon/hello` answered, where the daemon was found by its configuration folder."""
        return {} if self._line.connection is None else self._line.connection.hello

    @property
    def welcome(self) -> Mapping[str, Any]:
        """craftd's part of the answer to `initialize`: methods, rights, limits, the workspaces of this connection."""
        return {} if self._line.connection is None else self._line.connection.welcome

    # Calls

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
        then: Callable[[Any], None] | None = None,
    ) -> Any:
        """Result of any method; members of *params* by their wire names, None = absent. A change gets a key.

        on_progress: called with each report of work done; on_part: with each part of the result that comes before it;
        then: with the result, in the step in which it comes, before any event that comes behind it.
        To wait no longer than some time, use `asyncio.timeout`: whoever is cancelled takes the request back.
        Raises: CallFailed (a class of `craftd.client.errors`), ConnectionLost.
        """
        members = {name: value for name, value in (params or {}).items() if value is not None}
        if method in KEYED:
            members.setdefault("key", os.urandom(16).hex())
        callbacks = {"workDoneToken": on_progress, "partialResultToken": on_part}
        progress: dict[str, Progress] = {name: each for name, each in callbacks.items() if each is not None}
        while True:
            connection = await self._line.connected()
            try:
                return await connection.call(method, members, then=then, progress=progress)
            except ConnectionLost as lost:
                if not await self._goes_on(connection, lost):
                    raise
                if not lost.maybe_done or (method in READS and on_part is None) or _is_known_again(method, members):
                    continue
                if method not in KEYED or _daemon(await self._line.connected()) != _daemon(connection):
                    raise
            except CallFailed as refused:
                if not await self._goes_on(connection, refused):
                    raise

    async def pages(self, method: str, params: Mapping[str, Any]) -> AsyncIterator[Any]:
        """All items of a `list` method, page after page."""
        cursor: str | None = None
        while True:
            page = await self.call(method, {**params, "cursor": cursor})
            for item in page["items"]:
                yield item
            cursor = page.get("nextCursor")
            if cursor is None:
                return

    # Events

    def subscribe(
        self,
        workspace: str | None = None,
        *,
        topics: Iterable[str] | None = None,
        sessions: Iterable[str] | None = None,
        ephemeral: bool = False,
        since: Mapping[str, Any] | Position | None = None,
    ) -> Events:
        """What happens in one workspace, or without one in the configuration: `async with` it, then `async for`.

        topics: nouns, "*" = all, None = all but `files`. sessions: only these. ephemeral: what is relayed and not kept.
        since: what was seen before, `events.taken` of another time.
        """
        return Events(self, workspace, topics=topics, sessions=sessions, ephemeral=ephemeral, since=since)

    async def listen(self, listener: Listener, workspace: str | None) -> Feed:
        """Have *listener* told of a scope; returns when the daemon knows."""
        scope = None if workspace is None else await self.id_of(workspace)
        feed = self._feeds.setdefault(scope, Feed(scope))
        feed.listeners.append(listener)
        try:
            while not listener.begun:
                connection = await self._line.connected()
                try:
                    await feed.send(connection).future
                except (ConnectionLost, CallFailed) as failure:
                    if not await self._goes_on(connection, failure):
                        raise
        except BaseException:
            self.unlisten(listener, feed)
            raise
        return feed

    def unlisten(self, listener: Listener, feed: Feed) -> None:
        """Tell *listener* no more, and have the daemon say no more than the others want."""
        feed.listeners.remove(listener)
        connection = self._line.connection
        if feed.listeners:
            if connection is not None:
                feed.send(connection)
        elif self._feeds.get(feed.scope) is feed:
            del self._feeds[feed.scope]
            if connection is not None:
                connection.request("events/unsubscribe", {} if feed.scope is None else {"workspace": feed.scope})

    async def reach(self, feed: Feed) -> Position:
        """Return when every listener of *feed* has been told everything that had happened by now."""
        scope = {} if feed.scope is None else {"workspace": feed.scope}
        while True:
            connection = await self._line.connected()
            try:
                answer = await feed.send(connection).future
                # What was missed follows that answer and comes before the next.
                params = {"since": {"epoch": answer["epoch"], "revision": answer["revision"]}, "topics": [], **scope}
                read = await connection.call("events/read", params)
            except (ConnectionLost, CallFailed) as failure:
                if not await self._goes_on(connection, failure):
                    raise
            else:
                return Position(read["epoch"], read["revision"])

    async def _goes_on(self, connection: Connection, failure: ConnectionLost | CallFailed) -> bool:
        """Whether what was not done may be tried again, on another connection; a daemon that stops does nothing."""
        if not self._line.comes_back or self._line.failure is not None:
            return False
        return isinstance(failure, ConnectionLost) or (failure.name == "ServerCancelled" and await connection.ends())

    async def id_of(self, workspace: str) -> str:
        """Registry id of the scope that an id, slug or folder names: what its events carry."""
        if workspace not in self._ids:
            item = (await self.call("workspaces/get", {"id": workspace, "fields": []}))["item"]
            self._ids[workspace] = item.get("info", {}).get("aliasOf") or item["id"]
        return self._ids[workspace]

    def _hear(self, message: Message, size: int) -> None:
        params = message.get("params") or {}
        if "epoch" not in params and "session" not in params:
            self._stopped = self._stopped or message["method"] == "daemon/willStop"
            for feed in list(self._feeds.values()):
                feed.hear_of_daemon(message, size)
        elif (listened := self._feeds.get(params.get("workspace"))) is not None:
            listened.hear(message, size)

    def _back(self, connection: Connection) -> None:
        """Subscriptions go out before anything that waited for the connection."""
        self._stopped = False
        for feed in self._feeds.values():
            feed.send(connection, again=True)

    def _told(self, what: bool | Exception) -> None:
        if not isinstance(what, bool):
            for feed in self._feeds.values():
                feed.fail(what)
        elif self._on_connection is not None:
            tell(self._on_connection, what)


def _is_known_again(method: str, params: Mapping[str, Any]) -> bool:
    """Whether any daemon knows this change by what it says: messages by their ids."""
    if method != "messages/append" or "expectedTail" in params or "set" in params:
        return False
    return all("id" in message for message in params["messages"])


def _daemon(connection: Connection) -> tuple[Any, Any]:
    """What is the same as long as one daemon lives."""
    return connection.welcome.get("pid"), connection.welcome.get("epoch")
