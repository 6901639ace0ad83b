"""Workspaces and sessions that were copied or moved: they work where they are, nothing is written where they were."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon, snapshot
from tests.wire import Wire

Connect = Callable[..., Awaitable[Wire]]

ID = "260810-old-place"
COPY = "260810-old-place-2"


def lay_out(root: Path) -> None:
    folder = root / "sessions" / ID
    for name in ("attachments", "plans", "long_responses", "data", "downloads"):
        (folder / name).mkdir(parents=True)
    header = {
        "id": ID, "workspaceRootPath": str(root), "sdkCwd": str(folder), "createdAt": 1, "lastUsedAt": 1,
        "name": "Old", "workingDirectory": f"{root}/projects/tide", "branchFromSessionPath": f"{root}/sessions/other",
        "pendingPlanExecution": {"planPath": "{{SESSION_PATH}}/plans/a.md", "awaitingCompaction": False},
        "futureField": 1, "messageCount": 1,
    }  # fmt: skip
    message = {"id": "m1", "content": "x", "planPath": "{{SESSION_PATH}}/plans/a.md", "timestamp": 1, "type": "plan"}
    lines = (json.dumps(one, separators=(",", ":")) + "\n" for one in (header, message))
    (folder / "session.jsonl").write_text("".join(lines))
    (folder / "plans/a.md").write_text("# A\n")


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    """The original beside a copy; a workspace that was moved; one with a copied session, and one it was copied to."""
    daemon = make_daemon()
    for name in ("first", "gone", "inside"):
        lay_out(daemon.base / name)
    shutil.copytree(daemon.base / "first", daemon.base / "copy")
    (daemon.base / "gone").rename(daemon.base / "moved")
    sessions = daemon.base / "inside/sessions"
    shutil.copytree(sessions / ID, sessions / COPY)
    (daemon.base / "target/sessions").mkdir(parents=True)
    shutil.copytree(daemon.base / "first/sessions" / ID, daemon.base / "target/sessions" / ID)
    names = ("first", "copy", "moved", "inside", "target")
    for name in names:
        (daemon.base / name / "config.json").write_text(
            json.dumps({"id": f"ws_{name}", "name": name, "slug": name, "createdAt": 1})
        )
    daemon.register(**{name: daemon.base / name for name in names})
    daemon.start()
    return daemon


async def every_change(client: Wire, workspace: str, id: str) -> None:
    def scoped(**params: Any) -> dict[str, Any]:
        return {"workspace": workspace, **params}

    message = {"id": "m2", "content": "new", "timestamp": 2, "type": "assistant"}
    await client.call("messages/append", scoped(session=id, messages=[message]))
    await client.call("sessions/markRead", scoped(sessions=[id]))
    await client.call("sessions/update", scoped(id=id, patch={"set": {"name": "New", "model": "m", "sharedId": "s"}}))
    await client.call("messages/update", scoped(session=id, id="m2", patch={"set": {"content": "newer"}}))
    await client.call("files/write", scoped(session=id, path="data/x.txt", content={"text": "x"}))


@pytest.mark.parametrize(("workspace", "id"), [("copy", ID), ("moved", ID), ("inside", COPY), ("target", ID)])
async def test_a_folder_works_where_it_is_and_nothing_is_written_where_it_was(
    daemon: Daemon, connect: Connect, workspace: str, id: str
) -> None:
    client = await connect(daemon, workspace)
    here = daemon.base / workspace
    old = here / "sessions" / ID if workspace == "inside" else daemon.base / "first"
    before = snapshot(old)
    folder = f"{here}/sessions/{id}"

    async def value() -> Any:
        return (await client.call("sessions/get", {"workspace": workspace, "id": id, "fields": ["*"]}))["item"]["value"]

    places = {
        "id": id, "workspaceRootPath": str(here), "sdkCwd": folder, "workingDirectory": f"{here}/projects/tide",
        "branchFromSessionPath": f"{here}/sessions/other", "futureField": 1,
        "pendingPlanExecution": {"planPath": f"{folder}/plans/a.md", "awaitingCompaction": False},
    }  # fmt: skip
    assert (await value()).items() >= places.items()
    plan = (await client.call("messages/list", {"workspace": workspace, "session": id}))["items"][0]
    assert plan["value"]["planPath"] == f"{folder}/plans/a.md"
    await every_change(client, workspace, id)
    assert (await value()).items() >= {**places, "name": "New", "messageCount": 2}.items()
    assert snapshot(old) == before
    assert not (daemon.base / "gone").exists()
    text = (here / "sessions" / id / "session.jsonl").read_text()
    header = json.loads(text.partition("\n")[0])
    assert (header["id"], header["workspaceRootPath"], header["sdkCwd"]) == (id, str(here), "{{SESSION_PATH}}")
    assert "/first" not in text
    assert "/gone" not in text
    assert (here / "sessions" / id / "data/x.txt").read_text() == "x"


async def test_a_workspace_that_moves_while_it_is_open_is_not_made_again_where_it_was(
    daemon: Daemon, connect: Connect
) -> None:
    client = await connect(daemon, "first")
    await client.call("daemon/sync", {"workspace": "first"})
    (daemon.base / "first").rename(daemon.base / "first-moved")
    await client.call("workspaces/move", {"id": "first", "path": str(daemon.base / "first-moved")})
    await every_change(client, "first", ID)
    assert not (daemon.base / "first").exists()
    header = json.loads((daemon.base / "first-moved/sessions" / ID / "session.jsonl").read_text().partition("\n")[0])
    assert (header["workspaceRootPath"], header["sdkCwd"]) == (str(daemon.base / "first-moved"), "{{SESSION_PATH}}")
