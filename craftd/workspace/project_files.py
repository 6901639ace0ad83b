"""MEMORY.md and the uploads of a project: files like others, with rules of their own about names and content."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from craftd.errors import NotFound, Ref
from craftd.model import memory
from craftd.model.project_context import Asset
from craftd.model.records import Item
from craftd.workspace import record_files
from craftd.workspace.files import Ground
from craftd.workspace.index import Index

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace

MEMORY: Final = "MEMORY.md"
ASSETS: Final = "assets"

_FIELDS: Final = frozenset({"name", "mimeType", "size", "modifiedAt"})


def folder_of(workspace: Workspace, project: str) -> tuple[str, tuple[str, ...]]:
    """Id of a project, found by its id or slug, and the parts of its folder. Raises: InvalidParams, NotFound."""
    item = workspace.verbs.item("projects", project)
    _, _, key = workspace.verbs.place("projects", item.id)
    return item.id, tuple(key.split("/"))


def memory_item(text: str, version: str, project: str) -> Item:
    """text: "" and version "" where there is no file."""
    info: dict[str, Any] = {"tokens": memory.tokens(text)}
    if (cut := memory.limited(text).cut) is not None:
        info["truncatedAt"] = cut
    return Item(project, version, {"text": text}, info)


# Uploads


def assets(ground: Ground, folder: tuple[str, ...]) -> list[Asset]:
    """In a pool thread."""
    found = record_files.found_in(ground, (*folder, ASSETS))
    return [Asset(file.name, file.size, file.modified_at, file.version) for file in found]


def index_of(listed: list[Asset], folder: tuple[str, ...], epoch: str) -> Index:
    return record_files.index_of((item_of(asset, folder) for asset in listed), epoch, _FIELDS)


def item_of(asset: Asset, folder: tuple[str, ...]) -> Item:
    value = {"name": asset.name, "mimeType": asset.mime_type, "size": asset.size, "modifiedAt": asset.modified_at}
    return Item(asset.name, asset.version, value, {"path": "/".join((*folder, ASSETS, asset.name))})


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
    text = await workspace.in_pool(partial(record_files.read_text, parts=(*folder, MEMORY)), workspace.ground())
    return memory_item(text.shown, text.version, project)
