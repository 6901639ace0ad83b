"""A session that is taken from another one: a branch up to a message, or a copy of all of it.  App 0.11.1, section 19.

What a branch goes on with is named by four more fields, by which the app asks the provider for a fork of its
conversation. Without the provider's they mark a session that is told the transcript anew. All paths that lead into
the workspace begin at the session's own folder, which is a token on disk: a moved workspace leads to itself.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Any, Final

from attrs import frozen

from craftd.model import lineage, portable
from craftd.model.records import Record
from craftd.model.sessions import COMPUTED, IMMUTABLE

PASSED_ON: Final = ("workingDirectory", "model", "llmConnection")
"""What a branch has from its origin unless it says otherwise: the provider's conversation goes on by the same means."""

NOT_COPIED: Final = frozenset(
    {
        "sdkSessionId", "sdkCwd", "connectionLocked", "sharedUrl", "sharedId", "pendingPlanExecution", "isArchived",
        "archivedAt", "taskSlug", "taskRunId", "taskNodeId", "taskNodeCount", "taskDraft", "triggeredBy", "hasUnread",
        "lastUsedAt", "branchFromMessageId", "branchFromSessionPath", "branchFromSdkSessionId", "branchFromSdkCwd",
        "branchFromSdkTurnId", "todoState",
    }
    | IMMUTABLE
    | (frozenset(COMPUTED) - {"tokenUsage"})
)  # fmt: skip
"""What a copy does not have: what belongs to one session alone, or happened to it."""


@frozen
class Origin:
    """The session that is branched from. header: its line 1 in stored form; directory: its folder."""

    id: str
    header: Record
    directory: str

    @property
    def provider(self) -> str | None:
        """What its provider calls the conversation."""
        session = self.header.get("sdkSessionId")
        return session if isinstance(session, str) and session else None


def branch_value(value: Record, origin: Record, known: Callable[[str], bool]) -> Record:
    """*value* of a new branch with what the value *origin* passes on; null in it is nothing.

    known: projects that are there.
    """
    passed = {name: origin[name] for name in PASSED_ON if isinstance(origin.get(name), str) and name not in value}
    return lineage.inherited({**value, **passed}, origin, known)


def copied_value(origin: Record) -> Record:
    """What a copy has of the value *origin*."""
    return {name: member for name, member in origin.items() if name not in NOT_COPIED}


def branch_fields(
    origin: Origin, message: str, turn: str | None, connection: Any, root: str, directory: str, home: str
) -> Record:
    """Fields that say where a session in *directory* was taken from, in stored form.

    turn: what the provider calls the place. connection: that of the new session; another one cannot go on with what
    the provider knows.
    """
    fields: Record = {
        "branchFromMessageId": message,
        "branchFromSessionPath": f"{directory}/../{origin.id}",
    }
    if origin.provider is None or connection != origin.header.get("llmConnection"):
        return fields
    fields["branchFromSdkSessionId"] = origin.provider
    cwd = origin.header.get("sdkCwd")
    if isinstance(cwd, str):
        # The app takes it as it is, so a home folder has to be spelled out.
        fields["branchFromSdkCwd"] = _from(directory, portable.expand_home(cwd, home), root)
    if turn is not None:
        fields["branchFromSdkTurnId"] = turn
    return fields


def _from(directory: str, path: str, root: str) -> str:
    if path != root and not path.startswith(f"{root}/"):
        return path
    return f"{directory}/{posixpath.relpath(path, directory)}"


def turn_of(anchors: Any, message: str, provider: str | None) -> str | None:
    """What the provider calls the place of *message*, by a sidecar of one of the two kinds; None if it does not say."""
    found = anchors.get("anchors") if isinstance(anchors, dict) else None
    anchor = found.get(message) if isinstance(found, dict) else None
    if isinstance(anchor, str):
        return anchor or None
    if not isinstance(anchor, dict) or anchor.get("sdkSessionId") != provider:
        return None
    turn = anchor.get("sdkMessageUuid")
    return turn if isinstance(turn, str) and turn else None


def anchors_of(anchors: Any, messages: frozenset[str]) -> Record | None:
    """The part of a sidecar that is about *messages*; None if there is none."""
    found = anchors.get("anchors") if isinstance(anchors, dict) else None
    if not isinstance(found, dict):
        return None
    kept = {id: anchor for id, anchor in found.items() if id in messages and isinstance(anchor, str) and anchor}
    return {"version": 1, "anchors": kept} if kept else None
