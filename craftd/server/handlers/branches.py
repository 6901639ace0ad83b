"""New sessions: empty ones, branches, copies."""

from __future__ import annotations

from craftd.protocol.contract import Created
from craftd.protocol.methods.sessions import CreateSession, DuplicateSession
from craftd.server.dispatch import Call, handles
from craftd.workspace import branching
from craftd.workspace.commit import Done
from craftd.workspace.workspace import Workspace


@handles
async def create(call: Call, params: CreateSession) -> Created:
    workspace: Workspace = call.scope
    point = params.from_
    if point is None:
        return _created(await workspace.verbs.create("sessions", params.value, params.id, call.origin, call.connection))
    workspace.check_session_id(point.session, "from.session")
    return _created(
        await branching.copy(
            workspace, point.session, point.message, params.value, params.id, call.origin, call.connection
        )
    )


@handles
async def duplicate(call: Call, params: DuplicateSession) -> Created:
    workspace: Workspace = call.scope
    workspace.check_session_id(params.session, "session")
    return _created(
        await branching.copy(
            workspace, params.session, None, params.value or {}, params.id, call.origin, call.connection
        )
    )


def _created(done: Done) -> Created:
    return Created(item=done.answer, epoch=done.epoch, revision=done.revision)
