"""What may be changed below a workspace although people put links into it.

A link to a file is written at its target, if that lies in the workspace. What a linked folder holds is read, never
changed, and the link is removed as a link. Hard links cannot be told from files. All this guards against links that
are there, not against a program that swaps a folder for a link in the same moment.
"""

from __future__ import annotations

import os
from pathlib import Path

from craftd.errors import Forbidden


def check_writable(root: Path, path: Path) -> None:
    """May *path* below *root*, which need not exist, get new content?

    Raises: Forbidden if a folder on the way is a link, or *path* is one that leads to no file in *root*.
    """
    link = _first_link(root, path)
    if link is None:
        return
    if link != path:
        raise _forbidden(root, link, "what it leads to is read, never written")
    target = Path(os.path.realpath(path))
    if Path(os.path.realpath(root)) not in target.parents:
        raise _forbidden(root, path, "it leads out of the workspace, where nothing is written")
    if target.is_symlink() or target.is_dir():  # still a link: it leads back to itself
        raise _forbidden(root, path, "it leads to no file")


def check_removable(root: Path, path: Path) -> None:
    """May the file, folder or link *path* below *root* be taken away by that name?

    Raises: Forbidden if it lies in a linked folder.
    """
    link = _first_link(root, path)
    if link is not None and link != path:
        raise _forbidden(root, link, "what it leads to is read, never removed")


def _first_link(root: Path, path: Path) -> Path | None:
    """The first of the names between *root* and *path*, itself included, that is a link; *root* may be one."""
    current = root
    for name in path.relative_to(root).parts:
        current = current / name
        if current.is_symlink():
            return current
    return None


def _forbidden(root: Path, link: Path, why: str) -> Forbidden:
    shown = link.relative_to(root).as_posix()
    return Forbidden(f"{shown} is a link: {why}", path=shown)
