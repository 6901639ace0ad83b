"""What iterators of events give, in which order, and what they say when something may be missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from craftd.client import Client, ConnectionLost, Events, Lapsed, Reconnected, connect, events
from craftd.client.errors import InvalidParams, NotFound
from craftd.client.events import Feed, Listener, Position, Told
from craftd.protocol import rendezvous
from tests.client.proxy import Proxy
from tests.daemon import Daemon
from tests.e2e.places import start_impatient
from tests.wire import PATIENCE


@pytest.fixture(autouse=True)
async def in_time() -> AsyncIterator[None]:
    async with asyncio.timeout(2 * PATIENCE):
        yield


@pytest.fixture
async def proxy(daemon: Daemon) -> AsyncIterator[Proxy]:
    """A way to a daemon that drops events early."""
    start_impatient(daemon, outbox__LAPSE_FRAMES=40)
    card = rendezvous.read_card(daemon.places)
    assert card is not None
    async with Proxy(daemon.base / "proxy", lambda: card.socket) as proxy:
        yield proxy


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[Client]:
    async with connect(proxy.url, workspaces=["ws"]) as client:
        yield client


@pytest.fixture
async def writer(daemon: Daemon, client: Client) -> AsyncIterator[Client]:
    async with connect(daemon.url(), workspaces=["ws"]) as writer:
        yield writer


def methods(arrived: list[Any]) -> list[str]:
    return [event["method"] if isinstance(event, dict) else type(event).__name__ for event in arrived]


async def until(events: Events, method: str) -> list[Any]:
    """What comes up to and with the first *method* (or class of that name)."""
    seen = []
    async for event in events:
        seen.append(event)
        if methods([event]) == [method]:
            return seen
    raise AssertionError


async def rename(client: Client, name: str) -> None:
    await client.sessions.update(id="s-1", patch={"set": {"name": name}})


async def test_events_are_there_when_the_answer_is(client: Client) -> None:
    async with client.subscribe("ws") as events:
        made = await client.sessions.create(id="s-1", value={"name": "One"})
        await rename(client, "Two")
        arrived = events.arrived()
        assert methods(arrived) == ["sessions/didCreate", "sessions/didChange"]
        assert arrived[0]["params"]["revision"] == made["revision"]
        assert "jsonrpc" not in arrived[0]
        assert events.arrived() == []


async def test_each_subscription_gets_what_it_wants(client: Client) -> None:
    async with (
        client.subscribe("ws", topics=["labels"]) as labels,
        client.subscribe("notes", topics=["sessions", "messages"], sessions=["s-1"]) as session,
        client.subscribe(topics="*") as configuration,
    ):
        await client.sessions.create(id="s-1", value={"name": "One"})
        await client.sessions.create(id="s-2", value={"name": "Two"})
        await client.messages.append(session="s-2", messages=[{"id": "m", "type": "user", "content": ""}])
        await client.labels.create(id="garden", value={"name": "Garden"})
        await rename(client, "Three")
        assert methods(labels.arrived()) == ["labels/didCreate"]
        assert methods(session.arrived()) == ["sessions/didCreate", "sessions/didChange"]
        assert configuration.arrived() == []


async def test_a_subscription_that_ends_leaves_the_others(client: Client) -> None:
    async with client.subscribe("ws", topics=["sessions"]) as stays:
        async with client.subscribe("ws", topics=["labels"]):
            pass
        await client.sessions.create(id="s-1", value={"name": "One"})
        assert methods(stays.arrived()) == ["sessions/didCreate"]


async def test_what_was_missed_follows_when_the_connection_is_back(
    proxy: Proxy, client: Client, writer: Client
) -> None:
    await client.sessions.create(id="s-1", value={"name": "One"})
    async with client.subscribe("ws") as events:
        proxy.open = False
        proxy.cut()
        await rename(writer, "Two")
        await rename(writer, "Three")
        proxy.open = True
        await rename(client, "Four")
        arrived = [event for event in events.arrived() if isinstance(event, Reconnected | dict)]
        assert methods(arrived) == ["Reconnected", *["sessions/didChange"] * 3]
        assert arrived[0].replayed
        assert [event["params"]["patch"]["set"]["name"] for event in arrived[1:]] == ["Two", "Three", "Four"]


async def test_after_a_restart_it_has_to_be_listed(daemon: Daemon, proxy: Proxy, client: Client) -> None:
    await client.sessions.create(id="s-1", value={"name": "One"})
    async with client.subscribe("ws") as events:
        await asyncio.to_thread(daemon.kill)
        await asyncio.to_thread(start_impatient, daemon)
        seen = await until(events, "Reconnected")
        assert not seen[-1].replayed
        await rename(client, "Two")
        assert methods(events.arrived()) == ["sessions/didChange"]


async def test_a_client_that_stalls_is_told_that_events_were_dropped(
    proxy: Proxy, client: Client, writer: Client
) -> None:
    await client.sessions.create(id="s-1", value={"name": "One"})
    async with client.subscribe("ws") as events:
        proxy.flowing.clear()
        for number in range(100):
            message = {"id": f"m{number}", "type": "user", "content": "x" * 10_000}
            last = await writer.messages.append(session="s-1", messages=[message])
        proxy.flowing.set()
        seen = await until(events, "Lapsed")
        assert seen[-1].reason == "overflow"
        assert len(seen) < 200
        assert seen[-1].revision <= last["revision"]
        assert (await client.messages.list(session="s-1"))["total"] == 100


async def test_a_program_that_takes_nothing_is_told_that_events_were_dropped(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "QUEUE_EVENTS", 5)
    await client.sessions.create(id="s-1", value={"name": "One"})
    async with client.subscribe("ws") as events_:
        for number in range(7):
            last = await client.sessions.update(id="s-1", patch={"set": {"name": str(number)}})
        arrived = events_.arrived()
        assert methods(arrived) == ["Lapsed", "sessions/didChange"]
        assert (arrived[0].reason, arrived[0].revision) == ("queue", last["revision"] - 1)


async def test_a_program_goes_on_where_it_had_come_to(proxy: Proxy, client: Client, writer: Client) -> None:
    await client.sessions.create(id="s-1", value={"name": "One"})
    async with client.subscribe("ws") as events:
        for name in ("Two", "Three"):
            await rename(client, name)
        first = await anext(events)
        taken = events.taken
    assert isinstance(first, dict)
    assert first["params"]["patch"] == {"set": {"name": "Two"}}  # type: ignore[typeddict-item]
    await rename(writer, "Four")
    async with client.subscribe("ws") as other, client.subscribe("ws", since=taken) as events:
        await rename(client, "Five")
        names = [event["params"]["patch"]["set"]["name"] for event in events.arrived()]
        assert names == ["Three", "Four", "Five"]
        assert methods(other.arrived()) == ["sessions/didChange"]
    async with client.subscribe("ws", since={"epoch": "another", "revision": 0}) as events:
        assert isinstance(await anext(events), Lapsed)


async def test_what_executors_pass_on_is_asked_for(daemon: Daemon, client: Client) -> None:
    await client.sessions.create(id="s-1", value={"name": "One"})
    async with (
        client.subscribe("ws", ephemeral=True) as everything,
        client.subscribe("ws") as kept,
        connect(daemon.url(), workspaces=["ws"], executor=True) as executor,
    ):
        await executor.sessions.publish(session="s-1", event={"type": "text_delta", "text": "a"})
        await until(everything, "sessions/didPublish")
        assert kept.arrived() == []


async def test_a_subscription_that_cannot_be_is_refused(client: Client) -> None:
    with pytest.raises(NotFound):
        async with client.subscribe("nowhere"):
            pass
    with pytest.raises(InvalidParams):
        async with client.subscribe("ws", topics=["sesions"]):
            pass
    async with client.subscribe("ws", topics=["sessions"]) as events:
        await client.sessions.create(id="s-1", value={"name": "One"})
        assert len(events.arrived()) == 1


async def test_an_iterator_ends_with_its_client(client: Client) -> None:
    async with client.subscribe("ws") as events:
        await client.sessions.create(id="s-1", value={"name": "One"})
        await client.close()
        assert methods([await anext(events)]) == ["sessions/didCreate"]
        with pytest.raises(ConnectionLost):
            await anext(events)


# What the daemon is asked for


class Asked:
    """A connection that keeps what was to be sent."""

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}

    def request(self, method: str, params: dict[str, Any], then: Any) -> None:
        self.params = params


def asked(*listeners: Listener, scope: str | None = "ws") -> dict[str, Any]:
    feed = Feed(scope)
    feed.listeners += listeners
    connection = Asked()
    feed.send(connection)  # type: ignore[arg-type]
    return connection.params


def told(**wanted: Any) -> Listener:
    return Told(lambda event: None, **wanted)


def test_the_daemon_is_asked_for_what_anybody_wants() -> None:
    assert asked(told(topics=["labels"]), told(topics=["sessions"])) == {
        "workspace": "ws", "topics": ["labels", "sessions"],
    }  # fmt: skip
    assert asked(told(), told(topics=["labels"]), scope=None) == {}
    assert asked(told(), told(topics=["files"])) == {"workspace": "ws", "topics": "*"}
    assert asked(told(topics="*"), told(topics=["labels"]))["topics"] == "*"
    assert asked(told(sessions=["b"]), told(sessions=["a"]))["sessions"] == ["a", "b"]
    assert "sessions" not in asked(told(sessions=["b"]), told())
    assert asked(told(), told(ephemeral=True))["ephemeral"] is True


def test_the_daemon_is_asked_from_where_the_last_of_them_stands() -> None:
    assert asked(told(since=Position("e", 7)), told(since=Position("e", 5)), told())["since"] == {
        "epoch": "e", "revision": 5,
    }  # fmt: skip
    assert "since" not in asked(told())
