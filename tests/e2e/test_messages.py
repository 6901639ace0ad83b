"""Messages changed, deleted and cut off over the wire, as their author and another client see it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

KEY = "a-key-of-sixteen-or-more"


@pytest.fixture(scope="module")
def shared(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    set_up(daemon)
    daemon.start()
    return daemon


def message(id: str, type: str = "user", **more: Any) -> dict[str, Any]:
    return {"id": id, "content": f"text of {id}", "timestamp": 1772323200000, **more, "type": type}


@pytest.fixture
async def client(shared: Daemon, connect: Connect) -> Wire:
    return await connect(shared, WORKSPACE)


@pytest.fixture
async def session(client: Wire) -> str:
    """A session with three messages."""
    id = (await client.call("sessions/create", {"value": {"name": "Talk"}}))["item"]["id"]
    messages = [message("m1"), message("m2", "assistant"), message("m3", "tool")]
    await client.call("messages/append", {"session": id, "messages": messages})
    return str(id)


async def ids(client: Wire, session: str) -> list[str]:
    return [item["id"] for item in (await client.call("messages/list", {"session": session}))["items"]]


async def test_another_client_hears_each_change_before_its_author_is_answered(
    shared: Daemon, client: Wire, session: str, connect: Connect
) -> None:
    other = await connect(shared, WORKSPACE)
    for one in (client, other):
        await one.call("events/subscribe", {"workspace": WORKSPACE, "sessions": [session]})
    edit = client.ask(
        "messages/update", {"session": session, "id": "m3", "patch": {"set": {"toolStatus": "completed"}}}
    )
    edited = await client.answer(edit)
    assert edited["changed"] is True
    assert edited["item"]["value"] == {**message("m3", "tool"), "toolStatus": "completed"}
    delete = client.ask("messages/delete", {"session": session, "id": "m2"})
    deleted = await client.answer(delete)
    cut = await client.call("messages/truncate", {"session": session, "keep": 1})
    assert edited["revision"] < deleted["revision"] < cut["revision"]
    assert client.order.index("messages/didChange") < client.order.index(edit)
    assert client.order.index(edit) < client.order.index("messages/didDelete") < client.order.index(delete)
    await other.call("daemon/sync", {"workspace": WORKSPACE})
    told = [m for m in other.received if m.get("method", "").startswith(("messages/", "sessions/"))]
    assert told == [m for m in client.received if m.get("method", "").startswith(("messages/", "sessions/"))]
    changed, gone, left = (other.notifications(f"messages/did{verb}")[0] for verb in ("Change", "Delete", "Truncate"))
    assert changed["changes"] == [{"id": "m3", "version": edited["item"]["version"]}]
    assert changed["patch"] == {"set": {"toolStatus": "completed"}}
    assert (gone["session"], gone["id"], left["keep"]) == (session, "m2", 1)
    patches = [params["patch"] for params in other.notifications("sessions/didChange")]
    assert patches == [
        {"unset": ["/lastFinalMessageId"], "set": {"messageCount": 2, "hasUnread": False}},
        {"set": {"messageCount": 1, "lastMessageRole": "user"}},
    ]
    assert [m["params"].get("batch") for m in told][1:] == [{"index": n, "size": 2} for n in (0, 1, 0, 1)]


async def test_a_change_sent_again_with_its_key_is_not_made_again(client: Wire, session: str) -> None:
    update = {"session": session, "id": "m1", "patch": {"set": {"content": "new"}}, "key": KEY}
    first = await client.call("messages/update", update)
    await client.call("messages/update", {"session": session, "id": "m1", "patch": {"set": {"content": "newer"}}})
    again = await client.call("messages/update", update)
    assert (again["revision"], again["changed"]) == (first["revision"], True)
    assert again["item"]["value"]["content"] == "newer"  # the item is read again, nothing was done
    with pytest.raises(Failed, match="InvalidParams"):
        await client.call("messages/update", {**update, "patch": {}})
    delete = {"session": session, "id": "m1", "key": f"{KEY}-2"}
    assert await client.call("messages/delete", delete) == await client.call("messages/delete", delete)
    cut = {"session": session, "keep": 0, "key": f"{KEY}-3"}
    assert await client.call("messages/truncate", cut) == await client.call("messages/truncate", cut)


async def test_what_does_not_fit_is_refused_by_name(client: Wire, session: str) -> None:
    here = {"session": session}
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("messages/update", {**here, "id": "m9", "patch": {}}, "NotFound"),
        ("messages/update", {**here, "id": "#9", "patch": {}}, "NotFound"),
        ("messages/update", {"session": "no-such-session", "id": "m1", "patch": {}}, "NotFound"),
        ("messages/update", {**here, "id": "m1", "patch": {"sett": {}}}, "InvalidParams"),
        ("messages/update", {**here, "id": "m1", "patch": {"set": {"id": "m9"}}}, "ValidationFailed"),
        ("messages/update", {**here, "id": "m1", "patch": {"unset": ["/content"]}}, "ValidationFailed"),
        ("messages/update", {**here, "id": "m1", "patch": {}, "expectedVersion": "0"}, "VersionConflict"),
        ("messages/update", {"session": "../x", "id": "m1", "patch": {}}, "InvalidParams"),
        ("messages/delete", {**here, "id": "m9"}, "NotFound"),
        ("messages/delete", {**here, "id": "m1", "expectedVersion": "0"}, "VersionConflict"),
        ("messages/delete", {**here, "id": "m1", "missingOK": True}, "InvalidParams"),
        ("messages/truncate", here, "InvalidParams"),
        ("messages/truncate", {**here, "keep": 1, "afterMessage": "m1"}, "InvalidParams"),
        ("messages/truncate", {**here, "keep": -1}, "InvalidParams"),
        ("messages/truncate", {**here, "keep": "1"}, "InvalidParams"),
        ("messages/truncate", {**here, "afterMessage": "m9"}, "NotFound"),
    ]
    for method, params, name in refused:
        with pytest.raises(Failed) as failed:
            await client.call(method, params)
        assert failed.value.name == name, (method, params)
    await client.call("messages/delete", {**here, "id": "m9", "missingOk": True})
    assert await ids(client, session) == ["m1", "m2", "m3"]


async def test_a_conflict_shows_what_is_there(client: Wire, session: str) -> None:
    with pytest.raises(Failed) as failed:
        await client.call(
            "messages/update",
            {"session": session, "id": "m1", "patch": {"set": {"content": "x"}}, "expectedVersion": "0"},
        )
    data = failed.value.error["data"]
    assert data["resource"] == {"noun": "messages", "id": "m1", "workspace": WORKSPACE}
    there = await client.call("messages/get", {"session": session, "id": "m1"})
    assert data["current"] == {"version": there["item"]["version"], "item": there["item"]}
    update = {"session": session, "id": "m1", "patch": {"set": {"content": "x"}}, "fields": ["content"]}
    done = await client.call("messages/update", {**update, "expectedVersion": data["current"]["version"]})
    assert done["item"]["value"] == {"content": "x"}


async def test_an_agent_may_append_early_and_complete_later(shared: Daemon, client: Wire, session: str) -> None:
    """The bytes of every other line stay what they were."""
    path = shared.base / "ws" / "sessions" / session / "session.jsonl"
    early = message("t1", "tool", toolName="Read", toolStatus="executing")
    client.ask("messages/append", {"session": session, "messages": [early]})
    done = {"toolStatus": "completed", "toolResult": f"{path.parent}/data/x.json"}
    asked = client.ask("messages/update", {"session": session, "id": "t1", "patch": {"set": done}})
    last = client.ask("messages/append", {"session": session, "messages": [message("a1", "assistant")]})
    await client.answer(last)
    assert (await client.answer(asked))["item"]["value"] == {**early, **done}
    lines = path.read_bytes().split(b"\n")
    assert [json.loads(one) for one in lines[1:4]] == [message("m1"), message("m2", "assistant"), message("m3", "tool")]
    assert b'"toolResult":"{{SESSION_PATH}}/data/x.json","type":"tool"}' in lines[4]
    with pytest.raises(Failed, match="AlreadyExists"):
        await client.call("messages/append", {"session": session, "messages": [early]})


async def test_every_edit_is_there_after_a_restart(make_daemon: Callable[..., Daemon], connect: Connect) -> None:
    daemon = make_daemon()
    set_up(daemon)
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    id = (await client.call("sessions/create", {"value": {"name": "Talk"}}))["item"]["id"]
    await client.call("messages/append", {"session": id, "messages": [message(f"m{n}") for n in range(6)]})
    await client.call("messages/update", {"session": id, "id": "m1", "patch": {"set": {"content": "edited"}}})
    await client.call("messages/delete", {"session": id, "id": "m0"})
    await client.call("messages/truncate", {"session": id, "afterMessage": "m3"})
    before = await client.call("sessions/get", {"id": id, "messages": 10})
    daemon.kill()
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    after = await client.call("sessions/get", {"id": id, "messages": 10})
    assert (after["item"], after["messages"]) == (before["item"], before["messages"])
    assert [item["id"] for item in after["messages"]] == ["m1", "m2", "m3"]
