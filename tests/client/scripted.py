"""The other end of a connection, where a real daemon does not misbehave: it says what a test tells it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from craftd.protocol.framing import Decoder, encode

Message = dict[str, Any]


class Scripted:
    """answer(message) gives what is sent because of it: messages, or bytes as they are; None hangs up.

    heard: everything that was said to it after `initialized`.
    """

    def __init__(self, path: Path, answer: Callable[[Message], list[Message | bytes | None]]) -> None:
        self.url = f"unix:{path}"
        self.heard: list[Message] = []
        self.news = asyncio.Event()
        self._path = path
        self._answer = answer
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Scripted:
        self._server = await asyncio.start_unix_server(self._serve, str(self._path))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def hear(self, method: str) -> Message:
        """The first message *method*, past or to come."""
        while True:
            for message in self.heard:
                if message.get("method") == method:
                    return message
            self.news.clear()
            await self.news.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        decoder = Decoder()
        while data := await reader.read(65_536):
            for body in decoder.feed(data):
                if not self._say(writer, json.loads(body)):
                    writer.close()
                    return
        writer.close()

    def _say(self, writer: asyncio.StreamWriter, message: Message) -> bool:
        if message.get("method") == "initialize":
            craft = {"pid": 1, "epoch": "e", "workspaces": []}
            said: list[Message | bytes | None] = [
                {"id": message["id"], "result": {"capabilities": {"experimental": {"craft": craft}}}}
            ]
        elif message.get("method") == "initialized":
            return True
        else:
            self.heard.append(message)
            self.news.set()
            said = self._answer(message)
        for one in said:
            if one is None:
                return False
            writer.write(one if isinstance(one, bytes) else encode(json.dumps({"jsonrpc": "2.0", **one}).encode()))
        return True
