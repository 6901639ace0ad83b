"""Mentions in a text: `[skill:commit]`, `[source:linear]`, `[file:a/b.ts]`, `[folder:a]`.  App 0.11.1."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from craftd.model.json_text import JS_WHITESPACE, utf16_length

_MENTION = re.compile(
    r"\[(?:skill:(?:[\w .-]+:)?(?P<skill>[\w-]+)|source:(?P<source>[\w-]+)"
    r"|file:(?P<file>[^\]]+)|folder:(?P<folder>[^\]]+))\]",
    re.ASCII,
)
_NEAR = re.compile(r"\[(?i:(skill|source|file|folder)) *:[^\]\n]{0,200}\]")
_BLANKS = re.compile(f"[{JS_WHITESPACE}]+")


@frozen(kw_only=True)
class Mention:
    """kind: skill, source, file, folder. name: the slug or path as written. start, end: UTF-16 units of the text."""

    kind: str
    name: str
    start: int
    end: int


def find(text: str) -> list[Mention]:
    """All mentions, in order."""
    return list(_walk(text, _MENTION))


def near_misses(text: str) -> list[tuple[int, int]]:
    """What looks like a mention and is read as plain text: where it stands, in UTF-16 units."""
    meant = {(one.start, one.end) for one in find(text)}
    looks = ((found.start(), found.end()) for found in _NEAR.finditer(text))
    places = [(utf16_length(text[:start]), utf16_length(text[:end])) for start, end in looks]
    return [place for place in places if place not in meant]


def _walk(text: str, pattern: re.Pattern[str]) -> Iterator[Mention]:
    at = units = 0
    for found in pattern.finditer(text):
        kind = found.lastgroup or ""
        start = units + utf16_length(text[at : found.start()])
        at, units = found.end(), start + utf16_length(found.group())
        yield Mention(kind=kind, name=found.group(kind), start=start, end=units)


def message(text: str, skill_names: Mapping[str, str], directory: str) -> str:
    """*text* as a model gets it: every mention said in words, in one pass, and trimmed.

    skill_names: names to show by slug. directory: what relative paths are relative to; nothing is looked up.
    """
    return resolved(text, skill_names, directory).strip(JS_WHITESPACE)


def resolved(text: str, skill_names: Mapping[str, str], directory: str) -> str:
    """`message`, not trimmed."""

    def said(found: re.Match[str]) -> str:
        kind = found.lastgroup or ""
        name = found.group(kind)
        if kind == "skill":
            return f"[Mentioned skill: {skill_names.get(name) or name} (slug: {name})]"
        if kind == "source":
            return f"[Mentioned source: {name}]"
        return f"[Mentioned {kind}: {name.rpartition('/')[2] or name} (at {located(name, directory)})]"

    return _MENTION.sub(said, text)


def located(path: str, directory: str) -> str:
    """Where a mentioned file is: the path as it stands, behind *directory* where it is relative."""
    if path.startswith(("/", "~")):
        return path
    separator = "\\" if "\\" in directory else "/"
    return directory + ("" if directory.endswith(separator) else separator) + path


def stripped(text: str) -> str:
    """*text* for a title: slugs instead of mentions of skills and sources, runs of blanks as one."""

    def said(found: re.Match[str]) -> str:
        kind = found.lastgroup or ""
        return found.group(kind) if kind in ("skill", "source") else found.group()

    return _BLANKS.sub(" ", _MENTION.sub(said, text)).strip(JS_WHITESPACE)
