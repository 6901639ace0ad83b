"""`sessions/repair` over the wire: every recorded damage, two clients, and what is on disk afterwards."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.daemon import Daemon, snapshot
from tests.model import golden
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

FIELD = Path(__file__).parents[1] / "field_bugs"
DAMAGED = sorted(folder.name for folder in golden.FOLDERS.iterdir() if "2604" < folder.name < "260499")
UNDAMAGED = {"260405-crlf-lines", "260406-with-bom", "260407-left-tmp"}
HURT = sorted(path.parent for name in ("O02", "O03", "O04") for path in (FIELD / name).rglob("session.jsonl"))
MINUTE = 60_000_000_000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded workspace with the damaged sessions of field bugs."""
    root = tmp_path_factory.mktemp("repair") / "ws"
    shutil.copytree(golden.SESSIONS / "workspace", root)
    for folder in HURT:
        shutil.copytree(folder, root / "sessions" / folder.name)
    return root


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon], root: Path) -> Daemon:
    daemon = make_daemon(home=golden.HOME)
    daemon.register(ws=root)
    daemon.start()
    return daemon


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, "ws")


def file_of(root: Path, session: str) -> Path:
    path = root / "sessions" / session / "session.jsonl"
    return path if path.exists() else path.with_name("session.jsonl.tmp")


async def a_session(client: Wire, root: Path, id: str, *lines: bytes, head: bytes | None = None) -> Path:
    """Made by another program, and noticed; its file."""
    header = json.dumps({"id": id, "createdAt": 1, "name": "Old", "labels": ["bug"]}).encode() + b"\n"
    path = root / "sessions" / id / "session.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join((header if head is None else head, *lines)))
    await client.call("daemon/sync", {"workspace": "ws"})
    return path


def line(id: str, content: str = "text", kind: str = "user") -> bytes:
    return json.dumps({"id": id, "content": content, "timestamp": 7, "type": kind}).encode() + b"\n"


async def ids(client: Wire, session: str) -> list[str]:
    page = await client.call("messages/list", {"session": session, "limit": 500})
    return [item["id"] for item in page["items"]]


async def damage(client: Wire, session: str) -> list[str]:
    item = (await client.call("sessions/get", {"id": session}))["item"]
    return [one["code"] for one in item["info"].get("damage", [])]


@pytest.mark.parametrize("session", [*DAMAGED, *(folder.name for folder in HURT)])
async def test_a_damaged_session_is_mended_and_what_it_was_stays_beside(
    client: Wire, daemon: Daemon, connect: Connect, root: Path, session: str
) -> None:
    other = await connect(daemon, "ws")
    await other.call("events/subscribe", {"workspace": "ws", "topics": ["sessions", "messages", "issues"]})
    path = file_of(root, session)
    before = path.read_bytes()
    codes = await damage(client, session)
    readable = [id for id in await ids(client, session) if not id.startswith("~")]

    dry = await client.call("sessions/repair", {"id": session, "dryRun": True})
    assert [one["code"] for one in dry["found"]] == codes
    assert (dry["changed"], "kept" in dry, path.read_bytes()) == (False, False, before)

    answer = await client.call("sessions/repair", {"id": session})
    assert answer["found"] == dry["found"]
    assert answer["changed"] == (bool(codes) and session not in UNDAMAGED)
    assert "damage" not in answer["item"].get("info", {})
    assert await damage(client, session) == []
    after = await ids(client, session)
    assert after == [f"{id}-2" if id in readable[:at] else id for at, id in enumerate(readable)]
    if not codes:
        assert path.read_bytes() == before
        return
    assert path.with_name(answer["kept"]).read_bytes() == before
    path = path.with_name("session.jsonl")
    header, *rest = [json.loads(text) for text in path.read_bytes().decode().split("\n") if text.strip()]
    assert (header["id"], header["messageCount"]) == (session, len(after))
    assert [one["id"] for one in rest] == after

    # Whoever follows is told, and nothing is written again.
    issues = [one for one in other.notifications("issues/didChange") if one["path"].startswith(f"sessions/{session}/")]
    await other.call("daemon/sync", {"workspace": "ws"})
    issues = [one for one in other.notifications("issues/didChange") if one["path"].startswith(f"sessions/{session}/")]
    assert issues[-1]["issues"] == []
    there = snapshot(path.parent)
    again = await client.call("sessions/repair", {"id": session})
    assert (again["changed"], again["found"], again["revision"]) == (False, [], answer["revision"])
    assert snapshot(path.parent) == there

    # And it can be worked with.
    await client.call(
        "messages/append", {"session": session, "messages": [{"id": "new", "type": "user", "content": "x"}]}
    )
    assert await ids(client, session) == [*after, "new"]


async def test_what_is_sound_is_left_alone(client: Wire, root: Path) -> None:
    for session in golden.SOUND:
        before = snapshot(root / "sessions" / session)
        answer = await client.call("sessions/repair", {"id": session})
        if session in golden.OVERSIZED and answer["changed"]:
            assert session == "260315-high-mesa-2"
            assert len(file_of(root, session).read_bytes().split(b"\n")[0]) <= 8192
            continue
        assert [one["code"] for one in answer["found"]] == (
            ["header-oversized"] if session == "260315-high-mesa-3" else []
        )
        assert all("remedy" not in one for one in answer["found"])
        assert snapshot(root / "sessions" / session) == before


async def test_damaged_lines_go_one_by_one_for_who_follows(client: Wire, root: Path) -> None:
    path = await a_session(client, root, "one-by-one", line("m1"), b"null\n", line("m2"), b"torn")
    await client.call("events/subscribe", {"workspace": "ws", "topics": ["sessions", "messages"]})
    listed = await ids(client, "one-by-one")
    await client.call("sessions/repair", {"id": "one-by-one"})
    gone = [one["id"] for one in client.notifications("messages/didDelete")]
    assert gone == [id for id in listed if id.startswith("~")]
    assert len(gone) == 2
    assert not client.notifications("messages/didTruncate")
    assert path.read_bytes().split(b"\n")[1:] == [line("m1").strip(), line("m2").strip(), b""]


async def test_messages_that_become_others_are_told_anew_from_the_first_on(client: Wire, root: Path) -> None:
    half = b'{"id":"m9","content":"ha'
    lines = (line("m1"), line("m2"), line("m1", "other"), b"broken\n", half + line("m3"), line("m4"))
    await a_session(client, root, "others", *lines)
    await client.call("events/subscribe", {"workspace": "ws", "topics": ["sessions", "messages"]})
    answer = await client.call("sessions/repair", {"id": "others"})
    [truncated] = client.notifications("messages/didTruncate")
    assert truncated["keep"] == 2
    [appended] = client.notifications("messages/didAppend")
    assert (appended["index"], appended["count"]) == (2, 5)
    assert [one["id"] for one in appended["messages"]] == ["m1-2", "m3", "m4"]
    assert await ids(client, "others") == ["m1", "m2", "m1-2", "m3", "m4"]
    assert answer["item"]["value"]["messageCount"] == 5


async def test_a_header_seen_before_it_was_torn_comes_back_whole(client: Wire, root: Path) -> None:
    path = await a_session(client, root, "seen", line("m1"))
    await client.call("sessions/update", {"id": "seen", "patch": {"set": {"name": "Seen", "isFlagged": True}}})
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(first[:40] + b"\n" + rest)
    await client.call("daemon/sync", {"workspace": "ws"})
    assert await damage(client, "seen") == ["header-unreadable"]
    with pytest.raises(Failed) as failed:
        await client.call("sessions/update", {"id": "seen", "patch": {"set": {"name": "x"}}})
    assert failed.value.name == "Corrupt"
    value = (await client.call("sessions/repair", {"id": "seen"}))["item"]["value"]
    assert (value["name"], value["isFlagged"], value["labels"]) == ("Seen", True, ["bug"])
    header = json.loads(path.read_bytes().split(b"\n")[0])
    assert (header["name"], header["messageCount"]) == ("Seen", 1)


async def test_a_header_that_nobody_saw_is_made_of_what_is_left(client: Wire, root: Path) -> None:
    head = b'{"id":"left","workspaceRootPath":"/old","createdAt":5,"name":"Left","labels":["bug"],"sessionSta\n'
    path = await a_session(client, root, "left", line("m1"), line("m2", kind="assistant"), head=head)
    answer = await client.call("sessions/repair", {"id": "left"})
    [found] = answer["found"]
    assert found["remedy"] == "line 1 is made anew, of what is left of it and the messages"
    header = json.loads(path.read_bytes().split(b"\n")[0])
    assert header == {
        "id": "left", "workspaceRootPath": str(root), "sdkCwd": "{{SESSION_PATH}}", "createdAt": 5,
        "lastUsedAt": 7, "lastMessageAt": 7,
        "name": "Left", "labels": ["bug"], "messageCount": 2, "lastMessageRole": "assistant", "preview": "text",
        "lastFinalMessageId": "m2",
    }  # fmt: skip
    assert "sessionStatus" not in answer["item"]["value"]


async def test_half_a_temporary_file_that_nobody_writes_any_more_is_a_session(client: Wire, root: Path) -> None:
    folder = root / "sessions" / "half"
    folder.mkdir()
    tmp = folder / "session.jsonl.tmp"
    tmp.write_bytes(
        json.dumps({"id": "half", "createdAt": 1, "name": "Half"}).encode() + b"\n" + line("m1") + b'{"id":'
    )
    await client.call("daemon/sync", {"workspace": "ws"})
    with pytest.raises(Failed) as failed:
        await client.call("sessions/repair", {"id": "half"})
    assert failed.value.name == "NotFound"  # somebody may be about to write the rest
    old = os.stat(tmp).st_mtime_ns - 2 * MINUTE
    os.utime(tmp, ns=(old, old))
    await client.call("daemon/sync", {"workspace": "ws"})
    assert await damage(client, "half") == ["torn-tail", "rescued"]
    before = tmp.read_bytes()
    answer = await client.call("sessions/repair", {"id": "half"})
    assert not tmp.exists()
    assert (folder / answer["kept"]).read_bytes() == before
    assert await ids(client, "half") == ["m1"]


async def test_an_app_that_saved_meanwhile_is_not_overwritten(client: Wire, root: Path) -> None:
    path = await a_session(client, root, "saved-over", line("m1"), b"broken\n")
    theirs = path.read_bytes().replace(b"Old", b"New") + line("m2")
    path.with_name("theirs").write_bytes(theirs)
    os.replace(path.with_name("theirs"), path)
    answer = await client.call("sessions/repair", {"id": "saved-over"})
    assert answer["item"]["value"]["name"] == "New"
    assert await ids(client, "saved-over") == ["m1", "m2"]
    assert path.with_name(answer["kept"]).read_bytes() == theirs


async def test_one_key_repairs_once(client: Wire, root: Path) -> None:
    path = await a_session(client, root, "once", line("m1"), b"broken\n")
    params = {"id": "once", "key": "repair-this-session-once"}
    first = await client.call("sessions/repair", params)
    path.write_bytes(path.read_bytes() + b"broken again\n")
    await client.call("daemon/sync", {"workspace": "ws"})
    assert (await client.call("sessions/repair", params))["kept"] == first["kept"]
    assert await damage(client, "once") == ["line-unreadable"]


@pytest.mark.parametrize(("id", "name"), [("nobody", "NotFound"), ("..", "InvalidParams"), ("", "InvalidParams")])
async def test_only_sessions_are_repaired(client: Wire, id: str, name: str) -> None:
    with pytest.raises(Failed) as failed:
        await client.call("sessions/repair", {"id": id})
    assert failed.value.name == name


async def test_a_session_behind_a_link_out_of_the_workspace_is_left(client: Wire, root: Path, tmp_path: Path) -> None:
    path = await a_session(client, root, "linked-file", line("m1"), b"broken\n")
    shutil.move(path, tmp_path / "elsewhere.jsonl")
    path.symlink_to(tmp_path / "elsewhere.jsonl")
    await client.call("daemon/sync", {"workspace": "ws"})
    before = (tmp_path / "elsewhere.jsonl").read_bytes()
    with pytest.raises(Failed) as failed:
        await client.call("sessions/repair", {"id": "linked-file"})
    assert failed.value.name == "Forbidden"
    assert (tmp_path / "elsewhere.jsonl").read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["session.jsonl"]


async def test_changes_of_two_clients_around_a_repair_all_stand(
    client: Wire, daemon: Daemon, connect: Connect, root: Path
) -> None:
    await a_session(client, root, "busy", line("m1"), b"broken\n", line("m1", "again"))
    other = await connect(daemon, "ws")
    asked = []
    for at in range(10):
        message = {"id": f"n{at}", "type": "user", "content": "x"}
        asked.append(
            (other, other.ask("messages/append", {"workspace": "ws", "session": "busy", "messages": [message]}))
        )
        if at == 4:
            asked.append((client, client.ask("sessions/repair", {"workspace": "ws", "id": "busy"})))
    for wire, number in asked:
        await wire.answer(number)
    assert await ids(client, "busy") == ["m1", "m1-2", *(f"n{at}" for at in range(10))]
    assert await damage(client, "busy") == []
