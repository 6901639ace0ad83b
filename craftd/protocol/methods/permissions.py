"""Permissions: the rules files, one record per level, and what they decide.

An `id` is a level: `default` in the shared configuration; in a workspace `workspace`, and `source:<slug>` for each
source. A level without a file is an empty record (`default`: the built-in rules); the first update makes the file.
"""

from __future__ import annotations

from attrs import frozen

from craftd.model.records import Record
from craftd.protocol.contract import DidCreate, DidDelete, Get, Got, List, Page, Ref, Update, Updated
from craftd.protocol.registry import method, notification


@method("permissions/list", result=Page, right="read", scope="either")
@frozen(kw_only=True)
class ListPermissions(List):
    """The rules files of a workspace and its sources, or of the shared configuration."""


@method("permissions/get", result=Got, right="read", scope="either")
@frozen(kw_only=True)
class GetPermission(Get):
    """The rules of one level."""


@method("permissions/update", result=Updated, right="write", scope="either")
@frozen(kw_only=True)
class UpdatePermission(Update):
    """Change the rules of one level."""


@notification("permissions/didCreate")
@frozen(kw_only=True)
class DidCreatePermission(DidCreate):
    """A level is there: a source came."""


@notification("permissions/didDelete")
@frozen(kw_only=True)
class DidDeletePermission(DidDelete):
    """A level is gone with its source."""


@frozen(kw_only=True)
class Checked:
    """decision: allow, ask or deny. code: why, in one word. reason: why, for people."""

    decision: str
    code: str
    reason: str
    rule: Record | None = None
    """What allowed it: `{level, list, pattern, method?, comment?}`; level `built-in` is no file's."""
    hint: Record | None = None
    """The entry of `blockedCommandHints` for a command that was not allowed."""


@method("permissions/check", result=Checked, right="read", scope="either")
@frozen(kw_only=True)
class CheckPermission(Ref):
    """Whether a tool may be called, by the rules of all levels; nothing is run, asked or remembered."""

    mode: str
    """safe, ask, allow-all, or another spelling of them that the app knows."""
    tool: str
    input: Record
    session: str | None = None
    """Its sources' rules count, it may write to its `plans/` and `data/`, and relative paths begin where it works."""
