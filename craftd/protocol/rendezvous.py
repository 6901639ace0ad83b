"""Where the daemon of one configuration folder is found, and whom to trust there: reads files, never writes.

Everything lies in `<configuration>/craftd/`; only the socket lies elsewhere, because its name may have 104 bytes at
most. Clients read the socket's name in `daemon.json`, so their environment need not be the daemon's.

Imported by what an editor starts: standard library alone, and of that only what costs nothing to import.
"""

from __future__ import annotations

import json
import os
import sys
from stat import S_IMODE, S_ISDIR

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know the name
if TYPE_CHECKING:
    import _socket
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

VERSION = "0.1.0"
"""Version of this program, the same as in pyproject.toml (reading package metadata would cost an editor 30 ms)."""

PROTOCOL = "1.0"
"""Version of the wire protocol, major.minor: a client works with every daemon of its major."""

CONFIG_VARIABLE = "CRAFT_CONFIG_DIR"
SOCKET_NAME_LIMIT = 103
"""Bytes of a socket's full name without the closing zero (macOS; Linux has four more)."""

LOCK_LOST = 75
"""Exit code of `craftd serve --auto` when another daemon holds the lock (EX_TEMPFAIL of sysexits.h)."""


class Untrusted(Exception):
    """A folder that shall hold our socket belongs to, or is open to, somebody else."""


class Places:
    """Names of what belongs to the daemon of one configuration folder; all absolute.

    config: the configuration folder, links resolved, so that two spellings meet in one daemon. folder: `craftd/` in it.
    """

    __slots__ = ("blobs", "cache", "card", "config", "folder", "lock", "log", "state", "token", "tokens")

    def __init__(self, config: str) -> None:
        self.config = config
        self.folder = os.path.join(config, "craftd")
        self.lock = os.path.join(self.folder, "lock")
        self.card = os.path.join(self.folder, "daemon.json")
        self.token = os.path.join(self.folder, "token")
        self.tokens = os.path.join(self.folder, "tokens.json")
        self.log = os.path.join(self.folder, "log")
        self.cache = os.path.join(self.folder, "cache")
        self.blobs = os.path.join(self.folder, "blobs")
        self.state = os.path.join(self.folder, "state")


class Card:
    """What a running daemon wrote about itself into `daemon.json`.

    A name to dial, never a proof that somebody lives: only the lock says that.
    listeners: all ways in, the socket among them: `{kind, address, tls}`.
    """

    __slots__ = ("listeners", "pid", "protocol", "socket", "version")

    def __init__(
        self,
        pid: int,
        socket: str,
        version: str = VERSION,
        protocol: str = PROTOCOL,
        listeners: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.pid = pid
        self.socket = socket
        self.version = version
        self.protocol = protocol
        self.listeners = listeners

    def as_json(self) -> bytes:
        """Content of `daemon.json`."""
        members = {name: getattr(self, name) for name in ("pid", "socket", "version", "protocol", "listeners")}
        return json.dumps(members, indent=2).encode() + b"\n"


def find(value: str | None = None, environ: Mapping[str, str] = os.environ) -> Places:
    """Places of the configuration folder *value*, else of `$CRAFT_CONFIG_DIR`, else of `~/.craft-agent`.

    The folder need not exist. A leading ~ is the home folder; a relative name is taken from the working directory.
    """
    named = value or environ.get(CONFIG_VARIABLE) or os.path.join("~", ".craft-agent")
    return Places(os.path.realpath(os.path.expanduser(named)))


def read_card(places: Places) -> Card | None:
    """The daemon's card; None if there is none or if it cannot be understood."""
    try:
        with open(places.card, "rb") as file:
            members = json.loads(file.read(65_536))
        pid, socket, version, protocol = (members[name] for name in ("pid", "socket", "version", "protocol"))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if type(pid) is int and all(type(text) is str for text in (socket, version, protocol)) and os.path.isabs(socket):
        listeners = members.get("listeners")
        return Card(pid, socket, version, protocol, listeners if isinstance(listeners, list) else ())
    return None


def is_held(places: Places) -> bool:
    """Whether a daemon of this configuration lives: its lock is held as long as its process is there.

    Looking takes the lock for a moment, so do not look in a loop that waits for a daemon to start.
    """
    import fcntl

    try:
        lock = os.open(places.lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks, where nobody holds one
        return False
    finally:
        os.close(lock)
    return False


def socket_folders(places: Places, environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Folders for the socket, best first: in the user's run-time folder, else below the temporary one.

    Only those whose names leave room for a socket; a run-time folder must exist and be ours. The last element of each
    is a hash of the configuration folder's name. The daemon makes the folder and has `check_private` look at it.
    """
    import hashlib
    import tempfile

    digest = hashlib.sha256(os.fsencode(places.config)).hexdigest()[:12]
    user = os.geteuid()
    bases = [
        os.path.join(base, "craftd")
        for base in (environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user}")
        if os.path.isabs(base) and _is_ours(base)
    ]
    bases += [os.path.join(base, f"craftd-{user}") for base in (tempfile.gettempdir(), "/tmp")]
    longest = len(f"/.s{2**22}")  # the name it is bound to before it is renamed to "sock"; 2^22: largest pid on Linux
    for base in dict.fromkeys(bases):
        folder = os.path.join(base, digest)
        if len(os.fsencode(folder)) + longest <= SOCKET_NAME_LIMIT:
            yield folder


def check_private(folder: str) -> None:
    """Make sure that *folder* and the one above it are real folders of ours that nobody else may enter (mode 0700).

    The one above too: who owns it could put another folder in the place of ours.
    Raises: Untrusted, saying what is wrong; OSError if one is not there.
    """
    for name in (os.path.dirname(folder), folder):
        status = os.lstat(name)
        if not S_ISDIR(status.st_mode):
            raise Untrusted(f"{name} is not a folder")
        if status.st_uid != os.geteuid():
            raise Untrusted(f"{name} belongs to user {status.st_uid}")
        if S_IMODE(status.st_mode) & 0o077:
            raise Untrusted(f"{name} is open to other users (mode {S_IMODE(status.st_mode):o})")


def peer(connected: _socket.socket) -> int:
    """Id of the user at the other end of a Unix socket, by the kernel's word."""
    import _socket

    if sys.platform == "darwin":
        credentials = connected.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED, sizeof(struct xucred)
    else:
        credentials = connected.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # sizeof(struct ucred)
    return int.from_bytes(credentials[4:8], sys.byteorder)  # in both structures


def _is_ours(folder: str) -> bool:
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
