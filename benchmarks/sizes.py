"""Open, page, append to and rename sessions of every length, and the memory it takes; a daemon for each length."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from benchmarks import app, corpus, daemon
from benchmarks.append import REWRITE, one_append, rewrite
from benchmarks.rename import rename
from benchmarks.report import Figure, check, p50

LENGTHS = (100, 1_000, 10_000, 100_000, 200_000)
PAGE = 100
ALL = "reading and parsing all"
HELD = "all parsed messages, as the app keeps them, alone"


def measure(quick: bool) -> Iterator[Figure]:
    for length in (100, 1_000) if quick else LENGTHS:
        yield from one(length, 3 if quick else 15)


def one(length: int, rounds: int) -> Iterator[Figure]:
    what, session = f"{length:,} messages", f"260101-long-{length}"
    params = {"workspace": daemon.WORKSPACE, "session": session, "limit": PAGE}
    backward = {**params, "direction": "backward"}
    with daemon.running(transcripts={session: length}) as server, daemon.folder() as other:
        peer = server.connect()
        peer.call("daemon/sync", {"workspace": daemon.WORKSPACE})
        server.settle()
        path = server.root / "sessions" / session / "session.jsonl"
        size = path.stat().st_size / 1e6
        memory = {"nothing open": server.resident()}
        before = server.read()
        unopened = [last_page(peer, backward, length) for _ in range(rounds)]
        read = (server.read() - before) / rounds
        opening = timed(lambda: check(len(peer.call("messages/list", params)["items"]) == min(PAGE, length), "a page"))
        opened = [last_page(peer, backward, length) for _ in range(rounds)]
        memory["open"] = server.resident()
        appends = [one_append(peer, session, number)[0] for number in range(rounds)]
        renames = [rename(peer, session, f"Berth {number}") for number in range(rounds)]
        memory["after changes"] = server.resident()
        peak = server.peak()
        check(count(peer, session) == length + rounds == path.read_bytes().count(b"\n") - 1, "the lines on disk")
        theirs = corpus.session(other, session, length)
        whole = [timed(lambda: check(len(parsed(theirs)[-PAGE:]) == min(PAGE, length), "all lines")) for _ in range(3)]
        known = app.Session(theirs)
        saves = [rewrite(known, number) for number in range(5)]
    if size >= 0.25:
        yield ours(f"last {PAGE} of {what}, not open", p50(unopened), "ms", p50(whole), ALL)
        yield ours("  bytes read for it", read / 1e3, "kB", size * 1e3, ALL)
    yield ours(f"first page of {what}, which opens it", opening, "ms", p50(whole), ALL)
    yield ours(f"last {PAGE} of {what}, open", p50(opened), "ms", p50(whole), ALL)
    yield ours(f"append to {what}", p50(appends), "ms", p50(saves), REWRITE)
    yield ours(f"rename, {what}", p50(renames), "ms", p50(saves), REWRITE)
    memory["at the most, from its start on"] = peak
    for when, value in memory.items():
        yield ours(f"  memory of the daemon, {when}", value, "MB", held(known), HELD)


def ours(what: str, value: float, unit: str, beside: float, otherwise: str) -> Figure:
    return Figure(what=what, value=value, unit=unit, beside=beside, otherwise=otherwise)


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def last_page(peer: daemon.Peer, params: Any, length: int) -> float:
    took, body = peer.timed("messages/list", params)
    result = orjson.loads(body)["result"]
    wanted = [f"msg-{number:08}" for number in range(max(0, length - PAGE), length)]
    check([item["id"] for item in result["items"]] == wanted and result["total"] == length, "the last page")
    return took


def parsed(path: Path) -> list[Any]:
    with path.open("rb") as file:
        return [orjson.loads(line) for line in file]


def count(peer: daemon.Peer, session: str) -> int:
    item = peer.call("sessions/get", {"workspace": daemon.WORKSPACE, "id": session})["item"]
    return int(item["value"]["messageCount"])


def held(session: app.Session) -> float:
    """MB of the parsed messages, by what they are made of."""
    some = session.messages[:1000]
    return sum(map(deep, some)) / len(some) * len(session.messages) / 1e6


def deep(value: Any) -> int:
    """Bytes of an object and of what it holds; names of members are shared."""
    own: int = value.__sizeof__()
    if isinstance(value, dict):
        return own + sum(map(deep, value.values()))
    return own + sum(map(deep, value)) if isinstance(value, list) else own
