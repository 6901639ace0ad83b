from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model.json_text import (
    MAX_DEPTH,
    canonical,
    depth_exceeds,
    dumps,
    dumps_indented,
    equal,
    js_number,
    js_trim,
    loads,
    utf16_cut,
    utf16_length,
)
from tests.model import golden
from tests.strategies import json_values, texts


@pytest.mark.parametrize("text", golden.load("vectors.json")["jsonText"])
def test_numbers_strings_and_key_order_are_written_as_the_app_writes_them(text: str) -> None:
    assert dumps(loads(text)).decode() == text


@pytest.mark.parametrize("session", golden.SOUND)
def test_every_line_of_a_sound_session_keeps_its_bytes(session: str) -> None:
    for line in golden.lines(session):
        assert dumps(loads(line)) == line


@given(json_values)
def test_what_is_written_reads_back_equal(value: Any) -> None:
    assert canonical(loads(dumps(value))) == canonical(value)


@given(json_values)
def test_text_is_stable_after_one_round(value: Any) -> None:
    once = dumps(value)
    assert dumps(loads(once)) == once


@given(json_values)
def test_other_parsers_agree_with_what_is_written(value: Any) -> None:
    joined = json.loads(json.dumps(value))  # halves of a pair that stand together are one character
    assert canonical(json.loads(dumps(value))) == canonical(joined)


@given(json_values)
def test_indented_text_holds_the_same_value(value: Any) -> None:
    assert dumps(loads(dumps_indented(value))) == dumps(value)


def test_indented_text_looks_like_the_apps() -> None:
    value = {"a": [1, {}], "b": {}, "c": [], "2": {"x": "é"}}
    expected = '{\n  "2": {\n    "x": "é"\n  },\n  "a": [\n    1,\n    {}\n  ],\n  "b": {},\n  "c": []\n}'
    assert dumps_indented(value).decode() == expected
    assert dumps_indented(value, newline=True).decode() == expected + "\n"


@pytest.mark.parametrize(
    "digits", ["9223372036854775808", "18446744073709551616", "-9999999999999999999", "1" + "0" * 40]
)
def test_integers_keep_all_their_digits(digits: str) -> None:
    padded = b'{"pad":"%s","n":%s}' % (b"x" * 5000, digits.encode())
    for text in (digits.encode(), padded):
        assert dumps(loads(text)) == text


@pytest.mark.parametrize("offset", range(7))
def test_a_long_integer_is_noticed_at_any_place_of_a_long_text(offset: int) -> None:
    text = b'["%s",1234567890123456789012]' % (b"x" * (5000 + offset))
    assert loads(text)[1] == 1234567890123456789012


def test_a_number_beyond_every_limit_reads_as_infinite_and_writes_null() -> None:
    for text in ("1e400", "9" * 5000):
        assert loads(text) == math.inf
        assert dumps(loads(text)) == b"null"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[1,]",
        b"NaN",
        b"-Infinity",
        b"\xef\xbb\xbf{}",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"a\nb"',
        b"{} {}",
        b"01",
    ],
)
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  any kind of it
        loads(data)


def test_lone_surrogates_survive_and_pairs_join() -> None:
    assert dumps(loads(b'"\\ud83d x \\ude00"')) == b'"\\ud83d x \\ude00"'
    assert dumps(loads(b'"\\ud83d\\ude00"')) == '"😀"'.encode()
    assert dumps("\ud83d" + "\ude00") == '"😀"'.encode()
    assert loads('"\ud83d"') == "\ud83d"


def test_of_equal_keys_the_last_value_counts_at_the_first_place() -> None:
    assert dumps(loads(b'{"a":1,"b":2,"a":3}')) == b'{"a":3,"b":2}'


@pytest.mark.parametrize(("depth", "fits"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False), (900, False), (200_000, False)])
@pytest.mark.parametrize("number", ["1", "12345678901234567890123"])
def test_nesting_has_a_limit_and_never_a_recursion_error(depth: int, fits: bool, number: str) -> None:
    text = "[" * depth + number + "]" * depth
    if fits:
        assert dumps(loads(text)).decode() == text
    else:
        with pytest.raises(ValueError, match="nested deeper"):
            loads(text)


def test_many_containers_side_by_side_are_not_deep() -> None:
    assert loads("[" + ",".join(["[]"] * 1000) + "]") == [[]] * 1000


@pytest.mark.parametrize(("value", "depth"), [(1, 0), ([], 1), ({}, 1), ([1, {"a": []}], 3)])
def test_depth_counts_containers(value: Any, depth: int) -> None:
    assert not depth_exceeds(value, depth)
    if depth:
        assert depth_exceeds(value, depth - 1)


def test_what_json_cannot_say_is_refused_not_guessed() -> None:
    with pytest.raises(TypeError):
        dumps({"at": object()})


def test_canonical_text_knows_values_not_spellings() -> None:
    assert equal({"a": 1, "b": 2.0}, {"b": 2, "a": 1.0})
    assert equal(-0.0, 0)
    assert not equal(True, 1)
    assert not equal(False, 0)
    assert not equal([1, 2], [2, 1])
    assert not equal(None, 0)


@given(json_values, json_values)
def test_canonical_texts_are_equal_exactly_when_sorted_texts_are(one: Any, other: Any) -> None:
    def sorted_text(value: Any) -> bytes:
        if isinstance(value, dict):
            return b"{%s}" % b",".join(dumps(key) + b":" + sorted_text(value[key]) for key in sorted(value))
        if isinstance(value, list):
            return b"[%s]" % b",".join(map(sorted_text, value))
        return dumps(value)

    assert (canonical(one) == canonical(other)) == (sorted_text(one) == sorted_text(other))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_written_with_digits_that_read_back(number: float) -> None:
    text = js_number(number)
    assert float(text) == number
    assert ("e" in text) == (number != 0 and not 1e-6 <= abs(number) < 1e21)


@pytest.mark.parametrize(
    ("number", "text"),
    [(1e16, "10000000000000000"), (1.5e-6, "0.0000015"), (1.5e-7, "1.5e-7"), (1.25e25, "1.25e+25"), (-0.0, "0")],
)
def test_floats_use_the_apps_notation(number: float, text: str) -> None:
    assert dumps(number).decode() == text
    assert dumps({"n": [number]}).decode() == f'{{"n":[{text}]}}'


def test_integer_like_keys_come_first_in_ascending_order() -> None:
    value = {"b": 1, "10": 2, "9": 3, "01": 4, "4294967294": 5, "4294967295": 6, "²": 7, "": 8}
    assert list(json.loads(dumps(value))) == ["9", "10", "4294967294", "b", "01", "4294967295", "²", ""]


@given(texts, st.integers(0, 12))
def test_a_cut_is_the_longest_beginning_without_half_a_character(text: str, units: int) -> None:
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    cut = utf16_cut(text, units)
    assert text.startswith(cut)
    assert utf16_length(cut) <= units
    if cut != text:
        assert utf16_length(text[: len(cut) + 1]) > units


def test_trimming_follows_ecmascript() -> None:
    assert js_trim("\ufeff\u00a0 x\u2028") == "x"
    assert js_trim("\u0085x\x1c") == "\u0085x\x1c"
