"""Rename a session, with a short and with long transcripts; and what others wait meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import orjson

from benchmarks import app, corpus, daemon
from benchmarks.append import LENGTHS, REWRITE, one_append
from benchmarks.report import Figure, check, p50, percentile

HUGE = 200_000
"""Messages of a transcript of 100 MB."""


def measure(quick: bool) -> Iterator[Figure]:
    yield from renames((100, 1_000) if quick else LENGTHS, 3 if quick else 15)
    yield from others(5_000 if quick else HUGE, 3 if quick else 10)


def renames(lengths: tuple[int, ...], rounds: int) -> Iterator[Figure]:
    names = {length: f"260101-long-{length}" for length in lengths}
    ours: dict[int, list[float]] = {length: [] for length in lengths}
    apps: dict[int, list[float]] = {length: [] for length in lengths}
    with (
        daemon.running(transcripts={name: length for length, name in names.items()}) as server,
        daemon.folder() as other,
    ):
        peer = server.connect()
        for name in names.values():
            peer.call("messages/list", {"workspace": daemon.WORKSPACE, "session": name, "limit": 1})
        open_in_app = {length: app.Session(corpus.session(other, name, length)) for length, name in names.items()}
        for number in range(rounds):
            for length, name in names.items():
                ours[length].append(rename(peer, name, f"Berth {number}"))
                start = time.perf_counter()
                open_in_app[length].rename(f"Berth {number}")
                apps[length].append((time.perf_counter() - start) * 1000)
        for name in names.values():
            first = (server.root / "sessions" / name / "session.jsonl").open("rb").readline()
            check(orjson.loads(first)["name"] == f"Berth {rounds - 1}", f"line 1 of {name}")
    for length in lengths:
        yield Figure(
            what=f"rename, {length:,} messages", value=p50(ours[length]), unit="ms",
            beside=p50(apps[length]), otherwise=REWRITE,
        )  # fmt: skip


def rename(peer: daemon.Peer, session: str, name: str) -> float:
    params = {"workspace": daemon.WORKSPACE, "id": session, "patch": {"set": {"name": name}}}
    took, body = peer.timed("sessions/update", params)
    check(orjson.loads(body)["result"]["changed"], f"the answer {body!r}")
    return took


def others(length: int, rounds: int) -> Iterator[Figure]:
    """Append to one session while another client renames a huge one."""
    huge, small = "260101-huge", "260101-small"
    with daemon.running(transcripts={huge: length, small: 100}) as server:
        writer, renamer = server.connect(), server.connect()
        for name in (huge, small):
            writer.call("messages/list", {"workspace": daemon.WORKSPACE, "session": name, "limit": 1})
        size = (server.root / "sessions" / huge / "session.jsonl").stat().st_size
        appends: list[tuple[float, float]] = []  # when it was asked, ms it took
        done = threading.Event()

        def keep_appending() -> None:
            number = 0
            while not done.is_set():
                number += 1
                asked = time.perf_counter()
                appends.append((asked, one_append(writer, small, number)[0]))
                time.sleep(0.002)

        thread = threading.Thread(target=keep_appending)
        thread.start()
        renaming: list[tuple[float, float]] = []
        for number in range(rounds):
            time.sleep(0.5)
            asked = time.perf_counter()
            renaming.append((asked, asked + rename(renamer, huge, f"Berth {number}") / 1000))
        done.set()
        thread.join()
        count = writer.call("sessions/get", {"workspace": daemon.WORKSPACE, "id": small})["item"]["value"][
            "messageCount"
        ]
        check(count == 100 + len(appends), "the count of messages")
    during = [took for asked, took in appends if any(a <= asked + took / 1000 and asked <= b for a, b in renaming)]
    alone = [took for asked, took in appends if not any(a <= asked + took / 1000 and asked <= b for a, b in renaming)]
    took = p50([(b - a) * 1000 for a, b in renaming])
    what = f"append while a transcript of {size / 1e6:.0f} MB is renamed"
    yield Figure(
        what=f"{what}, p50", value=p50(during), unit="ms", beside=p50(alone), otherwise="the same while nobody renames"
    )
    yield Figure(
        what=f"{what}, p95", value=percentile(during, 95), unit="ms", beside=took, otherwise="waiting for the rename"
    )
