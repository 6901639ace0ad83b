"""Skills of one name on several levels: which counts.  App 0.11.1.

The highest one that can be loaded takes the place of all below it as a whole; one that cannot is passed over and named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from craftd.errors import Issue
from craftd.model.records import Item, Record, version_of
from craftd.model.skills import SKILLS

LEVELS: Final = ("project", "workspace", "global")
"""Highest first."""


@frozen(kw_only=True)
class Found:
    """A SKILL.md. path: absolute. sound: its front matter can be read."""

    level: str
    path: str
    value: Record
    sound: bool
    issues: tuple[Issue, ...] = ()

    @property
    def loads(self) -> bool:
        texts = (self.value.get("name"), self.value.get("description"))
        return self.sound and all(isinstance(text, str) and text for text in texts)


def stack(levels: Sequence[Mapping[str, Found]]) -> dict[str, list[Found]]:
    """All of one name, the order of *levels* kept; sorted by name."""
    names = sorted({name for level in levels for name in level})
    return {name: [level[name] for level in levels if name in level] for name in names}


def that_counts(found: Sequence[Found]) -> Found | None:
    """Of one name, highest first: the one to use."""
    return next((one for one in found if one.loads), None)


def required_sources(skill: Record) -> list[str]:
    """One name or a list of them."""
    required = skill.get("requiredSources")
    names = required if isinstance(required, list) else [required]
    return [name for name in names if isinstance(name, str)]


def qualified(name: str, level: str | None, plugin: str) -> str:
    """What the model's toolkit calls the skill *name* of *level* (None: there is none)."""
    return f"{plugin}:{name}" if level in (None, "workspace") else f".agents:{name}"


def item(id: str, found: Sequence[Found], one: Found, plugin: str) -> Item:
    """*one* of those *found* under a name, with what it is to the others.

    shadows: levels whose skill it takes the place of; shadowedBy: the one that takes its place.
    """
    counts = that_counts(found)
    info: Record = {**SKILLS.info(one.value), "level": one.level, "path": one.path, "loads": one.loads, "shadows": []}
    info["sdkName"] = qualified(id, one.level, plugin)
    if counts is one:
        info["shadows"] = [other.level for other in found[found.index(one) + 1 :]]
    elif counts is not None and found.index(counts) < found.index(one):
        info["shadowedBy"] = counts.level
    if one.issues:
        info["issues"] = [issue.as_json() for issue in one.issues]
    return Item(id=id, version=version_of(one.value, SKILLS.volatile), value=one.value, info=info)
