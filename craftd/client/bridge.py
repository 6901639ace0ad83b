"""`craftd stdio`: what an editor starts. It finds or starts the daemon and then copies bytes, both ways, unread.

An editor waits for this program, so it imports the standard library alone and of that the little it needs.
"""

from __future__ import annotations

import _thread
import os
import sys
from _socket import SHUT_WR

from craftd.client import launch, wire
from craftd.protocol import rendezvous

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable

USAGE = """\
Usage: craftd stdio [--no-daemon]

  Connect an editor: the daemon of $CRAFT_CONFIG_DIR (default ~/.craft-agent)
  on standard input and output. It is started if it does not run, and stays
  when the editor ends.

Options:
  --no-daemon            Serve inside this process; it takes the same locks.
  --stdio                Accepted, changes nothing.
  --clientProcessId=N    Accepted, changes nothing: the end of the editor is
                         the end of standard input.
  --help                 Show this message and exit.
"""

_CHUNK = 65_536


def main(arguments: list[str], serve_here: Callable[[str], int]) -> int:
    """Run until the editor or the daemon ends the connection. arguments: those after `stdio`. Returns the exit code.

    serve_here: for `--no-daemon`, serves the configuration folder it is given on standard input and output.
    """
    in_process = False
    for argument in arguments:
        if argument == "--no-daemon":
            in_process = True
        elif argument == "--help":
            sys.stdout.write(USAGE)
            return 0
        elif argument != "--stdio" and not argument.startswith("--clientProcessId="):
            sys.stderr.write(f"craftd: unknown argument of stdio: {argument}\n\n{USAGE}")
            return 2
    places = rendezvous.find()
    if in_process:
        return serve_here(places.config)
    try:
        link = launch.connect(places, "craftd stdio")
    except launch.NotReached as error:
        return _refuse(error)
    except KeyboardInterrupt:
        return 130
    return _pump(link)


def _pump(link: launch.Link) -> int:
    """Copy until the daemon closes the connection. Nothing is lost: after its hello the daemon waits for `initialize`.

    Two threads that block, because one loop over both directions could wait for the reader of a full pipe while the
    other pipe fills. At the end of the editor's stream the socket is half closed, so that what the daemon still has
    to say is said.
    """
    sock = link.sock

    def editor_to_daemon() -> None:
        try:
            while data := os.read(0, _CHUNK):
                sock.sendall(data)
            sock.shutdown(SHUT_WR)
        except OSError:
            pass  # the daemon is gone, which the other direction notices

    _thread.start_new_thread(editor_to_daemon, ())
    try:
        while data := sock.recv(_CHUNK):
            _write(data)
    except OSError:
        return 1  # the daemon was killed, or the editor no longer reads
    except KeyboardInterrupt:
        return 130
    return 0


def _refuse(error: launch.NotReached) -> int:
    """Tell the editor why it gets no daemon, as the answer to its `initialize`, and stay until it has understood."""
    if isinstance(error, launch.Mismatch):
        code, data = 1011, {"code": "Unsupported", "retryable": False, "feature": "protocol"}
    else:
        code, data = 1014, {"code": "Unavailable", "retryable": True}
    sys.stderr.write(f"craftd: {data['code']} ({code}): {error}\n")
    sys.stderr.flush()
    shown = {"method": "window/showMessage", "params": {"type": 1, "message": f"craftd: {error}"}}
    incoming = wire.Incoming(lambda size: os.read(0, size))
    try:
        while (message := incoming.next()) and message.get("method") != "exit":
            if "id" not in message or "method" not in message:
                continue
            if message["method"] == "initialize":
                _write(wire.frame(shown))
            answer = {"code": code, "message": str(error), "data": data}
            _write(wire.frame({"id": message["id"], "error": answer}))
    except (OSError, wire.Broken, KeyboardInterrupt):
        pass
    return 1


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
