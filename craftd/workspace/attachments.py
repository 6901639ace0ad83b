"""Attachments of a session: files in its folder, read from the disk when somebody asks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from attrs import define

from craftd.errors import CraftdError, InvalidParams, NotFound, Ref
from craftd.model import attachments
from craftd.model.attachments import Attachment
from craftd.model.records import Item, Record
from craftd.store import rendering
from craftd.store.atomic import Copy
from craftd.store.rendering import can_render
from craftd.workspace import browse, record_files, session_files
from craftd.workspace.commit import Planned
from craftd.workspace.files import FILES, FileUnit, Ground, Source, WriteFile
from craftd.workspace.index import Index
from craftd.workspace.record_files import Found
from craftd.workspace.session_files import folder_of

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace

FOLDER: Final = "attachments"

_FIELDS: Final = frozenset({"name", "type", "mimeType", "size", "modifiedAt"})


@define
class NotEmpty:
    """Content that has to have a byte."""

    source: Source

    @property
    def heavy(self) -> bool:
        return self.source.heavy

    @contextmanager
    def opened(self) -> Iterator[bytes | Copy]:
        with self.source.opened() as data:
            if (len(data) if isinstance(data, bytes) else data.size) == 0:
                raise InvalidParams.of("content", "is empty")
            yield data


@define(eq=False, kw_only=True)
class WriteBeside(WriteFile):
    """Write what was made of the file *beside*, if that is there still. Raises: NotFound."""

    beside: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.reads = self.reads | {FILES + "/".join(self.beside)}

    def plan(self, unit: FileUnit, now: int) -> Planned:
        with unit.ground.found(self.beside, follow=False) as spot:
            if spot.status is None:
                raise NotFound(Ref("files", "/".join(self.beside)))
        return super().plan(unit, now)


def listed(ground: Ground, session: str) -> list[tuple[Attachment, Found]]:
    """The newest first. In a pool thread."""
    files = {file.name: file for file in record_files.found_in(ground, folder_of(session, FOLDER))}
    return [(one, files[one.file]) for one in attachments.grouped(files)]


def item_of(ground: Ground, session: str, attachment: Attachment, file: Found) -> Item:
    folder = folder_of(session, FOLDER)
    told = attachments.stored(attachment, file.size, str(ground.root.joinpath(*folder)))
    del told["wasResized"]
    value = {**told, "modifiedAt": file.modified_at}
    return Item(attachment.id, file.version, value, {"path": "/".join((*folder, attachment.file))})


def index_of(ground: Ground, session: str, epoch: str) -> Index:
    """In a pool thread."""
    items = [item_of(ground, session, attachment, file) for attachment, file in listed(ground, session)]
    return record_files.index_of(items, epoch, _FIELDS)


def one(ground: Ground, session: str, id: str) -> tuple[Attachment, Item]:
    """In a pool thread. Raises: NotFound."""
    for attachment, file in listed(ground, session):
        if attachment.id == id:
            return attachment, item_of(ground, session, attachment, file)
    raise NotFound(Ref("attachments", id))


def counted(ground: Ground, session: str) -> Record:
    """How many plans and attachments a session has, as members of its `info`; none is no member. In a pool thread."""
    counts: Record = {}
    for name, count in (("planCount", session_files.listed), ("attachments", listed)):
        with suppress(CraftdError, OSError):  # a folder that may not be read is no fault of the session
            if found := count(ground, session):
                counts[name] = len(found)
    return counts


def rendered(ground: Ground, session: str, attachment: Attachment) -> list[tuple[str, bytes]]:
    """What can be made of a new attachment: names in its folder with their content. In a pool thread; takes long."""
    made = []
    for name, what in attachments.renditions(attachment):
        if can_render(what):
            with ground.found(folder_of(session, FOLDER, attachment.file), follow=False) as spot:
                file = browse.opened(spot, spot.shown)
            try:
                data = rendering.rendered(what, file)
            finally:
                os.close(file)
            if data is not None:
                made.append((name, data))
    return made


async def item(workspace: Workspace, session: str, id: str) -> Item:
    """Raises: NotFound."""
    return (await workspace.in_pool(partial(one, session=session, id=id), workspace.ground()))[1]
