"""One event to 50 subscribers, 1,000 events a second, about 500 B each; and what one that never reads costs the others.

Latency is from just before an event is serialised to when its bytes were read in another process, which does nothing
else. The alternative serialises each event for each client.
"""

from __future__ import annotations

import os
import re
import selectors
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import daemon, toys
from benchmarks.report import Figure, check, p50, percentile

SUBSCRIBERS = 50
_STAMP = re.compile(rb'"sent":(\d+)')


def measure(quick: bool) -> Iterator[Figure]:
    rounds, events = (1, 200) if quick else (5, 3_000)
    ways = {"craftd": False, "asyncio streams + orjson": False, "stalled": True}
    middle: dict[str, list[float]] = {way: [] for way in ways}
    slow: dict[str, list[float]] = {way: [] for way in ways}
    cpu: dict[str, list[float]] = {way: [] for way in ways}
    with daemon.folder() as folder:
        for _ in range(rounds):
            for way, stalled in ways.items():
                name = "craftd" if stalled else way
                with toys.serving(name, folder) as server:
                    before = server.cpu()
                    delays = latencies(server, events, stalled)
                    cpu[way].append((server.cpu() - before) / events * 1e6)
                middle[way].append(p50(delays))
                slow[way].append(percentile(delays, 99))
    other = "serialised for each client"
    for what, figures, goal in (("p50", middle, None), ("p99", slow, 10)):
        yield Figure(
            what=f"event to {SUBSCRIBERS} subscribers, {what}", value=p50(figures["craftd"]), unit="ms",
            beside=p50(figures["asyncio streams + orjson"]), otherwise=other, at_most=goal,
        )  # fmt: skip
    yield Figure(
        what="  CPU of the server per event", value=p50(cpu["craftd"]), unit="us",
        beside=p50(cpu["asyncio streams + orjson"]), otherwise=other,
    )  # fmt: skip
    yield Figure(
        what="event to the others while one never reads, p50", value=p50(middle["stalled"]), unit="ms",
        beside=p50(middle["craftd"]), otherwise="all read", at_most=1.1, of_ratio=True,
    )  # fmt: skip


def latencies(server: toys.Server, events: int, stalled: bool) -> list[float]:
    """Milliseconds of every delivery."""
    selector = selectors.DefaultSelector()
    for _ in range(SUBSCRIBERS):
        subscriber = subscribed(server.path)
        subscriber.setblocking(False)
        selector.register(subscriber, selectors.EVENT_READ, bytearray())
    silent = subscribed(server.path) if stalled else None
    server.emit(events)
    delays: list[float] = []
    give_up = time.monotonic() + 30 + events / toys.EVENTS_PER_SECOND
    while len(delays) < events * SUBSCRIBERS:
        check(time.monotonic() < give_up, f"{len(delays)} of {events * SUBSCRIBERS} events arrived")
        for key, _ in selector.select(1.0):
            assert isinstance(key.fileobj, socket.socket)
            data = os.read(key.fd, 1 << 16)
            now = time.monotonic_ns()
            rest: bytearray = key.data
            rest += data
            end = 0
            for stamp in _STAMP.finditer(rest):
                if stamp.end() == len(rest):
                    break  # its last digits may be still to come
                delays.append((now - int(stamp[1])) / 1e6)
                end = stamp.end()
            del rest[:end]
    for key in list(selector.get_map().values()):
        assert isinstance(key.fileobj, socket.socket)
        key.fileobj.close()
    if silent is not None:
        silent.close()
    return delays


def subscribed(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    for id_, method, params in ((1, "initialize", {"capabilities": {}}), (2, "toys/subscribe", {"workspace": "toys"})):
        connection.sendall(daemon.frame(id_, method, params))
        answer = b""
        while b'"id":%d' % id_ not in answer:
            answer += connection.recv(1 << 16)
        check(b'"error"' not in answer, f"the answer {answer!r}")
    return connection
