"""Labels: a tree of names that sessions carry, some with a value (`id::value`).  App 0.11.1."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

from craftd.errors import Issue
from craftd.model import javascript
from craftd.model.checks import Check, colour, listing, one_of, shape, text, validator
from craftd.model.ids import choose_slug
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record

ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?", re.ASCII)

LONGEST_NEW = 30
"""Characters of an id made from a name, before a number is appended."""

DEEPEST = 5
"""Levels of the tree that the app's validator accepts."""

_RULE = shape(
    {"pattern": text(empty=False), "flags": text(), "valueTemplate": text(), "description": text()},
    required=("pattern",),
)
_NESTED = re.compile(r"\([^()]*[+*][^()]*\)[+*{]")
"""A repeat of a group that repeats: it can take for ever."""


def auto_rule(value: Any, path: str) -> Iterator[Issue]:
    """A rule that labels a session by what is said in it; its pattern is JavaScript's."""
    wrong = list(_RULE(value, path))
    yield from wrong
    if wrong:
        return
    try:
        javascript.compile(value["pattern"], value.get("flags", "gi"))
    except javascript.BadPattern as error:
        yield Issue(path=f"{path}.pattern", message=str(error), code="bad-regex")
        return
    if _NESTED.search(value["pattern"]):
        yield Issue(path=f"{path}.pattern", message="repeats a group that repeats", code="slow-regex")


FIELDS: dict[str, Check] = {
    "id": text(pattern=ID, what="must be lower-case letters, digits and inner hyphens", code="bad-slug"),
    "name": text(empty=False),
    "color": colour,
    "icon": text(),
    "valueType": one_of("string", "number", "date", "link"),
    "autoRules": listing(auto_rule),
    "parent": text(),
}

SCHEMA = shape(FIELDS, required=("id", "name"))


def check(value: Any, path: str) -> Iterator[Issue]:
    """A label; *path* is empty. A rule without a group takes all that it matches for the label's value."""
    wrong = list(SCHEMA(value, path))
    yield from wrong
    if wrong or "valueType" not in value:
        return
    for at, rule in enumerate(value.get("autoRules", ())):
        if "valueTemplate" not in rule and not javascript.compile(rule["pattern"], rule.get("flags", "gi")).groups:
            message = "has no group, so all that it matches becomes the value"
            yield Issue(path=f"autoRules.{at}.pattern", message=message, severity="warning", code="no-capture-group")


def ancestors(id: str, records: Mapping[str, Record]) -> Iterator[str]:
    """Ids above *id*, nearest first; ends where a parent is unknown or comes round again."""
    seen = {id}
    above: Any = records.get(id, {}).get("parent")
    while isinstance(above, str) and above in records and above not in seen:
        yield above
        seen.add(above)
        above = records[above].get("parent")


def descendants(id: str, records: Mapping[str, Record]) -> tuple[str, ...]:
    """Ids below *id*, in the order of the file."""
    if not any(value.get("parent") == id for value in records.values()):
        return ()
    return tuple(other for other in records if id in ancestors(other, records))


def base_of(entry: Any) -> str | None:
    """Id of the label that an entry of a session means: what stands before its `::`."""
    return entry.partition("::")[0] if isinstance(entry, str) else None


def stripped(value: Record, gone: Container[str]) -> Record:
    """A session without the labels *gone*; itself if it has none of them."""
    entries = value.get("labels")
    if not isinstance(entries, list):
        return value
    left = [entry for entry in entries if base_of(entry) not in gone]
    return value if len(left) == len(entries) else {**value, "labels": left}


def relabelled(value: Record, old: str, new: str) -> Record:
    """A session in which *new* stands for *old*, with the values it has; itself if it has none."""
    entries = value.get("labels")
    if not isinstance(entries, list) or not any(base_of(entry) == old for entry in entries):
        return value
    found = [new + entry[len(old) :] if base_of(entry) == old else entry for entry in entries]
    return {**value, "labels": [entry for at, entry in enumerate(found) if entry not in found[:at]]}


def new(value: Record, facts: Facts) -> tuple[str, Record]:
    """A label at the end of its parent, or of the tree."""
    short = choose_slug(str(value.get("name", "")), (), "label")[:LONGEST_NEW]
    id = facts.id or choose_slug(short, facts.taken, "label")
    return id, {"id": id, **{key: member for key, member in value.items() if key != "id"}}


def among(id: str, value: Record, records: Mapping[str, Record]) -> list[Issue]:
    """The parent must be there and not below the label, and the tree must not get too deep."""
    parent = value.get("parent")
    if not isinstance(parent, str):
        return []
    if parent == id or parent not in records:
        return [Issue(path="parent", message=f"there is no {parent!r} it could be in", code="parent-unknown")]
    tree = records if records.get(id) is value else {**records, id: value}
    if id in ancestors(parent, tree):
        return [Issue(path="parent", message=f"{parent!r} is below {id!r} itself", code="cycle")]
    depth = 1 + sum(1 for _ in ancestors(id, tree))
    below = max((_distance(other, id, tree) for other in descendants(id, tree)), default=0)
    if depth + below > DEEPEST:
        return [Issue(path="parent", message=f"the tree has more than {DEEPEST} levels", code="label-depth")]
    return []


def _distance(id: str, above: str, records: Mapping[str, Record]) -> int:
    return 1 + list(ancestors(id, records)).index(above)


def _default(id: str, name: str, color: Any, **rest: Any) -> Record:
    return {"id": id, "name": name, "color": color, **rest}


DEFAULTS = (
    _default("development", "Development", {"light": "#3B82F6", "dark": "#60A5FA"}),
    _default("code", "Code", {"light": "#4F46E5", "dark": "#818CF8"}, parent="development"),
    _default("bug", "Bug", {"light": "#0EA5E9", "dark": "#38BDF8"}, parent="development"),
    _default("automation", "Automation", {"light": "#06B6D4", "dark": "#22D3EE"}, parent="development"),
    _default("content", "Content", {"light": "#8B5CF6", "dark": "#A78BFA"}),
    _default("writing", "Writing", {"light": "#7C3AED", "dark": "#C4B5FD"}, parent="content"),
    _default("research", "Research", {"light": "#A855F7", "dark": "#C084FC"}, parent="content"),
    _default("design", "Design", {"light": "#D946EF", "dark": "#E879F9"}, parent="content"),
    _default("priority", "Priority", {"light": "#F59E0B", "dark": "#FBBF24"}, valueType="number"),
    _default("project", "Project", "foreground/50", valueType="string"),
)


def ids_in(file: Any) -> set[str]:
    """Ids of all labels of a parsed file, whatever it holds; None: no file, so the defaults."""
    if file is None:
        return {default["id"] for default in DEFAULTS}
    found: set[str] = set()
    waiting = [file.get("labels")] if isinstance(file, dict) else []
    while waiting:
        level = waiting.pop()
        for label in level if isinstance(level, list) else ():
            if isinstance(label, dict):
                found.update([label["id"]] if isinstance(label.get("id"), str) else [])
                waiting.append(label.get("children"))
    return found


LABELS = Noun(
    name="labels",
    id_pattern=ID,
    immutable=frozenset({"id"}),
    sort="place",
    fields=tuple(FIELDS),
    validate=validator(check),
    new=new,
    among=among,
    defaults=DEFAULTS,
    ordered=True,
)
