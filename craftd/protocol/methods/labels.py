"""Labels: what their verbs take beyond the contract, and verbs of their own."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Change, Committed, Delete, Mutation
from craftd.protocol.methods.statuses import Removed, Rename, Renamed
from craftd.protocol.registry import method, notification


@method("labels/delete", result=Removed, right="write")
@frozen(kw_only=True)
class DeleteLabel(Delete):
    """Remove a label and those in it, from sessions first."""

    work_done_token: int | str | None = None


@method("labels/rename", result=Renamed, right="write")
@frozen(kw_only=True)
class RenameLabel(Rename):
    """Give a label another id, also in sessions."""


@method("labels/reorder", result=Committed, right="write")
@frozen(kw_only=True)
class ReorderLabels(Mutation):
    """Put the labels of one level in order."""

    ids: tuple[str, ...]
    """All of the level, in order."""
    parent: str | None = None
    """The label they are in; absent: the topmost ones."""


@notification("labels/didReorder")
@frozen(kw_only=True)
class LabelsDidReorder(Change):
    """The labels in *parent* (absent: the topmost ones) stand in this order now."""

    ids: tuple[str, ...]
    parent: str | None = None
