"""What watching costs: time until the watches stand, idle CPU, memory, delay of a report, with many sessions.

    python benchmarks/watch.py [sessions=10000] [samples=300]

Times are of the process's monotonic clock; CPU is that of all threads of this process.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from craftd.store.watch import Watcher

IDLE_SECONDS = 5.0


class Reports:
    """Waits for the report of one path."""

    def __init__(self) -> None:
        self.wanted = ""
        self.came = threading.Event()
        self.paths = 0

    def on_paths(self, paths: set[str]) -> None:
        self.paths += len(paths)
        if self.wanted in paths:
            self.came.set()

    def on_lost(self, reason: str) -> None:
        print("lost:", reason)


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def delays(reports: Reports, change: list[tuple[str, Path]], save: bool) -> list[float]:
    """Milliseconds from a change to its report."""
    result = []
    for name, path in change:
        reports.wanted = name
        reports.came.clear()
        if save:
            (temporary := path.with_name(".save.tmp")).write_bytes(b"{}\n{}\n")
            start = time.perf_counter()
            temporary.rename(path)
        else:
            start = time.perf_counter()
            with path.open("ab") as file:
                file.write(b"{}\n")
        if not reports.came.wait(10):
            raise SystemExit(f"no report of {name}")
        result.append((time.perf_counter() - start) * 1000)
    return result


def show(what: str, values: list[float]) -> None:
    p99 = statistics.quantiles(values, n=100)[98]
    print(f"{what}: p50 {statistics.median(values):.1f} ms, p99 {p99:.1f} ms")


def main(sessions: int = 10_000, samples: int = 300) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "sessions").mkdir()
        for n in range(sessions):
            (session := root / f"sessions/s{n}").mkdir()
            (session / "session.jsonl").write_bytes(b"{}\n")
            (session / "plans").mkdir()
        reports = Reports()
        before, cpu, start = resident_kib(), time.process_time(), time.perf_counter()
        watcher = Watcher(root, reports.on_paths, reports.on_lost)
        watcher.start()
        returned = time.perf_counter() - start
        if not watcher.ready.wait(60):
            raise SystemExit("the watches do not stand after a minute")
        stands, cpu = time.perf_counter() - start, time.process_time() - cpu
        print(f"{sessions} sessions, {watcher.watches} watches: start() returned after {returned * 1000:.1f} ms")
        print(f"ready after {stands * 1000:.0f} ms, {cpu * 1000:.0f} ms CPU, {resident_kib() - before} KiB more memory")

        cpu, paths = time.process_time(), reports.paths
        time.sleep(IDLE_SECONDS)
        idle = (time.process_time() - cpu) / IDLE_SECONDS
        print(f"idle: {idle * 100:.3f} % of a core, {reports.paths - paths} reports")

        step = max(1, sessions // samples)
        change = [
            (f"sessions/s{n}/session.jsonl", root / f"sessions/s{n}/session.jsonl") for n in range(0, sessions, step)
        ]
        show("append to report", delays(reports, change, save=False))
        show("save by rename to report", delays(reports, change, save=True))

        cpu, paths, start = time.process_time(), reports.paths, time.perf_counter()
        for n in range(sessions):
            with (root / f"sessions/s{n}/session.jsonl").open("ab") as file:
                file.write(b"{}\n")
        while reports.paths - paths < sessions and time.perf_counter() - start < 30:
            time.sleep(0.005)
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
        print(f"burst of {sessions} own appends: {reports.paths - paths} reports in {took:.2f} s, {cpu:.2f} s CPU")
        print(f"overflows {watcher.overflows}, failed {watcher.failed}")
        start = time.perf_counter()
        watcher.stop()
        print(f"stop: {(time.perf_counter() - start) * 1000:.0f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
