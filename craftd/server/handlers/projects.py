"""Projects: what their sessions are told, their memory and their uploads."""

from __future__ import annotations

from functools import partial
from itertools import count
from random import SystemRandom

from attrs import evolve

from craftd.errors import InvalidParams, NotFound, Ref, VersionConflict
from craftd.model import memory, project_context
from craftd.model.assets import numbered, sanitised
from craftd.model.files import is_hidden, parts_of
from craftd.model.records import Item
from craftd.protocol.contract import Committed, Created, Got, Page, Updated
from craftd.protocol.methods.projects import (
    CreateAsset,
    DeleteAsset,
    GetMemory,
    GetProject,
    ListAssets,
    UpdateMemory,
)
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.files import check_text, content_of
from craftd.server.handlers.nouns import chosen, page_of
from craftd.workspace import files, project_files, record_files
from craftd.workspace.files import Ground
from craftd.workspace.project_files import ASSETS, MEMORY
from craftd.workspace.record_files import EditText
from craftd.workspace.workspace import Workspace

_pick = SystemRandom().randrange


@handles
async def get(call: Call, params: GetProject) -> Got:
    workspace: Workspace = call.scope
    item = workspace.verbs.item("projects", params.id)
    if params.context:
        context = await workspace.in_pool(partial(_context, workspace=workspace, item=item), workspace.ground())
        item = evolve(item, info={**item.info, "context": context})
    return Got(item=chosen(item, params.fields), epoch=workspace.epoch, revision=workspace.revision)


def _context(ground: Ground, workspace: Workspace, item: Item) -> dict[str, object]:
    _, folder = project_files.folder_of(workspace, item.id)
    listed = project_files.assets(ground, folder)
    noted = record_files.read_text(ground, (*folder, MEMORY)).shown
    return project_context.as_json(item.value, str(ground.named.joinpath(*folder)), listed, noted)


@handles
async def get_memory(call: Call, params: GetMemory) -> Got:
    workspace: Workspace = call.scope
    id, _ = _folder(workspace, params.project)
    revision = workspace.revision
    item = await project_files.item(workspace, "memory", id, id)
    return Got(item=item, epoch=workspace.epoch, revision=revision)


@handles
async def update_memory(call: Call, params: UpdateMemory) -> Updated:
    workspace: Workspace = call.scope
    if (params.text is None) == (params.prepend is None):
        raise InvalidParams.of("text", "either text or prepend says what to write")
    check_text("text", params.text)
    check_text("prepend", params.prepend)
    id, folder = _folder(workspace, params.project)
    done = await workspace.commit(
        EditText(
            origin=call.origin,
            connection=call.connection,
            parts=(*folder, MEMORY),
            expected=params.expected_version,
            edit=partial(_noted, text=params.text, first=params.prepend),
            what="a MEMORY.md",
        )
    )
    item = project_files.memory_item(done.answer.text, done.answer.written.version, id)
    return Updated(item=item, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)


def _noted(there: str, text: str | None, first: str | None) -> str:
    return text if text is not None else memory.with_first(there, first or "")


@handles
async def list_assets(call: Call, params: ListAssets) -> Page:
    workspace: Workspace = call.scope
    _, folder = _folder(workspace, params.project)
    epoch, revision = workspace.epoch, workspace.revision
    listed = await workspace.in_pool(partial(project_files.assets, folder=folder), workspace.ground())
    return page_of(project_files.index_of(listed, folder, epoch), params, epoch, revision)


@handles
async def create_asset(call: Call, params: CreateAsset) -> Created:
    workspace: Workspace = call.scope
    unknown = sorted(params.value.keys() - {"name"})
    wanted = params.value.get("name", "")
    if unknown or not isinstance(wanted, str):
        raise InvalidParams.of(f"value.{unknown[0] if unknown else 'name'}", "value is {name: text}")
    _, folder = _folder(workspace, params.project)
    name = sanitised(wanted, _pick)
    if is_hidden(name):
        raise InvalidParams.of("value.name", f"{name} looks like a secret, and such files are kept from every client")
    with content_of(call, params.content) as source:
        for number in count(1):
            chosen_name = numbered(name, number)
            write = files.WriteFile(
                origin=call.origin,
                connection=call.connection,
                parts=(*folder, ASSETS, chosen_name),
                expected="",
                source=source,
            )
            try:
                done = await workspace.commit(write)
                break
            except VersionConflict:
                continue
    item = await project_files.item(workspace, "assets", params.project, chosen_name)
    return Created(item=item, epoch=done.epoch, revision=done.revision)


@handles
async def delete_asset(call: Call, params: DeleteAsset) -> Committed:
    workspace: Workspace = call.scope
    if len(parts_of(params.id, "id")) != 1:
        raise InvalidParams.of("id", "must be the name of an upload")
    _, folder = _folder(workspace, params.project)
    done = await workspace.commit(
        files.DeleteFile(
            origin=call.origin,
            connection=call.connection,
            parts=(*folder, ASSETS, params.id),
            expected=params.expected_version,
            missing_ok=params.missing_ok,
        )
    )
    return Committed(epoch=done.epoch, revision=done.revision)


def _folder(workspace: Workspace, project: str) -> tuple[str, tuple[str, ...]]:
    try:
        return project_files.folder_of(workspace, project)
    except InvalidParams as error:
        raise InvalidParams.of("project", error.issues[0].message) from None
    except NotFound:
        raise NotFound(Ref("projects", project, workspace.id)) from None
