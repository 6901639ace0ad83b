"""Bytes <-> message bodies in LSP's framing, with limits. No I/O, no JSON, the standard library alone.

Both ends use it: the bridge and the small commands import it and must start fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_BODY = 16 << 20
"""Bytes of one inbound message: the largest staged chunk in base64 with room to spare."""
MAX_HEADER = 4096
MAX_HEADER_LINES = 32

_END = b"\r\n\r\n"
_PREFIX = b"Content-Length: "
_REQUEST_LINE = re.compile(rb"[A-Z]{3,8} \S+ HTTP/\d")
_HEADER_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


class FramingError(Exception):
    """The stream cannot be followed any further: say so once, then close it."""


class BodyTooLarge(FramingError):
    """limit, actual: bytes."""

    def __init__(self, limit: int, actual: int) -> None:
        super().__init__(f"a message of {actual} bytes is larger than {limit}")
        self.limit = limit
        self.actual = actual


class PlainHttp(FramingError):
    """The other end speaks HTTP, perhaps a browser on behalf of a web page: nothing it sends may be carried out."""


def encode(body: bytes) -> bytes:
    """One frame."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Decoder:
    """Collects bytes as they arrive and gives complete bodies.

    Memory: what arrived and was not taken, never what a header merely promises.
    """

    def __init__(self, max_body: int = MAX_BODY) -> None:
        self._max_body = max_body
        self._buffer = bytearray()
        self._length: int | None = None
        self._failure: FramingError | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Bodies completed by *data*, lazily: a caller may stop, and go on with `feed(b"")`.

        Raises: FramingError after the last sound body; from then on always the same one.
        """
        self._buffer += data
        return self._bodies()

    def _bodies(self) -> Iterator[bytes]:
        buffer = self._buffer
        while True:
            if self._failure is not None:
                raise self._failure
            if self._length is None and not self._take_header():
                return
            length = self._length
            if length is None or len(buffer) < length:
                return
            body = bytes(memoryview(buffer)[:length])
            del buffer[:length]
            self._length = None
            yield body

    def _take_header(self) -> bool:
        """True when a header block was complete and is understood."""
        buffer = self._buffer
        end = buffer.find(_END, 0, MAX_HEADER + len(_END))
        try:
            if end < 0:
                if len(buffer) <= MAX_HEADER:
                    return False
                raise _unreadable(bytes(buffer[:MAX_HEADER]), f"header block above {MAX_HEADER} bytes")
            length = content_length(bytes(buffer[:end]))
            if length > self._max_body:
                raise BodyTooLarge(self._max_body, length)
        except FramingError as failure:
            self._failure = failure
            buffer.clear()
            raise
        del buffer[: end + len(_END)]
        self._length = length
        return True


def content_length(block: bytes) -> int:
    """Bytes of the body that a header *block* (without its final empty line) announces.

    Names are case-insensitive, headers other than Content-Length are skipped.
    Raises: FramingError.
    """
    digits = block[len(_PREFIX) :]
    if block.startswith(_PREFIX) and digits.isdigit():
        return _number(digits)
    found: set[bytes] = set()
    lines = block.split(b"\r\n")
    if len(lines) > MAX_HEADER_LINES:
        raise _unreadable(block, f"more than {MAX_HEADER_LINES} header lines")
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or _HEADER_NAME.fullmatch(name) is None:
            raise _unreadable(block, "a header line without a name")
        if name.lower() == b"content-length":
            found.add(value.strip(b" \t"))
    if len(found) != 1:
        raise _unreadable(block, "no single Content-Length")
    return _number(found.pop())


def _number(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > 18:
        raise FramingError("Content-Length is not a number of bytes")
    return int(digits)


def _unreadable(block: bytes, why: str) -> FramingError:
    return PlainHttp("this is not an HTTP server") if _REQUEST_LINE.match(block) else FramingError(why)
