from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from craftd.model.json_text import canonical
from craftd.model.records import Record
from craftd.store import yaml_text
from craftd.store.yaml_text import NotYaml, edit, parse
from tests.strategies import records

NO_NAMES: frozenset[str] = frozenset()

SKILL = """
# what it is
name: Berth plan  # shown
description: >-
  Plans the berths
  of one week

globs:
  - "*.berth"  # ours
  - plans/**

x-team: {lead: Ada, size: 3}
"""


def changed(text: str, **members: Any) -> str:
    value: Record = {**(parse(text).value or {}), **members}
    return edit(text, {name: m for name, m in value.items() if m is not ...}, NO_NAMES, "\n")


@pytest.mark.parametrize(
    ("members", "old", "new"),
    [
        ({"name": "Quay plan"}, "name: Berth plan  # shown", "name: Quay plan  # shown"),
        ({"name": "yes"}, "name: Berth plan", 'name: "yes"'),
        ({"description": "One: two"}, ">-\n  Plans the berths\n  of one week", '"One: two"'),
        ({"globs": ["plans/**", "x"]}, '  - "*.berth"  # ours\n  - plans/**', "  - plans/**\n  - x"),
        ({"globs": "all"}, ':\n  - "*.berth"  # ours\n  - plans/**', ": all"),
        ({"x-team": {"lead": "Ada"}}, "{lead: Ada, size: 3}", "{lead: Ada}"),
        ({"name": ...}, "name: Berth plan  # shown\n", ""),
        ({"globs": ...}, 'globs:\n  - "*.berth"  # ours\n  - plans/**\n', ""),
        ({"icon": "🚢"}, "size: 3}\n", 'size: 3}\nicon: "🚢"\n'),
    ],
)
def test_an_edit_touches_the_entries_that_changed_and_nothing_else(members: Any, old: str, new: str) -> None:
    assert changed(SKILL, **members) == SKILL.replace(old, new)


def test_an_item_added_to_a_list_leaves_the_others_with_their_comments() -> None:
    assert changed(SKILL, globs=["*.berth", "plans/**", "on"]) == SKILL.replace(
        "  - plans/**\n", '  - plans/**\n  - "on"\n'
    )


def test_an_empty_value_is_filled_in_its_place() -> None:
    assert changed("a:\nb: 1\n", a="x") == "a: x\nb: 1\n"
    assert changed("a:\nb: 1\n", a=...) == "b: 1\n"


def test_a_missing_last_line_end_stays_missing() -> None:
    assert changed("\na: 1", b=2) == "\na: 1\nb: 2"
    assert changed("", b=2) == "\nb: 2"


def test_what_cannot_be_edited_in_place_is_written_anew() -> None:
    assert parse(changed("a: &k [1]\nb: *k\n", a="x")).value == {"a": "x", "b": [1]}
    assert parse(changed("{a: 1, b: 2}\n", a="x")).value == {"a": "x", "b": 2}


def test_a_merged_key_is_overridden_by_an_entry_of_its_own() -> None:
    text = "base: &b\n  k: v\n<<: *b\n"
    assert changed(text, k="mine") == text + "k: mine\n"


@settings(max_examples=40, deadline=None)
@given(value=records)
def test_what_is_written_is_read_back(value: Record) -> None:
    assert canonical(parse(yaml_text.format(value)).value or {}) == canonical(value)


@settings(max_examples=40, deadline=None)
@given(old=records, new=records)
def test_every_edit_ends_in_the_wanted_value(old: Record, new: Record) -> None:
    text = edit(yaml_text.format(old), new, NO_NAMES, "\n")
    assert canonical(parse(text).value or {}) == canonical(new)


def test_tabs_are_blanks_between_words() -> None:
    assert parse("a:\t1\nb:\n\tc: 2\t# note\n").value == {"a": 1, "b": None, "c": 2}


def test_an_edit_behind_cut_tabs_finds_its_place() -> None:
    assert changed("b:\n\tc: 2\nd: 3\n", d=4) == "b:\n\tc: 2\nd: 4\n"


def test_a_tab_inside_text_stays() -> None:
    assert parse('a: "x\ty"\nb: |\n  \tz\n').value == {"a": "x\ty", "b": "\tz\n"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\na: 2\n", 2), ("a: [1\nb: 2\n", 2), ("a: 1\n...\nb: 2\n", 3), ("a: !!js/undefined ~\n", 1),
        ("a: *nobody\n", 1), ("a: `x`\n", 1), ("a: b: c\n", 1), ("a: 1\nb: \x01\n", 2), ("{}: 1\n", None),
        ("a: &a [*a]\n", 1), ("[" * 5000, None), ("a: !!int x\n", 1), ("a: !ours x\n", 1), ("<<: 1\n", 1),
    ],
)  # fmt: skip
def test_what_js_yaml_refuses_is_refused_with_its_line(text: str, line: int | None) -> None:
    with pytest.raises(NotYaml) as caught:
        parse(text)
    if line is not None:
        assert caught.value.index is not None
        assert text.count("\n", 0, caught.value.index) + 1 == line


def test_aliases_cannot_blow_a_small_text_up() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20))
    with pytest.raises(NotYaml, match="values"):
        parse(bomb)


def test_tagged_values_are_what_json_has_for_them() -> None:
    text = (
        'a: !!str 1\nb: !!int "0x1F"\nc: !!float 1\nd: !!binary |\n  aGk=\ne: !!set {x, y}\nf: !!timestamp 2026-07-01\n'
    )
    assert parse(text).value == {
        "a": "1", "b": 31, "c": 1, "d": "aGk=", "e": {"x": None, "y": None}, "f": "2026-07-01",
    }  # fmt: skip


def test_keys_are_text_and_keep_their_order() -> None:
    assert list(parse("2: a\ntrue: b\n~: c\n1: d\n").value) == ["2", "true", "null", "1"]
