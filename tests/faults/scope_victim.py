"""A program to be killed: several clients change one workspace and the registry without end, without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

from tests.faults.scopes import Scopes
from tests.faults.work import CLIENTS, Facts, Worker


def main(say: Callable[..., None], config: Path, workspace: str, facts: Facts, round: int) -> None:
    asyncio.run(_main(say, config, workspace, facts, round))


async def _main(say: Callable[..., None], config: Path, workspace: str, facts: Facts, round: int) -> None:
    numbers = count(1)
    async with Scopes.open(config) as scopes, asyncio.TaskGroup() as group:
        await scopes.workspace(workspace)
        say("ready")
        for name in CLIENTS:
            worker = Worker(
                name,
                scopes.call,
                lambda number, facts: say(f"{number} {json.dumps(facts)}"),
                lambda number: say(str(number)),
                facts,
                workspace,
                round,
                numbers,
            )
            group.create_task(worker.run())
