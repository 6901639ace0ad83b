"""The five verbs, for every noun of a workspace."""

from __future__ import annotations

from functools import partial

from attrs import evolve

from craftd.errors import InvalidParams
from craftd.model import settings
from craftd.model.records import Item
from craftd.protocol.codec import Raw
from craftd.protocol.contract import Committed, Create, Created, Delete, Get, Got, ItemJson, List, Page, Update, Updated
from craftd.protocol.methods.sessions import GetSession, GotSession
from craftd.server.dispatch import Call, handles
from craftd.workspace import attachments, effective, reading
from craftd.workspace.index import Index
from craftd.workspace.workspace import Workspace


@handles
def list_records(call: Call, params: List) -> Page:
    workspace: Workspace = call.scope
    return page_of(workspace.verbs.index(call.method.noun), params, workspace.epoch, workspace.revision)


@handles
def get(call: Call, params: Get) -> Got:
    workspace: Workspace = call.scope
    item = workspace.verbs.item(call.method.noun, params.id)
    return Got(item=chosen(item, params.fields), epoch=workspace.epoch, revision=workspace.revision)


@handles
async def get_session(call: Call, params: GetSession) -> GotSession:
    workspace: Workspace = call.scope
    if params.explicit is not None and (issues := settings.explicit_issues(params.explicit)):
        raise InvalidParams.of(f"explicit.{issues[0].path}", issues[0].message)
    item = workspace.verbs.item("sessions", params.id)
    files = await workspace.in_pool(partial(attachments.counted, session=item.id), workspace.ground())
    item = workspace.verbs.item("sessions", params.id)
    messages = None
    if params.messages:
        page = await reading.page(workspace, params.id, backward=True, limit=params.messages)
        messages = tuple(Raw(text) for text in page.items)
        item = workspace.verbs.item("sessions", params.id)
    relations = workspace.sessions.relations(item.id)
    info = {**item.info, **relations, **files, "effective": effective.as_json(workspace, item.value, params.explicit)}
    shown = chosen(evolve(item, info=info), params.fields)
    return GotSession(item=shown, messages=messages, epoch=workspace.epoch, revision=workspace.revision)


@handles
async def create(call: Call, params: Create) -> Created:
    workspace: Workspace = call.scope
    done = await workspace.verbs.create(call.method.noun, params.value, params.id, call.origin, call.connection)
    return Created(item=done.answer, epoch=done.epoch, revision=done.revision)


@handles
async def update(call: Call, params: Update) -> Updated:
    workspace: Workspace = call.scope
    done = await workspace.verbs.update(
        call.method.noun, params.id, params.patch, params.expected_version, call.origin, call.connection
    )
    item = chosen(done.answer.item, params.fields)
    return Updated(item=item, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)


@handles
async def delete(call: Call, params: Delete) -> Committed:
    workspace: Workspace = call.scope
    done = await workspace.verbs.delete(
        call.method.noun,
        params.id,
        params.expected_version,
        call.origin,
        call.connection,
        missing_ok=params.missing_ok,
    )
    return Committed(epoch=done.epoch, revision=done.revision)


def page_of(index: Index, params: List, epoch: str, revision: int, only: frozenset[str] | None = None) -> Page:
    """only: ids of all that may be seen."""
    page = index.page(params.filter, params.sort, params.fields, params.limit, params.cursor, only)
    return Page(
        items=tuple(map(Raw, page.items)),
        next_cursor=page.next_cursor,
        total=page.total,
        epoch=epoch,
        revision=revision,
    )


def chosen(item: Item, fields: tuple[str, ...] | None) -> ItemJson:
    """*item* with the members of value that were asked for."""
    return item if fields is None or "*" in fields else item.as_json(fields)
