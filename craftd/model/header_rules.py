"""Fields of a header that follow from a change of other fields.  App 0.11.1, which has one command per such change.

Only what the change itself does not name follows: a client that says `archivedAt` too knows better.
"""

from __future__ import annotations

from collections.abc import Callable

from craftd.errors import Issue
from craftd.model import patch as patches
from craftd.model import plans
from craftd.model.json_text import equal
from craftd.model.patch import Patch
from craftd.model.records import Record
from craftd.model.sessions import PERSISTENT, marked_read, moved, permission_mode

ONCE = {
    "hidden": "is decided at creation",
    "triggeredBy": "is decided at creation",
    "transferredSessionSummary": "is decided at creation",
    "branchFromMessageId": "is decided at creation",
    "branchFromSessionPath": "is decided at creation",
    "taskSlug": "is fixed: the session belongs to a task",
}
"""Fields that are set once, and why another change is refused. All but the last are set at creation or never."""


def patched(old: Record, patch: Patch, directory: str, now: int, mode: Callable[[Record], str | None]) -> Record:
    """The value *old* after a client's *patch*, with what follows from it.

    directory: the session's folder. now: ms since 1970 UTC. mode: what holds for a session that has no mode of its own.
    """
    given = patch.get("set") or {}
    new = plans.pending(old, _without_nulls(patches.apply(old, patch), given), given.get(plans.PENDING))
    return moved(old, _followed(old, new, now, mode), directory)


def created(value: Record, now: int) -> Record:
    """*value* of a new session, with what follows from it."""
    return _archived({}, plans.pending({}, _without_nulls(value, value), value.get(plans.PENDING)), now)


def issues(value: Record, old: Record | None) -> list[Issue]:
    """What is wrong with *value* as the successor of *old* (None: as a new session), fields beside each other."""
    found = []
    before = old or {}
    if (
        type(value.get("archivedAt")) is int
        and value.get("isArchived") is not True
        and _differs(before, value, "archivedAt")
    ):
        found.append(Issue(path="archivedAt", message="says when a session was archived, and this one is not"))
    if old is not None:
        for name, message in ONCE.items():
            if _differs(old, value, name) and (name != "taskSlug" or old.get(name) is not None):
                found.append(Issue(path=name, message=message))
        named = isinstance(old.get("llmConnection"), str) and old.get("connectionLocked") is not True
        if named and old.get("messageCount") and _differs(old, value, "llmConnection"):
            found.append(Issue(path="llmConnection", message="is fixed once there are messages"))
    return found


def _without_nulls(value: Record, given: Record) -> Record:
    """*value* without the known fields to which *given* says null: no field of a header can be null."""
    cleared = {name for name in PERSISTENT if name in given and given[name] is None}
    return {name: member for name, member in value.items() if name not in cleared} if cleared else value


def _followed(old: Record, new: Record, now: int, mode: Callable[[Record], str | None]) -> Record:
    new = _archived(old, new, now)
    if _differs(old, new, "permissionMode") and not _differs(old, new, "previousPermissionMode"):
        before = permission_mode(old.get("permissionMode")) or mode(old)
        if before is not None and before != (permission_mode(new.get("permissionMode")) or mode(new)):
            new = {**new, "previousPermissionMode": before}
    if _differs(old, new, "hasUnread") and not _differs(old, new, "lastReadMessageId"):
        if new.get("hasUnread") is True:
            new = {name: member for name, member in new.items() if name != "lastReadMessageId"}
        elif old.get("hasUnread") is True:
            new = marked_read(new)
    elif _differs(old, new, "lastReadMessageId") and not _differs(old, new, "hasUnread"):
        final = new.get("lastFinalMessageId")
        if new.get("hasUnread") is True and final is not None and new.get("lastReadMessageId") == final:
            new = {**new, "hasUnread": False}
    return new


def _archived(old: Record, new: Record, now: int) -> Record:
    if (new.get("isArchived") is True) == (old.get("isArchived") is True) or _differs(old, new, "archivedAt"):
        return new
    if new.get("isArchived") is True:
        return {**new, "archivedAt": now}
    return {name: member for name, member in new.items() if name != "archivedAt"}


def _differs(old: Record, new: Record, name: str) -> bool:
    return (name in old) != (name in new) or (name in old and not equal(old[name], new[name]))
