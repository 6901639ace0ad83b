"""A real daemon in a configuration folder of its own, clients of it, and what the system says it used."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import orjson

from benchmarks import corpus
from benchmarks.report import check
from craftd.protocol import rendezvous
from craftd.protocol.framing import Decoder, encode

WORKSPACE = "harbour"
PATIENCE = 120.0
"""Seconds that a daemon may take to start or stop."""


@contextmanager
def folder() -> Iterator[Path]:
    """An empty folder on the disk that is measured, gone afterwards."""
    with TemporaryDirectory(prefix="craftd-bench-") as name:
        yield Path(os.path.realpath(name))


def environment(base: Path) -> dict[str, str]:
    """Variables of a program that works with the configuration in *base*."""
    (base / "run").mkdir(mode=0o700, exist_ok=True)
    return {**os.environ, "CRAFT_CONFIG_DIR": str(base / "config"), "XDG_RUNTIME_DIR": str(base / "run")}


def frame(id_: int, method: str, params: Any) -> bytes:
    return encode(orjson.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}))


class Peer:
    """A blocking client that does as little as possible."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(path)
        self._decoder = Decoder(1 << 30)
        self._ids = count(1)
        self.notifications: list[dict[str, Any]] = []
        self.call("initialize", {"capabilities": {}})
        self._socket.sendall(encode(b'{"jsonrpc":"2.0","method":"initialized","params":{}}'))

    def call(self, method: str, params: Any) -> Any:
        return self.result(self.ask(method, params))

    def ask(self, method: str, params: Any) -> int:
        """Send a request; its id."""
        id_ = next(self._ids)
        self._socket.sendall(frame(id_, method, params))
        return id_

    def result(self, id_: int) -> Any:
        """The result of request *id_*, which is the next to be answered."""
        while True:
            message = orjson.loads(self.body())
            if "method" in message:
                self.notifications.append(message)
                continue
            check(message.get("id") == id_ and "error" not in message, f"the answer {message}")
            return message["result"]

    def timed(self, method: str, params: Any) -> tuple[float, bytes]:
        """Milliseconds from the first byte sent to the last received, and what came."""
        request = frame(next(self._ids), method, params)
        start = time.perf_counter()
        self._socket.sendall(request)
        body = self.body()
        return (time.perf_counter() - start) * 1000, body

    def body(self) -> bytes:
        data = b""
        while (body := next(self._decoder.feed(data), None)) is None:
            data = self._socket.recv(1 << 18)
            check(data, "the daemon closed the connection")
        return bytes(body)

    def close(self) -> None:
        self._socket.close()


class Daemon:
    """`craftd serve` on the configuration in *base*; use as a context."""

    def __init__(self, base: Path, *arguments: str) -> None:
        self.base = base
        self.root = base / "workspace"
        self._started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "craftd", "serve", *arguments],
            env=environment(base),
            stdout=subprocess.DEVNULL,
            stderr=(base / "serve.log").open("ab"),
        )
        self.pid = self._process.pid

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.perf_counter() - self._started

    @property
    def socket(self) -> str:
        """Where it listens, once it does."""
        places = rendezvous.Places(str(self.base / "config"))
        while (card := rendezvous.read_card(places)) is None or card.pid != self.pid or not os.path.exists(card.socket):
            check(
                self._process.poll() is None and self.age < PATIENCE, f"the daemon is not there: {self.base}/serve.log"
            )
            time.sleep(0.001)
        return card.socket

    def connect(self) -> Peer:
        return Peer(self.socket)

    def cpu(self) -> float:
        """Seconds of CPU used by its threads."""
        return cpu_of(self.pid)

    def settle(self) -> None:
        """Wait until it has read what it reads in the background."""
        quiet = 0
        while quiet < 3:
            before = self.cpu()
            time.sleep(0.5)
            quiet = quiet + 1 if self.cpu() - before < 0.01 else 0

    def resident(self) -> float:
        """MB of memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def peak(self) -> float:
        """MB of memory it had at most."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6

    def read(self) -> int:
        """Bytes it has read so far, from files and sockets."""
        return int(Path(f"/proc/{self.pid}/io").read_text().split()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)


def cpu_of(pid: int) -> float:
    """Seconds of CPU used by the threads a process has, to the nanosecond."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except OSError:
            continue
    return total / 1e9


@contextmanager
def running(*, sessions: int = 0, transcripts: dict[str, int] | None = None) -> Iterator[Daemon]:
    """A daemon whose workspace has that many listed sessions, and transcripts of the lengths given."""
    with folder() as base:
        prepare(base, sessions, transcripts)
        with Daemon(base) as daemon:
            yield daemon


def prepare(base: Path, sessions: int = 0, transcripts: dict[str, int] | None = None, messages: int = 20) -> None:
    root = base / "workspace"
    corpus.configuration(base / "config", root)
    if sessions:
        corpus.sessions(root, sessions, messages)
    for id, length in (transcripts or {}).items():
        corpus.session(root, id, length)
