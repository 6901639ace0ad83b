"""Shapes of the five verbs, and the methods and notifications that follow from a noun's row.

Members are snake_case here and camelCase on the wire. Of a noun's verbs, those whose params have further members are
written out in `protocol/methods/`; all others are derived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import ClassVar, TypeAlias, cast

from attrs import field, frozen, make_class

from craftd.model.noun import Noun
from craftd.model.records import Item, Record
from craftd.protocol.codec import Raw
from craftd.protocol.registry import Registry, Right, Scope

DEFAULT_LIMIT = 100
MAX_LIMIT = 500
"""Items of one page; it also ends at about 1 MiB."""
KEY_LENGTH = range(16, 129)
"""Characters of an idempotency key: shorter ones collide."""

ItemJson: TypeAlias = Item | Raw | Record
"""An item of an answer: typed, already written, or already cut to some fields."""


@frozen(kw_only=True)
class Ref:
    """Params of everything that works in a scope."""

    workspace: str | None = None
    """Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection."""


@frozen(kw_only=True)
class Mutation(Ref):
    """Params of everything that changes records."""

    mutates: ClassVar[bool] = True
    key: str | None = None
    """Idempotency key, 16 to 128 characters, one per intended change."""


@frozen(kw_only=True)
class List(Ref):
    """One page of records."""

    filter: Record | None = None
    sort: str | None = None
    """Member of value, `-` in front for descending; ties by id."""
    fields: tuple[str, ...] | None = None
    """Members of value to return; `["*"]` for all."""
    limit: int | None = None
    cursor: str | None = None
    work_done_token: int | str | None = None
    partial_result_token: int | str | None = None


@frozen(kw_only=True)
class Get(Ref):
    """One record."""

    id: str
    fields: tuple[str, ...] | None = None


@frozen(kw_only=True)
class Create(Mutation):
    """A new record."""

    value: Record
    id: str | None = None


@frozen(kw_only=True)
class Update(Mutation):
    """Change members of a record."""

    id: str
    patch: Record
    """`{unset?, set?, remove?, add?}`, applied in this order."""
    expected_version: str | None = None
    """Absent: the patch applies to whatever is there now."""
    fields: tuple[str, ...] | None = None


@frozen(kw_only=True)
class Delete(Mutation):
    """Remove a record."""

    id: str
    expected_version: str | None = None
    missing_ok: bool = False


@frozen(kw_only=True)
class Position:
    """A moment of a scope: comparable only within the same epoch."""

    epoch: str
    revision: int


@frozen(kw_only=True)
class Page(Position):
    """Answer of `list`."""

    items: Sequence[ItemJson]
    next_cursor: str | None = None
    total: int | None = None


@frozen(kw_only=True)
class Got(Position):
    """Answer of `get`."""

    item: ItemJson


@frozen(kw_only=True)
class Committed(Position):
    """What is true after a change: the scope's revision after its commit."""


@frozen(kw_only=True)
class Created(Committed):
    """Answer of `create`."""

    item: ItemJson


@frozen(kw_only=True)
class Updated(Committed):
    """Answer of `update`; changed: false when the record was like that already."""

    item: ItemJson
    changed: bool


@frozen(kw_only=True)
class Origin:
    """Who caused a change. kind: client, disk, automation, run, daemon. client: connection id; key: its own key."""

    kind: str
    client: str | None = None
    key: str | None = None


@frozen(kw_only=True)
class Batch:
    """Part *index* of *size* of one commit; consecutive revisions."""

    index: int
    size: int


@frozen(kw_only=True)
class Change(Position):
    """Members of every notification about a scope. at: ms since 1970 UTC."""

    workspace: str | None = None
    at: int
    origin: Origin
    batch: Batch | None = None


@frozen(kw_only=True)
class DidCreate(Change):
    """A record is there."""

    item: ItemJson


@frozen(kw_only=True)
class Changed:
    """One changed record and its version now."""

    id: str
    version: str


@frozen(kw_only=True)
class DidChange(Change):
    """Records changed: *patch* is what an `update` would need, the same for all of them."""

    changes: tuple[Changed, ...]
    patch: Record


@frozen(kw_only=True)
class DidDelete(Change):
    """A record is gone."""

    id: str


_VERBS: Mapping[str, tuple[type, type, Right, str]] = {
    "list": (List, Page, "read", "One page of {name}."),
    "get": (Get, Got, "read", "One record of {name}."),
    "create": (Create, Created, "write", "A new record of {name}."),
    "update": (Update, Updated, "write", "Change members of a record of {name}."),
    "delete": (Delete, Committed, "write", "Remove a record of {name}."),
}
_CAUSES: Mapping[str, tuple[str, type, str]] = {
    "create": ("didCreate", DidCreate, "A record of {name} is there."),
    "update": ("didChange", DidChange, "Records of {name} changed: `patch` is what an `update` would need."),
    "delete": ("didDelete", DidDelete, "A record of {name} is gone."),
}


def derive(nouns: Mapping[str, Noun], registry: Registry) -> None:
    """Add the methods and notifications of *nouns* that nobody has written out."""
    for noun in nouns.values():
        for verb, (base, result, right, doc) in _VERBS.items():
            name = f"{noun.name}/{verb}"
            if verb in noun.verbs and name not in registry.methods:
                plural = noun.name if verb == "list" else noun.singular
                params = _subclass(with_parents(base, noun.parents), f"{verb} {plural}", doc.format(name=noun.name))
                registry.method(name, result=result, right=right, scope=cast(Scope, noun.scope))(params)
        for verb, (event, payload, doc) in _CAUSES.items():
            name = f"{noun.name}/{event}"
            if verb in noun.verbs and name not in registry.notifications:
                params = _subclass(
                    with_parents(payload, noun.parents), f"{event} {noun.singular}", doc.format(name=noun.name)
                )
                registry.notification(name)(params)


@cache
def with_parents(base: type, parents: tuple[str, ...]) -> type:
    """*base* with one more required member per parent, holding the parent's id."""
    if not parents:
        return base
    members = {name: field(type=str) for name in parents}
    return make_class(
        base.__name__ + "In" + "And".join(map(str.title, parents)), members, bases=(base,), frozen=True, kw_only=True
    )


def _subclass(base: type, words: str, doc: str) -> type:
    """A class of its own per method, without the price of generating one."""
    name = "".join(word[:1].upper() + word[1:] for word in words.split())
    return type(name, (base,), {"__slots__": (), "__doc__": doc, "__module__": __name__})
