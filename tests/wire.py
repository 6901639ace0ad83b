"""A small raw client: whatever it is told to send goes out, and everything that comes in is kept in its order."""

from __future__ import annotations

import asyncio
import socket
from itertools import count
from pathlib import Path
from typing import Any

from attrs import define, field

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

    bodies: the same as bytes.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    received: list[dict[str, Any]] = field(factory=list)
    bodies: list[bytes] = field(factory=list)
    _ids: count[int] = field(factory=lambda: count(1))
    _news: asyncio.Event = field(factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    @classmethod
    async def connect(cls, path: Path | str, *, reading: bool = True) -> Wire:
        """A connection to the Unix socket *path*; reading=False: a client that takes nothing until `start_reading`."""
        wire = cls(*await asyncio.open_unix_connection(str(path)))
        if reading:
            wire.start_reading()
        return wire

    def start_reading(self) -> None:
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        decoder = Decoder(1 << 30)
        try:
            while data := await self.reader.read(1 << 16):
                for body in decoder.feed(data):
                    self.bodies.append(body)
                    self.received.append(json_text.loads(body))
                self._news.set()
        except ConnectionError:
            pass
        finally:
            self.received.append({"closed": True})
            self._news.set()

    def raw(self, data: bytes) -> None:
        self.writer.write(data)

    def send(self, method: str, params: Any = None, **more: Any) -> None:
        """A notification, or with `id=` a request; params None = no such member."""
        given = {} if params is None else {"params": params}
        self.raw(encode(json_text.dumps({"jsonrpc": "2.0", "method": method, **given, **more})))

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
        if craft is not None:
            params["initializationOptions"] = {"craft": craft}
        result = await self.call("initialize", params)
        self.send("initialized", {})
        return result["capabilities"]["experimental"]["craft"]

    async def closed(self) -> None:
        """Wait until the daemon has closed the connection."""
        await self.wait(lambda m: "closed" in m)

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
