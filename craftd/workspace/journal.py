"""What changed, in order: epoch, revision, and the recent changes kept for replay."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import define, field, frozen

from craftd.model import json_text

JOURNAL_CHANGES = 4096
JOURNAL_MS = 600_000
JOURNAL_BYTES = 16 * 1024 * 1024
"""What a reconnecting client can replay; whichever limit is reached first (protocol.md, Revisions)."""

CHECKPOINT_SECONDS = 30.0


@frozen(kw_only=True)
class Origin:
    """Who caused a change. kind: client, disk, automation, run, daemon; client: connection id; key: idempotency key."""

    kind: str
    client: str | None = None
    key: str | None = None

    def as_json(self) -> dict[str, str]:
        members = {"kind": self.kind, "client": self.client, "key": self.key}
        return {name: value for name, value in members.items() if value is not None}


DISK = Origin(kind="disk")
DAEMON = Origin(kind="daemon")


@define(eq=False)
class Change:
    """One notification-worthy change. topic: the noun a subscriber asked for; session: for session-bound topics.

    members: what the notification carries beside the common ones. revision, at and body are set when it is published.
    unsent: too much happened to be sent to anybody; whoever wants it, then or later, is told to list again.
    """

    method: str
    topic: str
    members: dict[str, Any]
    session: str | None = None
    unsent: bool = False
    revision: int = 0
    at: int = 0
    body: bytes = b""
    """The complete JSON-RPC notification, serialised once for all subscribers."""


@define(eq=False)
class Journal:
    """The last changes of one scope, and where it stands. Positions are (epoch, revision)."""

    workspace: str | None
    epoch: str
    revision: int = 0
    missed: list[Change] = field(factory=list)
    """What happened on disk before anybody listened, not numbered yet: it goes out before the next change."""
    _changes: deque[Change] = field(factory=deque)
    _bytes: int = 0

    def publish(self, changes: Sequence[Change], origin: Origin, at: int) -> Iterator[Change]:
        """Number, serialise and keep *changes* of one commit; yields each when it is ready to be sent."""
        if changes and self.missed:
            yield from self.catch_up(at)
        for index, change in enumerate(changes):
            batch = {"batch": {"index": index, "size": len(changes)}} if len(changes) > 1 else {}
            yield self._publish(change, origin, at, batch)

    def catch_up(self, at: int) -> Iterator[Change]:
        """Publish what was missed."""
        missed, self.missed = self.missed, []
        for change in missed:
            yield self._publish(change, DISK, at, {})

    def _publish(self, change: Change, origin: Origin, at: int, batch: dict[str, Any]) -> Change:
        self.revision += 1
        common: dict[str, Any] = {} if self.workspace is None else {"workspace": self.workspace}
        common |= {"epoch": self.epoch, "revision": self.revision, "at": at, "origin": origin.as_json(), **batch}
        change.revision = self.revision
        change.at = at
        change.body = json_text.dumps_to_keep(
            {"jsonrpc": "2.0", "method": change.method, "params": {**common, **change.members}}
        )
        self._keep(change)
        return change

    def _keep(self, change: Change) -> None:
        if change.unsent:
            self._changes.clear()
            self._bytes = 0
            return
        self._changes.append(change)
        self._bytes += len(change.body)
        oldest = change.at - JOURNAL_MS
        while self._changes and (
            len(self._changes) > JOURNAL_CHANGES or self._bytes > JOURNAL_BYTES or self._changes[0].at < oldest
        ):
            self._bytes -= len(self._changes.popleft().body)

    def since(self, epoch: str, revision: int) -> list[Change] | None:
        """Changes after (*epoch*, *revision*), oldest first; None when they are no longer, or never were, known."""
        if epoch != self.epoch or revision > self.revision or revision < 0:
            return None
        missing = self.revision - revision
        if missing > len(self._changes):
            return None
        kept = list(self._changes)
        return kept[len(kept) - missing :] if missing else []


def now_ms() -> int:
    return time.time_ns() // 1_000_000
