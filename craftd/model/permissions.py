"""Permission modes, and the files that say what may run in the mode that only reads.  App 0.11.1.

The files are additive: what the built-in list, `permissions/default.json`, a workspace and each source of a session
allow is allowed. None can take anything away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from craftd.errors import Issue
from craftd.model import javascript
from craftd.model.checks import Check, listing, one_of, shape, text, validator
from craftd.model.noun import Noun
from craftd.model.programs import RUN_OTHERS
from craftd.model.records import Record

Mode: TypeAlias = Literal["safe", "ask", "allow-all"]

MODES: Final[tuple[Mode, ...]] = ("safe", "ask", "allow-all")
SHOWN: Final[dict[Mode, str]] = {"safe": "explore", "ask": "ask", "allow-all": "execute"}
"""What people call them."""

_SPELLINGS: Final[dict[str, Mode]] = {
    **{mode: mode for mode in MODES},
    **{shown: mode for mode, shown in SHOWN.items()},
    **dict.fromkeys(("ask-to-edit", "ask_to_edit", "ask to edit"), "ask"),
}

DEFAULT: Final = "default"
WORKSPACE: Final = "workspace"
SOURCE: Final = "source:"
"""Levels: the first two are ids as they are, this one is followed by the source's slug."""

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


def parse_mode(word: object) -> Mode | None:
    """The mode that *word* is a spelling of, in any case; None = of none."""
    return _SPELLINGS.get(word.strip().lower()) if isinstance(word, str) else None


def next_mode(mode: Mode, cyclable: list[Mode] | None = None) -> Mode:
    """The one after *mode* in a workspace's order; fewer than two are no order, one outside of it goes to its first."""
    order = cyclable if cyclable is not None and len(cyclable) >= 2 else list(MODES)
    return order[(order.index(mode) + 1) % len(order)] if mode in order else order[0]


_text = text()


def _entry(value: Any, path: str) -> Iterator[Issue]:
    """A pattern, bare or with a comment."""
    if isinstance(value, dict):
        yield from _commented(value, path)
    elif not isinstance(value, str):
        yield Issue(path=path, message="must be text or {pattern, comment?}", code="schema")


_commented = shape({"pattern": _text, "comment": _text}, required=("pattern",))

FIELDS: Final[dict[str, Check]] = {
    "version": _text,
    "allowedBashPatterns": listing(_entry),
    "allowedMcpPatterns": listing(_entry),
    "allowedApiEndpoints": listing(
        shape({"method": one_of(*METHODS), "path": _text, "comment": _text}, required=("method", "path"))
    ),
    "allowedWritePaths": listing(_entry),
    "blockedTools": listing(_entry),
    "blockedCommandHints": listing(
        shape(
            {
                "command": _text,
                "reason": _text,
                "context": _text,
                "tryInstead": listing(_text),
                "example": _text,
                "whenNotMatching": _text,
            },
            required=("command", "reason"),
        )
    ),
}

SCHEMA: Final = shape(FIELDS)


def pattern_of(entry: Any) -> str:
    """Of an entry that the schema has passed."""
    pattern: str = entry["pattern"] if isinstance(entry, dict) else entry
    return pattern


def patterns(value: Record) -> Iterator[tuple[str, str, str]]:
    """Every regular expression: the list it stands in, its path, its text. *value* has passed the schema."""
    for name in ("allowedBashPatterns", "allowedMcpPatterns"):
        for index, entry in enumerate(value.get(name, ())):
            yield name, f"{name}.{index}", pattern_of(entry)
    for index, entry in enumerate(value.get("allowedApiEndpoints", ())):
        yield "allowedApiEndpoints", f"allowedApiEndpoints.{index}.path", entry["path"]
    for index, entry in enumerate(value.get("blockedCommandHints", ())):
        if "whenNotMatching" in entry:
            yield "blockedCommandHints", f"blockedCommandHints.{index}.whenNotMatching", entry["whenNotMatching"]


def check(value: Any, path: str, level: str | None = None) -> Iterator[Issue]:
    """Errors as the app counts them; warnings for what has no effect. level: whose file it is, where that is known."""
    found = list(SCHEMA(value, path))
    yield from found
    if found:
        return
    for name in value.keys() - FIELDS.keys():
        near = next((field for field in FIELDS if field.lower() == name.lower()), None)
        message = "is unknown and has no effect" + (f": meant is {near}" if near else "")
        yield Issue(path=name, message=message, severity="warning", code="unknown-key", suggestion=near)
    for name, place, pattern in patterns(value):
        try:
            compiled = javascript.compile(pattern)
        except javascript.BadPattern as error:
            yield Issue(path=place, message=str(error), code="bad-regex")
            continue
        why = _without_effect(name, compiled, level)
        if why is not None:
            yield Issue(path=place, message=why, severity="warning", code="never-matches")
    for index, entry in enumerate(value.get("allowedWritePaths", ())):
        if not pattern_of(entry).startswith(("/", "~/", "**")):
            message = "can never match: paths are absolute, so it must begin with / or ~/"
            place = f"allowedWritePaths.{index}"
            yield Issue(path=place, message=message, severity="warning", code="never-matches")


ANY_PROGRAM: Final = "\u2603"
"""Stands for a program nobody has a rule for."""

_HEAD = re.compile(r"\^([A-Za-z][A-Za-z0-9_-]*)(?![A-Za-z0-9_|?*{+-])")


def _without_effect(name: str, pattern: javascript.Pattern, level: str | None) -> str | None:
    """Why a pattern allows nothing; None = it may."""
    try:
        if name == "allowedMcpPatterns":
            if level is not None and level.startswith(SOURCE):
                return (
                    "can never match: a source's pattern is looked for inside of names" if _anchored(pattern) else None
                )
            if _anchored(pattern) and not pattern.could_begin("mcp__"):
                return "can never match: names of MCP tools begin with mcp__"
        if name == "allowedBashPatterns":
            if pattern.match(ANY_PROGRAM) is not None or pattern.match(f"{ANY_PROGRAM} x") is not None:
                return "names no program, so it allows nothing but --help and --version"
            head = _HEAD.match(pattern.source)
            if head is not None and head[1] in RUN_OTHERS:
                return f"can never match: {head[1]} runs other commands, which is never only reading"
    except javascript.TooSlow:
        return "takes too long, so it never matches"
    return None


def _anchored(pattern: javascript.Pattern) -> bool:
    return pattern.source.startswith("^")


PERMISSIONS = Noun(
    name="permissions",
    verbs=frozenset({"list", "get", "update"}),
    scope="either",
    id_pattern=re.compile(rf"{DEFAULT}|{WORKSPACE}|{SOURCE}[a-z0-9][a-z0-9_-]{{0,199}}", re.ASCII),
    id_member=None,
    fields=tuple(FIELDS),
    validate=validator(check),
)
