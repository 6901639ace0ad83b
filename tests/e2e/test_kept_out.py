"""What is kept out of new lines, over the wire: long results of tools, images; and what a line does keep."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
Value = dict[str, Any]

LONG = "a line of a long log\n" * 12_000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(1000)


@pytest.fixture(scope="module")
def shared(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    set_up(daemon)
    daemon.start()
    return daemon


@pytest.fixture
async def client(shared: Daemon, connect: Connect) -> Wire:
    return await connect(shared, WORKSPACE)


@pytest.fixture
async def session(client: Wire) -> str:
    return str((await client.call("sessions/create", {"value": {"name": "Talk"}}))["item"]["id"])


def folder(shared: Daemon, session: str) -> Path:
    return shared.base / "ws" / "sessions" / session


def lines(shared: Daemon, session: str) -> list[Value]:
    text = (folder(shared, session) / "session.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()[1:]]


def result(id: str = "t1", text: str = LONG, **more: Any) -> Value:
    message = {"id": id, "toolName": "Read", "content": "", "timestamp": 5, "toolResult": text, **more}
    return {**message, "type": "tool"}


async def append(client: Wire, session: str, *messages: Value, **more: Any) -> Value:
    answer: Value = await client.call("messages/append", {"session": session, "messages": [*messages], **more})
    return answer


async def read(client: Wire, session: str, id: str = "t1") -> Value:
    value: Value = (await client.call("messages/get", {"session": session, "id": id}))["item"]["value"]
    return value


def named(value: Value) -> str:
    """The file that a stand-in speaks of."""
    return str(value["toolResult"].partition("Full data saved to: ")[2].partition("\n")[0])


async def test_a_long_result_is_whole_in_a_file_and_the_line_says_where(
    shared: Daemon, client: Wire, session: str, connect: Connect
) -> None:
    other = await connect(shared, WORKSPACE)
    await other.call("events/subscribe", {"workspace": WORKSPACE, "sessions": [session]})
    answer = await append(client, session, result())
    value = await read(client, session)
    path = Path(named(value))
    assert path.read_text() == LONG
    assert path.parent == folder(shared, session) / "long_responses"
    assert (
        f"Full data saved to: {{{{SESSION_PATH}}}}/long_responses/{path.name}\n"
        in lines(shared, session)[0]["toolResult"]
    )
    assert list(lines(shared, session)[0]) == list(result())
    found = await client.call("messages/get", {"session": session, "id": "t1"})
    assert answer["messages"] == [{"id": "t1", "version": found["item"]["version"]}]
    served = await client.call("files/read", {"session": session, "path": f"long_responses/{path.name}"})
    assert (served["size"], LONG.startswith(served["data"])) == (len(LONG), True)
    await other.call("daemon/sync", {"workspace": WORKSPACE})
    [told] = other.notifications("messages/didAppend")
    assert told["messages"] == [value]


async def test_a_repeat_is_recognised_whatever_counts_as_long_by_now(
    shared: Daemon, client: Wire, session: str
) -> None:
    short = "a b " * 2_500
    for id, text in (("t1", LONG), ("t2", short)):
        await append(client, session, result(id, text))
    before = lines(shared, session)
    again = await append(client, session, result(), result("t2", short))
    assert lines(shared, session) == before
    usage = {"contextWindow": 20_000}
    await client.call("sessions/update", {"id": session, "patch": {"set": {"tokenUsage": usage}}})
    await append(client, session, result("t3", short))
    assert (await read(client, session, "t2"))["toolResult"] == short
    assert Path(named(await read(client, session, "t3"))).read_text() == short
    await client.call("sessions/update", {"id": session, "patch": {"set": {"tokenUsage": {"contextWindow": 900_000}}}})
    third = await append(client, session, result(), result("t2", short), result("t3", short))
    assert third["messages"][:2] == again["messages"]
    assert len(lines(shared, session)) == 3
    for other in (result("t1", LONG + "x"), result("t3", short + "x")):
        with pytest.raises(Failed, match="AlreadyExists"):
            await append(client, session, other)


async def test_a_result_that_comes_later_is_kept_out_too(shared: Daemon, client: Wire, session: str) -> None:
    early = {name: member for name, member in result().items() if name != "toolResult"}
    await append(client, session, early, result("t2", "short"))
    update = {"session": session, "id": "t1", "patch": {"set": {"toolResult": LONG, "toolStatus": "completed"}}}
    done = await client.call("messages/update", update)
    assert Path(named(done["item"]["value"])).read_text() == LONG
    again = await client.call("messages/update", update)
    assert (again["changed"], again["revision"]) == (False, done["revision"])
    longer = {**update, "patch": {"set": {"toolResult": LONG + "more"}}}
    changed = await client.call("messages/update", longer)
    assert Path(named(changed["item"]["value"])).read_text() == LONG + "more"
    assert len(list((folder(shared, session) / "long_responses").iterdir())) == 2, "nothing is overwritten"


async def test_who_follows_the_files_of_a_session_hears_of_the_result(
    client: Wire, session: str, shared: Daemon, connect: Connect
) -> None:
    other = await connect(shared, WORKSPACE)
    await other.call("events/subscribe", {"workspace": WORKSPACE, "topics": ["files"], "sessions": [session]})
    await other.call("daemon/sync", {"workspace": WORKSPACE})
    await append(client, session, result())
    await other.call("daemon/sync", {"workspace": WORKSPACE})
    name = Path(named(await read(client, session))).name
    told = [(one["path"], one["kind"]) for one in other.notifications("files/didChange")]
    assert told == [(f"sessions/{session}/long_responses/{name}", "created")]


async def test_what_is_refused_leaves_no_file(shared: Daemon, client: Wire, session: str) -> None:
    await append(client, session, result("t1", "short"))
    asked = client.ask("messages/append", {"session": session, "messages": [result("t2"), result("t1", "other")]})
    wrong = {"set": {"toolResult": LONG, "content": 5}}
    other = client.ask("messages/update", {"session": session, "id": "t1", "patch": wrong})
    await append(client, session, result("t3", "short"))
    for id, name in ((asked, "AlreadyExists"), (other, "ValidationFailed")):
        with pytest.raises(Failed, match=name):
            await client.answer(id)
    assert list((folder(shared, session) / "long_responses").iterdir()) == []


async def test_two_results_of_one_tool_in_one_millisecond_have_a_file_each(
    shared: Daemon, client: Wire, session: str
) -> None:
    await append(client, session, *(result(f"t{n}", f"{LONG}{n}", toolName="mcp__a/b") for n in (1, 2)))
    for n in (1, 2):
        assert Path(named(await read(client, session, f"t{n}"))).read_text() == f"{LONG}{n}"


async def test_results_go_with_a_session_that_is_new_in_the_same_moment(shared: Daemon, client: Wire) -> None:
    client.ask("sessions/create", {"id": "260704-quiet-fjord", "value": {"name": "New"}})
    await append(client, "260704-quiet-fjord", result())
    assert Path(named(await read(client, "260704-quiet-fjord"))).read_text() == LONG


async def test_a_message_that_craftd_names_has_its_result_in_a_file(shared: Daemon, client: Wire, session: str) -> None:
    unnamed = {name: member for name, member in result().items() if name != "id"}
    [given] = (await append(client, session, unnamed))["messages"]
    path = Path(named(await read(client, session, given["id"])))
    assert given["id"] in path.name
    assert path.read_text() == LONG


async def test_where_no_file_can_be_had_the_line_keeps_all_of_it(shared: Daemon, client: Wire, session: str) -> None:
    """Nothing is cut, whatever is in the way."""
    place = folder(shared, session) / "long_responses"
    outside = shared.base / "outside"
    outside.mkdir(exist_ok=True)
    place.rmdir()
    place.symlink_to(outside)
    await append(client, session, result())
    assert (await read(client, session))["toolResult"] == LONG
    assert list(outside.iterdir()) == []
    place.unlink()
    await append(client, session, result("t2"))
    taken = Path(named(await read(client, session, "t2")))
    await client.call("messages/delete", {"session": session, "id": "t2"})
    taken.write_text("theirs")
    await append(client, session, result("t2"))
    assert (await read(client, session, "t2"))["toolResult"] == LONG
    assert taken.read_text() == "theirs"
    half = LONG + "\ud83d"
    await append(client, session, result("t3", half))
    assert (await read(client, session, "t3"))["toolResult"] == half


async def test_a_deleted_message_leaves_its_file_and_a_repeat_finds_it(
    shared: Daemon, client: Wire, session: str
) -> None:
    await append(client, session, result())
    path = Path(named(await read(client, session)))
    inode = path.stat().st_ino
    await client.call("messages/delete", {"session": session, "id": "t1"})
    await append(client, session, result())
    assert (Path(named(await read(client, session))), path.stat().st_ino) == (path, inode)


async def test_new_lines_have_no_images(shared: Daemon, client: Wire, session: str) -> None:
    text = base64.b64encode(PNG).decode()
    stored = str(folder(shared, session) / "attachments" / "u_a.png")
    first = {"id": "u", "name": "a.png", "storedPath": stored, "resizedBase64": text, "thumbnailBase64": text}
    message = {"id": "m1", "content": "look", "attachments": [first], "type": "user"}
    await append(client, session, message)
    await append(client, session, message)
    [attachment] = lines(shared, session)[0]["attachments"]
    thumbnail = attachment.pop("thumbnailPath")
    assert thumbnail.startswith("{{SESSION_PATH}}/attachments/")
    assert (folder(shared, session) / "attachments" / Path(thumbnail).name).read_bytes() == PNG
    assert attachment == {"id": "u", "name": "a.png", "storedPath": "{{SESSION_PATH}}/attachments/u_a.png"}
    assert text.encode() not in (folder(shared, session) / "session.jsonl").read_bytes()


async def test_a_queued_message_is_queued_after_a_crash(make_daemon: Callable[..., Daemon], connect: Connect) -> None:
    daemon = make_daemon()
    set_up(daemon)
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    session = (await client.call("sessions/create", {"value": {"name": "Talk"}}))["item"]["id"]
    queued = {"id": "m1", "content": "and then", "timestamp": 5, "isQueued": True, "type": "user"}
    await append(client, session, queued, result())
    daemon.kill()
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    assert await read(client, session, "m1") == queued
    assert Path(named(await read(client, session))).read_text() == LONG
    replayed = {"session": session, "id": "m1", "patch": {"set": {"isQueued": False}}}
    assert (await client.call("messages/update", replayed))["item"]["value"]["isQueued"] is False
