"""Sources over the wire: what is refused, what is told of them, and connecting to real servers of each kind."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
WORKSPACE = "ws_sources"


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    root = daemon.base / "ws"
    root.mkdir()
    (root / "config.json").write_text(json.dumps({"id": WORKSPACE, "name": "w", "slug": "w", "createdAt": 1}))
    write(root, "by-hand", "mcp", {"transport": "stdio", "command": "x", "env": {"API_KEY": "by-hand-0123"}})
    daemon.register(**{WORKSPACE: root})
    daemon.start()
    return daemon


def write(root: Any, slug: str, kind: str, block: Any) -> None:
    (root / "sources" / slug).mkdir(parents=True)
    whole = {"id": slug, "name": slug, "slug": slug, "enabled": True, "provider": slug, "type": kind, kind: block}
    (root / "sources" / slug / "config.json").write_text(json.dumps(whole))


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, WORKSPACE)


async def make(client: Wire, slug: str, kind: str, block: Any, **more: Any) -> Any:
    value = {"name": slug, "provider": slug, "type": kind, kind: block, **more}
    return (await client.call("sources/create", {"value": value, "id": slug}))["item"]


async def refused(client: Wire, method: str, **params: Any) -> Any:
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    return failed.value.error


async def test_a_secret_is_refused_and_never_repeated(client: Wire, daemon: Daemon) -> None:
    block = {"url": "https://a.example/mcp", "authType": "bearer", "headers": {"Authorization": "Bearer hush-hush"}}
    value = {"name": "s", "type": "mcp", "provider": "p", "mcp": block}
    error = await refused(client, "sources/create", value=value, id="secretive")
    [issue] = error["data"]["issues"]
    assert (issue["path"], issue["code"]) == ("mcp.headers.Authorization", "secret-in-config")
    assert "credentials/set" in issue["suggestion"]
    assert "hush-hush" not in json.dumps(error)
    block["headers"]["Authorization"] = "Bearer ${TOKEN}"
    await client.call("sources/create", {"value": value, "id": "secretive"})
    assert "hush-hush" not in daemon.log


async def test_a_secret_written_by_hand_is_a_warning_and_stops_no_other_change(client: Wire) -> None:
    issues = (await client.call("issues/list", {"workspace": WORKSPACE, "path": "sources/by-hand/config.json"}))[
        "items"
    ]
    assert [(issue["code"], issue["severity"]) for issue in issues] == [("secret-in-config", "warning")]
    assert issues[0]["range"]["start"]["line"] == 0
    await client.call("sources/update", {"id": "by-hand", "patch": {"set": {"mcp": {"command": "y"}, "name": "n"}}})
    another = {"set": {"mcp": {"env": {"API_KEY": "another-0123"}}}}
    assert (await refused(client, "sources/update", id="by-hand", patch=another))["data"]["code"] == "ValidationFailed"


async def test_what_a_source_needs_and_what_its_guide_says_is_told(client: Wire) -> None:
    block = {"baseUrl": "https://a.example", "authType": "header"}
    made = await make(client, "needy", "api", block, guide="# T\n\n## Scope\nTides.\n")
    assert made["info"] == {
        "usable": False,
        "needsAuthentication": True,
        "credentials": ["source_apikey"],
        "guide": {"scope": "Tides."},
    }
    changed = {"set": {"isAuthenticated": True, "guide": "## Scope\nZones of tides.\n"}}
    item = (await client.call("sources/update", {"id": "needy", "patch": changed}))["item"]
    assert (item["info"]["usable"], item["info"]["guide"]) == (True, {"scope": "Zones of tides."})
    assert item == (await client.call("sources/get", {"id": "needy"}))["item"]
