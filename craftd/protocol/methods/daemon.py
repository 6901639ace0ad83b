"""The daemon itself: who it is, how it is, and its end."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from craftd.model.records import Record
from craftd.protocol.contract import Position, Ref
from craftd.protocol.registry import method, notification


@frozen(kw_only=True)
class Hello:
    """config_dir: real path of the configuration folder. clients: how many other connections there are."""

    pid: int
    version: str
    protocol: str
    config_dir: str
    read_only: bool
    clients: int


@method("daemon/hello", result=Hello, right="none")
@frozen(kw_only=True)
class SayHello:
    """Learn who answers, before `initialize`. All members are optional, but a connection of the network needs `token`
    here or there."""

    client: str | None = None
    version: str | None = None
    protocol: str | None = None
    config_dir: str | None = None
    pid: int | None = None
    token: str | None = field(default=None, repr=False)


@method("daemon/status", result=Record, right="read")
@frozen(kw_only=True)
class DaemonStatus:
    """How the daemon is: connections, open workspaces, locks, watches, environment."""


@method("daemon/sync", result=Position, right="read", scope="either")
@frozen(kw_only=True)
class Sync(Ref):
    """Barrier: answers when every earlier file event and commit of the scope was processed and announced."""


@method("daemon/release", result=Record, right="write")
@frozen(kw_only=True)
class Release:
    """Give back the Craft Agents app's lock at once, everything folded and flushed."""


@method("daemon/stop", result=None, right="admin")
@frozen(kw_only=True)
class Stop:
    """End the daemon after what runs has finished. reason: stop, upgrade."""

    reason: str = "stop"


@notification("daemon/didChange")
@frozen(kw_only=True)
class DaemonDidChange:
    """Whether craftd may write, or the known workspaces, changed."""

    read_only: bool | None = None
    holder: Any = None
    workspaces: tuple[Record, ...] | None = None


@notification("daemon/willStop")
@frozen(kw_only=True)
class DaemonWillStop:
    """The daemon ends in *grace_ms*; reconnecting later is fine. reason: stop, upgrade, idle."""

    reason: str
    grace_ms: int
