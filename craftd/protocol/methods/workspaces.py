"""Known workspaces: what their five verbs take beyond the contract."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Create, Created
from craftd.protocol.registry import method


@method("workspaces/create", result=Created, right="write", scope="global")
@frozen(kw_only=True)
class CreateWorkspace(Create):
    """Make a workspace folder, or register an existing one: `value: {name, path?}`."""

    adopt: bool = False
    """Take a folder that is neither empty nor a workspace."""
    dry_run: bool = False
    work_done_token: int | str | None = None
