"""Subscriptions."""

from __future__ import annotations

from functools import partial

from craftd.errors import InvalidParams
from craftd.model.nouns import NOUNS
from craftd.protocol.methods.events import Subscribe, Subscribed, Unsubscribe
from craftd.server.dispatch import Call, handles
from craftd.server.outbox import Subscription, wants
from craftd.workspace.home import Home
from craftd.workspace.workspace import Workspace


@handles
def subscribe(call: Call, params: Subscribe) -> Subscribed:
    scope: Workspace | Home = call.scope
    journal = scope.journal
    topics = params.topics
    if isinstance(topics, tuple):
        unknown = [topic for topic in topics if topic not in TOPICS]
        if unknown:
            raise InvalidParams.of("topics", f"{unknown[0]!r} is none of {', '.join(sorted(TOPICS))}")
    subscription = Subscription(
        epoch=journal.epoch,
        revision=journal.revision,
        topics=frozenset(topics) if isinstance(topics, tuple) else topics,
        sessions=None if params.sessions is None else frozenset(params.sessions),
    )
    call.connection.subscribe(scope.id, subscription)
    if params.since is None:
        return Subscribed(replay="none", epoch=journal.epoch, revision=journal.revision)
    missed = journal.since(params.since.epoch, params.since.revision)
    if missed is None:
        return Subscribed(replay="stale", epoch=journal.epoch, revision=journal.revision)
    wanted = [change for change in missed if wants(change, subscription.topics, subscription.sessions)]
    call.after.append(partial(call.connection.replay, scope.id, wanted))
    return Subscribed(replay="complete", count=len(wanted), epoch=journal.epoch, revision=journal.revision)


@handles
def unsubscribe(call: Call, params: Unsubscribe) -> None:
    call.connection.unsubscribe(call.scope.id)


TOPICS = frozenset(NOUNS) | {"issues", "files"}
