"""The first page (100) of sessions/list: in a running daemon, and from the start of its process.

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
IMPORTS = "import craftd.cli.commands, craftd.server.core, craftd.server.handlers, craftd.protocol.lsp as l; l.load()"
PARAMS = {"workspace": daemon.WORKSPACE, "limit": PAGE}


def measure(quick: bool) -> Iterator[Figure]:
    yield from many(500 if quick else 10_000, 20 if quick else 300, 3 if quick else 7, (10, 0.3, 1.0))
    if not quick:
        yield from many(100_000, 300, 3, (25, None, None))


def many(sessions: int, lists: int, starts: int, goals: tuple[float, float | None, float | None]) -> Iterator[Figure]:
    with daemon.folder() as base:
        daemon.prepare(base, sessions)
        with daemon.Daemon(base) as server:
            peer = server.connect()
            check_page(peer.timed("sessions/list", PARAMS)[1], sessions)
            warm = []
            for number in range(lists):
                if number % 10 == 0:  # somebody is at work: rows change between two lists
                    change = {"set": {"name": f"Berth {number}"}}
                    peer.call("sessions/update", {**WHERE, "id": corpus.session_id(number), "patch": change})
                took, body = peer.timed("sessions/list", PARAMS)
                check_page(body, sessions)
                warm.append(took)
            server.settle()
            filtered = [peer.timed("sessions/list", {**PARAMS, "filter": {"flagged": True}})[0] for _ in range(20)]
        scans = []
        for _ in range(min(lists, 7)):
            start = time.perf_counter()
            check(len(app.list_sessions(base / "workspace", PAGE)) == PAGE, "the page of the app")
            scans.append((time.perf_counter() - start) * 1000)
        what = f"first page of {sessions:,} sessions"
        yield Figure(what=f"{what}, p50", value=p50(warm), unit="ms", beside=p50(scans), otherwise=SCAN)
        yield Figure(
            what=f"{what}, p95", value=percentile(warm, 95), unit="ms", beside=p50(scans), otherwise=SCAN,
            at_most=goals[0],
        )  # fmt: skip
        yield Figure(
            what=f"{what}, flagged ones only", value=p50(filtered), unit="ms", beside=p50(scans), otherwise=SCAN
        )
        imports, cold, cached = [], [], []
        [cache] = (base / "config" / "craftd" / "cache").iterdir()
        known = cache.read_bytes()
        for _ in range(starts):
            imports.append(importing(base))
            cached.append(first_list(base, sessions))
            cache.unlink()
            cold.append(first_list(base, sessions))
            cache.write_bytes(known)
        scan = p50(scans) / 1000
        yield Figure(what="start of the interpreter and its imports", value=p50(imports), unit="s")
        for how, times, goal in (("with", cached, goals[1]), ("without", cold, goals[2])):
            beyond = p50([took - imported for took, imported in zip(times, imports, strict=True)])
            yield Figure(
                what=f"start to first list beyond imports, {sessions:,} sessions, {how} index cache", value=beyond,
                unit="s", beside=scan, otherwise=f"{SCAN}, for every list", at_most=goal,
            )  # fmt: skip


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
