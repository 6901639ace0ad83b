"""Server CPU per small request, beside a bare asyncio + orjson echo.

    .venv/bin/python -m benchmarks.requests [--rounds 5] [--seconds 1.5]

Three servers, each in a process of its own, take turns: streams + orjson (the usual bare echo), asyncio.Protocol +
orjson (as bare as it gets), and craftd's whole path (framing, limits, life cycle, rights, typing, order, handler,
outbox). 16 clients with 4 requests outstanding each; a request is about 300 B, its answer about 250 B. CPU is that of
the server process (user + system), from the system's accounting; medians of all rounds, each round with all servers.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import platform
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson
from attrs import frozen

from craftd.protocol.framing import Decoder, encode
from craftd.protocol.registry import Registry
from craftd.server.dispatch import Call, Dispatcher, Handlers
from craftd.server.listeners import listen

CLIENTS = 16
OUTSTANDING = 4
PARAMS = {
    "workspace": "ws_7f3a", "id": "260704-quiet-fjord", "fields": ["name", "labels", "sessionStatus"], "limit": 100,
    "filter": {"state": "inbox", "labels": ["home", "2026"], "text": "plan the move and tell everybody about it"},
}  # fmt: skip
RESULT = {
    "item": {"id": "260704-quiet-fjord", "version": "9c1e2b7a66d0f311", "value": {
        "id": "260704-quiet-fjord", "name": "Plan the move", "labels": ["home", "2026"], "sessionStatus": "todo"}},
    "epoch": "k3f9", "revision": 1043,
}  # fmt: skip

REGISTRY, HANDLERS = Registry(), Handlers()


@REGISTRY.method("toys/get", result=None, right="read", scope="workspace")
@frozen(kw_only=True)
class Get:
    """A small read with five typed members."""

    workspace: str | None = None
    id: str
    fields: tuple[str, ...] | None = None
    limit: int | None = None
    filter: dict[str, Any] | None = None


@HANDLERS.handles
def get(call: Call, params: Get) -> Any:
    return RESULT


class Core:
    """The least that a dispatcher needs."""

    def scope(self, name: str | None, connection: Any) -> Any:
        return self

    async def initialize(self, connection: Any, wishes: Any) -> Any:
        from craftd.protocol.initialize import Opened

        return Opened(epoch="e", read_only=False, features={})

    async def item(self, call: Any, id: str) -> Any:
        return None

    def hint(self, paths: Any) -> None:
        pass

    def gone(self, connection: Any) -> None:
        pass


async def serve_craftd(path: Path) -> None:
    dispatcher = Dispatcher(Core(), REGISTRY, HANDLERS)
    await dispatcher.lsp_loaded()
    await listen(path, dispatcher)


def answered(body: bytes) -> bytes:
    message = orjson.loads(body)
    return encode(orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": RESULT}))


async def serve_streams(path: Path) -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(answered(await reader.readexactly(int(head[16:-4]))))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    path.parent.mkdir(exist_ok=True)
    await asyncio.start_unix_server(client, path)


class Bare(asyncio.Protocol):
    """One write per request, as the streams do it."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.decoder = Decoder()

    def data_received(self, data: bytes) -> None:
        for body in self.decoder.feed(data):
            self.transport.write(answered(body))


async def serve_protocol(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    await asyncio.get_running_loop().create_unix_server(Bare, path)


SERVERS = {"streams + orjson": serve_streams, "Protocol + orjson": serve_protocol, "craftd": serve_craftd}


def server(name: str, path: Path, pipe: Any) -> None:
    """Child process: serve; answer every word on the pipe with the CPU seconds used so far."""

    def cpu() -> None:
        pipe.recv()
        used = resource.getrusage(resource.RUSAGE_SELF)
        pipe.send(used.ru_utime + used.ru_stime)

    async def run() -> None:
        await SERVERS[name](path)
        asyncio.get_running_loop().add_reader(pipe.fileno(), cpu)
        pipe.send("ready")
        await asyncio.Event().wait()

    asyncio.run(run())


class Client(asyncio.Protocol):
    """Keeps its number of requests outstanding until told to stop."""

    def __init__(self) -> None:
        self.decoder = Decoder()
        self.count = 0
        self.running = False
        self.ready = asyncio.Event()
        self.errors = 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def request(self, id_: int, method: str, params: Any) -> bytes:
        return encode(orjson.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}))

    def start(self) -> None:
        self.running = True
        self.transport.write(b"".join(self.request(n, "toys/get", PARAMS) for n in range(1, OUTSTANDING + 1)))

    def data_received(self, data: bytes) -> None:
        again = []
        for body in self.decoder.feed(data):
            message = orjson.loads(body)
            if message["id"] == 0:
                self.ready.set()
                continue
            self.count += 1
            self.errors += message.get("result") != RESULT
            if self.running:
                again.append(self.request(message["id"], "toys/get", PARAMS))
        self.transport.write(b"".join(again))


async def load(path: Path, seconds: float, cpu: Any) -> tuple[float, float]:
    """(microseconds of server CPU per request, requests per second)."""
    loop = asyncio.get_running_loop()
    clients = [(await loop.create_unix_connection(Client, str(path)))[1] for _ in range(CLIENTS)]
    for client in clients:
        client.transport.write(client.request(0, "initialize", {"capabilities": {}}))
        await client.ready.wait()
        client.start()
    await asyncio.sleep(0.2)
    began, used, counted = time.perf_counter(), cpu(), sum(client.count for client in clients)
    await asyncio.sleep(seconds)
    count = sum(client.count for client in clients) - counted
    used, took = cpu() - used, time.perf_counter() - began
    for client in clients:
        client.running = False
        client.transport.close()
    if errors := sum(client.errors for client in clients):
        raise SystemExit(f"{errors} wrong answers: this measures nothing")
    return used / count * 1e6, count / took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in SERVERS}
    with tempfile.TemporaryDirectory() as folder:
        running = {}
        for number, name in enumerate(SERVERS):
            path = Path(folder, str(number), "s")
            ours, theirs = context.Pipe()
            process = context.Process(target=server, args=(name, path, theirs), daemon=True)
            process.start()
            ours.recv()
            running[name] = (path, ours, process)
        for _ in range(options.rounds):
            for name, (path, pipe, _) in running.items():

                def cpu(pipe: Any = pipe) -> float:
                    pipe.send(None)
                    return float(pipe.recv())

                figures[name].append(asyncio.run(load(path, options.seconds, cpu)))
        for _, _, process in running.values():
            process.terminate()
            process.join()
    base = statistics.median(cpu for cpu, _ in figures["streams + orjson"])
    print(f"python {platform.python_version()}, {CLIENTS} clients x {OUTSTANDING} outstanding")
    for name, rounds in figures.items():
        cpu_, rate = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{name:18} {cpu_:6.1f} us CPU per request   {rate:8.0f} requests/s   ratio {cpu_ / base:4.2f}")


if __name__ == "__main__":
    main()
