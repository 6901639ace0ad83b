"""The trash of a workspace: deleted sessions listed, given back and removed for good; old ones put into it."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Committed, Created, Mutation, Page, Ref
from craftd.protocol.registry import method


@method("sessions/listTrash", result=Page, right="read")
@frozen(kw_only=True)
class ListTrash(Ref):
    """Deleted sessions, the latest first."""

    limit: int | None = None
    cursor: str | None = None


@method("sessions/restore", result=Created, right="write")
@frozen(kw_only=True)
class RestoreSession(Mutation):
    """Give a deleted session back, with everything in its folder, under its old id."""

    id: str
    """From the list of the trash; or the session's, for its last deletion."""


@frozen(kw_only=True)
class Emptied(Committed):
    """removed: ids in the trash of what is gone for good."""

    removed: tuple[str, ...]


@method("sessions/emptyTrash", result=Emptied, right="write")
@frozen(kw_only=True)
class EmptyTrash(Mutation):
    """Remove deleted sessions for good: all, or some."""

    ids: tuple[str, ...] | None = None
    """From the list of the trash."""
    older_than_days: float | None = None
    """Only what was deleted before that."""


@frozen(kw_only=True)
class Purged(Committed):
    """sessions: ids of those that went to the trash, or would."""

    sessions: tuple[str, ...]


@method("sessions/purge", result=Purged, right="write")
@frozen(kw_only=True)
class PurgeSessions(Mutation):
    """Move sessions to the trash that were archived long ago."""

    older_than_days: float
    """More than 0. A session without a certain time of archiving stays."""
    dry_run: bool = False
    """Only say which."""
    work_done_token: int | str | None = None
