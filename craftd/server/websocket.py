"""WebSocket (RFC 6455): one message per text frame, no compression. `websockets` parses, everything else is ours.

A handshake that is one is always accepted, and then closed with a code if its client may not come in: a browser tells
its page nothing about a refused one. What is no handshake gets a short answer of HTTP and is closed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import logging
import re
import struct
from collections import deque
from collections.abc import Iterator, Sequence

from attrs import frozen
from websockets.exceptions import PayloadTooBig
from websockets.frames import Close, Frame, Opcode
from websockets.headers import parse_subprotocol
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from craftd.errors import Busy, Forbidden, InvalidRequest
from craftd.protocol.framing import MAX_BODY, BodyTooLarge, FramingError, encode
from craftd.server.connection import OTHER_PROTOCOL, START_SECONDS, TOO_MANY
from craftd.server.dispatch import Dispatcher
from craftd.server.streams import HTTP_REFUSAL, Stream, error_message

log = logging.getLogger(__name__)

SUBPROTOCOL = "craftd.v1"
TOKEN_PREFIX = "craftd.token."
"""A subprotocol that is a token in base64url: browsers cannot set headers."""
PING_SECONDS = 30.0
MISSED_PONGS = 2
"""So many pings without a pong, and the client is gone."""

REFUSED = 4403
_HOST = re.compile(r"(?:(?P<name>[a-z0-9._-]+)|\[(?P<v6>[0-9a-f:.]+)\])(?::[0-9]{1,5})?")
_HEADER_END = b"\r\n\r\n"
_CLOSE = 0x88
_PING = b"\x89\x00"
_LONGEST_REASON = 120
"""Bytes; a close frame has room for three more."""

_library = logging.getLogger("craftd.websockets")
_library.setLevel(logging.WARNING)  # below, it writes down what clients send


class NotOurs(FramingError):
    """Something that the other end may not send."""

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.close_code = code


@frozen
class Admission:
    """Which pages may connect. origins: as browsers send them; hosts: names beside those of the loopback."""

    origins: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()

    def problem(self, request: Request) -> str | None:
        """Why *request* is refused: a web page that nobody allowed, or one that got a name of its own for us."""
        hosts = request.headers.get_all("Host")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return "this Host is not allowed, see --allow-host"
        origins = request.headers.get_all("Origin")
        if origins and (len(origins) != 1 or origins[0].lower() not in self.origins):
            return "this Origin is not allowed, see --allow-origin"
        return None

    def _is_ours(self, host: str) -> bool:
        written = _HOST.fullmatch(host.lower())
        if written is None:
            return False
        name = written["name"] or written["v6"]
        if name == "localhost" or name in self.hosts:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False


class WebSocketTransport(Stream):
    """One client. The library's states are not asked: it parses, shakes hands and makes pongs."""

    kind = "ws"

    def __init__(self, dispatcher: Dispatcher, admission: Admission, *, tls: bool = False) -> None:
        super().__init__(dispatcher, tls=tls)
        self._admission = admission
        self._protocol = ServerProtocol(select_subprotocol=_select, max_size=MAX_BODY, logger=_library)
        self._frames: deque[Frame] = deque()
        self._begun = bytearray()
        """Of a message: a list of its pieces would be many times as large."""
        self._shaken = False
        self._open = False
        """Hands are shaken, and we have not said that we close."""
        self._echo: bytes | None = None
        self._asked_to_close = False
        """The client began to close; its answer is the echo."""
        self._full = False
        self._late_pong: bytes | None = None
        self._missed = 0
        self._timer: asyncio.TimerHandle
        self._busy: Busy | None = None

    # asyncio's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._timer = self._loop.call_later(START_SECONDS, self._transport.abort)
        self._busy = self._enter(self._caller())

    def buffer_updated(self, nbytes: int) -> None:
        if self._connection is not None:
            self._protocol.max_message_size = self._connection.max_message
        self._protocol.receive_data(bytes(self._buffer[:nbytes]))
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._shake_hands(event)
            elif isinstance(event, Frame):
                self._frames.append(event)
        self._send_control()
        if self._deaf:
            if any(frame.opcode is Opcode.CLOSE for frame in self._frames):  # both have said it
                self._finish()
            self._frames.clear()
        else:
            self._bodies = self._messages()
            self._read()

    def pause_writing(self) -> None:
        self._full = True
        super().pause_writing()

    def resume_writing(self) -> None:
        self._full = False
        if self._late_pong is not None:
            self._transport.write(self._late_pong)
            self._late_pong = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._open = False
        self._timer.cancel()
        super().connection_lost(exc)

    # The outbox's calls

    def write(self, frames: Sequence[bytes]) -> None:
        if self._open:
            pieces: list[bytes] = []
            for frame in frames:
                body = frame.index(_HEADER_END) + len(_HEADER_END)
                pieces += (_text_header(len(frame) - body), frame[body:])
            self._transport.write(b"".join(pieces))

    def close(self, code: int = 1000, reason: str = "") -> None:
        if self._transport.is_closing():
            return
        if not self._shaken:
            self._transport.abort()
        elif self._open:
            self._open = False
            if self._asked_to_close and self._echo is not None:
                self._transport.write(self._echo)
                self._finish()
                return
            said = reason.encode()[:_LONGEST_REASON].decode(errors="ignore")
            self._transport.write(Frame(Opcode.CLOSE, Close(code, said).serialize()).serialize(mask=False))
            if self._ended:
                self._finish()
            else:
                self._linger()

    # Hands

    def _shake_hands(self, request: Request) -> None:
        response = self._protocol.accept(request)
        self._protocol.data_to_send()  # of what came in the same packet; if that was nonsense, it is said below
        self._transport.write(response.serialize())
        if response.status_code != 101:
            self._turn_away()
            return
        self._protocol.state = State.OPEN
        self._shaken = self._open = True
        self._timer.cancel()
        if self._busy is not None or self._connection is None:
            self.write([encode(error_message(self._busy or Busy("")))])
            self.close(TOO_MANY, str(self._busy))
            return
        connection = self._connection
        self._timer = self._loop.call_later(PING_SECONDS, self._ping)
        problem = self._admission.problem(request)
        offered = _offered(request)
        if problem is not None:
            log.warning("a WebSocket of %s: %s", connection.id, problem)
            connection.refuse(Forbidden(problem), REFUSED)
        elif offered and SUBPROTOCOL not in offered:
            error = InvalidRequest("no subprotocol that is spoken here", {"supported": [SUBPROTOCOL]})
            connection.refuse(error, OTHER_PROTOCOL)
        elif (token := _token(request, offered)) is not None:
            self._dispatcher.present(connection, token)

    def _send_control(self) -> None:
        """What the library has to say: its part of the handshake, pongs, its answer to a close."""
        chunks = self._protocol.data_to_send()
        if not self._shaken:
            if self._deaf or not chunks:
                return
            self._transport.write(b"".join(chunks))
            if not chunks[-1]:  # it wants the end
                if len(chunks) == 1:
                    self._transport.write(HTTP_REFUSAL)
                self._turn_away()
            return
        for chunk in filter(None, chunks):
            if chunk[0] == _CLOSE:
                self._echo = chunk
            elif self._full:
                self._late_pong = chunk  # the last one answers for all
            elif self._open:
                self._transport.write(chunk)

    def _turn_away(self) -> None:
        """End a connection that is no WebSocket."""
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._linger()

    def _ping(self) -> None:
        assert self._connection is not None
        if self._missed == MISSED_PONGS:
            self._connection.drop(f"{MISSED_PONGS} pings were not answered")
            return
        if self._open and not self._full:  # a client that reads nothing is the outbox's matter
            self._missed += 1
            self._transport.write(_PING)
        self._timer = self._loop.call_later(PING_SECONDS, self._ping)

    # Messages

    def _messages(self) -> Iterator[bytes]:
        while self._frames:
            frame = self._frames.popleft()
            if frame.opcode is Opcode.PONG:
                self._missed = 0
            elif frame.opcode is Opcode.CLOSE:
                self._asked_to_close = self._deaf = True
                if self._connection is not None:
                    self._connection.end()
            elif frame.opcode is Opcode.BINARY:
                raise NotOurs("binary messages are not accepted", 1003)
            elif frame.opcode is not Opcode.PING:
                self._begun += frame.data
                if frame.fin:
                    yield self._joined()
        failure = self._protocol.parser_exc
        if isinstance(failure, PayloadTooBig):
            limit = self._protocol.max_message_size or 0
            raise BodyTooLarge(limit, (failure.size or 0) + (failure.current_size or 0))
        if failure is not None:
            raise NotOurs(str(failure), 1002)

    def _joined(self) -> bytes:
        body = bytes(self._begun)
        self._begun.clear()
        try:
            body.decode()
        except UnicodeDecodeError:
            raise NotOurs("a message is not UTF-8", 1007) from None
        return body


def _select(protocol: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    return Subprotocol(SUBPROTOCOL) if SUBPROTOCOL in offered else None


def _offered(request: Request) -> list[str]:
    return [name for value in request.headers.get_all("Sec-WebSocket-Protocol") for name in parse_subprotocol(value)]


def _token(request: Request, offered: Sequence[str]) -> str | None:
    """The token that came with the handshake; what cannot be read is a wrong one."""
    for value in request.headers.get_all("Authorization"):
        scheme, _, token = value.partition(" ")
        if scheme.lower() == "bearer":
            return token.strip()
    for name in offered:
        if name.startswith(TOKEN_PREFIX):
            written = name.removeprefix(TOKEN_PREFIX)
            try:
                return base64.urlsafe_b64decode(written + "=" * (-len(written) % 4)).decode()
            except (binascii.Error, UnicodeDecodeError):
                return ""
    return None


def _text_header(length: int) -> bytes:
    """Of one unmasked text frame, RFC 6455 section 5.2."""
    if length < 126:
        return bytes((0x81, length))
    return struct.pack("!BBH", 0x81, 126, length) if length < 65_536 else struct.pack("!BBQ", 0x81, 127, length)
