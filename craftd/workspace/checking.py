"""What `issues/list` would answer of folders, without a daemon. Only reads: nothing is locked, written or made."""

from __future__ import annotations

import os
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from craftd.errors import Issue
from craftd.model.workspaces import FOLDERS
from craftd.store.files import JsonForm, Unreadable, read
from craftd.store.locks import AppLock
from craftd.workspace.guard import Guard
from craftd.workspace.home import Home
from craftd.workspace.registry import DEFAULTS, REGISTRY
from craftd.workspace.workspace import Surroundings, Workspace

_ROOMS: Final = (*FOLDERS, "projects", "tasks")
_OF_THE_CONFIGURATION: Final = (DEFAULTS, "preferences.json", "credentials.enc")


@frozen
class Folder:
    """A folder that was looked at. issues: by path relative to it, or absolute; in the order of `issues/list`."""

    root: Path
    issues: dict[str, list[Issue]]


def kind_of(folder: Path) -> str | None:
    """Whether it looks like a "workspace" or a "configuration" folder; None = like neither."""
    try:
        found = read(folder / REGISTRY)
    except Unreadable:
        found = None
    value = {} if found is None else JsonForm().parse(found[0]).value
    if "workspaces" in value:
        return "configuration"
    rooms = sum((folder / name).is_dir() for name in _ROOMS)
    if rooms > 1 or (rooms and (folder / REGISTRY).exists()) or str(value.get("id", "")).startswith("ws_"):
        return "workspace"
    if any((folder / name).exists() for name in _OF_THE_CONFIGURATION):
        return "configuration"
    return None


def root_of(path: Path) -> Path | None:
    """The workspace or configuration folder that *path* is, or lies in; the nearest one."""
    return next((folder for folder in (path, *path.parents) if folder.is_dir() and kind_of(folder) is not None), None)


def look(root: Path, config: Path, within: Path) -> list[Folder]:
    """A workspace; a configuration folder and after it the workspaces that it names.

    config: the configuration folder whose daemon is asked otherwise. within: the file or folder that is meant.
    """
    if root != config and kind_of(root) == "workspace":
        return [_workspace(root, config, within)]
    home = Home.of(root, surroundings(root))
    home.look_once()
    found = [Folder(root, _ordered(root, home.issues(), within))]
    if within == root:
        roots = {os.path.realpath(known.entry.root): known.entry.root for known in home.known.values()}
        found += [_workspace(other, root, other) for other in roots.values() if other.is_dir()]
    return found


def _workspace(root: Path, config: Path, within: Path) -> Folder:
    return Folder(root, _ordered(root, Workspace.look_once("", root, surroundings(config)).issues(), within))


def _ordered(root: Path, issues: dict[str, list[Issue]], within: Path) -> dict[str, list[Issue]]:
    wanted = [
        path for path in sorted(issues) if issues[path] and (within == root or (root / path).is_relative_to(within))
    ]
    return {path: issues[path] for path in wanted}


def surroundings(config: Path) -> Surroundings:
    """For scopes of the configuration folder *config* that are looked at once."""
    return Surroundings(
        guard=Guard(AppLock(config), time.monotonic),
        pool=ThreadPoolExecutor(1),  # has no thread before it is used
        spawn=_refuse,
        home=os.path.expanduser("~"),
        cache=config / "craftd" / "cache",
    )


def _refuse(work: Coroutine[Any, Any, None]) -> Any:
    work.close()
    raise AssertionError("nothing is done after a single look")
