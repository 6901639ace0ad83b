"""What stays true of a session over its life: id, status, place in lists, what was chosen when it was made."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]


@pytest.fixture(scope="module")
def shared(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    root = set_up(daemon)
    write(root, "260415-wrong-id", id="260415-other-id", lastUsedAt=50)
    for number in range(3):
        write(root, f"undated-{number}")
        write(root, f"same-{number}", lastUsedAt=40)
    write(root, "odd-time", lastUsedAt="yesterday")
    daemon.start()
    return daemon


def write(root: Path, name: str, **header: Any) -> None:
    (root / "sessions" / name).mkdir()
    line = json.dumps({"id": name, "createdAt": 1, **header})
    (root / "sessions" / name / "session.jsonl").write_text(f'{line}\n{{"id":"m1","type":"user","content":"x"}}\n')


def header(root: Path, id: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((root / "sessions" / id / "session.jsonl").read_text().split("\n")[0])
    return value


@pytest.fixture
async def client(shared: Daemon, connect: Connect) -> Wire:
    return await connect(shared, WORKSPACE)


@pytest.fixture
def root(shared: Daemon) -> Path:
    return shared.base / "ws"


async def test_the_folder_says_what_a_session_is_called(client: Wire, root: Path) -> None:
    item = (await client.call("sessions/get", {"id": "260415-wrong-id"}))["item"]
    assert item["value"]["id"] == "260415-wrong-id"
    assert "id-mismatch" in [one["code"] for one in item["info"]["damage"]]
    await client.call("sessions/update", {"id": "260415-wrong-id", "patch": {"set": {"name": "Named"}}})
    assert header(root, "260415-wrong-id")["name"] == "Named"
    assert not (root / "sessions" / "260415-other-id").exists()
    with pytest.raises(Failed, match="NotFound"):
        await client.call("sessions/get", {"id": "260415-other-id"})


@pytest.mark.parametrize("id", ["..", ".", "", "a/b", "../x", "a/", "a\\b", "a\n", "x" * 121, ".trash"])
@pytest.mark.parametrize("method", ["create", "delete", "restore", "duplicate", "emptyTrash"])
async def test_what_is_no_id_is_refused(client: Wire, root: Path, method: str, id: str) -> None:
    params: dict[str, Any] = {"id": id}
    if method == "create":
        params["value"] = {}
    elif method == "duplicate":
        params = {"session": "same-0", "id": id}
    elif method == "emptyTrash":
        params = {"ids": [id]}
    names = sorted(path.name for path in (root / "sessions").iterdir())
    with pytest.raises(Failed) as failed:
        await client.call(f"sessions/{method}", params)
    assert failed.value.name == ("NotFound" if method == "emptyTrash" else "InvalidParams")
    assert sorted(path.name for path in (root / "sessions").iterdir()) == names


async def test_a_session_without_a_time_is_last_and_ties_go_by_id(client: Wire) -> None:
    wanted = [*(f"same-{n}" for n in range(3)), "odd-time", *(f"undated-{n}" for n in range(3))]
    for sort in ({"sort": "-lastMessageAt"}, {}):
        items = (await client.call("sessions/list", {"limit": 500, **sort}))["items"]
        listed = [item["id"] for item in items if item["id"] in wanted]
        assert listed[:3] == ["same-2", "same-1", "same-0"]
        assert listed[3:] == ["undated-2", "undated-1", "undated-0", "odd-time"]


async def test_only_use_moves_a_session_up(client: Wire, root: Path) -> None:
    used = header(root, "same-1")["lastUsedAt"]
    project = (await client.call("projects/create", {"value": {"name": "Garden"}}))["item"]["id"]
    for change in (
        {"name": "N"},
        {"isFlagged": True},
        {"labels": ["bug"]},
        {"projectId": project},
        {"hasUnread": True},
    ):
        await client.call("sessions/update", {"id": "same-1", "patch": {"set": change}})
    await client.call("sessions/markRead", {"sessions": ["same-1"]})
    await client.call("projects/delete", {"id": project})
    await client.call("sessions/delete", {"id": "same-1"})
    await client.call("sessions/restore", {"id": "same-1"})
    assert header(root, "same-1")["lastUsedAt"] == used
    said = {"id": "m2", "type": "user", "content": "on", "timestamp": 1_783_000_000_000}
    await client.call("messages/append", {"session": "same-1", "messages": [said]})
    assert (await client.call("sessions/get", {"id": "same-1"}))["item"]["value"]["lastUsedAt"] == said["timestamp"]


async def test_a_status_that_is_gone_stays_and_counts_as_open(client: Wire, root: Path) -> None:
    await client.call("statuses/create", {"id": "parked", "value": {"label": "Parked", "category": "open"}})
    id = (await client.call("sessions/create", {"value": {"sessionStatus": "parked"}}))["item"]["id"]
    await client.call("statuses/delete", {"id": "parked"})
    await client.call("sessions/update", {"id": id, "patch": {"set": {"isFlagged": True}}})
    assert header(root, id)["sessionStatus"] == "parked"
    copy = (await client.call("sessions/duplicate", {"session": id}))["item"]
    assert copy["value"]["sessionStatus"] == "parked"
    await client.call("sessions/delete", {"id": id})
    assert (await client.call("sessions/restore", {"id": id}))["item"]["value"]["sessionStatus"] == "parked"
    inbox = (await client.call("sessions/list", {"filter": {"state": "inbox"}, "limit": 500}))["items"]
    assert {id, copy["id"]} <= {item["id"] for item in inbox}


async def test_what_was_chosen_at_creation_is_on_disk_with_the_answer(client: Wire, root: Path, shared: Daemon) -> None:
    chosen = {"model": "opus", "llmConnection": "work", "thinkingLevel": "high", "permissionMode": "safe"}
    id = (await client.call("sessions/create", {"value": chosen}))["item"]["id"]
    shared.kill()
    assert {name: header(root, id).get(name) for name in chosen} == chosen
    # What nobody chose is not frozen into the session.
    assert not {"enabledSourceSlugs", "isFlagged", "sessionStatus", "hasUnread"} & header(root, id).keys()
    shared.start()


async def test_sessions_of_two_workspaces_may_have_one_id(client: Wire, shared: Daemon) -> None:
    other = shared.base / "other"
    second = (await client.call("workspaces/create", {"value": {"name": "Other", "path": str(other)}}))["item"]["id"]
    changes = []
    for workspace in (WORKSPACE, second):
        await client.call("sessions/create", {"workspace": workspace, "id": "260416-one-id", "value": {}})
        for number in range(5):
            where = {"workspace": workspace, "session": "260416-one-id"}
            said = {"id": f"m{number}", "type": "user", "content": workspace}
            changes.append(client.call("messages/append", {**where, "messages": [said]}))
    await asyncio.gather(*changes)
    for workspace in (WORKSPACE, second):
        found = await client.call("messages/list", {"workspace": workspace, "session": "260416-one-id"})
        assert [item["value"]["content"] for item in found["items"]] == [workspace] * 5
