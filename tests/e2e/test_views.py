"""Views over the wire: saved, evaluated, as a filter; with other programs that edit their file."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.model.views import DEFAULTS
from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire
from tests.workspace.house import SAVES, line

Connect = Callable[..., Awaitable[Wire]]
Save = Callable[[Path, bytes], None]

SESSIONS: dict[str, dict[str, Any]] = {
    "260110-calm-reed": {"name": "feat: pump", "labels": ["severity::2"], "model": "opus"},
    "260111-loud-reed": {"name": "long run", "isFlagged": True, "tokenUsage": {"costUsd": 2.5}},
    "260112-slow-reed": {"name": "a" * 200 + "!", "permissionMode": "explore", "sessionStatus": "done"},
}


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    root = set_up(daemon)
    for other in (root / "sessions").glob("*/session.jsonl"):
        other.unlink()
    for at, (id, header) in enumerate(SESSIONS.items()):
        (root / "sessions" / id).mkdir(parents=True)
        whole = {"id": id, "createdAt": 1, "messageCount": 0, "lastMessageAt": at + 1, **header}
        (root / "sessions" / id / "session.jsonl").write_bytes(line(whole))
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    client = await connect(daemon, WORKSPACE)
    await client.call("events/subscribe", {"workspace": WORKSPACE})
    return client


async def matching(client: Wire, expression: str) -> list[str]:
    """Second parts of the ids of the sessions that match, sorted."""
    found = await client.call("views/evaluate", {"expression": expression})
    return sorted(id.split("-")[1] for id in found["sessions"])


async def listed(client: Wire, *views: str) -> list[str]:
    page = await client.call("sessions/list", {"filter": {"view": list(views)}})
    return sorted(item["id"].split("-")[1] for item in page["items"])


async def test_an_expression_is_evaluated_for_every_session(client: Wire) -> None:
    assert await matching(client, "true") == ["calm", "loud", "slow"]
    assert await matching(client, 'contains(labels, "severity")') == ["calm"]
    assert await matching(client, "tokenUsage.costUsd > 1 and isFlagged") == ["loud"]
    assert await matching(client, 'permissionMode == "safe"') == ["slow"]
    assert await matching(client, 'sessionStatus == "todo"') == ["calm", "loud"]
    found = await client.call("views/evaluate", {"expression": "true"})
    assert [id.split("-")[1] for id in found["sessions"]] == ["slow", "loud", "calm"]
    assert (found["failed"], "error" in found) == (0, False)


async def test_a_session_at_work_is_processing(client: Wire, daemon: Daemon, connect: Connect) -> None:
    executor = await connect(daemon, WORKSPACE, capabilities={"experimental": {"craft": {"roles": ["executor"]}}})
    event = {"type": "state", "state": "running"}
    await executor.call("sessions/publish", {"session": "260110-calm-reed", "event": event})
    assert await matching(client, "isProcessing") == ["calm"]
    assert await listed(client, "view-processing") == ["calm"]


@pytest.mark.parametrize(
    ("expression", "code", "offset", "failed"),
    [
        ("isFlagged ==", "syntax", 12, 0),
        ("daysSinse(lastUsedAt) > 3", "unknown-function", 0, 0),
        ("isFlagged or daysSinse(lastUsedAt) > 3", "unknown-function", 13, 0),
        ("permissionMode == 'safe'", "type", 18, 3),
        ("isFlagged and messageCount", "type", 14, 1),
        ('name ~= "("', "bad-pattern", 8, 3),
    ],
)
async def test_an_expression_that_fails_is_an_error_and_matches_nothing(
    client: Wire, expression: str, code: str, offset: int, failed: int
) -> None:
    found = await client.call("views/evaluate", {"expression": expression})
    assert (found["sessions"], found["failed"]) == ([], failed)
    assert (found["error"]["code"], found["error"]["offset"]) == (code, offset)
    assert found["error"]["message"]


async def test_a_pattern_without_end_holds_nobody_up(client: Wire) -> None:
    found = await client.call("views/evaluate", {"expression": 'name ~= "^(a|a|aa)*(a|a|aa)*(a|a|aa)*$"'})
    assert (found["sessions"], found["error"]["code"]) == ([], "too-slow")


async def test_a_view_is_made_changed_and_deleted(client: Wire, daemon: Daemon) -> None:
    page = await client.call("views/list")
    assert [item["value"] for item in page["items"]] == list(DEFAULTS)
    value = {"name": "Costly", "expression": "tokenUsage.costUsd > 1"}
    made = await client.call("views/create", {"value": value, "key": "k" * 16})
    assert made["item"]["id"] == "view-costly"
    file = daemon.base / "ws" / "views.json"
    stored = json.loads(file.read_bytes())
    assert (stored["version"], stored["views"][-1]) == (1, {"id": "view-costly", **value})
    again = await client.call("views/create", {"value": value, "key": "k" * 16})
    assert (again["item"], again["revision"]) == (made["item"], made["revision"])
    assert await listed(client, "view-costly") == ["loud"]
    patch = {"set": {"expression": "length(labels) > 0"}}
    params = {"id": "view-costly", "patch": patch, "expectedVersion": made["item"]["version"]}
    changed = await client.call("views/update", params)
    assert await listed(client, "view-costly") == ["calm"]
    assert await listed(client, "view-costly", "view-explore") == ["calm", "slow"]
    with pytest.raises(Failed, match="VersionConflict"):
        await client.call("views/update", {**params, "patch": {"set": {"name": "Another"}}})
    before = file.read_bytes()
    assert (await client.call("views/update", {"id": "view-costly", "patch": patch}))["changed"] is False
    assert file.read_bytes() == before
    await client.call("views/delete", {"id": "view-costly", "expectedVersion": changed["item"]["version"]})
    with pytest.raises(Failed, match="InvalidParams") as caught:
        await listed(client, "view-costly")
    assert caught.value.error["data"]["issues"][0]["path"] == "filter.view"
    heard = [m["method"] for m in client.received if str(m.get("method")).startswith("views/")]
    assert heard == ["views/didCreate", "views/didChange", "views/didDelete"]


@pytest.mark.parametrize(
    ("value", "path", "code"),
    [
        ({"name": "X"}, "expression", "schema"),
        ({"name": "X", "expression": "isFlagged =="}, "expression", "expression-syntax"),
        ({"name": "X", "expression": "isFlaged"}, "expression", "expression-unknown-name"),
        ({"name": "X", "expression": "nope(1)"}, "expression", "expression-unknown-function"),
        ({"name": "X", "expression": "hasUnread and name"}, "expression", "expression-type"),
        ({"name": "", "expression": "true"}, "name", "schema"),
        ({"name": "X", "expression": "true", "color": "purple"}, "color", "bad-color"),
    ],
)
async def test_a_view_that_cannot_work_is_refused(client: Wire, value: Any, path: str, code: str) -> None:
    with pytest.raises(Failed, match="ValidationFailed") as caught:
        await client.call("views/create", {"value": value})
    [issue] = caught.value.error["data"]["issues"]
    assert (issue["path"], issue["code"]) == (path, code)


@pytest.mark.parametrize("save", SAVES)
async def test_views_that_another_program_saves_count_at_once(client: Wire, daemon: Daemon, save: Save) -> None:
    file = daemon.base / "ws" / "views.json"
    views = [
        {"id": "plain", "name": "Plain", "expression": "isFlagged"},
        {"id": "typo", "name": "Typo", "expression": "daysSinse(1)"},
        {"id": "quoted", "name": "Quoted", "expression": "name == 'x'"},
    ]
    await client.call("views/create", {"value": {"name": "Old", "expression": "true"}})
    save(file, json.dumps({"version": 1, "views": views, "kept": 1}, indent=2).encode())
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    assert [item["id"] for item in (await client.call("views/list"))["items"]] == ["plain", "typo", "quoted"]
    assert await listed(client, "plain") == ["loud"]
    assert await listed(client, "quoted") == []  # fails for every session
    with pytest.raises(Failed, match="daysSinse"):
        await listed(client, "typo")
    issues = (await client.call("issues/list", {"workspace": WORKSPACE, "path": "views.json"}))["items"]
    assert {(issue["id"], issue["code"]) for issue in issues} == {
        ("typo", "expression-unknown-function"),
        ("quoted", "expression-unknown-name"),
    }
    await client.call("views/create", {"value": {"name": "More", "expression": "true"}})
    stored = json.loads(file.read_bytes())
    assert (stored["views"][:3], stored["kept"]) == (views, 1)


@pytest.mark.parametrize("content", [b"[1,", b'{"version": 1, "views": ', b"", b'{"views": {}}'])
async def test_a_broken_file_resets_no_view(client: Wire, daemon: Daemon, content: bytes) -> None:
    await client.call("views/create", {"value": {"name": "Kept", "expression": "isFlagged"}})
    file = daemon.base / "ws" / "views.json"
    good = file.read_bytes()
    file.write_bytes(content)
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    assert await listed(client, "view-kept") == ["loud"]
    with pytest.raises(Failed, match="Corrupt"):
        await client.call("views/create", {"value": {"name": "More", "expression": "true"}})
    assert file.read_bytes() == content
    assert [m for m in client.received if m.get("method") == "issues/didChange"]
    file.write_bytes(good)
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    await client.call("views/create", {"value": {"name": "More", "expression": "true"}})
    assert await listed(client, "view-kept") == ["loud"]
