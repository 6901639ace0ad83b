"""Bytes written to a transcript per byte appended, one message every three seconds.

The clock is the benchmark's own. What is written is counted in the one module that writes, without the flushes, which
would only make this slow. A session in use is never quiet for the minute after which line 1 is folded anyway, so every
fold here is one that its growth called for, but for the one at the end, when the workspace is closed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from benchmarks import corpus, daemon
from benchmarks.report import Figure, check
from craftd.store import disk
from craftd.store.locks import AppLock
from craftd.workspace.guard import Guard
from craftd.workspace.journal import Origin
from craftd.workspace.messages import AppendMessages
from craftd.workspace.workspace import Surroundings, Workspace

STEP = 3000
"""Milliseconds between two messages."""


def measure(quick: bool) -> Iterator[Figure]:
    for length in (100, 300) if quick else (100, 1_000, 10_000):
        appended, written, app = asyncio.run(grow(length))
        yield Figure(
            what=f"bytes written per byte appended, {length:,} messages one by one",
            value=written / appended,
            unit="B",
            beside=app / appended,
            otherwise="whole-file rewrite",
            at_most=10,
        )


async def grow(length: int) -> tuple[int, int, int]:
    """Let a session grow: bytes of its messages, bytes written, bytes that whole-file rewrites had written."""
    with daemon.folder() as base:
        id = corpus.session_id(0)
        daemon.prepare(base, transcripts={id: 0})
        path = base / "workspace" / "sessions" / id / "session.jsonl"
        now = corpus.START
        appended = app = 0
        async with opened(base, lambda: now) as workspace:
            size = path.stat().st_size
            with counting() as written:
                for number in range(length):
                    now += STEP
                    message = corpus.message(number, "assistant" if number else "user")
                    commit = AppendMessages(origin=Origin(kind="client"), labels=dict, id=id, messages=(message,))
                    done = await workspace.commit(commit)
                    check(done.answer[0]["id"] == message["id"], f"the answer {done.answer}")
                    appended += corpus.LINE
                    app += size + appended
                await workspace.fold_all()
        lines = path.read_bytes().splitlines()
        check(len(lines) == length + 1, f"{len(lines)} lines")
        check(f'"messageCount":{length},'.encode() in lines[0], "line 1")
        check(written[0] > appended, "bytes were counted")
        return appended, written[0], app


@contextmanager
def counting() -> Iterator[list[int]]:
    """Count what is written and copied anywhere, and flush nothing."""
    write, copy_range, flush, counted = disk.write, disk.copy_range, disk.flush, [0]

    def counted_write(fd: int, data: bytes) -> None:
        counted[0] += len(data)
        write(fd, data)

    def counted_copy(source: int, target: int, start: int, stop: int) -> None:
        counted[0] += stop - start
        copy_range(source, target, start, stop)

    disk.write, disk.copy_range, disk.flush = counted_write, counted_copy, lambda fd: None
    try:
        yield counted
    finally:
        disk.write, disk.copy_range, disk.flush = write, copy_range, flush


@asynccontextmanager
async def opened(base: Path, clock: Callable[[], int]) -> AsyncIterator[Workspace]:
    """A workspace without a daemon around it."""
    with ThreadPoolExecutor(4) as pool:
        async with asyncio.TaskGroup() as group:
            around = Surroundings(
                guard=Guard(AppLock(base / "config"), time.monotonic),
                pool=pool,
                spawn=group.create_task,
                home=str(base),
                cache=base / "cache",
                clock=clock,
            )
            workspace = await Workspace.open(daemon.WORKSPACE, base / "workspace", around)
            try:
                yield workspace
            finally:
                await workspace.close()
