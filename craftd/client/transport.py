"""Bytes of one connection <-> message bodies, over a Unix socket, TCP or WebSocket, with or without TLS.

Messages are handed on in the loop's own step, so whoever gets an answer has got what came before it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from craftd.client.wire import MAX_BODY
from craftd.protocol import rendezvous
from craftd.protocol.framing import Decoder, FramingError, encode

if TYPE_CHECKING:
    import socket
    from ssl import SSLContext

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Codec(Protocol):
    """How messages stand in the stream."""

    @property
    def open(self) -> bool:
        """The other end has agreed to speak."""
        ...

    def greeting(self) -> bytes: ...
    def feed(self, data: bytes) -> Iterator[bytes]:
        """Bodies completed by *data*. Raises: FramingError."""
        ...

    def encode(self, body: bytes) -> bytes: ...
    def farewell(self) -> bytes: ...
    def owed(self) -> bytes:
        """What has to be sent because of what came: pongs, the end of a handshake."""
        ...


class Framed:
    """`Content-Length` before each message."""

    open = True

    def __init__(self) -> None:
        self.feed = Decoder(MAX_BODY).feed
        self.encode = encode

    def greeting(self) -> bytes:
        return b""

    def farewell(self) -> bytes:
        return b""

    def owed(self) -> bytes:
        return b""


class Transport(asyncio.Protocol):
    """receive: called with each body. lost: called once with the reason, after the last body."""

    def __init__(self, codec: Codec, receive: Callable[[bytes], None], lost: Callable[[str], None]) -> None:
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._codec = codec
        self._receive = receive
        self._lost = lost
        self._transport: Any = None
        self._failure = ""
        self._room = asyncio.Event()
        self._room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        if greeting := self._codec.greeting():
            self._transport.write(greeting)
        self._look_open()

    def data_received(self, data: bytes) -> None:
        try:
            for body in self._codec.feed(data):
                self._receive(body)
        except FramingError as failure:
            self.abort(str(failure))
        self._look_open()
        if owed := self._codec.owed():
            self._transport.write(owed)

    def _look_open(self) -> None:
        if self._codec.open and not self.opened.done():
            self.opened.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None and self._transport.get_extra_info("sslcontext") is None:
            self._read_rest()
        why = self._failure or (str(error) if error else "the daemon closed the connection")
        self._room.set()
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(why))
        self._lost(why)

    def _read_rest(self) -> None:
        """What the daemon said before it stopped listening: asyncio gives up reading when writing fails."""
        try:
            with self._transport.get_extra_info("socket").dup() as sock:
                sock.setblocking(False)
                while data := sock.recv(65_536):
                    self.data_received(data)
        except OSError:
            pass

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    async def room(self) -> None:
        """Wait until the daemon has taken most of what was sent."""
        await self._room.wait()

    def send(self, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(self._codec.encode(body))

    def close(self) -> None:
        """End the connection after what was sent has gone out."""
        if not self._transport.is_closing() and (farewell := self._codec.farewell()):
            self._transport.write(farewell)
        self._transport.close()

    def abort(self, why: str) -> None:
        """End it now, if it has begun: hands may not have been shaken yet."""
        self._failure = self._failure or why
        if self._transport is not None:
            self._transport.abort()


Make = Callable[[Codec], Transport]


async def adopt(sock: socket.socket, make: Make) -> Transport:
    """A transport on a connected Unix socket."""
    sock.setblocking(False)
    _, transport = await asyncio.get_running_loop().create_unix_connection(lambda: make(Framed()), sock=sock)
    return transport


async def dial(url: str, make: Make, token: str | None = None, tls: SSLContext | None = None) -> Transport:
    """A transport to `unix:/path`, `tcp://`, `tcps://`, `ws://` or `wss://host:port`. token: for the WebSocket's head.

    Raises: ValueError for another URL; OSError.
    """
    if url.startswith("unix:"):
        return await _dial_unix(url.removeprefix("unix:").replace("//", "/", 1), make)
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme not in ("tcp", "tcps", "ws", "wss") or not parts.hostname or not parts.port:
        raise ValueError(f"{url!r} is none of unix:/path, tcp://, tcps://, ws://, wss://host:port")
    secure: SSLContext | None = None
    if parts.scheme in ("tcps", "wss"):
        import ssl

        secure = tls or ssl.create_default_context()
    codec: Codec = Framed()
    if parts.scheme.startswith("ws"):
        from craftd.client.websocket import WebSocketed  # the library takes longer to import than everything here

        codec = WebSocketed(url, token)
    connection, transport = await asyncio.get_running_loop().create_connection(
        lambda: make(codec), parts.hostname, parts.port, ssl=secure
    )
    _keep_alive(connection.get_extra_info("socket"))
    try:
        await transport.opened
    except BaseException:
        transport.abort("given up")
        raise
    return transport


def is_loopback(url: str) -> bool:
    from urllib.parse import urlsplit

    return urlsplit(url).hostname in LOOPBACK


async def _dial_unix(path: str, make: Make) -> Transport:
    import socket

    sock = socket.socket(socket.AF_UNIX)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, path)
        owner = rendezvous.peer(sock)
        if owner != os.geteuid():
            raise PermissionError(f"{path} belongs to user {owner}")
        return await adopt(sock, make)
    except BaseException:
        sock.close()
        raise


def _keep_alive(sock: Any) -> None:
    """Notice that the other machine is gone although nothing is sent."""
    import socket

    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
