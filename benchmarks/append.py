"""Append one message of 500 B durably, to a short and to long transcripts."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from benchmarks import app, corpus, daemon
from benchmarks.report import Figure, check, p50
from craftd.model.portable import dump_line
from craftd.store.transcript import Transcript

LENGTHS = (100, 10_000, 100_000)
REWRITE = "whole-file rewrite, not flushed"


def measure(quick: bool) -> Iterator[Figure]:
    lengths = (100, 1_000) if quick else LENGTHS
    rounds, appends = (2, 10) if quick else (10, 40)
    names = {length: f"260101-long-{length}" for length in lengths}
    whole, used, alone, bare, rewrites, flushed = (series(lengths) for _ in range(6))
    with (
        daemon.running(transcripts={name: length for length, name in names.items()}) as server,
        daemon.folder() as other,
    ):
        peer = server.connect()
        for name in names.values():
            peer.call("messages/list", {"workspace": daemon.WORKSPACE, "session": name, "limit": 1})
        stores = {length: Store(corpus.session(other / "store", name, length)) for length, name in names.items()}
        apps = {length: app.Session(corpus.session(other / "app", name, length)) for length, name in names.items()}
        safe = {
            length: app.Session(corpus.session(other / "safe", name, length), flush=True)
            for length, name in names.items()
        }
        number = 0
        for _ in range(rounds):
            for length, name in names.items():
                before = server.cpu()
                for _ in range(appends):
                    number += 1
                    took, answer = one_append(peer, name, number)
                    check(answer["messages"] and answer["messages"][0]["id"] == f"msg-9{number:07}", "the answer")
                    whole[length].append(took)
                used[length].append((server.cpu() - before) * 1000 / appends)
                alone[length] += [stores[length].append(number + at) for at in range(appends)]
                bare[length] += floor(other / "bare", appends)
                for at in range(max(1, appends // (1 + length // 500))):
                    rewrites[length].append(rewrite(apps[length], number + at))
                    flushed[length].append(rewrite(safe[length], number + at))
        for length, name in names.items():
            item = peer.call("sessions/get", {"workspace": daemon.WORKSPACE, "id": name})["item"]["value"]
            check(item["messageCount"] == length + rounds * appends, "the count of messages")
            stored = (server.root / "sessions" / name / "session.jsonl").read_bytes()
            check(stored.count(b"\n") == 1 + item["messageCount"], "the lines on disk")
            check(len(Transcript.load(stores[length].path, "")) == item["messageCount"], "the lines of the store alone")
    for length in lengths:
        goal = 1 / 20 if length >= 10_000 else None
        for what, times in (("over the socket", whole), ("by the store alone", alone)):
            yield Figure(
                what=f"append {what}, {length:,} messages",
                value=p50(times[length]),
                unit="ms",
                beside=p50(rewrites[length]),
                otherwise=REWRITE,
                at_most=goal,
                of_ratio=True,
            )
            yield Figure(
                what="  the same",
                value=p50(times[length]),
                unit="ms",
                beside=p50(flushed[length]),
                otherwise="whole-file rewrite, flushed",
            )
        yield Figure(
            what="  the same by the store alone",
            value=p50(alone[length]),
            unit="ms",
            beside=p50(bare[length]),
            otherwise="bare write and flush of as many bytes",
        )
        yield Figure(what="  CPU of the daemon for one, folding included", value=p50(used[length]), unit="ms")
    first, last = lengths[0], lengths[-1]
    for what, times in (("over the socket", whole), ("by the store alone", alone)):
        yield Figure(
            what=f"append {what}, {last:,} messages",
            value=p50(times[last]),
            unit="ms",
            beside=p50(times[first]),
            otherwise=f"the same with {first} messages",
            at_most=1.2,
            of_ratio=True,
        )


def series(lengths: tuple[int, ...]) -> dict[int, list[float]]:
    return {length: [] for length in lengths}


def floor(path: Path, times: int) -> list[float]:
    """Milliseconds of the least that a durable append is: one write and one flush."""
    took = []
    with path.open("ab", buffering=0) as file:
        for _ in range(times):
            start = time.perf_counter()
            file.write(b"x" * corpus.LINE)
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - start) * 1000)
    return took


def one_append(peer: daemon.Peer, session: str, number: int, kind: str = "assistant") -> tuple[float, dict[str, Any]]:
    """Milliseconds and the result."""
    message = fresh(number, kind)
    params = {"workspace": daemon.WORKSPACE, "session": session, "messages": [message]}
    took, body = peer.timed("messages/append", params)
    answer: dict[str, dict[str, Any]] = orjson.loads(body)
    check("result" in answer, f"the answer {answer}")
    return took, answer["result"]


def fresh(number: int, kind: str = "assistant") -> dict[str, Any]:
    """A message with an id of its own, which no prepared transcript has."""
    return corpus.message(90_000_000 + number, kind)


def rewrite(session: app.Session, number: int) -> float:
    message = fresh(number)
    start = time.perf_counter()
    session.append(message)
    return (time.perf_counter() - start) * 1000


class Store:
    """A transcript without a daemon around it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = str(path.parent)
        self.transcript = Transcript.load(path, self.directory)

    def append(self, number: int) -> float:
        message = fresh(number)
        start = time.perf_counter()
        self.transcript.append([dump_line(message, self.directory)], [message])
        return (time.perf_counter() - start) * 1000
