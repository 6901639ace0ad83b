"""The files of a folder as they go into a bundle: what is hidden, a link or no file stays where it is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from craftd.errors import TooLarge
from craftd.model import bundles
from craftd.store import atomic


def gather(folder: Path, room: int) -> tuple[dict[str, bytes], list[str]]:
    """Content by path, in the app's order, and the paths that no bundle can hold. room: bytes there may be.

    Raises: OSError, ForeignWrite (a file that somebody keeps writing), TooLarge.
    """
    found: dict[str, bytes] = {}
    unfit: list[str] = []
    for path in sorted(_walk(folder, ""), key=lambda path: (path.casefold(), path)):
        if bundles.wrong_path(path) is not None:
            unfit.append(path)
            continue
        room -= os.stat(folder / path).st_size
        if room < 0 or len(found) >= bundles.MOST_FILES:
            raise TooLarge("a bundle", bundles.LARGEST)
        found[path] = atomic.read(folder / path)[0]
    return found, unfit


def holds(folder: Path, contents: Mapping[str, bytes]) -> bool:
    """Whether *folder* has exactly these files, by path, and nothing else: no link, no hidden file, no empty folder."""
    found: set[str] = set()
    try:
        for above, folders, files in os.walk(folder, followlinks=False):
            inside = os.path.relpath(above, folder)
            paths = {os.path.normpath(os.path.join(inside, name)) for name in files}
            linked = any(os.path.islink(os.path.join(above, name)) for name in folders)
            if linked or not (folders or files) or not paths <= contents.keys():
                return False
            found |= paths
        return found == contents.keys() and all(_is(folder / path, data) for path, data in contents.items())
    except OSError:
        return False


def _is(path: Path, data: bytes) -> bool:
    status = os.lstat(path)
    return stat.S_ISREG(status.st_mode) and status.st_size == len(data) and path.read_bytes() == data


def _walk(folder: Path, above: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        inside = list(entries)
    for entry in inside:
        if entry.name.startswith("."):
            continue
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode) and above.count("/") < bundles.DEEPEST_PATH:
            yield from _walk(folder / entry.name, f"{above}{entry.name}/")
        elif stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):  # a folder so deep is told as one path
            yield f"{above}{entry.name}"
