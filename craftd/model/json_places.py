"""Where the members of a JSON text stand, as ranges of the language server protocol: lines and UTF-16 units."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from attrs import define

from craftd.model import json_text

_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)

Range = dict[str, Any]

LONGEST: Final = 1000
"""Characters of a path that are looked at: names in it come from files, and every dot may be one of a name."""


@define
class _Level:
    """An object or array that is open. path: None = nobody asks for anything in it."""

    path: str | None
    is_list: bool
    index: int = 0
    key: str | None = None
    key_span: tuple[int, int] | None = None

    def inside(self) -> str | None:
        """Path of the value that begins now."""
        name = str(self.index) if self.is_list else self.key
        if self.path is None or name is None:
            return None
        return f"{self.path}.{name}" if self.path else name


def range_of(text: str, path: str) -> Range | None:
    """Range of the value at the dotted *path* ("mcp.args.1"), or of its nearest parent that is there.

    Of an object or array that is its key, else its opening bracket. None where *text* (which is JSON) is empty.
    """
    return ranges_of(text, [path])[path]


def ranges_of(text: str, paths: Collection[str]) -> dict[str, Range | None]:
    """The same for several paths in one go. A key that holds a dot stands in a path as it is."""
    wanted = {""}
    for path in {path[:LONGEST] for path in paths}:
        wanted.add(path)
        wanted.update(path[:at] for at, character in enumerate(path) if character == ".")
    spans = _spans(text, wanted)
    return {path: _range(text, spans, path[:LONGEST]) for path in paths}


def _spans(text: str, wanted: Collection[str]) -> dict[str, tuple[int, int]]:
    """Where the values with *wanted* paths stand. Of equal keys the last one counts."""
    spans: dict[str, tuple[int, int]] = {}
    levels: list[_Level] = []
    for found in _TOKEN.finditer(text):
        token, level = found.group(), levels[-1] if levels else None
        if token == ":":
            continue
        if token == ",":
            if level is not None:
                level.index, level.key, level.key_span = level.index + 1, None, None
            continue
        if token in ("}", "]"):
            if levels:
                levels.pop()
            continue
        if level is not None and not level.is_list and level.key_span is None:
            level.key_span = found.span()
            level.key = None if level.path is None else json_text.loads(token)
            continue
        path = "" if level is None else level.inside()
        if path not in wanted:
            path = None
        opens = token in ("{", "[")
        if path is not None:
            key = level.key_span if level is not None and opens else None
            spans[path] = key or found.span()
        if opens:
            levels.append(_Level(path, is_list=token == "["))
    return spans


def _range(text: str, spans: dict[str, tuple[int, int]], path: str) -> Range | None:
    while path not in spans and path:
        path = path.rpartition(".")[0]
    return None if path not in spans else range_between(text, *spans[path])


def range_between(text: str, start: int, end: int) -> Range:
    """Range from one offset in *text* to another."""
    return {"start": position(text, start), "end": position(text, end)}


def position(text: str, offset: int) -> dict[str, int]:
    """Lines end at LF alone, as everywhere in the project."""
    begin = text.rfind("\n", 0, offset) + 1
    return {"line": text.count("\n", 0, offset), "character": json_text.utf16_length(text[begin:offset])}
