"""Folders of sessions that somebody copied or moved: what line 1 says of places follows them.

Line 1 names the folder that the session lay in when it was last written: `workspaceRootPath` and `id`. Where it lies
somewhere else now, members that are paths into that folder, or into its workspace, mean the new place. The app goes on
writing into the old one.
"""

from __future__ import annotations

from functools import lru_cache

from craftd.model import portable
from craftd.model.ids import is_session_id
from craftd.model.records import Record

PATHS = ("sdkCwd", "workingDirectory", "branchFromSessionPath", "branchFromSdkCwd")


def at_home(stored: Record, session_dir: str, root: str, home: str) -> Record:
    """The stored header *stored* of a session that lies in *session_dir* of the workspace *root*, all of it true there.

    The same object if it was never anywhere else.
    """
    old_root, old_id = stored.get("workspaceRootPath"), stored.get("id")
    same_root = old_root == _contracted(root, home) or old_root == root
    if (same_root and old_id == session_dir.rpartition("/")[2]) or not isinstance(old_root, str) or not old_root:
        return stored
    moves = _moves(portable.expand_home(old_root, home).rstrip("/"), old_id, session_dir, root)
    changed: Record = {}
    for name in PATHS:
        if isinstance(path := stored.get(name), str) and (new := _moved(path, moves, home)) is not None:
            changed[name] = new
    plan = stored.get("pendingPlanExecution")
    path = plan.get("planPath") if isinstance(plan, dict) else None
    if isinstance(plan, dict) and isinstance(path, str) and (new := _moved(path, moves, home)) is not None:
        changed["pendingPlanExecution"] = {**plan, "planPath": new}
    return {**stored, **changed} if changed else stored


def _moves(old_root: str, old_id: object, session_dir: str, root: str) -> list[tuple[str, str]]:
    """Old and new folders, the inner one first. A root that is none moves nothing."""
    if not old_root.strip("/") or not old_root.startswith("/"):
        return []
    inner = [(f"{old_root}/sessions/{old_id}", session_dir)] if is_session_id(old_id) else []
    return [*inner, (old_root, root)]


def _moved(path: str, moves: list[tuple[str, str]], home: str) -> str | None:
    """Where *path* leads now, with `~` where it had one; None for what lies elsewhere, or where it was."""
    whole = portable.expand_home(path, home)
    for old, new in moves:
        if whole == old or whole.startswith(f"{old}/"):
            there = new + whole[len(old) :]
            if there == whole:
                return None
            return portable.contract_home(there, home) if path.startswith("~") else there
    return None


@lru_cache(maxsize=64)
def _contracted(root: str, home: str) -> str:
    return portable.contract_home(root, home)
