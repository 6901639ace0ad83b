"""Tasks and automations over the wire: a text gets the issues that its file has."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon, snapshot
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
GOLDEN = Path(__file__).parents[1] / "golden"
TASKS = GOLDEN / "tasks/invalid"
FILES = GOLDEN / "workspace/invalid"


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    (root := daemon.base / "ws").mkdir()
    for path in TASKS.glob("*.yaml"):
        (root / "tasks" / path.stem).mkdir(parents=True)
        (root / "tasks" / path.stem / "task.yaml").write_bytes(path.read_bytes())
    daemon.register(ws=root)
    daemon.start()
    return daemon


async def stored(client: Wire, path: str) -> list[Any]:
    issues: list[Any] = (await client.call("issues/list", {"workspace": "ws", "path": path}))["items"]
    return issues


async def test_the_text_of_a_task_gets_the_issues_of_its_file(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "ws")
    before = snapshot(daemon.base / "ws")
    for path in sorted(TASKS.glob("*.yaml")):
        text, folder = path.read_bytes().decode(), path.stem
        issues = (await client.call("tasks/validate", {"text": text, "folder": folder}))["issues"]
        assert issues == await stored(client, f"tasks/{folder}/task.yaml") != []
    loose = (await client.call("tasks/validate", {"text": "id: a"}))["issues"]
    assert {(one["path"], one["message"]) for one in loose} == {
        ("task.yaml", f"{name}: is missing") for name in ("title", "goal", "nodes")
    }
    for folder in ("", "..", ".hidden", "a/b"):
        with pytest.raises(Failed, match="InvalidParams"):
            await client.call("tasks/validate", {"text": "", "folder": folder})
    assert snapshot(daemon.base / "ws") == before


async def test_the_text_of_automations_gets_the_issues_of_the_file(daemon: Daemon, connect: Connect) -> None:
    client, file = await connect(daemon, "ws"), daemon.base / "ws/automations.json"
    await client.call("events/subscribe", {"workspace": "ws"})
    for path in sorted(FILES.glob("automations-*.json")):
        file.write_bytes(path.read_bytes())
        await client.call("daemon/sync", {"workspace": "ws"})
        issues = (await client.call("automations/validate", {"text": path.read_bytes().decode()}))["issues"]
        assert issues == await stored(client, "automations.json"), path.name
    told = [one for one in client.notifications("issues/didChange") if one["path"] == "automations.json"]
    assert told
    one = {"cron": "61 * * * *", "actions": [{"type": "prompt", "prompt": "go"}]}
    text = json.dumps({"automations": {"SchedulerTick": [one]}}, indent=1)
    [issue] = (await client.call("automations/validate", {"text": text}))["issues"]
    line = text.splitlines().index('    "cron": "61 * * * *",')
    assert (issue["code"], issue["range"]["start"]["line"]) == ("bad-cron", line)
