"""Skills: instructions in SKILL.md, described by front matter.  App 0.11.1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from craftd.errors import Issue
from craftd.model import icons
from craftd.model.checks import Check, anything, listing, shape, text, validator
from craftd.model.ids import choose_slug
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record


def _sources(value: Any, path: str) -> Iterator[Issue]:
    """One name or a list of them: the app's loader takes both."""
    if not isinstance(value, str):
        yield from listing(text())(value, path)


def _instructions(value: Any, path: str) -> Iterator[Issue]:
    if not isinstance(value, str):
        yield Issue(path=path, message="must be text", code="schema")
    elif not value.strip():
        yield Issue(path=path, message="must not be empty", code="empty-body")


FIELDS: dict[str, Check] = {
    "name": text(empty=False),
    "description": text(empty=False),
    "icon": anything,
    "globs": listing(text()),
    "alwaysAllow": listing(text()),
    "requiredSources": _sources,
    "content": _instructions,
}

SCHEMA = shape(FIELDS, required=("name", "description", "content"))


def new(value: Record, facts: Facts) -> tuple[str, Record]:
    """The folder is named after the skill; `name` and `description` come first in the file."""
    slug = facts.id or choose_slug(str(value.get("name", "")), facts.taken, "skill")
    first = {key: value[key] for key in ("name", "description") if key in value}
    return slug, first | value


def info(value: Record) -> Record:
    """`icon`: what to show, where the skill names one that can be."""
    icon = icons.shown(value.get("icon"))
    return {} if icon is None else {"icon": icon}


SKILLS = Noun(
    name="skills",
    id_pattern=re.compile(r"[a-z0-9][a-z0-9-]{0,199}", re.ASCII),
    id_member=None,
    light=("name", "description", "icon", "globs", "alwaysAllow", "requiredSources"),
    fields=tuple(FIELDS),
    validate=validator(SCHEMA),
    new=new,
    info=info,
)
