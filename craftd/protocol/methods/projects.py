"""Projects: what their verbs take beyond the contract."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Delete
from craftd.protocol.methods.statuses import Removed
from craftd.protocol.registry import method


@method("projects/delete", result=Removed, right="write")
@frozen(kw_only=True)
class DeleteProject(Delete):
    """Move a project to the trash; the sessions that belong to it are unbound first and stay."""

    work_done_token: int | str | None = None
