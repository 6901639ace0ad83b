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
from benchmarks.report import Figure, check, middle, p50, percentile

SUBSCRIBERS = 50
PER_CLIENT = "serialised for each client"
_STAMP = re.compile(rb'"sent":(\d+)')


def measure(quick: bool) -> Iterator[Figure]:
    rounds, events = (1, 200) if quick else (5, 3_000)
    ways = {"craftd": False, "asyncio streams + orjson": False, "stalled": True}
    median: dict[str, list[float]] = {way: [] for way in ways}
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
                median[way].append(p50(delays))
                slow[way].append(percentile(delays, 99))
    bare = "asyncio streams + orjson"
    for what, figures, goal in (("p50", median, None), ("p99", slow, 10)):
        ours, theirs = middle(figures["craftd"], figures[bare])
        yield Figure(
            what=f"event to {SUBSCRIBERS} subscribers, {what}",
            value=ours,
            unit="ms",
            beside=theirs,
            otherwise=PER_CLIENT,
            at_most=goal,
        )
    ours, theirs = middle(cpu["craftd"], cpu[bare])
    yield Figure(what="  CPU of the server per event", value=ours, unit="us", beside=theirs, otherwise=PER_CLIENT)
    ours, theirs = middle(median["stalled"], median["craftd"])
    yield Figure(
        what="event to the others while one never reads, p50",
        value=ours,
        unit="ms",
        beside=theirs,
        otherwise="all read",
        at_most=1.1,
        of_ratio=True,
    )


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
