"""One turn of an agent: a user's message, 20 tool calls, the final answer, each appended when complete; then usage.

Usage is a field of line 1 and not lazy: setting it costs one copy of the file in the kernel. `messages/update`, which
an agent would need to append a tool call early and complete it later, does not exist yet: there is no figure of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks import app, corpus, daemon
from benchmarks.append import LENGTHS, REWRITE, fresh, one_append
from benchmarks.report import Figure, check, p50

KINDS = ("user", *("tool",) * 20, "assistant")


def measure(quick: bool) -> Iterator[Figure]:
    lengths = (100, 1_000) if quick else LENGTHS
    turns = 2 if quick else 12
    names = {length: f"260101-long-{length}" for length in lengths}
    appends: dict[int, list[float]] = {length: [] for length in lengths}
    usages: dict[int, list[float]] = {length: [] for length in lengths}
    saves: dict[int, list[float]] = {length: [] for length in lengths}
    with (
        daemon.running(transcripts={name: length for length, name in names.items()}) as server,
        daemon.folder() as other,
    ):
        peer = server.connect()
        for name in names.values():
            peer.call("messages/list", {"workspace": daemon.WORKSPACE, "session": name, "limit": 1})
        apps = {length: app.Session(corpus.session(other, name, length)) for length, name in names.items()}
        for turn in range(turns):
            for length, name in names.items():
                appends[length].append(turn_of(peer, name, turn))
                usages[length].append(usage(peer, name, turn))
                if turn < 3:
                    saves[length].append(app_turn(apps[length], turn))
        for length, name in names.items():
            value = peer.call("sessions/get", {"workspace": daemon.WORKSPACE, "id": name})["item"]["value"]
            check(value["messageCount"] == length + turns * len(KINDS), "the count of messages")
            check(value["tokenUsage"]["inputTokens"] == turns - 1, "the usage")
    for length in lengths:
        saved = p50(saves[length])
        yield Figure(
            what=f"22 messages, {length:,} messages before", value=p50(appends[length]), unit="ms",
            beside=saved, otherwise=f"22 times: {REWRITE}", at_most=1 / 20 if length == 10_000 else None, of_ratio=True,
        )  # fmt: skip
        yield Figure(
            what="  usage by `set`", value=p50(usages[length]), unit="ms", beside=saved / len(KINDS), otherwise=REWRITE
        )
        whole = p50([a + u for a, u in zip(appends[length], usages[length], strict=True)])
        yield Figure(
            what="  the whole turn", value=whole, unit="ms", beside=saved * (1 + 1 / len(KINDS)),
            otherwise=f"23 times: {REWRITE}",
        )  # fmt: skip
    yield Figure(
        what=f"22 messages, {lengths[-1]:,} messages before", value=p50(appends[lengths[-1]]), unit="ms",
        beside=p50(appends[lengths[0]]), otherwise=f"the same with {lengths[0]} before", at_most=1.2, of_ratio=True,
    )  # fmt: skip


def turn_of(peer: daemon.Peer, session: str, turn: int) -> float:
    """Milliseconds until everything is acknowledged, each message sent after the one before."""
    total = 0.0
    for number, kind in enumerate(KINDS, turn * len(KINDS)):
        took, answer = one_append(peer, session, number, kind)
        check(answer["messages"], f"the answer {answer}")
        total += took
    return total


def usage(peer: daemon.Peer, session: str, turn: int) -> float:
    given = {
        "inputTokens": turn,
        "outputTokens": 8_000,
        "totalTokens": 8_000 + turn,
        "contextTokens": 0,
        "costUsd": 2.5,
    }
    params = {"workspace": daemon.WORKSPACE, "session": session, "messages": [], "set": {"tokenUsage": given}}
    took, body = peer.timed("messages/append", params)
    check(b'"result"' in body, f"the answer {body!r}")
    return took


def app_turn(session: app.Session, turn: int) -> float:
    """The app writes half a second after a change, so nearly every message of a turn is one write."""
    start = time.perf_counter()
    for number, kind in enumerate(KINDS, turn * len(KINDS)):
        session.append(fresh(number, kind))
    return (time.perf_counter() - start) * 1000
