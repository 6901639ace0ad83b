from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model import long_results as results
from craftd.model.json_text import utf16_length
from tests.model import golden
from tests.strategies import texts

VECTORS = golden.load("vectors.json")
FOLDER = "/ws/sessions/s"
REPEATED = {"aaaaaaaa": "a", "a b a b ": "a b ", "QQQQQQQQ": "Q", "日日日日日日日日": "日"}


@pytest.mark.parametrize("vector", VECTORS["tokenEstimates"])
def test_tokens_are_estimated_as_by_the_app(vector: dict[str, Any]) -> None:
    """Of a text only its beginning is recorded: what says that it is base64, or for the most part is not, follows."""
    length, piece = vector["length"], REPEATED[vector["starts"]]
    mixed = piece == "Q" and length >= 20_000 and vector["tokens"] == vector["plain"]
    beginning = 6 * length // 10 if mixed else length
    text = (piece * beginning)[:beginning] + " -" * ((length - beginning) // 2)
    assert utf16_length(text) == length
    assert results.tokens(text) == vector["tokens"]


@given(st.lists(st.tuples(st.sampled_from("aZ9+/= -é\n"), st.integers(1, 130)), max_size=8))
def test_what_looks_like_base64_is_found_as_by_the_plain_pattern(pieces: list[tuple[str, int]]) -> None:
    text = "".join(char * times for char, times in pieces)
    runs = sum(map(len, re.findall(r"[A-Za-z0-9+/=]{60,}", text)))
    units = utf16_length(text)
    assert results._is_dense(text, units) == (10 * runs >= 7 * units)


@pytest.mark.parametrize(("window", "tokens"), VECTORS["tokenLimits"])
def test_the_limit_follows_the_context_window(window: Any, tokens: int) -> None:
    assert results.limit(window) == tokens


@pytest.mark.parametrize("odd", ["200000", 200000.5, True, [1]])
def test_an_odd_context_window_is_none(odd: Any) -> None:
    assert results.limit(odd) == results.LIMIT


def test_the_stand_in_has_the_words_of_the_app() -> None:
    expected = VECTORS["largeResponseMessage"]["preview"]
    text = "PRE"
    said = results.stand_in(text, "/s", "x.txt").replace(f"~{results.tokens(text)} ", "~12345 ")
    assert said == expected


def test_a_preview_ends_at_a_character() -> None:
    text = "x" * 1999 + "😀" * 30_000
    assert results.stand_in(text, FOLDER, "x.txt").endswith("x" * 1999 + "...")


def test_only_what_is_above_the_limit_is_long() -> None:
    plain = "a b " * 12_000
    assert not results.is_long(plain, None)
    assert results.is_long(plain + "c", None)
    assert results.is_long("Q" * 19_999 + "Q", None)
    assert results.is_long("a b " * 2_000 + "c", 20_000)


@given(texts, st.integers(0, 3_000))
def test_the_quick_look_never_decides_otherwise(text: str, times: int) -> None:
    long = text * times
    assert results.is_long(long, 1) == (results.tokens(long) > results.SMALLEST_LIMIT)


def message(result: str, **more: Any) -> dict[str, Any]:
    return {"id": "m1", "toolName": "Read", "toolResult": result, "content": "", **more, "type": "tool"}


def test_a_result_is_whole_in_its_file_and_the_line_keeps_its_order() -> None:
    text = "é\r\n日 " * 20_000
    line, files = results.moved(message(text), FOLDER)
    [(name, data)] = files.items()
    assert data.decode() == text
    assert f"Full data saved to: {FOLDER}/{name}\n" in line["toolResult"]
    assert list(line) == list(message(""))
    assert line == {**message(""), "toolResult": line["toolResult"]}
    assert results.moved(message(text), FOLDER) == (line, files), "a repeat finds the same name"
    assert results.tokens(line["toolResult"]) < results.SMALLEST_LIMIT


def test_what_utf_8_cannot_hold_stays_where_it_is() -> None:
    odd = message("\ud83d" * 60_000)
    assert results.moved(odd, FOLDER) == (odd, {})


def test_no_two_results_share_a_name() -> None:
    names = [
        results.file_name(tool, id, data)
        for tool in ("Read", "a/b", None)
        for id in ("m/1", "m_1", "m" * 200, "m" * 199)
        for data in (b"x", b"y")
    ]
    assert len({name.casefold() for name in names}) == len(names)


@given(st.text(st.characters(exclude_categories=()), max_size=200), st.text(st.characters(exclude_categories=())))
def test_a_name_leads_nowhere_and_is_short(tool: str, id: str) -> None:
    name = results.file_name(tool, id, b"x")
    assert re.fullmatch(r"[A-Za-z0-9_-]+_[A-Za-z0-9_-]*_[0-9a-f]{16}\.txt", name)
    assert utf16_length(name) < 255


@pytest.mark.parametrize("vector", VECTORS["largeResponseFileNames"])
def test_where_the_app_loses_a_file_or_overwrites_one_we_have_two(vector: dict[str, Any]) -> None:
    """Its name has the time to the millisecond, the tool as it is called, and what was asked for."""
    first, second = (results.file_name(vector["tool"], id, b"x") for id in ("m1", "m2"))
    assert first != second
    assert "/" not in first
