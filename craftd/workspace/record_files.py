"""Files in the folder of a record that are served as records of their own: texts, and what lies in one folder.

They are read from the disk when somebody asks, and written by the commits of files; who follows files hears of them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

from attrs import define, field, frozen

from craftd.errors import IoError, NotFound, TooLarge, VersionConflict
from craftd.model.files import is_hidden
from craftd.model.records import Item
from craftd.store import atomic
from craftd.store.atomic import ForeignWrite
from craftd.store.confine import Spot
from craftd.workspace import browse
from craftd.workspace.commit import Done, Planned
from craftd.workspace.files import FileUnit, Given, Ground, WriteFile, Written, version_of
from craftd.workspace.index import Index
from craftd.workspace.rows import PlainRow

TEXT_BYTES: Final = 1 << 20
"""Of a text that is read or changed whole."""


@frozen
class Text:
    """version "": there is no file. What is no UTF-8 stands as lone surrogates."""

    raw: str
    version: str

    @property
    def shown(self) -> str:
        return _shown(self.raw)


def _shown(raw: str) -> str:
    return raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read_text(ground: Ground, parts: tuple[str, ...]) -> Text:
    """In a pool thread. Raises: TooLarge, Forbidden, NotFound (the folder has gone)."""
    with ground.found(parts) as spot:
        return _text(spot)


def read_found(ground: Ground, parts: tuple[str, ...]) -> tuple[Found, Text] | None:
    """A regular file with its text, None where there is none. In a pool thread. Raises: TooLarge, Forbidden."""
    with ground.found(parts, follow=False) as spot:
        if not _is_regular(spot.status):
            return None
        data, status = browse.whole(spot, spot.shown, TEXT_BYTES)
    found = _found(parts[-1], status)
    return found, Text(data.decode("utf-8", "surrogateescape"), found.version)


def read_head(ground: Ground, parts: tuple[str, ...], length: int) -> str:
    """The first *length* bytes of a file. In a pool thread. Raises: NotFound, Forbidden."""
    with ground.found(parts, follow=False) as spot:
        fd = browse.opened(spot, spot.shown)
    try:
        return os.pread(fd, length, 0).decode("utf-8", "replace")
    finally:
        os.close(fd)


def _text(spot: Spot) -> Text:
    if spot.status is None:
        return Text("", "")
    data, status = browse.whole(spot, spot.shown, TEXT_BYTES)
    return Text(data.decode("utf-8", "surrogateescape"), version_of(atomic.of_stat(status)))


@frozen
class Edited:
    """What a text is after a change. text: as it is shown."""

    written: Written
    text: str
    changed: bool


@define(eq=False, kw_only=True)
class EditText(WriteFile):
    """Give a file the text that follows from what is there when its turn comes. Answers Edited.

    what: how the text is called where it is too long. existing: the file has to be there.
    """

    source: Given = field(factory=partial(Given, b""))
    edit: Callable[[str], str]
    what: str
    existing: bool = False

    def plan(self, unit: FileUnit, now: int) -> Planned:
        with unit.ground.found(self.parts, follow=not self.existing) as spot:
            if self.existing and not _is_regular(spot.status):
                raise NotFound(self.ref)
            self._expect(spot)
            there, status = _text(spot), spot.status
        new = self.edit(there.raw)
        data = new.encode("utf-8", "surrogateescape")
        if len(data) > TEXT_BYTES:
            raise TooLarge(self.what, TEXT_BYTES, len(data))
        if status is not None and new == there.raw:
            known = Written(there.version, len(data), status.st_mtime_ns // 1_000_000)
            return Planned(Edited(known, there.shown, changed=False))
        self.source = Given(data)
        asked, self.expected = self.expected, there.version
        try:
            planned = super().plan(unit, now)
        except VersionConflict:
            raise ForeignWrite(unit.ground.root / self.path) from None  # saved since it was read
        finally:
            self.expected = asked
        return Planned(Edited(planned.answer, _shown(new), changed=True), planned.changes)


async def begun(step: Awaitable[Done]) -> Done:
    """A step before the one that is the change: where the disk refuses it, the change is not written yet."""
    try:
        return await step
    except IoError as error:
        error.written = False
        raise


# What lies in one folder


@frozen
class Found:
    """A regular file. modified_at: ms since 1970 UTC."""

    name: str
    size: int
    modified_at: int
    version: str


def found_in(ground: Ground, folder: tuple[str, ...]) -> list[Found]:
    """Regular files in a folder, the newest first; hidden ones are none. In a pool thread. Raises: Forbidden."""
    found = []
    try:
        with ground.found(folder) as spot:
            if spot.status is None or not stat.S_ISDIR(spot.status.st_mode):
                return []
            handle = spot.open_folder()
            try:
                for name in os.listdir(handle):
                    status = None if is_hidden(name) else _status(name, handle)
                    if status is not None and _is_regular(status):
                        found.append(_found(name, status))
            finally:
                os.close(handle)
    except NotFound:
        return []
    return sorted(found, key=lambda file: (-file.modified_at, file.name))


def written(name: str, what: Written) -> Found:
    """The file *name* as it was written, whatever became of it since."""
    return Found(name, what.size, what.modified_at, what.version)


def _found(name: str, status: os.stat_result) -> Found:
    return Found(name, status.st_size, status.st_mtime_ns // 1_000_000, version_of(atomic.of_stat(status)))


def _is_regular(status: os.stat_result | None) -> bool:
    return status is not None and stat.S_ISREG(status.st_mode)


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def index_of(items: Iterable[Item], epoch: str, fields: frozenset[str]) -> Index:
    """*items* to be asked for pages, the newest first. fields: what a filter may name."""
    index = Index(epoch, "-modifiedAt", fields=fields)
    index.fill(PlainRow(item.id, item.id, item.value, item.version, item.info, None) for item in items)
    return index
