"""Look through transcripts for lines: from the end, in chunks, without keeping any of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from craftd.model.records import Record
from craftd.store import disk
from craftd.store.lines import split
from craftd.store.locate import locate

CHUNK: Final = 1 << 20
_BLANK: Final = b" \t\r\x00"


class Stopped(Exception):
    """Nobody waits for the answer any more."""


class Stop:
    """Says to all threads of one search that it is over, and ends the programs that run for it."""

    def __init__(self) -> None:
        self._over = False
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()

    def now(self) -> None:
        with self._lock:
            self._over = True
            for process in self._running:
                process.kill()

    def check(self) -> None:
        """Raises: Stopped."""
        if self._over:
            raise Stopped

    def run(self, arguments: Sequence[str], folder: Path, seconds: float) -> tuple[int, bytes]:
        """Exit code and output of a program. Raises: Stopped, TimeoutError, OSError."""
        with self._lock:
            self.check()
            process = subprocess.Popen(
                arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            self._running.add(process)
        try:
            output, _ = process.communicate(timeout=max(seconds, 0.001))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise TimeoutError from None
        finally:
            with self._lock:
                self._running.discard(process)
        self.check()
        return process.returncode, output


@cache
def ripgrep() -> str | None:
    """Where it is; None if it is not on this machine, or not what we know."""
    program = shutil.which("rg")
    if program is None:
        return None
    try:
        said = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return program if said.returncode == 0 and said.stdout.startswith(b"ripgrep ") else None


def files_with(
    program: str, pattern: str, folder: Path, files: Sequence[str], stop: Stop, seconds: float
) -> set[str] | None:
    """Those of *files*, relative to *folder*, that have a line like *pattern*; None if that cannot be said of each.

    Raises: Stopped, TimeoutError.
    """
    arguments = (
        program, "--no-config", "--files-with-matches", "--null", "--text", "--encoding=none", "--case-sensitive",
        "--no-messages", "--color=never", "--threads=2", f"--regexp={pattern}", "--", *files,
    )  # fmt: skip
    try:
        code, output = stop.run(arguments, folder, seconds)
    except TimeoutError:
        raise
    except OSError:
        return None
    return {os.fsdecode(name) for name in output.split(b"\0") if name} if code in (0, 1) else None


def records(
    path: Path, directory: str, places: Callable[[bytes], Iterator[int]] | None, stop: Stop
) -> Iterator[Record]:
    """What the lines of a transcript say, the last first: of those in which *places* finds something, None: of all.

    Line 1 is among them. Raises: Stopped, OSError.
    """
    fd = disk.open_read(locate(path))
    try:
        for block in _blocks(fd, stop):
            if places is None:
                lines = block.split(b"\n")
            else:
                spots = {block.rfind(b"\n", 0, at) + 1 for at in places(block)}
                lines = [block[start : _end(block, start)] for start in sorted(spots)]
            for line in reversed(lines):
                stop.check()
                content = line.strip(_BLANK)
                if content:
                    for piece in reversed(split(content, directory)):
                        if piece.record is not None:
                            yield piece.record
    finally:
        disk.close(fd)


def _end(block: bytes, start: int) -> int:
    end = block.find(b"\n", start)
    return len(block) if end < 0 else end


def _blocks(fd: int, stop: Stop) -> Iterator[bytes]:
    """The file in pieces of whole lines, the last first."""
    held: list[bytes] = []
    at = os.fstat(fd).st_size
    while at > 0:
        stop.check()
        begin = max(0, at - CHUNK)
        data = os.pread(fd, at - begin, begin)
        at = begin
        cut = data.find(b"\n") + 1 if begin else 0
        if begin and not cut:
            held.append(data)
            continue
        block = b"".join((data[cut:], *reversed(held)))
        held = [data[:cut]] if cut else []
        if block:
            yield block
