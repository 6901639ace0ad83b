"""A small blocking client: one request at a time, notifications in the order they came."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from craftd.client import launch, wire
from craftd.client.launch import Link
from craftd.protocol.rendezvous import PROTOCOL, VERSION, Places


class CallFailed(Exception):
    """The daemon answered a request with an error: `error.code`, `error.message` and `error.data` as sent."""

    def __init__(self, code: int, message: str, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @property
    def name(self) -> str:
        """What a program branches on: `error.data.code`, the name of the failure."""
        return str(self.data.get("code", "Error"))


class ConnectionLost(Exception):
    """The daemon ended, or sent something that is no message."""

    def __init__(self) -> None:
        super().__init__("the daemon closed the connection")


class Client:
    """An initialized connection to the daemon.

    hello: what `daemon/hello` answered. server: the result of `initialize`.
    """

    def __init__(self, link: Link, name: str) -> None:
        self.hello = link.hello
        self._link = link
        self._waiting: deque[wire.Message] = deque()
        self._number = 0
        self.server: dict[str, Any] = self.call(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": None,
                "workspaceFolders": _here(),
                "clientInfo": {"name": name, "version": VERSION},
                "capabilities": {"experimental": {"craft": {"protocol": PROTOCOL}}},
            },
        )
        self._send({"method": "initialized", "params": {}})

    @classmethod
    def connect(cls, places: Places, name: str) -> Self:
        """Connect as program *name*, starting the daemon if need be.

        Raises: launch.NotReached, ConnectionLost, CallFailed.
        """
        link = launch.connect(places, name)
        try:
            return cls(link, name)
        except BaseException:
            link.close()
            raise

    @property
    def selected(self) -> list[dict[str, Any]]:
        """The workspaces that the working directory is, contains or lies in."""
        craft = self.server["capabilities"]["experimental"]["craft"]
        workspaces: list[dict[str, Any]] = craft.get("workspaces", [])
        return workspaces

    def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Result of a request. Notifications that come before it are kept for `notifications`.

        Raises: CallFailed, ConnectionLost.
        """
        self._number += 1
        with suppress(ConnectionLost):  # what it said before it hung up can still be read
            self._send({"id": self._number, "method": method, "params": params or {}})
        while True:
            message = self._receive()
            if "method" in message:
                self._waiting.append(message)
            elif message.get("id") in (self._number, None):  # None: it could not read the request
                if "error" in message:
                    error = message["error"]
                    raise CallFailed(error["code"], error["message"], error.get("data") or {})
                return message.get("result")

    def pages(self, method: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """All items of a `list` method, page by page."""
        cursor = None
        while True:
            page = self.call(method, params if cursor is None else {**params, "cursor": cursor})
            yield from page["items"]
            cursor = page.get("nextCursor")
            if cursor is None:
                return

    def notifications(self) -> Iterator[wire.Message]:
        """Every notification, `{method, params}`, as it comes. Raises: ConnectionLost when the daemon ends."""
        while True:
            yield self._waiting.popleft() if self._waiting else self._receive()

    def close(self) -> None:
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _send(self, message: wire.Message) -> None:
        try:
            self._link.sock.sendall(wire.frame(message))
        except OSError:
            raise ConnectionLost from None

    def _receive(self) -> wire.Message:
        """The next response or notification. No capability of ours allows the daemon to ask us anything."""
        try:
            message = self._link.incoming.next()
        except (OSError, wire.Broken):
            message = None
        if message is None:
            raise ConnectionLost
        return message


def _here() -> list[dict[str, str]]:
    """The working directory as LSP names it; it may be gone."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return []
    return [{"uri": here.as_uri(), "name": here.name}]
