"""What a noun is: one row that dispatch, events, schema, filters and storage are derived from."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from typing import Any

from attrs import field, frozen

from craftd.errors import Issue
from craftd.model.records import Record

VERBS = ("list", "get", "create", "update", "delete")

SLUG = re.compile(r"[a-z0-9]([a-z0-9_-]*[a-z0-9_])?", re.ASCII)
"""Folder names and ids that the app itself writes: lower-case ASCII, digits, hyphens."""


@frozen(kw_only=True)
class Facts:
    """What a pure rule must not look up by itself. now: ms since 1970 UTC; pick(n): a random number below n.

    taken: ids in use, and for records in folders of their own the names of all folders there.
    id: the one a client asked for, already checked against the noun's pattern and not taken.
    beside: the records already in the file that a new one goes into.
    """

    now: int
    pick: Callable[[int], int]
    home: str = ""
    taken: Container[str] = ()
    id: str | None = None
    beside: Mapping[str, Record] = field(factory=dict)


def nothing_wrong(value: Record, old: Record | None) -> list[Issue]:
    return []


def nothing_among(id: str, value: Record, records: Mapping[str, Record]) -> list[Issue]:
    return []


def nothing_missing(records: Mapping[str, Record]) -> list[Issue]:
    return []


def no_info(value: Record) -> dict[str, Any]:
    return {}


@frozen(kw_only=True)
class Noun:
    """One kind of record. name: its plural, everywhere on the wire.

    verbs: which of the five exist. parents: members of params that name the records it lives in ("session").
    id_pattern: what an id from a client must match entirely before it is used for anything.
    id_member: the key of the stored value that holds the id; None = the folder name alone.
    aliases: further keys of the value by which `get` finds a record. light: keys of value in a list item (None = all).
    volatile: keys that do not enter the version. computed: keys only craftd changes.
    sort: default order; "place" is that of the file.
    validate(value, old): what is wrong with a value about to be stored.
    new(value, facts): the id and the complete value of a record to be created.
    touch(value, facts): *value* with the keys that change with every stored update (`updatedAt`).
    info(value): computed members of an item.
    among(id, value, records): what is wrong with *value* beside the other records of its file.
    must_hold(records): what of all records of one file must be true before any of it may be used, and is not.
    """

    name: str
    verbs: frozenset[str] = frozenset(VERBS)
    parents: tuple[str, ...] = ()
    scope: str = "workspace"
    id_pattern: re.Pattern[str] = SLUG
    id_member: str | None = "id"
    aliases: tuple[str, ...] = ()
    light: tuple[str, ...] | None = None
    volatile: frozenset[str] = frozenset()
    immutable: frozenset[str] = frozenset()
    sort: str = "id"
    fields: tuple[str, ...] = ()
    """Members a value is known to have: what a filter may name."""
    validate: Callable[[Record, Record | None], list[Issue]] = nothing_wrong
    new: Callable[[Record, Facts], tuple[str, Record]] | None = None
    touch: Callable[[Record, Facts], Record] | None = None
    refused: frozenset[str] = frozenset()
    """Codes of warnings about a file that a change may not bring in."""
    among: Callable[[str, Record, Mapping[str, Record]], list[Issue]] = nothing_among
    must_hold: Callable[[Mapping[str, Record]], list[Issue]] = nothing_missing
    info: Callable[[Record], dict[str, Any]] = no_info
    defaults: tuple[Record, ...] = ()
    """Records served while there is no file yet (built into the app)."""
    required: frozenset[str] = frozenset()
    """Ids that must be there and may not be deleted."""
    is_kept: Callable[[Record], bool] = lambda value: False
    """Whether a record may not be deleted although none of its kind has to be there."""
    ordered: bool = False
    """Where a record stands in the file means something: lists come in that order, `didReorder` tells another one."""

    @property
    def singular(self) -> str:
        return {"statuses": "status", "settings": "settings"}.get(self.name, self.name.removesuffix("s"))
