"""Names of lines in one block of bytes: whatever is put in is what a list of strings would hold."""

from __future__ import annotations

import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from craftd.store.names import Names
from craftd.store.table import Table

names = st.one_of(
    st.none(), st.sampled_from(["", "a", "aa", "\n", "a\na", "\na", "\ud83d", "é"]), st.text("a\n", max_size=4)
)


@settings(deadline=None)
@given(
    given=st.lists(names, max_size=12),
    more=st.lists(names, max_size=6),
    start=st.integers(0, 13),
    part=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    wanted=names,
)
def test_names_are_a_list_of_strings(
    given: list[str | None], more: list[str | None], start: int, part: tuple[int, int], wanted: str | None
) -> None:
    known, other = Names(), Names()
    for name in given:
        known.append(name)
    for name in more:
        other.append(name)
    begin, end = min(part[0], len(given)), part[1]
    other.take(known, begin, end)
    other.append("last")
    assert list(known) == given
    assert list(other) == [*more, *given[begin:end], "last"]
    assert [known[position] for position in range(len(known))] == given
    for name in {*given, wanted} - {None}:
        assert name is not None
        expected = given.index(name, start) if name in given[start:] else None
        assert known.find(name, start) == expected


def test_a_line_takes_fewer_than_seventy_bytes_of_memory() -> None:
    table = Table("")
    for number in range(20_000):
        table.put(number * 500, b"text", f"msg-{number:08}")
    arrays = (table.offsets, table.lengths, table.digests, table.own, table.ids._text, table.ids._ends)
    assert sum(map(sys.getsizeof, arrays)) / len(table) < 70
