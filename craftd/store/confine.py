"""What may be changed below a workspace although people put links into it.

A link to a file is written at its target, if that lies in the workspace. What a linked folder holds is read, never
changed, and the link is removed as a link. Hard links cannot be told from files.

Records have names that we chose or found; `check_writable` and `check_removable` guard those against links that are
there, not against a program that swaps a folder for a link in the same moment. Paths that clients choose are walked by
`find` instead: one name after the other, each in a folder that is held open, so nothing can be swapped.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections import deque
from collections.abc import Collection
from pathlib import Path
from typing import Final

from attrs import define

from craftd.errors import Forbidden

LINKS: Final = 40
"""Links on the way to one file; more lead in a circle."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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


@define(eq=False)
class Spot:
    """A name in a folder that is held open: it stays this folder whatever is done to the names that led here.

    parts: names from the root to it, links resolved; "" as name: the root itself. status: of what has the name, a
    link only if it was not to be followed; None = nothing has. missing: names below it that the path goes on with.
    folder_link: the first link to a folder on the way: what it holds is read, never written.
    """

    root: Path
    folder: int
    name: str
    parts: tuple[str, ...]
    status: os.stat_result | None
    missing: tuple[str, ...] = ()
    folder_link: str | None = None

    @property
    def path(self) -> Path:
        """For calls that take a path. Where the system cannot name an open folder, the plain path is all there is."""
        return self.held / self.name if self.name else self.held

    @property
    def held(self) -> Path:
        """The folder."""
        if sys.platform == "linux":
            return Path(f"/proc/self/fd/{self.folder}")
        return self.root.joinpath(*self.parts[:-1])

    @property
    def shown(self) -> str:
        """Relative to the root."""
        return "/".join((*self.parts, *self.missing))

    def close(self) -> None:
        os.close(self.folder)

    def __enter__(self) -> Spot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_file(self) -> int:
        """Handle for reading. A pipe, device or socket is never opened. Raises: OSError."""
        path_only = getattr(os, "O_PATH", 0)
        fd = os.open(self.name, path_only | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "is no regular file", self.shown)
        if not path_only:
            return fd
        try:
            return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(fd)

    def open_folder(self) -> int:
        """Handle on the folder that has the name, for listing. Raises: OSError."""
        return os.open(self.name or ".", _FOLDER, dir_fd=self.folder)

    def below(self, name: str) -> Spot:
        """*name* in the folder that has this name. The caller closes both. Raises: OSError."""
        folder = self.open_folder()
        rest = self.missing[1:] if self.missing else ()
        return Spot(self.root, folder, name, (*self.parts, name), _look(folder, name), rest)


def find(root: Path, parts: tuple[str, ...], *, shut: Collection[tuple[int, int]] = (), follow: bool = True) -> Spot:
    """Where *parts* lead below *root*. Links are followed as long as they stay below it; the last one if *follow*.

    shut: folders (device, inode) that are not to be entered. The caller closes the answer.
    Raises: Forbidden (leads out, in a circle, or into a folder that is shut), OSError (a file instead of a folder).
    """
    walk = _Walk(root, "/".join(parts), frozenset(shut))
    try:
        return walk.run(deque(parts), follow)
    except BaseException:
        walk.close()
        raise


class _Walk:
    """Folders held open from the root to where we are."""

    def __init__(self, root: Path, asked: str, shut: frozenset[tuple[int, int]]) -> None:
        self.root = root
        self.asked = asked
        self.shut = shut
        self.names: list[str] = []
        self.handles = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        self.followed = 0
        self.folder_link: str | None = None

    def run(self, left: deque[str], follow: bool) -> Spot:
        while left:
            name = left.popleft()
            if name == "..":
                self._up()
                continue
            if name in ("", "."):
                continue
            status = _look(self.handles[-1], name)
            if status is None:
                return self._spot(name, None, tuple(left))
            if stat.S_ISLNK(status.st_mode) and (left or follow):
                self._follow(name, left)
            elif left or stat.S_ISDIR(status.st_mode):
                self._enter(name)
            else:
                return self._spot(name, status)
        if len(self.handles) == 1:
            return self._spot("", os.fstat(self.handles[0]))
        status = os.fstat(self.handles[-1])
        name = self._up()
        return self._spot(name, status)

    def _spot(self, name: str, status: os.stat_result | None, missing: tuple[str, ...] = ()) -> Spot:
        folder = self.handles.pop()
        self.close()
        parts = (*self.names, name) if name else ()
        missing = tuple(part for part in missing if part not in ("", "."))
        if ".." in missing:
            raise self._refused("it leads nowhere")
        return Spot(self.root, folder, name, parts, status, missing, self.folder_link)

    def _enter(self, name: str) -> None:
        handle = os.open(name, _FOLDER, dir_fd=self.handles[-1])
        self.handles.append(handle)
        self.names.append(name)
        status = os.fstat(handle)
        if (status.st_dev, status.st_ino) in self.shut:
            raise self._refused("it belongs to the daemon, or to another workspace")

    def _up(self) -> str:
        if not self.names:
            raise self._refused("it leads out of the workspace")
        os.close(self.handles.pop())
        return self.names.pop()

    def _follow(self, name: str, left: deque[str]) -> None:
        self.followed += 1
        if self.followed > LINKS:
            raise self._refused("it leads back to itself")
        here = "/".join((*self.names, name))
        target = os.readlink(name, dir_fd=self.handles[-1])
        if os.path.isabs(target):
            target = self._from_root(target)
            while self.names:
                self._up()
        if self.folder_link is None and left:
            self.folder_link = here
        left.extendleft(reversed(target.split("/")))

    def _from_root(self, target: str) -> str:
        """An absolute *target* as a way from the root; that it really leads there is seen on the way."""
        root = os.fspath(self.root)
        for spelling in (os.path.normpath(target), os.path.realpath(target)):
            if spelling == root or spelling.startswith(f"{root}/"):
                return spelling[len(root) :]
        raise self._refused("it leads out of the workspace")

    def _refused(self, why: str) -> Forbidden:
        return Forbidden(f"{self.asked}: {why}", path=self.asked)

    def close(self) -> None:
        for handle in self.handles:
            os.close(handle)
        self.handles.clear()


def _look(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
