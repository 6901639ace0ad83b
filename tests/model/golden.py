"""The recorded sessions and what the app answers about them (tests/golden/sessions/README.md)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

SESSIONS = Path(__file__).parents[1] / "golden" / "sessions"
FOLDERS = SESSIONS / "workspace" / "sessions"
HOME = "/home/ada"

SOUND = tuple(sorted(path.name for path in FOLDERS.iterdir() if path.name < "2604"))

OVERSIZED = frozenset({"260315-high-mesa-2", "260315-high-mesa-3"})
"""Sound, but for a first line that is too long for the app's lists."""


@cache
def load(name: str) -> Any:
    """One of vectors.json, expected.json, rewrite.json."""
    return json.loads((SESSIONS / name).read_bytes())


def lines(session: str) -> list[bytes]:
    return (FOLDERS / session / "session.jsonl").read_bytes().splitlines()
