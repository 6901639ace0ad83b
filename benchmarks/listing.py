"""The first page (100) of sessions/list, filtered too: in a running daemon, and from the start of its process; memory.

A start that is "cold" finds the files in the page cache, like its alternative. What the interpreter's imports take is
measured in the same rounds, by a process that imports what the daemon does, and taken off.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from benchmarks import app, corpus, daemon
from benchmarks.report import Figure, check, p50, percentile

PAGE = 100
SCAN = "plain scan of all first lines"
NOBODY = "a word in no name"
FILTERS = {
    "flagged ones only": {"flagged": True},
    "one label": {"label": "priority"},
    "one status and one project": {"status": "todo", "project": "proj_00000003"},
    "one name": {"text": "berth 499"},
    NOBODY: {"text": "no such berth"},
}
IMPORTS = "import craftd.cli.commands, craftd.server.core, craftd.server.handlers, craftd.protocol.lsp as l; l.load()"
PARAMS = {"workspace": daemon.WORKSPACE, "limit": PAGE}


def measure(quick: bool) -> Iterator[Figure]:
    if quick:
        yield from many(500, 20, 2, page=10)
    else:
        yield from many(10_000, 300, 7, page=10, cached=0.3, uncached=1.0)
        yield from many(100_000, 300, 1, page=25, messages=2)


def many(
    sessions: int,
    lists: int,
    starts: int,
    *,
    page: float,
    cached: float | None = None,
    uncached: float | None = None,
    messages: int = 20,
) -> Iterator[Figure]:
    """*page*: ms that it may take; *cached*, *uncached*: seconds to the first list with and without the cache."""
    with daemon.folder() as base:
        daemon.prepare(base, sessions, messages=messages)
        with daemon.Daemon(base) as server:
            peer = server.connect()
            check_page(peer.timed("sessions/list", PARAMS)[1], sessions)
            reading = lists_while_working(peer, lists // 3, sessions)
            server.settle()
            warm = lists_while_working(peer, lists, sessions)
            memory = [server.resident()]
            filtered = {}
            for name, wanted in FILTERS.items():
                params = {**PARAMS, "filter": wanted}
                check(peer.call("sessions/list", params)["items"] or name == NOBODY, f"nothing for {wanted}")
                filtered[name] = [peer.timed("sessions/list", params)[0] for _ in range(20)]
            memory.append(server.resident())
        scans = []
        for _ in range(7):
            start = time.perf_counter()
            check(len(app.list_sessions(base / "workspace", PAGE)) == PAGE, "the page of the app")
            scans.append((time.perf_counter() - start) * 1000)
        what = f"first page of {sessions:,} sessions"
        scan = p50(scans)
        for name, value, goal in (
            (f"{what}, p50", p50(warm), None),
            (f"{what}, p95", percentile(warm, 95), page),
            ("  p95 while all are read for the first time", percentile(reading, 95), None),
            *((f"  {name}, p50", p50(times), None) for name, times in filtered.items()),
        ):
            yield Figure(what=name, value=value, unit="ms", beside=scan, otherwise=SCAN, at_most=goal)
        for name, value in zip(("first page listed", "after all these filters"), memory, strict=True):
            yield Figure(what=f"  memory of the daemon, {name}", value=value, unit="MB")
        [cache] = (base / "config" / "craftd" / "cache").iterdir()
        known = cache.read_bytes()
        imports: list[float] = []
        first: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(starts):
            imports.append(importing(base))
            first["with"].append(first_list(base, sessions))
            cache.unlink()
            first["without"].append(first_list(base, sessions))
            cache.write_bytes(known)
        yield Figure(what="start of the interpreter and its imports", value=p50(imports), unit="s")
        for how, goal in (("with", cached), ("without", uncached)):
            yield Figure(
                what=f"start to first list beyond imports, {sessions:,} sessions, {how} index cache",
                value=p50([took - imported for took, imported in zip(first[how], imports, strict=True)]),
                unit="s",
                beside=scan / 1000,
                otherwise=f"{SCAN}, for every list",
                at_most=goal,
            )


def lists_while_working(peer: daemon.Peer, lists: int, sessions: int) -> list[float]:
    """Milliseconds of each list; now and then a session is renamed in between, so that rows change."""
    times = []
    for number in range(lists):
        if number % 10 == 0:
            change = {"set": {"name": f"Berth {time.monotonic_ns()}"}}
            peer.call("sessions/update", {**WHERE, "id": corpus.session_id(number), "patch": change})
        took, body = peer.timed("sessions/list", PARAMS)
        check_page(body, sessions)
        times.append(took)
    return times


WHERE = {"workspace": daemon.WORKSPACE}


def check_page(body: bytes, sessions: int) -> None:
    result = orjson.loads(body)["result"]
    check(len(result["items"]) == PAGE and result["total"] == sessions, "the page")
    times = [item["value"]["lastMessageAt"] for item in result["items"]]
    check(times == sorted(times, reverse=True), "the order of the page")


def importing(base: Path) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, env=daemon.environment(base))
    return time.perf_counter() - start


def first_list(base: Path, sessions: int) -> float:
    """Seconds from the start of a daemon's process to its first list."""
    with daemon.Daemon(base) as server:
        check_page(server.connect().timed("sessions/list", PARAMS)[1], sessions)
        return server.age
