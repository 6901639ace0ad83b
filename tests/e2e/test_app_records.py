"""Connections, settings and preferences over the wire, on the recorded configuration."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

GOLDEN = Path(__file__).parents[1] / "golden/workspace"
AURORA = "23bfd356-f0d3-9086-97a3-657859063794"
TOKEN = "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    daemon.home = daemon.environment["HOME"] = str(daemon.base)
    shutil.copytree(GOLDEN / "home", daemon.config, dirs_exist_ok=True)
    text = (daemon.config / "config.json").read_text().replace("~/home/", "~/cfg/")
    (daemon.config / "config.json").write_text(text.replace('"port": 9100', f'"port": 9100,\n    "token": "{TOKEN}"'))
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    client = await connect(daemon)
    await client.call("events/subscribe", {})
    return client


def stored(daemon: Daemon, name: str = "config.json") -> Any:
    return json.loads((daemon.config / name).read_bytes())


async def refused(client: Wire, method: str, **params: Any) -> tuple[str, list[str]]:
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    data = failed.value.error["data"]
    return failed.value.name, [issue["path"] for issue in data.get("issues", [])]


NEW = {"name": "My Project", "providerType": "anthropic", "authType": "api_key"}


async def test_a_connection_is_made_changed_and_goes_with_all_that_names_it(
    client: Wire, daemon: Daemon, connect: Connect
) -> None:
    other = await connect(daemon)
    await other.call("events/subscribe", {"topics": ["connections", "settings"]})
    before = stored(daemon)
    listed = (await client.call("connections/list", {}))["items"]
    assert [item["id"] for item in listed] == ["hub", "north-api", "shed-box"]
    assert [item["id"] for item in listed if item.get("info")] == ["shed-box"]

    made = (await client.call("connections/create", {"value": NEW, "key": "k" * 16}))["item"]
    again = (await client.call("connections/create", {"value": NEW, "key": "k" * 16}))["item"]
    assert (made["id"], again) == ("my-project", made)
    assert (await client.call("connections/create", {"value": NEW}))["item"]["id"] == "my-project-2"
    assert (await other.notified("connections/didCreate"))["item"]["id"] == "my-project"
    after = stored(daemon)
    assert list(after) == list(before)
    assert after["llmConnections"][:3] == before["llmConnections"]
    assert after["xFuture"] == before["xFuture"]

    change = {"id": "hub", "patch": {"set": {"name": "Hub 2", "future": [1]}}, "expectedVersion": listed[0]["version"]}
    changed = await client.call("connections/update", change)
    assert (await other.notified("connections/didChange"))["patch"] == change["patch"]
    assert stored(daemon)["llmConnections"][2] == {**before["llmConnections"][2], "name": "Hub 2", "future": [1]}
    assert (await refused(client, "connections/update", **change))[0] == "VersionConflict"
    same = await client.call("connections/update", {"id": "hub", "patch": {"set": {"name": "Hub 2"}}})
    assert (same["changed"], same["item"]["version"]) == (False, changed["item"]["version"])

    await client.call(
        "settings/update", {"workspace": AURORA, "patch": {"set": {"defaults": {"defaultLlmConnection": "shed-box"}}}}
    )
    for id in ("llm_api_key::shed-box", "llm_oauth::shed-box", "llm_api_key::hub"):
        await client.call("credentials/set", {"id": id, "value": {"value": "hush"}})
    assert (await refused(client, "connections/delete", id="shed-box", expectedVersion="x"))[0] == "VersionConflict"
    await client.call("connections/delete", {"id": "shed-box"})
    assert stored(daemon)["defaultLlmConnection"] == "north-api"
    left = [item["id"] for item in (await client.call("credentials/list", {}))["items"]]
    assert left == ["llm_api_key::hub"]
    workspace = (await client.call("settings/get", {"workspace": AURORA}))["item"]["value"]
    assert "defaultLlmConnection" not in workspace["defaults"]
    assert (await other.notified("connections/didDelete"))["id"] == "shed-box"
    assert (await refused(client, "connections/get", id="shed-box"))[0] == "NotFound"
    assert (await refused(client, "connections/delete", id="shed-box"))[0] == "NotFound"
    await client.call("connections/delete", {"id": "shed-box", "missingOk": True})


@pytest.mark.parametrize(
    ("method", "params", "paths"),
    [
        ("connections/create", {"value": {**NEW, "apiKey": "abc"}}, ["value.apiKey", "apiKey"]),
        ("connections/create", {"value": {**NEW, "baseUrl": "https://u:p4ssw0rdXyz@x.test"}}, ["baseUrl"]),
        ("connections/create", {"value": {**NEW, "providerType": "nobody"}}, ["providerType"]),
        ("connections/create", {"value": {"name": "x"}}, ["providerType", "authType"]),
        ("connections/create", {"value": NEW, "id": "../x"}, ["id"]),
        ("connections/update", {"id": "hub", "patch": {"set": {"slug": "x"}}}, ["slug"]),
        ("connections/update", {"id": "hub", "patch": {"set": {"name": 7}}}, ["name"]),
        ("settings/update", {"patch": {"set": {"workspaces": []}}}, ["workspaces"]),
        ("settings/update", {"patch": {"set": {"llmConnections": []}}}, ["llmConnections"]),
        ("settings/update", {"patch": {"set": {"serverConfig": {"token": "x"}}}}, ["serverConfig.token"]),
        ("settings/update", {"patch": {"set": {"sendMessageKey": "x"}}}, ["sendMessageKey"]),
        ("settings/update", {"patch": {"set": {"defaultLlmConnection": "nobody"}}}, ["defaultLlmConnection"]),
        ("settings/update", {"patch": {"set": {"activeWorkspaceId": "nobody"}}}, ["activeWorkspaceId"]),
        ("preferences/update", {"patch": {"set": {"location": {"city": 7}}}}, ["location.city"]),
    ],
)
async def test_what_cannot_be_is_named_and_nothing_is_written(
    client: Wire, daemon: Daemon, method: str, params: Any, paths: list[str]
) -> None:
    before = (daemon.config / "config.json").read_bytes(), (daemon.config / "preferences.json").read_bytes()
    name, found = await refused(client, method, **params)
    assert name in ("ValidationFailed", "InvalidParams")
    assert set(found) <= set(paths)
    assert found
    assert (daemon.config / "config.json").read_bytes() == before[0]
    assert (daemon.config / "preferences.json").read_bytes() == before[1]


async def test_settings_of_all_change_beside_what_is_not_theirs_and_no_secret_is_shown(
    client: Wire, daemon: Daemon, connect: Connect
) -> None:
    other = await connect(daemon)
    await other.call("events/subscribe", {"topics": ["settings"]})
    before = stored(daemon)
    got = (await client.call("settings/get", {}))["item"]
    assert got["value"]["colorTheme"] == "dusk"
    assert {"workspaces", "llmConnections"}.isdisjoint(got["value"])
    assert TOKEN not in json.dumps(got)
    patch = {"set": {"spellCheck": False, "serverConfig": {"enabled": False, "port": 9200}}, "unset": ["/networkProxy"]}
    done = await client.call("settings/update", {"patch": patch, "expectedVersion": got["version"]})
    assert (await other.notified("settings/didChange"))["changes"] == [
        {"id": "settings", "version": done["item"]["version"]}
    ]
    after = stored(daemon)
    assert after["serverConfig"] == {"enabled": False, "port": 9200, "token": TOKEN}
    assert "networkProxy" not in after
    assert {name: after[name] for name in after if name not in ("spellCheck", "serverConfig")} == {
        name: before[name] for name in before if name not in ("spellCheck", "serverConfig", "networkProxy")
    }
    assert (await refused(client, "settings/update", patch=patch, expectedVersion=got["version"]))[
        0
    ] == "VersionConflict"
    assert (await client.call("settings/update", {"patch": patch}))["changed"] is False

    theirs = {**after, "colorTheme": "dawn", "llmConnections": after["llmConnections"][1:]}
    (daemon.config / "config.json").write_text(json.dumps(theirs, indent=2))
    await other.call("daemon/sync", {})
    assert other.notifications("settings/didChange")[-1]["patch"] == {"set": {"colorTheme": "dawn"}}
    await client.call("daemon/sync", {})
    assert (await client.notified("connections/didDelete"))["id"] == "north-api"
    heard = b"".join([*client.bodies, *other.bodies])
    assert TOKEN.encode() not in heard


async def test_settings_of_a_workspace_are_those_of_its_file_and_its_path_is_portable(
    client: Wire, daemon: Daemon
) -> None:
    root = daemon.config / "workspaces" / "aurora-lab"
    got = (await client.call("settings/get", {"workspace": AURORA}))["item"]
    workspace = (await client.call("workspaces/get", {"id": AURORA}))["item"]
    assert (got["version"], {**got["value"], "path": str(root)}) == (workspace["version"], workspace["value"])
    patch = {"set": {"defaults": {"workingDirectory": f"{daemon.base}/proj"}}}
    done = await client.call("settings/update", {"workspace": AURORA, "patch": patch})
    assert done["item"]["value"]["defaults"]["workingDirectory"] == f"{daemon.base}/proj"
    assert json.loads((root / "config.json").read_bytes())["defaults"]["workingDirectory"] == "~/proj"
    bytes_before = (root / "config.json").read_bytes()
    assert (await client.call("settings/update", {"workspace": AURORA, "patch": patch}))["changed"] is False
    assert (root / "config.json").read_bytes() == bytes_before
    text = bytes_before.decode().replace('"~/proj"', '"${HOME}/proj"')
    (root / "config.json").write_text(text)
    await client.call("settings/update", {"workspace": AURORA, "patch": {"set": {"name": "Renamed"}}})
    assert json.loads((root / "config.json").read_bytes())["defaults"]["workingDirectory"] == "${HOME}/proj"
    assert (await client.notified("workspaces/didChange"))["changes"][0]["id"] == AURORA


async def test_preferences_change_in_their_file_and_may_not_be_there(client: Wire, daemon: Daemon) -> None:
    before = stored(daemon, "preferences.json")
    got = (await client.call("preferences/get", {}))["item"]
    assert got["value"] == before
    raw = (daemon.config / "preferences.json").read_bytes()
    assert (await client.call("preferences/update", {"patch": {}}))["changed"] is False
    assert (daemon.config / "preferences.json").read_bytes() == raw
    await client.call("preferences/update", {"patch": {"set": {"notes": "Brief."}}, "expectedVersion": got["version"]})
    after = stored(daemon, "preferences.json")
    assert {**after, "updatedAt": 0} == {**before, "notes": "Brief.", "updatedAt": 0}
    assert (await client.notified("preferences/didChange"))["patch"]["set"]["notes"] == "Brief."
    (daemon.config / "preferences.json").write_text('{"name": "Kim"')
    await client.call("daemon/sync", {})
    assert (await client.call("preferences/get", {}))["item"]["value"]["notes"] == "Brief."
    assert (await refused(client, "preferences/update", patch={"set": {"name": "x"}}))[0] == "Corrupt"
    (daemon.config / "preferences.json").unlink()
    await client.call("daemon/sync", {})
    assert (await client.call("preferences/update", {"patch": {"set": {"name": "Kim"}}}))["changed"]
    assert stored(daemon, "preferences.json")["name"] == "Kim"
