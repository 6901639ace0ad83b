"""Drafts over the wire: one file of the configuration folder, which the app writes too."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
GOLDEN = Path(__file__).parents[1] / "golden/workspace"
SESSION = "260713-fresh-slate"
KEPT = {"future": [1], "drafts": {SESSION: {"text": "half a sentence", "more": 1}, "old one": "plain text"}}
IMAGE = {"path": "p.png", "name": "p.png", "content": {"type": "image", "mimeType": "image/png", "base64": "AA=="}}


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    roots = {name: daemon.base / name for name in ("ws", "other")}
    for root in roots.values():
        root.mkdir()
    daemon.register(**roots)
    daemon.start("--tcp", "127.0.0.1:0")
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, "ws")


@pytest.fixture
async def session(client: Wire) -> str:
    id: str = (await client.call("sessions/create", {"value": {}}))["item"]["id"]
    return id


def stored(daemon: Daemon) -> Any:
    return json.loads((daemon.config / "drafts.json").read_bytes())


async def refused(client: Wire, method: str, **params: Any) -> Failed:
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    return failed.value


async def test_a_draft_is_there_as_long_as_it_says_something(
    client: Wire, connect: Connect, daemon: Daemon, session: str
) -> None:
    other = await connect(daemon, "ws")
    await other.call("events/subscribe", {"topics": ["drafts"]})
    empty = (await client.call("drafts/get", {"session": session}))["item"]
    assert (empty["id"], empty["version"], empty["value"]) == (session, "", {"text": ""})
    first = await client.call("drafts/update", {"session": session, "text": "half a", "expectedVersion": ""})
    assert stored(daemon)["drafts"][session] == {"text": "half a"}
    assert stored(daemon)["updatedAt"] > 1_700_000_000_000
    failed = await refused(client, "drafts/update", session=session, text="other", expectedVersion="")
    assert failed.name == "VersionConflict"
    assert failed.error["data"]["current"]["item"] == first["item"]
    second = await client.call("drafts/update", {"session": session, "attachments": [IMAGE]})
    assert second["item"]["value"] == {"text": "half a", "attachments": [IMAGE]}
    before = (daemon.config / "drafts.json").read_bytes()
    same = await client.call("drafts/update", {"session": session, "text": "half a"})
    assert (same["changed"], same["revision"]) == (False, second["revision"])
    assert (daemon.config / "drafts.json").read_bytes() == before
    page = await client.call("drafts/list", {})
    assert [item["value"] for item in page["items"] if item["id"] == session] == [{"text": "half a"}]
    params = {"session": session, "text": "", "attachments": [], "key": "d" * 16}
    gone = [await client.call("drafts/update", params) for _ in range(2)]
    assert gone[0] == gone[1]
    assert gone[0]["item"] == empty
    assert session not in stored(daemon)["drafts"]
    await other.call("daemon/sync")
    assert [name for name in other.order if isinstance(name, str)] == [
        "drafts/didCreate",
        "drafts/didChange",
        "drafts/didDelete",
    ]
    assert other.notifications("drafts/didChange")[0]["patch"] == {"set": {"attachments": [IMAGE]}}


async def test_a_draft_is_forgotten(client: Wire, daemon: Daemon, session: str) -> None:
    version = (await client.call("drafts/update", {"session": session, "text": "x"}))["item"]["version"]
    assert (await refused(client, "drafts/delete", session=session, expectedVersion="x")).name == "VersionConflict"
    await client.call("drafts/delete", {"session": session, "expectedVersion": version})
    assert session not in stored(daemon)["drafts"]
    assert (await refused(client, "drafts/delete", session=session)).name == "NotFound"
    await client.call("drafts/delete", {"session": session, "missingOk": True})


async def test_what_the_app_writes_is_seen_and_what_it_would_drop_is_kept(
    client: Wire, connect: Connect, daemon: Daemon, session: str
) -> None:
    await client.call("sessions/create", {"id": SESSION, "value": {}})
    other = await connect(daemon, "ws")
    await other.call("events/subscribe", {"topics": ["drafts", "issues"]})
    (daemon.config / "drafts.json").write_text(json.dumps(KEPT))
    await client.call("daemon/sync")
    assert (await client.call("drafts/get", {"session": SESSION}))["item"]["value"]["text"] == "half a sentence"
    await client.call("drafts/update", {"session": session, "text": "mine"})
    await client.call("drafts/update", {"session": SESSION, "text": "a whole one"})
    now = stored(daemon)
    assert now["future"] == [1]
    assert now["drafts"] == {
        SESSION: {"text": "a whole one", "more": 1},
        "old one": "plain text",
        session: {"text": "mine"},
    }
    [issue] = (await other.notified("issues/didChange"))["issues"]
    assert (issue["code"], issue["severity"]) == ("draft-dropped", "warning")
    (daemon.config / "drafts.json").write_bytes(b"[half")
    await client.call("daemon/sync")
    assert (await refused(client, "drafts/update", session=session, text="x")).name == "Corrupt"
    assert (daemon.config / "drafts.json").read_bytes() == b"[half"
    (daemon.config / "drafts.json").write_bytes((GOLDEN / "home/drafts.json").read_bytes())
    await client.call("daemon/sync")
    assert [item["id"] for item in (await client.call("drafts/list", {}))["items"]] == [SESSION]


async def test_drafts_of_other_workspaces_are_not_shown(client: Wire, connect: Connect, daemon: Daemon) -> None:
    elsewhere = await connect(daemon, "other")
    id = (await elsewhere.call("sessions/create", {"value": {}}))["item"]["id"]
    await elsewhere.call("drafts/update", {"session": id, "text": "secret"})
    assert id in [item["id"] for item in (await elsewhere.call("drafts/list", {}))["items"]]
    assert id not in [item["id"] for item in (await client.call("drafts/list", {}))["items"]]
    for method, more in (("get", {}), ("update", {"text": "x"}), ("delete", {})):
        assert (await refused(client, f"drafts/{method}", session=id, **more)).name == "NotFound"


async def test_a_token_for_some_workspaces_gets_no_drafts(client: Wire, daemon: Daemon, session: str) -> None:
    await client.call("drafts/update", {"session": session, "text": "x"})
    token = {"rights": ["read", "write"], "workspaces": ["ws"]}
    shown = (await client.call("tokens/create", token))["secret"]
    stranger = await Wire.connect(daemon.url("tcp"))
    await stranger.initialize({"token": shown})
    for method, more in (("list", {}), ("get", {"session": session}), ("update", {"session": session, "text": "y"})):
        failed = await refused(stranger, f"drafts/{method}", workspace="ws", **more)
        assert (failed.name, failed.error["data"]["scope"]) == ("Forbidden", "workspaces")
    await stranger.close()


@pytest.mark.parametrize(
    ("params", "name", "path"),
    [
        ({}, "InvalidParams", "text"),
        ({"text": "\ud800"}, "InvalidParams", "text"),
        ({"text": 1}, "InvalidParams", "text"),
        ({"attachments": [{"path": "a"}]}, "ValidationFailed", "attachments.0.name"),
        ({"attachments": [{"path": "a", "name": "a"}]}, "ValidationFailed", "attachments.0.path"),
        ({"session": "..", "text": "x"}, "InvalidParams", "session"),
        ({"session": "260101-not-there", "text": "x"}, "NotFound", None),
    ],
)
async def test_what_is_no_draft_is_named(client: Wire, session: str, params: Any, name: str, path: str | None) -> None:
    failed = await refused(client, "drafts/update", **{"session": session, **params})
    assert failed.name == name
    assert path is None or failed.error["data"]["issues"][0]["path"] == path
    assert (await client.call("drafts/get", {"session": session}))["item"]["version"] == ""
