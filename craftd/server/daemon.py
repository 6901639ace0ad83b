"""Start of the daemon: whoever gets the lock serves. Light until then: twelve may start at once, one stays."""

from __future__ import annotations

import sys
from pathlib import Path

from attrs import frozen

from craftd.protocol.rendezvous import LOCK_LOST, Places
from craftd.store.locks import DaemonLock, Holder


@frozen
class Address:
    """host: name or number; port: 0 = any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@frozen(kw_only=True)
class Network:
    """Ways in beside the Unix socket. origins, hosts: in small letters, what WebSockets may say beside loopback names.

    insecure: also where others can read along. max_connections: of all ways together, None = the usual number.
    """

    tcp: Address | None = None
    ws: Address | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    insecure: bool = False
    max_connections: int | None = None


def run(config: str, *, auto: bool = False, exclusive: bool = False, network: Network | None = None) -> int:
    """Serve the configuration folder *config* until told to stop; the exit code.

    auto: end after a while without clients; when another daemon has the lock, end at once and say nothing.
    exclusive: keep the Craft Agents app's lock for life.
    """
    places = Places(config)
    lock = DaemonLock(Path(config))
    holder = _take(lock, places, quiet=auto)
    if holder is not None:
        return LOCK_LOST if auto else 1
    try:
        from craftd.server import core

        return core.serve(places, auto=auto, exclusive=exclusive, network=network or Network())
    finally:
        lock.give_back()


def run_stdio(config: str) -> int:
    """Serve one client at stdin and stdout, with the same locks as a daemon; the exit code."""
    places = Places(config)
    lock = DaemonLock(Path(config))
    if _take(lock, places, quiet=False) is not None:
        return 1
    try:
        from craftd.server import core

        return core.serve(places, auto=False, exclusive=False, network=None)
    finally:
        lock.give_back()


def _take(lock: DaemonLock, places: Places, *, quiet: bool) -> Holder | None:
    try:
        holder = lock.take()
    except OSError as error:
        print(f"craftd: {places.lock} cannot be opened: {error.strerror}", file=sys.stderr)
        return Holder(None)
    if holder is not None and not quiet:
        pid = "another process" if holder.pid is None else f"pid {holder.pid}"
        print(f"craftd: a daemon runs already ({pid}), it holds {places.lock}; `craftd stop` ends it", file=sys.stderr)
    return holder
