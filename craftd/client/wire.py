"""JSON-RPC messages over a blocking stream, for programs that must start fast."""

from __future__ import annotations

import json

from craftd.protocol.framing import Decoder, FramingError, encode

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Message: TypeAlias = dict[str, Any]

MAX_BODY = 64 << 20
"""Bytes of one message from the daemon: as much as it queues for a client before it gives up on him."""


class Broken(Exception):
    """The other end sent something that is no message, or stopped in the middle of one."""


def frame(message: Message) -> bytes:
    """*message* as sent. Everything beyond ASCII is escaped, so a lone surrogate travels like any other text."""
    return encode(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode())


class Incoming:
    """Messages that arrive on a stream. read: gives up to n bytes, b"" at the end, as `os.read` and `recv` do."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._decoder = Decoder(MAX_BODY)

    def next(self) -> Message | None:
        """The next message, or None when the stream has ended.

        Raises: Broken; OSError from reading.
        """
        data = b""
        while True:
            try:
                body = next(self._decoder.feed(data), None)
            except FramingError as error:
                raise Broken(str(error)) from None
            if body is not None:
                return _message(body)
            data = self._read(65_536)
            if not data:
                return None


def _message(body: bytes) -> Message:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Broken(f"a message is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise Broken("a message is no object")
    return message
