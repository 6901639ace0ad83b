"""What clients were told is one order, or is seen not to be."""

from __future__ import annotations

import pytest

from tests.faults.order import Entry, problems

ONE = [
    Entry(0, "asked", "x"),
    Entry(2, "event", "first", 1),
    Entry(3, "answered", "x", 1),
    Entry(7, "event", "second", 2),
]
OTHER = [
    Entry(1, "event", "first", 1),
    Entry(4, "asked", "y"),
    Entry(5, "event", "second", 2),
    Entry(6, "answered", "y", 2),
]


def test_the_same_events_and_answers_after_them_are_one_order() -> None:
    assert problems({"one": ONE, "other": OTHER}) == []


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ([OTHER[2], OTHER[0]], "heard of 1 after 2"),
        ([OTHER[0], Entry(5, "event", "third", 3)], "other did not hear of 2"),
        ([Entry(1, "event", "something else", 1)], "told something else of 1"),
        ([OTHER[0], OTHER[1], Entry(6, "answered", "y", 2), OTHER[2]], "answered 2 before it heard of 2"),
        ([OTHER[1], Entry(6, "answered", "y", 0)], "0 is before 1"),
    ],
)
def test_what_contradicts_it_is_seen(other: list[Entry], word: str) -> None:
    [problem] = problems({"one": ONE, "other": other})
    assert word in problem
