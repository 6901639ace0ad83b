"""Subscriptions, their order, slow clients, and requests taken back, on a real daemon."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.protocol.framing import encode
from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up, start_impatient
from tests.wire import Failed, Wire
from tests.workspace.house import line, message, rename_over

Connect = Callable[..., Awaitable[Wire]]

SESSION, OTHER = "260102-tidy-heron", "260102-other-heron"


def prepared(daemon: Daemon) -> Daemon:
    root = set_up(daemon)
    for session in (SESSION, OTHER):
        path = root / "sessions" / session / "session.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(line({"id": session, "createdAt": 1, "name": "Old", "messageCount": 0}))
    return daemon


@pytest.fixture(scope="module")
def shared(make_daemon: Callable[..., Daemon]) -> Daemon:
    """For tests that only add."""
    daemon = prepared(make_daemon())
    daemon.start()
    return daemon


@pytest.fixture
def fresh(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    """Not started."""
    daemon = prepared(make_daemon())
    yield daemon
    daemon.end()


async def append(client: Wire, id: str, session: str = SESSION, content: str = "x") -> Any:
    return await client.answer(ask_to_append(client, id, session, content))


def ask_to_append(client: Wire, id: str, session: str = SESSION, content: str = "x") -> int:
    one = {"id": id, "type": "user", "content": content, "timestamp": 1772323200000}
    return client.ask("messages/append", {"workspace": WORKSPACE, "session": session, "messages": [one]})


async def subscribe(client: Wire, **params: Any) -> Any:
    return await client.call("events/subscribe", {"workspace": WORKSPACE, **params})


def heard(client: Wire) -> list[tuple[int, str]]:
    """Revision and method of every event of the workspace."""
    return [
        (m["params"]["revision"], m["method"])
        for m in client.received
        if "method" in m and "origin" in m["params"] and m["params"].get("workspace") == WORKSPACE
    ]


async def ids(client: Wire, session: str = SESSION) -> list[str]:
    found: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        page = await client.call("messages/list", {"workspace": WORKSPACE, "session": session, "limit": 500, **cursor})
        found += [item["id"] for item in page["items"]]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


async def test_a_reconnecting_client_hears_what_it_missed_and_then_what_follows(
    shared: Daemon, connect: Connect
) -> None:
    writer, first = await connect(shared, WORKSPACE), await connect(shared, WORKSPACE)
    position = await subscribe(first)
    await first.close()
    for number in range(5):
        await append(writer, f"missed-{number}")
    again = await connect(shared, WORKSPACE)
    answer = await subscribe(again, since={"epoch": position["epoch"], "revision": position["revision"]})
    assert (answer["replay"], answer["count"]) == ("complete", 10)
    await append(writer, "live")
    await again.notified("messages/didAppend", 6)
    appended = [m["id"] for p in again.notifications("messages/didAppend") for m in p["messages"]]
    assert appended == [*(f"missed-{number}" for number in range(5)), "live"]
    revisions = [revision for revision, _ in heard(again)]
    first_revision = position["revision"] + 1
    assert revisions == list(range(first_revision, first_revision + len(revisions)))
    methods = [m.get("method") for m in again.received]
    assert methods.index("messages/didAppend") > again.received.index(
        next(m for m in again.received if "result" in m and "replay" in (m["result"] or {}))
    )


@pytest.mark.parametrize("since", [{"epoch": "another", "revision": 0}, {"revision": 10**9}])
async def test_a_position_that_is_not_known_is_stale(shared: Daemon, connect: Connect, since: Any) -> None:
    client = await connect(shared, WORKSPACE)
    epoch = (await subscribe(client))["epoch"]
    answer = await subscribe(client, since={"epoch": epoch, **since})
    assert answer["replay"] == "stale"
    await append(client, f"stale-{since['revision']}")
    assert (await client.notified("messages/didAppend"))["messages"][0]["id"] == f"stale-{since['revision']}"


async def test_a_restart_makes_every_position_stale(fresh: Daemon, connect: Connect) -> None:
    fresh.start()
    client = await connect(fresh, WORKSPACE)
    position = await subscribe(client)
    fresh.restart()
    client = await connect(fresh, WORKSPACE)
    answer = await subscribe(client, since={"epoch": position["epoch"], "revision": position["revision"]})
    assert (answer["replay"], answer["epoch"] == position["epoch"]) == ("stale", False)


async def test_topics_and_sessions_narrow_what_is_heard(shared: Daemon, connect: Connect) -> None:
    writer = await connect(shared, WORKSPACE)
    by_topic, by_session, everything = [await connect(shared, WORKSPACE) for _ in range(3)]
    await subscribe(by_topic, topics=["labels", "messages"])
    await subscribe(by_session, sessions=[OTHER])
    await subscribe(everything, topics="*")
    await append(writer, "narrow-1")
    await append(writer, "narrow-2", OTHER)
    await writer.call("labels/create", {"workspace": WORKSPACE, "value": {"name": "Narrow"}})
    for client in (by_topic, by_session, everything):
        await client.notified("labels/didCreate")
    assert [method for _, method in heard(by_topic)] == ["messages/didAppend"] * 2 + ["labels/didCreate"]
    assert [method for _, method in heard(by_session)] == [
        "messages/didAppend",
        "sessions/didChange",
        "labels/didCreate",
    ]
    assert len(heard(everything)) == 5
    with pytest.raises(Failed, match="InvalidParams"):
        await subscribe(by_topic, topics=["lables"])


async def test_subscribing_again_replaces_and_unsubscribing_ends(shared: Daemon, connect: Connect) -> None:
    client, writer = await connect(shared, WORKSPACE), await connect(shared, WORKSPACE)
    await subscribe(client, topics=["labels"])
    await subscribe(client, topics=["messages"])
    await append(writer, "replace-1")
    await client.notified("messages/didAppend")
    await writer.call("labels/create", {"workspace": WORKSPACE, "value": {"name": "Replaced"}})
    await client.call("events/unsubscribe", {"workspace": WORKSPACE})
    await append(writer, "replace-2")
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    assert [method for _, method in heard(client)] == ["messages/didAppend"]


async def test_events_come_before_the_answer_and_name_their_author(shared: Daemon, connect: Connect) -> None:
    client = await connect(shared, WORKSPACE)
    await subscribe(client)
    for number in range(20):
        key = f"a-key-of-sixteen-{number}"
        params = {"workspace": WORKSPACE, "id": SESSION, "patch": {"set": {"name": f"N{number}"}}, "key": key}
        request = client.ask("sessions/update", params)
        answer = await client.answer(request)
        at = client.order.index(request)
        before = client.received[at - 1]
        assert before["method"] == "sessions/didChange"
        assert before["params"]["revision"] == answer["revision"]
        assert before["params"]["origin"]["key"] == key
        assert before["params"]["changes"][0]["version"] == answer["item"]["version"]


async def test_all_clients_hear_one_order_whoever_writes(shared: Daemon, connect: Connect) -> None:
    listeners = [await connect(shared, WORKSPACE) for _ in range(2)]
    positions = [await subscribe(client) for client in listeners]
    assert positions[0]["revision"] == positions[1]["revision"]
    writers = [await connect(shared, WORKSPACE) for _ in range(4)]
    path = shared.base / "ws" / "sessions" / OTHER / "session.jsonl"

    async def write(writer: Wire, name: int) -> None:
        asked = []
        for number in range(25):
            asked.append(ask_to_append(writer, f"order-{name}-{number}", SESSION if number % 2 else OTHER))
            params = {"workspace": WORKSPACE, "id": SESSION, "patch": {"set": {"name": f"{name}-{number}"}}}
            asked.append(writer.ask("sessions/update", params))
        await asyncio.gather(*map(writer.answer, asked))

    async def edit() -> None:
        for number in range(10):
            with path.open("ab") as file:
                file.write(line(message(f"by-hand-{number}")))
            await asyncio.sleep(0.01)

    await asyncio.gather(edit(), *(write(writer, name) for name, writer in enumerate(writers)))
    for client in (*listeners, *writers):
        await client.call("daemon/sync", {"workspace": WORKSPACE})
    assert heard(listeners[0]) == heard(listeners[1])
    revisions = [revision for revision, _ in heard(listeners[0])]
    assert revisions == list(range(positions[0]["revision"] + 1, positions[0]["revision"] + 1 + len(revisions)))
    for session in (SESSION, OTHER):
        told = [
            record["id"]
            for params in listeners[0].notifications("messages/didAppend")
            if params["session"] == session
            for record in params["messages"]
        ]
        assert told == [id for id in await ids(listeners[0], session) if id.startswith(("order", "by-hand"))]
        for name in range(4):
            mine = [id for id in told if id.startswith(f"order-{name}-")]
            assert mine == sorted(mine, key=lambda id: int(id.rpartition("-")[2]))


async def stop_reading(client: Wire) -> None:
    """From here on it takes nothing, until `start_reading`."""
    assert client._task is not None
    client._task.cancel()
    await asyncio.gather(client._task, return_exceptions=True)
    client.received.remove({"closed": True})


async def test_a_client_that_stops_reading_lapses_alone_and_catches_up(fresh: Daemon, connect: Connect) -> None:
    start_impatient(fresh, outbox__LAPSE_BYTES=1 << 20, outbox__LAPSE_FRAMES=4096)
    slow, quick, writer = [await connect(fresh, WORKSPACE) for _ in range(3)]
    for client in (slow, quick):
        await subscribe(client)
    await stop_reading(slow)
    large = "y" * 100_000
    for start in range(0, 80, 8):
        await asyncio.gather(*(append(writer, f"big-{n}", content=large) for n in range(start, start + 8)))
    await quick.call("daemon/sync", {"workspace": WORKSPACE})
    revisions = [revision for revision, _ in heard(quick)]
    assert revisions == list(range(revisions[0], revisions[0] + len(revisions)))
    assert [m["id"] for p in quick.notifications("messages/didAppend") for m in p["messages"]] == [
        f"big-{n}" for n in range(80)
    ]
    slow.start_reading()
    lapse = await slow.notified("events/didLapse")
    assert (lapse["workspace"], lapse["reason"]) == (WORKSPACE, "overflow")
    before = [revision for revision, _ in heard(slow)]
    assert before == list(range(before[0], before[0] + len(before)))
    assert len(before) < len(revisions)
    assert lapse["revision"] >= revisions[-1]
    assert len(await ids(slow)) == 80
    await append(writer, "after")
    told = await slow.wait(lambda m: m.get("params", {}).get("messages", [{}])[0].get("id") == "after")
    assert told["params"]["revision"] == lapse["revision"] + 1


async def test_a_quiet_subscription_hears_how_far_its_workspace_has_come(fresh: Daemon, connect: Connect) -> None:
    start_impatient(fresh, dispatch__CHECKPOINT_SECONDS=0.05)
    client, writer = await connect(fresh, WORKSPACE), await connect(fresh, WORKSPACE)
    await subscribe(client, topics=["labels"])
    done = await append(writer, "quiet")
    number = 1
    while (point := await client.notified("events/checkpoint", number))["revision"] < done["revision"]:
        number += 1
    assert (point["workspace"], point["epoch"]) == (WORKSPACE, done["epoch"])
    assert heard(client) == []


async def test_a_change_that_is_taken_back_in_time_was_never_made(shared: Daemon, connect: Connect) -> None:
    client = await connect(shared, WORKSPACE)
    await subscribe(client)
    asked = {}
    for number in range(300):
        id = f"cancel-{number}"
        asked[id] = ask_to_append(client, id)
        if number % 3 == 0:
            client.send("$/cancelRequest", {"id": asked[id]})
    answers = await asyncio.gather(*map(client.answer, asked.values()), return_exceptions=True)
    outcomes = dict(zip(asked, answers, strict=True))
    assert {error.name for error in answers if isinstance(error, Failed)} == {"Cancelled"}
    made = [id for id, outcome in outcomes.items() if not isinstance(outcome, BaseException)]
    assert [id for id in await ids(client) if id.startswith("cancel-")] == made
    assert {f"cancel-{number}" for number in range(300) if number % 3} <= set(made)
    assert len(made) < 300
    told = [m["id"] for p in client.notifications("messages/didAppend") for m in p["messages"]]
    assert told == made


async def test_what_a_client_sent_before_it_went_is_carried_out(shared: Daemon, connect: Connect) -> None:
    leaving, witness = await connect(shared, WORKSPACE), await connect(shared, WORKSPACE)
    await subscribe(witness)
    for number in range(100):
        ask_to_append(leaving, f"leaving-{number}")
    leaving.raw(encode(json.dumps({"jsonrpc": "2.0", "id": "list", "method": "workspaces/list"}).encode()))
    await leaving.writer.drain()
    await leaving.close()
    await witness.wait(
        lambda m: any(record["id"] == "leaving-99" for record in m.get("params", {}).get("messages", ()))
    )
    assert [id for id in await ids(witness) if id.startswith("leaving-")] == [f"leaving-{n}" for n in range(100)]


async def test_a_client_may_poll_instead(shared: Daemon, connect: Connect) -> None:
    poller, writer = await connect(shared, WORKSPACE), await connect(shared, WORKSPACE)
    position = await poller.call("daemon/sync", {"workspace": WORKSPACE})
    since = {"epoch": position["epoch"], "revision": position["revision"]}
    waiting = poller.ask("events/read", {"workspace": WORKSPACE, "since": since, "waitMs": 10_000})
    await append(writer, "polled")
    read = await poller.answer(waiting)
    assert read["status"] == "ok"
    assert read["events"][0]["method"] == "messages/didAppend"
    assert read["events"][0]["params"]["messages"][0]["id"] == "polled"


async def test_what_a_poll_answers_is_bounded_and_goes_on_where_it_ended(shared: Daemon, connect: Connect) -> None:
    poller, writer = await connect(shared, WORKSPACE), await connect(shared, WORKSPACE)
    since = await poller.call("daemon/sync", {"workspace": WORKSPACE})
    for number in range(12):
        await append(writer, f"page-{number}", content="z" * 200_000)
    found, reads = [], 0
    while len(found) < 12:
        params = {"workspace": WORKSPACE, "since": since, "topics": ["messages"], "limit": 7}
        read = await poller.call("events/read", params)
        assert 1 <= len(read["events"]) <= 5
        found += [event["params"]["messages"][0]["id"] for event in read["events"]]
        since = {"epoch": read["epoch"], "revision": read["revision"]}
        reads += 1
    assert found == [f"page-{number}" for number in range(12)]
    for wrong in ({"limit": 0}, {"waitMs": -1}, {"topics": ["lables"]}, {"since": {"epoch": "x"}}):
        with pytest.raises(Failed, match="InvalidParams"):
            await poller.call("events/read", {"workspace": WORKSPACE, "since": since, **wrong})
    stale = await poller.call(
        "events/read", {"workspace": WORKSPACE, "since": {**since, "epoch": "x"}, "waitMs": 10_000}
    )
    assert (stale["status"], stale["events"]) == ("stale", [])


async def test_a_poll_ends_when_it_is_taken_back_or_nothing_came(shared: Daemon, connect: Connect) -> None:
    poller = await connect(shared, WORKSPACE)
    since = await poller.call("daemon/sync", {"workspace": WORKSPACE})
    waiting = poller.ask("events/read", {"workspace": WORKSPACE, "since": since, "waitMs": 60_000})
    poller.send("$/cancelRequest", {"id": waiting})
    with pytest.raises(Failed, match="Cancelled"):
        await poller.answer(waiting)
    nothing = await poller.call("events/read", {"workspace": WORKSPACE, "since": since, "waitMs": 1})
    assert (nothing["status"], nothing["events"], nothing["revision"]) == ("ok", [], since["revision"])
    other = await connect(shared, WORKSPACE)
    await append(other, "elsewhere")
    narrow = {"workspace": WORKSPACE, "since": since, "topics": ["labels"], "waitMs": 1}
    assert (await poller.call("events/read", narrow))["revision"] == since["revision"] + 2


def saved(path: Path, **changes: Any) -> bytes:
    first, *rest = path.read_bytes().split(b"\n")
    return b"\n".join([json.dumps({**json.loads(first), **changes}).encode(), *rest])


async def test_a_foreign_edit_between_two_changes_takes_its_place_in_the_order(
    shared: Daemon, connect: Connect
) -> None:
    client = await connect(shared, WORKSPACE)
    await subscribe(client)
    path = shared.base / "ws" / "sessions" / OTHER / "session.jsonl"
    await append(client, "before the edit", OTHER)
    rename_over(path, saved(path, name="By hand"))
    await append(client, "after the edit", OTHER)
    told = [
        (m["method"], m["params"]["origin"]["kind"])
        for m in client.received
        if m.get("method", "").startswith(("messages/", "sessions/"))
    ]
    assert told[0] == ("messages/didAppend", "client")
    assert ("sessions/didChange", "disk") in told[1:-2]
    assert told[-2:] == [("messages/didAppend", "client"), ("sessions/didChange", "client")]
