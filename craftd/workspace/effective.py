"""What holds for a session of an open workspace, by all that is said above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from craftd.model import settings
from craftd.model.records import Record
from craftd.model.settings import Levels

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace


def levels(workspace: Workspace, value: Record, explicit: Record | None = None) -> Levels:
    """What decides about a session of *value*."""
    project = value.get("projectId")
    row = workspace.tables["projects"].index.get(project) if isinstance(project, str) else None
    return Levels(
        root=str(workspace.place.root),
        home=workspace.place.home,
        above=workspace.around.above(workspace.id),
        session=value,
        project={} if row is None else row.value,
        explicit=explicit or {},
    )


def permission_mode(workspace: Workspace, value: Record) -> str | None:
    """What holds for a session of *value*."""
    mode: str | None = settings.resolve(levels(workspace, value))["permissionMode"].value
    return mode


def as_json(workspace: Workspace, value: Record, explicit: Record | None) -> dict[str, Any]:
    """`info.effective` of a session of *value*."""
    resolved = settings.resolve(levels(workspace, value, explicit))
    return {name: effective.as_json() for name, effective in resolved.items()}
