"""What a user has otherwise: the published behaviour of the Craft Agents app 0.11.1, re-created plainly.

Generous to it: JSON by orjson, everything that it keeps in memory is there already, and none of its half-second timers
is counted.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson

HEADER_WINDOW = 8192
"""Bytes of a session that its list looks at."""


class Session:
    """A session as the app has it open: parsed. Every change writes the whole file anew.

    flush: what the app does not do, so that an acknowledged change would survive a power loss.
    """

    def __init__(self, path: Path, *, flush: bool = False) -> None:
        self.path = path
        self.flush = flush
        self.header, *self.messages = map(orjson.loads, path.read_bytes().splitlines())

    def append(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self.header["messageCount"] = len(self.messages)
        self.save()

    def rename(self, name: str) -> None:
        self.header["name"] = name
        self.save()

    def save(self) -> None:
        lines = [orjson.dumps(self.header), *map(orjson.dumps, self.messages), b""]
        temporary = self.path.with_name("session.jsonl.tmp")
        with temporary.open("wb") as file:
            file.write(b"\n".join(lines))
            if self.flush:
                file.flush()
                os.fsync(file.fileno())
        self.path.unlink()
        temporary.rename(self.path)


def list_sessions(root: Path, first: int) -> list[dict[str, Any]]:
    """The first page of the list: every header is read again, in one go, from the first 8 KB of its file."""
    found = []
    with os.scandir(root / "sessions") as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                with open(f"{entry.path}/session.jsonl", "rb", buffering=0) as file:
                    found.append(orjson.loads(file.read(HEADER_WINDOW).partition(b"\n")[0]))
    found.sort(key=lambda header: -header["lastUsedAt"])
    return found[:first]
