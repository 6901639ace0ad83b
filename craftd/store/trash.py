"""Sessions in the trash of a workspace: `.trash/<ms>-<id>`, one rename away from where they were.

`ms` says when; of two deletions of one id in a millisecond the later one is said to be later. Folders of other nouns
lie there too, under names of their own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from attrs import frozen

from craftd.store import atomic, confine, disk, files
from craftd.store.atomic import ForeignWrite
from craftd.store.folders import TRASH
from craftd.store.locate import locate

_NAME: Final = re.compile(r"([0-9]{13,15})-([A-Za-z0-9_-]{1,120})", re.ASCII)
"""Milliseconds of this century, so that no id of today's form is taken for an entry."""


@frozen
class Entry:
    """One deleted session. at: when, ms since 1970 UTC; id: what it was called."""

    at: int
    id: str

    @property
    def name(self) -> str:
        return f"{self.at}-{self.id}"

    @classmethod
    def of(cls, name: str) -> Entry | None:
        """None for what is no name of an entry."""
        match = _NAME.fullmatch(name)
        return None if match is None else cls(int(match[1]), match[2])

    def folder(self, root: Path) -> Path:
        return root / TRASH / self.name


def entries(root: Path) -> list[Entry]:
    """The deleted sessions, the latest first. A trash that is a link counts as empty."""
    trash = root / TRASH
    try:
        names = [] if trash.is_symlink() else os.listdir(trash)
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = [entry for name in names if (entry := Entry.of(name)) is not None and is_session(root, entry)]
    return sorted(found, key=lambda entry: (-entry.at, entry.id))


def is_session(root: Path, entry: Entry) -> bool:
    """Whether it is there and a session, not a folder of another noun that is called like one."""
    folder = entry.folder(root)
    return folder.is_symlink() or any(os.path.lexists(folder / f"session.jsonl{end}") for end in ("", ".tmp"))


def latest(root: Path, id: str) -> Entry | None:
    """The last deletion of the session *id*."""
    return next((entry for entry in entries(root) if entry.id == id), None)


def ids(root: Path) -> set[str]:
    """What sessions in the trash were called; perhaps some more. Opens nothing."""
    try:
        names = os.listdir(root / TRASH)
    except OSError:
        return set()
    return {entry.id for name in names if (entry := Entry.of(name)) is not None}


def free(root: Path, at: int, id: str) -> Entry:
    """The entry for a session deleted at *at*."""
    while os.path.lexists((entry := Entry(at, id)).folder(root)):
        at += 1
    return entry


def ready(root: Path) -> None:
    """Make the trash, if there is none. Raises: Forbidden (it is a link), OSError."""
    confine.check_writable(root, root / TRASH / "x")
    files.make_folders(root / TRASH, root)


def give_back(entry: Entry, root: Path, folder: Path) -> None:
    """The session's folder is at *folder* again, with its transcript flushed, whoever wrote that.

    Raises: ForeignWrite (that name is taken, or the entry is gone), OSError, DirectoryNotFlushed (it is there).
    """
    confine.check_writable(root, root / TRASH / "x")
    files.make_folders(folder.parent, root)
    source = entry.folder(root)
    try:
        fd = disk.open_read(locate(source / "session.jsonl"))
        try:
            disk.flush_full(fd)
        finally:
            disk.close(fd)
        disk.move_folder(source, folder)
    except (FileExistsError, FileNotFoundError):
        raise ForeignWrite(folder) from None
    atomic.flush_names(folder, source)


def take_out(root: Path, them: Iterable[Entry]) -> list[Path]:
    """All of *them* leave the trash for good, or none; the folders under hidden names, to be removed by the caller.

    Should that not happen, the next start removes them. Raises: ForeignWrite (one is gone), OSError.
    """
    confine.check_writable(root, root / TRASH / "x")
    moved: list[tuple[Path, Path]] = []
    try:
        for entry in them:
            folder = entry.folder(root)
            hidden = atomic.temporary_beside(folder)
            try:
                disk.move_folder(folder, hidden)
            except FileNotFoundError:
                raise ForeignWrite(folder) from None
            moved.append((folder, hidden))
        if moved:
            disk.flush_directory(root / TRASH)
    except BaseException:
        for folder, hidden in reversed(moved):
            try:
                disk.move_folder(hidden, folder)
            except OSError:
                pass  # the first failure counts
        raise
    return [hidden for _, hidden in moved]
