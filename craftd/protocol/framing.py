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
    """The stream cannot be followed any further: say so once, then close it. close_code: of a WebSocket (RFC 6455)."""

    close_code = 1002


class BodyTooLarge(FramingError):
    """limit, actual: bytes."""

    close_code = 4413

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
        self.max_body = max_body
        """May change; counts from the next header on."""
        self._data = b""
        """What arrived last, cut from *place* on without being copied; the rest of it goes to the buffer."""
        self._place = 0
        self._buffer = bytearray()
        self._length: int | None = None
        self._failure: FramingError | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Bodies completed by *data*, lazily: a caller may stop, and go on with `feed(b"")`.

        Raises: FramingError after the last sound body; from then on always the same one.
        """
        self._keep_rest()
        if self._buffer or self._length is not None or self._failure is not None:
            self._buffer += data
            return self._pieced()
        self._data = data
        return self._whole()

    def _keep_rest(self) -> None:
        self._buffer += self._data[self._place :]
        self._data, self._place = b"", 0

    def _whole(self) -> Iterator[bytes]:
        """Bodies that arrived in one piece: nearly all."""
        while True:
            start = self._data.find(_END, self._place, self._place + MAX_HEADER + len(_END)) + len(_END)
            if start < len(_END):
                break
            stop = start + self._announced(self._data[self._place : start - len(_END)])
            if stop > len(self._data):
                break
            self._place = stop
            yield self._data[start:stop]
        self._keep_rest()
        yield from self._pieced()

    def _pieced(self) -> Iterator[bytes]:
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
        """True when a header block was complete."""
        buffer = self._buffer
        end = buffer.find(_END, 0, MAX_HEADER + len(_END))
        if end >= 0:
            self._length = self._announced(bytes(buffer[:end]))
            del buffer[: end + len(_END)]
            return True
        if len(buffer) > MAX_HEADER:
            self._failure = _unreadable(bytes(buffer[:MAX_HEADER]), f"header block above {MAX_HEADER} bytes")
            raise self._failure
        return False

    def _announced(self, block: bytes) -> int:
        try:
            length = content_length(block)
            if length > self.max_body:
                raise BodyTooLarge(self.max_body, length)
        except FramingError as failure:
            self._failure = failure
            raise
        return length


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
