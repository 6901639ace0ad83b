"""Literals that every match of an expression has."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model import required
from craftd.model.search import found_in, needle


@pytest.mark.parametrize(
    ("expression", "literal"),
    [
        ("lamp", "lamp"),
        (r"lamp\w+house", "house"),
        (r"lamps?\d+", "lamp"),
        (r"^the lamp\.$", "the lamp."),
        (r"(lamp)+ a", " a"),
        ("lamp|light", ""),
        ("(?x)l a m p", ""),
        (r"lam[p-t]e", "lam"),
        (r"lam[[a]--[b]]e", ""),
        (r"\x41lamp", ""),
        (r"lamp{2}s", "lam"),
        (r"a\Qlamp", ""),
        (r"lamp(?!s)", ""),
        (r"lamp{e<=1}", ""),
        ("", ""),
    ],
)
def test_only_what_is_certain_is_required(expression: str, literal: str) -> None:
    assert required.literal(expression) == literal


PARTS = (
    "st",
    "s",
    "ß",
    "i",
    "fi",
    "K",
    "é",
    "\\.",
    ".",
    "\\w",
    "[a-k]",
    "[^x]",
    "?",
    "*",
    "+?",
    "{2}",
    "{0,1}",
    "(",
    ")",
    "$",
    " ",
    "#",
    '"',
    "-",
)


@given(
    st.lists(st.sampled_from(PARTS), max_size=8).map("".join), st.text('stSTßſẞﬆfiFIﬁkK\u212aéÉ.x #"-\n', max_size=12)
)
def test_no_text_in_which_an_expression_matches_falls_through(expression: str, text: str) -> None:
    try:
        sought = needle(expression, is_regex=True)
    except Exception:
        return
    if list(found_in(text, sought, 5.0)):
        assert sought.sieve is None or list(sought.sieve.places(json.dumps({"content": text}).encode()))
        assert sought.sieve is None or list(
            sought.sieve.places(json.dumps({"content": text}, ensure_ascii=False).encode())
        )
