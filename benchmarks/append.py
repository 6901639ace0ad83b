"""Append one message of 500 B durably, to a short and to long transcripts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

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
    whole: dict[int, list[float]] = {length: [] for length in lengths}
    used: dict[int, list[float]] = {length: [] for length in lengths}
    alone: dict[int, list[float]] = {length: [] for length in lengths}
    rewrites: dict[int, list[float]] = {length: [] for length in lengths}
    with (
        daemon.running(transcripts={name: length for length, name in names.items()}) as server,
        daemon.folder() as other,
    ):
        peer = server.connect()
        for name in names.values():
            peer.call("messages/list", {"workspace": daemon.WORKSPACE, "session": name, "limit": 1})
        stores = {length: Store(corpus.session(other / "store", name, length)) for length, name in names.items()}
        apps = {length: app.Session(corpus.session(other / "app", name, length)) for length, name in names.items()}
        number = 0
        for _ in range(rounds):
            for length, name in names.items():
                before = server.cpu()
                for _ in range(appends):
                    number += 1
                    took, answer = one_append(peer, name, number)
                    check(answer["messages"][0]["id"] == f"msg-9{number:07}", f"the answer {answer}")
                    whole[length].append(took)
                used[length].append((server.cpu() - before) * 1000 / appends)
                alone[length] += [stores[length].append(number + at) for at in range(appends)]
                for at in range(max(1, appends // (1 + length // 500))):
                    rewrites[length].append(rewrite(apps[length], number + at))
        for length, name in names.items():
            item = peer.call("sessions/get", {"workspace": daemon.WORKSPACE, "id": name})["item"]["value"]
            check(item["messageCount"] == length + rounds * appends, "the count of messages")
            stored = (server.root / "sessions" / name / "session.jsonl").read_bytes()
            check(stored.count(b"\n") == 1 + item["messageCount"], "the lines on disk")
            check(len(Transcript.load(stores[length].path, "")) == item["messageCount"], "the lines of the store alone")
    first = lengths[0]
    for length in lengths:
        otherwise = p50(rewrites[length])
        goal = 1 / 20 if length >= 10_000 else None
        yield Figure(
            what=f"append over the socket, {length:,} messages", value=p50(whole[length]), unit="ms",
            beside=otherwise, otherwise=REWRITE, at_most=goal, of_ratio=True,
        )  # fmt: skip
        yield Figure(what="  CPU of the daemon for it, folding included", value=p50(used[length]), unit="ms")
        yield Figure(
            what=f"append by the store alone, {length:,} messages", value=p50(alone[length]), unit="ms",
            beside=otherwise, otherwise=REWRITE, at_most=goal, of_ratio=True,
        )  # fmt: skip
    last = lengths[-1]
    for what, times in (("over the socket", whole), ("by the store alone", alone)):
        yield Figure(
            what=f"append {what}, {last:,} messages", value=p50(times[last]), unit="ms",
            beside=p50(times[first]), otherwise=f"the same with {first} messages", at_most=1.2, of_ratio=True,
        )  # fmt: skip


def one_append(
    peer: daemon.Peer, session: str, number: int, kind: str = "assistant"
) -> tuple[float, dict[str, object]]:
    """Milliseconds and the result."""
    message = fresh(number, kind)
    params = {"workspace": daemon.WORKSPACE, "session": session, "messages": [message]}
    took, body = peer.timed("messages/append", params)
    answer: dict[str, dict[str, object]] = orjson.loads(body)
    check("result" in answer, f"the answer {answer}")
    return took, answer["result"]


def fresh(number: int, kind: str = "assistant") -> dict[str, object]:
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
