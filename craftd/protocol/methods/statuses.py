"""Statuses: what their verbs take beyond the contract, and verbs of their own."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Committed, Delete, Mutation, Updated
from craftd.protocol.registry import method


@frozen(kw_only=True)
class Removed(Committed):
    """sessions: how many were changed with it."""

    sessions: int


@frozen(kw_only=True)
class Renamed(Updated):
    """sessions: how many were changed with it."""

    sessions: int


@frozen(kw_only=True)
class Rename(Mutation):
    """Params of giving a record another id."""

    id: str
    new_id: str
    expected_version: str | None = None
    work_done_token: int | str | None = None


@method("statuses/delete", result=Removed, right="write")
@frozen(kw_only=True)
class DeleteStatus(Delete):
    """Remove a status; sessions that have it keep its id, or get another status first."""

    move_to: str | None = None
    """Id of the status that sessions get."""
    work_done_token: int | str | None = None


@method("statuses/rename", result=Renamed, right="write")
@frozen(kw_only=True)
class RenameStatus(Rename):
    """Give a status another id, also in sessions."""


@method("statuses/reorder", result=Committed, right="write")
@frozen(kw_only=True)
class ReorderStatuses(Mutation):
    """Number the statuses anew."""

    ids: tuple[str, ...]
    """All of them, in order."""
