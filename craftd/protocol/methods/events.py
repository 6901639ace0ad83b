"""Subscriptions: every change of a scope in order, or a word that some were lost."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from craftd.model.records import Record
from craftd.protocol.codec import Raw
from craftd.protocol.contract import Position, Ref
from craftd.protocol.registry import method, notification


@frozen(kw_only=True)
class Subscribed(Position):
    """Where delivery begins. replay: complete = *count* missed changes follow; stale = list again."""

    replay: Literal["none", "complete", "stale"]
    count: int | None = None


@method("events/subscribe", result=Subscribed, right="read", scope="either")
@frozen(kw_only=True)
class Subscribe(Ref):
    """Be told every change of one scope. Subscribing again replaces the connection's subscription to it."""

    topics: tuple[str, ...] | Literal["*"] | None = None
    """Nouns; absent: all but `files`."""
    sessions: tuple[str, ...] | None = None
    """Narrows the topics that belong to a session to these."""
    ephemeral: bool = False
    """Also what executors publish and nobody stores (`sessions/didPublish`)."""
    since: Position | None = None
    """What the client has seen: later changes that are still known are sent again."""


@method("events/unsubscribe", result=None, right="read", scope="either")
@frozen(kw_only=True)
class Unsubscribe(Ref):
    """Be told no more about one scope."""


@frozen(kw_only=True)
class Event:
    """One notification, as it would have been sent."""

    method: str
    params: Record


@frozen(kw_only=True)
class Events(Position):
    """Changes after the position asked for. status: stale = it is no longer known, list again."""

    events: tuple[Event | Raw, ...]
    status: Literal["ok", "stale"]


@method("events/read", result=Events, right="read", scope="either")
@frozen(kw_only=True)
class ReadEvents(Ref):
    """The same changes by (long) polling."""

    since: Position
    topics: tuple[str, ...] | Literal["*"] | None = None
    limit: int | None = None
    wait_ms: int | None = None
    """How long to wait for a first change."""


@notification("events/didLapse")
@frozen(kw_only=True)
class DidLapse(Position):
    """Changes were not delivered; from *revision* on delivery is live again: list now and nothing is missing."""

    workspace: str | None = None
    reason: Literal["overflow", "journal", "epoch", "reload"]


@notification("events/checkpoint")
@frozen(kw_only=True)
class Checkpoint(Position):
    """The scope moved on without anything for this subscription."""

    workspace: str | None = None
