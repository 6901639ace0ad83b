"""Rules files and decisions over the wire, with other programs that edit the files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.model.permission_defaults import DEFAULTS
from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire
from tests.workspace.house import SAVES, line

Connect = Callable[..., Awaitable[Wire]]
Save = Callable[[Path, bytes], None]

GOLDEN = Path(__file__).parents[1] / "golden/workspace"
SESSION = "260102-calm-reed"


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    root = set_up(daemon)
    shutil.copytree(GOLDEN / "home/workspaces/aurora-lab/sources", root / "sources", dirs_exist_ok=True)
    shutil.copy(GOLDEN / "home/workspaces/aurora-lab/permissions.json", root)
    folder = root / "sessions" / SESSION
    (folder / "plans").mkdir(parents=True)
    header = {"id": SESSION, "createdAt": 1, "messageCount": 0, "enabledSourceSlugs": ["tracker", "gone"]}
    (folder / "session.jsonl").write_bytes(line(header))
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    """Has subscribed to the workspace and the shared configuration."""
    client = await connect(daemon, WORKSPACE)
    await client.call("events/subscribe", {"workspace": WORKSPACE})
    await client.call("events/subscribe", {"workspace": None})
    return client


def events(client: Wire, noun: str = "permissions") -> list[tuple[str, Any]]:
    return [(m["method"], m["params"]) for m in client.received if str(m.get("method")).startswith(f"{noun}/")]


async def settled(client: Wire) -> None:
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    await client.call("daemon/sync", {"workspace": None})


async def asked(client: Wire, command: str, **more: Any) -> Any:
    params = {"workspace": WORKSPACE, "mode": "safe", "tool": "Bash", "input": {"command": command}, **more}
    return await client.call("permissions/check", params)


async def test_every_level_is_a_record_of_its_scope(client: Wire) -> None:
    page = await client.call("permissions/list", {"workspace": WORKSPACE})
    assert [item["id"] for item in page["items"]] == ["source:tracker", "workspace"]
    shared = await client.call("permissions/list")
    assert [item["id"] for item in shared["items"]] == ["default"]
    assert shared["items"][0]["value"] == DEFAULTS
    found = await client.call("permissions/get", {"workspace": WORKSPACE, "id": "workspace", "fields": ["version"]})
    assert found["item"]["value"] == {"version": "2026-06-01"}
    for params in ({"workspace": WORKSPACE, "id": "default"}, {"id": "workspace"}, {"id": "source:x"}):
        with pytest.raises(Failed, match="NotFound"):
            await client.call("permissions/get", params)
    with pytest.raises(Failed, match="InvalidParams"):
        await client.call("permissions/get", {"workspace": WORKSPACE, "id": "source:../x"})


async def test_an_update_is_durable_announced_and_decides_from_then_on(daemon: Daemon, client: Wire) -> None:
    assert (await asked(client, "npm run lint"))["decision"] == "deny"
    before = await client.call("permissions/get", {"workspace": WORKSPACE, "id": "workspace"})
    patch = {"add": {"/allowedBashPatterns": [{"pattern": "^npm run lint$"}]}}
    params = {"workspace": WORKSPACE, "id": "workspace", "patch": patch, "key": "k" * 16}
    done = await client.call("permissions/update", {**params, "expectedVersion": before["item"]["version"]})
    assert done["changed"] is True
    stored = json.loads((daemon.base / "ws" / "permissions.json").read_bytes())
    assert stored["allowedBashPatterns"][-1] == {"pattern": "^npm run lint$"}
    assert list(stored) == list(before["item"]["value"])
    [(name, told)] = events(client)
    assert name == "permissions/didChange"
    assert told["changes"] == [{"id": "workspace", "version": done["item"]["version"]}]
    found = await asked(client, "npm run lint")
    assert (found["decision"], found["rule"]["level"]) == ("allow", "workspace")
    with pytest.raises(Failed, match="VersionConflict"):
        await client.call(
            "permissions/update", {**params, "expectedVersion": before["item"]["version"], "key": "l" * 16}
        )
    again = {**params, "expectedVersion": before["item"]["version"]}
    repeated = await client.call("permissions/update", again)
    assert (repeated["item"]["version"], repeated["revision"]) == (done["item"]["version"], done["revision"])


async def test_a_file_is_made_by_the_first_update_of_its_level(daemon: Daemon, client: Wire) -> None:
    await client.call("permissions/update", {"id": "default", "patch": {"set": {"allowedMcpPatterns": ["list"]}}})
    stored = json.loads((daemon.config / "permissions" / "default.json").read_bytes())
    assert stored == {**DEFAULTS, "allowedMcpPatterns": ["list"]}
    (daemon.base / "ws" / "sources" / "tracker" / "permissions.json").unlink()
    await settled(client)
    params = {"workspace": WORKSPACE, "id": "source:tracker", "patch": {"set": {"allowedMcpPatterns": ["peek"]}}}
    await client.call("permissions/update", params)
    written = (daemon.base / "ws" / "sources" / "tracker" / "permissions.json").read_text()
    assert written == '{\n  "allowedMcpPatterns": [\n    "peek"\n  ]\n}\n'


async def test_what_is_wrong_is_refused_and_names_the_member(daemon: Daemon, client: Wire) -> None:
    before = (daemon.base / "ws" / "permissions.json").read_bytes()
    for patch in ({"allowedBashPatterns": ["("]}, {"allowedApiEndpoints": [{"method": "get", "path": "x"}]}):
        with pytest.raises(Failed, match="ValidationFailed") as refused:
            await client.call(
                "permissions/update", {"workspace": WORKSPACE, "id": "workspace", "patch": {"set": patch}}
            )
        assert next(iter(patch)) in json.dumps(refused.value.error)
    assert (daemon.base / "ws" / "permissions.json").read_bytes() == before


@pytest.mark.parametrize("save", SAVES)
async def test_somebody_else_s_edit_is_told_and_counts(daemon: Daemon, client: Wire, save: Save) -> None:
    places = {
        "workspace": (WORKSPACE, daemon.base / "ws" / "permissions.json"),
        "source:tracker": (WORKSPACE, daemon.base / "ws" / "sources" / "tracker" / "permissions.json"),
        "default": (None, daemon.config / "permissions" / "default.json"),
    }
    places["default"][1].parent.mkdir()
    for level, (_, path) in places.items():
        program = level.replace(":", "-")
        if path.exists():
            value = {**json.loads(path.read_bytes()), "allowedBashPatterns": [f"^{program}\\b"], "theirs": 1}
            save(path, json.dumps(value).encode())
        else:
            path.write_text(json.dumps({"allowedBashPatterns": [f"^{program}\\b"], "theirs": 1}))
    await settled(client)
    told = {change["changes"][0]["id"]: change for name, change in events(client) if name == "permissions/didChange"}
    assert told.keys() == places.keys()
    assert all(change["origin"]["kind"] == "disk" for change in told.values())
    for level in places:
        assert (await asked(client, level.replace(":", "-"), session=SESSION))["rule"]["level"] == level


async def test_a_change_on_top_of_somebody_else_s_edit_keeps_both(daemon: Daemon, client: Wire) -> None:
    path = daemon.base / "ws" / "permissions.json"
    value = json.loads(path.read_bytes())
    path.write_text(json.dumps({**value, "theirs": {"b": 1, "a": 2}, "allowedMcpPatterns": ["theirs"]}))
    params = {"workspace": WORKSPACE, "id": "workspace", "patch": {"set": {"version": "ours"}}}
    await client.call("permissions/update", params)
    stored = json.loads(path.read_bytes())
    assert stored == {**value, "version": "ours", "allowedMcpPatterns": ["theirs"], "theirs": {"b": 1, "a": 2}}
    assert list(stored["theirs"]) == ["b", "a"]


async def test_a_broken_file_keeps_the_last_good_rules_and_is_reported(daemon: Daemon, client: Wire) -> None:
    path = daemon.base / "ws" / "permissions.json"
    good = path.read_bytes()
    shutil.copy(GOLDEN / "invalid/permissions-not-json.json", path)
    shared = daemon.config / "permissions" / "default.json"
    shared.parent.mkdir()
    shutil.copy(GOLDEN / "invalid/permissions-bad-regex.json", shared)
    await settled(client)
    listed = await client.call("issues/list", {"workspace": WORKSPACE, "path": "permissions.json"})
    assert [(issue["code"], issue["id"]) for issue in listed["items"]] == [("not-json", "workspace")]
    of_all = await client.call("issues/list", {"path": "permissions/default.json"})
    assert [issue["range"]["start"]["line"] for issue in of_all["items"]] == [3, 6, 13, 20]
    told = {change["path"] for name, change in events(client, "issues")}
    assert told == {"permissions.json", "permissions/default.json"}
    assert (await asked(client, "make -n all"))["decision"] == "allow"
    assert (await asked(client, "ok", session=SESSION))["rule"]["level"] == "default"
    with pytest.raises(Failed, match="Corrupt"):
        await client.call(
            "permissions/update", {"workspace": WORKSPACE, "id": "workspace", "patch": {"set": {"version": "x"}}}
        )
    path.write_bytes(good)
    await settled(client)
    assert (await client.call("issues/list", {"workspace": WORKSPACE, "path": "permissions.json"}))["items"] == []


async def test_rules_come_and_go_with_their_source(daemon: Daemon, client: Wire) -> None:
    sources = daemon.base / "ws" / "sources"
    (sources / "other").mkdir()
    await settled(client)
    shutil.rmtree(sources / "tracker")
    await settled(client)
    assert [(name, change.get("id") or change["item"]["id"]) for name, change in events(client)] == [
        ("permissions/didCreate", "source:other"),
        ("permissions/didDelete", "source:tracker"),
    ]


async def test_a_session_s_sources_and_folders_count(daemon: Daemon, client: Wire) -> None:
    assert (await asked(client, "trackctl show 1"))["decision"] == "deny"
    assert (await asked(client, "trackctl show 1", session=SESSION))["rule"]["level"] == "source:tracker"
    folder = daemon.base / "ws" / "sessions" / SESSION
    (folder / "plans" / "out").symlink_to(daemon.base)
    (folder / "data").symlink_to(daemon.base)
    for path, decision in (
        ("plans/p.md", "allow"),
        ("plans/new/deep/p.md", "allow"),
        ("plans/../session.jsonl", "deny"),
        ("plans-evil/p.md", "deny"),
        ("plans/out/p.md", "deny"),
        ("data/p.md", "deny"),
    ):
        written = {"tool": "Write", "input": {"file_path": f"{folder}/{path}"}, "session": SESSION}
        assert (await asked(client, "", **written))["decision"] == decision, path
        found = await asked(client, f"ls > {folder}/{path}", session=SESSION)
        assert found["decision"] == decision, path
    assert list((folder / "plans").iterdir()) == [folder / "plans" / "out"]


async def test_the_three_modes_and_their_spellings_answer(client: Wire) -> None:
    answers = {}
    for mode in ("safe", "Explore", "ask to edit", "execute"):
        found = await asked(client, "rm -rf /", mode=mode)
        answers[mode] = found["decision"]
    assert answers == {"safe": "deny", "Explore": "deny", "ask to edit": "ask", "execute": "allow"}
    with pytest.raises(Failed, match="InvalidParams"):
        await asked(client, "ls", mode="readonly")
    with pytest.raises(Failed, match="NotFound"):
        await asked(client, "ls", session="260102-nobody-here")
    with pytest.raises(Failed, match="InvalidParams") as refused:
        await asked(client, "ls", session="../x")
    assert refused.value.error["data"]["issues"][0]["path"] == "session"
    with pytest.raises(Failed, match="InvalidParams"):
        await client.call("permissions/check", {"mode": "safe", "tool": "Bash", "input": {}, "session": SESSION})


async def test_a_decision_without_a_workspace_uses_the_shared_rules(client: Wire) -> None:
    params = {"mode": "safe", "tool": "Bash", "input": {"command": "git push"}}
    found = await client.call("permissions/check", params)
    assert (found["decision"], found["code"]) == ("deny", "not-listed")
    assert found["hint"]["command"] == "git"
    found = await client.call("permissions/check", {**params, "input": {"command": "git status"}})
    assert (found["decision"], found["rule"]["level"]) == ("allow", "default")


async def test_asking_changes_nothing(daemon: Daemon, client: Wire) -> None:
    await settled(client)
    before = {path: path.stat().st_mtime_ns for path in (daemon.base / "ws").rglob("*")}
    position = await client.call("daemon/sync", {"workspace": WORKSPACE})
    for command in ("ls", "rm x", "ls > plans/x"):
        await asked(client, command, session=SESSION)
    assert {path: path.stat().st_mtime_ns for path in (daemon.base / "ws").rglob("*")} == before
    assert await client.call("daemon/sync", {"workspace": WORKSPACE}) == position
