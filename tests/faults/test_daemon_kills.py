"""`kill -9` of the whole daemon with several clients at work: the next one has everything that was answered.

32 rounds in two tests that can run side by side; CRAFTD_KILLS says how many instead.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.daemon import Daemon
from tests.faults import order
from tests.faults.harness import Killed, number_of_kills
from tests.faults.order import Client
from tests.faults.work import CLIENTS, Ledger, Worker, facts_of, litter, new_workspace
from tests.wire import Failed, Wire

FRESH_EVERY = 20
"""Rounds after which a new folder keeps the workspace small."""

WORK = "work"
"""Registry id of the workspace."""


@pytest.fixture
def base() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="craftd-", dir="/tmp") as folder:
        yield Path(folder)


async def kill_rounds(base: Path, rounds: int, seed: int, *, lazy: bool = False) -> Killed:
    """Start the daemon, look at everything, let clients work, kill it at a random moment; again and again.

    With *lazy* it ends when a loss was seen.
    """
    chance = random.Random(seed)
    killed = Killed()
    for number in range(rounds):
        if number % FRESH_EVERY == 0:
            daemon, ledger = new_daemon(base / str(number), lazy=lazy)
        await start_and_look(daemon, ledger, killed)
        wires = [await daemon.connect(WORK) for _ in CLIENTS]
        clock: count[int] = count()
        clients = {name: Client(wire, clock) for name, wire in zip(CLIENTS, wires, strict=True)}
        for wire in wires:
            await wire.call("events/subscribe", {"workspace": WORK})
        numbers = count(1)
        before = len(ledger.certain)
        async with asyncio.timeout(30):
            work = [
                asyncio.create_task(
                    Worker(
                        name,
                        client.call,
                        ledger.ask,
                        ledger.acknowledge,
                        ledger.certain,
                        WORK,
                        seed * rounds + number,
                        numbers,
                    ).run(asyncio.Event())
                )
                for name, client in clients.items()
            ]
            await asyncio.sleep(chance.uniform(0.02, 0.25))
            refused = number % 3 == 2  # while it stops by itself
            if refused and daemon.process is not None:
                daemon.process.terminate()
                await asyncio.sleep(chance.uniform(0.0, 0.05))
            daemon.kill()
            for ended in await asyncio.gather(*work, return_exceptions=True):
                stopped = isinstance(ended, Failed) and ended.name == "ServerCancelled" and refused
                if not isinstance(ended, ConnectionError) and not stopped:
                    killed.problems.append(f"a client got {ended!r}")
        killed.problems += order.problems({name: client.entries() for name, client in clients.items()})
        killed.rounds += 1
        killed.acknowledged += len(ledger.certain) - before
        for wire in wires:
            await wire.close()
        if (lazy and killed.lost) or number % FRESH_EVERY == FRESH_EVERY - 1 or number == rounds - 1:
            await start_and_look(daemon, ledger, killed)
            daemon.end()
            if lazy and killed.lost:
                break
    return killed


def new_daemon(base: Path, *, lazy: bool) -> tuple[Daemon, Ledger]:
    base.mkdir()
    daemon = Daemon(base)
    if lazy:
        daemon.environment["CRAFTD_TEST_DISK"] = "lazy"
    facts = new_workspace(base / "ws")
    daemon.register(work=base / "ws")
    return daemon, Ledger(facts | {"workspace work": "Work"})


async def start_and_look(daemon: Daemon, ledger: Ledger, killed: Killed) -> None:
    """What a client of a fresh daemon sees is what was answered before the last one was killed."""
    daemon.start()
    wire: Wire = await daemon.dial()
    await wire.initialize()
    await wire.call("daemon/sync", {})
    root = daemon.base / "ws"
    if not any(item["id"] == WORK for item in (await wire.call("workspaces/list"))["items"]):
        killed.problems += ledger.judge({})
        return
    await wire.call("daemon/sync", {"workspace": WORK})
    left = [f"left behind: {path}" for path in litter(daemon.config, root)]
    found, problems = await facts_of(wire.call, WORK, root)
    status = await wire.call("daemon/status")
    if status["readOnly"] or any(one["readOnly"] for one in status["workspaces"]):
        problems.append("a dead daemon still holds a lock")
    killed.problems += left + problems + ledger.judge(found)
    await wire.close()


@pytest.mark.parametrize("half", [1, 2])
async def test_kill_loses_nothing_answered(base: Path, half: int) -> None:
    killed = await kill_rounds(base, number_of_kills(32) // 2, half)
    assert "\n".join(killed.problems) == ""
    assert killed.acknowledged > killed.rounds


async def test_a_disk_that_writes_late_is_seen_to_lose(base: Path) -> None:
    killed = await kill_rounds(base, 40, 0, lazy=True)
    assert killed.lost
