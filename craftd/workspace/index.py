"""Records in memory: lookup, filter, sort, pages. Answers come from here without touching the disk."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

from attrs import define, field, frozen

from craftd.errors import InvalidParams, StaleCursor
from craftd.model import json_text
from craftd.model.records import Record

PAGE = 100
PAGE_MOST = 500
PAGE_BYTES = 1024 * 1024


class Row(Protocol):
    """One record as the index needs it."""

    @property
    def id(self) -> str: ...
    @property
    def value(self) -> Record: ...
    def text(self, fields: tuple[str, ...] | None) -> bytes:
        """JSON text of the item; *fields* None = the noun's light fields, ("*",) = all."""


Test: TypeAlias = Callable[[Any], bool]
Special: TypeAlias = Callable[[Any], Test]
"""Makes the test for one of the noun's own filter keys from the wanted value; takes the row, not a field."""

_MISSING = object()


def sort_key(value: Any) -> tuple[int, Any]:
    """Total order over JSON values: absent and null, then booleans, numbers, text, the rest as text."""
    if value is None or value is _MISSING:
        return (0, 0)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, (int, float)):
        return (2, value)
    if isinstance(value, str):
        return (3, value)
    return (4, json_text.canonical(value))


@frozen
class Order:
    """Rows by one key, then id. The list is kept sorted, so a page costs its length."""

    key: Callable[[Any], tuple[Any, str]]
    entries: list[tuple[Any, str]] = field(factory=list)

    def add(self, row: Any) -> None:
        insort(self.entries, self.key(row))

    def drop(self, row: Any) -> None:
        entry = self.key(row)
        at = bisect_left(self.entries, entry)
        if at < len(self.entries) and self.entries[at] == entry:
            del self.entries[at]


@frozen
class Page:
    """items: JSON texts in order; next_cursor: None on the last page; total: matches, where counting them was free."""

    items: list[bytes]
    next_cursor: str | None
    total: int | None


@define(eq=False)
class Index:
    """All records of one noun, by id, with one sorted list per order that was asked for.

    sort_value(row, field) answers the value a row is sorted by.
    """

    epoch: str
    default_sort: str
    specials: Mapping[str, Special] = field(factory=dict)
    fields: frozenset[str] = frozenset()
    """Names of fields a filter may use: a misspelt one must not narrow or widen a result unseen."""
    sorts: frozenset[str] = frozenset({"id"})
    """Names that only a sort may use."""
    sort_value: Callable[[Any, str], Any] = lambda row, name: row.value.get(name)
    rows: dict[str, Any] = field(factory=dict)
    _orders: dict[str, Order] = field(factory=dict)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows.values())

    def __len__(self) -> int:
        return len(self.rows)

    def get(self, id: str) -> Any | None:
        return self.rows.get(id)

    def put(self, row: Any) -> None:
        old = self.rows.get(row.id)
        for order in self._orders.values():
            if old is not None:
                order.drop(old)
            order.add(row)
        self.rows[row.id] = row

    def fill(self, rows: Iterable[Any]) -> None:
        """Add many rows at once, before anything was listed."""
        self.rows.update((row.id, row) for row in rows)
        self._orders.clear()

    def remove(self, id: str) -> None:
        row = self.rows.pop(id, None)
        if row is not None:
            for order in self._orders.values():
                order.drop(row)

    def _order(self, sort: str) -> tuple[Order, bool]:
        name = sort.removeprefix("-")
        order = self._orders.get(name)
        if order is None:
            if len(self._orders) > 8:  # a client may ask for any field; keep what is used
                self._orders.clear()
            order = Order(lambda row: (sort_key(self.sort_value(row, name)), row.id))
            order.entries.extend(sorted(map(order.key, self.rows.values())))
            self._orders[name] = order
        return order, sort.startswith("-")

    def page(
        self,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: tuple[str, ...] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        only: frozenset[str] | None = None,
    ) -> Page:
        """One page of the rows that match *filter*, ending at *limit* rows or about 1 MiB; only: ids of all there are.

        Raises: InvalidParams (unknown filter, bad sort), StaleCursor (from another run of the daemon).
        """
        sort = self.default_sort if sort is None else sort
        if sort.removeprefix("-") not in self.fields | self.sorts:
            raise InvalidParams.of("sort", f"is none of {', '.join(sorted(self.fields | self.sorts))}")
        count = PAGE if limit is None else limit
        if count < 1:
            raise InvalidParams.of("limit", "must be at least 1")
        matches = compile_filter(filter, self.specials, self.fields)
        order, backwards = self._order(sort)
        entries = order.entries
        start = len(entries) if backwards else 0
        if cursor is not None:
            after = _read_cursor(cursor, self.epoch, sort)
            start = bisect_left(entries, after) if backwards else bisect_right(entries, after)
        positions = range(start - 1, -1, -1) if backwards else range(start, len(entries))
        items: list[bytes] = []
        size, last, more = 0, None, False
        for at in positions:
            row = self.rows[entries[at][1]]
            if (only is not None and row.id not in only) or (matches is not None and not matches(row)):
                continue
            text = b"" if len(items) >= min(count, PAGE_MOST) else row.text(fields)
            if items and (not text or size + len(text) > PAGE_BYTES):
                more = True
                break
            items.append(text)
            size += len(text)
            last = entries[at]
        next_cursor = _write_cursor(self.epoch, sort, last) if more and last is not None else None
        total = len(self.rows) if only is None else len(only & self.rows.keys())
        return Page(items, next_cursor, total if matches is None else None)


def compile_filter(
    filter: Mapping[str, Any] | None, specials: Mapping[str, Special], fields: frozenset[str]
) -> Test | None:
    """One test for a row from a filter object; None when everything matches. Raises InvalidParams for unknown keys."""
    if not filter:
        return None
    tests: list[Test] = []
    for name, wanted in filter.items():
        if name in specials:
            tests.append(specials[name](wanted))
        elif name in fields:
            tests.append(_field_test(name, wanted))
        else:
            known = ", ".join(sorted(specials))
            raise InvalidParams.of(
                f"filter.{name}", "is no field to filter by" + (f"; also known: {known}" if known else "")
            )
    return lambda row: all(test(row) for test in tests)


_COMPARISONS = frozenset({"gte", "lte", "prefix", "contains"})


def _field_test(name: str, wanted: Any) -> Test:
    if isinstance(wanted, dict):
        unknown = wanted.keys() - _COMPARISONS
        if unknown or not wanted:
            raise InvalidParams.of(f"filter.{name}", f"takes {', '.join(sorted(_COMPARISONS))}")
        return lambda row: _compare(row.value.get(name, _MISSING), wanted)
    options = wanted if isinstance(wanted, list) else [wanted]
    keys = {json_text.canonical(option) for option in options}
    return lambda row: json_text.canonical(row.value.get(name)) in keys


def _compare(value: Any, wanted: Mapping[str, Any]) -> bool:
    for how, bound in wanted.items():
        if how == "contains":
            if isinstance(value, list):
                if not any(json_text.canonical(item) == json_text.canonical(bound) for item in value):
                    return False
            elif not (isinstance(value, str) and isinstance(bound, str) and bound.casefold() in value.casefold()):
                return False
        elif how == "prefix":
            if not (isinstance(value, str) and isinstance(bound, str) and value.startswith(bound)):
                return False
        else:
            have, limit = sort_key(value), sort_key(bound)
            if have[0] != limit[0] or (have < limit if how == "gte" else have > limit):
                return False
    return True


def _write_cursor(epoch: str, sort: str, entry: tuple[Any, str]) -> str:
    (rank, key), id = entry
    shown = key.decode("latin-1") if isinstance(key, bytes) else key
    return base64.urlsafe_b64encode(json_text.dumps([epoch, sort, rank, shown, id])).decode()


def _read_cursor(cursor: str, epoch: str, sort: str) -> tuple[Any, str]:
    try:
        made, sorted_by, rank, key, id = json_text.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, TypeError, binascii.Error):
        raise InvalidParams.of("cursor", "is no cursor of this daemon") from None
    if made != epoch:
        raise StaleCursor("the cursor is from before a restart: list again from the start")
    if sorted_by != sort:
        raise InvalidParams.of("cursor", "belongs to a list with another sort")
    return ((rank, key.encode("latin-1") if rank == 4 else key), id)
