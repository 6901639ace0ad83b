"""Clients at the end of a stream: turns, back pressure, and an end that the client can read.

`Stream` knows no frames; `SocketTransport` speaks LSP's on Unix sockets and TCP, `websocket.py` the other kind.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import socket
from collections.abc import Iterator, Sequence
from typing import cast

from craftd.errors import Busy, CraftdError
from craftd.protocol import codec
from craftd.protocol.framing import Decoder, FramingError, PlainHttp, encode
from craftd.protocol.rendezvous import peer
from craftd.server.auth import Caller
from craftd.server.connection import Connection
from craftd.server.dispatch import MAX_TURNED_AWAY, Dispatcher
from craftd.server.outbox import STALL_SECONDS

log = logging.getLogger(__name__)

HIGH_WATER = 64 << 10
LOW_WATER = 16 << 10
"""Bytes that a transport keeps for the system to take; everything else waits in the outbox, where it is counted."""

READ_BYTES = 64 << 10
"""One buffer for good: asyncio's own fresh 256 KiB per read cost more than a small request."""

LINGER = 1.0
"""Seconds for a client to read our last words and close, while what it still sends is thrown away."""

_TURN = 64
"""Messages read from one client before the others have their turn."""

_NO_HTTP = b"This is not an HTTP server.\n"
HTTP_REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_NO_HTTP), _NO_HTTP)
)


class Stream(asyncio.BufferedProtocol):
    """One client. caller: where it comes from, None for the Unix socket."""

    kind = "unix"
    _buffer = memoryview(bytearray(READ_BYTES))
    """Shared by all: what arrives is copied before the next client is looked at."""

    def __init__(self, dispatcher: Dispatcher, *, tls: bool = False) -> None:
        self._dispatcher = dispatcher
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._bodies: Iterator[bytes] = iter(())
        self._connection: Connection | None = None
        self._deaf = False
        """Whatever still arrives is thrown away."""
        self._ended = False
        """Nothing more can arrive."""
        self._paused = False
        self._turned_away = False
        self._transport: asyncio.Transport

    # What the kinds of stream differ in

    def write(self, frames: Sequence[bytes]) -> None:
        raise NotImplementedError

    def close(self, code: int = 1000, reason: str = "") -> None:
        """End the connection after what was written has gone out."""
        raise NotImplementedError

    # asyncio's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(HIGH_WATER, LOW_WATER)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def eof_received(self) -> bool:
        self._ended = True
        if self._connection is None or self._deaf or self._tls or hung_up(self._transport.get_extra_info("socket")):
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
        if self._turned_away:
            self._dispatcher.turned_away -= 1
        if self._connection is not None:
            self._connection.closed()

    # The outbox's calls

    def buffered(self) -> int:
        return self._transport.get_write_buffer_size()

    def abort(self) -> None:
        self._transport.abort()

    # For the kinds

    def _caller(self) -> Caller:
        """Where a client of the network comes from."""
        name = self._transport.get_extra_info("peername")  # None when it has gone already
        return Caller(str(name[0]) if name else "", self._tls)

    def _enter(self, caller: Caller | None) -> Busy | None:
        """Become a connection. Answers why not, if that may be said: whoever comes in crowds is just hung up on."""
        try:
            self._connection = self._dispatcher.connect(self, self.kind, caller)
        except Busy as error:
            self._turned_away = True
            self._dispatcher.turned_away += 1
            if self._dispatcher.turned_away <= MAX_TURNED_AWAY:
                return error
            self._transport.abort()
        return None

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
            self._transport.write(HTTP_REFUSAL)
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

    def _linger(self) -> None:
        """Closing with input unread would reset the connection before the client has read what it was told."""
        self._deaf = True
        self._resume_reading()
        self._loop.call_later(LINGER, self._finish)

    def _finish(self) -> None:
        self._transport.close()
        if self._transport.get_write_buffer_size():  # nobody may ever take it
            self._loop.call_later(STALL_SECONDS, self._transport.abort)


class SocketTransport(Stream):
    """Frames with a header, as in LSP: on the Unix socket, and on TCP."""

    def __init__(self, dispatcher: Dispatcher, kind: str = "unix", *, tls: bool = False) -> None:
        super().__init__(dispatcher, tls=tls)
        self.kind = kind
        self._decoder = Decoder()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.kind == "unix" and (user := peer(transport.get_extra_info("socket"))) != os.geteuid():
            log.warning("refused a connection of user %s", user)
            self._transport.abort()
            return
        busy = self._enter(None if self.kind == "unix" else self._caller())
        if busy is not None:
            self.write([encode(error_message(busy))])
            self.close()

    def buffer_updated(self, nbytes: int) -> None:
        if self._deaf:
            return
        if self._connection is not None:
            self._decoder.max_body = self._connection.max_message
        self._bodies = self._decoder.feed(bytes(self._buffer[:nbytes]))
        self._read()

    def write(self, frames: Sequence[bytes]) -> None:
        self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))

    def close(self, code: int = 1000, reason: str = "") -> None:
        if self._transport.is_closing():
            return
        if self._ended and not self._paused:
            self._finish()
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._linger()


def error_message(error: CraftdError) -> bytes:
    """What is said to a client that asked nothing yet."""
    said = {"code": error.code, "message": str(error), "data": error.data()}
    return codec.dumps({"jsonrpc": "2.0", "id": None, "error": said})


def hung_up(connected: socket.socket) -> bool:
    """Has the other end closed both directions? After a mere end of input it still reads."""
    poll = select.poll()
    poll.register(connected.fileno(), 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
