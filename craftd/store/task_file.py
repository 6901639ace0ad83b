"""`task.yaml` as text: what is wrong with it, and where.  App 0.11.1: one document of YAML 1.2, core schema."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Final

from attrs import evolve

from craftd.errors import Issue
from craftd.model import json_text, tasks
from craftd.store import yaml_text
from craftd.store.files import BOM

LARGEST: Final = 1024 * 1024
"""Bytes; parsing YAML is slow."""


def check(data: bytes) -> list[Issue]:
    """Issues with `path` inside the value and `range`: line and character in UTF-16 units. Never raises."""
    if len(data) > LARGEST:
        return [_unreadable("", 0, f"is larger than {LARGEST} bytes", "too-large")]
    try:
        text = data.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        before = data.removeprefix(BOM)[: error.start].decode()
        return [_unreadable(before, len(before), "is not UTF-8", "not-utf8")]
    try:
        root = yaml_text.parse_core(text)
    except yaml_text.NotYaml as error:
        return [_unreadable(text, error.index, f"no YAML: {error.message}", "not-yaml")]
    lines = _Lines(text)
    return [evolve(issue, range=lines.range(root.span_of(issue.path.split(".")))) for issue in tasks.check(root.value)]


def _unreadable(text: str, index: int | None, message: str, code: str) -> Issue:
    span = None if index is None else (index, index)
    return Issue(path="", code=code, message=message, range=_Lines(text).range(span))


class _Lines:
    """Offsets in a text as lines and characters of the language server protocol, CR LF and lone CR included."""

    def __init__(self, text: str) -> None:
        self.text = text
        starts = [0]
        for index, char in enumerate(text):
            if char == "\n" or (char == "\r" and text[index + 1 : index + 2] != "\n"):
                starts.append(index + 1)
        self.starts = starts

    def range(self, span: tuple[int, int] | None) -> dict[str, Any]:
        start, end = span or (0, 0)
        return {"start": self._position(start), "end": self._position(max(start, end))}

    def _position(self, index: int) -> dict[str, int]:
        line = bisect_right(self.starts, index) - 1
        return {"line": line, "character": json_text.utf16_length(self.text[self.starts[line] : index])}
