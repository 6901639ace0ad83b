"""One message per text frame of a WebSocket, on top of any byte stream."""

from __future__ import annotations

from collections.abc import Iterator

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, InvalidStatus
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from craftd.client.wire import MAX_BODY
from craftd.protocol.framing import FramingError

SUBPROTOCOL = "craftd.v1"


class WebSocketed:
    """A codec of `craftd.client.transport`."""

    def __init__(self, url: str, token: str | None) -> None:
        self._protocol = ClientProtocol(parse_uri(url), subprotocols=[Subprotocol(SUBPROTOCOL)], max_size=MAX_BODY)
        self._token = token
        self._parts: list[bytes] = []

    @property
    def open(self) -> bool:
        return self._protocol.state is State.OPEN

    def greeting(self) -> bytes:
        request = self._protocol.connect()
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token}"
        self._protocol.send_request(request)
        return self.owed()

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Response):
                self._shake(event)
            elif isinstance(event, Frame):
                yield from self._take(event)
        if self._protocol.parser_exc is not None:
            raise FramingError(str(self._protocol.parser_exc))

    def _shake(self, response: Response) -> None:
        failure = self._protocol.handshake_exc
        if isinstance(failure, InvalidStatus):
            said = (response.body or b"").decode("utf-8", "replace").strip()
            raise FramingError(f"refused with HTTP status {response.status_code}" + (f": {said}" if said else ""))
        if isinstance(failure, InvalidHandshake):
            raise FramingError(str(failure))

    def _take(self, frame: Frame) -> Iterator[bytes]:
        if frame.opcode is Opcode.CLOSE:
            raise FramingError(f"the daemon closed the connection: {self._protocol.close_rcvd}")
        if frame.opcode in (Opcode.TEXT, Opcode.CONT):
            self._parts.append(bytes(frame.data))
            if frame.fin:
                body, self._parts = b"".join(self._parts), []
                yield body

    def encode(self, body: bytes) -> bytes:
        self._protocol.send_text(body)
        return self.owed()

    def farewell(self) -> bytes:
        if self.open:
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
        return self.owed()

    def owed(self) -> bytes:
        return b"".join(self._protocol.data_to_send())
