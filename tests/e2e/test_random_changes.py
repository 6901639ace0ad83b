"""After random changes by clients and somebody else a strict reader finds what the app would have written."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.daemon import Daemon
from tests.e2e.random_changes import WORKSPACE, World, as_listed, compared, deviations
from tests.strict_reader import Reader

ROUNDS = int(os.environ.get("CRAFTD_CHANGES", "2"))
"""More of them: CRAFTD_CHANGES=1000 scripts/test tests/e2e/test_random_changes.py."""
LIFE = 10
"""Rounds in one workspace."""
AT_ONCE, CHANGES, SAVES = 3, 120, 20
GOLDEN = Path(__file__).parents[1] / "golden/sessions/workspace"


async def test_what_a_strict_reader_finds_after_random_changes(make_daemon: Callable[..., Daemon]) -> None:
    answered: dict[str, int] = {}
    for round in range(ROUNDS):
        if round % LIFE == 0:
            daemon = make_daemon()
            root = Path(daemon.home) / "Work"
            root.mkdir(parents=True)
            daemon.register(**{WORKSPACE: root})
        daemon.start()
        wires = [await daemon.connect(WORKSPACE) for _ in range(AT_ONCE)]
        world = World(root, int(os.environ.get("CRAFTD_SEED", "0")) + round)
        world.sessions = {id: [one["id"] for one in said] for id, (_, said) in (await as_listed(wires[0])).items()}
        async with asyncio.TaskGroup() as group:
            for wire in wires:
                group.create_task(world.client(wire, CHANGES))
            group.create_task(world.somebody_else(SAVES))
        await wires[0].call("daemon/sync", {"workspace": WORKSPACE})
        listed = await as_listed(wires[0])
        for wire in wires:
            await wire.close()
        assert daemon.stop() == 0
        found, sessions = deviations(root, Path(daemon.home))
        assert "\n".join([*found, *compared(sessions, listed)]) == "", f"round {round}"
        for method, times in world.answered.items():
            answered[method] = answered.get(method, 0) + times
    print(dict(sorted(answered.items())))
    assert min(answered.get(method, 0) for method in ("sessions/create", "messages/append", "messages/update")) > 0


def test_the_strict_reader_finds_every_damage_that_was_recorded(tmp_path: Path) -> None:
    """And nothing in what the app writes, but what craftd does better."""
    root = tmp_path / "atlas"
    shutil.copytree(GOLDEN, root)
    for folder in (root / "sessions").glob("26*"):
        for name in ("attachments", "plans", "long_responses", "data", "downloads"):
            (folder / name).mkdir(exist_ok=True)
    reader = Reader(root, tmp_path)
    reader.read()
    said = {line.split(":")[0].split()[0] for line in reader.deviations if "workspaceRootPath" not in line}
    damaged = {path.name for path in (root / "sessions").glob("2604*")}
    assert damaged <= said
    assert said.isdisjoint({"260301-vivid-heath", "260301-plain-ocean", "260304-bold-river", "260305-quick-fern"})
