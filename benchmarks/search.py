"""Search 300 MB of transcripts (10,000 sessions, 600,000 messages): the answer and its first part, beside a bare `rg`.

With ripgrep on the daemon's path and without. Without a `rg` on this machine the other figure is a plain scan of bytes.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from benchmarks import corpus, daemon
from benchmarks.daemon import Peer
from benchmarks.report import Figure, check, p50
from craftd.model import json_text

RARE, SOME, COMMON, ABSENT = "Leuchtturmwärter", "lighthouse", "tide", "semaphore"
HITS = 10
"""Sessions with the rare word; one in twenty has the other."""


def measure(quick: bool) -> Iterator[Figure]:
    sessions, messages, rounds = (300, 20, 1) if quick else (10_000, 60, 3)
    with daemon.folder() as base:
        root = base / "workspace"
        corpus.configuration(base / "config", root)
        write(root, sessions, messages)
        size = sum(path.stat().st_size for path in root.glob("sessions/*/session.jsonl"))
        for found in ("rg", "no rg") if shutil.which("rg") else ("no rg",):
            with on_path(with_ripgrep=found == "rg"):
                server = daemon.Daemon(base)
                peer = server.connect()
                peer.call("search/query", {"workspace": daemon.WORKSPACE, "query": ABSENT})  # it looks for rg once
            with server:
                server.settle()
                yield from search(peer, root, sessions, rounds, f"{size / 1e6:.0f} MB, {found}")
                yield Figure(what=f"  most memory of the daemon, {found}", value=server.peak(), unit="MB")


def search(peer: Peer, root: Path, sessions: int, rounds: int, where: str) -> Iterator[Figure]:
    some = -(-sessions // 20)
    wanted = (
        ("a word in 10 sessions", RARE.upper(), False, HITS),
        ("a word in 5 % of them, first 100", SOME, False, min(100, some)),
        ("a word in all, first 100", COMMON, False, min(100, sessions)),
        ("no session", ABSENT, False, 0),
        ("an expression, 10 sessions", r"leuchtturmw\wrter", True, HITS),
    )
    for what, query, is_regex, expected in wanted:
        whole, first, beside = [], [], []
        for _ in range(1 if is_regex else rounds):
            took, began = answer(peer, query, expected, is_regex=is_regex)
            whole.append(took)
            first.append(began)
            beside.append(bare(root, query, is_regex=is_regex))
        otherwise = "bare rg -i -c of the same" if shutil.which("rg") else "plain scan of the bytes"
        yield Figure(what=f"{what}, {where}", value=p50(whole), unit="ms", beside=p50(beside), otherwise=otherwise)
        if expected:
            yield Figure(what="  its first part", value=p50(first), unit="ms", beside=p50(beside), otherwise=otherwise)


def answer(peer: Peer, query: str, expected: int, *, is_regex: bool) -> tuple[float, float]:
    """Milliseconds to the whole answer, and to the first part with an item."""
    params = {
        "workspace": daemon.WORKSPACE, "query": query, "regex": is_regex, "budgetMs": 60_000, "partialResultToken": "p",
    }  # fmt: skip
    start = time.perf_counter()
    peer.ask("search/query", params)
    began, items = 0.0, 0
    while "method" in (message := orjson.loads(peer.body())):
        began = began or (time.perf_counter() - start) * 1000
        items += len(message["params"]["value"]["items"])
    took = (time.perf_counter() - start) * 1000
    check(items == expected, f"{items} sessions with {query}")
    return took, began


def bare(root: Path, query: str, *, is_regex: bool) -> float:
    start = time.perf_counter()
    if shutil.which("rg"):
        how = () if is_regex else ("-F",)
        command = ["rg", "--no-config", "--no-ignore", "-i", "-c", *how, "-e", query, str(root / "sessions")]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    else:
        word = query.lower().encode()
        for path in root.glob("sessions/*/session.jsonl"):
            word in path.read_bytes().lower()  # noqa: B015 (what it costs)
    return (time.perf_counter() - start) * 1000


@contextmanager
def on_path(*, with_ripgrep: bool) -> Iterator[None]:
    """Programs that are started meanwhile find ripgrep on their path, or nothing at all."""
    before = os.environ["PATH"]
    with TemporaryDirectory() as nothing:
        os.environ["PATH"] = before if with_ripgrep else nothing
        try:
            yield
        finally:
            os.environ["PATH"] = before


def write(root: Path, sessions: int, messages: int) -> None:
    """Lines of 500 B of random words, of which the frequent ones are very frequent."""
    chance = random.Random(1)
    words = ["".join(chance.choices("aeioulnrst", k=chance.randint(3, 9))) for _ in range(20_000)]
    weights = [1 / (rank + 2) for rank in range(len(words))]
    texts = [" ".join(chance.choices(words, weights, k=60))[:380] for _ in range(5_000)]
    rare = set(chance.sample(range(sessions), HITS))
    for number in range(sessions):
        id = corpus.session_id(number)
        folder = root / "sessions" / id
        folder.mkdir(parents=True)
        lines = [json_text.dumps(corpus.header(id, messages, number))]
        for at in range(messages):
            text = chance.choice(texts)
            if at == messages // 2:
                text += f" {COMMON}" + f" {SOME}" * (number % 20 == 0) + f" {RARE}" * (number in rare)
            record = corpus.message(at, "assistant" if at else "user", size=120)
            lines.append(json_text.dumps({**record, "content": text}))
        (folder / "session.jsonl").write_bytes(b"\n".join((*lines, b"")))
