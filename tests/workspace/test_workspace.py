"""Opening a workspace: what is made exact, and what is cleared away."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from craftd.errors import ServerCancelled
from craftd.workspace import foreign
from craftd.workspace.workspace import Workspace
from tests.workspace.house import SESSION, House

LEFT = (
    "sessions/{session}/.session.jsonl.1-0123abcd.tmp",
    "sessions/.another.1-0123abcd.tmp/session.jsonl",
    "labels/.config.json.1-0123abcd.tmp",
    "projects/.atlas.1-0123abcd.tmp/config.json",
    "skills/one/.SKILL.md.1-0123abcd.tmp",
    ".config.json.1-0123abcd.tmp",
)
"""What killed daemons leave."""

THEIRS = (
    "sessions/{session}/session.jsonl.tmp",
    "sessions/{session}/.session.jsonl.swp",
    "sessions/{session}/data/.config.json.1-0123abcd.tmp",
    "skills/.tmp-one/SKILL.md",
    "skills/one/.SKILL.md.1-0123abcd",
)
"""What others have written, some of it under a name like ours where we write nothing."""


def litter(house: House) -> set[str]:
    for name in (*LEFT, *THEIRS):
        path = house.root / name.format(session=SESSION)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    return files(house)


def files(house: House) -> set[str]:
    return {path.relative_to(house.root).as_posix() for path in house.root.rglob("*") if path.is_file()}


async def test_what_a_killed_daemon_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    house = House.make(tmp_path)
    house.new_session(SESSION, "m1")
    (house.config / ".config.json.1-0123abcd.tmp").write_text("{}")
    (house.config / "craftd" / "cache").mkdir()
    (house.config / "craftd" / "cache" / ".ws.json.1-0123abcd.tmp").write_text("{}")
    before = litter(house)
    await house.open()
    await house.sync()
    assert before - files(house) == {name.format(session=SESSION) for name in LEFT}
    assert not list(house.config.rglob(".*.1-0123abcd.tmp"))
    await house.close()


async def test_a_workspace_that_is_still_being_opened_is_closed_with_the_others(tmp_path: Path) -> None:
    house = House.make(tmp_path)
    (tmp_path / "late").mkdir()
    house.register({"id": "ws", "rootPath": str(house.root)}, {"id": "late", "rootPath": str(tmp_path / "late")})
    await house.open()
    assert not isinstance(opening := house.home.workspace("late"), Workspace)
    await house.close()  # looks at the end of every task
    assert opening.done()
    with pytest.raises(ServerCancelled):
        house.home.workspace("ws")


async def test_a_start_without_leftovers_takes_no_lock_of_the_app(tmp_path: Path) -> None:
    house = House.make(tmp_path)
    await house.open()
    await house.sync()
    assert not (house.config / ".server.lock").exists()
    await house.close()


async def test_leftovers_stay_while_the_app_runs(tmp_path: Path) -> None:
    house = House.make(tmp_path)
    house.new_session(SESSION, "m1")
    app = {"pid": os.getppid(), "startedAt": time.time_ns() // 1_000_000}
    (house.config / ".server.lock").write_text(json.dumps(app))
    before = litter(house)
    await house.open()
    await house.sync()
    assert files(house) == before
    await house.close()


async def test_after_a_sync_counters_are_those_of_the_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "VERIFY_AT_ONCE", 0)
    house = House.make(tmp_path)
    path = house.new_session(SESSION, "m1", "m2", "m3")
    path.write_bytes(path.read_bytes().replace(b'"messageCount":3', b'"messageCount":1'))
    await house.open()
    await house.sync()
    assert house.value("sessions", SESSION)["messageCount"] == 3
    await house.close()
