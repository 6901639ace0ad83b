"""Branches of sessions at a message, and copies: what they have, where their paths lead, and failures."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon, snapshot
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
Header = dict[str, Any]

KEY = "a-key-of-sixteen-or-more"
PARENT = "260704-quiet-fjord"
SDK = "0f1e2d3c-sdk"
FILES = ["attachments/a b.png", "attachments/later.png", "data/out.json", "data/unnamed.json", "long_responses/r.txt"]


@pytest.fixture(scope="module")
def shared(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    root = set_up(daemon)
    write_parent(root, PARENT)
    daemon.start()
    return daemon


def write_parent(root: Path, id: str, **more: Any) -> None:
    """A session as the app leaves it: tokens, one line that names the folder, sidecars, files."""
    folder = root / "sessions" / id
    header: Header = {
        "id": id, "workspaceRootPath": str(root), "sdkSessionId": SDK, "sdkCwd": "{{SESSION_PATH}}", "createdAt": 1,
        "lastUsedAt": 2, "lastMessageAt": 3, "name": "Parent", "labels": ["bug"], "sessionStatus": "done",
        "model": "opus", "llmConnection": "work", "connectionLocked": True, "sharedUrl": "https://x.test/s",
        "isArchived": True, "archivedAt": 10**12, "taskSlug": "t", "futureField": {"a": 1}, "messageCount": 5,
        "tokenUsage": {"inputTokens": 7}, **more,
    }  # fmt: skip
    messages: list[dict[str, Any]] = [
        {"id": "m1", "content": "see {{SESSION_PATH}}/attachments/a b.png.", "timestamp": 10, "type": "user"},
        {"id": "m2", "content": f"and {folder}/data/out.json, not {folder}-2/x", "timestamp": 11, "type": "tool"},
        {"id": "m3", "content": "Full data saved to: {{SESSION_PATH}}/long_responses/r.txt", "type": "assistant"},
        {"id": "m4", "content": "{{SESSION_PATH}}/attachments/later.png", "timestamp": 13, "type": "user"},
        {"id": "m5", "content": "done", "timestamp": 14, "type": "assistant"},
    ]
    lines = [json.dumps(line, separators=(",", ":")) for line in (header, *messages)]
    for path in (*FILES, "notes.md", "tmp/resized.png", ".hidden"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"content of {path}")
    (folder / "attachments" / "link.png").symlink_to("/etc/hostname")
    (folder / "meta").mkdir()
    claude = {
        "m3": {"sdkSessionId": SDK, "sdkMessageUuid": "turn-3"},
        "m5": {"sdkSessionId": "x", "sdkMessageUuid": "t"},
    }
    (folder / "meta" / "claude-turn-anchors.json").write_text(json.dumps({"version": 1, "anchors": claude}))
    pi = {"m1": "entry-1", "m4": "entry-4", "m2": 7}
    (folder / "meta" / "pi-turn-anchors.json").write_text(json.dumps({"version": 1, "anchors": pi}))
    (folder / "session.jsonl").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
async def client(shared: Daemon, connect: Connect) -> Wire:
    return await connect(shared, WORKSPACE)


@pytest.fixture
def root(shared: Daemon) -> Path:
    return shared.base / "ws"


async def branch(client: Wire, message: str, session: str = PARENT, **params: Any) -> Any:
    point = {"session": session, "message": message}
    return (await client.call("sessions/create", {"value": {}, "from": point, **params}))["item"]


async def refused(client: Wire, method: str, params: dict[str, Any]) -> Failed:
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    return failed.value


def lines(root: Path, id: str) -> list[bytes]:
    return (root / "sessions" / id / "session.jsonl").read_bytes().splitlines()


def files(root: Path, id: str) -> set[str]:
    """Of the session's folder, but the transcript."""
    folder = root / "sessions" / id
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() or path.is_symlink()}
    return found - {"session.jsonl"}


async def texts(client: Wire, id: str) -> list[str]:
    items = (await client.call("messages/list", {"session": id}))["items"]
    return [item["value"]["content"] for item in items]


async def test_a_branch_begins_with_the_messages_up_to_one_and_their_files(client: Wire, root: Path) -> None:
    await client.call("events/subscribe", {"workspace": WORKSPACE, "topics": ["sessions"]})
    before = snapshot(root / "sessions" / PARENT)
    item = await branch(client, "m3")
    id, value = item["id"], item["value"]
    folder = root / "sessions" / id
    assert [told["item"] for told in client.notifications("sessions/didCreate")] == [item]
    assert {
        name: value.get(name) for name in ("name", "labels", "sessionStatus", "sharedUrl", "futureField")
    } == dict.fromkeys(("name", "labels", "sessionStatus", "sharedUrl", "futureField"))
    assert {name: value[name] for name in value if name.startswith("branch")} == {
        "branchFromMessageId": "m3",
        "branchFromSdkSessionId": SDK,
        "branchFromSessionPath": str(root / "sessions" / PARENT),
        "branchFromSdkCwd": str(root / "sessions" / PARENT),
        "branchFromSdkTurnId": "turn-3",
    }
    assert "sdkSessionId" not in value
    assert (value["model"], value["llmConnection"], value["messageCount"]) == ("opus", "work", 3)
    assert (value["lastFinalMessageId"], value["tokenUsage"]["inputTokens"]) == ("m3", 0)
    stored = json.loads(lines(root, id)[0])
    assert (stored["branchFromSessionPath"], stored["branchFromSdkCwd"]) == 2 * (f"{{{{SESSION_PATH}}}}/../{PARENT}",)
    there = lines(root, PARENT)
    assert lines(root, id)[1::2] == there[1:4:2]  # as they are
    assert json.loads(lines(root, id)[2])["content"] == (
        f"and {{{{SESSION_PATH}}}}/data/out.json, not {root / 'sessions' / PARENT}-2/x"
    )
    assert await texts(client, id) == [
        f"see {folder}/attachments/a b.png.",
        f"and {folder}/data/out.json, not {root / 'sessions' / PARENT}-2/x",
        f"Full data saved to: {folder}/long_responses/r.txt",
    ]
    assert files(root, id) == {
        "attachments/a b.png",
        "data/out.json",
        "long_responses/r.txt",
        "meta/pi-turn-anchors.json",
    }
    assert (folder / "data/out.json").read_text() == "content of data/out.json"
    assert json.loads((folder / "meta/pi-turn-anchors.json").read_text()) == {
        "version": 1,
        "anchors": {"m1": "entry-1"},
    }
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {
        "attachments", "plans", "long_responses", "data", "downloads", "meta"
    }  # fmt: skip
    assert id in (await client.call("sessions/get", {"id": PARENT}))["item"]["info"]["branches"]
    assert snapshot(root / "sessions" / PARENT) == before
    # It goes on by itself.
    await client.call("messages/append", {"session": id, "messages": [{"id": "n1", "type": "user", "content": "on"}]})
    assert len(await texts(client, PARENT)) == 5


async def test_a_branch_leads_to_its_own_files_where_the_workspace_was_moved(
    client: Wire, root: Path, make_daemon: Callable[..., Daemon]
) -> None:
    id = (await branch(client, "m3"))["id"]
    daemon = make_daemon()
    moved = daemon.base / "moved to"
    shutil.copytree(root, moved, symlinks=True)
    daemon.register(moved=moved)
    daemon.start()
    there = await daemon.connect("moved")
    folder = moved / "sessions" / id
    assert (await texts(there, id))[0] == f"see {folder}/attachments/a b.png."
    assert (folder / "attachments" / "a b.png").exists()
    value = (await there.call("sessions/get", {"id": id}))["item"]["value"]
    assert value["branchFromSessionPath"] == value["branchFromSdkCwd"] == str(moved / "sessions" / PARENT)
    assert id in (await there.call("sessions/get", {"id": PARENT}))["item"]["info"]["branches"]
    await there.call("sessions/update", {"id": id, "patch": {"set": {"name": "Moved"}}})
    assert json.loads(lines(moved, id)[0])["branchFromSessionPath"] == f"{{{{SESSION_PATH}}}}/../{PARENT}"
    await there.close()


async def test_a_branch_can_say_otherwise(client: Wire) -> None:
    value = (await branch(client, "m1", value={"name": "Own", "llmConnection": "home", "labels": ["priority::1"]}))[
        "value"
    ]
    assert (value["name"], value["llmConnection"], value["labels"]) == ("Own", "home", ["priority::1"])
    # Another connection cannot go on with what the provider knows: the session is told the transcript.
    assert {name for name in value if name.startswith("branch")} == {"branchFromMessageId", "branchFromSessionPath"}
    turn = (await branch(client, "m4"))["value"]["branchFromSdkTurnId"]
    assert turn == "entry-4"
    assert "branchFromSdkTurnId" not in (await branch(client, "m5"))["value"]  # its turn is of another conversation


async def test_a_session_without_a_provider_can_be_branched(client: Wire) -> None:
    id = (await client.call("sessions/create", {"value": {}}))["item"]["id"]
    asked = [
        client.ask("messages/append", {"session": id, "messages": [{"id": f"m{n}", "type": "user", "content": "x"}]})
        for n in range(3)
    ]
    point = {"session": id, "message": "m2"}
    asked.append(client.ask("sessions/create", {"id": "at-once", "value": {}, "from": point}))
    asked.append(client.ask("sessions/update", {"id": "at-once", "patch": {"set": {"name": "Named"}}}))
    answers = await asyncio.gather(*map(client.answer, asked))
    value = answers[-1]["item"]["value"]
    assert (value["name"], value["messageCount"], value["branchFromMessageId"]) == ("Named", 3, "m2")
    assert "branchFromSdkSessionId" not in value
    grandchild = await branch(client, "m1", "at-once")
    assert grandchild["value"]["branchFromSessionPath"].endswith("/sessions/at-once")


async def test_what_cannot_be_branched_is_refused_and_nothing_is_left(client: Wire, root: Path) -> None:
    write_parent(root, "torn-head")
    (root / "sessions" / "torn-head" / "session.jsonl").write_text('{"id":"torn\n{"id":"m1","type":"user"}\n')
    (root / "sessions" / "linked").symlink_to(PARENT)
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    before = snapshot(root)

    def point(session: str, message: str = "m1", **more: Any) -> dict[str, Any]:
        return {"value": {}, "from": {"session": session, "message": message}, **more}

    cases: list[tuple[dict[str, Any], str]] = [
        (point("260101-no-one"), "NotFound"),
        (point(PARENT, "m9"), "NotFound"),
        (point("../x"), "InvalidParams"),
        (point(PARENT, id=PARENT), "AlreadyExists"),
        (point("torn-head"), "Corrupt"),
        (point("linked"), "Forbidden"),
        ({"value": {}, "from": {"session": PARENT}}, "InvalidParams"),
        (point(PARENT, value={"parentSessionId": "260101-no-one"}), "ValidationFailed"),
        (point(PARENT, value={"branchFromMessageId": 5}), "ValidationFailed"),
        (point(PARENT, value={"labels": ["no-such-label"]}), "ValidationFailed"),
    ]
    for params, name in cases:
        assert (await refused(client, "sessions/create", params)).name == name, params
    assert (await refused(client, "sessions/create", point("../x"))).error["data"]["issues"][0][
        "path"
    ] == "from.session"
    assert snapshot(root) == before


async def test_a_branch_asked_for_again_with_its_key_is_made_once(client: Wire, root: Path) -> None:
    params = {"value": {}, "from": {"session": PARENT, "message": "m2"}, "key": KEY}
    first = await client.call("sessions/create", params)
    names = os.listdir(root / "sessions")
    assert await client.call("sessions/create", params) == first
    assert os.listdir(root / "sessions") == names


async def test_nothing_is_copied_while_another_program_may_write(client: Wire, root: Path, shared: Daemon) -> None:
    await client.call("daemon/release")
    before = snapshot(root)
    lock = shared.config / ".server.lock"
    lock.write_text(json.dumps({"pid": os.getppid(), "startedAt": int(time.time() * 1000)}))
    try:
        assert (await refused(client, "sessions/duplicate", {"session": PARENT})).name == "ReadOnly"
        assert snapshot(root) == before
    finally:
        lock.unlink()
    await branch(client, "m1")


async def test_a_copy_has_everything_but_what_belongs_to_one_session_alone(client: Wire, root: Path) -> None:
    answer = await client.call("sessions/duplicate", {"session": PARENT, "value": {"isFlagged": True}})
    id, value = answer["item"]["id"], answer["item"]["value"]
    origin = (await client.call("sessions/get", {"id": PARENT}))["item"]["value"]
    same = ("name", "labels", "sessionStatus", "model", "llmConnection", "futureField", "tokenUsage", "lastMessageAt")
    assert {name: value[name] for name in same} == {name: origin[name] for name in same}
    gone = {"sdkSessionId", "connectionLocked", "sharedUrl", "isArchived", "archivedAt", "taskSlug"}
    assert not gone & value.keys()
    assert (value["isFlagged"], value["messageCount"], value["branchFromMessageId"]) == (True, 5, "m5")
    assert value["sdkCwd"] == str(root / "sessions" / id)
    assert value["createdAt"] > 1
    assert lines(root, id)[1::2] == lines(root, PARENT)[1::2]
    assert files(root, id) == {*FILES, "notes.md", "meta/claude-turn-anchors.json", "meta/pi-turn-anchors.json"}
    for path in files(root, id):
        assert (root / "sessions" / id / path).read_bytes() == (root / "sessions" / PARENT / path).read_bytes()
        assert (root / "sessions" / id / path).stat().st_nlink == 1
    assert (await refused(client, "sessions/duplicate", {"session": PARENT, "id": id})).name == "AlreadyExists"
    wrong = await refused(client, "sessions/duplicate", {"session": PARENT, "value": {"createdAt": 5, "isFlagged": 1}})
    assert [issue["path"] for issue in wrong.error["data"]["issues"]] == ["createdAt", "isFlagged"]


async def test_a_copy_keeps_what_cannot_be_read(client: Wire, root: Path) -> None:
    write_parent(root, "worn", labels=["gone-since"], parentSessionId="260101-no-one", projectId="proj_gone")
    path = root / "sessions" / "worn" / "session.jsonl"
    path.write_bytes(
        path.read_bytes() + b'{"id":"m6","content":"to\n\xff\xfe\n{"id":"m7","type":"user","content":"on"}\n'
    )
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    item = (await client.call("sessions/duplicate", {"session": "worn"}))["item"]
    assert lines(root, item["id"])[6:] == lines(root, "worn")[6:]
    assert {one["code"] for one in item["info"]["damage"]} == {"line-unreadable"}
    assert (item["value"]["labels"], item["value"]["parentSessionId"]) == (["gone-since"], "260101-no-one")
    below = (await branch(client, "m7", "worn"))["id"]
    items = (await client.call("messages/list", {"session": below}))["items"]
    assert [one["id"] for one in items] == ["m1", "m2", "m3", "m4", "m5", "m7"]


async def test_a_request_that_is_taken_back_leaves_nothing(client: Wire, root: Path) -> None:
    write_parent(root, "large")
    (root / "sessions" / "large" / "data" / "big.bin").write_bytes(bytes(60_000_000))
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    asked = [client.ask("sessions/duplicate", {"session": "large", "id": f"taken-back-{n}"}) for n in range(3)]
    for id in asked:
        client.send("$/cancelRequest", {"id": id})
    answers = await asyncio.gather(*map(client.answer, asked), return_exceptions=True)
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    there = {path.name for path in (root / "sessions").iterdir() if path.name.startswith((".", "taken"))} - {".keep"}
    made = {f"taken-back-{n}" for n, answer in enumerate(answers) if not isinstance(answer, Failed)}
    assert there == made
    assert len(made) < 3


async def test_a_session_that_is_deleted_while_it_is_copied_is_not_found_or_copied_whole(
    client: Wire, root: Path, shared: Daemon, connect: Connect
) -> None:
    other = await connect(shared, WORKSPACE)
    for number in range(8):
        id = f"260103-short-lived-{number}"
        await client.call("sessions/create", {"id": id, "value": {}})
        for file in range(20):
            (root / "sessions" / id / "data" / f"{file}.txt").write_text("x")
        copy = client.ask("sessions/duplicate", {"session": id})
        await other.call("sessions/delete", {"id": id})
        [made] = await asyncio.gather(client.answer(copy), return_exceptions=True)
        if isinstance(made, Failed):
            assert made.name == "NotFound"
        else:
            assert len(list((root / "sessions" / made["item"]["id"] / "data").iterdir())) == 20
