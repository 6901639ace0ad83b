"""Statuses and labels over the wire: order, other ids, what follows for sessions."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire
from tests.workspace.house import line

Connect = Callable[..., Awaitable[Wire]]

MANY = 450

TREE: list[dict[str, Any]] = [
    {
        "id": "one",
        "name": "One",
        "children": [{"id": "in-one", "name": "In one", "odd": 1}, {"id": "too", "name": "T"}],
    },
    {"id": "two", "name": "Two", "valueType": "number"},
    {"id": "three", "name": "Three"},
]
STATUSES: list[dict[str, Any]] = [
    {"id": "todo", "label": "Todo", "category": "open", "isFixed": True, "isDefault": False, "order": 0},
    {"id": "blocked", "label": "Blocked", "category": "open", "isFixed": False, "isDefault": False, "order": 1, "x": 1},
    {"id": "backlog", "label": "Backlog", "category": "open", "isFixed": False, "isDefault": True, "order": 2},
    {"id": "done", "label": "Done", "category": "closed", "isFixed": True, "isDefault": False, "order": 3},
    {"id": "cancelled", "label": "Cancelled", "category": "closed", "isFixed": True, "isDefault": False, "order": 4},
]


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    root = set_up(daemon)
    for other in (root / "sessions").glob("*/session.jsonl"):
        other.unlink()
    write(daemon, "labels", {"version": 1, "kept": True, "labels": TREE})
    write(daemon, "statuses", {"version": 1, "statuses": STATUSES, "defaultStatusId": "blocked"})
    session(daemon, "a", labels=["one", "two::3", "other"], sessionStatus="blocked")
    session(daemon, "b", labels=["in-one::x", "one::1", "one::2"], todoState="blocked")
    session(daemon, "c", labels=["other", "one-more"], sessionStatus="done")
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    client = await connect(daemon, WORKSPACE)
    await client.call("events/subscribe", {"workspace": WORKSPACE})
    return client


def write(daemon: Daemon, noun: str, content: Any) -> None:
    (daemon.base / "ws" / noun).mkdir(exist_ok=True)
    (daemon.base / "ws" / noun / "config.json").write_text(json.dumps(content, indent=2))


def stored(daemon: Daemon, noun: str) -> Any:
    return json.loads((daemon.base / "ws" / noun / "config.json").read_bytes())


def session(daemon: Daemon, id: str, **header: Any) -> None:
    folder = daemon.base / "ws" / "sessions" / id
    folder.mkdir(parents=True)
    (folder / "session.jsonl").write_bytes(line({"id": id, "createdAt": 1, "messageCount": 0, **header}))


def header(daemon: Daemon, id: str) -> Any:
    return json.loads((daemon.base / "ws" / "sessions" / id / "session.jsonl").read_bytes().split(b"\n")[0])


def heard(client: Wire, *nouns: str) -> list[dict[str, Any]]:
    found = [m for m in client.received if str(m.get("method")).startswith(tuple(f"{noun}/" for noun in nouns))]
    client.received.clear()
    return found


async def ids(client: Wire, noun: str) -> list[str]:
    return [item["id"] for item in (await client.call(f"{noun}/list"))["items"]]


def intents(daemon: Daemon) -> list[Path]:
    return list((daemon.config / "craftd" / "intents").glob("*"))


# Order


async def test_labels_come_in_the_order_of_their_file_and_in_another_one_after_reorder(
    client: Wire, daemon: Daemon, connect: Connect
) -> None:
    other = await connect(daemon, WORKSPACE)
    await other.call("events/subscribe", {"workspace": WORKSPACE})
    assert await ids(client, "labels") == ["one", "in-one", "too", "two", "three"]
    await client.call("labels/reorder", {"ids": ["three", "one", "two"], "key": "k" * 16})
    await client.call("labels/reorder", {"ids": ["too", "in-one"], "parent": "one"})
    assert await ids(client, "labels") == ["three", "one", "too", "in-one", "two"]
    first, second = TREE[0]["children"]
    assert stored(daemon, "labels")["labels"] == [TREE[2], {**TREE[0], "children": [second, first]}, TREE[1]]
    assert stored(daemon, "labels")["kept"] is True
    await other.call("daemon/sync", {"workspace": WORKSPACE})
    told = [event["params"] for event in heard(other, "labels")]
    assert [(one.get("parent"), one["ids"]) for one in told] == [
        (None, ["three", "one", "two"]),
        ("one", ["too", "in-one"]),
    ]


@pytest.mark.parametrize("noun", ["labels", "statuses"])
async def test_the_order_that_is_there_writes_nothing(client: Wire, daemon: Daemon, noun: str) -> None:
    before = (daemon.base / "ws" / noun / "config.json").stat()
    level = [id for id in await ids(client, noun) if id not in ("in-one", "too")]
    await client.call(f"{noun}/reorder", {"ids": level})
    after = (daemon.base / "ws" / noun / "config.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert heard(client, noun) == []


@pytest.mark.parametrize("noun", ["labels", "statuses"])
@pytest.mark.parametrize("change", ["lacks", "unknown", "twice"])
async def test_no_order_drops_or_invents_anybody(client: Wire, daemon: Daemon, noun: str, change: str) -> None:
    level = [id for id in await ids(client, noun) if id not in ("in-one", "too")]
    wrong = {"lacks": level[1:], "unknown": [*level, "in-one"], "twice": [*level, level[0]]}[change]
    with pytest.raises(Failed, match="InvalidParams") as caught:
        await client.call(f"{noun}/reorder", {"ids": wrong})
    assert [issue["path"] for issue in caught.value.error["data"]["issues"]] == ["ids"]


async def test_statuses_are_numbered_anew(client: Wire, daemon: Daemon) -> None:
    order = ["done", "blocked", "todo", "backlog", "cancelled"]
    await client.call("statuses/reorder", {"ids": order})
    assert await ids(client, "statuses") == order
    there = {entry["id"]: entry["order"] for entry in stored(daemon, "statuses")["statuses"]}
    assert there == {"done": 0, "blocked": 1, "todo": 2, "backlog": 3, "cancelled": 4}
    changed = {event["params"]["changes"][0]["id"] for event in heard(client, "statuses")}
    assert changed == {"done", "todo", "backlog"}


async def test_a_label_moves_with_what_is_in_it_and_never_below_itself(client: Wire, daemon: Daemon) -> None:
    await client.call("labels/update", {"id": "one", "patch": {"set": {"parent": "three"}}})
    assert await ids(client, "labels") == ["two", "three", "one", "in-one", "too"]
    assert stored(daemon, "labels")["labels"][1]["children"] == [TREE[0]]
    for parent in ("one", "too", "nowhere"):
        with pytest.raises(Failed, match="ValidationFailed"):
            await client.call("labels/update", {"id": "one", "patch": {"set": {"parent": parent}}})
    await client.call("labels/update", {"id": "one", "patch": {"unset": ["/parent"]}})
    assert await ids(client, "labels") == ["two", "three", "one", "in-one", "too"]


# What follows for sessions


async def test_deleting_a_label_strips_it_and_those_in_it_from_sessions_first(client: Wire, daemon: Daemon) -> None:
    done = await client.call("labels/delete", {"id": "one", "key": "k" * 16})
    assert done["sessions"] == 2
    methods = [event["method"] for event in heard(client, "sessions", "labels")]
    assert methods == ["sessions/didChange"] * 2 + ["labels/didDelete"] * 3
    assert (header(daemon, "a")["labels"], header(daemon, "b")["labels"]) == (["two::3", "other"], [])
    assert header(daemon, "c")["labels"] == ["other", "one-more"]
    assert await ids(client, "labels") == ["two", "three"]
    assert await client.call("labels/delete", {"id": "one", "key": "k" * 16}) == done
    with pytest.raises(Failed, match="NotFound"):
        await client.call("labels/delete", {"id": "one"})
    assert (await client.call("labels/delete", {"id": "one", "missingOk": True}))["sessions"] == 0
    assert intents(daemon) == []


async def test_a_label_of_another_version_goes_from_no_session(client: Wire, daemon: Daemon) -> None:
    with pytest.raises(Failed, match="VersionConflict"):
        await client.call("labels/delete", {"id": "one", "expectedVersion": "0123456789abcdef"})
    assert header(daemon, "a")["labels"] == ["one", "two::3", "other"]


async def test_labels_of_a_broken_file_go_from_no_session(client: Wire, daemon: Daemon) -> None:
    await ids(client, "labels")
    (daemon.base / "ws" / "labels" / "config.json").write_bytes(b'{"labels": [')
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    for method, params in (
        ("labels/delete", {"id": "one"}),
        ("labels/rename", {"id": "one", "newId": "uno"}),
        ("labels/reorder", {"ids": ["three", "two", "one"]}),
    ):
        with pytest.raises(Failed, match="Corrupt"):
            await client.call(method, params)
    assert header(daemon, "a")["labels"] == ["one", "two::3", "other"]
    assert intents(daemon) == []


async def test_a_label_gets_another_id_in_its_place_and_in_sessions(client: Wire, daemon: Daemon) -> None:
    done = await client.call("labels/rename", {"id": "one", "newId": "uno"})
    assert (done["sessions"], done["changed"], done["item"]["id"]) == (2, True, "uno")
    assert stored(daemon, "labels")["labels"] == [{**TREE[0], "id": "uno"}, *TREE[1:]]
    assert header(daemon, "a")["labels"] == ["uno", "two::3", "other"]
    assert header(daemon, "b")["labels"] == ["in-one::x", "uno::1", "uno::2"]
    assert header(daemon, "c")["labels"] == ["other", "one-more"]
    events = heard(client, "sessions", "labels")
    assert [event["method"] for event in events] == [
        "labels/didCreate",
        "labels/didChange",
        "labels/didDelete",
        "labels/didReorder",
        "sessions/didChange",
        "sessions/didChange",
    ]
    assert events[1]["params"]["patch"] == {"set": {"parent": "uno"}}
    assert await ids(client, "labels") == ["uno", "in-one", "too", "two", "three"]
    assert (await client.call("labels/rename", {"id": "uno", "newId": "uno"}))["changed"] is False
    for id, new, error in (
        ("uno", "two", "AlreadyExists"),
        ("one", "eins", "NotFound"),
        ("uno", "Not an id", "InvalidParams"),
        ("../uno", "uno", "InvalidParams"),
    ):
        with pytest.raises(Failed, match=error):
            await client.call("labels/rename", {"id": id, "newId": new})


async def test_sessions_of_a_deleted_status_keep_it_or_get_another_one(client: Wire, daemon: Daemon) -> None:
    for wrong in ("blocked", "nowhere"):
        with pytest.raises(Failed, match="InvalidParams"):
            await client.call("statuses/delete", {"id": "blocked", "moveTo": wrong})
    done = await client.call("statuses/delete", {"id": "blocked", "moveTo": "done"})
    assert done["sessions"] == 2
    assert [header(daemon, id)["sessionStatus"] for id in "abc"] == ["done"] * 3
    assert stored(daemon, "statuses")["defaultStatusId"] == "todo"
    methods = [event["method"] for event in heard(client, "sessions", "statuses")]
    assert methods == ["sessions/didChange"] * 2 + ["statuses/didDelete"]
    made = await client.call("statuses/create", {"value": {"label": "Later"}})
    await client.call("sessions/update", {"id": "a", "patch": {"set": {"sessionStatus": made["item"]["id"]}}})
    assert (await client.call("statuses/delete", {"id": "later"}))["sessions"] == 0
    assert header(daemon, "a")["sessionStatus"] == "later"


@pytest.mark.parametrize("id", ["todo", "done", "cancelled", "backlog"])
async def test_what_every_workspace_has_stays(client: Wire, daemon: Daemon, id: str) -> None:
    with pytest.raises(Failed, match="InvalidState"):
        await client.call("statuses/delete", {"id": id, "moveTo": "blocked"})
    if id != "backlog":
        with pytest.raises(Failed, match="InvalidState"):
            await client.call("statuses/rename", {"id": id, "newId": "another"})


async def test_a_status_gets_another_id_also_where_new_sessions_begin(client: Wire, daemon: Daemon) -> None:
    done = await client.call("statuses/rename", {"id": "blocked", "newId": "stuck"})
    assert done["sessions"] == 2
    file = stored(daemon, "statuses")
    assert (file["statuses"][1], file["defaultStatusId"]) == ({**STATUSES[1], "id": "stuck"}, "stuck")
    assert [header(daemon, id)["sessionStatus"] for id in "abc"] == ["stuck", "stuck", "done"]
    assert "todoState" not in header(daemon, "b") or header(daemon, "b")["todoState"] == "blocked"


# Many sessions


@pytest.fixture
def many(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    root = set_up(daemon)
    for other in (root / "sessions").glob("*/session.jsonl"):
        other.unlink()
    write(daemon, "labels", {"version": 1, "labels": TREE})
    for number in range(MANY):
        session(daemon, f"s-{number}", labels=["one::7", "in-one", "three"])
    daemon.start()
    yield daemon
    daemon.end()


def labels_of(daemon: Daemon) -> list[list[str]]:
    return [header(daemon, f"s-{number}").get("labels") for number in range(MANY)]


async def test_a_large_change_tells_how_far_it_is_and_others_have_their_turn(many: Daemon, connect: Connect) -> None:
    client, other = await connect(many, WORKSPACE), await connect(many, WORKSPACE)
    asked = client.ask("labels/delete", {"id": "one", "workDoneToken": "t"})
    await client.notified("$/progress")
    await other.call("sessions/update", {"id": "s-0", "patch": {"set": {"name": "Meanwhile"}}})
    done = await client.answer(asked)
    assert done["sessions"] == MANY
    progress = [params["value"] for params in client.notifications("$/progress")]
    assert [one["kind"] for one in progress] == ["begin", "report", "report", "report", "end"]
    assert [one["message"] for one in progress[1:-1]] == [f"{n} of {MANY}" for n in (200, 400, MANY)]
    assert labels_of(many) == [["three"]] * MANY
    assert header(many, "s-0")["name"] == "Meanwhile"
    assert intents(many) == []


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(
    ("method", "params", "after", "there"),
    [
        ("labels/delete", {"id": "one"}, ["three"], ["two", "three"]),
        ("labels/rename", {"id": "one", "newId": "uno"}, ["uno::7", "in-one", "three"], None),
    ],
)
async def test_the_next_start_ends_what_a_kill_cut_short(
    many: Daemon, connect: Connect, method: str, params: Any, after: list[str], there: list[str] | None, parts: int
) -> None:
    client = await connect(many, WORKSPACE)
    client.ask(method, {**params, "workDoneToken": "t"})
    await client.notified("$/progress", 1 + parts)
    many.kill()
    assert len(intents(many)) == 1
    assert labels_of(many) != [after] * MANY
    many.start()
    again = await connect(many, WORKSPACE)
    await again.call("daemon/sync", {"workspace": WORKSPACE})
    assert labels_of(many) == [after] * MANY
    assert await ids(again, "labels") == (there or ["uno", "in-one", "too", "two", "three"])
    assert intents(many) == []
