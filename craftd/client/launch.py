"""Find the daemon of a configuration folder, or start it.

Any number of programs may do this at the same moment: each dials, and starts a daemon if nobody answers; the daemons
race for one lock, the losers end silently with `LOCK_LOST`, and every program finds the winner by dialing again.

Imported by what an editor starts: standard library alone. `_socket` is the C module below `socket`, whose Python part
(selectors, enums) takes longer to import than everything here.
"""

from __future__ import annotations

import os
import sys
import time
from _socket import AF_UNIX, SOCK_STREAM, socket

from craftd.client import wire
from craftd.protocol import rendezvous
from craftd.protocol.rendezvous import LOCK_LOST, PROTOCOL, VERSION, Places

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PATIENCE = 10.0
"""Seconds from the first dial until a program gives up."""

COMMAND = ("-P", "-m", "craftd", "serve", "--auto")
"""Arguments of the interpreter that starts a daemon. -P: no file of the working directory is taken for our module."""

_KEPT = {"HOME", "PATH", "LANG", "TZ", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}
_KEPT_PREFIXES = ("XDG_", "CRAFT_", "CRAFTD_")


class NotReached(Exception):
    """There is no daemon to work with; the text says why and what to do."""


class Absent(NotReached):
    """No daemon runs, and none was to be started."""


class Silent(NotReached):
    """Somebody listens but does not answer within `PATIENCE`."""


class Mismatch(NotReached):
    """A daemon runs, but it is not one that this program can work with."""


class Link:
    """A connection on which `daemon/hello` was answered.

    hello: the answer, `{pid, version, protocol, configDir, readOnly, clients}`. The next message is `initialize`.
    """

    def __init__(self, sock: socket, incoming: wire.Incoming, hello: dict[str, Any]) -> None:
        self.sock = sock
        self.incoming = incoming
        self.hello = hello

    def ask(self, method: str, **params: Any) -> wire.Message:
        """Send one of the requests that need no `initialize`; the response, an error response too.

        Raises: Silent; NotReached if the daemon ends.
        """
        try:
            self.sock.settimeout(PATIENCE)
            self.sock.sendall(wire.frame({"id": method, "method": method, "params": params}))
            while message := self.incoming.next():
                if message.get("id") == method:
                    self.sock.settimeout(None)
                    return message
        except TimeoutError:
            raise Silent(f"the daemon (pid {self.hello.get('pid')}) does not answer") from None
        except (OSError, wire.Broken):
            pass
        raise NotReached("the daemon ended while it was asked")

    def wait_for_end(self) -> bool:
        """Read until the daemon closes the connection; False if it has not within `PATIENCE`."""
        self.sock.settimeout(PATIENCE)
        try:
            while self.sock.recv(65_536):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
        return True

    def close(self) -> None:
        self.sock.close()


def greet(places: Places, client: str) -> Link | None:
    """Dial the running daemon, whatever its version, and say hello; None if nobody is there.

    client: name of the calling program, for the daemon's status.
    Raises: Mismatch if who listens is another user's process or no daemon; Silent.
    """
    card = rendezvous.read_card(places)
    if card is None:
        return None
    sock = socket(AF_UNIX, SOCK_STREAM)
    try:
        sock.connect(card.socket)
    except OSError:
        sock.close()
        return None
    owner = rendezvous.peer(sock)
    if owner != os.geteuid():
        sock.close()
        raise Mismatch(f"the daemon of {places.config} belongs to user {owner}")
    link = Link(sock, wire.Incoming(sock.recv), {"pid": card.pid})
    try:
        answer = link.ask(
            "daemon/hello",
            client=client,
            version=VERSION,
            protocol=PROTOCOL,
            configDir=places.config,
            pid=os.getpid(),
        )
    except Silent:
        link.close()
        raise
    except NotReached:  # it was about to end
        link.close()
        return None
    result = answer.get("result")
    if not isinstance(result, dict):
        link.close()
        raise Mismatch(f"{card.socket} does not answer like a craftd daemon")
    link.hello = result
    return link


def connect(places: Places, client: str) -> Link:
    """A link to a daemon that this program can work with; started, or replaced by one of this version, if need be.

    An older daemon without clients is replaced. One with clients is used if its protocol has our major.
    Raises: Mismatch, NotReached.
    """
    return _Search(places, client).run()


def start(places: Places) -> int:
    """Start a daemon in a session of its own, what it prints going to the log; its pid. It may yet lose the lock.

    Raises: NotReached.
    """
    try:
        os.makedirs(places.folder, 0o700, exist_ok=True)
        return os.posix_spawn(
            sys.executable,
            [sys.executable, *COMMAND],
            daemon_environment(places, os.environ),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, places.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    except OSError as error:
        raise NotReached(f"the daemon cannot be started: {error}") from None


class _Search:
    """Dialing and starting until a daemon is found."""

    def __init__(self, places: Places, client: str) -> None:
        self.places = places
        self.client = client
        self.child: int | None = None
        self.log_start = 0
        self.next_start = 0.0
        self.start_pause = 0.5

    def run(self) -> Link:
        deadline = time.monotonic() + PATIENCE
        pause = 0.02
        while True:
            link = greet(self.places, self.client)
            if link is not None and _usable(link, self.places):
                return link
            self._look_after_child()
            if self.child is None and time.monotonic() >= self.next_start:
                self._start()
            if time.monotonic() > deadline:
                raise NotReached(f"no daemon answered within {PATIENCE:.0f} s, see {self.places.log}")
            time.sleep(pause)
            pause = min(pause * 1.25, 0.5)

    def _start(self) -> None:
        self.log_start = _size(self.places.log)
        self.child = start(self.places)
        self.next_start = time.monotonic() + self.start_pause
        self.start_pause *= 2

    def _look_after_child(self) -> None:
        """Notice that the daemon we started has ended.

        Lost: the winner will be found, or holds the lock only while he ends, then another start is due. Killed: the
        same. Anything else would happen again.
        """
        if self.child is None:
            return
        try:
            pid, status = os.waitpid(self.child, os.WNOHANG)
        except ChildProcessError:  # whoever started us has children reaped without asking
            self.child = None
            return
        if pid == 0:
            return
        self.child = None
        code = os.waitstatus_to_exitcode(status)
        if code >= 0 and code != LOCK_LOST:
            said = _last_line(self.places.log, self.log_start)
            raise NotReached(f"the daemon did not start (exit {code}): {said or 'see what `craftd serve` says'}")


def _usable(link: Link, places: Places) -> bool:
    """Whether to work with this daemon. False: it was old and has been told to end, start anew.

    Raises: Mismatch.
    """
    hello = link.hello
    if hello.get("configDir") != places.config:
        link.close()
        raise Mismatch(
            f"the daemon (pid {hello.get('pid')}) serves {hello.get('configDir')}, not {places.config}: "
            f"has the folder been moved? `craftd restart` starts another"
        )
    if _numbers(hello.get("version")) < _numbers(VERSION) and hello.get("clients") == 0 and _stopped(link):
        link.close()
        return False
    if _numbers(hello.get("protocol"))[:1] != _numbers(PROTOCOL)[:1]:
        link.close()
        raise Mismatch(
            f"the running daemon is version {hello.get('version')} (protocol {hello.get('protocol')}), this program is "
            f"{VERSION} (protocol {PROTOCOL}): update the older one, then `craftd restart`"
        )
    return True


def _stopped(link: Link) -> bool:
    """Tell an old daemon to end and wait for it. False: it refused, because a client came in between."""
    try:
        if "error" in link.ask("daemon/stop", reason="upgrade"):
            return False
    except NotReached:
        pass  # it ended before it answered; if it only went silent, the lock keeps a second one out
    link.wait_for_end()
    return True


def daemon_environment(places: Places, environ: Mapping[str, str]) -> dict[str, str]:
    """What a daemon keeps of the environment it was started from.

    It outlives the terminal or editor that happened to start it, so their secrets and settings are not its own.
    """
    kept = {name: value for name, value in environ.items() if name.upper() in _KEPT or name.startswith(_KEPT_PREFIXES)}
    return kept | {rendezvous.CONFIG_VARIABLE: places.config}


def _numbers(version: object) -> tuple[int, ...]:
    """Comparable form of "1.2.3"; what is no version is older than any."""
    parts = version.split(".") if isinstance(version, str) else []
    return tuple(int(part) for part in parts if part.isdigit())


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _last_line(path: str, start: int) -> str:
    """Last line that was written to *path* after its first *start* bytes."""
    try:
        with open(path, "rb") as file:
            file.seek(max(start, _size(path) - 4096))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
