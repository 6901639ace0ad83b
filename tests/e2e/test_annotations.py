"""Annotations over the wire: made, changed, taken away; seen by another client as changes of the message."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from craftd.model.annotations import MOST, MOST_BYTES
from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
Value = dict[str, Any]

KEY = "a-key-of-sixteen-or-more"
MARK: Value = {"target": {"selectors": [{"type": "text-quote", "exact": "text"}]}, "body": [{"type": "highlight"}]}


@pytest.fixture(scope="module")
def shared(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    root = set_up(daemon)
    path = root / "sessions" / "260301-cold-one" / "session.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(
        '{"id":"260301-cold-one","createdAt":1,"messageCount":1}\n{"id":"m1","content":"Hello","type":"user"}\n'
        '{"content":"nobody","type":"user"}\n{"id":"m3","content":"","annotations":{"odd":1},"type":"user"}\nhalf\n'
    )
    daemon.start()
    return daemon


@pytest.fixture
async def client(shared: Daemon, connect: Connect) -> Wire:
    return await connect(shared, WORKSPACE)


@pytest.fixture
async def place(client: Wire) -> Value:
    """A message of a new session."""
    id = (await client.call("sessions/create", {"value": {"name": "Talk"}}))["item"]["id"]
    messages = [{"id": f"m{n}", "content": f"text of {n}", "timestamp": 5, "type": "user"} for n in (1, 2)]
    await client.call("messages/append", {"session": id, "messages": messages})
    return {"session": id, "message": "m1"}


async def annotations(client: Wire, place: Value) -> Any:
    found = await client.call("messages/get", {"session": place["session"], "id": place["message"]})
    return found["item"]["value"].get("annotations")


def lines(shared: Daemon, session: str) -> list[bytes]:
    return (shared.base / "ws" / "sessions" / session / "session.jsonl").read_bytes().splitlines()


async def test_an_annotation_is_made_changed_and_taken_away(
    shared: Daemon, client: Wire, connect: Connect, place: Value
) -> None:
    other = await connect(shared, WORKSPACE)
    await other.call("events/subscribe", {"workspace": WORKSPACE, "sessions": [place["session"]]})
    untouched = lines(shared, place["session"])[2]
    made = await client.call("annotations/create", {**place, "id": "a1", "value": MARK})
    stored = made["item"]["value"]
    assert stored["target"]["source"] == {"sessionId": place["session"], "messageId": "m1"}
    assert json.loads(lines(shared, place["session"])[1])["annotations"] == [stored]
    second = (await client.call("annotations/create", {**place, "value": MARK}))["item"]
    assert second["id"] == second["value"]["id"] != "a1"
    update = {**place, "id": "a1", "patch": {"set": {"status": "resolved"}}, "fields": ["status"]}
    changed = await client.call("annotations/update", {**update, "expectedVersion": made["item"]["version"]})
    assert (changed["changed"], changed["item"]["value"]) == (True, {"status": "resolved"})
    again = await client.call("annotations/update", update)
    assert (again["changed"], again["revision"]) == (False, changed["revision"])
    [first, _] = await annotations(client, place)
    assert (first["id"], first["status"], type(first["updatedAt"])) == ("a1", "resolved", int)
    for id in ("a1", second["id"]):
        await client.call("annotations/delete", {**place, "id": id})
    assert await annotations(client, place) == []
    assert lines(shared, place["session"])[2] == untouched
    await other.call("daemon/sync", {"workspace": WORKSPACE})
    told = other.notifications("messages/didChange")
    assert [(one["session"], [each["id"] for each in one["changes"]]) for one in told] == [
        (place["session"], ["m1"])
    ] * 5
    assert told[0]["patch"] == {"set": {"annotations": [stored]}}
    assert other.notifications("sessions/didChange") == [], "nothing of the session follows from it"


async def test_a_repeat_with_its_key_annotates_once(client: Wire, place: Value) -> None:
    create = {**place, "value": MARK, "key": KEY}
    first = await client.call("annotations/create", create)
    assert await client.call("annotations/create", create) == first
    assert len(await annotations(client, place)) == 1


async def test_there_is_an_end_to_annotations(client: Wire, place: Value) -> None:
    marks = [{"id": f"a{n}", **MARK} for n in range(MOST - 1)]
    many = {"session": place["session"], "id": "m1", "patch": {"set": {"annotations": marks}}}
    await client.call("messages/update", many)
    await client.call("annotations/create", {**place, "value": MARK})
    with pytest.raises(Failed, match="InvalidState"):
        await client.call("annotations/create", {**place, "value": MARK})
    elsewhere = {**place, "message": "m2"}
    large = {**MARK, "meta": {"text": "é" * (MOST_BYTES // 2)}}
    with pytest.raises(Failed, match="TooLarge") as failed:
        await client.call("annotations/create", {**elsewhere, "value": large})
    assert failed.value.error["data"]["limit"] == MOST_BYTES
    await client.call("annotations/create", {**elsewhere, "id": "a1", "value": MARK})
    grown = {"set": {"meta": {"text": "x" * MOST_BYTES}}}
    with pytest.raises(Failed, match="TooLarge"):
        await client.call("annotations/update", {**elsewhere, "id": "a1", "patch": grown})
    assert len(await annotations(client, place)) == MOST


async def test_what_does_not_fit_is_refused_by_name(client: Wire, place: Value) -> None:
    made = await client.call("annotations/create", {**place, "id": "a1", "value": MARK})
    here = {**place, "id": "a1"}
    refused: list[tuple[str, Value, str]] = [
        ("create", {**here, "value": MARK}, "AlreadyExists"),
        ("create", {**place, "message": "m9", "value": MARK}, "NotFound"),
        ("create", {**place, "session": "no-such-session", "value": MARK}, "NotFound"),
        ("create", {**place, "session": "..", "value": MARK}, "InvalidParams"),
        ("create", {**place, "id": "", "value": MARK}, "InvalidParams"),
        ("create", {**place, "value": {"target": {"selectors": []}}}, "ValidationFailed"),
        ("update", {**here, "id": "a9", "patch": {}}, "NotFound"),
        ("update", {**here, "patch": {"set": {"id": "a2"}}}, "ValidationFailed"),
        ("update", {**here, "patch": {"set": {"target": {"source": {"messageId": "m2"}}}}}, "ValidationFailed"),
        ("update", {**here, "patch": {}, "expectedVersion": "0"}, "VersionConflict"),
        ("update", {**here, "patch": {"sett": {}}}, "InvalidParams"),
        ("delete", {**here, "id": "a9"}, "NotFound"),
        ("delete", {**here, "expectedVersion": "0"}, "VersionConflict"),
    ]
    for verb, params, name in refused:
        with pytest.raises(Failed) as failed:
            await client.call(f"annotations/{verb}", params)
        assert failed.value.name == name, (verb, params, failed.value)
    assert await annotations(client, place) == [made["item"]["value"]]
    await client.call("annotations/delete", {**here, "id": "a9", "missingOk": True})
    with pytest.raises(Failed) as conflict:
        await client.call("annotations/update", {**here, "patch": {}, "expectedVersion": "0"})
    assert conflict.value.error["data"]["current"] == {"version": made["item"]["version"], "item": made["item"]}
    assert conflict.value.error["data"]["resource"] == {"noun": "annotations", "id": "a1", "workspace": WORKSPACE}


async def test_a_session_nobody_has_opened_can_be_annotated(shared: Daemon, client: Wire) -> None:
    cold = {"session": "260301-cold-one", "message": "m1"}
    made = await client.call("annotations/create", {**cold, "value": MARK})
    assert json.loads(lines(shared, cold["session"])[1])["annotations"] == [made["item"]["value"]]
    items = (await client.call("messages/list", {"session": cold["session"]}))["items"]
    damaged = next(item["id"] for item in items if item["id"].startswith("~"))
    for message, name in (("#1", "InvalidState"), ("m3", "InvalidState"), (damaged, "Corrupt")):
        with pytest.raises(Failed, match=name):
            await client.call("annotations/create", {**cold, "message": message, "value": MARK})
    assert lines(shared, cold["session"])[2:] == [
        b'{"content":"nobody","type":"user"}',
        b'{"id":"m3","content":"","annotations":{"odd":1},"type":"user"}',
        b"half",
    ]


async def test_two_who_annotate_at_once_both_stay_also_beside_another_program(
    shared: Daemon, client: Wire, connect: Connect, place: Value
) -> None:
    other = await connect(shared, WORKSPACE)
    asked = [
        (one, one.ask("annotations/create", {**place, "id": f"{name}{n}", "value": MARK}))
        for n in range(10)
        for name, one in (("x", client), ("y", other))
    ]
    for one, id in asked:
        await one.answer(id)
    path = shared.base / "ws" / "sessions" / place["session"] / "session.jsonl"
    header, first, second = path.read_text().splitlines()
    theirs = {**json.loads(first), "content": "theirs"}
    theirs["annotations"] = [*theirs["annotations"], {"id": "z0", **MARK}]
    before = json.dumps(theirs, separators=(",", ":"))
    await client.call("annotations/create", {**place, "id": "late", "value": MARK})  # their copy does not have it
    saved = f"{header}\n{before}\n{second}\n"
    (path.parent / "session.jsonl.tmp").write_text(saved)
    (path.parent / "session.jsonl.tmp").rename(path)
    await client.call("annotations/delete", {**place, "id": "x0"})
    found = await client.call("messages/get", {"session": place["session"], "id": "m1"})
    value = found["item"]["value"]
    assert value["content"] == "theirs"
    names = {f"{name}{n}" for n in range(10) for name in "xy"} | {"z0", "late"}
    assert {one["id"] for one in value["annotations"]} == names - {"x0"}
