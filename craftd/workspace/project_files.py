"""MEMORY.md and the uploads of a project: files like others, with rules of their own about names and content.

They are read from the disk when somebody asks, and written by the commits of files; who follows files hears of them.
"""

from __future__ import annotations

import os
import stat
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from craftd.errors import NotFound, Ref, TooLarge
from craftd.model import memory
from craftd.model.files import is_hidden
from craftd.model.project_context import Asset
from craftd.model.records import Item
from craftd.store import atomic
from craftd.store.confine import Spot
from craftd.workspace import browse
from craftd.workspace.commit import Planned
from craftd.workspace.files import FileUnit, Given, Ground, WriteFile, Written, version_of
from craftd.workspace.index import Index, Page
from craftd.workspace.rows import PlainRow

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace

MEMORY: Final = "MEMORY.md"
ASSETS: Final = "assets"
MEMORY_BYTES: Final = 1 << 20
"""Of a MEMORY.md that is read or changed whole."""

_FIELDS: Final = frozenset({"name", "mimeType", "size", "modifiedAt"})


def folder_of(workspace: Workspace, project: str) -> tuple[str, tuple[str, ...]]:
    """Id of a project, found by its id or slug, and the parts of its folder. Raises: InvalidParams, NotFound."""
    item = workspace.verbs.item("projects", project)
    _, _, key = workspace.verbs.place("projects", item.id)
    return item.id, tuple(key.split("/"))


@frozen
class Memory:
    """text: "" and version "" where there is no file."""

    text: str
    version: str

    def item(self, project: str) -> Item:
        info: dict[str, Any] = {"tokens": memory.tokens(self.text)}
        if (cut := memory.limited(self.text).cut) is not None:
            info["truncatedAt"] = cut
        return Item(project, self.version, {"text": self.text}, info)


def read_memory(ground: Ground, folder: tuple[str, ...]) -> Memory:
    """In a pool thread. Raises: TooLarge, Forbidden, NotFound (the project has gone)."""
    with ground.found((*folder, MEMORY)) as spot:
        return _memory(spot)


def _memory(spot: Spot) -> Memory:
    if spot.status is None:
        return Memory("", "")
    data, status = browse.whole(spot, spot.shown, MEMORY_BYTES)
    return Memory(data.decode("utf-8", "replace"), version_of(atomic.of_stat(status)))


@define(eq=False, kw_only=True)
class WriteMemory(WriteFile):
    """Replace the text of a MEMORY.md, or put something on top of it. Answers what was written, the text, whether it
    changed anything.

    text, first: one of them is given; what is written follows from what is there when its turn comes.
    """

    source: Given = field(factory=partial(Given, b""))
    text: str | None = None
    first: str | None = None

    def plan(self, unit: FileUnit, now: int) -> Planned:
        with unit.ground.found(self.parts) as spot:
            self._expect(spot)
            there = _memory(spot)
        new = self.text if self.text is not None else memory.with_first(there.text, self.first or "")
        data = new.encode()
        if len(data) > MEMORY_BYTES:
            raise TooLarge("a MEMORY.md", MEMORY_BYTES, len(data))
        if there.version and new == there.text:
            return Planned((Written(there.version, len(data)), new, False))
        self.source = Given(data)
        planned = super().plan(unit, now)
        return Planned((planned.answer, new, True), planned.changes)


# Uploads


def assets(ground: Ground, folder: tuple[str, ...]) -> list[Asset]:
    """Regular files in the folder of uploads, the newest first; hidden ones are none. In a pool thread."""
    found = []
    try:
        with ground.found((*folder, ASSETS)) as spot:
            if spot.status is None or not stat.S_ISDIR(spot.status.st_mode):
                return []
            handle = spot.open_folder()
            try:
                for name in os.listdir(handle):
                    status = None if is_hidden(name) else _status(name, handle)
                    if status is not None and stat.S_ISREG(status.st_mode):
                        found.append(Asset(name, status.st_size, status.st_mtime_ns // 1_000_000, _version(status)))
            finally:
                os.close(handle)
    except NotFound:
        return []
    return sorted(found, key=lambda asset: (-asset.modified_at, asset.name))


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _version(status: os.stat_result) -> str:
    return version_of(atomic.of_stat(status))


def page(listed: list[Asset], folder: tuple[str, ...], epoch: str, **query: Any) -> Page:
    """One page of uploads. query: as `Index.page` takes it."""
    index = Index(epoch, "-modifiedAt", fields=_FIELDS)
    index.fill(_row(asset, folder) for asset in listed)
    return index.page(**query)


def item_of(asset: Asset, folder: tuple[str, ...]) -> Item:
    value = {"name": asset.name, "mimeType": asset.mime_type, "size": asset.size, "modifiedAt": asset.modified_at}
    return Item(asset.name, asset.version, value, {"path": "/".join((*folder, ASSETS, asset.name))})


def _row(asset: Asset, folder: tuple[str, ...]) -> PlainRow:
    item = item_of(asset, folder)
    return PlainRow(item.id, item.id, item.value, item.version, item.info, None)


def one(ground: Ground, folder: tuple[str, ...], name: str) -> Item:
    """Raises: NotFound."""
    found = next((asset for asset in assets(ground, folder) if asset.name == name), None)
    if found is None:
        raise NotFound(Ref("assets", name))
    return item_of(found, folder)


async def item(workspace: Workspace, noun: str, project: str, id: str) -> Item:
    """The memory or the upload *id* of a project as it is now. Raises: CraftdError."""
    project, folder = folder_of(workspace, project)
    if noun == "assets":
        return await workspace.in_pool(partial(one, folder=folder, name=id), workspace.ground())
    return (await workspace.in_pool(partial(read_memory, folder=folder), workspace.ground())).item(project)
