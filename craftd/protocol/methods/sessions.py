"""Sessions: what their five verbs take beyond the contract."""

from __future__ import annotations

from attrs import frozen

from craftd.model.records import Record
from craftd.protocol.contract import Committed, Create, Created, Delete, Get, Got, ItemJson, Mutation, Position, Ref
from craftd.protocol.registry import method, notification


@frozen(kw_only=True)
class GotSession(Got):
    """messages: the last ones, if they were asked for."""

    messages: tuple[ItemJson, ...] | None = None


@method("sessions/get", result=GotSession, right="read")
@frozen(kw_only=True)
class GetSession(Get):
    """One session."""

    messages: int | None = None
    """Also give the last n messages."""
    explicit: Record | None = None
    """What is wanted for once: the members of `info.effective`; it goes before what the session says."""


@frozen(kw_only=True)
class BranchPoint:
    """Where a branch leaves its session: behind a message."""

    session: str
    message: str


@method("sessions/create", result=Created, right="write")
@frozen(kw_only=True)
class CreateSession(Create):
    """A new session, empty or a branch of another one."""

    from_: BranchPoint | None = None
    """The branch begins with all messages up to this one, and the files that they name."""


@method("sessions/duplicate", result=Created, right="write")
@frozen(kw_only=True)
class DuplicateSession(Mutation):
    """A copy of a session with its messages and files."""

    session: str
    value: Record | None = None
    """What it has that the other one has not."""
    id: str | None = None


@frozen(kw_only=True)
class DeletedSession(Committed):
    """trash: its id there. children, branches: sessions that stem from it, and stay."""

    trash: str | None = None
    children: tuple[str, ...]
    branches: tuple[str, ...]


@method("sessions/delete", result=DeletedSession, right="write")
@frozen(kw_only=True)
class DeleteSession(Delete):
    """Move a session to the trash."""

    permanent: bool = False
    """Remove it instead."""


@frozen(kw_only=True)
class FoundDamage:
    """Something wrong with a session's file. remedy: what repairing makes of it; absent: it stays."""

    code: str
    line: int | None = None
    message: str
    remedy: str | None = None


@frozen(kw_only=True)
class Repaired(Committed):
    """changed: the file was written anew. found: what was wrong before. kept: name of the file as it was, in the
    session's folder.
    """

    item: ItemJson
    changed: bool
    found: tuple[FoundDamage, ...]
    kept: str | None = None


@method("sessions/repair", result=Repaired, right="write")
@frozen(kw_only=True)
class RepairSession(Mutation):
    """Mend the file of a session; what it was stays beside."""

    id: str
    dry_run: bool = False
    """Only say what is wrong and what would become of it."""


@method("sessions/markRead", result=Committed, right="write")
@frozen(kw_only=True)
class MarkRead(Mutation):
    """Everything in these sessions was read: `hasUnread` false, `lastReadMessageId` the last final message."""

    sessions: tuple[str, ...] | None = None
    all: bool = False
    """All unread ones that are neither hidden nor archived."""
    work_done_token: int | str | None = None


@frozen(kw_only=True)
class UnreadSessions(Position):
    """What is unread in one workspace. sessions: their ids, the latest first."""

    workspace: str
    count: int
    sessions: tuple[str, ...]


@frozen(kw_only=True)
class Unread:
    """total: over all *workspaces*."""

    total: int
    workspaces: tuple[UnreadSessions, ...]


@method("sessions/unread", result=Unread, right="read", scope="either")
@frozen(kw_only=True)
class CountUnread(Ref):
    """Which sessions have unread messages, hidden and archived ones left out; of one or all open workspaces."""


@method("sessions/view", result=None, right="read", notification=True)
@frozen(kw_only=True)
class ViewSessions(Ref):
    """These sessions, and no others, are on the screen now; they do not become unread. May come as a notification."""

    sessions: tuple[str, ...]


@method("sessions/publish", result=None, right="write")
@frozen(kw_only=True)
class PublishEvent(Ref):
    """Tell who listens what is not worth storing; for executors."""

    session: str
    event: Record
    """`{type, ...}`; `{type: "state", state}` is remembered while the connection lives."""


@notification("sessions/didPublish")
@frozen(kw_only=True)
class SessionsDidPublish(Ref):
    """An executor said something that is not stored; no revision. client: its connection."""

    session: str
    event: Record
    client: str
