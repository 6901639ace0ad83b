"""What a search looks for and where."""

from __future__ import annotations

import json
import re
import time
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from craftd.errors import InvalidParams
from craftd.model import json_text
from craftd.model.search import OutOfTime, Place, Sieve, found_in, meets, needle, texts_of


def found(query: str, text: str, *, is_regex: bool = False) -> list[Place]:
    return list(found_in(text, needle(query, is_regex=is_regex), 5.0))


def shown(query: str, text: str, *, is_regex: bool = False) -> list[str]:
    """What the places say was found, taken from the text by its UTF-16 units."""
    units = text.encode("utf-16-le", "surrogatepass")
    return [
        units[2 * place.start : 2 * place.end].decode("utf-16-le", "surrogatepass")
        for place in found(query, text, is_regex=is_regex)
    ]


@pytest.mark.parametrize(
    ("query", "text", "matches"),
    [
        ("lamp", "The LAMP, a lamp.", ["LAMP", "lamp"]),
        ("strasse", "Straße, STRASSE, STRAẞE", ["Straße", "STRASSE", "STRAẞE"]),
        ("straße", "strasse", ["strasse"]),
        ("s", "ß", []),  # half of a character is none
        ("sse", "Straße strasse", ["ße", "sse"]),
        ("привет", "ПРИВЕТ, мир", ["ПРИВЕТ"]),
        ("ΟΔΟΣ", "οδος οδοσ", ["οδος", "οδοσ"]),
        ("日本", "日本語のテキスト", ["日本"]),
        ("ofﬁce", "OFFICE", ["OFFICE"]),
        ('say "x"', 'They say "X" here', ['say "X"']),
        ("a\\b", "C:\\A\\B", ["A\\B"]),
        ("one\ntwo", "zero\none\ntwo", ["one\ntwo"]),
        ("K", "\u212a", ["\u212a"]),
        ("aa", "aaaa", ["aa", "aa"]),
        ("é", "e\u0301", []),
        ("b", "👩‍👩‍👧‍👦 B 𝒳 b", ["B", "b"]),
        (".", "a.b", ["."]),
    ],
)
def test_a_literal_matches_whatever_its_case(query: str, text: str, matches: list[str]) -> None:
    assert shown(query, text) == matches


@pytest.mark.parametrize(
    ("query", "text", "matches"),
    [
        (r"\d+ squared", "12 Squared is 144", ["12 Squared"]),
        ("^b.$", "a\nbc\nb", ["bc"]),
        ("x*", "axxb", ["xx"]),
        (r"\p{Han}+", "日本語のテキスト", ["日本語"]),
        ("strasse", "Straße", []),
        (".?ss", "ßa Hass", ["ass"]),
        (r"\w*ff", "ﬀa", []),
        ("istanbul", "İSTANBUL", ["İSTANBUL"]),
    ],
)
def test_an_expression_matches_line_by_line(query: str, text: str, matches: list[str]) -> None:
    assert shown(query, text, is_regex=True) == matches


@pytest.mark.parametrize(
    "query",
    [
        "(?:" * 50 + "a" + "{1,99})" * 50,
        "(a{1,99}){60}",
        "(?:" * 20 + "a" + ")+" * 20,
        "(?:" * 20 + "a" + "){1,}" * 20,
        "(?#[)a",
        "(?x)a {1,99}",
        "(?if).?ss",
        "(?:" * 12 + "a" + "){3}" * 12,
    ],
)
def test_an_expression_that_is_heavy_to_compile_is_refused_before(query: str) -> None:
    with pytest.raises(InvalidParams, match=r"repeats|comments"):
        needle(query, is_regex=True)


def test_counted_repeats_as_people_write_them_are_taken() -> None:
    assert shown(r"(\d{1,3}\.){3}\d{1,3}", "at 127.0.0.1 now", is_regex=True) == ["127.0.0.1"]
    assert shown(r"[a-f0-9]{40}", "c0ffee" * 7, is_regex=True) == ["c0ffee" * 6 + "c0ff"]


def test_what_makes_characters_longer_costs_little_in_a_long_text() -> None:
    text = "ß" + "x" * 4_000_000 + "Straße"
    tracemalloc.start()
    found = list(needle("strasse", is_regex=False).spans(text, 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == [(4_000_001, 4_000_007)]
    assert peak < 20 * len(text)


@pytest.mark.parametrize("query", ["(", "[a", "a{2,1}", "(?P<n>x)(?P=m)"])
def test_what_is_no_expression_is_refused(query: str) -> None:
    with pytest.raises(InvalidParams, match="no regular expression"):
        needle(query, is_regex=True)


def test_a_query_has_an_end() -> None:
    with pytest.raises(InvalidParams, match="at most"):
        needle("x" * 1001, is_regex=False)


def test_an_expression_that_takes_too_long_is_given_up() -> None:
    begun = time.monotonic()
    with pytest.raises(OutOfTime):
        list(found_in("a" * 3000 + "b", needle(r"(a+a+)+c", is_regex=True), 0.05))
    assert time.monotonic() - begun < 30  # and not for ever


def test_a_snippet_shows_what_is_around_the_match_and_where_it_begins_in_it() -> None:
    text = "𝒳" * 100 + "needle" + "y" * 300
    (place,) = found("needle", text)
    assert place == Place(start=200, end=206, snippet="𝒳" * 50 + "needle" + "y" * 94, at=100)
    (whole,) = found("needle", "a needle")
    assert whole == Place(start=2, end=8, snippet="a needle", at=2)
    (long,) = found("z" * 500, "a" * 60 + "z" * 500)
    assert (long.end - long.start, long.snippet) == (500, "a" * 50 + "z" * 150)


BASE64 = "iVBORw0KGgoAAAANSUhEUgAAAAUA" * 20


@pytest.mark.parametrize("text", [BASE64, f"![](data:image/png;base64,{BASE64})", "\n".join([BASE64[:76]] * 5)])
def test_base64_never_matches(text: str) -> None:
    assert found("UhEU", text) == []
    assert shown("here", f"here {text} here") == ["here", "here"]


@pytest.mark.parametrize("text", ["x" * 600, "/home/ada/notes/" * 40, "aGVsbG8 is base64: aGVsbG8gd29ybGQ="])
def test_what_is_not_long_base64_does(text: str) -> None:
    assert found(text[:5], text)


def test_of_a_message_only_what_people_read_is_text() -> None:
    message = {
        "id": "timestamp", "type": "tool", "content": "c", "toolResult": "r", "timestamp": 1, "toolUseId": "u",
        "toolIntent": "i", "errorDetails": ["d", 4, "e"], "toolInput": {"key": "v"}, "errorTitle": None,
        "resizedBase64": "b",
    }  # fmt: skip
    assert list(texts_of(message)) == [
        ("content", "c"), ("toolResult", "r"), ("toolIntent", "i"), ("errorDetails", "d"), ("errorDetails", "e"),
    ]  # fmt: skip


# What may be skipped

LETTERS = st.text(
    st.sampled_from('aAkKsStTfFiI ßẞﬁﬃﬆſ\u212aéÉжЖσςΣ日İ"\\/\n\t\x01{}[].*^-|&~#\ufffd\ud800😀'), max_size=8
)


@given(LETTERS, LETTERS.filter(bool), LETTERS, st.booleans())
@example("", "ß", "", False)
@example("x", "STRASSE", "", True)
def test_no_line_that_holds_a_literal_falls_through_the_sieve(before: str, query: str, after: str, odd: bool) -> None:
    record = {"content": before + query.swapcase() + after}
    line = json.dumps(record).encode() if odd else json_text.dumps(record)
    sought = needle(query, is_regex=False)
    sieve = sought.sieve
    if list(found_in(record["content"], sought, 5.0)) and sieve is not None:
        assert list(sieve.places(line))
        assert re.search(sieve.in_bytes.encode(), line)
        assert odd or re.search(sieve.pattern, line.decode())


def test_lines_without_the_literal_fall_through() -> None:
    sieve = Sieve.of("stuff")
    assert sieve is not None
    block = b'{"content":"a staff"}\n{"content":"Stuff\\u001b[0m"}\n{"content":"tabs\\tand stuffed\\n"}\n'
    assert sorted(block.count(b"\n", 0, at) for at in sieve.places(block)) == [1, 2]


@pytest.mark.parametrize(
    ("query", "expected"),
    [("river", True), ("/home/ada/ws/sessions/260101-calm-river/plans", True), ("see /home", True), ("ver and", True),
     ("lover", False), ("x", False)],
)  # fmt: skip
def test_a_query_may_lie_partly_in_the_name_of_the_folder(query: str, expected: bool) -> None:
    assert meets(query, "/home/ada/ws/sessions/260101-calm-river") is expected


def test_an_expression_with_an_i_looks_at_lines_with_every_kind_of_i() -> None:
    for query in ("istanbul", "İstanbul", "ISTANBUL"):
        sieve = needle(query, is_regex=True).sieve
        for text in ("istanbul", "İstanbul", "ISTANBUL"):
            assert sieve is not None
            assert list(sieve.places(f'{{"content":"{text}"}}'.encode()))
