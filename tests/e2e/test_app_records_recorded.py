"""The recorded configuration folder: what the app read there, and what becomes of its files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.daemon import Daemon
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

GOLDEN = Path(__file__).parents[1] / "golden/workspace"
LAB = "aurora-lab"


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    shutil.copytree(GOLDEN / "home", daemon.config, dirs_exist_ok=True)
    config = daemon.config / "config.json"
    config.write_bytes(config.read_bytes().replace(b"~/home/", f"{daemon.config}/".encode()))
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon)


def files(daemon: Daemon) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in daemon.config.rglob("*.json") if "craftd" not in path.parts}


async def test_the_recorded_home_reads_as_the_app_read_it(client: Wire) -> None:
    expected = json.loads((GOLDEN / "expected.json").read_bytes())["global"]
    stored = expected["loadStoredConfig"]
    got = await client.call("preferences/get", {})
    assert got["item"]["value"] == expected["loadPreferences"]
    page = await client.call("connections/list", {})
    connections = {one["slug"]: one for one in stored["llmConnections"]}
    assert {item["id"]: item["value"] for item in page["items"]} == connections
    assert [item["id"] for item in page["items"] if item.get("info", {}).get("default")] == ["shed-box"]
    value = (await client.call("settings/get", {}))["item"]["value"]
    assert value == {name: stored[name] for name in stored if name not in ("workspaces", "llmConnections")}


async def test_a_patch_that_says_nothing_new_leaves_every_byte(daemon: Daemon, client: Wire) -> None:
    before = files(daemon)
    for method, params in (
        ("preferences/update", {"patch": {"set": {"name": "Robin"}}}),
        ("settings/update", {"patch": {"set": {"spellCheck": True}}}),
        ("settings/update", {"workspace": LAB, "patch": {}}),
        ("connections/update", {"id": "hub", "patch": {}}),
    ):
        assert (await client.call(method, params))["changed"] is False
    assert files(daemon) == before


async def test_what_is_refused_is_not_written(daemon: Daemon, client: Wire) -> None:
    before = files(daemon)
    value = {"name": "Odd", "providerType": "anthropic", "authType": "api_key"}
    for method, params in (
        ("preferences/update", {"patch": {"set": {"uiLanguage": "xx"}}}),
        ("settings/update", {"patch": {"set": {"workspaces": []}}}),
        ("settings/update", {"patch": {"set": {"defaultLlmConnection": "gone"}}}),
        ("settings/update", {"workspace": LAB, "patch": {"set": {"defaults": {"permissionMode": "never"}}}}),
        ("connections/create", {"value": {**value, "providerType": "nobody"}}),
        ("connections/create", {"value": {**value, "slug": "../x"}}),
        ("connections/create", {"value": {**value, "apiKey": "sk-abcdefghijklmnop"}}),
        ("connections/update", {"id": "hub", "patch": {"set": {"apiKey": "sk-abcdefghijklmnop"}}}),
    ):
        with pytest.raises(Failed, match="ValidationFailed"):
            await client.call(method, params)
    assert files(daemon) == before


async def test_a_connection_takes_its_secret_and_its_names_with_it(daemon: Daemon, client: Wire) -> None:
    path = daemon.config / "config.json"
    value = {"name": "New One", "providerType": "anthropic", "authType": "api_key"}
    assert (await client.call("connections/create", {"value": value}))["item"]["id"] == "new-one"
    await client.call("settings/update", {"patch": {"set": {"defaultLlmConnection": "new-one"}}})
    patch = {"set": {"defaults": {"defaultLlmConnection": "new-one"}}}
    await client.call("settings/update", {"workspace": LAB, "patch": patch})
    await client.call("credentials/set", {"id": "llm_api_key::new-one", "value": {"value": "sk-1"}})
    others = json.loads(path.read_bytes())
    await client.call("connections/delete", {"id": "new-one"})
    left = [one for one in others["llmConnections"] if one["slug"] != "new-one"]
    expected = {**others, "llmConnections": left, "defaultLlmConnection": left[0]["slug"]}
    assert json.loads(path.read_bytes()) == expected
    assert "llm_api_key::new-one" not in json.dumps(await client.call("credentials/list", {}))
    own = (await client.call("settings/get", {"workspace": LAB}))["item"]["value"]
    assert "defaultLlmConnection" not in own["defaults"]
    with pytest.raises(Failed, match="NotFound"):
        await client.call("connections/get", {"id": "new-one"})
