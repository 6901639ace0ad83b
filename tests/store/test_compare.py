"""What somebody else did to a transcript is the same whether or not the lines around it are looked at one by one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftd.store import compare
from craftd.store.compare import Foreign, compared
from craftd.store.table import Table

Lines = list[tuple[str | None, str, bool]]
"""id, content, whether it is ours."""

contents = st.sampled_from(["a", "b", "c"])


@st.composite
def saves(draw: st.DrawFn) -> tuple[Lines, Lines]:
    """A transcript, and what another program made of it: lines dropped, changed, moved, put in.

    Lines without an id are not ours: of two that are equal nobody can say which one is left.
    """
    old: Lines = []
    for number in range(draw(st.integers(0, 9))):
        identity = draw(st.sampled_from([f"m{number}", f"m{number}", None]))
        old.append((identity, draw(contents), identity is not None and draw(st.booleans())))
    new = list(old)
    for number in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(new)))
        match draw(st.sampled_from(["drop", "change", "move", "put in", "put in without id"])):
            case "drop":
                del new[at : at + draw(st.integers(1, 3))]
            case "change" if at < len(new):
                new[at] = (new[at][0], draw(contents), False)
            case "move" if at < len(new):
                new.insert(draw(st.integers(0, len(new) - 1)), new.pop(at))
            case "put in":
                new.insert(at, (f"n{number}", draw(contents), False))
            case "put in without id":
                new.insert(at, (None, draw(contents), False))
    return old, new


def table_of(lines: Lines, *, ours: bool) -> Table:
    table = Table("")
    for number, (identity, content, own) in enumerate(lines):
        table.put(number, f"{identity} {content}".encode(), identity, own=ours and own)
    return table


def difference(old: Lines, new: Lines) -> tuple[Foreign, Table]:
    after = table_of(new, ours=False)

    def line_of(position: int) -> bytes:
        identity, content, _ = old[position]
        return f"{identity} {content}".encode()

    earlier = {"m1": (hash(b"m1 a"),), "m2": (hash(b"m2 b"), hash(b"m2 c"))}
    return compared(table_of(old, ours=True), after, None, None, earlier=earlier, line_of=line_of), after


@settings(deadline=None)
@given(both=saves())
def test_lines_in_common_at_both_ends_change_no_verdict(both: tuple[Lines, Lines]) -> None:
    found, after = difference(*both)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "_in_common", lambda old, new: (0, 0))
        wanted, wanted_after = difference(*both)
    assert wanted.in_order or not found.in_order
    assert after.own == wanted_after.own
    assert Counter(found.lost_own) == Counter(wanted.lost_own)
    assert Counter(found.deleted) == Counter(wanted.deleted)
    assert len(found.appended) == len(wanted.appended)
    if all(identity is not None for lines in both for identity, _, _ in lines):
        assert found == wanted


def test_of_a_long_transcript_only_what_changed_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    old: Lines = [(f"m{number}", "a", False) for number in range(1000)]
    new = [*old[:700], ("m700", "b", False), *old[702:], ("n", "a", False)]
    looked: list[int] = []
    by_key = compare._by_key
    monkeypatch.setattr(
        compare, "_by_key", lambda table, start, stop: looked.append(stop - start) or by_key(table, start, stop)
    )
    found, _ = difference(old, new[:-1])
    assert (found.changed, found.deleted, found.in_order, looked) == ((700,), ("m701",), True, [2, 1])
    found, _ = difference(old, [*old, new[-1]])
    assert (found.appended, looked[2:]) == ((1000,), [0, 1])


def test_a_line_whose_id_stands_further_up_too_cannot_be_named_when_it_goes() -> None:
    old: Lines = [("m1", "a", False), ("m2", "a", False), ("m1", "a", True), ("m3", "a", False)]
    found, _ = difference(old, [*old[:2], old[3]])
    assert not found.in_order
