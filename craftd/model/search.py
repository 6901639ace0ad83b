"""What a search looks for and where: pure.

A literal matches without regard to case, as Unicode folds it (`strasse` finds `Straße`), and whole characters only.
Nothing else is folded: no accents, no width, no composition. Keys, ids and numbers of a record are no text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Final, Protocol

import regex
from attrs import field, frozen

from craftd.errors import InvalidParams
from craftd.model import json_text, required
from craftd.model.json_text import utf16_length
from craftd.model.records import Record

LONGEST_QUERY: Final = 1_000
"""Characters."""

HEAVIEST: Final = 5_000
"""Characters of an expression, its repeats written out: compiling takes time and memory that nothing can stop."""
_HIDING: Final = re.compile(r"\(\?(?:#|[a-zA-Z0-9-]*[xf])")
"""With these an expression weighs more than it looks, or never ends."""
LONGEST_TEXT: Final = 1 << 20
"""Characters at the beginning of a text that an expression is looked for in."""

SNIPPET: Final = 150
BEFORE: Final = 50
"""Characters that a snippet shows, and how many of them before the match."""

TEXTS: Final = ("content", "toolResult", "toolIntent", "errorTitle", "errorOriginal", "errorDetails")
"""Members of a message that people read."""

_LONG: Final = 256
"""Characters of base64 from which it is no text."""
_RUN: Final = re.compile(r"[A-Za-z0-9+/_-]{60,}={0,2}(?:\r?\n[A-Za-z0-9+/_-]{60,}={0,2})*")

Span = tuple[int, int]


class OutOfTime(Exception):
    """The expression takes too long."""


class Needle(Protocol):
    """What is looked for. folded: a literal, case-folded, that it is or has, if there is a sieve.

    sieve: what a line of JSON has that holds it; None: any line may.
    """

    @property
    def folded(self) -> str: ...
    @property
    def sieve(self) -> Sieve | None: ...

    def spans(self, text: str, seconds: float) -> Iterator[Span]:
        """Where it is in *text*: (start, end) in characters, in order, none within another. Raises: OutOfTime."""
        ...


def needle(query: str, *, is_regex: bool) -> Needle:
    """query: not empty. Raises: InvalidParams."""
    if len(query) > LONGEST_QUERY:
        raise InvalidParams.of("query", f"must have at most {LONGEST_QUERY} characters")
    if not is_regex:
        return Literal(query.casefold())
    if _HIDING.search(query):
        raise InvalidParams.of("query", "must have no comments and none of the flags x and f")
    if required.weight(query) > HEAVIEST:
        raise InvalidParams.of("query", f"counts repeats that come to more than {HEAVIEST} characters")
    try:
        # Not FULLCASE: `.?ss` never comes to an end on `\u00df` then.
        return Expression(regex.compile(query, regex.V0 | regex.IGNORECASE | regex.MULTILINE))
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise InvalidParams.of("query", f"is no regular expression: {error}") from None


@frozen
class Literal:
    """folded: what is looked for, case-folded."""

    folded: str
    sieve: Sieve | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "sieve", Sieve.of(self.folded))

    def spans(self, text: str, seconds: float) -> Iterator[Span]:
        folded = text.casefold()
        at = folded.find(self.folded)
        if at < 0:
            return
        length = len(self.folded)
        if len(folded) == len(text):  # folding makes no character shorter: each became one
            while at >= 0:
                yield at, at + length
                at = folded.find(self.folded, at + length)
            return
        place = _Unfolded(text)
        while at >= 0:
            start, end = place(at), place(at + length)
            if start is not None and end is not None:
                yield start, end
            at = folded.find(self.folded, at + 1 if start is None or end is None else at + length)


@cache
def _growing() -> re.Pattern[str]:
    """Characters that become several when they are folded."""
    return re.compile("[" + "".join(char for char in map(chr, range(0xFB20)) if len(char.casefold()) > 1) + "]")


class _Unfolded:
    """Where in a text the characters of its folded form come from."""

    def __init__(self, text: str) -> None:
        self._places: list[int] = []
        self._starts: list[int] = []
        self._more: list[int] = []
        """Of each expanding character: its place, where its folded form starts, and how much longer all became."""
        more = 0
        for found in _growing().finditer(text):
            self._places.append(found.start())
            self._starts.append(found.start() + more)
            more += len(found[0].casefold()) - 1
            self._more.append(more)

    def __call__(self, at: int) -> int | None:
        """The character that begins at *at* of the folded text; None within one."""
        before = bisect_right(self._starts, at) - 1
        if before < 0:
            return at
        if at == self._starts[before]:
            return self._places[before]
        place = at - self._more[before]
        return place if place > self._places[before] else None


@frozen
class Expression:
    """The sieve is that of a literal that every match has."""

    pattern: regex.Pattern[str]
    sieve: Sieve | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "sieve", Sieve.of(self.folded) if len(self.folded) >= required.SHORTEST else None)

    @property
    def folded(self) -> str:
        # `regex` takes I with and without a dot for one letter, which folding does not.
        return max(re.split("[iI\u0130\u0131]", required.literal(self.pattern.pattern)), key=len).casefold()

    def spans(self, text: str, seconds: float) -> Iterator[Span]:
        try:
            found = self.pattern.finditer(text, 0, LONGEST_TEXT, concurrent=True, timeout=max(seconds, 0.001))
            yield from (one.span() for one in found if one.end() > one.start())
        except (TimeoutError, MemoryError):
            raise OutOfTime from None


# Lines of JSON


@frozen
class Sieve:
    """A condition on the bytes of a line that every line fulfils whose strings hold the literal, and few others.

    plain: a run of the literal as JSON has it, upper case A-Z made lower; b"" where every character has other forms.
    exotic: further spellings of what is in the run, of which one may be there instead. pattern: all of it as an
    expression of Rust; in_bytes: of Python. A string may also be spelt with escapes that the app does not write: such
    a line fulfils it too.
    """

    plain: bytes
    exotic: tuple[bytes, ...]
    pattern: str
    in_bytes: str

    @classmethod
    def of(cls, folded: str) -> Sieve | None:
        """None: nothing can be said about such lines."""
        run = max(_RUNS.findall(folded), key=len, default="")
        if not run:
            return None
        forms = [char + _folds()[0].get(char, "") for char in run]
        expanded = "".join(dict.fromkeys(_expanding(folded, run)))
        written = ["".join(map(one_of, forms)) + (f"|{one_of(expanded)}" if expanded else "") for one_of in _ONE_OF]
        plain = max("".join(map(_plain, forms)).split("\0"), key=len)
        exotic: set[str] = set()
        if len(plain) < min(_PLAIN, len(run)):
            plain = ""
        else:
            more = {char for char in plain for char in _folds()[0].get(char, "") if not char.isascii()}
            exotic = {*more, *_expanding(folded, plain)}
        return cls(
            plain=_in_json(plain).lower(),
            exotic=tuple(sorted(char.encode() for char in exotic)),
            pattern=f"{written[0]}|{_ODD}",
            in_bytes=f"{written[1]}|{_ODD}",
        )

    def places(self, block: bytes) -> Iterator[int]:
        """Places in the lines that may hold the literal, one in each at least, in no order."""
        if not self.plain:
            yield from (found.start() for found in _compiled(self.in_bytes).finditer(block))
            return
        yield from each_line_with(block.lower() if self.plain.upper() != self.plain else block, self.plain)
        if not block.isascii():
            for spelling in self.exotic:
                yield from each_line_with(block, spelling)
        if b"\\u" in block:
            yield from (found.start() for found in _UNUSUAL.finditer(block))
        yield from each_line_with(block, b"\\/")


_PLAIN: Final = 3
"""Characters of a run that are worth looking for alone, where the literal has others beside."""


def _plain(forms: str) -> str:
    """The character if its only other form is the upper case of an ASCII letter or exotic, else NUL."""
    return forms[0] if forms[0].isascii() or len(forms) == 1 else "\0"


def _expanding(folded: str, run: str) -> Iterator[str]:
    """Characters that fold to several of which some are in *run*."""
    at = folded.index(run)
    for text, chars in _folds()[1].items():
        if any(start < at + len(run) and start + len(text) > at for start in _starts(folded, text)):
            yield from chars


_RUNS: Final = re.compile("[^\x00-\x1f\ufffd\ud800-\udfff]+")
"""What is in a file as it is, or by an escape that `_ODD` knows."""

_ODD: Final = r"\\u(?:[1-9A-Fa-f]|0[1-9A-Fa-f]|00[2-9A-Fa-f])|\\/"
"""Escapes of what needs none."""
_UNUSUAL: Final = re.compile(rb"\\u(?!00[01])")


def each_line_with(block: bytes, text: bytes) -> Iterator[int]:
    """The first place of *text* in every line of *block*."""
    at = block.find(text)
    while at >= 0:
        yield at
        end = block.find(b"\n", at)
        at = -1 if end < 0 else block.find(text, end)


@cache
def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode())


def _class_of(chars: str) -> str:
    """An expression for any of *chars* as JSON has them."""
    return _escaped(chars) if len(chars) == 1 else f"[{chars}]"  # what has other forms means nothing in a class


def _choice_of(chars: str) -> str:
    """The same for bytes, where a character may be several."""
    return _escaped(chars) if len(chars) == 1 else _class_of(chars) if chars.isascii() else f"(?:{'|'.join(chars)})"


_ONE_OF: Final = (_class_of, _choice_of)


def _escaped(char: str) -> str:
    return "".join(rf"\{char}" if char in _SPECIAL else char for char in _in_json(char).decode())


_SPECIAL: Final = frozenset(r"\.+*?()|[]{}^$#&-~")


def _in_json(text: str) -> bytes:
    return json_text.dumps(text)[1:-1]


@cache
def _folds() -> tuple[dict[str, str], dict[str, str]]:
    """Other characters that fold to a character; characters that fold to several."""
    variants: dict[str, str] = defaultdict(str)
    expansions: dict[str, str] = defaultdict(str)
    for char in map(chr, (*range(0xD800), *range(0xE000, 0x20000))):
        folded = char.casefold()
        if folded != char:
            (variants if len(folded) == 1 else expansions)[folded] += char
    return dict(variants), dict(expansions)


def _starts(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def meets(folded: str, directory: str) -> bool:
    """Whether *folded*, a literal, can lie in a text partly or wholly where that names *directory* (case-folded)."""
    lengths = range(1, min(len(folded), len(directory) + 1))
    return (
        folded in directory
        or directory in folded
        or directory.endswith(tuple(folded[:length] for length in lengths))
        or directory.startswith(tuple(folded[-length:] for length in lengths))
    )


# Texts


def texts_of(message: Record) -> Iterator[tuple[str, str]]:
    """(member, text) of everything in a message that people read."""
    for name in TEXTS:
        value = message.get(name)
        for text in value if type(value) is list else (value,):
            if isinstance(text, str) and text:
                yield name, text


@frozen(kw_only=True)
class Place:
    """Where something was found. start, end: UTF-16 units of the whole text. at: UTF-16 units of *snippet* before it.

    snippet: the text around it, as it is; a match that is longer is cut.
    """

    start: int
    end: int
    snippet: str
    at: int


def found_in(text: str, needle: Needle, seconds: float) -> Iterator[Place]:
    """Every match in *text* that does not lie in base64. Raises: OutOfTime."""
    runs: list[Span] | None = None
    units, counted = 0, 0
    for start, end in needle.spans(text, seconds):
        if runs is None:
            runs = _encoded(text)
        after = bisect_right(runs, (start, len(text)))
        if after and end <= runs[after - 1][1]:
            continue
        units += utf16_length(text[counted:start])
        counted = start
        first = max(0, start - BEFORE)
        snippet = text[first : max(first + SNIPPET, min(end, start + SNIPPET))]
        yield Place(
            start=units,
            end=units + utf16_length(text[start:end]),
            snippet=snippet,
            at=utf16_length(text[first:start]),
        )


def _encoded(text: str) -> list[Span]:
    """Where *text* is base64: long, without blanks, and with upper case, lower case and digits."""
    if len(text) < _LONG:
        return []
    return [found.span() for found in _RUN.finditer(text) if _is_encoded(found[0])]


def _is_encoded(run: str) -> bool:
    head = run[: 4 * _LONG]
    return len(run) >= _LONG and head.upper() != head != head.lower() and any("0" <= char <= "9" for char in head)
