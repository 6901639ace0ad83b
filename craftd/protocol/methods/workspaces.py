"""Known workspaces: their five verbs. Here an `id` may also be a `ws_` id, a slug or a path."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Committed, Create, Created, Delete, Get, Got, List, Mutation, Page, Update, Updated
from craftd.protocol.registry import method


@method("workspaces/list", result=Page, right="read", scope="global")
@frozen(kw_only=True)
class ListWorkspaces(List):
    """All registered workspaces."""


@method("workspaces/get", result=Got, right="read", scope="global")
@frozen(kw_only=True)
class GetWorkspace(Get):
    """One workspace: its settings and `path`."""


@method("workspaces/create", result=Created, right="write", scope="global")
@frozen(kw_only=True)
class CreateWorkspace(Create):
    """Make a workspace folder, or register an existing one: `value: {name, path?}`."""

    adopt: bool = False
    """Take a folder that is neither empty nor a workspace."""
    dry_run: bool = False
    """Answer what would be there, and do nothing."""
    work_done_token: int | str | None = None


@method("workspaces/update", result=Updated, right="write", scope="global")
@frozen(kw_only=True)
class UpdateWorkspace(Update):
    """Change the settings of a workspace."""


@method("workspaces/delete", result=Committed, right="write", scope="global")
@frozen(kw_only=True)
class DeleteWorkspace(Delete):
    """Take a workspace out of the registry; its files stay."""


@method("workspaces/move", result=Updated, right="write", scope="global")
@frozen(kw_only=True)
class MoveWorkspace(Mutation):
    """Say where the folder of a workspace is, after somebody moved it; nothing is moved, and its id stays."""

    id: str
    path: str
    """Absolute, or beginning with `~`."""
    expected_version: str | None = None
