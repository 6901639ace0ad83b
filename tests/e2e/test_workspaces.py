"""The registry of workspaces: making, adopting, losing and forgetting folders."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import CRAFTD, Daemon, snapshot
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
Values = dict[str, Any]

FOLDERS = {"sessions", "sources", "skills", "statuses", "labels"}


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    daemon.start()
    return daemon


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon)


async def create(client: Wire, **params: Any) -> Values:
    item: Values = (await client.call("workspaces/create", params))["item"]
    return item


async def refused(client: Wire, method: str, params: Any) -> Failed:
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    return failed.value


async def listed(client: Wire) -> dict[str, Values]:
    """All workspaces by id."""
    return {item["id"]: item for item in (await client.call("workspaces/list", {"fields": ["*"]}))["items"]}


def registry(daemon: Daemon) -> Values:
    config: Values = json.loads((daemon.config / "config.json").read_bytes())
    return config


def a_workspace(root: Path, **more: Any) -> Path:
    """A folder that is a workspace already, with a session in it."""
    session = root / "sessions" / "260101-old-oak"
    session.mkdir(parents=True)
    (session / "session.jsonl").write_text('{"id":"260101-old-oak","createdAt":1,"lastUsedAt":1,"name":"Old"}\n')
    (root / "config.json").write_text(json.dumps({"id": "ws_0000000a", "name": "Old", "slug": "old", **more}))
    return root


async def test_a_new_workspace_is_a_folder_that_can_be_used_at_once(daemon: Daemon, client: Wire) -> None:
    await client.call("events/subscribe", {"topics": ["workspaces"]})
    item = await create(client, value={"name": "Garden Notes"})
    root = daemon.config / "workspaces" / "garden-notes"
    assert item["value"]["path"] == str(root)
    assert {path.name for path in root.iterdir()} == FOLDERS | {"config.json", "views.json", ".claude-plugin"}
    stored = json.loads((root / "config.json").read_bytes())
    assert stored["name"] == "Garden Notes"
    assert stored["id"].startswith("ws_")
    told = await client.notified("workspaces/didCreate")
    assert told["item"] == item
    [entry] = [entry for entry in registry(daemon)["workspaces"] if entry["id"] == item["id"]]
    assert entry["rootPath"] in (str(root), str(root).replace(daemon.home, "~"))
    for name in (item["id"], stored["id"], "garden-notes", str(root)):
        answer = await client.call("sessions/create", {"workspace": name, "value": {"name": name}})
        assert (root / "sessions" / answer["item"]["id"] / "session.jsonl").exists()
    assert (await client.call("sessions/list", {"workspace": item["id"]}))["total"] == 4
    assert (await client.call("statuses/list", {"workspace": item["id"]}))["total"] > 0


async def test_a_new_workspace_may_be_anywhere(daemon: Daemon, client: Wire) -> None:
    there = daemon.base / "deep" / "below" / "ws"
    item = await create(client, value={"name": "There", "path": str(there)})
    assert item["value"]["path"] == str(there)
    assert (there / "config.json").exists()
    at_home = await create(client, value={"name": "Home", "path": "~/notes"})
    assert at_home["value"]["path"] == f"{daemon.home}/notes"
    assert {"~/notes"} <= {entry["rootPath"] for entry in registry(daemon)["workspaces"]}


async def test_names_without_latin_letters_make_different_folders(daemon: Daemon, client: Wire) -> None:
    first, second = [await create(client, value={"name": "港口"}) for _ in range(2)]
    roots = [Path(item["value"]["path"]) for item in (first, second)]
    assert [root.name for root in roots] == ["workspace", "workspace-2"]
    assert first["id"] != second["id"]
    assert {item["value"]["name"] for item in (first, second)} == {"港口"}
    assert [json.loads((root / "config.json").read_bytes())["name"] for root in roots] == ["港口"] * 2

    made = await client.call("sessions/create", {"workspace": first["id"], "value": {"workingDirectory": "~/proj"}})
    assert made["item"]["value"]["workingDirectory"] == f"{daemon.home}/proj"
    line = (roots[0] / "sessions" / made["item"]["id"] / "session.jsonl").read_text()
    assert '"workingDirectory":"~/proj"' in line

    api = {"baseUrl": "https://x.example/", "authType": "none"}
    source = {"name": "Tides", "type": "api", "provider": "tides", "api": api}
    await client.call("sources/create", {"workspace": first["id"], "value": source})
    sources = [await client.call("sources/list", {"workspace": item["id"]}) for item in (first, second)]
    assert [page["total"] for page in sources] == [1, 0]


async def test_an_existing_workspace_is_registered_as_it_is(daemon: Daemon, client: Wire) -> None:
    root = a_workspace(daemon.base / "existing", futureField=[1])
    before = snapshot(root)
    item = await create(client, value={"path": str(root)})
    assert item["value"]["name"] == "Old"
    assert item["value"]["futureField"] == [1]
    assert snapshot(root) == before
    assert (await client.call("sessions/list", {"workspace": item["id"]}))["items"][0]["id"] == "260101-old-oak"
    link = daemon.base / "link to existing"
    link.symlink_to(root)
    for path in (str(root), f"{root}/", str(link)):
        failed = await refused(client, "workspaces/create", {"value": {"path": path}})
        assert failed.name == "AlreadyExists"
        assert failed.error["data"]["current"]["id"] == item["id"]
    assert snapshot(root) == before


async def test_a_folder_with_other_things_in_it_is_only_taken_when_that_was_meant(daemon: Daemon, client: Wire) -> None:
    root = daemon.base / "code"
    (root / "skills").mkdir(parents=True)
    (root / "main.py").write_text("print()")
    (root / "skills" / "mine.txt").write_text("mine")
    before = snapshot(root)
    failed = await refused(client, "workspaces/create", {"value": {"name": "Code", "path": str(root)}})
    assert (failed.name, failed.error["data"]["allowed"]) == ("InvalidState", ["adopt"])
    assert snapshot(root) == before
    await create(client, value={"name": "Code", "path": str(root)}, adopt=True)
    after = snapshot(root)
    assert {name: after[name] for name in ("main.py", "skills", "skills/mine.txt")} == before
    assert set(after) >= FOLDERS | {"config.json"}


@pytest.mark.parametrize("content", [b"{", b"[]", b"", b'{"name": NaN}'])
async def test_a_folder_whose_settings_cannot_be_read_is_left_alone(
    daemon: Daemon, client: Wire, content: bytes
) -> None:
    root = daemon.base / "unreadable"
    root.mkdir(exist_ok=True)
    (root / "config.json").write_bytes(content)
    before = snapshot(root)
    params = {"value": {"name": "x", "path": str(root)}, "adopt": True}
    assert (await refused(client, "workspaces/create", params)).name == "InvalidState"
    assert snapshot(root) == before


async def test_a_dry_run_does_nothing_but_say_what_would_be(daemon: Daemon, client: Wire) -> None:
    existing = await create(client, value={"name": "Existing"})

    def files() -> Values:
        return {path: what for path, what in snapshot(daemon.config).items() if not path.startswith("craftd/")}

    before, seen = files(), await listed(client)
    item = await create(client, value={"name": "Not Yet"}, dryRun=True)
    assert item["value"]["path"] == str(daemon.config / "workspaces" / "not-yet")
    assert item["value"]["name"] == "Not Yet"
    there = daemon.base / "nowhere" / "ws"
    item = await create(client, value={"path": str(there)}, dryRun=True)
    assert item["value"]["path"] == str(there)
    params = {"value": {"path": existing["value"]["path"]}, "dryRun": True}
    assert (await refused(client, "workspaces/create", params)).name == "AlreadyExists"
    assert not there.parent.exists()
    assert await listed(client) == seen
    assert files() == before


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({}, "value.name"),
        ({"name": ""}, "value.name"),
        ({"name": " "}, "value.name"),
        ({"name": 5}, "value.name"),
        ({"name": "x", "path": 5}, "value.path"),
        ({"name": "x", "path": "relative/folder"}, "value.path"),
        ({"name": "x", "path": "../up"}, "value.path"),
        ({"name": "x", "path": ""}, "value.path"),
        ({"name": "x", "path": "/tmp/nul\0"}, "value.path"),
        ({"name": "x", "path": "/tmp/half \ud83d"}, "value.path"),
        ({"name": "x", "colour": "red"}, "value.colour"),
    ],
)
async def test_a_workspace_that_cannot_be_meant_is_refused(
    daemon: Daemon, client: Wire, value: Values, path: str
) -> None:
    failed = await refused(client, "workspaces/create", {"value": value})
    assert failed.code == -32602
    assert [issue["path"] for issue in failed.error["data"]["issues"]] == [path]


async def test_a_file_is_no_folder(daemon: Daemon, client: Wire) -> None:
    (daemon.base / "file").write_text("x")
    for path in (daemon.base / "file", daemon.base / "file" / "below"):
        failed = await refused(client, "workspaces/create", {"value": {"name": "x", "path": str(path)}})
        assert failed.name in ("InvalidState", "IoError")
    assert (daemon.base / "file").read_text() == "x"


@pytest.mark.parametrize(
    "name", ["", "../x", "/", "/tmp/nul\0", "/half/\ud83d", "x" * 10_000, "/" + "x" * 10_000, "~nobody/x"]
)
async def test_a_name_that_fits_no_workspace_is_not_found(client: Wire, name: str) -> None:
    for method, params in (
        ("workspaces/get", {"id": name}),
        ("workspaces/delete", {"id": name}),
        ("workspaces/update", {"id": name, "patch": {}}),
        ("sessions/list", {"workspace": name}),
        ("sessions/create", {"workspace": name, "value": {}}),
        ("events/subscribe", {"workspace": name}),
    ):
        failed = await refused(client, method, params)
        assert failed.name == "NotFound"
        assert failed.error["data"]["resource"] == {"noun": "workspaces", "id": name}


async def test_an_editor_works_with_the_workspaces_around_its_folders(
    make_daemon: Callable[..., Daemon], connect: Connect
) -> None:
    daemon = make_daemon()
    above = daemon.base / "all of them"
    first, second = a_workspace(above / "first"), a_workspace(above / "second", id="ws_0000000b", slug="b")
    unknown = a_workspace(daemon.base / "unknown", id="ws_0000000c", slug="c")
    daemon.register(first=first, second=second)
    daemon.start()

    async def opened(**params: Any) -> list[str]:
        client = await daemon.dial()
        welcome = await client.initialize(**params)
        await client.close()
        return sorted(Path(workspace["path"]).name for workspace in welcome["workspaces"])

    def folders(*paths: Path) -> Values:
        return {"workspaceFolders": [{"uri": path.as_uri(), "name": path.name} for path in paths]}

    assert await opened() == []
    assert await opened(**folders(first)) == ["first"]
    assert await opened(rootUri=(first / "sessions" / "260101-old-oak").as_uri()) == ["first"]
    assert await opened(rootPath=str(second)) == ["second"]
    assert await opened(**folders(above)) == ["first", "second"]
    assert await opened(**folders(first, second, first)) == ["first", "second"]
    assert await opened(**folders(unknown, daemon.base / "nowhere")) == []
    assert await opened(rootPath="/nul\0") == []
    assert await opened(workspaceFolders=[{"uri": "file:///nul%00", "name": ""}, {"uri": "odd", "name": ""}]) == []
    # What a client names itself goes before its folders.
    assert await opened(craft={"workspaces": [{"id": "second"}]}, **folders(first)) == ["second"]
    assert await opened(craft={"workspaces": [{"path": str(first)}]}) == ["first"]
    assert await opened(craft={"workspaces": []}, **folders(first)) == []
    client = await daemon.dial()
    too_long = {"workspaces": [{"path": "/" + "x" * 5000}], "open": "register"}
    for craft in (
        {"workspaces": [{"id": "nowhere"}]}, {"workspaces": [{"path": "/nul\0"}]}, {"workspaces": [{}]}, too_long,
    ):  # fmt: skip
        with pytest.raises(Failed) as failed:
            await client.initialize(craft)
        assert failed.value.name == "NotFound"
    for craft in ({"workspace": []}, {"open": "sometimes"}, {"workspaces": [{"name": "first"}]}):
        with pytest.raises(Failed) as failed:
            await client.initialize(craft)
        assert failed.value.code == -32602
    await client.close()
    assert len(registry(daemon)["workspaces"]) == 2
    assert await opened(craft={"open": "register"}, **folders(unknown, daemon.base)) == ["first", "second", "unknown"]
    assert len(registry(daemon)["workspaces"]) == 3


async def test_settings_change_in_their_file_and_nowhere_else(daemon: Daemon, client: Wire) -> None:
    root = a_workspace(daemon.base / "settings", futureField={"keep": None}, createdAt=5)
    item = await create(client, value={"path": str(root)})
    await client.call("events/subscribe", {"topics": ["workspaces"]})
    patch = {"set": {"name": "New", "defaults": {"permissionMode": "safe"}}}
    params = {"id": item["id"], "patch": patch, "expectedVersion": item["version"]}
    answer = await client.call("workspaces/update", params)
    assert answer["changed"] is True
    stored = json.loads((root / "config.json").read_bytes())
    assert stored["name"] == "New"
    assert stored["defaults"] == {"permissionMode": "safe"}
    assert stored["futureField"] == {"keep": None}
    assert "path" not in stored
    told = await client.notified("workspaces/didChange")
    assert told["changes"] == [{"id": item["id"], "version": answer["item"]["version"]}]
    assert told["patch"]["set"]["name"] == "New"

    assert (await refused(client, "workspaces/update", params)).name == "VersionConflict"
    assert (await client.call("workspaces/update", {"id": item["id"], "patch": patch}))["changed"] is False
    before = (root / "config.json").read_bytes()
    for value in ({"name": ""}, {"id": "x"}, {"slug": "x"}, {"path": "/tmp"}, {"createdAt": 1}, {"defaults": 5}):
        failed = await refused(client, "workspaces/update", {"id": item["id"], "patch": {"set": value}})
        assert failed.name == "ValidationFailed"
        assert [issue["path"] for issue in failed.error["data"]["issues"]] == [*value]
    assert (root / "config.json").read_bytes() == before


async def test_a_workspace_that_is_forgotten_keeps_its_files(daemon: Daemon, client: Wire) -> None:
    root = a_workspace(daemon.base / "forgotten")
    item = await create(client, value={"path": str(root)})
    made = await client.call("sessions/create", {"workspace": item["id"], "value": {"name": "Kept"}})
    await client.call("events/subscribe", {"topics": ["workspaces"]})
    failed = await refused(client, "workspaces/delete", {"id": item["id"], "expectedVersion": "old"})
    assert failed.name == "VersionConflict"
    before = snapshot(root)
    await client.call("workspaces/delete", {"id": item["id"], "expectedVersion": item["version"]})
    assert (await client.notified("workspaces/didDelete"))["id"] == item["id"]
    assert snapshot(root) == before
    assert item["id"] not in await listed(client)
    assert (await refused(client, "sessions/list", {"workspace": item["id"]})).name == "NotFound"
    assert (await refused(client, "workspaces/delete", {"id": item["id"]})).name == "NotFound"
    await client.call("workspaces/delete", {"id": item["id"], "missingOk": True})
    again = await create(client, value={"path": str(root)})
    page = await client.call("sessions/list", {"workspace": again["id"]})
    assert {session["id"] for session in page["items"]} == {"260101-old-oak", made["item"]["id"]}


async def test_a_workspace_whose_folder_was_moved_is_found_there_and_stays_itself(
    daemon: Daemon, client: Wire, connect: Connect
) -> None:
    root, there = a_workspace(daemon.base / "before"), daemon.base / "after"
    id = (await create(client, value={"path": str(root)}))["id"]
    session = (await client.call("sessions/create", {"workspace": id, "value": {"name": "Kept"}}))["item"]["id"]
    secret = {"id": f"source_bearer::{id}::x", "value": {"value": "hush"}}
    await client.call("credentials/set", secret)
    await client.call("events/subscribe", {"topics": ["workspaces"]})
    os.rename(root, there)
    moved = await client.call("workspaces/move", {"id": id, "path": str(there)})
    assert (moved["item"]["id"], moved["item"]["value"]["path"], moved["changed"]) == (id, str(there), True)
    told = client.notifications("workspaces/didChange")  # that the folder was missing may have been told before
    assert told[-1]["patch"]["set"]["path"] == str(there)
    entry = next(one for one in registry(daemon)["workspaces"] if one["id"] == id)
    assert (entry["rootPath"], entry["slug"]) == (str(there).replace(daemon.home, "~"), "after")
    other = await connect(daemon)
    items = (await other.call("sessions/list", {"workspace": id}))["items"]
    assert session in {item["id"] for item in items}
    await other.call("sessions/update", {"workspace": id, "id": session, "patch": {"set": {"name": "There"}}})
    assert not root.exists()
    assert (await client.call("credentials/reveal", {"id": secret["id"]}))["value"]["value"] == "hush"
    assert (await client.call("workspaces/move", {"id": id, "path": str(there)}))["changed"] is False

    another = a_workspace(daemon.base / "another", id="ws_0000beef")
    taken = (await create(client, value={"path": str(a_workspace(daemon.base / "taken"))}))["value"]["path"]
    for path, name in (
        (str(another), "InvalidState"), (str(daemon.base), "InvalidState"), (str(root), "InvalidState"),
        ("after", "InvalidParams"), (taken, "AlreadyExists"), (str(daemon.config), "Forbidden"),
    ):  # fmt: skip
        assert (await refused(client, "workspaces/move", {"id": id, "path": path})).name == name, path
    assert (await refused(client, "workspaces/move", {"id": "nobody", "path": str(there)})).name == "NotFound"


async def test_a_folder_that_vanished_is_reported_and_never_made_again(
    daemon: Daemon, client: Wire, connect: Connect
) -> None:
    root = a_workspace(daemon.base / "vanishing")
    id = (await create(client, value={"path": str(root)}))["id"]
    await client.call("sessions/list", {"workspace": id})
    params = {"workspace": id, "session": "260101-old-oak"}
    await client.call("messages/append", {**params, "messages": [{"type": "user", "content": "x"}]})
    await client.call("daemon/sync", {"workspace": id})  # line 1 may be about to follow
    shutil.rmtree(root)
    for again in range(2):
        item = (await listed(client))[id]
        assert item["info"]["missing"] is True
        issues = (await client.call("issues/list"))["items"]
        assert ("folder-missing", id) in [(issue["code"], issue.get("id")) for issue in issues]
        for method, more in (
            ("sessions/create", {"value": {"name": "x"}}),
            ("messages/append", {"session": "260101-old-oak", "messages": [{"type": "user", "content": "y"}]}),
            ("sessions/update", {"id": "260101-old-oak", "patch": {"set": {"name": "y"}}}),
            ("sessions/delete", {"id": "260101-old-oak"}),
            ("projects/create", {"value": {"name": "x"}}),
            ("labels/create", {"value": {"name": "x"}}),
        ):
            failed = await refused(client, method, {"workspace": id, **more})
            assert failed.name == "NotFound", (method, again)
        failed = await refused(client, "workspaces/update", {"id": id, "patch": {"set": {"name": "x"}}})
        assert failed.name == "NotFound"
        assert not root.exists()
        if not again:
            daemon.restart()
            client = await connect(daemon)
    assert not root.exists()
    a_workspace(root)  # it comes back, from a disk that was away
    assert (await client.call("sessions/list", {"workspace": id}))["total"] == 1
    assert "info" not in (await listed(client))[id]


async def test_two_entries_of_one_folder_are_one_scope(make_daemon: Callable[..., Daemon], connect: Connect) -> None:
    daemon = make_daemon()
    root = a_workspace(daemon.base / "ws")
    link = daemon.base / "link"
    link.symlink_to(root)
    other = a_workspace(daemon.base / "other", id="ws_0000000b", slug="other")
    daemon.register(first=root, second=root, third=link, other=other)
    daemon.start()
    client = await connect(daemon)
    aliases = {id: item.get("info", {}).get("aliasOf") for id, item in (await listed(client)).items()}
    assert aliases == {"first": None, "second": "first", "third": "first", "other": None}

    await client.call("events/subscribe", {"workspace": "third"})
    made = await client.call("sessions/create", {"workspace": "second", "value": {"name": "One"}})
    told = await client.notified("sessions/didCreate")
    assert told["workspace"] == "first"
    assert (told["epoch"], told["revision"]) == (made["epoch"], made["revision"])
    positions = [await client.call("daemon/sync", {"workspace": name}) for name in ("first", "second", "third")]
    assert positions[0] == positions[1] == positions[2]
    assert len((await client.call("daemon/status"))["workspaces"]) == 1
    both = await connect(daemon, "second", "third")
    assert (await both.call("sessions/list"))["total"] == 2  # one scope, so it need not be named
    # What is forgotten is the entry that was named.
    await client.call("workspaces/delete", {"id": "second"})
    assert set(await listed(client)) == {"first", "third", "other"}
    assert (await client.call("sessions/list", {"workspace": "third"}))["total"] == 2
    await client.call("workspaces/delete", {"id": "first"})
    assert (await listed(client))["third"].get("info") is None
    assert (await client.call("sessions/list", {"workspace": "third"}))["total"] == 2


# The list itself


UNUSABLE = [b"{", b"", b"[]", b'{"workspaces": {}}', b'{"workspaces": [NaN]}', b"\xff\xfe{}"]


@pytest.mark.parametrize("content", UNUSABLE)
async def test_a_list_of_workspaces_that_cannot_be_read_is_never_written_over(
    make_daemon: Callable[..., Daemon], connect: Connect, content: bytes
) -> None:
    daemon = make_daemon()
    root = a_workspace(daemon.base / "ws")
    daemon.register(ws=root)
    good = (daemon.config / "config.json").read_bytes()
    (daemon.config / "config.json").write_bytes(content)
    daemon.start()
    client = await connect(daemon)
    for broken_at_start in (True, False):
        known = {} if broken_at_start else {"ws"}
        assert set(await listed(client)) == set(known)
        issues = (await client.call("issues/list"))["items"]
        assert {(issue["path"], issue["severity"]) for issue in issues} == {("config.json", "error")}
        for method, params in (
            ("workspaces/create", {"value": {"name": "x"}}),
            ("workspaces/create", {"value": {"name": "x"}, "dryRun": True}),
            ("workspaces/delete", {"id": "ws", "missingOk": True}),
        ):
            failed = await refused(client, method, params)
            assert failed.name == "Corrupt"
        if not broken_at_start:
            assert (await client.call("sessions/list", {"workspace": "ws"}))["total"] == 1  # the last good list
        assert (daemon.config / "config.json").read_bytes() == content
        assert not (daemon.config / "workspaces").exists()
        if broken_at_start:
            (daemon.config / "config.json").write_bytes(good)
            assert set(await listed(client)) == {"ws"}
            assert (await client.call("issues/list"))["items"] == []
            assert (await client.call("sessions/list", {"workspace": "ws"}))["total"] == 1
            (daemon.config / "config.json").write_bytes(content)
    assert daemon.stop() == 0
    assert (daemon.config / "config.json").read_bytes() == content


async def test_a_list_of_workspaces_keeps_what_we_do_not_understand(
    make_daemon: Callable[..., Daemon], connect: Connect
) -> None:
    daemon = make_daemon()
    root = a_workspace(daemon.base / "ws")
    config = {
        "llmConnections": [{"slug": "main", "apiKey": None}],
        "workspaces": [
            {"id": "ws", "name": "Old", "rootPath": str(root), "iconUrl": "x", "remoteServer": {"url": "y"}},
            "odd",
            {"id": "no root"},
            {"id": "nul", "rootPath": "/nul\0"},
            {"id": "half", "rootPath": "/half \ud83d"},
            {"id": "../up", "rootPath": str(root)},
            {"id": "gone", "rootPath": str(daemon.base / "gone")},
        ],
        "activeWorkspaceId": "nowhere",
        "futureField": {"a": [1, None]},
    }
    text = json.dumps(config)
    (daemon.config / "config.json").write_text(text)
    daemon.start()
    client = await connect(daemon)
    assert set(await listed(client)) == {"ws", "gone"}
    await client.call("sessions/list", {"workspace": "ws"})
    assert (daemon.config / "config.json").read_text() == text  # a dangling choice is nothing to repair unasked
    made = await create(client, value={"name": "New"})
    now = registry(daemon)
    assert now["workspaces"][:-1] == config["workspaces"]
    assert now["workspaces"][-1]["id"] == made["id"]
    assert {name: now[name] for name in config if name != "workspaces"} == {
        name: value for name, value in config.items() if name != "workspaces"
    }
    await client.call("workspaces/delete", {"id": made["id"]})
    assert registry(daemon) == config


async def test_a_change_of_the_list_by_somebody_else_is_noticed_and_kept(
    make_daemon: Callable[..., Daemon], connect: Connect
) -> None:
    daemon = make_daemon()
    first, second = a_workspace(daemon.base / "first"), a_workspace(daemon.base / "second", id="ws_0000000b", slug="b")
    daemon.register(first=first)
    daemon.start()
    client = await connect(daemon)
    await client.call("events/subscribe", {"topics": ["workspaces"]})
    daemon.register(first=first, second=second)
    await client.call("daemon/sync")
    told = await client.notified("workspaces/didCreate")
    assert (told["item"]["id"], told["origin"]["kind"]) == ("second", "disk")
    assert (await client.call("sessions/list", {"workspace": "second"}))["total"] == 1
    (second / "config.json").write_text(json.dumps({"id": "ws_0000000b", "name": "Renamed", "slug": "b"}))
    await client.call("daemon/sync")
    told = await client.notified("workspaces/didChange")
    assert told["patch"] == {"set": {"name": "Renamed"}}
    daemon.register(second=second)
    await create(client, value={"name": "Third"})
    assert (await client.notified("workspaces/didDelete"))["id"] == "first"
    assert [entry["name"] for entry in registry(daemon)["workspaces"]] == ["second", "Third"]


# Where everything is


@pytest.mark.parametrize("spelling", ["absolute", "relative", "home"])
async def test_everything_lies_below_the_configuration_folder(
    make_daemon: Callable[..., Daemon], connect: Connect, spelling: str
) -> None:
    daemon = make_daemon()
    home = daemon.base / "home"
    home.mkdir()
    daemon.config.rmdir()  # it need not exist
    if spelling == "home":
        daemon.environment["CRAFT_CONFIG_DIR"] = "~/../cfg"
    elif spelling == "relative":
        daemon.environment["CRAFT_CONFIG_DIR"] = "cfg"

    def craftd(*arguments: str) -> bytes:
        command = [*CRAFTD, *arguments]
        return subprocess.run(
            command, cwd=daemon.base, env=daemon.environment, check=True, capture_output=True, timeout=30
        ).stdout

    made = await asyncio.to_thread(craftd, "call", "workspaces/create", '{"value": {"name": "Here"}}')
    try:
        item = json.loads(made)["item"]
        assert item["value"]["path"] == str(daemon.config / "workspaces" / "here")
        client = await connect(daemon, item["id"])
        await client.call("sessions/create", {"value": {"name": "x"}})
        assert {path.name for path in daemon.config.iterdir()} >= {"config.json", "workspaces", "craftd"}
    finally:
        await asyncio.to_thread(craftd, "stop")
    assert list(home.iterdir()) == []
    assert {path.name for path in daemon.base.iterdir()} == {"cfg", "home", "run"}
