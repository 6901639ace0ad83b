"""MEMORY.md of a project: what agents noted for the next one, and how much of it a prompt gets.  App 0.11.1."""

from __future__ import annotations

import re
from math import ceil
from typing import Final

from attrs import frozen

from craftd.model.json_text import JS_WHITESPACE, utf16_cut, utf16_length

CAP: Final = 5000
"""Tokens that a prompt gets."""

DENSE_FROM: Final = 20_000
"""UTF-16 units from which it is looked whether a text is mostly base64, which costs more tokens."""

_RUN: Final = re.compile(r"[A-Za-z0-9+/=]{60,}")


def tokens(text: str) -> int:
    """Estimate: a token has 4 UTF-16 units, or 1.5 where 70 % of a long text are runs of 60 letters and digits."""
    length = utf16_length(text)
    if length >= DENSE_FROM and sum(len(run.group()) for run in _RUN.finditer(text)) / length >= 0.70:
        return ceil(length / 1.5)
    return ceil(length / 4)


@frozen
class Limited:
    """text: what a prompt gets, None where there is nothing to say. cut: UTF-16 units of the original that are in it,
    None = all of it.
    """

    text: str | None
    cut: int | None = None


def limited(text: str, cap: int = CAP) -> Limited:
    """The head of *text* that fits into *cap* tokens, and a line that says so."""
    if not text.strip(JS_WHITESPACE):
        return Limited(None)
    whole = tokens(text)
    if whole <= cap:
        return Limited(text)
    marker = f"\n\n…[MEMORY.md truncated at {cap}-token cap — keep it shorter]"
    room = max(0, cap - tokens(marker))
    head = utf16_cut(text, int(room * (utf16_length(text) / whole))).rstrip(JS_WHITESPACE)
    return Limited(head + marker, utf16_length(head))


def with_first(text: str, first: str) -> str:
    """*text* with a new entry on top, on lines of its own; a byte order mark stays the first thing in the file."""
    mark, rest = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
    separator = "" if not rest or first.endswith("\n") else "\n"
    return f"{mark}{first}{separator}{rest}"
