"""Every system call about the files of one session is a moment at which somebody else can be let in.

Calls are counted where Python makes them, below `craftd.store.disk` and everything that only looks.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from craftd.store import disk

CALLS = (
    "open", "close", "stat", "lstat", "fstat", "listdir", "scandir", "readlink", "pread", "write", "pwrite",
    "copy_file_range", "ftruncate", "fsync", "fdatasync", "rename", "link", "unlink", "mkdir", "rmdir", "chmod",
    "fchmod", "fchown",
)  # fmt: skip


class Moments:
    """Counts the calls, and lets somebody in before those it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._about = re.compile("$.")
        self._guests: dict[int, Callable[[], None]] = {}
        self._mutex = threading.RLock()
        self._inside = False
        self._readlink = os.readlink
        for name in CALLS:
            monkeypatch.setattr(os, name, self._wrapped(getattr(os, name)))
        monkeypatch.setattr(disk, "_renameat2_function", self._wrapped(disk._renameat2_function))

    def watch(self, name: str, guests: dict[int, Callable[[], None]]) -> None:
        """Count, from now on, calls about paths in which *name* is a word; *guests* come before the n-th."""
        with self._mutex:
            self.count = 0
            self._about, self._guests = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])"), dict(guests)

    def end(self) -> int:
        """Count no more. Guests whose moment never came come now. How many calls there were."""
        with self._mutex:
            self._about = re.compile("$.")
            for at in sorted(self._guests):
                self._guests.pop(at)()
            return self.count

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._mutex:
                if not self._inside and any(map(self._about.search, self._paths(args, kwargs))):
                    self._inside = True
                    try:
                        if (guest := self._guests.pop(self.count, None)) is not None:
                            guest()
                        self.count += 1
                    finally:
                        self._inside = False
            return function(*args, **kwargs)

        return call

    def _paths(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        folder = self._behind(kwargs["dir_fd"]) if kwargs.get("dir_fd") is not None else ""
        found = [self._behind(args[0])] if args and isinstance(args[0], int) else []
        for arg in args:
            if isinstance(arg, str | Path | bytes) and len(path := os.fsdecode(arg)) < 4096:
                held = re.match(r"/proc/self/fd/(\d+)", path)
                found.append(path if held is None else self._behind(int(held[1])) + path[held.end() :])
        return [f"{folder}/{path}" if folder else path for path in found]

    def _behind(self, fd: int) -> str:
        try:
            return self._readlink(f"/proc/self/fd/{fd}")
        except OSError:
            return ""
