"""View expressions beside what the app made of them; where craftd answers otherwise on purpose, the row is named."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model.expressions import DEEPEST, FUNCTIONS, LONGEST, ExpressionError, parse

TABLES = json.loads((Path(__file__).parents[1] / "golden/workspace/expected.json").read_bytes())["tables"]
CONTEXT = TABLES["viewContext"]
NOW = 1_783_936_800_000

PARSED_HERE = {"not(isFlagged)", "hasUnread and(isFlagged)", 'sessionStatus in("todo")'}
"""The app swallows the character behind a word."""

NOT_INHERITED = {"constructor", "toString"}
"""The app finds what every object of JavaScript has, which then matches every session."""


def value(expression: str, context: Any = CONTEXT) -> Any:
    return parse(expression).value(context, NOW)


@pytest.mark.parametrize("row", TABLES["viewExpressions"], ids=lambda row: row["expression"] or "empty")
def test_an_expression_comes_to_what_the_app_recorded(row: Any) -> None:
    source = row["expression"]
    if source in PARSED_HERE:
        assert not row["valid"]
        assert isinstance(value(source), bool)
    elif source in NOT_INHERITED:
        assert (row["kind"], value(source)) == ("function", None)
    elif not row["valid"]:
        with pytest.raises(ExpressionError) as caught:
            parse(source)
        assert caught.value.code == "syntax"
    elif row["kind"] == "error":  # in the app it matches every session
        with pytest.raises(ExpressionError) as caught:
            parse(source).matches(CONTEXT, NOW)
        assert caught.value.code != "syntax"
    else:
        assert value(source) == row["result"]
        assert parse(source).matches(CONTEXT, NOW) is row["matches"]


@pytest.mark.parametrize(
    ("source", "offset", "code"),
    [
        ("isFlagged ==", 12, "syntax"),
        ("a && b", 2, "syntax"),
        ("(1, 2", 5, "syntax"),
        ("", 0, "syntax"),
        ('  name == "x', 10, "syntax"),
        ("a in b c", 7, "syntax"),
        ("isFlagged or daysSinse(1) > 3", 13, "unknown-function"),
        ("permissionMode == 'safe'", 18, "type"),
        ("hasUnread and messageCount", 14, "type"),
        ("1 < 2 < name", 8, "type"),
        ('name ~= "("', 8, "bad-pattern"),
        ("name == nope + 1", 8, "type"),
    ],
)
def test_an_error_says_where_it_is(source: str, offset: int, code: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(source).value(CONTEXT, NOW)
    assert (caught.value.offset, caught.value.code) == (offset, code)


def test_a_pattern_that_takes_too_long_is_an_error() -> None:
    with pytest.raises(ExpressionError, match="too long") as caught:
        value('name ~= "^(a+)+$"', {"name": "a" * 5000 + "!"})
    assert caught.value.code == "too-slow"


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("2 ^ -1", 0.5),
        ("-2 * 3", -6),
        ("7 mod 0 == 7 mod 0", False),
        ("1 / 0", math.inf),
        ("-1 / 0", -math.inf),
        ("10 ^ 400", math.inf),
        ('"n" + 1 / 0', "nInfinity"),
        ('"n" + 0.5', "n0.5"),
        ("round(-1.5)", -1),
        ("max(1, nope) == 1", False),
        ("if 1 < 2 then 3 else 4 + 5", 3),
        ("true ? false ? 1 : 2 : 3", 2),
        ("tokenUsage.costUsd of nope", None),
        ('(1, "a") in (3, "a", 1)', True),
        ("1 in (true, 2)", False),
        ("daysSince(createdAt) == 12", True),
        ("hoursSince(createdAt) == 298", True),
        ('startsWith(nope, "a")', False),
        ("lower(nope)", ""),
        ("sqrt(0 - 1) == 0", False),
        ("log(0) < 0", True),
    ],
)
def test_what_the_recording_does_not_cover(source: str, wanted: Any) -> None:
    assert value(source) == wanted


@pytest.mark.parametrize(
    "source",
    [
        "(" * (DEEPEST + 1) + "1" + ")" * (DEEPEST + 1),
        "not " * 500 + "true",
        "1 + " * 500 + "1",
        "1 ^ " * 500 + "1",
        "true ? 1 : " * 300 + "1",
        "if true then 1 else " * 150 + "1",
        "x of " * 300 + "x",
        "abs(" * 300 + "1" + ")" * 300,
        "1" * (LONGEST + 1),
    ],
)
def test_no_expression_is_too_much_for_the_stack(source: str) -> None:
    with pytest.raises(ExpressionError):
        parse(source)


PIECES = [
    "(", ")", ",", " and ", " or ", "not ", " in ", "==", "<", "~=", "+", "-", "*", "/", "%", "^", "?", ":", " of ",
    "if ", " then ", " else ", "true", "1", "0", '"a"', "'name'", "name", "labels", "tokenUsage", "nope", "hasUnread",
    *(f"{name}(" for name in FUNCTIONS),
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=20))
def test_nothing_but_an_expression_error_comes_out(source: str) -> None:
    offset = 0
    try:
        assert isinstance(parse(source).matches(CONTEXT, NOW), bool)
    except ExpressionError as error:
        offset = error.offset
    assert 0 <= offset <= len(source)
