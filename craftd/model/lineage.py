"""Which session stems from which: a child names its parent, a branch the folder of the session it was taken from."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Final

from craftd.model.ids import is_session_id
from craftd.model.records import Record

PARENT: Final = "parentSessionId"
ORIGIN: Final = "branchFromSessionPath"


def parent_of(header: Record) -> str | None:
    parent = header.get(PARENT)
    return parent if isinstance(parent, str) and parent else None


def origin_of(header: Record) -> str | None:
    """Id of the session that a branch was taken from, wherever the workspace lay when that was written down."""
    path = header.get(ORIGIN)
    if not isinstance(path, str):
        return None
    folder, _, id = posixpath.normpath(path.replace("\\", "/")).rpartition("/")
    return id if posixpath.basename(folder) == "sessions" and is_session_id(id) else None


def leads_back(id: str, parent: str, parent_of: Callable[[str], str | None]) -> bool:
    """Whether *id* is *parent* or above it, so that it cannot be its child."""
    seen = set()
    above: str | None = parent
    while above is not None and above not in seen:
        if above == id:
            return True
        seen.add(above)
        above = parent_of(above)
    return False


def inherited(value: Record, parent: Record | None, known: Callable[[str], bool]) -> Record:
    """*value* of a new child with the project of its *parent*, unless it names one, or null; known: projects that are
    there.
    """
    project = None if parent is None else parent.get("projectId")
    if "projectId" in value or not isinstance(project, str) or not known(project):
        return value
    return {**value, "projectId": project}
