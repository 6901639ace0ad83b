"""What watching 10,000 sessions costs: until the watches stand, per report, in a burst."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import daemon
from benchmarks.report import Figure, check, p50, percentile
from craftd.store.watch import Watcher


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
        raise AssertionError(reason)


def measure(quick: bool) -> Iterator[Figure]:
    sessions, samples = (500, 20) if quick else (10_000, 300)
    with daemon.folder() as root:
        daemon.prepare(root, sessions)
        root = root / "workspace"
        reports = Reports()
        cpu, start = time.process_time(), time.perf_counter()
        watcher = Watcher(root, reports.on_paths, reports.on_lost)
        watcher.start()
        check(watcher.ready.wait(60), "the watches stand after a minute")
        stands, cpu = (time.perf_counter() - start) * 1000, (time.process_time() - cpu) * 1000
        files = [f"sessions/{folder.name}/session.jsonl" for folder in (root / "sessions").iterdir()]
        some = files[:: max(1, sessions // samples)]
        sweeps = [sweep(root, files) for _ in range(5)]
        appends = [delay(reports, root, name, append) for name in some]
        saves = [delay(reports, root, name, save) for name in some]
        paths, begin, used = reports.paths, time.perf_counter(), time.process_time()
        for name in files:
            append(root / name)
        while reports.paths - paths < sessions and time.perf_counter() - begin < 60:
            time.sleep(0.005)
        burst, used = (time.perf_counter() - begin) * 1000, (time.process_time() - used) * 1000
        check(reports.paths - paths >= sessions, "every change of the burst is reported")
        watcher.stop()
        check(watcher.overflows == watcher.failed == 0, "nothing was lost")
    otherwise = "one look at every file"
    yield Figure(what=f"until {sessions:,} watches stand", value=stands, unit="ms")
    yield Figure(what="  CPU", value=cpu, unit="ms", beside=p50(sweeps), otherwise=otherwise)
    for what, times in (("append", appends), ("save by rename", saves)):
        yield Figure(
            what=f"{what} to report, p50", value=p50(times), unit="ms", beside=p50(sweeps), otherwise=otherwise
        )
        yield Figure(what="  p99", value=percentile(times, 99), unit="ms", beside=p50(sweeps), otherwise=otherwise)
    yield Figure(what=f"{sessions:,} appends at once, until all are reported", value=burst, unit="ms")
    yield Figure(what="  CPU, the appends included", value=used, unit="ms")


def sweep(root: Path, files: list[str]) -> float:
    start = time.perf_counter()
    for name in files:
        (root / name).stat()
    return (time.perf_counter() - start) * 1000


def delay(reports: Reports, root: Path, name: str, change: Callable[[Path], None]) -> float:
    """Milliseconds from a change to its report."""
    reports.wanted = name
    reports.came.clear()
    start = time.perf_counter()
    change(root / name)
    check(reports.came.wait(10), f"a report of {name}")
    return (time.perf_counter() - start) * 1000


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"{}\n")


def save(path: Path) -> None:
    temporary = path.with_name(".save.tmp")
    temporary.write_bytes(b"{}\n{}\n")
    temporary.rename(path)
