"""A program to be killed: it sets and deletes credentials without end, and starts anew in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

from craftd.store.machine import Machine
from craftd.workspace.commit import Commit
from craftd.workspace.credentials import DeleteCredential, SetCredential, identity_of
from tests.faults.scopes import ORIGIN, Scopes

MACHINE = Machine(ids=("feedface",), host="host", user="ada", home="/home/ada")
RESTART_EVERY = 7


def setting(id: str, value: str) -> Commit:
    identity = identity_of(id)
    assert identity is not None
    return SetCredential(origin=ORIGIN, id=id, identity=identity, value={"value": value})


def deletion(id: str) -> Commit:
    return DeleteCredential(origin=ORIGIN, id=id, missing_ok=True)


def main(say: Callable[..., None], config: Path, round: int) -> None:
    asyncio.run(_main(say, config, round))


async def _main(say: Callable[..., None], config: Path, round: int) -> None:
    numbers = count(round * 100_000)
    ready = False
    while True:
        async with Scopes.open(config, machine=lambda: MACHINE) as scopes:
            if not ready:
                say("ready")
                ready = True
            for _ in range(RESTART_EVERY):
                number = next(numbers)
                id = f"llm_oauth::c{number % 5}"
                value = None if number % 9 == 0 else f"value {number} {'x' * (number % 4000)}"
                say(f"asked {json.dumps([id, value])}")
                await scopes.home.commit(deletion(id) if value is None else setting(id, value))
                say(f"done {json.dumps([id, value])}")
