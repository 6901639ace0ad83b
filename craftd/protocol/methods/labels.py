"""Labels: the order of the tree."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Change
from craftd.protocol.registry import notification


@notification("labels/didReorder")
@frozen(kw_only=True)
class LabelsDidReorder(Change):
    """The labels in *parent* (absent: the topmost ones) stand in this order now."""

    ids: tuple[str, ...]
    parent: str | None = None
