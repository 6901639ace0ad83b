"""The ways in: a request and its answer over each, what a connection costs, many clients that come back at once."""

from __future__ import annotations

import gc
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any, Protocol

from benchmarks import daemon
from benchmarks.report import Figure, check, p50, percentile

LISTEN = ("--tcp", "127.0.0.1:0", "--ws", "127.0.0.1:0", "--max-connections", "600")
SESSION = "260101-still-harbour"


class Link(Protocol):
    """One message out, one message in, blocking."""

    def send(self, body: bytes) -> None: ...
    def receive(self) -> bytes: ...
    def close(self) -> None: ...


class Framed:
    """A stream with a header before each message: a socket, or the pipes of the bridge."""

    def __init__(self, read: Callable[[int], bytes], write: Callable[[bytes], object], close: Callable[[], None]):
        from craftd.protocol.framing import Decoder

        self._decoder = Decoder(1 << 30)
        self._read, self._write, self.close = read, write, close

    def send(self, body: bytes) -> None:
        self._write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def receive(self) -> bytes:
        data = b""
        while (body := next(self._decoder.feed(data), None)) is None:
            data = self._read(1 << 16)
            check(data, "the daemon closed the connection")
        return bytes(body)


class Web:
    """A WebSocket, one message per text frame."""

    def __init__(self, address: str, token: str) -> None:
        from websockets.sync.client import connect
        from websockets.typing import Subprotocol

        self._socket = connect(
            f"ws://{address}",
            additional_headers={"Authorization": f"Bearer {token}"},
            subprotocols=[Subprotocol("craftd.v1")],
            compression=None,
            max_size=None,
        )
        self.close = self._socket.close

    def send(self, body: bytes) -> None:
        self._socket.send(body.decode(), text=True)

    def receive(self) -> bytes:
        return self._socket.recv(decode=False)


class Client:
    """What a small program does with a link."""

    def __init__(self, link: Link, token: str | None) -> None:
        self._link = link
        self._ids = count(1)
        self.close = link.close
        craft = {"workspaces": [{"id": daemon.WORKSPACE}], **({} if token is None else {"token": token})}
        answer = self.call("initialize", {"capabilities": {}, "initializationOptions": {"craft": craft}})
        [opened] = answer["capabilities"]["experimental"]["craft"]["workspaces"]
        self.position = {"epoch": opened["epoch"], "revision": opened["revision"]}

    def call(self, method: str, params: Any) -> Any:
        id_ = next(self._ids)
        self._link.send(json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode())
        while True:
            message = json.loads(self._link.receive())
            if message.get("id") == id_:
                check("error" not in message, f"the answer {message}")
                return message["result"]


class Doors:
    """How to come in to one running daemon."""

    def __init__(self, server: daemon.Daemon) -> None:
        self._base = server.base
        self._path = server.socket
        card = json.loads((server.base / "config" / "craftd" / "daemon.json").read_text())
        self._address = {one["kind"]: one["address"] for one in card["listeners"]}
        self._token = (server.base / "config" / "craftd" / "token").read_text().strip()

    def unix(self) -> Client:
        return Client(self._framed(socket.AF_UNIX, self._path), None)

    def tcp(self) -> Client:
        host, _, port = self._address["tcp"].rpartition(":")
        return Client(self._framed(socket.AF_INET, (host, int(port))), self._token)

    def ws(self) -> Client:
        return Client(Web(self._address["ws"], self._token), None)

    def bridge(self) -> Client:
        process = subprocess.Popen(
            [sys.executable, "-m", "craftd", "stdio"],
            env=daemon.environment(self._base),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        reader, writer = process.stdout, process.stdin

        def close() -> None:
            writer.close()
            process.wait()

        return Client(Framed(reader.read, writer.write, close), None)

    @staticmethod
    def _framed(family: socket.AddressFamily, address: Any) -> Framed:
        connected = socket.socket(family)
        connected.settimeout(daemon.PATIENCE)
        connected.connect(address)
        if family == socket.AF_INET:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Framed(connected.recv, connected.sendall, connected.close)


def measure(quick: bool) -> Iterator[Figure]:
    requests, connections, returning = (200, 20, 10) if quick else (3_000, 500, 200)
    with daemon.folder() as base:
        daemon.prepare(base, sessions=500, transcripts={SESSION: 10})
        with daemon.Daemon(base, *LISTEN) as server:
            doors = Doors(server)
            doors.unix().close()  # which opens the workspace
            server.settle()
            yield from round_trips(server, doors, requests)
            yield from memory(server, doors, connections)
            yield from storm(server, doors, returning)


def round_trips(server: daemon.Daemon, doors: Doors, requests: int) -> Iterator[Figure]:
    ways = {"the Unix socket": doors.unix, "TCP": doors.tcp, "WebSocket": doors.ws, "the bridge": doors.bridge}
    wall: dict[str, float] = {}
    cpu: dict[str, float] = {}
    for way, enter in ways.items():
        client = enter()
        times = []
        for number in range(requests + 100):
            if number == 100:
                before = server.cpu()
            start = time.perf_counter()
            answer = client.call("sessions/get", {"id": SESSION})
            times.append((time.perf_counter() - start) * 1000)
            check(answer["item"]["id"] == SESSION, "the session")
        wall[way] = p50(times[100:])
        cpu[way] = (server.cpu() - before) / requests * 1e6
        client.close()
    first = next(iter(ways))
    for way in ways:
        beside = {} if way == first else {"beside": wall[first], "otherwise": first}
        yield Figure(what=f"request and answer over {way}, p50", value=wall[way], unit="ms", **beside)
        beside = {} if way == first else {"beside": cpu[first], "otherwise": first}
        yield Figure(what="  CPU of the daemon", value=cpu[way], unit="us", **beside)


def memory(server: daemon.Daemon, doors: Doors, connections: int) -> Iterator[Figure]:
    for way, enter in (("the Unix socket", doors.unix), ("TCP", doors.tcp), ("WebSocket", doors.ws)):
        enter().close()
        server.settle()
        before = server.resident()
        with ExitStack() as all_of_them:
            clients = [enter() for _ in range(connections)]
            for client in clients:
                all_of_them.callback(client.close)
                client.call("events/subscribe", {"workspace": daemon.WORKSPACE})
            server.settle()
            used = (server.resident() - before) / connections * 1000
            check(len(clients[0].call("daemon/status", {})["clients"]) == connections, "all are there")
            yield Figure(what=f"memory of a connection, {connections} over {way}", value=used, unit="kB")
        gc.collect()


def storm(server: daemon.Daemon, doors: Doors, returning: int) -> Iterator[Figure]:
    """All clients of a daemon come back in one moment: connect, initialize, subscribe, list the first page."""
    for way, enter in (("the Unix socket", doors.unix), ("WebSocket", doors.ws)):
        before = server.cpu()
        start = time.perf_counter()
        times = at_once(enter, returning)
        took = time.perf_counter() - start
        cpu = (server.cpu() - before) / returning * 1000
        yield Figure(
            what=f"{returning} clients come back over {way}, until the last has its list", value=took, unit="s"
        )
        yield Figure(what="  one of them, p95", value=percentile(times, 95), unit="ms")
        yield Figure(what="  CPU of the daemon for each", value=cpu, unit="ms")


def at_once(enter: Callable[[], Client], clients: int) -> Sequence[float]:
    """Milliseconds that each took."""
    from concurrent.futures import ThreadPoolExecutor

    def come_back(_: int) -> float:
        start = time.perf_counter()
        client = enter()
        client.call("events/subscribe", {"workspace": daemon.WORKSPACE, "since": client.position})
        page = client.call("sessions/list", {"limit": 100})
        check(len(page["items"]) == 100, "a page")
        took = (time.perf_counter() - start) * 1000
        client.close()
        return took

    with ThreadPoolExecutor(clients) as threads:
        return list(threads.map(come_back, range(clients)))
