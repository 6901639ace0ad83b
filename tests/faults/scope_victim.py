"""A program to be killed: several clients change one workspace and the registry without end, without a socket."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from itertools import count
from pathlib import Path

from craftd.workspace import workspace as workspaces
from tests.faults.scopes import Scopes
from tests.faults.work import CLIENTS, Facts, Worker

PREPARED_ABOVE = 60_000
"""Bytes of a transcript from which rewrites are prepared outside the queue; small, so that a round is short."""


def main(say: Callable[..., None], config: Path, workspace: str, facts: Facts, round: int) -> None:
    workspaces.PREPARE_ABOVE = PREPARED_ABOVE
    asyncio.run(_main(say, config, workspace, facts, round))


async def _main(say: Callable[..., None], config: Path, workspace: str, facts: Facts, round: int) -> None:
    numbers, chance = count(1), random.Random(round)
    workers: list[Worker] = []
    while True:  # opening and closing are moments like others
        async with Scopes.open(config) as scopes:
            await scopes.workspace(workspace)
            if not workers:
                say("ready")
                workers = [
                    Worker(
                        name,
                        scopes.call,
                        lambda number, facts: say(f"{number} {json.dumps(facts)}"),
                        lambda number: say(str(number)),
                        facts,
                        workspace,
                        round,
                        numbers,
                    )
                    for name in CLIENTS
                ]
            enough = asyncio.Event()
            asyncio.get_running_loop().call_later(chance.uniform(0.02, 0.15), enough.set)
            async with asyncio.TaskGroup() as group:
                for worker in workers:
                    worker.call = scopes.call
                    group.create_task(worker.run(enough))
