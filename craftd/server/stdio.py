"""The one client at the process's own stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from craftd.protocol.framing import Decoder, FramingError
from craftd.server.dispatch import Dispatcher
from craftd.server.streams import HIGH_WATER, LOW_WATER

_TURN = 64
"""Messages handed over before the loop has its turn."""


class StdioTransport:
    """The one client at our stdin and stdout. Both block, so each has a thread; nothing else runs in them."""

    def __init__(self, dispatcher: Dispatcher, source: int, target: int) -> None:
        self.done = asyncio.Event()
        """Everything has been written, or nobody reads it."""
        self._loop = asyncio.get_running_loop()
        self._source = source
        self._target = target
        self._decoder = Decoder()
        self._deaf = False
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._buffered = 0
        self._full = False
        self._closing = False
        self._connection = dispatcher.connect(self, "stdio")
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True, name=f"stdio-{work.__name__.strip('_')}").start()

    # In the event loop

    def write(self, frames: Sequence[bytes]) -> None:
        if self._closing:
            return
        data = b"".join(frames)
        self._buffered += len(data)
        self._out.put(data)
        if self._buffered > HIGH_WATER and not self._full:
            self._full = True
            self._connection.outbox.pause()

    def buffered(self) -> int:
        return self._buffered

    def close(self, code: int = 1000, reason: str = "") -> None:
        if not self._closing:
            self._closing = True
            self._out.put(None)

    def abort(self) -> None:
        self._closing = True
        self._lost()

    async def _received(self, data: bytes) -> None:
        try:
            for turn, body in enumerate(self._decoder.feed(data), start=1):
                self._connection.receive(body)
                if turn % _TURN == 0:
                    await asyncio.sleep(0)
        except FramingError as failure:
            self._deaf = True
            self._connection.broken(failure)

    def _written(self, length: int) -> None:
        self._buffered -= length
        if self._full and self._buffered <= LOW_WATER:
            self._full = False
            self._connection.outbox.resume()

    def _lost(self) -> None:
        self._deaf = True
        self._connection.closed()
        self.done.set()

    # In the threads

    def _read(self) -> None:
        """One piece at a time: the next is read when the loop has dealt with the last."""
        while not self._deaf:
            try:
                data = os.read(self._source, 65_536)
            except OSError:
                data = b""
            if not data:
                self._tell(self._connection.end)
                return
            work = self._received(data)
            try:
                handed = asyncio.run_coroutine_threadsafe(work, self._loop)
            except RuntimeError:  # the loop has ended
                work.close()
                return
            handed.result()

    def _write(self) -> None:
        while (data := self._out.get()) is not None:
            rest = memoryview(data)
            try:
                while rest:
                    rest = rest[os.write(self._target, rest) :]
            except OSError:
                break
            self._tell(self._written, len(data))
        self._tell(self._lost)

    def _tell(self, call: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:  # the loop has ended
            pass


async def serve_stdio(dispatcher: Dispatcher, source: int = 0, target: int = 1) -> None:
    """Serve the one client at these file descriptors until it has left and was told everything."""
    await StdioTransport(dispatcher, source, target).done.wait()
