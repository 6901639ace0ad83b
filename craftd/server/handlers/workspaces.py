"""The registry of workspaces."""

from __future__ import annotations

from attrs import evolve

from craftd.errors import NotFound, Ref
from craftd.protocol.contract import Committed, Created, Got, Page, Updated
from craftd.protocol.methods.workspaces import (
    CreateWorkspace,
    DeleteWorkspace,
    GetWorkspace,
    ListWorkspaces,
    MoveWorkspace,
    UpdateWorkspace,
)
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.daemon import daemon_of
from craftd.server.handlers.nouns import chosen, page_of
from craftd.workspace.changes import check_patch
from craftd.workspace.home import Home
from craftd.workspace.registry import Unregister, UpdateSettings


@handles
async def list_workspaces(call: Call, params: ListWorkspaces) -> Page:
    home: Home = call.scope
    await home.look()
    only = None if call.grant.workspaces is None else daemon_of(call).reachable(call.grant)
    return page_of(home.index, params, home.journal.epoch, home.journal.revision, only)


@handles
async def get(call: Call, params: GetWorkspace) -> Got:
    home: Home = call.scope
    await home.look()
    item = home.item(_reached(call, params.id))
    return Got(item=chosen(item, params.fields), epoch=home.journal.epoch, revision=home.journal.revision)


@handles
async def create(call: Call, params: CreateWorkspace) -> Created:
    home: Home = call.scope
    planned = home.plan_creation(params.value, adopt=params.adopt)  # at once: changes begin in the order sent
    commit = evolve(
        planned, origin=call.origin, connection=call.connection, id=planned.id if params.id is None else params.id
    )
    home.check_id(commit.id)
    if params.dry_run:
        return Created(item=home.preview(commit), epoch=home.journal.epoch, revision=home.journal.revision)
    with call.work(params.work_done_token, f"Making workspace {commit.name}"):
        done = await home.commit(commit)
    return Created(item=done.answer, epoch=done.epoch, revision=done.revision)


@handles
async def update(call: Call, params: UpdateWorkspace) -> Updated:
    home: Home = call.scope
    done = await home.commit(
        UpdateSettings(
            origin=call.origin,
            connection=call.connection,
            id=_known(home, _reached(call, params.id)),
            patch=check_patch(params.patch),
            facts=home.facts(),
            expected=params.expected_version,
        )
    )
    item = chosen(done.answer.item, params.fields)
    return Updated(item=item, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)


@handles
async def move(call: Call, params: MoveWorkspace) -> Updated:
    home: Home = call.scope
    id = _known(home, params.id)
    done = await home.move(id, params.path, params.expected_version, call.origin, call.connection)
    return Updated(item=done.answer.item, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)


@handles
async def delete(call: Call, params: DeleteWorkspace) -> Committed:
    home: Home = call.scope
    id = params.id if params.missing_ok and home.find(params.id) is None else _known(home, params.id)
    done = await home.unregister(
        Unregister(
            origin=call.origin,
            connection=call.connection,
            id=id,
            expected=params.expected_version,
            missing_ok=params.missing_ok,
        )
    )
    return Committed(epoch=done.epoch, revision=done.revision)


def _known(home: Home, name: str) -> str:
    """Registry id of what the client calls *name*: an entry of its own, even where it shares another's folder."""
    id = name if name in home.known else home.find(name)
    if id is None:
        raise NotFound(Ref("workspaces", name))
    return id


def _reached(call: Call, name: str) -> str:
    """*name*, or for a token of some workspaces the id of the one it means. Raises: NotFound if it is none of these."""
    return name if call.grant.workspaces is None else daemon_of(call).reached(name, call.grant)
