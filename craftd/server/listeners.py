"""Where clients come from: a Unix socket. Each yields connections."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from craftd.protocol.rendezvous import check_private
from craftd.server.dispatch import Dispatcher
from craftd.server.streams import SocketTransport


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
