"""What holds for a session, over the wire: every level, foreign edits of them, and where sessions are born."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

HOME = Path(__file__).parents[1] / "golden/workspace/home"


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    """With the recorded connections and thinking level; the settings of its workspace say nothing."""
    daemon = make_daemon()
    root = set_up(daemon)
    change(root / "config.json", lambda config: {**config, "defaults": {}})
    recorded = json.loads((HOME / "config.json").read_bytes())
    change(daemon.config / "config.json", lambda config: {**recorded, "workspaces": config["workspaces"]})
    shutil.copy(HOME / "config-defaults.json", daemon.config)
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, WORKSPACE)


def change(path: Path, how: Callable[[Any], Any]) -> None:
    path.write_text(json.dumps(how(json.loads(path.read_bytes())), indent=2))


async def create(client: Wire, **value: Any) -> Any:
    return (await client.call("sessions/create", {"value": value}))["item"]


async def effective(client: Wire, id: str, **more: Any) -> dict[str, tuple[Any, str]]:
    answer = await client.call("sessions/get", {"id": id, **more})
    return {name: (one["value"], one["level"]) for name, one in answer["item"]["info"]["effective"].items()}


async def set_defaults(client: Wire, **defaults: Any) -> None:
    patch = {"set": {"defaults": defaults}}
    await client.call("workspaces/update", {"id": WORKSPACE, "patch": patch})


async def test_a_session_says_what_holds_and_why(daemon: Daemon, client: Wire) -> None:
    session = (await create(client, thinkingLevel="max"))["id"]
    assert await effective(client, session) == {
        "llmConnection": ("shed-box", "global"),
        "model": ("tiny", "connection"),
        "thinkingLevel": ("max", "session"),
        "permissionMode": ("ask", "built-in"),
        "workingDirectory": (str(daemon.base / "ws"), "built-in"),
        "enabledSourceSlugs": ([], "built-in"),
    }
    await set_defaults(client, defaultLlmConnection="hub", permissionMode="safe", enabledSourceSlugs=["tracker"])
    found = await effective(client, session, fields=["id"], explicit={"model": "pi/mini"})
    assert found["llmConnection"] == ("hub", "workspace")
    assert found["model"] == ("pi/mini", "explicit")
    assert found["permissionMode"] == ("safe", "workspace")
    assert found["enabledSourceSlugs"] == (["tracker"], "workspace")


async def test_what_another_program_says_above_a_session_holds_for_it(daemon: Daemon, client: Wire) -> None:
    session = (await create(client))["id"]
    change(daemon.config / "config.json", lambda config: {**config, "defaultThinkingLevel": "low"})
    change(
        daemon.config / "config-defaults.json",
        lambda config: {**config, "workspaceDefaults": {"permissionMode": "execute"}},
    )
    await client.call("daemon/sync", {"workspace": None})
    found = await effective(client, session)
    assert found["thinkingLevel"] == ("low", "global")
    assert found["permissionMode"] == ("allow-all", "built-in")


async def test_half_a_file_of_defaults_is_reported_and_the_last_good_one_counts(daemon: Daemon, client: Wire) -> None:
    defaults = daemon.config / "config-defaults.json"
    change(defaults, lambda config: {**config, "workspaceDefaults": {"permissionMode": "safe"}})
    await client.call("daemon/sync", {"workspace": None})
    defaults.write_text('{"workspaceDefaults"')
    await client.call("daemon/sync", {"workspace": None})
    session = (await create(client))["id"]
    assert (await effective(client, session))["permissionMode"] == ("safe", "built-in")
    [issue] = (await client.call("issues/list", {"path": "config-defaults.json"}))["items"]
    assert (issue["path"], issue["code"]) == ("config-defaults.json", "not-json")
    assert defaults.read_text() == '{"workspaceDefaults"'


async def test_what_is_wanted_for_once_is_refused_by_name(client: Wire) -> None:
    session = (await create(client))["id"]
    for explicit, path in (({"colour": 1}, "explicit.colour"), ({"thinkingLevel": "much"}, "explicit.thinkingLevel")):
        with pytest.raises(Failed) as caught:
            await client.call("sessions/get", {"id": session, "explicit": explicit})
        assert caught.value.name == "InvalidParams"
        assert [issue["path"] for issue in caught.value.error["data"]["issues"]] == [path]


async def test_a_connection_that_was_worked_with_stays_even_when_it_is_gone(daemon: Daemon, client: Wire) -> None:
    session = (await create(client, llmConnection="hub", connectionLocked=True))["id"]
    with pytest.raises(Failed) as caught:
        await client.call("sessions/update", {"id": session, "patch": {"set": {"llmConnection": "north-api"}}})
    assert caught.value.name == "ValidationFailed"
    change(daemon.config / "config.json", lambda config: {**config, "llmConnections": config["llmConnections"][:1]})
    await client.call("daemon/sync", {"workspace": None})
    answer = await client.call("sessions/get", {"id": session, "explicit": {"llmConnection": "north-api"}})
    info = answer["item"]["info"]["effective"]
    assert info["llmConnection"] == {"value": "hub", "level": "session", "missing": True}
    assert info["model"] == {"value": None, "level": "built-in"}


async def test_a_session_is_born_where_its_project_works(daemon: Daemon, client: Wire) -> None:
    value = {"name": "Pier", "workingDirectory": "~/pier"}
    project = (await client.call("projects/create", {"value": value}))["item"]["id"]
    await set_defaults(client, workingDirectory="~/desk")
    pier, desk = f"{daemon.home}/pier", f"{daemon.home}/desk"
    for given, expected in (
        ({"projectId": project}, pier),
        ({"projectId": project, "workingDirectory": "user_default"}, pier),
        ({"projectId": project, "workingDirectory": "/elsewhere"}, "/elsewhere"),
        ({}, desk),
    ):
        item = await create(client, **given)
        assert (item["value"]["workingDirectory"], item["value"]["sdkCwd"]) == (expected, expected)
        header = json.loads((daemon.base / "ws/sessions" / item["id"] / "session.jsonl").read_text().splitlines()[0])
        assert header["workingDirectory"] == expected.replace(daemon.home, "~")
        assert (await effective(client, item["id"]))["workingDirectory"] == (expected, "session")
    nowhere = await create(client, projectId=project, workingDirectory="none")
    assert "workingDirectory" not in nowhere["value"]
    assert nowhere["value"]["sdkCwd"].endswith(f"/sessions/{nowhere['id']}")


async def test_the_provider_folder_moves_with_the_working_directory_until_something_was_said(
    client: Wire,
) -> None:
    session = (await create(client, workingDirectory="/first"))["id"]

    async def move(where: str) -> Any:
        patch = {"set": {"workingDirectory": where}}
        return (await client.call("sessions/update", {"id": session, "patch": patch}))["item"]["value"]

    assert (await move("/second"))["sdkCwd"] == "/second"
    message = {"id": "m1", "type": "user", "content": "Here."}
    await client.call("messages/append", {"session": session, "messages": [message]})
    moved = await move("/third")
    assert (moved["workingDirectory"], moved["sdkCwd"]) == ("/third", "/second")
    for patch in ({"set": {"sdkCwd": "/third"}}, {"unset": ["/sdkCwd"]}):
        with pytest.raises(Failed) as caught:
            await client.call("sessions/update", {"id": session, "patch": patch})
        assert [issue["path"] for issue in caught.value.error["data"]["issues"]] == ["sdkCwd"]
