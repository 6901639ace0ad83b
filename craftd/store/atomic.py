"""Replace one file so that a reader sees the old bytes or the new, never a mix, and no foreign edit is overwritten.

Somebody else may write the same file at any time. So a replacement says which file it means to replace (a
`Fingerprint`), swaps the two names in one step where the system can, and then looks at what it displaced. What is not
the expected file goes back to its place, and the caller hears of it: `ForeignWrite`.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, Literal

from attrs import define, field, frozen

from craftd.store import disk

SETTLED_MS: Final = 100
"""A file that was not written for so long is as its writer wants it."""

READ_ATTEMPTS: Final = 20
"""How often a file that changes while it is read is read again before the reader is told."""


_TEMPORARY: Final = re.compile(r"\..+\.([0-9]+-[0-9a-f]{4})[0-9a-f]{4}\.tmp", re.DOTALL)

_LIFE: Final = token_hex(2)
"""Tells this process from an earlier one with the same process id: in a container they are all alike."""


class Expectation(Enum):
    ANY = "any"


ANY: Final = Expectation.ANY
"""Replace whatever is there, or nothing."""


@frozen
class Fingerprint:
    """What tells a file from every other and from itself before a change; mtime_ns: nanoseconds since 1970 UTC.

    Two files of equal size written within one tick of the file system's clock to the same inode look alike.
    links (names of the file) does not enter comparison: making a hard link changes no content.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    links: int = field(default=1, eq=False)


@define
class ForeignWrite(Exception):
    """Somebody else wrote *path* since the caller read it; theirs is in place. Read, merge, write again."""

    path: Path

    def __str__(self) -> str:
        return f"{self.path} was written by somebody else"


@frozen
class Copy:
    """Content that lies in another file: its first *size* bytes."""

    fd: int
    size: int


class DirectoryNotFlushed(OSError):
    """The new bytes are in place under their name, but a power loss may still bring the old ones back.

    folders: what is to be flushed again. result: what the function would have answered.
    """

    folders: tuple[Path, ...] = ()
    result: Any = None


def of_stat(st: os.stat_result) -> Fingerprint:
    return Fingerprint(st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_nlink)


def fingerprint(path: Path | str) -> Fingerprint | None:
    """Fingerprint of the file *path* leads to, None where there is none."""
    try:
        return of_stat(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def is_fresh(known: Fingerprint) -> bool:
    """Whether the file was written in this moment: who does so may not have finished."""
    return abs(time.time_ns() - known.mtime_ns) < SETTLED_MS * 1_000_000


def glance(path: Path | str) -> Fingerprint | None:
    """Like `fingerprint`, and None too where there is something that cannot be looked at."""
    try:
        return fingerprint(path)
    except OSError:
        return None


def read(path: Path) -> tuple[bytes, Fingerprint]:
    """Content of *path* and the fingerprint that belongs to exactly these bytes.

    Raises: OSError; ForeignWrite if the file changed under every one of the attempts.
    """
    fd = disk.open_read(path)
    try:
        for _ in range(READ_ATTEMPTS):
            before = of_stat(os.fstat(fd))
            data = _read_all(fd, before.size)
            if of_stat(os.fstat(fd)) == before and len(data) == before.size:
                return data, before
    finally:
        disk.close(fd)
    raise ForeignWrite(path)


def replace(
    path: Path, data: bytes, *, expect: Fingerprint | Literal[Expectation.ANY] | None = ANY, mode: int | None = None
) -> Fingerprint:
    """Make *data* the content of *path*, durably, and return the new fingerprint.

    A link is written at its target. An existing file keeps mode and owner; *mode* is for a new one (None: see
    `disk.create`). *expect*: the file that may be replaced; None = there must be none; ANY = no matter.

    Raises: ForeignWrite if something else is there, now in place and untouched. OSError up to the swap: the old bytes
    stay. DirectoryNotFlushed: the new bytes are there, but not yet safe.
    """
    staged = stage(path, data, mode=mode)
    staged.swap(expect)
    try:
        flush_names(staged.target)
    except DirectoryNotFlushed as error:
        error.result = staged.new
        raise
    return staged.new


@frozen
class Staged:
    """New content for *path*, complete beside it. target: what the path leads to. new: fingerprint of the new file."""

    path: Path
    target: Path
    temporary: Path
    new: Fingerprint

    def swap(self, expect: Fingerprint | Literal[Expectation.ANY] | None) -> None:
        """Give it its name; see `replace`. Nothing is left beside, whatever happens. The folder is not flushed."""
        try:
            if expect is not ANY and fingerprint(self.target) != expect:
                raise ForeignWrite(self.path)
            if expect is ANY:
                disk.rename(self.temporary, self.target)
            elif expect is None:
                _take_name(self.temporary, self.target)
        except BaseException:
            self.discard()
            raise
        if isinstance(expect, Fingerprint):
            swap_in(self.temporary, self.target, expect, self.new)

    def discard(self) -> None:
        discard(self.temporary)


def stage(path: Path, data: bytes, *, mode: int | None = None) -> Staged:
    """The long part of `replace`: write and flush beside. For `Staged.swap` or `discard`. Raises: OSError."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    temporary = temporary_beside(target)
    return Staged(path, target, temporary, write_new(temporary, data, mode=mode, like=_stat(target)))


def write_new(path: Path, data: bytes | Copy, *, mode: int | None, like: os.stat_result | None) -> Fingerprint:
    """A new file, flushed but for its name, with mode and owner of the file *like*. OSError: nothing is left."""
    fd = disk.create(path, mode)
    try:
        try:
            if isinstance(data, Copy):
                disk.copy_range(data.fd, fd, 0, data.size)
            else:
                disk.write(fd, data)
            if like is not None:
                disk.keep_mode_and_owner(fd, like)
            disk.flush_full(fd)
            return of_stat(os.fstat(fd))
        finally:
            disk.close(fd)
    except BaseException:
        discard(path)
        raise


def swap_in(temporary: Path, target: Path, expect: Fingerprint, new: Fingerprint) -> None:
    """Give the file *temporary* (whose fingerprint is *new*) the name *target*, held by *expect*.

    Nothing is left at *temporary*, whatever happens. The folder is not flushed yet.
    Raises: ForeignWrite with the foreign file at *target*; OSError with the old one there. Where names cannot be
    exchanged, a file written between the look and the rename is lost: the only such window. Should the disk refuse
    to put a foreign file back, that file stays at *temporary*.
    """
    try:
        exchanged = disk.exchange(temporary, target)
        if not exchanged:
            if fingerprint(target) != expect:
                raise ForeignWrite(target)
            disk.rename(temporary, target)
            return
    except FileNotFoundError:
        discard(temporary)
        raise ForeignWrite(target) from None
    except BaseException:
        discard(temporary)
        raise
    if fingerprint(temporary) != expect:
        _put_back(temporary, target, new)
        discard(temporary)
        raise ForeignWrite(target)
    # An old file that cannot be removed is litter, not a failure of the replacement.
    discard(temporary)


def _put_back(temporary: Path, target: Path, ours: Fingerprint) -> None:
    """The foreign file at *temporary* returns to its name, unless a newer one has taken it meanwhile."""
    try:
        disk.exchange(temporary, target)
    except FileNotFoundError:
        # Somebody removed our file in this moment; the foreign one must not vanish with it.
        disk.rename_new(temporary, target)
        return
    if (displaced := fingerprint(temporary)) is not None and displaced.inode != ours.inode:
        disk.exchange(temporary, target)


def _take_name(temporary: Path, target: Path) -> None:
    try:
        disk.rename_new(temporary, target)
    except FileExistsError:
        raise ForeignWrite(target) from None


def flush_names(*paths: Path) -> None:
    """Make durable what *paths* are called now, or that they are not there. Raises: DirectoryNotFlushed."""
    failed: dict[Path, OSError] = {}
    for folder in dict.fromkeys(path.parent for path in paths):
        try:
            disk.flush_directory(folder)
        except OSError as error:
            failed[folder] = error
    for folder, first in failed.items():
        unsafe = DirectoryNotFlushed(first.errno, first.strerror, str(folder))
        unsafe.folders = tuple(failed)
        raise unsafe from first


def make_safe(root: Path, paths: Iterable[Path]) -> None:
    """Flush what is there under these names below *root*, and that others are not, whoever did it.

    Somebody is about to be told that it is stored.  Raises: OSError.
    """
    folders: dict[Path, None] = {}
    for path in paths:
        try:
            fd = disk.open_read(path)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            pass
        else:
            try:
                disk.flush_full(fd)
            finally:
                disk.close(fd)
        above = [folder for folder in path.parents if folder == root or root in folder.parents]
        folders |= dict.fromkeys(above)
    for folder in folders:
        if folder.is_dir():
            disk.flush_directory(folder)


def temporary_beside(path: Path) -> Path:
    """An unused hidden name in the same folder: ours alone, and invisible to the app."""
    return path.with_name(f".{path.name}.{os.getpid()}-{_LIFE}{token_hex(2)}.tmp")


def discard(path: Path) -> None:
    """Remove a temporary file or staged folder as far as the disk allows; an error here must not hide the first one."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            disk.remove_tree(path)
        else:
            disk.remove(path)
    except OSError:
        pass


def leftovers(folder: Path) -> list[Path]:
    """What other processes began in *folder* and never finished: true only for the one writer of that folder, who
    alone may `discard` it. Nothing where the folder is a link or cannot be read.
    """
    try:
        if folder.is_symlink():
            return []
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return []
    ours = f"{os.getpid()}-{_LIFE}"
    return [folder / name for name in names if (match := _TEMPORARY.fullmatch(name)) is not None and match[1] != ours]


Content = bytes | Callable[[], Iterable[bytes] | None]
"""What a new file is to hold; a function gives it in pieces, for what is too large to be held, or None: no file."""


def create_folder(path: Path, files: Mapping[str, Content], folders: tuple[str, ...] = ()) -> None:
    """Make the folder *path* with *files* (name -> content) and *folders*, all of it or nothing, durably.

    A file may lie in a folder, named or not. It is built beside under a dot name and then moved in, so nobody ever
    sees half of it.
    Raises: FileExistsError if the name is taken. OSError: nothing is there. DirectoryNotFlushed: it is there, but not
    yet safe.
    """
    put_folder(stage_folder(path, files, folders), path)


def replace_folder(path: Path, files: Mapping[str, Content], kept: Path) -> None:
    """`create_folder` in the place of the folder *path*, which is called *kept* from then on; see `put_folder`."""
    put_folder(stage_folder(path, files), path, kept)


def put_folder(staged: Path, path: Path, kept: Path | None = None, *, again: bool = False) -> None:
    """Give the folder *staged* its name; a folder that has it is called *kept* from then on (None: there is none).

    Where the system can exchange names, one of the two is at *path* at every moment. again: what is staged stays there
    if it fails, for another try; else nothing is left.
    Raises: FileExistsError; ForeignWrite if the folder at *path* went meanwhile. OSError: what was there is there.
    DirectoryNotFlushed: it is there, but not yet safe.
    """
    try:
        exchanged = kept is not None and disk.exchange(staged, path)
        if kept is not None and not exchanged:
            disk.move_folder(path, kept)
    except BaseException as error:
        _give_up(staged, again)
        if isinstance(error, FileNotFoundError):
            raise ForeignWrite(path) from None
        raise
    try:
        disk.move_folder(staged, kept if kept is not None and exchanged else path)
    except BaseException:
        # Should the disk refuse this too, nothing of either is removed.
        if exchanged:
            disk.exchange(staged, path)
        elif kept is not None:
            disk.move_folder(kept, path)
        _give_up(staged, again)
        raise
    flush_names(path, *(() if kept is None else (kept,)))


def _give_up(staged: Path, again: bool) -> None:
    if not again:
        discard(staged)


def stage_folder(path: Path, files: Mapping[str, Content], folders: tuple[str, ...] = ()) -> Path:
    """A folder beside *path*, complete and flushed but for its name, for `put_folder`. OSError: nothing is left."""
    staged = temporary_beside(path)
    made = {staged: None}
    disk.make_directory(staged)
    try:
        for folder in (*(staged / name for name in folders), *((staged / name).parent for name in files)):
            for one in reversed((folder, *folder.parents)):
                if staged in one.parents and one not in made:
                    disk.make_directory(one)
                    made[one] = None
        for name, content in files.items():
            pieces = (content,) if isinstance(content, bytes) else content()
            if pieces is None:
                continue
            fd = disk.create(staged / name)
            try:
                for data in pieces:
                    disk.write(fd, data)
                disk.flush_full(fd)
            finally:
                disk.close(fd)
        full = {one.parent for one in (*made, *(staged / name for name in files))} | {staged}
        for folder in reversed(made):
            if folder in full:
                disk.flush_directory(folder)
    except BaseException:
        discard(staged)
        raise
    return staged


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _read_all(fd: int, size: int) -> bytes:
    """*size* bytes and, as a sign of growth, one more if there is one."""
    pieces: list[bytes] = []
    wanted = size + 1
    while wanted and (piece := os.pread(fd, min(wanted, 1 << 24), size + 1 - wanted)):
        pieces.append(piece)
        wanted -= len(piece)
    return b"".join(pieces)
