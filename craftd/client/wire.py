"""Messages over a blocking stream, for programs that must start fast; the daemon's own framing is in `protocol`."""

from __future__ import annotations

import json

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Message: TypeAlias = dict[str, Any]


class Broken(Exception):
    """The other end sent something that is no frame, or stopped in the middle of one."""


def encode(message: Message) -> bytes:
    """One frame. Everything beyond ASCII is escaped, so a lone surrogate travels like any other text."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Incoming:
    """Messages that arrive on a stream. read: gives up to n bytes, b"" at the end, as `os.read` and `recv` do."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._buffer = bytearray()

    def next(self) -> Message | None:
        """The next message, or None when the stream ended between two.

        Raises: Broken; OSError from reading.
        """
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if not self._fill():
                if self._buffer:
                    raise Broken("the stream ended inside a header")
                return None
        start = end + 4
        stop = start + _length(bytes(self._buffer[:end]))
        while len(self._buffer) < stop:
            if not self._fill():
                raise Broken("the stream ended inside a message")
        body = bytes(self._buffer[start:stop])
        del self._buffer[:stop]
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Broken(f"a message is no JSON: {error}") from None
        if not isinstance(message, dict):
            raise Broken("a message is no object")
        return message

    def rest(self) -> bytes:
        """Bytes read beyond the last message; for whoever reads the stream from here on."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    def _fill(self) -> bool:
        data = self._read(65_536)
        self._buffer += data
        return bool(data)


def _length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    raise Broken("a header without Content-Length")
