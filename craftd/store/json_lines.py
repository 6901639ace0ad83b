"""On which line of a JSON text a member stands."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)
_SOMETHING: Final = re.compile(rb"\S")


def line_of(data: bytes, path: str) -> int | None:
    """1-based line of the member at the dotted *path* ("mcp.args.1"), or of its nearest parent that is there.

    *data* is JSON. None where the text is empty. Keys that hold a dot themselves are not told from nested ones.
    """
    wanted = path.split(".") if path else []
    start = _SOMETHING.search(data)
    if start is None:
        return None
    best, depth = start.start(), 0
    keys: list[str | int] = []
    key = start
    for found in _TOKEN.finditer(data):
        token = found.group()
        place: int | None = None
        if token == b"{":
            keys.append("")
        elif token == b"[":
            keys.append(0)
            place = found.end()
        elif token in (b"}", b"]"):
            keys.pop()
        elif token == b"," and isinstance(keys[-1], int):
            keys[-1] += 1
            place = found.end()
        elif token == b":":
            keys[-1] = key.group()[1:-1].decode("utf-8", "replace")
            place = key.start()
        else:
            key = found
        if place is not None and len(keys) > depth and [str(name) for name in keys] == wanted[: len(keys)]:
            something = _SOMETHING.search(data, place)
            best, depth = place if something is None else something.start(), len(keys)
            if depth == len(wanted):
                break
    return data.count(b"\n", 0, best) + 1
