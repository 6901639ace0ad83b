"""JSON in a file that is too large to be held: walked through once, with only the values asked for in memory.

Every value is consumed by exactly one call: `value`, `raw`, `skip`, `text`, or a loop over `members` or `items` that
runs to its end.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Iterator
from typing import Any, Final

from attrs import frozen

from craftd.model import json_text

CHUNK: Final = 1 << 18
LARGEST_VALUE: Final = 64 << 20
"""Bytes of one value that is held."""
DEEPEST: Final = 64
"""Objects and lists in each other that `skip` and loops go into."""

_BLANK: Final = b" \t\r\n"
_BLANKS: Final = re.compile(rb"[ \t\r\n]*")
_STRING_END: Final = re.compile(rb'["\\\x00-\x1f]')
_DECODER: Final = json.JSONDecoder()


class Malformed(ValueError):
    """What is there is no JSON, or larger than may be held."""


@frozen
class Text:
    """A string that was not read: where its bytes lie between the quotes."""

    start: int
    stop: int
    escaped: bool


@frozen
class Bytes:
    """Content that may be read at any place. data: what is in memory; else *size* bytes of the open file *fd*."""

    size: int
    fd: int = -1
    data: bytes | None = None

    @classmethod
    def given(cls, data: bytes) -> Bytes:
        return cls(len(data), data=data)

    def at(self, offset: int, length: int) -> bytes:
        """Raises: OSError."""
        length = min(length, self.size - offset)
        if self.data is not None:
            return self.data[offset : offset + length]
        return os.pread(self.fd, length, offset) if length > 0 else b""


class Cursor:
    """A place in *content*, at the beginning of a value. Raises: Malformed, OSError, from everything it is asked."""

    def __init__(self, content: Bytes, start: int = 0) -> None:
        self._content = content
        self._base = start
        self._window = b""
        self._characters = ""  # of the window, one per byte: the structure of JSON is ASCII
        self._at = 0
        self._depth = 0

    @property
    def offset(self) -> int:
        return self._base + self._at

    def peek(self) -> bytes:
        """The first byte of what follows, blanks left out; b"" at the end."""
        while True:
            found = _BLANKS.match(self._window, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._window):
                return self._window[self._at : self._at + 1]
            if not self._more():
                return b""

    def end(self) -> None:
        """Nothing may follow."""
        if self.peek():
            raise self._wrong("something follows")

    def members(self) -> Iterator[str]:
        """The names of an object; its value comes next."""
        for first in self._loop(b"{", b"}"):
            if not first and self.peek() != b'"':
                raise self._wrong("expected a name")
            name = json_text.loads(self.raw())
            if not isinstance(name, str):
                raise self._wrong("expected a name")
            self._take(b":")
            yield name

    def items(self) -> Iterator[int]:
        """The numbers of the members of a list; each comes next."""
        for index, _ in enumerate(self._loop(b"[", b"]")):
            yield index

    def _loop(self, first: bytes, last: bytes) -> Iterator[bool]:
        self._take(first)
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong("too many values in each other")
        if self.peek() != last:
            yield True
            while self.peek() == b",":
                self._at += 1
                yield False
        self._take(last)
        self._depth -= 1

    def raw(self, limit: int = LARGEST_VALUE) -> bytes:
        """The bytes of the value."""
        self.peek()
        while True:
            there = len(self._characters)
            try:
                _, end = _DECODER.raw_decode(self._characters, self._at)
            except RecursionError:
                raise self._wrong("too many values in each other") from None
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated string") or error.pos >= there - 12
                if not cut or there - self._at > limit or not self._more():
                    raise self._wrong(error.msg) from None
                continue
            if end == there and self._more():
                continue  # a number may go on
            if end - self._at > limit:
                raise self._wrong(f"a value of more than {limit} bytes")
            raw = self._window[self._at : end]
            self._at = end
            return raw

    def value(self, limit: int = LARGEST_VALUE) -> Any:
        offset = self.offset
        try:
            return json_text.loads(self.raw(limit))
        except Malformed:
            raise
        except ValueError as error:
            raise Malformed(f"{error} (in the value at byte {offset})") from None

    def text(self) -> Text:
        """Where a string lies, however long it is."""
        self._take(b'"')
        start, escaped = self.offset, False
        while True:
            found = _STRING_END.search(self._window, self._at)
            if found is None:
                self._at = len(self._window)
                if not self._more():
                    raise self._wrong("a string does not end")
                continue
            self._at = found.end()
            if found[0] == b'"':
                return Text(start, self.offset - 1, escaped)
            if found[0] != b"\\":
                raise self._wrong("a control character in a string")
            escaped = True
            if self._at == len(self._window) and not self._more():
                raise self._wrong("a string does not end")
            self._at += 1

    def skip(self) -> None:
        match self.peek():
            case b'"':
                self.text()
            case b"{":
                for _ in self.members():
                    self.skip()
            case b"[":
                for _ in self.items():
                    self.skip()
            case _:
                self.raw()

    def _take(self, byte: bytes) -> None:
        if self.peek() != byte:
            raise self._wrong(f"expected {byte.decode()}")
        self._at += 1

    def _more(self) -> bool:
        """Have more bytes in the window; what lies before the place is let go of."""
        kept = self._window[self._at :]
        self._base, self._at = self._base + self._at, 0
        data = self._content.at(self._base + len(kept), max(CHUNK, len(kept)))
        self._window = kept + data
        self._characters = self._window.decode("latin-1")
        return bool(data)

    def _wrong(self, why: str) -> Malformed:
        return Malformed(f"{why} (at byte {self.offset})")


def decoded(content: Bytes, text: Text) -> Iterator[bytes]:
    """The bytes that the base64 in *text* stands for, in pieces. Raises: ValueError (it is none), OSError."""
    at, held, ended = text.start, b"", False
    while at < text.stop:
        piece = content.at(at, min(CHUNK, text.stop - at))
        if not piece:
            raise ValueError("the content became shorter")
        at += len(piece)
        held += piece
        if text.escaped:
            whole = held[:-1] if held.endswith(b"\\") else held
            held = whole.replace(b"\\/", b"/") + held[len(whole) :]
        usable = len(held) - len(held) % 4 if not held.endswith(b"\\") else (len(held) - 1) // 4 * 4
        block, held = held[:usable], held[usable:]
        if block:
            if ended:
                raise ValueError("is no base64")
            ended = block.endswith(b"=")
            try:
                yield base64.b64decode(block, validate=True)
            except binascii.Error:
                raise ValueError("is no base64") from None
    if held:
        raise ValueError("is no base64")
