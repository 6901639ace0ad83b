"""Children and branches of sessions, and ids that stay theirs."""

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
    # Of a workspace that lay elsewhere when it was branched; its parent is there, that of the other one is not.
    branched("old-branch", root, branchFromSessionPath="/elsewhere/ws/sessions/old-parent/")
    branched("lost-branch", root, branchFromSessionPath="/elsewhere/ws/sessions/lost")
    branched("odd-branch", root, branchFromSessionPath="/elsewhere/ws/notes/old-parent", parentSessionId=7)
    branched("old-parent", root)
    daemon.start()
    return daemon


def branched(id: str, root: Path, **more: Any) -> None:
    (root / "sessions" / id).mkdir()
    (root / "sessions" / id / "session.jsonl").write_text(json.dumps({"id": id, "createdAt": 1, **more}) + "\n")


@pytest.fixture
async def client(shared: Daemon, connect: Connect) -> Wire:
    return await connect(shared, WORKSPACE)


async def make(client: Wire, **value: Any) -> str:
    return str((await client.call("sessions/create", {"value": value}))["item"]["id"])


async def info(client: Wire, id: str) -> dict[str, Any]:
    members = (await client.call("sessions/get", {"id": id}))["item"]["info"]
    return {name: members[name] for name in ("children", "branches") if name in members}


async def wrong(client: Wire, method: str, params: dict[str, Any]) -> list[tuple[str, str]]:
    """Path and message of all that is wrong with the params."""
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    assert failed.value.name == ("InvalidParams" if method == "messages/append" else "ValidationFailed")
    return [(issue["path"], issue["message"]) for issue in failed.value.error["data"]["issues"]]


async def test_a_session_knows_its_children(client: Wire, shared: Daemon, connect: Connect) -> None:
    parent = await make(client)
    assert await info(client, parent) == {}
    children = sorted([await make(client, parentSessionId=parent) for _ in range(3)])
    assert await info(client, parent) == {"children": children}
    listed = await client.call("sessions/list", {"filter": {"parent": parent}})
    assert sorted(item["id"] for item in listed["items"]) == children
    other = await make(client)
    move = {"id": children[0], "patch": {"set": {"parentSessionId": other}}}
    await client.call("sessions/update", move)
    assert (await info(client, parent), await info(client, other)) == (
        {"children": children[1:]},
        {"children": children[:1]},
    )
    await client.call("sessions/update", {"id": children[0], "patch": {"unset": ["/parentSessionId"]}})
    assert await info(client, other) == {}
    shared.restart()
    again = await connect(shared, WORKSPACE)
    assert await info(again, parent) == {"children": children[1:]}


async def test_branches_of_a_workspace_that_was_moved_are_known(client: Wire) -> None:
    assert await info(client, "old-parent") == {"branches": ["old-branch"]}
    answer = await client.call("sessions/delete", {"id": "old-parent"})
    assert (answer["branches"], answer["children"]) == (["old-branch"], [])
    await client.call("sessions/restore", {"id": answer["trash"]})
    assert await info(client, "old-parent") == {"branches": ["old-branch"]}


async def test_a_foreign_edit_of_the_parent_counts(client: Wire, shared: Daemon) -> None:
    parent, child = await make(client), await make(client)
    path = shared.base / "ws" / "sessions" / child / "session.jsonl"
    path.write_text(json.dumps({**json.loads(path.read_text()), "parentSessionId": parent}) + "\n")
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    assert await info(client, parent) == {"children": [child]}


async def test_no_session_stems_from_itself(client: Wire) -> None:
    top = await make(client)
    middle = await make(client, parentSessionId=top)
    low = await make(client, parentSessionId=middle)
    for parent in (top, middle, low):
        patch = {"set": {"parentSessionId": parent}}
        problem = ("parentSessionId", f"{parent} is the session itself, or stems from it")
        assert await wrong(client, "sessions/update", {"id": top, "patch": patch}) == [problem]
    assert await wrong(client, "messages/append", {"session": top, "messages": [], "set": patch["set"]}) == [
        ("set.parentSessionId", problem[1])
    ]
    # Two that would be each other's parent, asked for at once.
    one, two = await make(client), await make(client)
    asked = [
        client.ask("sessions/update", {"id": id, "patch": {"set": {"parentSessionId": parent}}})
        for id, parent in ((one, two), (two, one))
    ]
    first, second = await asyncio.gather(*map(client.answer, asked), return_exceptions=True)
    assert first["changed"] is True
    assert isinstance(second, Failed)
    # One that is missed by its children cannot come back as a child of theirs.
    await client.call("sessions/delete", {"id": top, "permanent": True})
    assert await wrong(client, "sessions/create", {"id": top, "value": {"parentSessionId": low}}) == [
        ("parentSessionId", f"{low} is the session itself, or stems from it")
    ]


async def test_a_circle_that_a_file_brings_harms_nobody(client: Wire, shared: Daemon) -> None:
    root = shared.base / "ws"
    branched("round-1", root, parentSessionId="round-2")
    branched("round-2", root, parentSessionId="round-1")
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    assert await info(client, "round-1") == {"children": ["round-2"]}
    low = await make(client, parentSessionId="round-1")
    await client.call("sessions/update", {"id": "round-1", "patch": {"set": {"name": "Still"}}})  # nobody touched it
    assert await wrong(client, "sessions/update", {"id": "round-1", "patch": {"set": {"parentSessionId": low}}})
    await client.call("sessions/update", {"id": "round-1", "patch": {"unset": ["/parentSessionId"]}})


async def test_what_is_not_there_is_no_parent_and_no_project(client: Wire) -> None:
    id = await make(client)
    patch = {"set": {"parentSessionId": "260101-no-one", "projectId": "proj_none"}}
    problems = [
        ("projectId", "there is no projects/proj_none"),
        ("parentSessionId", "there is no sessions/260101-no-one"),
    ]
    assert await wrong(client, "sessions/update", {"id": id, "patch": patch}) == problems
    assert await wrong(client, "sessions/create", {"value": patch["set"]}) == problems
    assert [path for path, _ in await wrong(client, "messages/append", {"session": id, "messages": [], **patch})] == [
        "set.projectId",
        "set.parentSessionId",
    ]
    # A parent made by the request just before is there.
    make_it = client.ask("sessions/create", {"id": "just-made", "value": {}})
    use_it = client.ask("sessions/update", {"id": id, "patch": {"set": {"parentSessionId": "just-made"}}})
    await client.answer(make_it)
    assert (await client.answer(use_it))["changed"] is True


async def test_deleting_a_parent_says_who_stems_from_it_and_leaves_them(client: Wire) -> None:
    parent = await make(client)
    child = client.ask("sessions/create", {"id": "a-child", "value": {"parentSessionId": parent}})
    gone = client.ask("sessions/delete", {"id": parent, "permanent": True})
    await client.answer(child)
    answer = await client.answer(gone)
    assert answer == {"children": ["a-child"], "branches": [], "epoch": answer["epoch"], "revision": answer["revision"]}
    assert (await client.call("sessions/get", {"id": "a-child"}))["item"]["value"]["parentSessionId"] == parent
    again = await client.call("sessions/delete", {"id": parent, "missingOk": True})
    assert again["children"] == ["a-child"]
    other = await make(client)
    await client.call("sessions/update", {"id": "a-child", "patch": {"set": {"parentSessionId": other}}})
    assert await info(client, other) == {"children": ["a-child"]}


async def test_a_child_belongs_to_the_project_of_its_parent(client: Wire) -> None:
    project = (await client.call("projects/create", {"value": {"name": "Garden"}}))["item"]["id"]
    parent = await make(client, projectId=project)
    values: list[tuple[dict[str, Any], str | None]] = [({}, project), ({"projectId": None}, None)]
    for value, expected in values:
        child = await make(client, parentSessionId=parent, **value)
        assert (await client.call("sessions/get", {"id": child}))["item"]["value"].get("projectId") == expected
    await client.call("projects/delete", {"id": project})
    child = await make(client, parentSessionId=parent)
    assert "projectId" not in (await client.call("sessions/get", {"id": child}))["item"]["value"]
