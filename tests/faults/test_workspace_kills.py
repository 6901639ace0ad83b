"""`kill -9` of a process that changes workspaces without a socket: everything acknowledged is there at the next start.

80 rounds; CRAFTD_KILLS says how many instead.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from attrs import define, field

from tests.faults import scope_victim
from tests.faults.harness import Program, kill_rounds, number_of_kills
from tests.faults.scopes import Scopes
from tests.faults.work import Facts, Ledger, facts_of, litter, new_workspace

FRESH_EVERY = 20
"""Rounds after which a new folder keeps the workspace small."""


@define
class Trial:
    """One configuration folder after the other, and what was heard about it."""

    base: Path
    lazy: bool = False
    config: Path = field(init=False)
    ledger: Ledger = field(factory=Ledger)

    def start(self, number: int) -> Program:
        if number % FRESH_EVERY == 0:
            self.config, facts = new_configuration(self.base / str(number))
            self.ledger = Ledger(facts)
        return Program(scope_victim.main, self.config, "work", self.ledger.certain, number, lazy=self.lazy)

    def check(self, lines: list[str]) -> list[str]:
        for line in lines:
            self.ledger.hear(line)
        return asyncio.run(self._look())

    async def _look(self) -> list[str]:
        root = self.config.parent / "ws"
        async with Scopes.open(self.config) as scopes:
            if scopes.home.find("work") is None:
                return self.ledger.judge({})
            await scopes.call("daemon/sync", {"workspace": "work"})
            left = [f"left behind: {path}" for path in litter(self.config, root)]
            found, problems = await facts_of(scopes.call, "work", root)
        return problems + left + self.ledger.judge(found)


def new_configuration(base: Path) -> tuple[Path, Facts]:
    """A configuration folder that knows one workspace, `work`; what is true of it."""
    facts = new_workspace(base / "ws", big=2 * scope_victim.PREPARED_ABOVE)
    (config := base / "cfg").mkdir()
    (config / "craftd").mkdir()
    entry = {"id": "work", "name": "Work", "slug": "ws", "rootPath": str(base / "ws"), "createdAt": 1}
    registry = {"workspaces": [entry], "activeWorkspaceId": "work", "activeSessionId": None}
    (config / "config.json").write_text(json.dumps(registry))
    return config, facts | {"workspace work": "Work"}


def test_kill_loses_nothing_acknowledged(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    killed = kill_rounds(trial.start, trial.check, rounds=number_of_kills(80), longest=0.02)
    assert "\n".join(killed.problems) == ""
    assert killed.acknowledged > killed.rounds


def test_a_disk_that_writes_late_is_seen_to_lose(tmp_path: Path) -> None:
    trial = Trial(tmp_path, lazy=True)
    killed = kill_rounds(trial.start, trial.check, rounds=60, most=8, longest=0.004, until_a_loss=True)
    assert killed.lost
