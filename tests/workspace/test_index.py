from __future__ import annotations

import random
from typing import Any

import pytest
from attrs import define
from hypothesis import given
from hypothesis import strategies as st

from craftd.errors import InvalidParams, StaleCursor
from craftd.model import json_text
from craftd.workspace.index import PAGE_BYTES, PAGE_MOST, Index


@define(eq=False)
class Row:
    id: str
    value: dict[str, Any]

    def text(self, fields: tuple[str, ...] | None) -> bytes:
        return json_text.dumps({"id": self.id, "value": self.value})


FIELDS = frozenset({"at", "name", "labels"})


def index_of(*rows: Row, sort: str = "-at") -> Index:
    index = Index("e1", sort, fields=FIELDS)
    index.fill(rows)
    return index


def ids(page: Any) -> list[str]:
    return [json_text.loads(text)["id"] for text in page.items]


def everything(index: Index, **wanted: Any) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = index.page(cursor=cursor, **wanted)
        found += ids(page)
        cursor = page.next_cursor
        if cursor is None:
            return found


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(-3, 3), st.text("ab", max_size=2), st.just([1])
)


@given(values=st.lists(VALUES, max_size=30), limit=st.integers(1, 7), backwards=st.booleans())
def test_pages_together_are_the_list_whatever_the_values(values: list[Any], limit: int, backwards: bool) -> None:
    rows = [Row(f"{n:02}", {} if value is None else {"at": value}) for n, value in enumerate(values)]
    index = index_of(*rows)
    sort = "-at" if backwards else "at"
    listed = everything(index, sort=sort, limit=limit)
    assert sorted(listed) == sorted(row.id for row in rows)
    assert listed == ids(index.page(sort=sort, limit=PAGE_MOST))
    assert listed[::-1] == everything(index, sort="at" if backwards else "-at", limit=limit)


@given(seed=st.integers(0, 10_000))
def test_an_order_that_is_kept_equals_one_that_is_made(seed: int) -> None:
    pick = random.Random(seed)
    index = index_of()
    index.page()  # the default order is kept from now on
    for _ in range(60):
        id = str(pick.randrange(12))
        if pick.random() < 0.3:
            index.remove(id)
        else:
            index.put(Row(id, {"at": pick.randrange(4)}))
    assert everything(index, limit=5) == everything(index_of(*index), limit=5)


def test_ties_are_broken_by_id() -> None:
    index = index_of(Row("b", {"at": 1}), Row("a", {"at": 1}), Row("c", {"at": 0}))
    assert everything(index, sort="at") == ["c", "a", "b"]


def test_an_insert_does_not_shift_the_next_page() -> None:
    index = index_of(*(Row(str(n), {"at": n}) for n in range(6)))
    first = index.page(limit=3)
    index.put(Row("new", {"at": 9}))
    assert ids(index.page(limit=3, cursor=first.next_cursor)) == ["2", "1", "0"]


def test_a_page_ends_at_its_bytes_with_at_least_one_item() -> None:
    big = "x" * (PAGE_BYTES // 3)
    index = index_of(*(Row(str(n), {"at": n, "name": big}) for n in range(5)))
    assert len(index.page().items) == 2
    huge = index_of(Row("a", {"name": "x" * 2 * PAGE_BYTES}), Row("b", {}))
    assert len(huge.page().items) == 1


def test_no_page_is_longer_than_the_limit_allows() -> None:
    index = index_of(*(Row(f"{n:04}", {"at": n}) for n in range(PAGE_MOST + 10)))
    assert len(index.page(limit=10_000).items) == PAGE_MOST
    assert len(index.page().items) == 100


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ({"name": "Anna"}, ["a"]),
        ({"name": ["Anna", "Ben"]}, ["a", "b"]),
        ({"name": {"prefix": "A"}}, ["a"]),
        ({"name": {"contains": "EN"}}, ["b"]),
        ({"labels": {"contains": "x"}}, ["a", "c"]),
        ({"at": {"gte": 2}}, ["b", "c"]),
        ({"at": {"gte": 1, "lte": 2}}, ["a", "b"]),
        ({"at": {"gte": "1"}}, []),
        ({"name": None}, ["c"]),
        ({"at": True}, []),
        ({"at": 1.0}, ["a"]),
        ({"name": "Anna", "at": 2}, []),
        ({}, ["a", "b", "c"]),
    ],
)
def test_a_filter_is_a_conjunction(filter: dict[str, Any], found: list[str]) -> None:
    index = index_of(
        Row("a", {"name": "Anna", "at": 1, "labels": ["x", "y"]}),
        Row("b", {"name": "Ben", "at": 2, "labels": 7}),
        Row("c", {"at": 3, "labels": ["x"]}),
        sort="at",
    )
    assert ids(index.page(filter)) == found


@pytest.mark.parametrize("filter", [{"nmae": "x"}, {"name": {"like": "x"}}, {"name": {}}])
def test_what_no_filter_knows_is_refused_by_name(filter: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams) as caught:
        index_of().page(filter)
    assert caught.value.issues[0].path == f"filter.{next(iter(filter))}"


def test_a_cursor_counts_only_for_its_list_and_its_run() -> None:
    index = index_of(Row("a", {"at": 1}), Row("b", {"at": 2}))
    cursor = index.page(limit=1).next_cursor
    with pytest.raises(InvalidParams):
        index.page(sort="name", cursor=cursor)
    with pytest.raises(InvalidParams):
        index.page(cursor="nonsense")
    later = Index("e2", "-at", fields=FIELDS)
    with pytest.raises(StaleCursor):
        later.page(cursor=cursor)


@pytest.mark.parametrize("wanted", [{"limit": 0}, {"limit": -1}, {"sort": ""}, {"sort": "-"}, {"sort": "nope"}])
def test_a_page_of_nothing_and_an_order_by_nothing_are_refused(wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        index_of().page(**wanted)
