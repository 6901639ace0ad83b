"""What a session says of its labels: `id`, or `id::value` where the label takes one.  App 0.11.1."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from attrs import frozen

from craftd.errors import Issue
from craftd.model.records import Record

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2})?", re.ASCII)

_WANTED = {"number": "a number like 3 or -2.5", "date": "a day that exists, 2026-02-28 or 2026-02-28T09:30"}


@frozen
class Entry:
    """An entry taken apart. value: None = it says none, which is not the empty text."""

    id: str
    value: str | None

    @classmethod
    def parse(cls, text: str) -> Entry:
        id, separator, value = text.partition("::")
        return cls(id, value if separator else None)

    def __str__(self) -> str:
        return self.id if self.value is None else f"{self.id}::{self.value}"


def is_value(raw: str, type: str) -> bool:
    """Whether *raw* is a value for labels of this `valueType`; text and links may be anything."""
    if type == "number":
        return _NUMBER.fullmatch(raw) is not None
    if type == "date":
        return _DATE.fullmatch(raw) is not None and _exists(raw)
    return True


def _exists(raw: str) -> bool:
    try:
        datetime.fromisoformat(raw)
    except ValueError:
        return False
    return True


def resolve(text: str, labels: Mapping[str, Record]) -> str | Issue:
    """The entry that is meant by *text*, or what is wrong with it.

    labels: all there are, in the order of their file. A label is found by its id, else by its name in any case.
    """
    entry = Entry.parse(text)
    id = entry.id if entry.id in labels else _named(entry.id, labels)
    if id is None:
        return Issue(path="", message=f"there is no label {entry.id!r}", code="label-unknown")
    if entry.value is not None:
        type = labels[id].get("valueType")
        if not isinstance(type, str) or not type:
            return Issue(path="", message=f"{id!r} takes no value", code="value-unexpected")
        if not is_value(entry.value, type):
            return Issue(path="", message=f"the value of {id!r} must be {_WANTED[type]}", code="value-wrong")
    return str(Entry(id, entry.value))


def _named(name: str, labels: Mapping[str, Record]) -> str | None:
    wanted = name.lower()
    return next((id for id, value in labels.items() if str(value.get("name", "")).lower() == wanted), None)


def settle(new: Record, old: Record | None, labels: Mapping[str, Record]) -> tuple[Record, list[Issue]]:
    """A session's value *new* with its entries resolved, and what is wrong with them.

    Entries that it has already (*old*) are nobody's business, whatever they say; a new one stands there once.
    """
    wanted, had = new.get("labels"), (old or {}).get("labels")
    if not isinstance(wanted, list) or wanted == had:
        return new, []
    kept = had if isinstance(had, list) else []
    found: list[object] = []
    issues: list[Issue] = []
    for at, text in enumerate(wanted):
        if text in kept or not isinstance(text, str):
            found.append(text)
            continue
        entry = resolve(text, labels)
        if isinstance(entry, Issue):
            issues.append(Issue(path=f"labels.{at}", message=entry.message, code=entry.code))
        elif entry not in found and not (entry in kept and entry in wanted):
            found.append(entry)
    return (new if found == wanted else {**new, "labels": found}), issues


def with_entries(value: Record, entries: Sequence[str]) -> Record:
    """A session that has *entries* too; itself if it has them all, or has something else than a list."""
    had = value.get("labels") or []
    if not isinstance(had, list):
        return value
    more = [entry for entry in entries if entry not in had]
    return {**value, "labels": [*had, *more]} if more else value
