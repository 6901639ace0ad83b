"""The resource contract over the socket: pages, filters, versions, keys, patches, and everything that is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from attrs import fields

from craftd.protocol import methods as _complete_registry  # noqa: F401
from craftd.protocol.codec import camel
from craftd.protocol.registry import METHODS
from tests.daemon import Daemon, snapshot
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
Values = dict[str, Any]

LABELS = {
    "version": 1,
    "labels": [
        {"id": "area", "name": "Area", "children": [{"id": "garden", "name": "Garden", "valueType": "number"}]},
        {"id": "bug", "name": "Bug"},
    ],
}


def make_workspace(root: Path) -> Path:
    (root / "labels").mkdir(parents=True)
    (root / "config.json").write_text('{"id": "ws_00000001", "name": "Contract", "slug": "contract"}')
    (root / "labels" / "config.json").write_text(json.dumps(LABELS))
    return root


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    daemon.register(ws=make_workspace(daemon.base / "ws"))
    daemon.start()
    return daemon


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, "ws")


_numbers = count(1)


async def create(client: Wire, **value: Any) -> str:
    """A new session; its id."""
    params = {"id": f"s-{next(_numbers)}", "value": value}
    id: str = (await client.call("sessions/create", params))["item"]["id"]
    return id


async def get(client: Wire, id: str) -> Values:
    item: Values = (await client.call("sessions/get", {"id": id}))["item"]
    return item


async def update(client: Wire, id: str, patch: Values, **more: Any) -> Values:
    answer: Values = await client.call("sessions/update", {"id": id, "patch": patch, **more})
    return answer


async def append(client: Wire, session: str, *messages: Values, **more: Any) -> Values:
    answer: Values = await client.call("messages/append", {"session": session, "messages": [*messages], **more})
    return answer


async def ids(client: Wire, filter: Values, **more: Any) -> list[str]:
    """Ids of the sessions that match, in order."""
    page = await client.call("sessions/list", {"filter": filter, "limit": 500, **more})
    return [item["id"] for item in page["items"]]


async def refused(client: Wire, method: str, params: Any) -> Failed:
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    return failed.value


def wrong(failed: Failed) -> list[str]:
    """Paths of what a refusal names."""
    return [issue["path"] for issue in failed.error["data"]["issues"]]


# Pages


async def test_pages_show_everything_once_whatever_is_added_meanwhile(client: Wire) -> None:
    made = [await create(client, taskSlug="pages", name=f"{n:02}") for n in range(12)]
    seen: list[str] = []
    params: Values = {"filter": {"taskSlug": "pages"}, "sort": "name", "limit": 5}
    pages = 0
    while True:
        pages += 1
        page = await client.call("sessions/list", params)
        seen += [item["id"] for item in page["items"]]
        if (cursor := page.get("nextCursor")) is None:
            break
        params["cursor"] = cursor
        await create(client, taskSlug="pages", name="")  # sorts before every page
    assert seen == made
    assert pages == 3
    everything = await client.call("sessions/list", {"limit": 500})
    assert everything["total"] == len(everything["items"])


async def test_pages_of_a_transcript_can_be_turned_from_either_end(client: Wire) -> None:
    session = await create(client)
    sent = [{"id": f"m{n}", "type": "user", "content": str(n)} for n in range(10)]
    await append(client, session, *sent)

    async def turn(direction: str) -> list[list[str]]:
        pages, cursor = [], None
        while True:
            params = {"session": session, "limit": 4, "direction": direction}
            page = await client.call("messages/list", params if cursor is None else {**params, "cursor": cursor})
            assert page["total"] == 10
            pages.append([item["id"] for item in page["items"]])
            if (cursor := page.get("nextCursor")) is None:
                return pages

    assert await turn("forward") == [["m0", "m1", "m2", "m3"], ["m4", "m5", "m6", "m7"], ["m8", "m9"]]
    assert await turn("backward") == [["m6", "m7", "m8", "m9"], ["m2", "m3", "m4", "m5"], ["m0", "m1"]]


async def test_a_page_ends_at_about_a_mebibyte_and_has_at_least_one_item(client: Wire) -> None:
    session = await create(client)
    for n in range(3):
        await append(client, session, {"id": f"m{n}", "type": "user", "content": "x" * 1_000_000})
    page = await client.call("messages/list", {"session": session})
    assert [item["id"] for item in page["items"]] == ["m0"]
    rest = await client.call("messages/list", {"session": session, "cursor": page["nextCursor"], "limit": 2})
    assert [item["id"] for item in rest["items"]] == ["m1"]


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"limit": True}, "limit"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": ""}, "cursor"),
        ({"cursor": "W10="}, "cursor"),
        ({"sort": ""}, "sort"),
        ({"sort": "-"}, "sort"),
        ({"fields": "name"}, "fields"),
        ({"fields": ["name", 1]}, "fields.1"),
        ({"filter": []}, "filter"),
        ({"filter": {"colour": "red"}}, "filter.colour"),
        ({"filter": {"state": "open"}}, "filter.state"),
        ({"filter": {"flagged": "yes"}}, "filter.flagged"),
        ({"filter": {"label": 1}}, "filter.label"),
        ({"filter": {"text": None}}, "filter.text"),
        ({"filter": {"name": {"startsWith": "x"}}}, "filter.name"),
        ({"filter": {"name": {}}}, "filter.name"),
    ],
)
async def test_a_list_that_cannot_be_meant_is_refused(client: Wire, params: Values, path: str) -> None:
    failed = await refused(client, "sessions/list", params)
    assert failed.code == -32602
    assert wrong(failed) == [path]


async def test_a_cursor_belongs_to_one_list(client: Wire) -> None:
    first, second = [await create(client, name=name) for name in "ab"]
    page = await client.call("sessions/list", {"sort": "name", "limit": 1})
    params = {"cursor": page["nextCursor"]}
    assert wrong(await refused(client, "sessions/list", {**params, "sort": "-name"})) == ["cursor"]
    assert wrong(await refused(client, "messages/list", {**params, "session": first})) == ["cursor"]
    for session in (first, second):
        await append(client, session, *({"type": "user", "content": "x"} for _ in range(2)))
    page = await client.call("messages/list", {"session": first, "limit": 1})
    params = {"session": second, "cursor": page["nextCursor"]}
    assert wrong(await refused(client, "messages/list", params)) == ["cursor"]


async def test_cursors_end_with_the_daemon_and_versions_do_not(daemon: Daemon, client: Wire, connect: Connect) -> None:
    session = await create(client, name="Lasting")
    await create(client, name="Another")
    await append(client, session, *({"type": "user", "content": "x"} for _ in range(2)))
    sessions = await client.call("sessions/list", {"limit": 1})
    messages = await client.call("messages/list", {"session": session, "limit": 1})
    before = await get(client, session)
    daemon.restart()
    again = await connect(daemon, "ws")
    for method, params in (
        ("sessions/list", {"cursor": sessions["nextCursor"]}),
        ("messages/list", {"session": session, "cursor": messages["nextCursor"]}),
    ):
        failed = await refused(again, method, params)
        assert (failed.code, failed.name) == (1012, "StaleCursor")
    assert await get(again, session) == before


# Filters, sorts, fields


async def test_every_filter_of_sessions_finds_what_it_says(client: Wire) -> None:
    project = (await client.call("projects/create", {"value": {"name": "Garden"}}))["item"]["id"]
    parent = await create(client, taskSlug="filters", name="Parent", projectId=project)
    child = await create(client, taskSlug="filters", name="Child", parentSessionId=parent, labels=["garden::2026"])
    archived = await create(client, taskSlug="filters", name="Archived", isArchived=True)
    closed = await create(client, taskSlug="filters", name="Closed", sessionStatus="done", labels=["bug"])
    flagged = await create(client, taskSlug="filters", name="Flagged", isFlagged=True, hidden=True)
    unread = await create(client, taskSlug="filters", name="Unread")
    await append(client, unread, {"type": "user", "content": "Something NEW"}, {"type": "assistant", "content": "Yes"})
    everything = [parent, child, archived, closed, flagged, unread]

    async def found(**filter: Any) -> list[str]:
        return await ids(client, {"taskSlug": "filters", **filter}, sort="createdAt")

    assert await found() == everything
    assert await found(state="all") == everything
    assert await found(state="archived") == [archived]
    assert await found(state="completed") == [closed]
    assert await found(state="inbox") == [parent, child, flagged, unread]
    assert await found(state="active") == [parent, child, closed, flagged, unread]
    assert await found(state=["archived", "completed"]) == [archived, closed]
    assert await found(label="area") == [child]
    assert await found(label="garden") == [child]
    assert await found(label=["bug", "garden"]) == [child, closed]
    assert await found(status="done") == [closed]
    assert await found(status=["done", "todo"]) == everything
    assert await found(project=project) == [parent, child]  # it inherits that
    assert await found(parent=parent) == [child]
    assert await found(text="something new") == [unread]
    assert await found(text="CHILD") == [child]
    assert await found(unread=True) == [unread]
    assert await found(flagged=True) == [flagged]
    assert await found(flagged=False) == [parent, child, archived, closed, unread]
    assert await found(hidden=True) == [flagged]
    assert await found(state="inbox", hidden=False, unread=False) == [parent, child]


async def test_fields_can_be_compared(client: Wire) -> None:
    a, b, c = [
        await create(client, taskSlug="compare", name=name, taskNodeCount=number, labels=labels)
        for name, number, labels in (("Alpha", 1, ["bug"]), ("Beta", 2, ["bug", "garden"]), ("Alpine", 3, []))
    ]
    without = await create(client, taskSlug="compare")

    async def found(**filter: Any) -> list[str]:
        return await ids(client, {"taskSlug": "compare", **filter}, sort="createdAt")

    assert await found(name="Alpha") == [a]
    assert await found(name=["Alpha", "Beta"]) == [a, b]
    assert await found(name={"prefix": "Alp"}) == [a, c]
    assert await found(name={"contains": "ETA"}) == [b]
    assert await found(taskNodeCount={"gte": 2}) == [b, c]
    assert await found(taskNodeCount={"gte": 2, "lte": 2}) == [b]
    assert await found(taskNodeCount={"gte": "2"}) == []  # nothing is coerced
    assert await found(labels={"contains": "garden"}) == [b]
    assert await found(name=None) == [without]
    assert await found(taskNodeCount=True) == []


async def test_the_order_is_total(client: Wire) -> None:
    b, c, a, x = [await create(client, taskSlug="order", name=name) for name in ("same", "same", "first", "same")]
    assert await ids(client, {"taskSlug": "order"}, sort="name") == [a, b, c, x]
    assert await ids(client, {"taskSlug": "order"}, sort="-name") == [x, c, b, a]
    # By the last message, and that goes on when one is added.
    await append(client, c, {"type": "user", "content": "now", "timestamp": 4_000_000_000_000})
    assert (await ids(client, {"taskSlug": "order"}))[0] == c


async def test_only_the_fields_that_were_asked_for_come(client: Wire) -> None:
    id = await create(client, name="Fields", pendingPlanExecution={"planPath": "/x"}, futureField=1)

    async def listed(**more: Any) -> Values:
        [item] = (await client.call("sessions/list", {"filter": {"id": id}, **more}))["items"]
        value: Values = item["value"]
        return value

    whole = (await get(client, id))["value"]
    assert whole["pendingPlanExecution"]["planPath"] == "/x"
    assert whole["futureField"] == 1
    assert await listed(fields=["*"]) == whole
    assert await listed(fields=["name", "no such"]) == {"name": "Fields"}
    assert await listed(fields=[]) == {}
    light = await listed()
    assert "pendingPlanExecution" not in light
    assert light["name"] == "Fields"
    got = await client.call("sessions/get", {"id": id, "fields": ["name"]})
    assert got["item"]["value"] == {"name": "Fields"}
    assert got["item"]["version"]
    assert (await update(client, id, {}, fields=["name"]))["item"]["value"] == {"name": "Fields"}


# Versions, keys


async def test_a_change_based_on_an_old_version_is_refused_with_what_is_there(client: Wire) -> None:
    id = await create(client, name="First")
    old = await get(client, id)
    new = (await update(client, id, {"set": {"name": "Second"}}, expectedVersion=old["version"]))["item"]
    failed = await refused(
        client, "sessions/update", {"id": id, "expectedVersion": old["version"], "patch": {"set": {"name": "Third"}}}
    )
    assert (failed.code, failed.name) == (1003, "VersionConflict")
    assert failed.error["data"]["resource"] == {"noun": "sessions", "id": id, "workspace": "ws"}
    assert failed.error["data"]["current"] == {"version": new["version"], "item": new}
    failed = await refused(client, "sessions/delete", {"id": id, "expectedVersion": old["version"]})
    assert failed.name == "VersionConflict"
    assert (await get(client, id))["value"]["name"] == "Second"
    # Equal contents have equal versions, and a message does not take anybody's pending rename away.
    await append(client, id, {"type": "user", "content": "x"})
    back = await update(client, id, {"set": {"name": "First"}}, expectedVersion=new["version"])
    assert back["item"]["version"] == old["version"]


async def test_a_change_that_changes_nothing_is_no_change(client: Wire) -> None:
    id = await create(client, name="Same", labels=["bug"])
    position = await client.call("events/subscribe", {"workspace": "ws"})
    for patch in ({}, {"set": {"name": "Same"}}, {"add": {"/labels": ["bug"]}}, {"unset": ["/model"]}):
        answer = await update(client, id, patch)
        assert answer["changed"] is False
        assert answer["revision"] == position["revision"]
    await client.call("daemon/sync", {"workspace": "ws"})
    assert client.notifications("sessions/didChange") == []


KEY = "6f1c0c4e-6a52-4d0e-9a3f-2f0d5b7f1c11"


async def test_a_request_that_is_sent_again_with_its_key_is_carried_out_once(client: Wire, connect: Connect) -> None:
    await client.call("events/subscribe", {"workspace": "ws"})
    params = {"value": {"name": "Once", "taskSlug": "keys"}, "key": KEY}
    first, second = await asyncio.gather(*(client.call("sessions/create", params) for _ in range(2)))
    third = await client.call("sessions/create", params)
    assert first == second == third
    assert await ids(client, {"taskSlug": "keys"}) == [first["item"]["id"]]
    await client.call("daemon/sync", {"workspace": "ws"})
    [event] = client.notifications("sessions/didCreate")
    assert event["origin"]["key"] == KEY

    # The item is read again, so it is never older than what the client has seen.
    await update(client, first["item"]["id"], {"set": {"name": "Twice"}})
    again = await client.call("sessions/create", params)
    assert again["item"]["value"]["name"] == "Twice"
    assert again["revision"] == first["revision"]


async def test_a_key_is_for_one_change(daemon: Daemon, client: Wire, connect: Connect) -> None:
    key = f"{KEY}-2"
    await client.call("sessions/create", {"value": {"taskSlug": "one key"}, "key": key})
    for method, params in (
        ("sessions/create", {"value": {"taskSlug": "one key", "name": "Another"}, "key": key}),
        ("sessions/delete", {"id": "x", "missingOk": True, "key": key}),
    ):
        failed = await refused(client, method, params)
        assert failed.code == -32602
        assert failed.error["data"]["reason"] == "keyReused"
    assert len(await ids(client, {"taskSlug": "one key"})) == 1
    stranger = await connect(daemon, "ws", clientInfo={"name": "somebody else"})
    await stranger.call("sessions/create", {"value": {"taskSlug": "one key"}, "key": key})
    assert len(await ids(client, {"taskSlug": "one key"})) == 2
    for bad in ("short", "x" * 129):
        assert wrong(await refused(client, "sessions/create", {"value": {}, "key": bad})) == ["key"]


async def test_a_refused_change_may_be_tried_again_with_its_key(client: Wire) -> None:
    id = await create(client)
    await update(client, id, {"set": {"name": "x"}})
    params = {"id": f"{id}-later", "patch": {"set": {"name": "y"}}, "key": f"{KEY}-3"}
    assert (await refused(client, "sessions/update", params)).name == "NotFound"
    await client.call("sessions/create", {"id": f"{id}-later", "value": {}})
    assert (await client.call("sessions/update", params))["item"]["value"]["name"] == "y"


# Patches


async def test_the_parts_of_a_patch_apply_in_their_order(client: Wire) -> None:
    id = await create(client, labels=["bug", "garden"], custom={"keep": {"a": 1, "b": 2}, "drop": 1, "a/b~c": 1})
    patch = {
        "add": {"/labels": ["bug", "area"]},
        "remove": {"/labels": ["garden", "set"]},
        "set": {"labels": ["set", "garden", "bug"], "custom": {"keep": {"b": [3]}, "drop": 2}, "isFlagged": True},
        "unset": ["/custom/drop", "/custom/a~1b~0c", "/isArchived", "/custom/none"],
    }
    value = (await update(client, id, patch))["item"]["value"]
    assert value["labels"] == ["bug", "area"]
    assert value["custom"] == {"keep": {"a": 1, "b": [3]}, "drop": 2}
    assert value["isFlagged"] is True
    # A whole object is replaced by taking it out and setting it.
    value = (await update(client, id, {"unset": ["/custom"], "set": {"custom": {"new": None}}}))["item"]["value"]
    assert value["custom"] == {"new": None}


@pytest.mark.parametrize(
    ("patch", "path"),
    [
        ({"replace": {}}, "patch.replace"),
        ({"set": []}, "patch.set"),
        ({"unset": "/name"}, "patch.unset"),
        ({"unset": ["name"]}, "patch.unset.0"),
        ({"add": {"labels": ["x"]}}, "patch.add.labels"),
        ({"add": {"/labels": "x"}}, "patch.add./labels"),
        ([], "patch"),
    ],
)
async def test_a_patch_of_the_wrong_shape_is_refused(client: Wire, patch: Any, path: str) -> None:
    id = await create(client)
    failed = await refused(client, "sessions/update", {"id": id, "patch": patch})
    assert failed.code == -32602
    assert wrong(failed) == [path]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"name": 5}, "name"),
        ({"isFlagged": "yes"}, "isFlagged"),
        ({"labels": "bug"}, "labels"),
        ({"permissionMode": "yolo"}, "permissionMode"),
        ({"id": "another"}, "id"),
        ({"createdAt": 1}, "createdAt"),
        ({"messageCount": 7}, "messageCount"),
    ],
)
async def test_a_value_that_breaks_the_schema_is_refused_and_named(client: Wire, value: Values, path: str) -> None:
    id = await create(client)
    before = await get(client, id)
    failed = await refused(client, "sessions/update", {"id": id, "patch": {"set": value}})
    assert (failed.code, failed.name) == (1005, "ValidationFailed")
    assert wrong(failed) == [path]
    assert await get(client, id) == before


# Appends


async def test_an_append_goes_behind_the_message_that_its_author_has_seen(client: Wire) -> None:
    session = await create(client)
    first = {"id": "a", "type": "user", "content": "a"}
    second = {"id": "b", "type": "assistant", "content": "b"}
    failed = await refused(client, "messages/append", {"session": session, "messages": [second], "expectedTail": "a"})
    assert failed.name == "VersionConflict"
    assert failed.error["data"]["current"] == {"tail": ""}
    done = await append(client, session, first, expectedTail="")
    assert [message["id"] for message in done["messages"]] == ["a"]
    failed = await refused(client, "messages/append", {"session": session, "messages": [second], "expectedTail": ""})
    assert failed.error["data"]["current"] == {"tail": "a"}
    await append(client, session, second, expectedTail="a")

    # Sent again, because the answer was lost: the same answer, and nothing is there twice.
    for message, tail in ((first, ""), (second, "a")):
        again = await append(client, session, message, expectedTail=tail)
        assert [one["id"] for one in again["messages"]] == [message["id"]]
    assert (await client.call("messages/list", {"session": session}))["total"] == 2
    failed = await refused(client, "messages/append", {"session": session, "messages": [{**first, "content": "other"}]})
    assert (failed.code, failed.name) == (1002, "AlreadyExists")
    assert failed.error["data"]["current"]["value"]["content"] == "a"


async def test_an_append_may_change_the_header_in_the_same_commit(client: Wire) -> None:
    session = await create(client)
    await client.call("events/subscribe", {"workspace": "ws"})
    done = await append(client, session, {"type": "user", "content": "x"}, set={"sessionStatus": "in-progress"})
    value = (await get(client, session))["value"]
    assert (value["sessionStatus"], value["messageCount"]) == ("in-progress", 1)
    told = [message["params"] for message in client.received if "batch" in message.get("params", {})]
    assert [one["batch"] for one in told] == [{"index": 0, "size": 2}, {"index": 1, "size": 2}]
    assert [one["revision"] for one in told] == [done["revision"] - 1, done["revision"]]
    failed = await refused(
        client,
        "messages/append",
        {"session": session, "messages": [{"type": "user", "content": "y"}], "set": {"name": 1}},
    )
    assert failed.code == -32602
    assert (await get(client, session))["value"]["messageCount"] == 1


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ({"content": "x"}, "messages.0.type"),
        ({"type": "user", "content": 5}, "messages.0.content"),
        ({"type": "user", "content": "x", "id": ""}, "messages.0.id"),
        ({"type": "user", "content": "x", "id": 5}, "messages.0.id"),
        ({"type": "user", "content": "x", "timestamp": "now"}, "messages.0.timestamp"),
        ("text", "messages.0"),
        (None, "messages.0"),
    ],
)
async def test_a_message_of_the_wrong_shape_is_refused(client: Wire, message: Any, path: str) -> None:
    session = await create(client)
    failed = await refused(client, "messages/append", {"session": session, "messages": [message]})
    assert failed.code == -32602
    assert path in wrong(failed)
    assert (await get(client, session))["value"]["messageCount"] == 0


# Payloads


PAYLOADS: Values = {
    "odd keys": {
        "jsonrpc": "2.0", "id": 1, "method": "shutdown", "params": {"X-Api-Key": "k", "class": "A", "1st": True},
        "__proto__": {"x": 1}, "constructor": None, "": "empty", "type_name": "odd name", "in-progress": [],
    },
    "nulls": [None, {"a": None}, [None]],
    "lone surrogates": ["\ud83d", "\udc00 tail", {"\ud800": "key"}, "😀"],
    "big integers": [10**39, -(10**39), 2**53 + 1, 2**63, 2**64, 9007199254740993],
    "numbers": [0.1, -0.5, 5e-324, 1.7976931348623157e308, 123456789012345680000],
    "control characters": "\u0000\u0001\u001f\u007f\u2028\u2029\ufeff\uffff\r\n\t\"\\",
    "deep": json.loads('{"a":' * 60 + "1" + "}" * 60),
    "long": "ä" * 500_000,
    "tokens": "{{SESSION_PATH}} and ~/x and ${HOME}",
}  # fmt: skip


async def test_whatever_a_client_sends_comes_back_as_it_was(daemon: Daemon, client: Wire, connect: Connect) -> None:
    session = await create(client, custom=PAYLOADS["odd keys"])
    watcher = await connect(daemon, "ws")
    since = await watcher.call("events/subscribe", {"workspace": "ws"})
    sent = {
        name: {"id": name, "type": "tool", "content": "", "toolInput": {"value": value}, "timestamp": 1}
        for name, value in PAYLOADS.items()
    }
    await append(client, session, *sent.values())
    for _ in range(2):
        page = await client.call("messages/list", {"session": session, "limit": 500})
        read = {item["id"]: item["value"] for item in page["items"]}
        if (cursor := page.get("nextCursor")) is not None:
            page = await client.call("messages/list", {"session": session, "limit": 500, "cursor": cursor})
            read |= {item["id"]: item["value"] for item in page["items"]}
        for name, message in sent.items():
            for value in (
                read[name],
                (await client.call("messages/get", {"session": session, "id": name}))["item"]["value"],
            ):
                assert value == message
                assert repr(value["toolInput"]) == repr(message["toolInput"])  # order of keys, True is not 1
        assert (await get(client, session))["value"]["custom"] == PAYLOADS["odd keys"]
        if client is not watcher:
            event = await watcher.notified("messages/didAppend")
            told = {message["id"]: message for message in event["messages"]}
            long = told.pop("long")
            assert (long["id"], long["type"]) == ("long", "tool")  # too long for everybody: named, not carried
            assert long["omitted"] > 1_000_000
            assert told == {name: message for name, message in sent.items() if name != "long"}
            polled = await client.call(
                "events/read", {"workspace": "ws", "since": {k: since[k] for k in ("epoch", "revision")}}
            )
            assert event in [one["params"] for one in polled["events"]]
            daemon.restart()
            client = watcher = await connect(daemon, "ws")


async def test_no_frame_holds_what_is_no_json(daemon: Daemon, client: Wire, connect: Connect) -> None:
    session = await create(client)
    message = '{"type":"user","content":"","x":%s}'
    params = f'{{"session":"{session}","messages":[{message}]}}'
    request = f'{{"jsonrpc":"2.0","id":"odd","method":"messages/append","params":{params}}}'
    for token in ("NaN", "Infinity", "-Infinity"):
        client.raw(frame((request % token).encode()))
    await client.wait(lambda message: client.order.count(None) == 3)
    assert (await get(client, session))["value"]["messageCount"] == 0
    # A number beyond what a double holds is JSON; it is stored as the app would store it.
    client.raw(frame((request % "1e400").encode()))
    await client.answer("odd")
    [item] = (await client.call("messages/list", {"session": session}))["items"]
    assert item["value"]["x"] is None
    for body in client.bodies:  # an error may name the token in its text
        json.loads(body, parse_constant=pytest.fail)
    assert b"Infinity" not in (daemon.base / "ws" / "sessions" / session / "session.jsonl").read_bytes()


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


# What is refused


POSITION = {"line": 0, "character": 0}


@pytest.mark.parametrize(
    ("method", "params", "paths"),
    [
        ("sessions/get", None, ["id"]),
        ("sessions/get", {}, ["id"]),
        ("sessions/get", {"id": None}, ["id"]),
        ("sessions/get", {"id": 12}, ["id"]),
        ("sessions/get", {"id": "x", "ide": 1}, ["ide"]),
        ("sessions/get", {"id": "x", "messages": "3"}, ["messages"]),
        ("sessions/update", {"id": "x"}, ["patch"]),
        ("sessions/update", {"id": "x", "patch": {}, "expectedVerson": "v"}, ["expectedVerson"]),
        ("sessions/update", {"id": "x", "patch": {}, "expectedVersion": 5, "key": 5}, ["key", "expectedVersion"]),
        ("sessions/delete", {"id": "x", "missingOk": "false"}, ["missingOk"]),
        ("sessions/create", {}, ["value"]),
        ("sessions/create", {"value": []}, ["value"]),
        ("messages/append", {"messages": []}, ["session"]),
        ("messages/append", {"session": "x", "messages": {}}, ["messages"]),
        ("messages/list", {"session": "x", "direction": "up"}, ["direction"]),
        ("messages/list", {"session": "x", "sort": "id"}, ["sort"]),
        ("messages/list", {"session": "x", "filter": {}}, ["filter"]),
        ("events/subscribe", {"topics": "all"}, ["topics"]),
        ("events/subscribe", {"topics": ["session"]}, ["topics"]),
        ("events/subscribe", {"since": {"epoch": "x"}}, ["since.revision"]),
        ("events/read", {"since": {"epoch": "x", "revision": "1"}}, ["since.revision"]),
        ("workspaces/list", {"workspace": "ws"}, ["workspace"]),
        ("daemon/stop", {"reson": "x"}, ["reson"]),
        ("textDocument/hover", {"bad": 1}, ["textDocument", "position"]),
        ("textDocument/definition", {"textDocument": {"uri": 5}, "position": POSITION}, ["textDocument.uri"]),
        ("workspace/executeCommand", {}, ["command"]),
        ("workspace/executeCommand", {"command": "craft.call"}, ["arguments"]),
        ("workspace/executeCommand", {"command": "craft.call", "arguments": ["sessions/get", {}]}, ["id"]),
    ],
)  # fmt: skip
async def test_wrong_params_are_refused_by_name(client: Wire, method: str, params: Any, paths: list[str]) -> None:
    failed = await refused(client, method, params)
    assert (failed.code, failed.name) == (-32602, "InvalidParams")
    assert sorted(wrong(failed)) == sorted(paths)
    for path in paths:
        assert path in str(failed)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("no/such", None),
        ("sessions/lst", {}),
        ("tasks/list", {}),
        ("messages/create", {}),
        ("", {}),
        ("textDocument/hover", {"textDocument": {"uri": "file:///x"}, "position": POSITION}),
        ("textDocument/linkedEditingRange", {"textDocument": {"uri": "file:///x"}, "position": POSITION}),
        ("workspace/symbol", {"query": ""}),
        ("workspace/applyEdit", {"edit": {}}),
        ("workspace/executeCommand", {"command": "craft.call", "arguments": ["no/such", {}]}),
    ],
)  # fmt: skip
async def test_a_method_that_is_not_served_is_answered_so(client: Wire, method: str, params: Any) -> None:
    failed = await refused(client, method, params)
    assert (failed.code, failed.name) == (-32601, "MethodNotFound")


async def test_everything_announced_is_served_and_nothing_else(daemon: Daemon) -> None:
    client = await daemon.dial()
    craft = await client.initialize()
    for method in craft["methods"]:
        if method == "daemon/stop":
            continue
        failed = await refused(client, method, {"no such member": 1})
        assert "no such member" in wrong(failed), method
    assert {"sessions/list", "messages/append", "projects/create", "labels/delete"} <= set(craft["methods"])
    await client.close()


@pytest.mark.parametrize(
    ("body", "code", "id"),
    [
        (b'[{"jsonrpc":"2.0","id":1,"method":"daemon/status"}]', -32600, None),
        (b"[]", -32600, None),
        (b"5", -32600, None),
        (b'"text"', -32600, None),
        (b"null", -32600, None),
        (b"{", -32700, None),
        (b"", -32700, None),
        (b'{"a": NaN}', -32700, None),
        (b'{"a": "\xff"}', -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"2.0","id":"q"}', -32600, "q"),
        (b'{"jsonrpc":"2.0","id":null,"method":"daemon/status"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"daemon/status"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"daemon/status"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"daemon/status"}', -32600, None),
        (b'{"jsonrpc":"1.0","id":"q","method":"daemon/status"}', -32600, "q"),
        (b'{"id":"q","method":"daemon/status"}', -32600, "q"),
        (b'{"jsonrpc":"2.0","id":"q","method":5}', -32600, "q"),
        (b'{"jsonrpc":"2.0","method":5}', -32600, None),
        (b'{"jsonrpc":"2.0","id":"q","method":"sessions/list","params":5}', -32602, "q"),
        (b'{"jsonrpc":"2.0","id":"q","method":"sessions/list","params":[1]}', -32602, "q"),
    ],
)
async def test_what_is_no_request_is_answered_once_and_the_connection_lives(
    client: Wire, body: bytes, code: int, id: Any
) -> None:
    begin = len(client.received)
    client.raw(frame(body))
    await client.call("daemon/status")
    answers = [message for message in client.received[begin:] if message.get("id") in (id, "q")]
    [answer] = answers
    assert answer["id"] == id
    assert answer["error"]["code"] == code


async def test_an_id_is_used_for_one_request_at_a_time(client: Wire) -> None:
    since = await client.call("daemon/sync", {"workspace": "ws"})
    client.send("events/read", {"workspace": "ws", "since": since, "topics": ["labels"], "waitMs": 60_000}, id="twice")
    client.send("daemon/status", {}, id="twice")
    refusal = await client.wait(lambda message: message.get("id") == "twice")
    assert refusal["error"]["code"] == -32600
    label = (await client.call("labels/create", {"value": {"name": "Twice"}}))["item"]["id"]
    await client.wait(lambda message: message.get("id") == "twice" and "result" in message)
    assert client.order.count("twice") == 2
    client.send("daemon/status", {}, id="twice")  # free again
    await client.wait(lambda message: client.order.count("twice") == 3)
    await client.call("labels/delete", {"id": label})


async def test_ids_may_be_any_integer_or_string(client: Wire) -> None:
    for id in (0, -1, 2**53, 2**80, "", "0", "\ud83d", "x" * 10_000):
        client.send("daemon/sync", {}, id=id)
        await client.answer(id)


async def test_before_initialize_only_the_daemon_answers(daemon: Daemon) -> None:
    client = await daemon.dial()
    for method in ("sessions/list", "events/subscribe", "shutdown", "no/such", "textDocument/hover"):
        failed = await refused(client, method, {})
        assert (failed.code, failed.name) == (-32002, "NotInitialized")
    assert (await client.call("daemon/hello"))["protocol"] == "1.0"
    failed = await refused(client, "initialize", {"capabilities": {"experimental": {"craft": {"protocol": "2.0"}}}})
    assert failed.code == -32600
    assert failed.error["data"]["supported"] == ["1.0"]
    failed = await refused(client, "initialize", {"capabilities": 5})
    assert failed.code == -32602
    await client.initialize()
    failed = await refused(client, "initialize", {"capabilities": {}})
    assert (failed.code, failed.name) == (-32600, "InvalidRequest")
    await client.close()


async def test_after_shutdown_only_exit_is_understood(daemon: Daemon, client: Wire, connect: Connect) -> None:
    other = await connect(daemon, "ws")
    assert await client.call("shutdown") is None
    for method in ("sessions/list", "shutdown", "initialize", "daemon/hello", "daemon/stop"):
        failed = await refused(client, method, {"capabilities": {}})
        assert (failed.code, failed.name) == (-32600, "InvalidRequest")
    client.send("exit")
    await client.closed()
    assert (await other.call("daemon/status"))["pid"]  # the end of one connection


# Ids


BAD_IDS = {
    "up": "../x", "up twice": "../../x", "below": "a/b", "absolute": "/tmp/x", "empty": "", "dot": ".", "dots": "..",
    "hidden": ".hidden", "long": "x" * 10_000, "new line": "good\n", "nul": "good\0", "space": "a b", "accent": "é",
    "wide": "ａｂｃ", "backslash": "..\\x", "percent": "%2e%2e%2fx", "surrogate": "\ud800", "token": "{{SESSION_PATH}}",
    "home": "~",
}  # fmt: skip
NOUNS = ("sessions", "projects", "sources", "skills", "statuses", "labels")
GOOD: Values = {
    "id": "good",
    "session": "good",
    "value": {"name": "x"},
    "patch": {},
    "messages": [],
    "path": "good.txt",
    "content": {"text": "x"},
    "event": {"type": "text_delta"},
    "keep": 0,
    "mode": "safe",
    "tool": "Read",
    "input": {},
    "new_id": "other",
    "text": "[skill:good]",
    "query": "x",
    "project": "proj_good",
    "message": "m1",
}


async def test_what_is_no_id_is_refused_before_it_could_become_a_path(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "ws", capabilities={"experimental": {"craft": {"roles": ["executor"]}}})
    # Whatever a bad id could reach is there to be found.
    root = daemon.base / "ws"
    decoy = b'{"id":"decoy","name":"decoy"}\n{"id":"m1","type":"user","content":"decoy"}\n'
    below = ("x", "sessions", "sessions/.hidden", "sessions/a/b", "sessions/good\n", "sessions/é", "sessions/a b")
    for folder in (*(root / place for place in below), daemon.base / "x"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "session.jsonl").write_bytes(decoy)
    await client.call("daemon/sync", {"workspace": "ws"})
    before = snapshot(root)

    other = await daemon.dial()
    announced = (await other.initialize())["methods"]
    await other.close()
    tried = set()
    for name, row in METHODS.items():
        members = {member.name for member in fields(row.params)}
        for member in members & {"id", "session"} if name in announced else ():
            params = {camel(wanted): value for wanted, value in GOOD.items() if wanted in members}
            if row.noun == "sessions":
                params.pop("messages", None)
            for bad in BAD_IDS.values():
                failed = await refused(client, name, {**params, member: bad})
                said = (name, member, bad[:20], failed.error)
                named = {("messages", "id"), ("annotations", "id"), ("attachments", "id")}
                if row.noun in ("workspaces", "credentials", "tokens", "assets") or (row.noun, member) in named:
                    # Names of workspaces may be paths, these ids anything: they are compared, never opened. Uploads are
                    # called like files, which may have almost any name.
                    assert failed.name in ("InvalidParams", "NotFound"), said
                else:
                    assert failed.code == -32602, said
                    assert wrong(failed) == [member], said
                tried.add((name, member))
    assert {(f"{noun}/{verb}", "id") for noun in NOUNS for verb in ("create", "update", "delete")} <= tried
    assert {("sessions/get", "id"), ("messages/append", "session"), ("messages/get", "id")} <= tried
    assert snapshot(root) == before
