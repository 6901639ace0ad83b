"""Rules of all levels put together, in the form in which decisions use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from attrs import field, frozen

from craftd.model import javascript
from craftd.model.javascript import Pattern
from craftd.model.permissions import SCHEMA, SOURCE, pattern_of
from craftd.model.records import Record


@frozen
class Rule:
    """One line of a rules file. level: whose file; list: where in it; pattern: as written; method: of endpoints."""

    level: str
    list: str
    pattern: str
    comment: str | None = None
    method: str | None = None
    compiled: Pattern | None = field(default=None, eq=False, repr=False)

    @property
    def source(self) -> str | None:
        return self.level.removeprefix(SOURCE) if self.level.startswith(SOURCE) else None

    def as_json(self) -> dict[str, Any]:
        names = ("level", "list", "method", "pattern", "comment")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@frozen
class Hint:
    """What to do instead of a command that was refused. value: as stored."""

    command: str
    value: Record
    unless: Pattern | None


@frozen
class Rules:
    """In the order of the levels."""

    bash: tuple[Rule, ...] = ()
    mcp: tuple[Rule, ...] = ()
    api: tuple[Rule, ...] = ()
    write: tuple[Rule, ...] = ()
    hints: tuple[Hint, ...] = ()


def merge(files: Iterable[tuple[str, Record]]) -> Rules:
    """*files*: level and content, in order. One that breaks the schema counts as empty, a bad pattern as not there."""
    bash: list[Rule] = []
    mcp: list[Rule] = []
    api: list[Rule] = []
    write: list[Rule] = []
    hints: dict[str, Hint] = {}
    for level, value in files:
        if any(SCHEMA(value, "")):
            continue
        bash += _compiled(level, "allowedBashPatterns", value)
        mcp += _compiled(level, "allowedMcpPatterns", value)
        for entry in value.get("allowedApiEndpoints", ()):
            pattern = _compile(entry["path"])
            if pattern is not None:
                rule = Rule(level, "allowedApiEndpoints", entry["path"], entry.get("comment"), entry["method"], pattern)
                api.append(rule)
        for entry in value.get("allowedWritePaths", ()):
            write.append(Rule(level, "allowedWritePaths", pattern_of(entry), _comment(entry)))
        for entry in value.get("blockedCommandHints", ()):
            unless = _compile(entry["whenNotMatching"]) if "whenNotMatching" in entry else None
            command = entry["command"].lower()
            hints[command] = Hint(command, entry, unless)
    return Rules(tuple(bash), tuple(mcp), tuple(api), tuple(write), tuple(hints.values()))


def _compiled(level: str, name: str, value: Record) -> Iterator[Rule]:
    for entry in value.get(name, ()):
        pattern = _compile(pattern_of(entry))
        if pattern is not None:
            yield Rule(level, name, pattern_of(entry), _comment(entry), compiled=pattern)


def _compile(text: str) -> Pattern | None:
    try:
        return javascript.compile(text)
    except javascript.BadPattern:
        return None


def _comment(entry: Any) -> str | None:
    return entry.get("comment") if isinstance(entry, dict) else None
