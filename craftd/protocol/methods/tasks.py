"""Tasks: what is wrong with one that is not stored."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Ref
from craftd.protocol.methods.issues import Validated
from craftd.protocol.registry import method


@method("tasks/validate", result=Validated, right="read")
@frozen(kw_only=True)
class ValidateTask(Ref):
    """What is wrong with the text of a `task.yaml`; nothing is stored."""

    text: str
    folder: str | None = None
    """Name of the one it is for; absent: paths are `task.yaml`."""
