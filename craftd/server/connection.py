"""One client: its life cycle, its requests in flight and their order, and the questions it was asked.

Knows no method: `Dispatcher` decides what a request means and hands the answer back. Everything runs in the thread of
the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, cast

from attrs import define

from craftd.errors import Busy, Cancelled, CraftdError, InvalidRequest, Timeout, TooLarge, Unauthenticated
from craftd.protocol import codec
from craftd.protocol.framing import MAX_BODY, BodyTooLarge, FramingError, encode
from craftd.protocol.lifecycle import Id, Ignored, Lifecycle, Notification, Refused, Reply, Request
from craftd.server.auth import EVERYTHING, Caller, Grant
from craftd.server.outbox import QUIET_BYTES, Outbox, Sink, Subscription, notification
from craftd.workspace.first_reading import FirstReading
from craftd.workspace.journal import Change

log = logging.getLogger(__name__)

MAX_IN_FLIGHT = 64
"""Requests of a connection worked on at once."""
MAX_WAITING = 1024
MAX_WAITING_BYTES = 16 << 20
"""Further requests wait in order up to here; one more is `Busy`."""
MAX_EARLY = 1 << 20
"""Bytes of a message, and of all that wait, from a client that has not shown a token."""
START_SECONDS = 10.0
"""From a connection of the network to its `initialize`."""
LAST_WORDS = 2.0
"""Seconds that reads may still take after the client has said its last word; changes take what they take."""

_BIG = 1 << 63
"""Python refuses to write very long integers as text."""
_TURN = 64
"""Requests begun before other connections have their turn."""

DOORS = frozenset({"initialize", "daemon/hello"})
"""Where a client of the network shows its token."""

GOING_AWAY = 1001
UNAUTHENTICATED = 4401
TOO_LATE = 4408
OTHER_PROTOCOL = 4409
TOO_MANY = 4429
"""Codes that a WebSocket is closed with; the first is RFC 6455's."""


class ClientError(Exception):
    """The client answered one of our requests with an error."""

    def __init__(self, code: Any, message: Any) -> None:
        super().__init__(f"{message} ({code})")


@define(eq=False)
class Job(Request):
    """A request without an answer. change: its number among the changes of the connection, None for a read."""

    begun: bool = False
    done: bool = False
    change: int | None = None
    task: asyncio.Future[Any] | None = None
    """What to cancel; None while the job waits for its turn."""


class Server(Protocol):
    """What a connection needs from the dispatcher."""

    def begin(self, connection: Connection, job: Job) -> None:
        """Serve the request; `connection.answer` or `fail` ends it, now or later."""
        ...

    def hear(self, connection: Connection, message: Notification) -> None: ...

    def mutates(self, request: Request) -> bool: ...

    def gone(self, connection: Connection) -> None:
        """The client is no longer there; changes that it sent may still be at work."""
        ...


class Order:
    """Changes begin in the order sent; a read begins when the changes sent before it are done."""

    def __init__(self) -> None:
        self._running: dict[int, None] = {}
        self._last = 0
        self._held: deque[tuple[int, Callable[[], None]]] = deque()

    def change(self) -> int:
        """A change begins: its number."""
        self._last += 1
        self._running[self._last] = None
        return self._last

    @property
    def idle(self) -> bool:
        """No change is at work: a read may begin at once."""
        return not self._running

    def hold(self, begin: Callable[[], None]) -> None:
        """Call *begin*, which begins a read, when the changes at work are done."""
        self._held.append((self._last, begin))

    def done(self, change: int) -> None:
        del self._running[change]
        oldest = next(iter(self._running), self._last + 1)
        while self._held and self._held[0][0] < oldest:
            self._held.popleft()[1]()


class Connection:
    """id: `c-<n>`, the `client` of origins. kind: unix, stdio, tcp, ws. name: `clientInfo.name`.

    caller: where it comes from, None on this machine's own ways. grant: what it may do; None: it has shown no token.
    workspaces: ids of those opened at initialize. roles: what it said it is.
    """

    def __init__(self, server: Server, sink: Sink, kind: str, id_: str, caller: Caller | None = None) -> None:
        self.id = id_
        self.kind = kind
        self.name: str | None = None
        self.caller = caller
        self.grant: Grant | None = EVERYTHING if caller is None else None
        self.workspaces: tuple[str, ...] = ()
        self.roles: frozenset[str] = frozenset()
        self.readings: tuple[tuple[str, FirstReading], ...] = ()
        """Names of its workspaces and how far they have been read, to be shown if the client can."""
        self.watchers: tuple[dict[str, Any], ...] = ()
        """What to register for `workspace/didChangeWatchedFiles`, if the client can report changed files."""
        self.shown: asyncio.Future[None] | None = None
        """A token that is looked at; ends with the connection, however long it must wait for its turn."""
        self.lifecycle = Lifecycle(Job)
        self.outbox = Outbox(sink, self._room, self.drop)
        self.order = Order()
        self.alive = True
        self._server = server
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Job] = deque()
        self._waiting_bytes = 0
        self._working = 0
        self._holds = 0
        self._advancing = False
        self._ended = False
        self._parting = (1000, "")
        self._deadline = None if caller is None else self._loop.call_later(START_SECONDS, self._late)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._questions = 0

    @property
    def rights(self) -> frozenset[str]:
        return frozenset() if self.grant is None else self.grant.rights

    @property
    def max_message(self) -> int:
        """Bytes of one message."""
        return MAX_EARLY if self.grant is None else MAX_BODY

    def unproven(self, method: str) -> Unauthenticated | None:
        """Why *method* must wait for a token."""
        if self.grant is not None or method in DOORS:
            return None
        return Unauthenticated("a token is needed, see `craftd token`")

    # From the transport

    def receive(self, body: bytes) -> None:
        """One message."""
        if self._ended:
            return
        message = self.lifecycle.receive(body)
        if type(message) is Job:
            self._take(message)
        elif type(message) is Notification:
            self._hear(message)
        elif type(message) is Reply:
            self._settle(message)
        elif type(message) is Refused:
            self._say_error(message.id, message.error)
        elif type(message) is Ignored:
            log.debug("%s: %s", self.id, message.why)

    def broken(self, failure: FramingError) -> None:
        """The stream cannot be followed any further: say why, finish what has begun, close."""
        error: CraftdError
        if isinstance(failure, BodyTooLarge):
            error = TooLarge("a message", failure.limit, failure.actual)
        else:
            error = InvalidRequest(str(failure))
        self.refuse(error, failure.close_code)

    def refuse(self, error: CraftdError, code: int) -> None:
        """Say *error*, which belongs to no request, and `end`; once."""
        if not self._ended:
            self._say_error(None, error)
            self.end(code, str(error))

    def revoke(self, error: CraftdError) -> None:
        """Its token is worth nothing any more: what has begun to change finishes, all else ends now."""
        self.grant = None
        self.outbox.subscriptions.clear()
        self._cancel_reads()
        self.refuse(error, UNAUTHENTICATED)

    def end(self, code: int = 1000, reason: str = "") -> None:
        """No further message will come: carry out what came, answer it, close (a WebSocket with this code)."""
        if not self._ended:
            self._ended = True
            self._parting = (code, reason)
            self._loop.call_later(LAST_WORDS, self._cancel_reads)
            self._close_when_done()

    def closed(self) -> None:
        """The client is gone: its reads end, its changes are carried out, nobody hears their answers."""
        if not self.alive:
            return
        self.alive = False
        self._ended = True
        if self._deadline is not None:
            self._deadline.cancel()
        if self.shown is not None:
            self.shown.cancel()
        self.outbox.close()
        self.outbox.subscriptions.clear()
        for question in self._asked.values():
            question.cancel()
        self._asked.clear()
        self._cancel_reads()
        self._server.gone(self)

    # To the client

    def answer(self, job: Job, result: bytes) -> None:
        """End *job* with the JSON text of its result."""
        if not job.done:
            id_ = job.id
            written = b"%d" % id_ if type(id_) is int and -_BIG < id_ < _BIG else codec.dumps(id_)
            self.outbox.put(encode(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (written, result)))
            self._finish(job, succeeded=True)

    def fail(self, job: Job, error: CraftdError) -> None:
        """End *job* with an error; on the network, without a valid token or another protocol's, it is the last."""
        if not job.done:
            self._say_error(job.id, error)
            self._finish(job, succeeded=False)
            if isinstance(error, Unauthenticated):
                self.end(UNAUTHENTICATED, str(error))
            elif self.caller is not None and isinstance(error, InvalidRequest) and "supported" in error.extra:
                self.end(OTHER_PROTOCOL, str(error))

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification that is no event of a scope."""
        self.outbox.put(notification(method, params))

    def ask(self, method: str, params: Any) -> asyncio.Future[Any]:
        """Send a request; its ids are a number space of our own. Cancelled when the client goes.

        Raises (from the future): ClientError.
        """
        self._questions += 1
        question = self._loop.create_future()
        self._asked[self._questions] = question
        message = {"jsonrpc": "2.0", "id": self._questions, "method": method, "params": params}
        self.outbox.put(encode(codec.dumps(message)))
        return question

    # Subscriptions

    def subscribe(self, scope: str | None, subscription: Subscription) -> None:
        """Replace what this client is told about *scope* (a workspace's registry id, None = global)."""
        self.outbox.subscriptions[scope] = subscription

    def unsubscribe(self, scope: str | None) -> None:
        self.outbox.subscriptions.pop(scope, None)

    def replay(self, scope: str | None, changes: Iterable[Change]) -> None:
        """Deliver what was missed; to be called in the same step as the answer, before any live change."""
        for change in changes:
            self.outbox.deliver(scope, change, encode(change.body))

    # Turns

    def hold(self) -> None:
        """Begin no further request until `release`."""
        self._holds += 1

    def release(self) -> None:
        self._holds -= 1
        self._advance_soon()

    def _take(self, job: Job) -> None:
        if not self._waiting and self._may_begin():
            self._begin(job)
        elif len(self._waiting) >= MAX_WAITING or self._waiting_bytes + job.size > self._waiting_room:
            self.fail(job, Busy("too many requests of this connection wait"))
        else:
            self._waiting.append(job)
            self._waiting_bytes += job.size

    @property
    def _waiting_room(self) -> int:
        return MAX_EARLY if self.grant is None else MAX_WAITING_BYTES

    def _may_begin(self) -> bool:
        return (
            self._working < MAX_IN_FLIGHT
            and self.outbox.size <= QUIET_BYTES
            and not self._holds
            and not self.lifecycle.starting
        )

    def _begin(self, job: Job) -> None:
        job.begun = True
        self._working += 1
        error = self.unproven(job.method) or self.lifecycle.admit(job)
        if error is None:
            self._server.begin(self, job)
        else:
            self.fail(job, error)

    def _advance_soon(self) -> None:
        if self._waiting and not self._advancing:
            self._advancing = True
            self._loop.call_soon(self._advance)

    def _advance(self) -> None:
        self._advancing = False
        for _ in range(_TURN):
            if not self._waiting or not self._may_begin():
                return
            job = self._waiting.popleft()
            self._waiting_bytes -= job.size
            if not job.done:
                self._begin(job)
        self._advance_soon()

    def _room(self) -> None:
        if self._waiting:
            self._advance_soon()
        if self._ended:
            self._close_when_done()

    def _finish(self, job: Job, *, succeeded: bool) -> None:
        job.done = True
        if job.begun and job.method == "initialize" and self.lifecycle.starting:
            self.lifecycle.started(succeeded=succeeded)
        self.lifecycle.answered(job)
        if job.begun:
            self._working -= 1
        if job.change is not None:
            self.order.done(job.change)
        if self._waiting:
            self._advance_soon()
        if self._ended:
            self._close_when_done()

    # Ends

    def _jobs(self) -> list[Job]:
        return cast("list[Job]", list(self.lifecycle.unanswered.values()))

    def _cancel_reads(self) -> None:
        for job in self._jobs():
            if job.change is None and (job.begun or not self._server.mutates(job)):
                self._cancel(job)

    def _cancel(self, job: Job) -> None:
        if job.task is not None:
            job.task.cancel()  # answers when it has ended, or normally if it was too late to take back
        else:
            self.fail(job, Cancelled(f"{job.method} was cancelled"))

    def _close_when_done(self) -> None:
        if self._ended and self.alive and not self.lifecycle.unanswered and self.outbox.empty:
            self._sink.close(*self._parting)

    def _late(self) -> None:
        """Nobody comes over the network to say nothing."""
        if not self.lifecycle.begun:
            self.refuse(Timeout(f"no initialize within {START_SECONDS:g} seconds"), TOO_LATE)

    def drop(self, reason: str) -> None:
        """End the connection now."""
        log.warning("%s (%.60r) dropped: %s", self.id, self.name, reason)
        self._sink.abort()

    # Messages that are no requests

    def _hear(self, message: Notification) -> None:
        if message.method == "exit":
            self.end()
        elif message.method == "$/cancelRequest":
            id_ = message.params.get("id") if type(message.params) is dict else None
            for job in self._jobs():
                if job.id == id_ and type(job.id) is type(id_):
                    self._cancel(job)
        else:
            self._server.hear(self, message)

    def _settle(self, reply: Reply) -> None:
        question = self._asked.pop(reply.id, None) if type(reply.id) is int else None
        if question is None:
            log.debug("%s: an answer to nothing we asked", self.id)
        elif question.done():
            pass
        elif type(reply.error) is dict:
            question.set_exception(ClientError(reply.error.get("code"), reply.error.get("message")))
        else:
            question.set_result(reply.result)

    def _say_error(self, id_: Id | None, error: CraftdError) -> None:
        said = {"code": error.code, "message": str(error), "data": error.data()}
        self.outbox.put(encode(codec.dumps({"jsonrpc": "2.0", "id": id_, "error": said})))
