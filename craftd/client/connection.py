"""One connection, from `initialize` until it is lost: requests, answers, notifications, the daemon's own requests."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from craftd.client.failures import ConnectionLost, failure_of
from craftd.client.transport import Codec, Transport
from craftd.protocol.rendezvous import PROTOCOL, VERSION

Message: TypeAlias = dict[str, Any]
Then: TypeAlias = Callable[[Any], None]
Progress: TypeAlias = Callable[[Any], None]
Heard: TypeAlias = Callable[[Message, int], None]

CLOSE_SECONDS = 1.0
"""How long the daemon may take to read what was sent before the client hung up."""

STOP_SECONDS = 10.0
"""How long a daemon that stops may still finish what it has begun."""

_GRANTED = frozenset({"client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create"})
"""What the daemon may ask of any client: that there is nothing to be done is what we have to say."""


class Request:
    """One that waits for its answer. then: called with the result before anything that came behind it is looked at."""

    __slots__ = ("future", "id", "then")

    def __init__(self, id: int, future: asyncio.Future[Any], then: Then | None) -> None:
        self.id = id
        self.future = future
        self.then = then


class Connection:
    """heard: called with each notification and its size, in order. lost: called once when the connection ends.

    welcome: craftd's part of the answer to `initialize`; server: the whole answer.
    """

    def __init__(self, heard: Heard, lost: Callable[[Connection], None]) -> None:
        self.server: dict[str, Any] = {}
        self.welcome: dict[str, Any] = {}
        self.hello: dict[str, Any] = {}
        self.failure: Exception | None = None
        """Why it was lost."""
        self._heard = heard
        self._lost = lost
        self._transport: Transport | None = None
        self._waiting: dict[int, Request] = {}
        self._progress: dict[str, Progress] = {}
        self._number = 0
        self._ended = asyncio.Event()

    def over(self, codec: Codec) -> Transport:
        """The transport below this connection."""
        self._transport = Transport(codec, self._receive, self._end)
        return self._transport

    async def initialize(
        self, name: str, options: Mapping[str, Any], folders: list[dict[str, str]], roles: list[str]
    ) -> None:
        """Raises: CallFailed, ConnectionLost."""
        params = {
            "processId": os.getpid(),
            "rootUri": None,
            "workspaceFolders": folders,
            "clientInfo": {"name": name, "version": VERSION},
            "capabilities": {"experimental": {"craft": {"protocol": PROTOCOL, "roles": roles}}},
            "initializationOptions": {"craft": options},
        }
        self.server = await self.request("initialize", params).future
        self.welcome = self.server.get("capabilities", {}).get("experimental", {}).get("craft", {})
        self.notify("initialized", {})

    async def call(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        then: Then | None = None,
        progress: Mapping[str, Progress] | None = None,
    ) -> Any:
        """Result of a request; when the caller is cancelled, the request is taken back.

        progress: callbacks by the member of params that names them.
        Raises: CallFailed, ConnectionLost.
        """
        tokens = {member: f"{member}-{self._number + 1}" for member in progress or ()}
        for member, token in tokens.items():
            self._progress[token] = (progress or {})[member]
        try:
            request = self.request(method, {**params, **tokens}, then)
            try:
                if self._transport is not None:
                    await self._transport.room()
                return await request.future
            except asyncio.CancelledError:
                if self._waiting.pop(request.id, None) is not None:
                    self.notify("$/cancelRequest", {"id": request.id})
                raise
        finally:
            for token in tokens.values():
                del self._progress[token]

    def request(self, method: str, params: Mapping[str, Any], then: Then | None = None) -> Request:
        """Send a request, in this step. Raises: ConnectionLost; ValueError for what is no JSON."""
        if self.failure is not None:
            raise ConnectionLost(str(self.failure))
        self._number += 1
        request = Request(self._number, asyncio.get_running_loop().create_future(), then)
        request.future.add_done_callback(_look)
        self._send({"id": request.id, "method": method, "params": params})
        self._waiting[request.id] = request
        return request

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send({"method": method, "params": params})

    async def ends(self) -> bool:
        """Whether the daemon, which says that it stops, hangs up."""
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Hang up; what was sent goes out, if the daemon takes it."""
        self.failure = self.failure or ConnectionLost("the client was closed")
        if self._transport is not None:
            self._transport.close()
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._ended.wait()
            except TimeoutError:
                self._transport.abort("it did not read")

    def abort(self, why: str) -> None:
        if self._transport is not None:
            self._transport.abort(why)

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._transport is not None and self.failure is None:
            text = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"), allow_nan=False)
            self._transport.send(text.encode())

    # What comes

    def _receive(self, body: bytes) -> None:
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            self.abort(f"a message is no JSON: {error}")
            return
        if not isinstance(message, dict):
            self.abort("a message is no object")
        elif "method" not in message:
            self._answer(message)
        elif "id" in message:
            self._grant(message)
        elif message["method"] == "$/progress":
            params = message.get("params", {})
            if (report := self._progress.get(str(params.get("token")))) is not None:
                tell(report, params.get("value"))
        else:
            message.pop("jsonrpc", None)
            self._heard(message, len(body))

    def _answer(self, message: Message) -> None:
        if message.get("id") is None and "error" in message:
            self._refused(message["error"])
            return
        request = self._waiting.pop(message.get("id", 0), None)
        if request is None or request.future.done():
            return  # it was taken back
        if "error" in message:
            request.future.set_exception(failure_of(message["error"]))
            return
        result = message.get("result")
        try:
            if request.then is not None:
                request.then(result)
        except Exception as failure:  # whoever waits is told, not who reads
            request.future.set_exception(failure)
        else:
            request.future.set_result(result)

    def _refused(self, error: Message) -> None:
        """The daemon could not read something. If only one request waits, it was that."""
        failure = failure_of(error)
        if len(self._waiting) == 1:
            self._waiting.popitem()[1].future.set_exception(failure)
        elif self._waiting:
            self.failure = failure
            self.abort(str(failure))

    def _grant(self, message: Message) -> None:
        answer: Message = {"id": message["id"]}
        if message["method"] in _GRANTED:
            answer["result"] = None
        else:
            answer["error"] = {"code": -32601, "message": f"no method {message['method']!r} here"}
        self._send(answer)

    def _end(self, why: str) -> None:
        failure = self.failure or ConnectionLost(why)
        self.failure = failure
        waiting, self._waiting = self._waiting, {}
        for request in waiting.values():
            if not request.future.done():
                lost = ConnectionLost(str(failure), maybe_done=True) if isinstance(failure, ConnectionLost) else failure
                request.future.set_exception(lost)
        self._ended.set()
        self._lost(self)


def tell(hear: Callable[[Any], None], what: Any) -> None:
    """Call what the program gave us: if it fails, that is not the connection's failure."""
    try:
        hear(what)
    except Exception as failure:
        context = {"message": f"{hear!r} failed", "exception": failure}
        asyncio.get_running_loop().call_exception_handler(context)


def _look(answered: asyncio.Future[Any]) -> None:
    """Nobody need wait for an answer: a failure that nobody looks at is no fault of the program."""
    if not answered.cancelled():
        answered.exception()
