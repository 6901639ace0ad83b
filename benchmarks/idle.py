"""What a daemon with 10,000 sessions uses while nobody asks it anything."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks import daemon
from benchmarks.listing import IMPORTS, PAGE, check_page
from benchmarks.report import Figure, check
from craftd.workspace.workspace import SWEEP_EVERY


def measure(quick: bool) -> Iterator[Figure]:
    sessions, seconds = (500, 3.0) if quick else (10_000, 2 * SWEEP_EVERY)
    measuring = f"{IMPORTS}; print(open('/proc/self/statm').read().split()[1])"
    pages = subprocess.run([sys.executable, "-c", measuring], check=True, capture_output=True, text=True).stdout
    bare = int(pages) * 4096 / 1e6
    with daemon.running(sessions=sessions) as server:
        peer = server.connect()
        check_page(peer.timed("sessions/list", {"workspace": daemon.WORKSPACE, "limit": PAGE})[1], sessions)
        server.settle()
        started = server.resident()
        used = server.cpu()
        time.sleep(seconds)
        idle = (server.cpu() - used) / seconds * 100
        cursor: dict[str, str] = {}
        listed = 0
        while True:  # everything, so that every row has been shown once
            page = peer.call("sessions/list", {"workspace": daemon.WORKSPACE, "limit": 500, **cursor})
            listed += len(page["items"])
            if "nextCursor" not in page or page["nextCursor"] is None:
                break
            cursor = {"cursor": page["nextCursor"]}
        check(listed == sessions, f"{listed} sessions listed")
        shown = server.resident()
        found = peer.call("sessions/list", {"workspace": daemon.WORKSPACE, "filter": {"text": "no such berth"}})
        check(found["items"] == [], "nothing found")
        filtered = server.resident()
    yield Figure(
        what=f"memory, {sessions:,} sessions, first page listed", value=started, unit="MB", beside=bare,
        otherwise="the imports alone", at_most=150,
    )  # fmt: skip
    yield Figure(
        what="  after all pages", value=shown, unit="MB", beside=bare, otherwise="the imports alone", at_most=150
    )
    yield Figure(
        what="  after a search through all names", value=filtered, unit="MB", beside=bare,
        otherwise="the imports alone", at_most=150,
    )  # fmt: skip
    yield Figure(what=f"CPU while idle, {sessions:,} sessions, two sweeps", value=idle, unit="%", at_most=0.5)
