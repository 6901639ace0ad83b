"""Server CPU per small request, 16 clients with 4 requests outstanding each.

A request is about 300 B, its answer about 250 B. The servers take turns: craftd's whole path (framing, limits, life
cycle, rights, typing, order, handler, outbox) around a toy, and two bare echoes, the second as bare as it gets. CPU is
that of the server process, from the system's accounting; the last line asks a real daemon.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson

from benchmarks import corpus, daemon, toys
from benchmarks.report import Figure, check, middle
from craftd.protocol.framing import Decoder

CLIENTS = 16
OUTSTANDING = 4


def measure(quick: bool) -> Iterator[Figure]:
    rounds, seconds = (1, 0.3) if quick else (7, 1.5)
    used: dict[str, list[float]] = {name: [] for name in toys.SERVERS}
    rates: dict[str, list[float]] = {name: [] for name in toys.SERVERS}
    real: list[float] = []
    with daemon.folder() as folder, ExitStack() as stack:
        servers = {name: stack.enter_context(toys.serving(name, folder)) for name in toys.SERVERS}
        real_one = stack.enter_context(daemon.running(sessions=100))
        params = {"workspace": daemon.WORKSPACE, "id": corpus.session_id(7), "fields": ["name", "labels"]}
        wanted = real_one.connect().call("sessions/get", params)
        for _ in range(rounds):
            for name, server in servers.items():
                load = Load("toys/get", toys.PARAMS, toys.RESULT)
                cpu, rate = asyncio.run(load.run(server.path, seconds, server.cpu))
                used[name].append(cpu)
                rates[name].append(rate)
            load = Load("sessions/get", params, wanted)
            real.append(asyncio.run(load.run(Path(real_one.socket), seconds, real_one.cpu))[0])
    craftd, bare, barest = toys.SERVERS
    for otherwise, goal in ((bare, 2.0), (barest, None)):
        ours, theirs = middle(used[craftd], used[otherwise])
        yield Figure(
            what="CPU per request",
            value=ours,
            unit="us",
            beside=theirs,
            otherwise=f"{otherwise}, an echo",
            at_most=goal,
            of_ratio=True,
        )
    ours, theirs = middle(real, used[bare])
    yield Figure(
        what="CPU per sessions/get of a real daemon",
        value=ours,
        unit="us",
        beside=theirs,
        otherwise=f"{bare}, an echo",
    )
    ours, theirs = middle(rates[craftd], rates[bare])
    yield Figure(
        what="requests per second of wall-clock time",
        value=ours,
        unit="/s",
        beside=theirs,
        otherwise=f"{bare}, an echo",
    )


class Load:
    """Keeps a number of equal requests outstanding and compares every answer with the one wanted."""

    def __init__(self, method: str, params: Any, wanted: Any) -> None:
        self.method, self.params, self.wanted = method, params, wanted

    async def run(self, path: Path, seconds: float, cpu: Callable[[], float]) -> tuple[float, float]:
        """(microseconds of server CPU per request, requests per second)."""
        loop = asyncio.get_running_loop()
        clients = [(await loop.create_unix_connection(lambda: Client(self), str(path)))[1] for _ in range(CLIENTS)]
        for client in clients:
            client.transport.write(daemon.frame(0, "initialize", {"capabilities": {}}))
            await client.ready.wait()
            client.start()
        await asyncio.sleep(seconds / 8)
        began, used, counted = time.perf_counter(), cpu(), sum(client.count for client in clients)
        await asyncio.sleep(seconds)
        count = sum(client.count for client in clients) - counted
        used, took = cpu() - used, time.perf_counter() - began
        for client in clients:
            client.running = False
            client.transport.close()
        check(not sum(client.errors for client in clients), "answers")
        return used / count * 1e6, count / took


class Client(asyncio.Protocol):
    def __init__(self, load: Load) -> None:
        self.load = load
        self.decoder = Decoder()
        self.count = self.errors = 0
        self.running = False
        self.ready = asyncio.Event()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def request(self, id_: int) -> bytes:
        return daemon.frame(id_, self.load.method, self.load.params)

    def start(self) -> None:
        self.running = True
        self.transport.write(b"".join(map(self.request, range(1, OUTSTANDING + 1))))

    def data_received(self, data: bytes) -> None:
        again = []
        for body in self.decoder.feed(data):
            message = orjson.loads(body)
            if message["id"] == 0:
                self.ready.set()
                continue
            self.count += 1
            self.errors += message.get("result") != self.load.wanted
            if self.running:
                again.append(self.request(message["id"]))
        self.transport.write(b"".join(again))
