"""A small raw client: whatever it is told to send goes out, and everything that comes in is kept in its order.

`Wire` speaks LSP's framing over a Unix socket or TCP, `WebWire` the same messages over a WebSocket.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from attrs import define, field
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

from craftd.model import json_text
from craftd.protocol.framing import Decoder, encode

PATIENCE = 30.0
"""Seconds: nothing in a test takes that long unless it never comes."""


class Failed(Exception):
    """An error answer. error: the JSON-RPC error object."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['data']['code']}: {error['message']}")
        self.error = error
        self.code: int = error["code"]
        self.name: str = error["data"]["code"]


@define(eq=False)
class Wire:
    """received: every message in order, so that a notification's place among the answers can be seen.

    bodies: the same as bytes. token: what `initialize` shows, if anything.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    token: str | None = None
    received: list[dict[str, Any]] = field(factory=list)
    bodies: list[bytes] = field(factory=list)
    _ids: count[int] = field(factory=lambda: count(1))
    _news: asyncio.Event = field(factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _decoder: Decoder = field(factory=lambda: Decoder(1 << 30))

    @classmethod
    async def connect(
        cls,
        where: Path | str,
        *,
        token: str | None = None,
        reading: bool = True,
        tls: ssl.SSLContext | None = None,
        headers: Mapping[str, str] | None = None,
        subprotocols: Sequence[str] = ("craftd.v1",),
    ) -> Wire:
        """A connection to the Unix socket *where* (also `unix:/path`), or to a `tcp://`, `tcps://`, `ws://` or `wss://`
        address.

        token: goes into `initialize`, or for a WebSocket into its handshake, which also has *headers* and
        *subprotocols*. reading=False: a client that takes nothing until `start_reading`.
        """
        scheme, _, place = str(where).partition("://")
        wire: Wire
        if not place:
            wire = Wire(*await asyncio.open_unix_connection(scheme.removeprefix("unix:")), token)
        else:
            host, _, port = place.partition("/")[0].rpartition(":")
            streams = await asyncio.open_connection(host.strip("[]"), int(port), ssl=tls)
            if scheme in ("tcp", "tcps"):
                wire = Wire(*streams, token)
            else:
                wire = WebWire(*streams)
                shown = {} if token is None else {"Authorization": f"Bearer {token}"}
                await wire.shake_hands(str(where), {**shown, **(headers or {})}, subprotocols)
        if reading:
            wire.start_reading()
        return wire

    def start_reading(self) -> None:
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            for body in self._arrived(b""):
                self._keep(body)
            while data := await self.reader.read(1 << 16):
                for body in self._arrived(data):
                    self._keep(body)
                self._news.set()
        except ConnectionError:
            pass
        finally:
            self.received.append({"closed": True, **self._parting()})
            self._news.set()

    def _keep(self, body: bytes) -> None:
        self.bodies.append(body)
        self.received.append(json_text.loads(body))

    def _arrived(self, data: bytes) -> Iterator[bytes]:
        return self._decoder.feed(data)

    def _parting(self) -> dict[str, Any]:
        return {}

    def post(self, body: bytes) -> None:
        """Send one message."""
        self.raw(encode(body))

    def raw(self, data: bytes) -> None:
        self.writer.write(data)

    def send(self, method: str, params: Any = None, **more: Any) -> None:
        """A notification, or with `id=` a request; params None = no such member."""
        given = {} if params is None else {"params": params}
        self.post(json_text.dumps({"jsonrpc": "2.0", "method": method, **given, **more}))

    def ask(self, method: str, params: Any = None) -> int:
        """Send a request; its id is for `answer`."""
        id_ = next(self._ids)
        self.send(method, params, id=id_)
        return id_

    async def answer(self, id_: Any) -> Any:
        """The result that came for *id_*.  Raises: Failed."""
        message = await self.wait(lambda m: m.get("id", self) == id_ and "method" not in m)
        if "error" in message:
            raise Failed(message["error"])
        return message["result"]

    async def call(self, method: str, params: Any = None) -> Any:
        return await self.answer(self.ask(method, params))

    async def notified(self, method: str, number: int = 1) -> dict[str, Any]:
        """Params of the first (or *number*-th) notification *method*."""
        await self.wait(lambda m: len(self.notifications(method)) >= number)
        return self.notifications(method)[number - 1]

    def notifications(self, method: str) -> list[dict[str, Any]]:
        return [m["params"] for m in self.received if m.get("method") == method]

    @property
    def order(self) -> list[Any]:
        """Methods of notifications and ids of answers as they came."""
        return [m.get("method", m.get("id")) for m in self.received if "closed" not in m]

    async def wait(self, wanted: Any) -> dict[str, Any]:
        """The first message, past or to come, that is *wanted*."""
        seen = 0
        async with asyncio.timeout(PATIENCE):
            while True:
                for message in self.received[seen:]:
                    if wanted(message):
                        return message
                seen = len(self.received)
                if self.received and "closed" in self.received[-1]:
                    raise ConnectionError("closed before it came")
                self._news.clear()
                await self._news.wait()

    async def initialize(self, craft: Any = None, **more: Any) -> Any:
        """The handshake; the `craft` member of what was announced."""
        params = {"processId": None, "rootUri": None, "capabilities": {}, "clientInfo": {"name": "test"}, **more}
        if self.token is not None:
            craft = {"token": self.token, **(craft or {})}
        if craft is not None:
            params["initializationOptions"] = {"craft": craft}
        result = await self.call("initialize", params)
        self.send("initialized", {})
        return result["capabilities"]["experimental"]["craft"]

    async def closed(self) -> dict[str, Any]:
        """Wait until the daemon has closed the connection; for a WebSocket, with `code` and `reason`."""
        return await self.wait(lambda m: "closed" in m)

    def hang_up(self) -> None:
        """Close both directions now, even where the event loop does not run on."""
        try:
            self.writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # closed already

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            pass


@define(eq=False)
class WebWire(Wire):
    """protocol: the library's; what is not its frames goes out by `raw`. The last of received has the closing code.

    response: what the handshake was answered with. controls: pings, pongs and closes that came.
    """

    protocol: ClientProtocol = field(init=False)
    response: Response | None = None
    controls: list[Frame] = field(factory=list)
    _parts: list[bytes] = field(factory=list)
    _early: list[Frame] = field(factory=list)

    async def shake_hands(self, url: str, headers: Mapping[str, str], subprotocols: Sequence[str]) -> None:
        self.protocol = ClientProtocol(parse_uri(url), subprotocols=list(subprotocols) or None, max_size=None)  # type: ignore[arg-type]
        request = self.protocol.connect()
        for name, value in headers.items():
            if name in request.headers:
                del request.headers[name]
            request.headers[name] = value
        self.protocol.send_request(request)
        self.flush()
        while self.response is None:
            data = await asyncio.wait_for(self.reader.read(1 << 16), PATIENCE)
            if not data:
                raise ConnectionError("closed during the handshake")
            self.protocol.receive_data(data)
            for event in self.protocol.events_received():
                if isinstance(event, Response):
                    self.response = event
                elif isinstance(event, Frame):
                    self._early.append(event)
        if self.response.status_code != 101:
            raise ConnectionError(f"the handshake was refused with {self.response.status_code}")

    def _arrived(self, data: bytes) -> Iterator[bytes]:
        if data:
            self.protocol.receive_data(data)
        events = [*self._early, *self.protocol.events_received()]
        self._early.clear()
        self.flush()
        for frame in events:
            assert isinstance(frame, Frame)
            if frame.opcode in (Opcode.PING, Opcode.PONG, Opcode.CLOSE):
                self.controls.append(frame)
                self._news.set()
                continue
            self._parts.append(bytes(frame.data))
            if frame.fin:
                yield b"".join(self._parts)
                self._parts.clear()

    def _parting(self) -> dict[str, Any]:
        said = self.protocol.close_rcvd
        return {} if said is None else {"code": said.code, "reason": said.reason}

    def post(self, body: bytes) -> None:
        self.protocol.send_text(body)
        self.flush()

    def flush(self) -> None:
        """Send what the protocol has to say."""
        for data in self.protocol.data_to_send():
            if data:
                with suppress(RuntimeError):  # the test has ended our direction
                    self.writer.write(data)
            elif self.writer.can_write_eof():
                self.writer.write_eof()

    async def controlled(self, opcode: Opcode) -> Frame:
        """The first control frame of this kind."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for frame in self.controls:
                    if frame.opcode is opcode:
                        return frame
                self._news.clear()
                await self._news.wait()


@define(eq=False)
class BridgeWire(Wire):
    """The pipes of a program that copies bytes between them and the daemon, as an editor holds them."""

    process: Process = field(init=False)

    @classmethod
    async def start(cls, *command: str, env: Mapping[str, str]) -> BridgeWire:
        process = await asyncio.create_subprocess_exec(*command, env=env, stdin=PIPE, stdout=PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        wire = cls(process.stdout, process.stdin)
        wire.process = process
        wire.start_reading()
        return wire

    def hang_up(self) -> None:
        try:
            os.kill(self.process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass  # it has gone already

    async def close(self) -> None:
        await super().close()
        await self.process.wait()
