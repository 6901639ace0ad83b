"""Paths below a root, made from names that clients sent or files hold: nothing outside is read, written or deleted.

Links that a person put into a workspace are followed where design and harm allow it: a link to a file is read and
written at its target, if that lies in an allowed root; a linked folder is read on the same condition, never written,
and deleted as a link. Hard links cannot be told from files.

`roots`, wherever it appears: further folders in which a target may lie, such as another open workspace, or the real
place of a skill folder that a person linked into this one.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from craftd.errors import Forbidden

LONGEST_NAME = 255
"""Bytes of one name that every file system in use takes."""


def check_name(name: str) -> str:
    """*name*, if it is the name of one file or folder and nothing else.

    Only what is dangerous in a path is refused here; each noun has its own stricter pattern.
    Raises: Forbidden.
    """
    if name in ("", ".", ".."):
        raise Forbidden(f"{name!r} is no file name", path=name)
    if any(character in name for character in "/\\\0"):
        raise Forbidden("a file name holds no slash, backslash or NUL", path=name)
    try:
        size = len(os.fsencode(name))
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can carry and a file system cannot
        raise Forbidden("not a file name", path=ascii(name)) from None
    if size > LONGEST_NAME:
        raise Forbidden(f"a file name has at most {LONGEST_NAME} bytes", path=name)
    return name


def below(root: Path, *names: str) -> Path:
    """The path of *names*, each one folder or file, below *root*. Looks at no disk. Raises: Forbidden."""
    return root.joinpath(*map(check_name, names))


def below_relative(root: Path, relative: str) -> Path:
    """The same for a relative POSIX path, "a/b". Raises: Forbidden, also for "a//b", "./a", "/a" and ""."""
    return below(root, *relative.split("/"))


def first_link(root: Path, path: Path) -> Path | None:
    """The first of the names between *root* and *path*, itself included, that is a link; *root* may be one.

    Raises: Forbidden if *path* is not below *root*.
    """
    current = root
    for name in _names_below(root, path):
        current = current / name
        if current.is_symlink():
            return current
    return None


def readable(root: Path, path: Path, roots: Iterable[Path] = ()) -> Path:
    """The real path of *path*, all links followed, if it lies in *root* or *roots*.

    Raises: Forbidden, FileNotFoundError (also for a link whose target is missing), OSError.
    """
    return _resolve(root, path, roots)[0]


def writable(root: Path, path: Path, roots: Iterable[Path] = ()) -> Path:
    """Where to write so that *path*, which need not exist, gets new content: itself, or the target of a linked file.

    Guards against links that are there, not against a program that swaps a folder for a link in the same moment.
    Raises: Forbidden if a folder on the way is a link, or a linked file's target is a folder or in no allowed root.
    """
    link = first_link(root, path)
    if link is None:
        return path
    if link != path:
        raise Forbidden("nothing is written in a linked folder", path=_shown(root, link))
    target = Path(os.path.realpath(path))
    if not any(_lies_in(target, base) for base in _real([root, *roots])):
        raise Forbidden("the linked file lies outside the allowed folders", path=_shown(root, path))
    if target.is_symlink() or target.is_dir():  # still a link: it leads back to itself
        raise Forbidden("the link leads to no file", path=_shown(root, path))
    return target


def removable(root: Path, path: Path) -> Path:
    """*path*, if it may be removed by that name. If it is a link, remove the link and leave the target alone.

    Raises: Forbidden if it lies in a linked folder, is *root* or not below it.
    """
    if not _names_below(root, path):
        raise Forbidden("the folder itself is not removed", path="")
    link = first_link(root, path)
    if link is not None and link != path:
        raise Forbidden("nothing is removed in a linked folder", path=_shown(root, link))
    return path


def open_file(root: Path, path: Path, roots: Iterable[Path] = ()) -> int:
    """Handle for reading on the file that `readable` allows. No swap of names in between leads outside.

    Raises: Forbidden, also for what is no regular file (a pipe would hold us up, a device never end);
    FileNotFoundError, OSError.
    """
    real, base = _resolve(root, path, roots)
    *folders, name = real.relative_to(base).parts or (".",)
    refused = Forbidden("not a file", path=_shown(root, path))
    folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folders:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        # ENOTDIR, ELOOP: a link where none was a moment ago. ENXIO: a socket.
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise refused from None
        raise
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise refused
    return fd


def _resolve(root: Path, path: Path, roots: Iterable[Path]) -> tuple[Path, Path]:
    """Real path and the real allowed root in which it lies."""
    _names_below(root, path)
    try:
        real = Path(os.path.realpath(path, strict=True))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Forbidden("the link leads back to itself", path=_shown(root, path)) from None
        raise
    for base in _real([root, *roots]):
        if _lies_in(real, base):
            return real, base
    raise Forbidden("the link leads outside the allowed folders", path=_shown(root, path))


def _names_below(root: Path, path: Path) -> tuple[str, ...]:
    try:
        names = path.relative_to(root).parts
    except ValueError:
        raise Forbidden("the path leads outside its folder") from None
    if ".." in names:
        raise Forbidden("the path leads outside its folder")
    return names


def _lies_in(path: Path, base: Path) -> bool:
    return path == base or base in path.parents


def _real(folders: Iterable[Path]) -> list[Path]:
    return [Path(os.path.realpath(folder)) for folder in folders]


def _shown(root: Path, path: Path) -> str:
    """What an error may say about *path*: where it is in *root*, not where *root* is."""
    return path.relative_to(root).as_posix()
