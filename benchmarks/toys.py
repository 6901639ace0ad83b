"""Servers in processes of their own that do nothing but serve: craftd's whole path around a toy, and bare echoes.

Each speaks on a pipe: "ready" when it listens, then for each word that it hears the seconds of CPU it has used; a
number of events in place of a word makes it send these to its subscribers, a thousand a second.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from attrs import define, frozen

from benchmarks.daemon import cpu_of
from craftd.protocol.framing import Decoder, encode
from craftd.protocol.initialize import Opened
from craftd.protocol.registry import Registry
from craftd.server.dispatch import Call, Dispatcher, Handlers
from craftd.server.listeners import listen
from craftd.server.outbox import Subscription
from craftd.workspace.journal import Change, Journal, Origin

PARAMS = {
    "workspace": "ws_7f3a", "id": "260704-quiet-fjord", "fields": ["name", "labels", "sessionStatus"], "limit": 100,
    "filter": {"state": "inbox", "labels": ["home", "2026"], "text": "plan the move and tell everybody about it"},
}  # fmt: skip
RESULT = {
    "item": {"id": "260704-quiet-fjord", "version": "9c1e2b7a66d0f311", "value": {
        "id": "260704-quiet-fjord", "name": "Plan the move", "labels": ["home", "2026"], "sessionStatus": "todo"}},
    "epoch": "k3f9", "revision": 1043,
}  # fmt: skip

EVENTS_PER_SECOND = 1000
PATCH = {"set": {"preview": "the crane moves first and the pilot waits for the berth " * 4, "messageCount": 1043}}

_registry, _handlers = Registry(), Handlers()


@_registry.method("toys/get", result=None, right="read", scope="workspace")
@frozen(kw_only=True)
class Get:
    """A small read with five typed members."""

    workspace: str | None = None
    id: str
    fields: tuple[str, ...] | None = None
    limit: int | None = None
    filter: dict[str, Any] | None = None


@_registry.method("toys/subscribe", result=None, right="read", scope="workspace")
@frozen(kw_only=True)
class Subscribe:
    """Be sent the events of this server."""

    workspace: str | None = None


@_handlers.handles
def get(call: Call, params: Get) -> Any:
    return RESULT


@_handlers.handles
def subscribe(call: Call, params: Subscribe) -> None:
    call.connection.subscribe("toys", Subscription(epoch="k3f9", revision=0))


class Core:
    """The least that a dispatcher needs."""

    def scope(self, name: str | None, connection: Any) -> Any:
        return self

    async def initialize(self, connection: Any, wishes: Any) -> Opened:
        return Opened(epoch="e", read_only=False, features={})

    async def item(self, call: Any, id: str) -> Any:
        return None

    def hint(self, paths: Any) -> None:
        pass

    def gone(self, connection: Any) -> None:
        pass


Send = Callable[[int], None]
"""Sends event number n to every subscriber."""


async def craftd(path: Path) -> Send:
    dispatcher = Dispatcher(Core(), _registry, _handlers)
    await dispatcher.lsp_loaded()
    await listen(path, dispatcher)
    journal = Journal("toys", "k3f9")

    def send(number: int) -> None:
        members = {"changes": [{"id": "260704-quiet-fjord", "version": "9c1e2b7a66d0f311"}], "patch": PATCH}
        change = Change("toys/didChange", "toys", {**members, "sent": time.monotonic_ns()})
        for published in journal.publish([change], Origin(kind="client", client="c-1"), 0):
            dispatcher.deliver("toys", published)

    return send


def _answered(body: bytes) -> bytes:
    message = orjson.loads(body)
    return encode(orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": RESULT}))


async def streams(path: Path) -> Send:
    """The usual bare server; its events are serialised for each client, as is usual too."""
    writers: list[asyncio.StreamWriter] = []

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_answered(await reader.readexactly(int(head[16:-4]))))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
        finally:
            writers.remove(writer)

    def send(number: int) -> None:
        sent = time.monotonic_ns()
        for writer in writers:
            params = {"workspace": "toys", "epoch": "k3f9", "revision": number, "at": 0, "patch": PATCH, "sent": sent}
            event = {"jsonrpc": "2.0", "method": "toys/didChange", "params": params}
            writer.write(encode(json.dumps(event, separators=(",", ":")).encode()))

    path.parent.mkdir(exist_ok=True)
    await asyncio.start_unix_server(client, path)
    return send


class Bare(asyncio.Protocol):
    """One write per request, as the streams do it."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.decoder = Decoder()

    def data_received(self, data: bytes) -> None:
        for body in self.decoder.feed(data):
            self.transport.write(_answered(body))


async def protocol(path: Path) -> Send:
    path.parent.mkdir(exist_ok=True)
    await asyncio.get_running_loop().create_unix_server(Bare, path)
    return lambda number: None


SERVERS: dict[str, Callable[[Path], Awaitable[Send]]] = {
    "craftd": craftd,
    "asyncio streams + orjson": streams,
    "asyncio.Protocol + orjson": protocol,
}


@define(eq=False)
class Server:
    """A running server, seen from outside."""

    path: Path
    pipe: Any

    def cpu(self) -> float:
        """Seconds of CPU used so far."""
        self.pipe.send("cpu")
        return float(self.pipe.recv())

    def emit(self, events: int) -> None:
        """Begin to send."""
        self.pipe.send(events)


@contextmanager
def serving(name: str, folder: Path) -> Iterator[Server]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    path = folder / name.partition(" ")[0] / "s"
    process = context.Process(target=_main, args=(name, path, theirs), daemon=True)
    process.start()
    try:
        ours.recv()
        yield Server(path, ours)
    finally:
        process.terminate()
        process.join()


def _main(name: str, path: Path, pipe: Any) -> None:
    import os

    async def emit(send: Send, events: int) -> None:
        begin = time.monotonic()
        for number in range(events):
            send(number)
            await asyncio.sleep(max(0.0, begin + (number + 1) / EVENTS_PER_SECOND - time.monotonic()))

    async def run() -> None:
        send = await SERVERS[name](path)
        tasks = set()

        def heard() -> None:
            word = pipe.recv()
            if word == "cpu":
                pipe.send(cpu_of(os.getpid()))
            else:
                tasks.add(asyncio.ensure_future(emit(send, word)))

        asyncio.get_running_loop().add_reader(pipe.fileno(), heard)
        pipe.send("ready")
        await asyncio.Event().wait()

    asyncio.run(run())
