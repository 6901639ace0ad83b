"""Where clients come from: a Unix socket, and the process's own stdin and stdout. Each yields connections."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from craftd.errors import Busy
from craftd.protocol import codec
from craftd.protocol.framing import Decoder, FramingError, PlainHttp, encode
from craftd.protocol.rendezvous import check_private, peer
from craftd.server.connection import Connection
from craftd.server.dispatch import Dispatcher

log = logging.getLogger(__name__)

HIGH_WATER = 64 << 10
LOW_WATER = 16 << 10
"""Bytes that a transport keeps for the system to take; everything else waits in the outbox, where it is counted."""

READ_BYTES = 64 << 10
"""One buffer per client for good: asyncio's own fresh 256 KiB per read cost more than a small request."""

LINGER = 1.0
"""Seconds for a client to read our last words and close, while what it still sends is thrown away."""

_TURN = 64
"""Messages read from one client before the others have their turn."""

_NO_HTTP = b"This is not an HTTP server.\n"
_HTTP_REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_NO_HTTP), _NO_HTTP)
)


class SocketTransport(asyncio.BufferedProtocol):
    """One client of the Unix socket: frames in, frames out."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._loop = asyncio.get_running_loop()
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._decoder = Decoder()
        self._bodies: Iterator[bytes] = iter(())
        self._connection: Connection | None = None
        self._deaf = False
        """Whatever still arrives is thrown away."""
        self._paused = False
        self._transport: asyncio.Transport

    # asyncio's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(HIGH_WATER, LOW_WATER)
        user = peer(transport.get_extra_info("socket"))
        if user != os.geteuid():
            log.warning("refused a connection of user %s", user)
            self._transport.abort()
            return
        try:
            self._connection = self._dispatcher.connect(self, "unix")
        except Busy as error:
            said = {"code": error.code, "message": str(error), "data": error.data()}
            self.write(encode(codec.dumps({"jsonrpc": "2.0", "id": None, "error": said})))
            self.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if not self._deaf:
            self._bodies = self._decoder.feed(bytes(self._buffer[:nbytes]))
            self._read()

    def eof_received(self) -> bool:
        if self._connection is None or self._deaf or hung_up(self._transport.get_extra_info("socket")):
            return False
        self._deaf = True
        self._connection.end()
        return True  # the answers still go out

    def pause_writing(self) -> None:
        if self._connection is not None:
            self._connection.outbox.pause()

    def resume_writing(self) -> None:
        if self._connection is not None:
            self._connection.outbox.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deaf = True
        if self._connection is not None:
            self._connection.closed()

    # The outbox's calls

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def buffered(self) -> int:
        return self._transport.get_write_buffer_size()

    def close(self) -> None:
        if self._transport.is_closing():
            return
        if self._deaf and not self._paused:
            self._transport.close()
            return
        # Closing with input unread would reset the connection before the client has read what it was told.
        self._deaf = True
        self._resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._loop.call_later(LINGER, self._transport.close)

    def abort(self) -> None:
        self._transport.abort()

    def _read(self) -> None:
        """Hand over what has arrived, and let others have their turn in between."""
        connection = self._connection
        if connection is None or self._deaf:
            return
        connection.outbox.cork()
        turns = 0
        try:
            for body in self._bodies:
                connection.receive(body)
                turns += 1
                if turns == _TURN:
                    break
        except PlainHttp:
            self.write(_HTTP_REFUSAL)
            self.close()
        except FramingError as failure:
            connection.broken(failure)
        finally:
            connection.outbox.flush()
        if turns < _TURN:
            self._resume_reading()
            return
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()
        self._loop.call_soon(self._read)

    def _resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            self._transport.resume_reading()


async def listen(path: Path, dispatcher: Dispatcher) -> asyncio.Server:
    """Serve the Unix socket *path*, replacing what is there under that name; its folder and the one above are made.

    A client that finds the name finds a socket that listens.
    Raises: Untrusted if others could put a socket of their own there; OSError.
    """
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    check_private(str(path.parent))
    temporary = path.with_name(f".s{os.getpid()}")
    temporary.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(temporary))
        os.chmod(temporary, 0o600)
        listening.listen(128)
        listening.setblocking(False)
        temporary.rename(path)
    except BaseException:
        listening.close()
        temporary.unlink(missing_ok=True)
        raise
    return await asyncio.get_running_loop().create_unix_server(lambda: SocketTransport(dispatcher), sock=listening)


def hung_up(connected: socket.socket) -> bool:
    """Has the other end closed both directions? After a mere end of input it still reads."""
    poll = select.poll()
    poll.register(connected.fileno(), 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))


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

    def write(self, data: bytes) -> None:
        if self._closing:
            return
        self._buffered += len(data)
        self._out.put(data)
        if self._buffered > HIGH_WATER and not self._full:
            self._full = True
            self._connection.outbox.pause()

    def buffered(self) -> int:
        return self._buffered

    def close(self) -> None:
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
            try:
                asyncio.run_coroutine_threadsafe(self._received(data), self._loop).result()
            except RuntimeError:  # the loop has ended
                return

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
