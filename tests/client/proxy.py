"""A way to the daemon that can be cut or held up, whichever daemon it is at the moment."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from pathlib import Path


class Proxy:
    """Listens on the Unix socket *path*; there: the daemon's socket at the time of a connection, if there is one.

    flowing: cleared, nothing that the daemon says gets through. open: cleared, whoever connects is turned away.
    """

    def __init__(self, path: Path, there: Callable[[], str | None]) -> None:
        self.url = f"unix:{path}"
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.open = True
        self.connections = 0
        self._path = path
        self._there = there
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_unix_server(self._serve, str(self._path))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.flowing.set()
        self.cut()
        assert self._server is not None
        self._server.close()
        while self._pumps:
            await asyncio.wait(self._pumps)
            await asyncio.sleep(0)

    def cut(self) -> None:
        """Break every connection, in the middle of whatever is on its way."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = self._there()
        if there is None or not self.open:
            writer.close()
            return
        try:
            sock = socket.socket(socket.AF_UNIX)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, there)
        except OSError:
            writer.close()
            return
        inner_reader, inner_writer = await asyncio.open_unix_connection(sock=sock, limit=4096)
        self.connections += 1
        both = {writer, inner_writer}
        self._writers |= both
        pumps = [
            asyncio.create_task(self._pump(reader, inner_writer, None)),
            asyncio.create_task(self._pump(inner_reader, writer, self.flowing)),
        ]
        self._pumps |= {*pumps}
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        self._pumps -= {*pumps}
        for each in both:
            each.transport.abort()
        self._writers -= both

    @staticmethod
    async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flowing: asyncio.Event | None) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(4096):
                if flowing is not None:
                    await flowing.wait()
                writer.write(data)
                await writer.drain()
