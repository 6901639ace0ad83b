"""Processes that have imported craftd already: a process of its own forks them, so that each costs 20 ms and not 800.

What is forked is what `python -m craftd` runs, with an environment, arguments, standard streams and a pid of its own.
All end with the nursery, and that ends with the program that made it.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from craftd.protocol import lsp

ROOT = Path(__file__).parent.parent
_SERVE = "from tests.nursery import _serve; _serve()"


class Forked:
    """A process of a nursery, to be treated like a `subprocess.Popen`."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._nursery = nursery

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float = 60) -> int:
        """Raises: subprocess.TimeoutExpired."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, patience: float) -> int | None:
        if self.returncode is None:
            self.returncode = self._nursery.ask(wait=self.pid, patience=patience)
        return self.returncode


class Nursery:
    """The process that forks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        atexit.register(self.close)

    def craftd(self, arguments: Sequence[str], environment: Mapping[str, str], output: Path) -> Forked:
        """Run `craftd` with *arguments*; what it says is added to the file *output*."""
        return Forked(self, self.ask(argv=["craftd", *arguments], environment=dict(environment), output=str(output)))

    def python(self, code: str, arguments: Sequence[str], environment: Mapping[str, str], output: Path) -> Forked:
        """The same with a program, like `python -c`."""
        about = {"argv": ["-c", *arguments], "environment": dict(environment), "output": str(output)}
        return Forked(self, self.ask(code=code, **about))

    def ask(self, **what: Any) -> Any:
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(what).encode() + b"\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@cache
def nursery() -> Nursery:
    """The one of this process."""
    return Nursery()


def _serve() -> None:
    """Fork and wait as asked, until nobody can ask any more. In a forked process: run what was asked for."""
    for module in ("cli.commands", "cli.main", "server.daemon", "server.core", "server.handlers", "server.websocket"):
        import_module(f"craftd.{module}")
    lsp.load()
    gc.freeze()  # the forked need not copy what they only look at
    living: set[int] = set()
    for line in sys.stdin.buffer:
        what = json.loads(line)
        if (pid := what.get("wait")) is not None:
            answer = _code_of(pid, what["patience"])
            if answer is not None:
                living.discard(pid)
        else:
            answer = os.fork()
            if answer == 0:
                _become(what)
            living.add(answer)
        os.write(1, json.dumps(answer).encode() + b"\n")
    for pid in living:
        os.kill(pid, signal.SIGKILL)


def _code_of(pid: int, patience: float) -> int | None:
    deadline = time.monotonic() + patience
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.002)


def _become(what: dict[str, Any]) -> None:
    """Never returns."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(what["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for fd, standard in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(fd, standard)
    os.close(nothing)
    os.close(output)
    os.environ.clear()
    os.environ.update(what["environment"])
    time.tzset()
    sys.argv = what["argv"]
    if "CRAFTD_TEST_DISK" in os.environ:  # the disk is chosen when it is imported
        os.execv(sys.executable, [sys.executable, "-m", *sys.argv])
    if (code := what.get("code")) is not None:
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        sys.exit(0)
    from craftd.cli.main import main

    sys.exit(main())
