"""Faults of the app that are not repeated: paths in lines, sessions that nobody has opened, what others write."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
Value = dict[str, Any]

TOKEN = "{{SESSION_PATH}}"
FINAL = '{"id":"a1","content":"There.","type":"assistant"}\n'


def cold(root: Path, id: str, **header: Any) -> Path:
    """A session that the app left, with one question and one answer."""
    path = root / "sessions" / id / "session.jsonl"
    path.parent.mkdir(parents=True)
    whole = {"id": id, "createdAt": 1, "lastUsedAt": 1, "messageCount": 2, "lastFinalMessageId": "a1", **header}
    path.write_text(json.dumps(whole) + '\n{"id":"m1","content":"Hello","type":"user"}\n' + FINAL)
    return path


@pytest.fixture(scope="module")
def shared(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    root = set_up(daemon)
    for name in ("read", "unread-one", "unread-two", "edited", "connected", "foreign"):
        unread = {"hasUnread": True} if name.startswith("unread") else {}
        cold(root, f"260301-{name}", **unread, llmConnection="hub", sessionStatus="todo")
    daemon.start()
    return daemon


@pytest.fixture
async def client(shared: Daemon, connect: Connect) -> Wire:
    return await connect(shared, WORKSPACE)


def line_one(shared: Daemon, session: str) -> Value:
    path = shared.base / "ws" / "sessions" / session / "session.jsonl"
    first: Value = json.loads(path.read_bytes().partition(b"\n")[0])
    return first


async def append(client: Wire, session: str, content: str, **more: Any) -> None:
    message = {"id": "m1", "content": content, **more, "type": "user"}
    await client.call("messages/append", {"session": session, "messages": [message]})


async def content(client: Wire, session: str) -> str:
    found = await client.call("messages/get", {"session": session, "id": "m1"})
    return str(found["item"]["value"]["content"])


# Paths


async def test_the_path_of_a_neighbour_with_a_number_is_left_alone_and_a_copy_finds_its_own(
    make_daemon: Callable[..., Daemon], connect: Connect
) -> None:
    daemon = make_daemon()
    root = set_up(daemon)
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    mine = root / "sessions" / "260306-jade-canyon"
    said = f"{mine}/data/a.json, {mine}-2/data/b.json, ({mine}) and {mine}.\n"
    await client.call("sessions/create", {"id": mine.name, "value": {"name": f"About {TOKEN}"}})
    await append(client, mine.name, said, toolInput={"command": f'cat "{mine}/plans/p.md"', "typed": TOKEN})
    await client.call("sessions/update", {"id": mine.name, "patch": {"set": {"isFlagged": True}}})
    text = (mine / "session.jsonl").read_bytes()
    assert text.count(str(mine).encode()) == 2, "the neighbour's alone, in the message and its preview"
    assert f"{mine}-2/data/b.json".encode() in text
    assert text.count(b"\\u007b{SESSION_PATH}}") == 2, "what was typed is no path"
    other = root.parent / 'ws.of "Ann" $& \''
    shutil.copytree(root / "sessions", other / "sessions")
    (other / "config.json").write_bytes((root / "config.json").read_bytes())
    await client.call("workspaces/create", {"id": "copy", "value": {"name": "Copy", "path": str(other)}})
    there = other / "sessions" / mine.name
    found = await client.call("messages/get", {"workspace": "copy", "session": mine.name, "id": "m1"})
    value = found["item"]["value"]
    assert value["content"] == f"{there}/data/a.json, {mine}-2/data/b.json, ({there}) and {there}.\n"
    assert value["toolInput"] == {"command": f'cat "{there}/plans/p.md"', "typed": TOKEN}
    item = (await client.call("sessions/get", {"workspace": "copy", "id": mine.name}))["item"]
    assert item["value"]["name"] == f"About {TOKEN}"
    assert TOKEN not in item["value"]["preview"]
    before = text
    await client.call("sessions/update", {"workspace": "copy", "id": mine.name, "patch": {"set": {"name": "Copy"}}})
    assert (mine / "session.jsonl").read_bytes() == before, "a copy never writes to where it came from"


async def test_a_preview_holds_no_half_of_a_path_and_no_half_of_a_character(client: Wire, shared: Daemon) -> None:
    session = (await client.call("sessions/create", {"value": {"name": "Talk"}}))["item"]["id"]
    folder = shared.base / "ws" / "sessions" / session
    await append(client, session, f"{'x' * 140} {folder}/data/a.json")
    await client.call("sessions/update", {"id": session, "patch": {"set": {"name": "Other"}}})
    assert line_one(shared, session)["preview"] in ("x" * 140, "x" * 140 + " ")
    other = (await client.call("sessions/create", {"value": {"name": "Talk"}}))["item"]["id"]
    await append(client, other, "x" * 149 + "😀 and more")
    await client.call("sessions/update", {"id": other, "patch": {"set": {"name": "Other"}}})
    assert line_one(shared, other)["preview"] == "x" * 149


# Sessions that nobody has opened


async def test_a_message_of_a_session_nobody_has_opened_can_be_changed(client: Wire) -> None:
    patch = {"set": {"content": "Hello again"}}
    await client.call("messages/update", {"session": "260301-edited", "id": "m1", "patch": patch})
    assert await content(client, "260301-edited") == "Hello again"


async def test_what_is_fixed_by_the_first_message_is_fixed_before_anybody_reads_it(client: Wire) -> None:
    for name, wanted in (("sdkCwd", "/srv/two"), ("llmConnection", "other"), ("llmConnection", None)):
        with pytest.raises(Failed, match="ValidationFailed") as failed:
            await client.call("sessions/update", {"id": "260301-connected", "patch": {"set": {name: wanted}}})
        assert [issue["path"] for issue in failed.value.error["data"]["issues"]] == [name]


async def test_marking_as_read_knows_the_last_message_without_opening_the_session(client: Wire, shared: Daemon) -> None:
    """Also all of them at once, and as unread."""
    await client.call("sessions/markRead", {"sessions": ["260301-read"]})
    assert line_one(shared, "260301-read")["lastReadMessageId"] == "a1"
    await client.call("sessions/markRead", {"all": True})
    for session in ("260301-unread-one", "260301-unread-two"):
        first = line_one(shared, session)
        assert (first["hasUnread"], first["lastReadMessageId"]) == (False, "a1")
    patch = {"set": {"hasUnread": True}}
    await client.call("sessions/update", {"id": "260301-unread-one", "patch": patch})
    first = line_one(shared, "260301-unread-one")
    assert (first["hasUnread"], "lastReadMessageId" in first) == (True, False)


# What others write


async def test_a_header_that_another_program_saves_without_a_status_has_none(client: Wire, shared: Daemon) -> None:
    session = "260301-foreign"
    await client.call("events/subscribe", {"workspace": WORKSPACE, "sessions": [session]})
    path = shared.base / "ws" / "sessions" / session / "session.jsonl"
    first, rest = path.read_text().split("\n", 1)
    header = json.loads(first)
    del header["sessionStatus"]
    beside = path.with_name("session.jsonl.tmp")
    beside.write_text(json.dumps({**header, "name": "Theirs"}) + "\n" + rest)
    beside.rename(path)
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    [told] = client.notifications("sessions/didChange")
    assert told["patch"] == {"unset": ["/sessionStatus"], "set": {"name": "Theirs"}}
    value = (await client.call("sessions/get", {"id": session}))["item"]["value"]
    assert "sessionStatus" not in value
    page = await client.call("sessions/list", {"filter": {"status": "todo", "id": session}})
    assert [item["id"] for item in page["items"]] == [session]
    await client.call("sessions/update", {"id": session, "patch": {"set": {"isFlagged": True}}})
    assert "sessionStatus" not in line_one(shared, session), "nobody set one"
