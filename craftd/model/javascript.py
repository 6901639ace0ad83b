"""Regular expressions as JavaScript reads them, run by the `regex` module with a limit on time.

The same text means other things in Python: `$` also matches before a last newline, `\\d` takes every script's digits,
`(?P<n>...)`, `a++` and `(?i)` are legal, `[[]` and `{,2}` are something else. What is translated follows ECMA-262
(2025), `RegExp` without the `v` flag, Annex B included. Where it differs: characters beyond U+FFFF count as one, and a
group inside a repeat keeps its text of the round before.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from attrs import field, frozen

LONGEST: Final = 2000
"""Characters of a pattern; a longer one is a mistake."""

SECONDS: Final = 0.1
"""Time for one search."""

_DIGITS: Final = "0-9"
_WORD: Final = "0-9A-Za-z_"
_SPACE: Final = r"\t\n\x0b\x0c\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_LINE_END: Final = r"\n\r\u2028\u2029"
_NO_SPACE: Final = (
    r"\x00-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e"
    r"\u2030-\u205e\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff"
)
_CLASSES: Final = {
    "d": _DIGITS, "w": _WORD, "s": _SPACE,
    "D": r"\x00-/:-\U0010ffff", "W": r"\x00-/:-@\[-\^`{-\U0010ffff", "S": _NO_SPACE,
}  # fmt: skip
_BOUNDARY: Final = f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))"
_NO_BOUNDARY: Final = f"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))"
_CONTROLS: Final = {"t": r"\t", "n": r"\n", "v": r"\x0b", "f": r"\x0c", "r": r"\r"}
_HEX: Final = frozenset("0123456789abcdefABCDEF")


class BadPattern(ValueError):
    """The text is no regular expression; the message is for people."""


class TooSlow(Exception):
    """A search took longer than `SECONDS`."""


@frozen
class Pattern:
    """A compiled expression. source: as written."""

    source: str
    _compiled: Any = field(eq=False, repr=False)

    @property
    def groups(self) -> int:
        """How many of its groups hold what they matched."""
        return int(self._compiled.groups)

    def search(self, text: str) -> tuple[int, int] | None:
        """Where the first match is. Raises: TooSlow."""
        return self._where(self._compiled.search, text)

    def match(self, text: str, at: int = 0) -> int | None:
        """Where the match ends that begins at *at*. Raises: TooSlow."""
        found = self._where(self._compiled.match, text, at)
        return None if found is None else found[1]

    def find_all(self, text: str) -> Iterator[tuple[str | None, ...]]:
        """Each match with its groups, the whole first. Raises: TooSlow."""
        try:
            for found in self._compiled.finditer(text, timeout=SECONDS, concurrent=True):
                yield (found.group(), *found.groups())
        except TimeoutError:
            raise TooSlow from None

    def could_begin(self, text: str) -> bool:
        """Whether a text that begins with *text* may match from its start on."""
        try:
            return self._compiled.match(text, partial=True, timeout=SECONDS) is not None
        except TimeoutError:
            return True

    @staticmethod
    def _where(method: Any, text: str, at: int = 0) -> tuple[int, int] | None:
        try:
            found = method(text, at, timeout=SECONDS, concurrent=True)
        except TimeoutError:
            raise TooSlow from None
        return None if found is None else (found.start(), found.end())


@lru_cache(maxsize=1024)
def compile(source: str, flags: str = "") -> Pattern:
    """Raises: BadPattern."""
    import regex  # 30 ms: only who has patterns pays

    if len(source) > LONGEST:
        raise BadPattern(f"is longer than {LONGEST} characters")
    if set(flags) - set("dgimsuy") or len(set(flags)) != len(flags):
        raise BadPattern(f"has unknown flags {flags!r}")
    translated = _Translation(source, flags).whole()
    try:
        return Pattern(source, regex.compile(translated, regex.V0 | (regex.I if "i" in flags else 0)))
    except (regex.error, OverflowError, RecursionError) as error:
        raise BadPattern(f"is no regular expression: {error}") from error


class _Translation:
    """One pass over the text of a pattern."""

    def __init__(self, source: str, flags: str) -> None:
        self.source = source
        self.at = 0
        self.multiline = "m" in flags
        self.dot_all = "s" in flags
        self.unicode = "u" in flags
        self.groups, self.names = _groups(source)
        self.defined: set[str] = set()
        self.open: list[bool] = []
        """Of every open group whether it may be repeated."""

    def whole(self) -> str:
        made: list[str] = []
        repeatable = False
        while self.at < len(self.source):
            text, repeatable = self.one(repeatable)
            made.append(text)
        if self.open:
            raise BadPattern("has a group that is not closed")
        return "".join(made)

    def one(self, repeatable: bool) -> tuple[str, bool]:
        """The next piece, and whether a quantifier may follow it."""
        char = self.take()
        if char == "\\":
            return self.escape()
        if char == "[":
            return self.klass(), True
        if char == "(":
            return self.group()
        if char == ")":
            if not self.open:
                raise BadPattern("has a ) too much")
            return ")", self.open.pop()
        if char == "|":
            return "|", False
        if char == "^":
            return (rf"(?:\A|(?<=[{_LINE_END}]))" if self.multiline else r"\A"), False
        if char == "$":
            return (rf"(?=[{_LINE_END}]|\Z)" if self.multiline else r"\Z"), False
        if char == ".":
            return (r"[\s\S]" if self.dot_all else f"[^{_LINE_END}]"), True
        if char in "*+?":
            return self.repeat(char, repeatable), False
        if char == "{" and (bounds := self.bounds()):
            return self.repeat(bounds, repeatable), False
        if char in "{}]":
            if self.unicode:
                raise BadPattern(f"has a lone {char}")
            return f"\\{char}", True
        return (f"\\{char}" if char in "#&~-" or char.isspace() else char), True

    def take(self) -> str:
        char = self.source[self.at]
        self.at += 1
        return char

    def rest(self, text: str) -> bool:
        return self.source.startswith(text, self.at)

    def bounds(self) -> str | None:
        """`{2}`, `{2,}` or `{2,3}` behind the brace just taken."""
        end = self.source.find("}", self.at)
        inner = self.source[self.at : end] if end > 0 else ""
        low, comma, high = inner.partition(",")
        if not (low.isascii() and low.isdigit()) or (high and not (high.isascii() and high.isdigit())):
            return None
        if len(low) > 9 or len(high) > 9:
            raise BadPattern("repeats too often")
        if high and int(low) > int(high):
            raise BadPattern("has a repeat whose bounds are out of order")
        self.at = end + 1
        return f"{{{low}{comma}{high}}}"

    def repeat(self, quantifier: str, repeatable: bool) -> str:
        if not repeatable:
            raise BadPattern(f"has nothing before {quantifier} to repeat")
        if self.rest("?"):
            self.at += 1
            return f"{quantifier}?"
        return quantifier

    def group(self) -> tuple[str, bool]:
        if not self.rest("?"):
            self.open.append(True)
            return "(", False
        for opening in ("?:", "?=", "?!", "?<=", "?<!"):
            if self.rest(opening):
                self.at += len(opening)
                behind = "<" in opening
                self.open.append(not behind and not (self.unicode and opening != "?:"))
                return f"({opening}", False
        end = self.source.find(">", self.at)
        name = self.source[self.at + 2 : end] if self.rest("?<") and end > 0 else ""
        if not name.isidentifier():
            raise BadPattern("has a group of an unknown kind")
        if name in self.defined:
            raise BadPattern(f"has two groups called {name}")
        self.defined.add(name)
        self.at = end + 1
        self.open.append(True)
        return f"(?P<{name}>", False

    def escape(self) -> tuple[str, bool]:
        if self.at >= len(self.source):
            raise BadPattern("ends with a backslash")
        char = self.source[self.at]
        if char in "bB":
            self.at += 1
            return (_BOUNDARY if char == "b" else _NO_BOUNDARY), False
        if char in _CLASSES:
            self.at += 1
            return f"[{_CLASSES[char]}]", True
        if char in "123456789" and (number := self.back_reference()):
            return f"(?({number})\\{number}|)", True
        if char == "k" and self.names:
            end = self.source.find(">", self.at)
            name = self.source[self.at + 2 : end]
            if not self.source.startswith("k<", self.at) or name not in self.names:
                raise BadPattern("refers to a group that is not there")
            self.at = end + 1
            return f"(?({name})(?P={name})|)", True
        return self.character(), True

    def back_reference(self) -> int | None:
        end = self.at
        while end < len(self.source) and self.source[end] in "0123456789" and end - self.at < 3:
            end += 1
        number = int(self.source[self.at : end])
        if number <= self.groups:
            self.at = end
            return number
        if self.unicode:
            raise BadPattern("refers to a group that is not there")
        return None

    def character(self) -> str:
        """The one character that an escape stands for, behind its backslash."""
        char = self.take()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "c" and self.at < len(self.source) and self.source[self.at].isascii():
            letter = self.source[self.at]
            if letter.isalpha():
                self.at += 1
                return f"\\x{ord(letter) % 32:02x}"
        if char == "c":
            return r"\\c"
        if char == "u" and self.unicode and self.rest("{"):
            end = self.source.find("}", self.at)
            digits = self.source[self.at + 1 : end] if end > 0 else ""
            if not digits or set(digits) - _HEX or int(digits, 16) > 0x10FFFF:
                raise BadPattern("has a bad \\u{...}")
            self.at = end + 1
            return f"\\U{int(digits, 16):08x}"
        for letter, count in (("x", 2), ("u", 4)):
            digits = self.source[self.at : self.at + count]
            if char == letter and len(digits) == count and not set(digits) - _HEX:
                self.at += count
                return f"\\{letter}{digits}"
        if char in "01234567":
            return self.octal(char)
        if self.unicode and (char.isalnum() or char == "_"):
            raise BadPattern(f"has an unknown escape \\{char}")
        return char if char.isalnum() or char == "_" or not char.isascii() else f"\\{char}"

    def octal(self, first: str) -> str:
        """`\\0`, and Annex B's octal numbers up to 255."""
        digits = first
        while len(digits) < 3 and self.at < len(self.source) and self.source[self.at] in "01234567":
            if int(digits + self.source[self.at], 8) > 255:
                break
            digits += self.take()
        if self.unicode and digits != "0":
            raise BadPattern("has an octal escape")
        return f"\\x{int(digits, 8):02x}"

    def klass(self) -> str:
        """A class behind its `[`. `[]` is nothing, `[^]` anything."""
        negated = self.rest("^")
        self.at += negated
        items: list[str] = []
        while True:
            if self.at >= len(self.source):
                raise BadPattern("has a class that is not closed")
            char = self.take()
            if char == "]":
                break
            if char == "\\":
                items.append(self.class_escape())
            elif char == "-":
                items.append("-")
            else:
                items.append(char if char.isalnum() else f"\\{char}")
        if not items:
            return r"[\s\S]" if negated else "(?!)"
        return f"[{'^' if negated else ''}{_joined(items)}]"

    def class_escape(self) -> str:
        if self.at >= len(self.source):
            raise BadPattern("ends with a backslash")
        char = self.source[self.at]
        if char in _CLASSES:
            self.at += 1
            return _CLASSES[char]
        if char == "b":
            self.at += 1
            return r"\x08"
        if char == "-":
            self.at += 1
            return r"\-"
        return self.character()


def _joined(items: list[str]) -> str:
    """Members of a class: a hyphen is a range between two characters, else itself."""
    made: list[str] = []
    index = 0
    while index < len(items):
        item = items[index]
        if item == "-":
            made.append(r"\-")
        elif 0 < index + 2 < len(items) and items[index + 1] == "-" and _is_one(item) and _is_one(items[index + 2]):
            made.append(f"{item}-{items[index + 2]}")
            index += 2
        else:
            made.append(item)
        index += 1
    return "".join(made)


def _is_one(item: str) -> bool:
    return item not in _CLASSES.values()


def _groups(source: str) -> tuple[int, frozenset[str]]:
    """How many capturing groups there are, and the names of those that have one."""
    count, names, inside, at = 0, set(), False, 0
    while at < len(source):
        char = source[at]
        if char == "\\":
            at += 1
        elif char == "[":
            inside = True
        elif char == "]":
            inside = False
        elif char == "(" and not inside:
            named = source.startswith("?<", at + 1) and source[at + 3 : at + 4] not in ("=", "!")
            if named:
                names.add(source[at + 3 : source.find(">", at)])
            count += named or not source.startswith("?", at + 1)
        at += 1
    return count, frozenset(names)
