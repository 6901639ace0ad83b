"""Which message is legal when, and that every request is answered exactly once. No I/O.

A connection is NEW until `initialize`, STARTING until that is answered, READY until `shutdown`, then ENDING:

    phase     initialize          daemon/hello, daemon/stop   other requests
    NEW       -> STARTING         served                      NotInitialized
    STARTING  (nothing begins before initialize is answered: READY, or NEW again if it failed)
    READY     InvalidRequest      served                      served; shutdown -> ENDING
    ENDING    InvalidRequest      InvalidRequest              InvalidRequest

Requests take their turn later than they arrive, so `receive` judges the message alone and `admit` its moment.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

from attrs import define, field

from craftd.errors import CraftdError, InvalidRequest, NotInitialized
from craftd.protocol import codec

Id: TypeAlias = int | str

EARLY = frozenset({"daemon/hello", "daemon/stop"})
"""Served before `initialize`: what a program needs that looks for the right daemon."""


class Phase(Enum):
    NEW = "new"
    STARTING = "starting"
    READY = "ready"
    ENDING = "ending"


_NEW, _STARTING, _READY, _ENDING = Phase  # the class is asked slowly, and every request asks


@define(eq=False)
class Request:
    """A request that must be answered. size: bytes it arrived in."""

    id: Id
    method: str
    params: Any = field(repr=False)
    size: int = 0


@define(eq=False)
class Notification:
    method: str
    params: Any = field(repr=False)


@define(eq=False)
class Reply:
    """What the client says to a request of ours; error: the JSON-RPC error object, None on success."""

    id: Any
    result: Any
    error: Any


@define(eq=False)
class Refused:
    """A message to be answered with *error* at once; id None: its sender could not be told which."""

    id: Id | None
    error: CraftdError


@define(eq=False)
class Ignored:
    """A message that nobody waits for an answer to, and that makes no sense."""

    why: str


Message: TypeAlias = Request | Notification | Reply | Refused | Ignored


@define(eq=False)
class Lifecycle:
    """One connection's place in the table above and its requests without an answer, by id.

    new: makes a request; whoever works on requests may give its own kind.
    """

    new: Callable[[Id, str, Any, int], Request] = Request
    phase: Phase = _NEW
    initialized: bool = False
    """The client said `initialized`: the daemon may send messages of its own."""
    unanswered: dict[Id, Request] = field(factory=dict)

    def receive(self, body: bytes) -> Message:
        """What *body* is. A `Request` counts as unanswered from here on."""
        try:
            message = codec.loads(body)
        except CraftdError as error:
            return Refused(None, error)
        if type(message) is not dict:
            what = "batches are" if type(message) is list else f"{codec.json_name(message)} is"
            return Refused(None, InvalidRequest(f"{what} not accepted, send one object"))
        method = message.get("method")
        if method is None:
            return self._without_method(message)
        if "id" not in message:
            return self._notification(method, message)
        id_ = message["id"]
        if type(id_) is not int and type(id_) is not str:
            return Refused(None, InvalidRequest(f"an id is an integer or a string, not {codec.json_name(id_)}"))
        if message.get("jsonrpc") != "2.0":
            return Refused(id_, InvalidRequest('the member jsonrpc must be "2.0"'))
        if type(method) is not str:
            return Refused(id_, InvalidRequest(f"method must be a string, not {codec.json_name(method)}"))
        if id_ in self.unanswered:
            return Refused(id_, InvalidRequest(f"id {id_!r} belongs to a request that has no answer yet"))
        request = self.new(id_, method, message.get("params"), len(body))
        self.unanswered[id_] = request
        return request

    def _notification(self, method: Any, message: dict[str, Any]) -> Message:
        if type(method) is not str:
            return Refused(None, InvalidRequest(f"method must be a string, not {codec.json_name(method)}"))
        if method == "initialized" and self.phase is not _NEW:
            self.initialized = True
        if self.phase is _NEW and method != "exit":
            return Ignored(f"{method} before initialize")
        return Notification(method, message.get("params"))

    @staticmethod
    def _without_method(message: dict[str, Any]) -> Message:
        if "id" in message and ("result" in message or "error" in message):
            return Reply(message["id"], message.get("result"), message.get("error"))
        id_ = message.get("id")
        known = id_ if type(id_) in (int, str) else None
        return Refused(known, InvalidRequest("neither a request nor an answer: there is no method"))

    def admit(self, request: Request) -> CraftdError | None:
        """May *request* begin now? If so, the phase moves."""
        if self.phase is _READY:
            if request.method == "initialize":
                return InvalidRequest("initialized already")
            if request.method == "shutdown":
                self.phase = _ENDING
            return None
        if self.phase is _NEW:
            if request.method == "initialize":
                self.phase = _STARTING
                return None
            return None if request.method in EARLY else NotInitialized(f"{request.method} before initialize")
        return InvalidRequest("only exit may follow shutdown")

    @property
    def begun(self) -> bool:
        """`initialize` came, and has not failed."""
        return self.phase is not _NEW

    @property
    def starting(self) -> bool:
        """No request may begin: `initialize` is being answered."""
        return self.phase is _STARTING

    def started(self, *, succeeded: bool) -> None:
        """`initialize` is answered."""
        self.phase = _READY if succeeded else _NEW

    def answered(self, request: Request) -> None:
        """Raises: KeyError when it was answered before."""
        del self.unanswered[request.id]
