"""Subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, Literal

from craftd.errors import InvalidParams
from craftd.model.nouns import NOUNS
from craftd.protocol.codec import Raw
from craftd.protocol.contract import DEFAULT_LIMIT, MAX_LIMIT
from craftd.protocol.methods.events import Events, ReadEvents, Subscribe, Subscribed, Unsubscribe
from craftd.server.dispatch import Call, handles
from craftd.server.outbox import Subscription, wants
from craftd.workspace.home import Home
from craftd.workspace.index import PAGE_BYTES
from craftd.workspace.journal import Change
from craftd.workspace.workspace import Workspace

TOPICS: Final = frozenset(NOUNS) | {"issues", "files"}

WAIT_MS_MOST: Final = 60_000
"""How long `events/read` waits at most: a client that polls longer learns that the daemon lives."""

_ENVELOPE: Final = b'{"jsonrpc":"2.0",'


@handles
def subscribe(call: Call, params: Subscribe) -> Subscribed:
    scope: Workspace | Home = call.scope
    journal = scope.journal
    topics = _topics(params.topics)
    subscription = Subscription(
        epoch=journal.epoch,
        revision=journal.revision,
        topics=topics,
        sessions=None if params.sessions is None else frozenset(params.sessions),
        ephemeral=params.ephemeral,
    )
    call.connection.subscribe(scope.id, subscription)
    call.after.append(scope.tell_missed)
    _follow_files(scope, topics, params.sessions or ())
    if params.since is None:
        return Subscribed(replay="none", epoch=journal.epoch, revision=journal.revision)
    missed = journal.since(params.since.epoch, params.since.revision)
    if missed is None:
        return Subscribed(replay="stale", epoch=journal.epoch, revision=journal.revision)
    wanted = [change for change in missed if wants(change, subscription.topics, subscription.sessions)]
    call.after.insert(0, partial(call.connection.replay, scope.id, wanted))
    return Subscribed(replay="complete", count=len(wanted), epoch=journal.epoch, revision=journal.revision)


@handles
def unsubscribe(call: Call, params: Unsubscribe) -> None:
    call.connection.unsubscribe(call.scope.id)


@handles
async def read(call: Call, params: ReadEvents) -> Events:
    scope: Workspace | Home = call.scope
    topics = _topics(params.topics)
    limit = DEFAULT_LIMIT if params.limit is None else params.limit
    if limit < 1:
        raise InvalidParams.of("limit", "must be at least 1")
    if params.wait_ms is not None and params.wait_ms < 0:
        raise InvalidParams.of("waitMs", "must be at least 0")
    journal, since = scope.journal, params.since
    scope.tell_missed()
    _follow_files(scope, topics, ())

    def missed() -> list[Change] | None:
        changes = journal.since(since.epoch, since.revision)
        return None if changes is None else [change for change in changes if wants(change, topics, None)]

    changes = missed()
    if changes == [] and params.wait_ms:
        await _next(scope, lambda change: wants(change, topics, None), min(params.wait_ms, WAIT_MS_MOST) / 1000)
        changes = missed()
    if changes is None:
        return Events(events=(), status="stale", epoch=journal.epoch, revision=journal.revision)
    page = _within(changes[: min(limit, MAX_LIMIT)])
    revision = page[-1].revision if len(page) < len(changes) else journal.revision
    events = tuple(Raw(b"{" + change.body.removeprefix(_ENVELOPE)) for change in page)
    return Events(events=events, status="ok", epoch=journal.epoch, revision=revision)


def _within(changes: list[Change]) -> list[Change]:
    """As many as fit into a page's bytes, at least one."""
    size = 0
    for at, change in enumerate(changes):
        size += len(change.body)
        if at and size > PAGE_BYTES:
            return changes[:at]
    return changes


async def _next(where: Workspace | Home, wanted: Callable[[Change], bool], seconds: float) -> None:
    """Return when a wanted change was published, or after *seconds*."""
    published = asyncio.get_running_loop().create_future()

    def listener(scope: str | None, change: Change) -> None:
        if wanted(change) and not published.done():
            published.set_result(None)

    where.listeners.add(listener)
    try:
        await asyncio.wait_for(published, seconds)
    except TimeoutError:
        pass
    finally:
        where.listeners.discard(listener)


def _follow_files(scope: Workspace | Home, topics: frozenset[str] | str | None, sessions: tuple[str, ...]) -> None:
    if isinstance(scope, Workspace) and topics is not None and (topics == "*" or "files" in topics):
        scope.files.follow(session for session in sessions if scope.sessions.get(session) is not None)


def _topics(topics: tuple[str, ...] | Literal["*"] | None) -> frozenset[str] | str | None:
    """What a subscription keeps. Raises: InvalidParams for a noun that is none."""
    if not isinstance(topics, tuple):
        return topics
    unknown = [topic for topic in topics if topic not in TOPICS]
    if unknown:
        raise InvalidParams.of("topics", f"{unknown[0]!r} is none of {', '.join(sorted(TOPICS))}")
    return frozenset(topics)
