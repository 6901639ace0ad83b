from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from craftd.model import json_text
from craftd.protocol.framing import Decoder, encode
from craftd.server import dispatch
from craftd.server import outbox as module
from craftd.server.outbox import Outbox, Subscription
from craftd.workspace.journal import Change
from tests.server.toys import Toys
from tests.wire import Wire


@define(eq=False)
class Client:
    """A sink with a client that takes bytes only when it is told to."""

    outbox: Outbox = field(init=False)
    written: bytearray = field(factory=bytearray)
    taken: int = 0
    ends: list[str] = field(factory=list)
    full: bool = False

    def __attrs_post_init__(self) -> None:
        self.outbox = Outbox(self, lambda: None, self.ends.append)

    def write(self, frames: Sequence[bytes]) -> None:
        self.written += b"".join(frames)
        if self.full:
            self.outbox.pause()

    def buffered(self) -> int:
        return len(self.written) - self.taken

    def close(self, code: int = 1000, reason: str = "") -> None: ...
    def abort(self) -> None: ...

    def stop_reading(self) -> None:
        self.full = True
        self.outbox.pause()

    def read(self) -> None:
        self.full = False
        self.taken = len(self.written)
        self.outbox.resume()
        self.outbox.flush()

    @property
    def got(self) -> list[Any]:
        messages = [json_text.loads(body) for body in Decoder(1 << 30).feed(bytes(self.written))]
        return [(m["method"], m["params"]) if "method" in m else m for m in messages]


def change(revision: int, topic: str = "labels", session: str | None = None, size: int = 0) -> Change:
    made = Change(f"{topic}/didChange", topic, {}, session, revision=revision)
    made.body = json_text.dumps({"method": made.method, "params": {"revision": revision, "pad": "x" * size}})
    return made


def deliver(client: Client, change: Change, scope: str | None = "ws") -> None:
    client.outbox.deliver(scope, change, encode(change.body))


def subscribe(client: Client, scope: str | None = "ws", **what: Any) -> Subscription:
    client.outbox.subscriptions[scope] = subscription = Subscription(epoch="e", revision=0, **what)
    return subscription


def revisions(client: Client) -> list[Any]:
    return [params.get("revision") for _, params in client.got]


async def test_frames_of_one_turn_leave_together_and_in_order() -> None:
    client = Client()
    for number in range(3):
        client.outbox.put(encode(b'{"n":%d}' % number))
    assert client.written == b""
    await asyncio.sleep(0)
    assert client.got == [{"n": 0}, {"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        ({}, [1, 2, 4, 5]),
        ({"topics": frozenset({"labels"})}, [1]),
        ({"topics": frozenset({"files"})}, [3]),
        ({"topics": "*"}, [1, 2, 3, 4, 5]),
        ({"sessions": frozenset({"s1"})}, [1, 2, 4]),
        ({"topics": frozenset({"messages"}), "sessions": frozenset({"s2"})}, [5]),
    ],
)
async def test_a_client_is_told_what_it_asked_for(what: Any, wanted: list[int]) -> None:
    client = Client()
    subscribe(client, **what)
    for made in (
        change(1), change(2, "statuses"), change(3, "files"), change(4, "messages", "s1"), change(5, "messages", "s2"),
    ):  # fmt: skip
        deliver(client, made)
        deliver(client, made, "other")
        deliver(client, made, None)
    client.outbox.flush()
    assert revisions(client) == wanted


async def test_a_slow_client_lapses_and_is_told_from_where_it_hears_everything_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LAPSE_BYTES", 10_000)
    client = Client()
    subscribe(client)
    subscribe(client, None)
    client.stop_reading()
    for revision in range(1, 30):
        deliver(client, change(revision, size=1000))
    deliver(client, change(7), None)
    assert client.outbox.size <= 10_000
    client.outbox.put(encode(b'{"id":1}'))
    client.read()
    before, after = client.got[:-3], client.got[-3:]
    assert [params["revision"] for _, params in before] == list(range(1, len(before) + 1))
    assert len(before) < 20
    lapse = {"epoch": "e", "reason": "overflow"}
    assert after == [
        {"id": 1},
        ("events/didLapse", {"workspace": "ws", "revision": 29, **lapse}),
        ("events/didLapse", {"revision": 7, **lapse}),
    ]
    deliver(client, change(30))
    client.outbox.flush()
    assert client.got[-1] == ("labels/didChange", {"revision": 30, "pad": ""})


async def test_many_small_events_make_a_client_lapse_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAPSE_FRAMES", 10)
    client = Client()
    subscribe(client)
    client.stop_reading()
    for revision in range(1, 100):
        deliver(client, change(revision))
    client.read()
    assert revisions(client) == [*range(1, 11), 99]


async def test_subscribing_again_ends_a_lapse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAPSE_FRAMES", 2)
    client = Client()
    subscribe(client)
    client.stop_reading()
    for revision in range(1, 5):
        deliver(client, change(revision))
    client.outbox.subscriptions["ws"] = Subscription(epoch="e", revision=4)
    client.read()
    deliver(client, change(5))
    client.outbox.flush()
    assert [method for method, _ in client.got] == ["labels/didChange"] * 3


async def test_a_replay_does_not_move_the_position_back() -> None:
    client = Client()
    subscription = subscribe(client)
    subscription.revision = subscription.told = 9
    for revision in (7, 8, 9):
        deliver(client, change(revision))
    client.outbox.checkpoint()
    assert subscription.revision == 9
    client.outbox.flush()
    assert revisions(client) == [7, 8, 9]


async def test_a_checkpoint_says_how_far_a_quiet_scope_has_come() -> None:
    client = Client()
    subscribe(client, topics=frozenset({"labels"}))
    deliver(client, change(1))
    client.outbox.checkpoint()
    deliver(client, change(2, "statuses"))
    client.outbox.checkpoint()
    client.outbox.checkpoint()
    client.outbox.flush()
    assert client.got[1:] == [("events/checkpoint", {"workspace": "ws", "epoch": "e", "revision": 2})]


async def test_a_scope_that_was_opened_anew_makes_its_subscribers_lapse() -> None:
    client = Client()
    subscription = subscribe(client)
    client.outbox.lapse("other", "epoch", "f", 0)
    client.outbox.lapse("ws", "epoch", "f", 3)
    client.outbox.flush()
    assert client.got == [("events/didLapse", {"workspace": "ws", "epoch": "f", "revision": 3, "reason": "epoch"})]
    assert (subscription.epoch, subscription.revision) == ("f", 3)


async def test_too_many_answers_end_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HARD_BYTES", 1000)
    client = Client()
    client.stop_reading()
    client.outbox.put(encode(b"x" * 900))
    assert client.ends == []
    client.outbox.put(encode(b"x" * 900))
    assert client.ends == ["more than 1000 bytes wait to be read"]


async def test_a_client_that_takes_no_byte_is_given_up_and_a_slow_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STALL_SECONDS", 0.06)
    slow, stuck, fine = Client(), Client(), Client()
    for client in (slow, stuck):
        client.stop_reading()
        client.write([b"x" * 1000])
    fine.outbox.put(encode(b"{}"))
    for _ in range(50):
        slow.taken += 1
        await asyncio.sleep(0.005)
    assert stuck.ends == ["no byte was read for 0.06 seconds"]
    assert (slow.ends, fine.ends) == ([], [])
    for client in (slow, stuck, fine):
        client.outbox.close()


async def test_over_the_wire_a_client_that_stops_reading_harms_only_itself(
    toys: Toys, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LAPSE_BYTES", 200_000)
    slow = await Wire.connect(toys.path, reading=False)
    slow.send("initialize", {"capabilities": {}}, id="i")
    slow.send("toys/subscribe", id="s")
    await wire.call("toys/subscribe")
    while len([c for c in toys.dispatcher.connections.values() if c.outbox.subscriptions]) < 2:
        await wire.call("toys/echo")
    value = {"text": "x" * 20_000}
    for _ in range(60):
        await wire.call("toys/create", {"value": value})
    assert len(wire.notifications("toys/didCreate")) == 60
    slow.start_reading()
    lapsed = await slow.notified("events/didLapse")
    heard = [event["revision"] for event in slow.notifications("toys/didCreate")]
    assert heard == list(range(1, len(heard) + 1))
    assert len(heard) < 60
    assert (lapsed["workspace"], lapsed["epoch"], lapsed["reason"]) == ("a", "e", "overflow")
    assert lapsed["revision"] == 60
    listed = slow.ask("toys/list")
    assert len((await slow.answer(listed))["items"]) == 60
    await wire.call("toys/create", {"value": {}})
    live = await slow.notified("toys/didCreate", len(heard) + 1)
    assert live["revision"] == 61
    await slow.close()


async def test_what_concerns_the_daemon_goes_to_those_who_subscribed_to_anything(toys: Toys, wire: Wire) -> None:
    plain = await toys.client()
    await wire.call("toys/subscribe")
    toys.dispatcher.broadcast("daemon/didChange", {"readOnly": True})
    assert await wire.notified("daemon/didChange") == {"readOnly": True}
    await plain.call("toys/echo")
    assert plain.notifications("daemon/didChange") == []


async def test_a_quiet_connection_hears_how_far_its_scope_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "CHECKPOINT_SECONDS", 0.02)
    toys = await Toys.start(tmp_path / "sock")
    quiet, busy = await toys.client(), await toys.client()
    await quiet.call("toys/subscribe", {"topics": ["labels"]})
    await busy.call("toys/create", {"value": {}})
    assert await quiet.notified("events/checkpoint") == {"workspace": "a", "epoch": "e", "revision": 1}
    await toys.stop()


async def test_what_is_too_much_to_be_sent_makes_those_lapse_who_want_it_and_at_once() -> None:
    concerned, other = Client(), Client()
    subscribe(concerned, sessions=frozenset({"s1"}))
    subscribe(other, sessions=frozenset({"s2"}))
    much = change(2, "messages", "s1")
    much.unsent = True
    for client in (concerned, other):
        for made in (change(1), much, change(3)):
            deliver(client, made)
        client.outbox.flush()
    assert [(method, params["revision"]) for method, params in concerned.got] == [
        ("labels/didChange", 1), ("events/didLapse", 2), ("labels/didChange", 3),
    ]  # fmt: skip
    assert revisions(other) == [1, 3]
