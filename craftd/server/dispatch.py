"""Message -> right -> params -> scope -> key -> handler -> answer: the one path of every request.

The only catch-all of the project: whatever a handler raises becomes exactly one answer.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import CoroutineType
from typing import Any, Protocol, TypeVar, get_type_hints
from weakref import WeakKeyDictionary

import attrs
from attrs import define, field, frozen

from craftd.errors import (
    Busy,
    Cancelled,
    CraftdError,
    Forbidden,
    InternalError,
    InvalidParams,
    MethodNotFound,
    ServerCancelled,
)
from craftd.protocol import codec, contract, lsp
from craftd.protocol.framing import encode
from craftd.protocol.initialize import Opened, Wishes
from craftd.protocol.lifecycle import Notification, Request
from craftd.protocol.registry import REGISTRY, Method, Registry
from craftd.server import editor, keys
from craftd.server.auth import NOTHING, Caller, Grant
from craftd.server.connection import GOING_AWAY, UNAUTHENTICATED, Connection, Job
from craftd.server.outbox import Sink
from craftd.server.relay import Relay
from craftd.workspace.commit import io_error
from craftd.workspace.journal import CHECKPOINT_SECONDS, Change, Origin

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 128
MAX_TURNED_AWAY = 16
"""Connections for which there is no room and that still hear why; further ones end without a word."""

PART_BYTES = 64 * 1024
"""Of the items in one partial result."""


Handler = Callable[["Call", Any], Any]
"""A plain function answers at once, from memory; a coroutine function later."""

_Handler = TypeVar("_Handler", bound=Callable[..., Any])


class Core(Protocol):
    """What the dispatcher serves. A scope is whatever handlers work on; the dispatcher only hands it over."""

    def scope(self, name: str | None, call: Call) -> Any:
        """The open scope of a workspace named by id, `ws_` id, slug or path (None = global), or an awaitable of it.

        Raises: NotFound, Forbidden.
        """
        ...

    def authenticate(self, connection: Connection, token: str | None) -> Awaitable[None]:
        """Make sure that the connection has a grant, by *token* if it has none.  Raises: Unauthenticated."""
        ...

    def initialize(self, connection: Connection, wishes: Wishes) -> Awaitable[Opened]:
        """Open what a new client wants to work with."""
        ...

    async def item(self, call: Call, id: str) -> Any:
        """Item *id* of the call's noun as it is now, None if it is gone: for a repeated change."""
        ...

    def hint(self, paths: Iterable[str]) -> None:
        """A client says that these files changed."""
        ...

    def gone(self, connection: Connection) -> None:
        """Release what this client held."""
        ...


@define(eq=False)
class Call:
    """One request on its way through a handler. scope: the open workspace or global scope, None where there is none.

    grant: what its connection might do when it began.
    """

    connection: Connection
    dispatcher: Dispatcher
    served: Served
    params: Any
    raw: Any = field(repr=False)
    """The params as they came."""
    scope: Any = None
    grant: Grant = field(init=False)
    after: list[Callable[[], None]] = field(factory=list)
    """Run in the same step as the answer is queued, right behind it: a replay, for example."""

    def __attrs_post_init__(self) -> None:
        self.grant = self.connection.grant or NOTHING

    @property
    def method(self) -> Method:
        return self.served.method

    @property
    def origin(self) -> Origin:
        return Origin(kind="client", client=self.connection.id, key=self.key)

    @property
    def key(self) -> str | None:
        """The idempotency key: staging bytes takes none."""
        return getattr(self.params, "key", None)

    def progress(self, token: int | str | None, value: Any) -> None:
        """Send `$/progress`, if the client asked for it by a token."""
        if token is not None:
            self.connection.notify("$/progress", {"token": token, "value": value})

    @contextmanager
    def work(self, token: int | str | None, title: str) -> Iterator[None]:
        """Say that something long begins, and when it ends, well or not."""
        self.progress(token, {"kind": "begin", "title": title})
        try:
            yield
        finally:
            self.progress(token, {"kind": "end"})

    def parts(self, token: int | str, items: Sequence[Any]) -> None:
        """Send *items* ahead of their answer, in parts: a client begins with one while others are on their way."""
        part: list[codec.Raw] = []
        size = 0
        for item in items:
            text = codec.dumps(item)
            if part and size + len(text) > PART_BYTES:
                self.progress(token, {"items": part})
                part, size = [], 0
            part.append(codec.Raw(text))
            size += len(text)
        if part:
            self.progress(token, {"items": part})


class Handlers:
    """Which function serves which params class."""

    def __init__(self) -> None:
        self._by_class: dict[type, Handler] = {}

    def handles(self, function: _Handler) -> _Handler:
        """Decorator: *function(call, params)* serves every method whose params class is, or inherits from, the
        annotation of `params`; the nearest wins."""
        names = list(inspect.signature(function).parameters)
        cls = get_type_hints(function)[names[1]]
        if cls in self._by_class:
            raise ValueError(f"{cls.__name__} has a handler already")
        self._by_class[cls] = function
        return function

    def find(self, method: Method) -> Handler | None:
        """Raises: TypeError for a change that is no coroutine function: only those begin in the order sent."""
        handler = next((self._by_class[cls] for cls in method.params.__mro__ if cls in self._by_class), None)
        if handler is not None and method.mutates and not inspect.iscoroutinefunction(handler):
            raise TypeError(f"{method.name} mutates, so its handler must be a coroutine function")
        return handler


HANDLERS = Handlers()
handles = HANDLERS.handles


@frozen
class Served:
    """A method and what serves it. later: the handler is a coroutine function; pages: it may answer in parts."""

    method: Method
    handler: Handler
    later: bool
    pages: bool

    @classmethod
    def of(cls, method: Method, handler: Handler) -> Served:
        pages = attrs.has(method.params) and "partial_result_token" in attrs.fields_dict(method.params)
        return cls(method, handler, inspect.iscoroutinefunction(handler), pages)


_LSP_ROW = Method(
    name="$/lsp", params=type(None), result=None, right="read", mutates=False, scope="none", since="1.0"
)  # fmt: skip
_AWAITABLE = (asyncio.Future, CoroutineType)


class Dispatcher:
    """All connections, and the table that serves them.

    stopping: set before the daemon ends: changes that have not begun are refused.
    max_connections: at once; half of them may be of clients that have shown no token, and an eighth is kept for those
    that need none. turned_away: how many for which there is no room have not ended yet.
    """

    def __init__(self, core: Core, registry: Registry = REGISTRY, handlers: Handlers = HANDLERS) -> None:
        self.core = core
        self.max_connections = MAX_CONNECTIONS
        self.turned_away = 0
        self.registry = registry
        self.connections: dict[str, Connection] = {}
        self.stopping = False
        self.served = {
            name: Served.of(row, handler)
            for name, row in registry.methods.items()
            if (handler := handlers.find(row)) is not None
        }
        """Methods that have a handler: the others do not exist for a client."""
        self._keys: WeakKeyDictionary[Any, keys.Keys] = WeakKeyDictionary()
        self._heard: set[asyncio.Future[Any]] = set()
        self._count = 0
        self._nobody = asyncio.Event()
        self._nobody.set()
        self.relay = Relay(self.connections)
        self._lsp: asyncio.Future[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None

    # Connections

    def start(self) -> None:
        """Begin to load what `initialize` needs, in a thread; `daemon/hello` does not wait for it."""
        self.lsp_loaded()
        self._schedule_checkpoint()

    def lsp_loaded(self) -> asyncio.Future[Any]:
        """Done when lsprotocol is there."""
        if self._lsp is None:
            self._lsp = asyncio.ensure_future(asyncio.to_thread(lsp.load))
        return self._lsp

    def connect(self, sink: Sink, kind: str, caller: Caller | None = None) -> Connection:
        """A new client; caller: where it comes from, if it must show a token.  Raises: Busy."""
        most = self.max_connections
        if len(self.connections) >= most:
            raise Busy(f"there are {most} connections already", 1000)
        if caller is not None:
            network = [one for one in self.connections.values() if one.caller is not None]
            if len(network) >= most - most // 8:
                raise Busy(f"there are {len(network)} connections of the network already", 1000)
            if sum(one.grant is None for one in network) >= (most + 1) // 2:
                raise Busy("too many connections have shown no token yet", 1000)
        self._count += 1
        connection = Connection(self, sink, kind, f"c-{self._count}", caller)
        self.connections[connection.id] = connection
        self._nobody.clear()
        return connection

    def present(self, connection: Connection, token: str) -> None:
        """A client shows *token* before its first message."""
        connection.hold()
        connection.shown = asyncio.ensure_future(self.core.authenticate(connection, token))
        connection.shown.add_done_callback(partial(self._shown, connection))

    def _shown(self, connection: Connection, shown: asyncio.Future[None]) -> None:
        connection.shown = None
        if not shown.cancelled() and (failure := shown.exception()) is not None:
            connection.refuse(self._error(failure, "authentication"), UNAUTHENTICATED)
        connection.release()

    def gone(self, connection: Connection) -> None:
        self.connections.pop(connection.id, None)
        if not self.connections:
            self._nobody.set()
        self.relay.gone(connection)
        self.core.gone(connection)

    async def close(self, grace: float) -> None:
        """End all connections: what they sent is carried out and answered for up to *grace* seconds."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in tuple(self.connections.values()):
            connection.end(GOING_AWAY, "the daemon stops")
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._nobody.wait()
        for connection in tuple(self.connections.values()):
            connection.drop("the daemon stops")

    # Events

    def deliver(self, scope: str | None, change: Change) -> None:
        """Tell every subscriber of *scope* (a workspace's registry id, None = global) about a published change."""
        if change.session is not None:
            self.relay.flush(scope, change.session)
        frame = encode(change.body)
        for connection in tuple(self.connections.values()):
            connection.outbox.deliver(scope, change, frame)

    def lapse(self, scope: str | None, reason: str, epoch: str, revision: int) -> None:
        """Tell every subscriber of *scope* that it must list again."""
        for connection in tuple(self.connections.values()):
            connection.outbox.lapse(scope, reason, epoch, revision)

    def broadcast(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell every connection that subscribed to anything something about the daemon itself."""
        for connection in self.subscribers():
            connection.notify(method, params)

    def subscribers(self) -> list[Connection]:
        """Connections that subscribed to anything."""
        return [connection for connection in self.connections.values() if connection.outbox.subscriptions]

    def _schedule_checkpoint(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(CHECKPOINT_SECONDS, self._checkpoint)

    def _checkpoint(self) -> None:
        for connection in tuple(self.connections.values()):
            connection.outbox.checkpoint()
        self._schedule_checkpoint()

    # Requests

    def mutates(self, request: Request) -> bool:
        """Would *request* change something?"""
        try:
            method, _ = self._unwrapped(request.method, request.params)
        except CraftdError:
            return False
        return method in self.served and self.served[method].method.mutates

    def begin(self, connection: Connection, job: Job) -> None:
        try:
            call = self._call(connection, job.method, job.params)
            if call.method.mutates:
                self._begin_change(job, call)
            elif connection.order.idle:
                self._begin_read(job, call)
            else:
                connection.order.hold(partial(self._begin_read, job, call))
        except Exception as failure:
            connection.fail(job, self._error(failure, job.method))

    def hear(self, connection: Connection, message: Notification) -> None:
        method = message.method
        row = self.registry.methods.get(method)
        if method == "initialized":
            editor.initialized(connection)
            return
        if connection.unproven(method) is not None:
            log.debug("%s: %s before a token was shown", connection.id, method)
            return
        if row is not None and not row.notification:
            log.debug("%s: %s was sent without an id", connection.id, method)
            return
        if row is None and connection.lifecycle.starting:
            log.debug("%s: %s before initialize was answered", connection.id, method)
            return
        if row is None and not lsp.is_notification(method):
            log.debug("%s: %s is no notification", connection.id, method)
            return
        try:
            call = self._call(connection, method, message.params)
            heard = asyncio.ensure_future(self._in_scope(self._scope(call), call))
        except CraftdError as error:
            log.debug("%s: %s: %s", connection.id, method, error)
            return
        self._heard.add(heard)
        heard.add_done_callback(partial(self._was_heard, method))

    def _was_heard(self, method: str, heard: asyncio.Future[Any]) -> None:
        self._heard.discard(heard)
        if not heard.cancelled() and (failure := heard.exception()) is not None:
            log.debug("%s: %s", method, self._error(failure, method))

    def _unwrapped(self, method: str, params: Any) -> tuple[str, Any]:
        """What is really asked for: a command carries a method of ours inside."""
        if (
            method != "workspace/executeCommand"
            or type(params) is not dict
            or params.get("command") != editor.CRAFT_CALL
        ):
            return method, params
        arguments = params.get("arguments")
        if type(arguments) is not list or not 1 <= len(arguments) <= 2 or type(arguments[0]) is not str:
            raise InvalidParams.of("arguments", "expected [method, params]")
        if arguments[0] not in self.served:
            raise MethodNotFound(arguments[0])
        return arguments[0], arguments[1] if len(arguments) == 2 else None

    def _call(self, connection: Connection, method: str, params: Any) -> Call:
        """What is asked for, checked as far as that is possible without its scope."""
        served = self.served.get(method)
        if served is None:
            method, params = self._unwrapped(method, params)
            if method not in self.served:
                return self._lsp_call(connection, method, params)
            served = self.served[method]
        row = served.method
        if row.right not in connection.rights and row.right != "none":
            raise Forbidden(f"{method} needs the right {row.right!r}", scope=row.right)
        call = Call(connection, self, served, codec.structure(row.params, params), params)
        if row.mutates:
            if self.stopping:
                raise ServerCancelled("the daemon stops")
            if call.key is not None and len(call.key) not in contract.KEY_LENGTH:
                raise InvalidParams.of("key", "expected 16 to 128 characters")
        return call

    def _lsp_call(self, connection: Connection, method: str, params: Any) -> Call:
        handler = editor.LIFE.get(method)
        if handler is None:
            if not lsp.knows(method):
                raise MethodNotFound(method)
            params = lsp.structure(method, params)  # wrong params are wrong even where the method is not served
            handler = editor.SERVED.get(method)
            if handler is None:
                raise MethodNotFound(method)
            if "read" not in connection.rights:
                raise Forbidden(f"{method} needs the right 'read'", scope="read")
        return Call(connection, self, Served.of(_LSP_ROW, handler), params, params)

    def _scope(self, call: Call) -> Any:
        """The scope of *call*, or an awaitable of it."""
        where = call.method.scope
        if where == "none":
            return None
        name = call.params.workspace
        if where == "global" and name is not None:
            raise InvalidParams.of("workspace", f"{call.method.noun} belong to no workspace")
        if where == "workspace" and name is None:
            if len(call.connection.workspaces) != 1:
                raise InvalidParams.of("workspace", "required: this connection works with no single workspace")
            name = call.connection.workspaces[0]
        return self.core.scope(name, call)

    def _begin_read(self, job: Job, call: Call) -> None:
        if job.done:
            return
        try:
            scope = self._scope(call)
            if call.served.later or isinstance(scope, _AWAITABLE):
                self._later(job, call, self._in_scope(scope, call))
            else:
                call.scope = scope
                self._answer(job, call, call.served.handler(call, call.params))
        except Exception as failure:
            call.connection.fail(job, self._error(failure, job.method, call.scope))

    def _begin_change(self, job: Job, call: Call) -> None:
        """The task's first step submits the change; tasks take their first steps in the order they were made.

        Until a scope is open that order would be lost, so the connection begins nothing else meanwhile.
        """
        job.change = call.connection.order.change()
        scope = self._scope(call)
        if isinstance(scope, _AWAITABLE):
            scope = asyncio.ensure_future(scope)
            call.connection.hold()
            scope.add_done_callback(lambda _: call.connection.release())
        self._later(job, call, self._in_scope(scope, call))

    async def _in_scope(self, scope: Any, call: Call) -> Any:
        if isinstance(scope, _AWAITABLE):
            scope = await asyncio.shield(scope)  # others wait for it too
        call.scope = scope
        if call.method.mutates and call.key is not None:
            return await self._once(call)
        result = call.served.handler(call, call.params)
        return await result if call.served.later else result

    async def _once(self, call: Call) -> Any:
        """A change with a key."""
        assert call.key is not None
        owner = self if call.scope is None else call.scope
        return await self._keys.setdefault(owner, keys.Keys()).once(
            (call.grant.token, call.connection.name, call.key),
            keys.digest(call.method.name, call.raw),
            partial(call.served.handler, call, call.params),
            partial(self.core.item, call),
        )

    def _later(self, job: Job, call: Call, work: Awaitable[Any]) -> None:
        job.task = asyncio.ensure_future(work)
        job.task.add_done_callback(partial(self._done, job, call))

    def _done(self, job: Job, call: Call, task: asyncio.Future[Any]) -> None:
        try:
            self._answer(job, call, task.result())
        except asyncio.CancelledError:
            call.connection.fail(job, Cancelled(f"{job.method} was cancelled"))
        except Exception as failure:
            call.connection.fail(job, self._error(failure, job.method, call.scope))

    def _answer(self, job: Job, call: Call, result: Any) -> None:
        if job.done:
            return
        if call.served.pages and call.params.partial_result_token is not None:
            call.parts(call.params.partial_result_token, result.items)
            result = attrs.evolve(result, items=())
        call.connection.answer(job, codec.dumps(result))
        for action in call.after:
            action()

    @staticmethod
    def _error(failure: BaseException, method: str, scope: Any = None) -> CraftdError:
        """What the client is told; the traceback stays in the log, under a number that both have."""
        if isinstance(failure, CraftdError):
            failure.within = getattr(scope, "id", None)
            return failure
        if isinstance(failure, OSError):
            log.warning("%s: %s", method, failure)
            return io_error(failure)
        incident = secrets.token_hex(4)
        log.error("%s failed, incident %s", method, incident, exc_info=failure)
        return InternalError(incident)
