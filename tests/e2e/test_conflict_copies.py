"""What file synchronisers leave beside sessions and other records: reported, told, and never a session."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.daemon import Daemon, snapshot
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

SESSION = "260102-amber-kite"
FOLDERS = {
    f"{SESSION}.sync-conflict-20260102-101112-ABCDEF2": "Syncthing",
    f"{SESSION} (Ada's conflicted copy 2026-01-02)": "Dropbox",
    f"{SESSION}_conflict-20260102-101112": "Nextcloud",
    f"{SESSION}-DESKTOP-AB12CD3": "OneDrive",
    f"{SESSION} (1)": "Google Drive",
    f"{SESSION} 2": "iCloud Drive",
}
FILES = {
    f"sessions/{SESSION}/session.sync-conflict-20260102-101112-ABCDEF2.jsonl": "Syncthing",
    f"sessions/{SESSION}/session-LAPTOP.jsonl": "OneDrive",
    f"sessions/{SESSION}/plans/tide.sync-conflict-20260102-101112-ABCDEF2.md": "Syncthing",
    "labels/config (1).json": "Google Drive",
    "automations (conflicted copy 2026-01-02 101112).json": "Nextcloud",
    "skills/tide/SKILL (Ada's conflicted copy 2026-01-02).md": "Dropbox",
}
OURS = (f"sessions/{SESSION}/plans/tide 2.md", "notes 2.md", "skills/tide/chart 2.md")
"""A person may call files like that."""


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    for name in ("there", "comes"):
        lay_out(daemon.base / name)
    for path in (*FILES, *OURS):
        copy = daemon.base / "there" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("{}")
    for folder in FOLDERS:
        shutil.copytree(daemon.base / "there/sessions" / SESSION, daemon.base / "there/sessions" / folder)
    daemon.register(there=daemon.base / "there", comes=daemon.base / "comes")
    daemon.start()
    return daemon


def lay_out(root: Path) -> None:
    (folder := root / "sessions" / SESSION).mkdir(parents=True)
    header = {"id": SESSION, "workspaceRootPath": str(root), "createdAt": 1, "lastUsedAt": 1, "messageCount": 0}
    (folder / "session.jsonl").write_text(json.dumps(header) + "\n")
    for path in ("labels/config.json", "automations.json", "notes.md", "skills/tide/SKILL.md", "skills/tide/chart.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text('{"version": 1, "labels": []}' if path.endswith("json") else "---\nname: T\n---\n")


async def conflicts(client: Wire, workspace: str) -> dict[str, str]:
    """Message by path."""
    await client.call("daemon/sync", {"workspace": workspace})
    items = (await client.call("issues/list", {"workspace": workspace}))["items"]
    return {one["path"]: one["message"] for one in items if one["code"] == "conflict-copy"}


async def test_copies_are_reported_with_who_made_them_and_none_is_a_session(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "there")
    before = snapshot(daemon.base / "there")
    listed = await client.call("sessions/list", {"workspace": "there"})
    assert [item["id"] for item in listed["items"]] == [SESSION]
    found = await conflicts(client, "there")
    expected = {**FILES, **{f"sessions/{name}": program for name, program in FOLDERS.items()}}
    assert found.keys() == expected.keys()
    assert all(f"made by {program}" in found[path] for path, program in expected.items())
    assert snapshot(daemon.base / "there") == before


@pytest.mark.parametrize("name", [f"{SESSION}_conflict-20260102-101112", f"{SESSION}-DESKTOP-AB12CD3"])
async def test_no_method_takes_a_copy_for_a_session(daemon: Daemon, connect: Connect, name: str) -> None:
    client = await connect(daemon, "there")
    message = {"id": "m", "type": "user", "content": "x", "timestamp": 1}
    for method, params in {
        "sessions/get": {"id": name},
        "sessions/update": {"id": name, "patch": {"set": {"name": "x"}}},
        "sessions/delete": {"id": name},
        "messages/append": {"session": name, "messages": [message]},
    }.items():
        with pytest.raises(Failed) as caught:
            await client.call(method, {"workspace": "there", **params})
        assert caught.value.name == "NotFound"
    with pytest.raises(Failed) as caught:
        await client.call("sessions/create", {"workspace": "there", "id": name, "value": {}})
    assert caught.value.error["data"]["issues"][0]["path"] == "id"
    listed = await client.call("sessions/list", {"workspace": "there"})
    assert [item["id"] for item in listed["items"]] == [SESSION]


async def test_a_copy_that_comes_and_goes_is_told(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "comes")
    await client.call("events/subscribe", {"workspace": "comes"})
    sessions = daemon.base / "comes/sessions"
    file = sessions / SESSION / "session (conflicted copy 2026-01-02 101112).jsonl"
    folder = sessions / f"{SESSION}_conflict-20260102-101112"
    assert await conflicts(client, "comes") == {}
    shutil.copytree(sessions / SESSION, folder)
    shutil.copy(sessions / SESSION / "session.jsonl", file)
    paths = {f"sessions/{SESSION}/{file.name}", f"sessions/{folder.name}"}
    assert (await conflicts(client, "comes")).keys() == paths
    await client.notified("issues/didChange", 2)  # of the file the watch alone tells
    file.unlink()
    shutil.rmtree(folder)
    assert await conflicts(client, "comes") == {}
    await client.notified("issues/didChange", 4)
    told = [(one["path"], len(one["issues"])) for one in client.notifications("issues/didChange")]
    assert all([number for where, number in told if where == path] == [1, 0] for path in paths)
    assert client.notifications("sessions/didCreate") == []


async def test_a_copy_whose_original_is_gone_is_a_session_where_its_name_can_be_one(
    daemon: Daemon, connect: Connect
) -> None:
    client = await connect(daemon, "comes")
    sessions = daemon.base / "comes/sessions"
    copy = sessions / f"{SESSION}-DESKTOP-AB12CD3"
    shutil.copytree(sessions / SESSION, copy)
    assert list(await conflicts(client, "comes")) == [f"sessions/{copy.name}"]
    shutil.rmtree(sessions / SESSION)
    assert await conflicts(client, "comes") == {}
    listed = await client.call("sessions/list", {"workspace": "comes"})
    assert [item["id"] for item in listed["items"]] == [copy.name]
