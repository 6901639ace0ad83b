"""Patterns mean what they mean in JavaScript (ECMA-262), not what they mean in Python."""

from __future__ import annotations

import pytest

from craftd.model import javascript
from craftd.model.javascript import BadPattern, TooSlow


def found(pattern: str, text: str, flags: str = "") -> str | None:
    where = javascript.compile(pattern, flags).search(text)
    return None if where is None else text[where[0] : where[1]]


@pytest.mark.parametrize(
    ("pattern", "text", "match"),
    [
        ("^ls\\b", "ls -la", "ls"),
        ("^ls\\b", "lsof", None),
        ("b$", "ab", "b"),
        ("b$", "ab\n", None),  # Python's $ would take it
        ("a.c", "a\u2028c", None),
        ("\\d+", "٣4", "4"),  # ASCII digits only
        ("\\w", "é", None),
        ("\\W", "é", "é"),
        ("[\\W]", "é", "é"),
        ("[^\\W]", "é_", "_"),
        ("\\s", "\ufeff", "\ufeff"),
        ("[\\S]", "\u00a0x", "x"),
        ("\\bé", "aé", "é"),  # a boundary: é is no word character
        ("[[]", "[", "["),
        ("[[:alpha:]]", "a]", "a]"),
        ("[^]", "\n", "\n"),
        ("x[]|y", "xy", "y"),
        ("[a-]", "-", "-"),
        ("[\\w-x]", "-", "-"),
        ("[\\b]", "\x08", "\x08"),
        ("a{,2}", "a{,2}", "a{,2}"),
        ("a{e<=1}", "b", None),  # fuzzy matching elsewhere
        ("a{2}", "aaa", "aa"),
        ("x{", "x{", "x{"),
        ("(a)|b\\1", "b", "b"),  # a group that took no part matches nothing
        ("(?<year>\\d{4})-\\k<year>", "2026-2026", "2026-2026"),
        ("\\k<a>", "k<a>", "k<a>"),  # Annex B: no named groups, no reference
        ("\\A", "A", "A"),
        ("\\Z", "Z", "Z"),
        ("\\cJ", "\n", "\n"),
        ("\\x41\\u0042\\0", "AB\0", "AB\0"),
        ("\\7", "\x07", "\x07"),
        ("(?<=a+)b", "aab", "b"),
        ("a#b c", "a#b c", "a#b c"),
        ("a//b&&c~~d", "a//b&&c~~d", "a//b&&c~~d"),
        ("^\\/search", "/search", "/search"),
        ("a+?", "aa", "a"),
    ],
)
def test_a_pattern_matches_what_javascript_matches(pattern: str, text: str, match: str | None) -> None:
    assert found(pattern, text) == match


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "[", "*", "+", "a**", "a++", "a|*", "(*a)", "{2}", "^*", "\\", "[z-a]", "a{3,2}", "(?P<n>a)", "(?#x)",
        "(?>a)", "(?|a)", "(?<n>a)(?<n>b)", "(?<a", "a{1}{2}", "(?i)a", "(?(1)a)", "x" * 2001,
    ],
)  # fmt: skip
def test_what_is_no_pattern_in_javascript_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        javascript.compile(pattern)


def test_flags_mean_what_they_mean_in_javascript() -> None:
    assert found("ab", "AB", "i") == "AB"
    assert found("^b$", "a\nb\nc", "m") == "b"
    assert found("a.b", "a\nb", "s") == "a\nb"
    assert found("\\u{1F600}", "\U0001f600", "u") == "\U0001f600"
    with pytest.raises(BadPattern):
        javascript.compile("\\a", "u")
    with pytest.raises(BadPattern):
        javascript.compile("a", "q")


def test_a_search_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(TooSlow):
        javascript.compile("^(a|a|aa)*(a|a|aa)*(a|a|aa)*$").search("a" * 60 + "!")


def test_what_a_text_could_begin_with_is_known() -> None:
    assert javascript.compile("^mcp__tracker__x").could_begin("mcp__")
    assert not javascript.compile("^list").could_begin("mcp__")
