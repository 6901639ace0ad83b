"""Files for readers: what a folder holds, a range of one file. In pool threads; nothing is kept."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from attrs import frozen

from craftd.errors import Busy, Forbidden, InvalidParams, InvalidState, NotFound, Ref, TooLarge
from craftd.model.files import check_open, is_hidden
from craftd.store import atomic, layout
from craftd.store.confine import Spot
from craftd.workspace.files import Ground, version_of
from craftd.workspace.index import Index, Page
from craftd.workspace.rows import PlainRow

READ_MOST: Final = 1 << 20
"""Bytes of one answer."""

_FIELDS: Final = frozenset({"name", "kind", "size", "modifiedAt", "link", "noun"})
_CHARACTER: Final = 4
"""Bytes of the longest character in UTF-8."""


@frozen(kw_only=True)
class Piece:
    """A range of a file. length: how many bytes *data* stands for."""

    data: str
    offset: int
    length: int
    size: int
    eof: bool
    version: str


def read(
    ground: Ground,
    parts: tuple[str, ...],
    *,
    offset: int = 0,
    length: int | None = None,
    binary: bool = False,
    if_version: str | None = None,
) -> Piece | str:
    """The range, or the version alone when it is *if_version*.

    Raises: NotFound, Forbidden, InvalidState (a folder), InvalidParams (range; no UTF-8), Busy (it keeps changing).
    """
    wanted = READ_MOST if length is None else min(length, READ_MOST)
    if offset < 0:
        raise InvalidParams.of("offset", "must not be negative")
    if wanted < 1:
        raise InvalidParams.of("length", "must be at least 1")
    path = "/".join(parts)
    with ground.found(parts) as spot:
        fd = opened(spot, path)
    try:
        for _ in range(atomic.READ_ATTEMPTS):
            before = atomic.of_stat(os.fstat(fd))
            version = version_of(before)
            if version == if_version:
                return version
            piece = _bytes(fd, offset, wanted, before.size) if binary else _text(fd, offset, wanted, before.size)
            if atomic.of_stat(os.fstat(fd)) == before:
                data, took = piece
                end = min(offset, before.size) + took
                return Piece(
                    data=data, offset=offset, length=took, size=before.size, eof=end >= before.size, version=version
                )
    finally:
        os.close(fd)
    raise Busy(f"{path} is being written by another program", 200)


def whole(spot: Spot, path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """A file with what was known of it when it was read.

    Raises: NotFound, Forbidden, InvalidState (a folder), TooLarge (more than *limit* bytes), Busy (it keeps changing).
    """
    fd = opened(spot, path)
    try:
        for _ in range(atomic.READ_ATTEMPTS):
            before = os.fstat(fd)
            if before.st_size > limit:
                raise TooLarge(path, limit, before.st_size)
            data = _pread(fd, before.st_size, 0)
            if atomic.of_stat(os.fstat(fd)) == atomic.of_stat(before):
                return data, before
    finally:
        os.close(fd)
    raise Busy(f"{path} is being written by another program", 200)


@frozen
class LocalFile:
    """Content that lies in a file of a workspace. limit: bytes it may have."""

    ground: Ground
    parts: tuple[str, ...]
    limit: int
    heavy = True

    @contextmanager
    def opened(self) -> Iterator[atomic.Copy]:
        """In a thread. Raises: NotFound, Forbidden, InvalidState, TooLarge."""
        with self.ground.found(self.parts) as spot:
            fd = opened(spot, "/".join(self.parts))
        try:
            size = os.fstat(fd).st_size
            if size > self.limit:
                raise TooLarge("/".join(self.parts), self.limit, size)
            yield atomic.Copy(fd, size)
        finally:
            os.close(fd)


def opened(spot: Spot, path: str) -> int:
    """Handle on a regular file, for reading. Raises: NotFound, Forbidden, InvalidState (a folder)."""
    if spot.status is None:
        raise NotFound(Ref("files", path))
    if stat.S_ISDIR(spot.status.st_mode):
        raise InvalidState(f"{path or 'this'} is a folder", "folder", ("files/list",), Ref("files", path))
    if not stat.S_ISREG(spot.status.st_mode):
        raise Forbidden(f"{path} is no regular file", path=path)
    try:
        return spot.open_file()
    except FileNotFoundError:
        raise NotFound(Ref("files", path)) from None
    except PermissionError:
        raise Forbidden(f"{path} may not be opened by this user", path=path) from None


def _bytes(fd: int, offset: int, length: int, size: int) -> tuple[str, int]:
    data = _pread(fd, min(length, max(0, size - offset)), offset)
    return base64.b64encode(data).decode(), len(data)


def _text(fd: int, offset: int, length: int, size: int) -> tuple[str, int]:
    """Whole characters from *offset* on, at least one; as many as fit. Raises: InvalidParams."""
    start = max(0, offset - _CHARACTER + 1)
    stop = min(size, offset + max(length, _CHARACTER))
    data = _pread(fd, max(0, stop - start), start)
    before, after = data[: offset - start], data[offset - start :]
    if after and _is_inside(before, after[:1]):
        raise InvalidParams.of("offset", "lies inside a character")
    if length < len(after):
        cut = length
        while cut > 0 and _continues(after[cut]):
            cut -= 1
        # Of a character longer than *length*, all of it.
        after = after[: cut or _first_length(after)]
    elif stop < size:
        after = after[: _whole(after)]
    try:
        return after.decode("utf-8"), len(after)
    except UnicodeDecodeError as error:
        where = offset + error.start
        raise InvalidParams.of("encoding", f"byte {where} is no UTF-8: read this file as base64") from None


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80


def _is_inside(before: bytes, first: bytes) -> bool:
    """Whether a character that begins in *before* goes on with *first*."""
    for back in range(1, min(len(before), _CHARACTER - 1) + 1):
        lead = before[-back]
        if not _continues(lead):
            return _continues(first[0]) and _length(lead) > back
    return False


def _length(lead: int) -> int:
    """Bytes of the character that begins with *lead*; 1 for what begins none."""
    return 2 if 0xC2 <= lead < 0xE0 else 3 if 0xE0 <= lead < 0xF0 else 4 if 0xF0 <= lead < 0xF5 else 1


def _first_length(data: bytes) -> int:
    return min(len(data), _length(data[0]))


def _whole(data: bytes) -> int:
    """Length without the beginning of a character at the end."""
    for back in range(1, min(len(data), _CHARACTER - 1) + 1):
        lead = data[-back]
        if not _continues(lead):
            return len(data) - back if _length(lead) > back else len(data)
    return len(data)


def _pread(fd: int, length: int, offset: int) -> bytes:
    pieces = []
    while length > 0 and (piece := os.pread(fd, length, offset)):
        pieces.append(piece)
        length -= len(piece)
        offset += len(piece)
    return b"".join(pieces)


def page(
    ground: Ground,
    parts: tuple[str, ...],
    epoch: str,
    *,
    filter: dict[str, Any] | None,
    sort: str | None,
    fields: tuple[str, ...] | None,
    limit: int | None,
    cursor: str | None,
) -> Page:
    """What a folder holds, but for what is hidden.  Raises: NotFound, Forbidden, InvalidState, InvalidParams."""
    index = Index(epoch, "name", fields=_FIELDS)
    index.page(filter, sort, fields, limit, cursor)  # says what is wrong before the folder is read
    path = "/".join(parts)
    with ground.found(parts) as spot:
        if spot.status is None:
            raise NotFound(Ref("files", path))
        if not stat.S_ISDIR(spot.status.st_mode):
            raise InvalidState(f"{path} is no folder", "file", ("files/read",), Ref("files", path))
        index.fill(_entries(ground, spot, parts))
    return index.page(filter, sort, fields, limit, cursor)


def _entries(ground: Ground, spot: Spot, parts: tuple[str, ...]) -> list[PlainRow]:
    return [row(ground, (*parts, name), status) for name, status in visible(ground, spot)]


def visible(ground: Ground, spot: Spot) -> Iterator[tuple[str, os.stat_result]]:
    """Names in a folder that are served, links as links. Raises: OSError."""
    handle = spot.open_folder()
    try:
        for name in os.listdir(handle):
            if is_hidden(name):
                continue
            try:
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            except FileNotFoundError:
                continue
            if (status.st_dev, status.st_ino) not in ground.shut:
                yield name, status
    finally:
        os.close(handle)


def row(ground: Ground, parts: tuple[str, ...], status: os.stat_result) -> PlainRow:
    """How a file is listed. status: not of what a link leads to."""
    value: dict[str, Any] = {"name": parts[-1]}
    if stat.S_ISLNK(status.st_mode):
        value["link"] = True
        status = _target(ground, parts) or status
    value["kind"] = _kind(status.st_mode)
    if value["kind"] == "file":
        value["size"] = status.st_size
    value["modifiedAt"] = status.st_mtime_ns // 1_000_000
    noun = layout.noun_of(parts)
    if noun is not None and value["kind"] == "file":
        value["noun"] = noun
    path = "/".join(parts)
    return PlainRow(path, path, value, version_of(atomic.of_stat(status)), {}, None)


def _target(ground: Ground, parts: tuple[str, ...]) -> os.stat_result | None:
    """What a link leads to, if it is served."""
    try:
        with ground.found(parts) as spot:
            check_open(spot.parts)
            return spot.status
    except (Forbidden, NotFound, OSError):
        return None


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"
