"""What was read, who looks, and what executors say that nobody stores."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import PATIENCE, Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

EXECUTOR = {"capabilities": {"experimental": {"craft": {"roles": ["executor"]}}}}


@pytest.fixture(scope="module")
def shared(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    set_up(daemon)
    daemon.start()
    return daemon


@pytest.fixture
async def client(shared: Daemon, connect: Connect) -> Wire:
    """It follows everything, what is not stored included."""
    wire = await connect(shared, WORKSPACE)
    await wire.call("events/subscribe", {"workspace": WORKSPACE, "ephemeral": True})
    return wire


@pytest.fixture
async def agent(shared: Daemon, connect: Connect) -> Wire:
    return await connect(shared, WORKSPACE, **EXECUTOR)


async def new_session(client: Wire, **value: Any) -> str:
    return str((await client.call("sessions/create", {"value": {"name": "Talk", **value}}))["item"]["id"])


async def answer(client: Wire, session: str, id: str = "a1") -> None:
    """A final message of the assistant."""
    one = {"id": id, "type": "assistant", "content": "There.", "timestamp": 1772323200000}
    await client.call("messages/append", {"session": session, "messages": [one]})


async def value(client: Wire, session: str) -> dict[str, Any]:
    found: dict[str, Any] = (await client.call("sessions/get", {"id": session}))["item"]["value"]
    return found


async def unread(client: Wire) -> list[str]:
    found = await client.call("sessions/unread", {"workspace": WORKSPACE})
    [one] = found["workspaces"]
    assert found["total"] == one["count"] == len(one["sessions"])
    return list(one["sessions"])


# Read and unread


async def test_a_session_is_unread_until_somebody_marks_it(shared: Daemon, connect: Connect, client: Wire) -> None:
    session, hidden = await new_session(client), await new_session(client, hidden=True)
    for one in (session, hidden):
        await answer(client, one)
    assert session in await unread(client)
    assert hidden not in await unread(client)
    await client.call("sessions/markRead", {"sessions": [session, session]})
    assert session not in await unread(client)
    marked = await value(client, session)
    assert (marked["hasUnread"], marked["lastReadMessageId"]) == (False, "a1")
    told = [m["params"]["patch"] for m in client.received if m.get("method") == "sessions/didChange"]
    assert told[-1] == {"set": {"hasUnread": False, "lastReadMessageId": "a1"}}
    before = (await client.call("daemon/sync", {"workspace": WORKSPACE}))["revision"]
    assert (await client.call("sessions/markRead", {"sessions": [session]}))["revision"] == before
    await client.call("sessions/update", {"id": session, "patch": {"set": {"isArchived": True, "hasUnread": True}}})
    assert session not in await unread(client)


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({}, "InvalidParams"),
        ({"all": True, "sessions": []}, "InvalidParams"),
        ({"sessions": ["no-such-session"]}, "NotFound"),
        ({"sessions": [".."]}, "InvalidParams"),
    ],
)
async def test_what_is_to_be_marked_must_be_said(client: Wire, params: dict[str, Any], name: str) -> None:
    with pytest.raises(Failed) as failed:
        await client.call("sessions/markRead", params)
    assert failed.value.name == name


async def test_marking_many_sessions_tells_how_far_it_is(make_daemon: Callable[..., Daemon], connect: Connect) -> None:
    daemon = make_daemon()
    root = set_up(daemon)
    for number in range(450):
        path = root / "sessions" / f"many-{number}" / "session.jsonl"
        path.parent.mkdir(parents=True)
        archived = ',"isArchived":true' if number == 7 else ""
        path.write_text(f'{{"id":"many-{number}","createdAt":1,"hasUnread":true,"messageCount":0{archived}}}\n')
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    assert len(await unread(client)) == 449
    await client.call("sessions/markRead", {"all": True, "workDoneToken": "t"})
    assert await unread(client) == []
    told = [params["value"] for params in client.notifications("$/progress") if params["token"] == "t"]
    assert [one["kind"] for one in told] == ["begin", "report", "report", "report", "end"]
    assert [one["message"] for one in told[1:4]] == ["200 of 449", "400 of 449", "449 of 449"]
    assert "lastReadMessageId" not in await value(client, "many-0")
    assert (await value(client, "many-7"))["hasUnread"] is True


# Presence


async def test_a_session_that_somebody_looks_at_does_not_become_unread(
    shared: Daemon, connect: Connect, client: Wire
) -> None:
    session, viewer = await new_session(client), await connect(shared, WORKSPACE)
    await viewer.call("sessions/view", {"sessions": [session, "no-such-session"]})
    await answer(client, session, "a1")
    seen = await value(client, session)
    assert (seen.get("hasUnread"), seen["lastReadMessageId"]) == (None, "a1")
    second = await connect(shared, WORKSPACE)
    await second.call("sessions/view", {"sessions": [session]})
    await viewer.call("sessions/view", {"sessions": []})
    await answer(client, session, "a2")
    assert (await value(client, session))["lastReadMessageId"] == "a2"
    there = await clients(client)
    await second.close()
    async with asyncio.timeout(PATIENCE):
        while await clients(client) == there:
            pass
    await answer(client, session, "a3")
    assert (await value(client, session))["hasUnread"] is True


async def clients(client: Wire) -> int:
    return len((await client.call("daemon/status"))["clients"])


async def test_looking_at_an_unread_session_marks_it(shared: Daemon, connect: Connect, client: Wire) -> None:
    session = await new_session(client)
    await answer(client, session)
    viewer = await connect(shared, WORKSPACE)
    viewer.send("sessions/view", {"workspace": WORKSPACE, "sessions": [session]})
    await client.wait(
        lambda m: (
            m.get("method") == "sessions/didChange" and m["params"]["patch"].get("set", {}).get("hasUnread") is False
        )
    )
    assert session not in await unread(client)


# Relay


async def publish(agent: Wire, session: str, **event: Any) -> None:
    assert await agent.call("sessions/publish", {"session": session, "event": event}) is None


def published(client: Wire, session: str) -> list[dict[str, Any]]:
    return [params["event"] for params in client.notifications("sessions/didPublish") if params["session"] == session]


async def test_what_is_published_goes_to_who_wants_it_and_has_no_revision(
    shared: Daemon, connect: Connect, client: Wire, agent: Wire
) -> None:
    session, plain, elsewhere = (
        await new_session(client),
        await connect(shared, WORKSPACE),
        await connect(shared, WORKSPACE),
    )
    await plain.call("events/subscribe", {"workspace": WORKSPACE})
    await elsewhere.call("events/subscribe", {"workspace": WORKSPACE, "ephemeral": True, "sessions": ["another"]})
    before = await client.call("daemon/sync", {"workspace": WORKSPACE})
    event = {"type": "task_progress", "toolUseId": "t1", "elapsedSeconds": 1.5, "odd": {"jsonrpc": None}}
    await publish(agent, session, **event)
    heard = await client.notified("sessions/didPublish")
    assert heard == {"workspace": WORKSPACE, "session": session, "event": event, "client": heard["client"]}
    for wire in (plain, elsewhere, client):
        assert (await wire.call("daemon/sync", {"workspace": WORKSPACE}))["revision"] == before["revision"]
    assert plain.notifications("sessions/didPublish") == elsewhere.notifications("sessions/didPublish") == []
    read = await client.call("events/read", {"workspace": WORKSPACE, "since": before})
    assert read["events"] == []


async def test_pieces_of_text_are_gathered_and_come_before_the_message_they_end_in(client: Wire, agent: Wire) -> None:
    session = await new_session(client)
    words = [f"word{number} " for number in range(200)]
    for word in words:
        agent.ask(
            "sessions/publish", {"session": session, "event": {"type": "text_delta", "delta": word, "turnId": "t"}}
        )
    await publish(agent, session, type="text_delta", delta="other", turnId="u")
    await answer(agent, session)
    await client.wait(lambda m: m.get("method") == "messages/didAppend" and m["params"]["session"] == session)
    told = [m for m in client.received if m.get("params", {}).get("session") == session]
    assert [m["method"] for m in told if m["method"] != "sessions/didPublish"] == ["messages/didAppend"]
    assert told[-1]["method"] == "messages/didAppend"
    events = published(client, session)
    assert "".join(one["delta"] for one in events if one["turnId"] == "t") == "".join(words)
    assert events[-1] == {"type": "text_delta", "delta": "other", "turnId": "u"}
    assert len(events) < 50


async def test_too_much_at_once_is_dropped_and_the_last_state_is_not(client: Wire, agent: Wire) -> None:
    session = await new_session(client)
    for number in range(1000):
        agent.ask("sessions/publish", {"session": session, "event": {"type": "status", "message": str(number)}})
        if number % 10 == 0:
            state = "running" if number % 20 else "waiting"
            agent.ask("sessions/publish", {"session": session, "event": {"type": "state", "state": state}})
    await publish(agent, session, type="state", state="error")
    await client.wait(lambda m: m.get("params", {}).get("event") == {"type": "state", "state": "error"})
    events = published(client, session)
    assert events[-1] == {"type": "state", "state": "error"}
    assert 50 <= len(events) < 600
    shown = [int(one["message"]) for one in events if one["type"] == "status"]
    assert shown == sorted(shown)


async def test_the_state_of_a_session_is_known_while_its_executor_is_there(
    shared: Daemon, connect: Connect, client: Wire, agent: Wire
) -> None:
    session, other = await new_session(client), await new_session(client)
    await publish(agent, session, type="state", state="running")

    async def listed(**filter: Any) -> dict[str, Any]:
        page = await client.call("sessions/list", {"filter": filter, "limit": 500})
        return {item["id"]: item.get("info", {}).get("activity") for item in page["items"]}

    assert (await client.call("sessions/get", {"id": session}))["item"]["info"]["activity"] == "running"
    assert await listed(activity="running") == {session: "running"}
    assert (await listed(activity=["idle", "waiting"])).keys() & {session, other} == {other}
    second = await connect(shared, WORKSPACE, **EXECUTOR)
    await publish(second, session, type="state", state="waiting")
    assert await listed(activity="waiting") == {session: "waiting"}
    await second.close()
    await client.wait(lambda m: len(published(client, session)) == 3)
    assert published(client, session)[-1] == {"type": "state", "state": "running"}
    await agent.close()
    await client.wait(lambda m: len(published(client, session)) == 4)
    assert published(client, session)[-1] == {"type": "state", "state": "idle"}
    assert await listed(activity="running") == {}
    assert (await listed())[session] is None


async def test_who_may_publish_what(client: Wire, agent: Wire) -> None:
    session = await new_session(client)
    refused: list[tuple[Wire, dict[str, Any], str]] = [
        (client, {"session": session, "event": {"type": "status"}}, "Forbidden"),
        (agent, {"session": "no-such-session", "event": {"type": "status"}}, "NotFound"),
        (agent, {"session": session, "event": {}}, "InvalidParams"),
        (agent, {"session": session, "event": {"type": "state", "state": "asleep"}}, "InvalidParams"),
        (agent, {"session": session, "event": {"type": "status", "message": "x" * 300_000}}, "TooLarge"),
        (agent, {"session": session}, "InvalidParams"),
    ]
    for wire, params, name in refused:
        with pytest.raises(Failed) as failed:
            await wire.call("sessions/publish", params)
        assert failed.value.name == name, params
    with pytest.raises(Failed, match="InvalidParams"):
        await client.call("sessions/list", {"filter": {"activity": "asleep"}})
