"""The relay with a clock that stands still: what is joined, what waits, what is dropped, and what never is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import define, field

from craftd.errors import InvalidParams, TooLarge
from craftd.model.records import Record
from craftd.server import relay as module
from craftd.server.outbox import QUIET_BYTES, Subscription
from craftd.server.relay import Relay
from craftd.workspace.live import Live
from tests.server.test_outbox import Client

SCOPE, SESSION = "ws", "s"


@define(eq=False)
class Clock:
    """A loop whose time passes when it is told to."""

    now: float = 0.0
    timers: list[tuple[float, Callable[[], None], list[bool]]] = field(factory=list)

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[..., Any], *given: Any) -> Any:
        dead: list[bool] = []
        self.timers.append((self.now + delay, lambda: call(*given), dead))
        return type("Timer", (), {"cancel": lambda _: dead.append(True)})()

    def pass_by(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer[0] <= end and not timer[2]]:
            first = min(due, key=lambda timer: timer[0])
            self.timers.remove(first)
            self.now = max(self.now, first[0])
            first[1]()
        self.now = end


@define(eq=False)
class Party:
    """A connection, as far as the relay knows one."""

    id: str
    client: Client = field(factory=Client)

    @property
    def outbox(self) -> Any:
        return self.client.outbox

    def subscribe(self, **how: Any) -> Party:
        self.outbox.subscriptions[SCOPE] = Subscription(epoch="e", revision=0, **{"ephemeral": True, **how})
        return self

    @property
    def heard(self) -> list[Record]:
        self.outbox.flush()
        return [params["event"] for _, params in self.client.got]


@define(eq=False)
class Place:
    relay: Relay
    clock: Clock
    live: Live
    agent: Any
    listener: Party
    parties: dict[str, Any]

    def publish(self, *, by: Any = None, session: str = SESSION, **event: Any) -> None:
        self.relay.publish(SCOPE, self.live, by or self.agent, session, event)


@pytest.fixture
async def place() -> Place:
    listener, agent = Party("c-1").subscribe(), Party("c-2")
    parties: dict[str, Any] = {"c-1": listener, "c-2": agent}
    relay = Relay(parties)
    relay._loop = clock = Clock()  # type: ignore[assignment]
    return Place(relay, clock, Live(), agent, listener, parties)


async def test_text_is_joined_for_a_moment_and_nothing_overtakes_it(place: Place) -> None:
    for piece in ("a", "b", "c"):
        place.publish(type="text_delta", delta=piece)
    assert place.listener.heard == []
    place.clock.pass_by(module.GATHER_SECONDS)
    place.publish(type="text_delta", delta="d", turnId="other")
    place.publish(type="text_delta", delta="e", turnId="other")
    place.publish(type="status", message="m")
    assert place.listener.heard == [
        {"type": "text_delta", "delta": "abc"},
        {"type": "text_delta", "delta": "de", "turnId": "other"},
        {"type": "status", "message": "m"},
    ]


async def test_text_of_two_executors_or_of_odd_shape_is_not_joined(place: Place) -> None:
    place.publish(type="text_delta", delta="a")
    place.publish(by=Party("c-9"), type="text_delta", delta="b")
    place.publish(by=Party("c-9"), type="text_delta", delta=["c"])
    place.publish(by=Party("c-9"), type="text_delta")
    place.clock.pass_by(1)
    assert [event.get("delta") for event in place.listener.heard] == ["a", "b", ["c"], None]


async def test_a_stored_message_lets_what_was_said_before_it_go_first(place: Place) -> None:
    place.publish(type="text_delta", delta="a")
    place.relay.flush(SCOPE, "another")
    place.relay.flush(None, SESSION)
    assert place.listener.heard == []
    place.relay.flush(SCOPE, SESSION)
    assert place.listener.heard == [{"type": "text_delta", "delta": "a"}]


async def test_a_session_says_so_much_in_a_second_and_no_more(place: Place) -> None:
    for number in range(module.PER_SECOND + 30):
        place.publish(type="status", message=number)
    place.publish(session="another", type="status", message="not held up")
    assert len(place.listener.heard) == module.PER_SECOND + 1
    place.clock.pass_by(0.5)
    assert len(place.listener.heard) == module.PER_SECOND + 1 + 25
    place.clock.pass_by(60)
    shown = [event["message"] for event in place.listener.heard if event["message"] != "not held up"]
    assert shown == list(range(module.PER_SECOND + 30))


async def test_of_too_much_the_oldest_goes_and_the_last_state_stays(place: Place) -> None:
    for number in range(module.PER_SECOND):
        place.publish(type="status", message=number)
    place.publish(type="state", state="running")
    for number in range(500):
        place.publish(type="status", message=number)
    place.publish(type="state", state="waiting")
    place.publish(type="text_delta", delta="x" * 100)
    for _ in range(100):
        place.publish(type="text_delta", delta="y" * 100)
    place.clock.pass_by(60)
    late = place.listener.heard[module.PER_SECOND :]
    assert len(late) == module.MOST_WAITING
    assert [event for event in late if event["type"] == "state"] == [{"type": "state", "state": "waiting"}]
    assert late[-1] == {"type": "text_delta", "delta": "x" * 100 + "y" * 10_000}
    assert late[-3]["message"] == 499


async def test_what_waits_is_bounded_in_bytes(place: Place) -> None:
    for number in range(module.PER_SECOND):
        place.publish(type="status", message=number)
    for number in range(50):
        place.publish(type="status", message=number, data="z" * 100_000)
    assert len(place.listener.heard) == module.PER_SECOND
    place.clock.pass_by(60)
    late = place.listener.heard[module.PER_SECOND :]
    assert len(late) == module.MOST_BYTES // 100_100
    assert late[-1]["message"] == 49


async def test_a_client_that_does_not_read_gets_nothing_and_holds_nobody_up(place: Place) -> None:
    slow = place.parties["c-3"] = Party("c-3").subscribe()
    slow.client.stop_reading()
    slow.outbox.put(b"x" * (QUIET_BYTES + 1))
    place.publish(type="status", message="m")
    assert len(place.listener.heard) == 1
    assert slow.outbox.size == QUIET_BYTES + 1


async def test_who_did_not_ask_for_it_hears_nothing(place: Place) -> None:
    others = [
        Party("c-3").subscribe(ephemeral=False),
        Party("c-4").subscribe(sessions=frozenset({"another"})),
        Party("c-5").subscribe(topics=frozenset({"messages"})),
        Party("c-6"),
    ]
    place.parties |= {one.id: one for one in others}
    narrow = place.parties["c-7"] = Party("c-7").subscribe(
        sessions=frozenset({SESSION}), topics=frozenset({"sessions"})
    )
    place.publish(type="status", message="m")
    assert [one.heard for one in others] == [[], [], [], []]
    assert narrow.heard == place.listener.heard == [{"type": "status", "message": "m"}]


async def test_states_end_with_their_connection(place: Place) -> None:
    second = Party("c-9")
    place.publish(type="state", state="running")
    place.publish(by=second, type="state", state="waiting")
    place.relay.gone(second)  # type: ignore[arg-type]
    assert place.live.activity(SESSION) == "running"
    place.relay.gone(place.agent)
    place.relay.gone(place.agent)
    assert place.live.activity(SESSION) is None
    assert [event["state"] for event in place.listener.heard] == ["running", "waiting", "running", "idle"]


async def test_what_is_no_event_is_refused(place: Place) -> None:
    for wrong in ({}, {"type": ""}, {"type": 5}, {"type": "state"}, {"type": "state", "state": "asleep"}):
        with pytest.raises(InvalidParams):
            place.publish(**wrong)
    with pytest.raises(TooLarge):
        place.publish(type="status", message="x" * 300_000)
    assert place.listener.heard == []
    assert place.live.activity(SESSION) is None


async def test_rates_are_forgotten_of_sessions_that_have_been_quiet(place: Place) -> None:
    for number in range(3 * module.MOST_LANES):
        place.publish(session=f"s-{number}", type="status", message=number)
    assert len(place.listener.heard) == 3 * module.MOST_LANES
    assert len(place.relay._lanes) <= module.MOST_LANES
