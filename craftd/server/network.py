"""Ways in over TCP and WebSocket: where they may be opened, and how. Everything is checked before a port opens."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import cast

from attrs import frozen

from craftd.server.auth import is_loopback
from craftd.server.daemon import Address, Network
from craftd.server.dispatch import Dispatcher
from craftd.server.streams import LINGER, SocketTransport

HANDSHAKE_SECONDS = 10.0
"""For TLS."""
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""A client whose machine has gone is noticed after two minutes (seconds, seconds, times)."""


@frozen
class Listener:
    """One open port. address: numeric, as "127.0.0.1:4711" or "[::1]:4711"."""

    kind: str
    address: str
    tls: bool
    server: asyncio.Server


@frozen
class _Planned:
    kind: str
    family: int
    name: tuple[str | int, ...]
    make: Callable[[], asyncio.BaseProtocol]


async def open_all(network: Network, dispatcher: Dispatcher) -> list[Listener]:
    """Open the ports of *network*, all or none.

    Raises: OSError, with what to do about it; before a port opens if it may not be opened.
    """
    tls = _tls(network)
    planned = []
    if network.tcp is not None:
        family, name = await _resolve("--tcp", network.tcp, network)
        planned.append(_Planned("tcp", family, name, lambda: SocketTransport(dispatcher, "tcp", tls=tls is not None)))
    if network.ws is not None:
        from craftd.server.websocket import Admission, WebSocketTransport  # a library that most daemons never need

        admission = Admission(frozenset(network.origins), frozenset(network.hosts))
        family, name = await _resolve("--ws", network.ws, network)
        planned.append(
            _Planned("ws", family, name, lambda: WebSocketTransport(dispatcher, admission, tls=tls is not None))
        )
    listeners: list[Listener] = []
    try:
        for one in planned:
            listeners.append(await _open(one, tls))
    except BaseException:
        for listener in listeners:
            listener.server.close()
        raise
    return listeners


async def _resolve(option: str, address: Address, network: Network) -> tuple[int, tuple[str | int, ...]]:
    """The one numeric address that *address* means.  Raises: OSError, also where it may not be opened."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise OSError(f"{option} {address}: {error.strerror}") from None
    family, _, _, _, name = found[0]
    if network.tls_cert is None and not network.insecure and not is_loopback(str(name[0])):
        raise OSError(
            f"{option} {address}: others could read what goes over this network; give --tls-cert and --tls-key, "
            "or say --allow-insecure-bind"
        )
    return family, cast("tuple[str | int, ...]", name)


async def _open(planned: _Planned, tls: ssl.SSLContext | None) -> Listener:
    listening = socket.socket(planned.family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio looks at the last
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # what is accepted inherits it
        for option, value in _KEEP_ALIVE.items():
            if hasattr(socket, option):
                listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        if planned.family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(planned.name)
        listening.listen(128)
        listening.setblocking(False)
        host, port = listening.getsockname()[:2]
    except OSError as error:
        listening.close()
        raise OSError(f"{planned.kind} {_written(*planned.name[:2])}: {error.strerror}") from None
    server = await asyncio.get_running_loop().create_server(
        planned.make,
        sock=listening,
        ssl=tls,
        ssl_handshake_timeout=None if tls is None else HANDSHAKE_SECONDS,
        ssl_shutdown_timeout=None if tls is None else LINGER,
    )
    return Listener(planned.kind, _written(host, port), tls is not None, server)


def _tls(network: Network) -> ssl.SSLContext | None:
    if network.tls_cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(network.tls_cert, network.tls_key, password=lambda: b"")  # nobody could be asked
    except OSError as error:
        raise OSError(f"--tls-cert {network.tls_cert}, --tls-key {network.tls_key}: {error}") from None
    return context


def _written(host: str | int, port: str | int) -> str:
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
