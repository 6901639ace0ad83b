from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model.checks import (
    Check,
    colour,
    flag,
    listing,
    mapping,
    nullable,
    one_of,
    shape,
    text,
    validator,
    web_address,
    whole,
)

GOLDEN = Path(__file__).parents[1] / "golden"
COLOURS = json.loads((GOLDEN / "workspace/expected.json").read_bytes())["tables"]["color"]
URLS = json.loads((GOLDEN / "sources/urls.json").read_bytes())


def accepts(check: Check, value: Any) -> bool:
    return not list(check(value, "x"))


@pytest.mark.parametrize("case", URLS, ids=lambda case: repr(case["url"]))
def test_urls_are_those_of_the_apps_validator(case: dict[str, Any]) -> None:
    assert accepts(web_address, case["url"]) == case["accepted"]


@pytest.mark.parametrize(("value", "valid"), COLOURS["validSystem"])
def test_colour_words(value: str, valid: bool) -> None:
    assert accepts(colour, value) == valid


@pytest.mark.parametrize(("value", "valid"), COLOURS["validCss"])
def test_css_colours(value: str, valid: bool) -> None:
    assert accepts(colour, {"light": value}) == valid
    assert accepts(colour, {"light": "#fff", "dark": value, "more": 1}) == valid


@pytest.mark.parametrize("value", [None, 1, [], {}, {"dark": "#fff"}, {"light": "#fff", "dark": None}])
def test_what_is_no_colour_at_all(value: Any) -> None:
    assert not accepts(colour, value)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (text(), ["", "x"], [None, 1, True, ["x"]]),
        (text(empty=False), ["x"], [""]),
        (flag, [True, False], [0, 1, None, "true"]),
        (whole, [0, 1.0, 2**60], [True, -1, 0.5, "1", None]),
        (one_of("a", "b"), ["a"], ["c", "", None, ["a"]]),
        (nullable(flag), [None, True], [0]),
        (listing(flag), [[], [True]], [[1], {}, "x"]),
        (mapping(flag), [{}, {"a": True}], [{"a": 1}, [True]]),
    ],
)
def test_each_check_accepts_its_kind_and_nothing_else(check: Check, good: list[Any], bad: list[Any]) -> None:
    assert [accepts(check, value) for value in good + bad] == [True] * len(good) + [False] * len(bad)


INNER = shape({"n": whole, "tags": listing(text())}, required=("n",))
validate = validator(shape({"inner": INNER, "name": text(), "color": colour}, required=("name",)))


def test_every_fault_is_named_with_its_path() -> None:
    value = {"inner": {"tags": ["a", 1]}, "color": {"light": "red"}, "unknown": 1}
    assert [issue.path for issue in validate(value, None)] == ["inner.n", "inner.tags.1", "name", "color.light"]


def test_old_faults_do_not_stand_in_the_way_of_a_change() -> None:
    old = {"inner": {}, "name": 1}
    assert validate({"inner": {}, "name": "mended"}, old) == []
    assert validate({"inner": {"n": 1}, "name": 1}, old) == []
    assert [issue.path for issue in validate({"inner": {"n": "x"}, "name": 1}, old)] == ["inner.n"]


def test_removing_what_is_required_is_a_fault_and_its_absence_before_is_not() -> None:
    assert [issue.path for issue in validate({}, {"name": "x"})] == ["name"]
    assert validate({"color": "info"}, {}) == []
