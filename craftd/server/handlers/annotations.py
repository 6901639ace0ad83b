"""Annotations of a message."""

from __future__ import annotations

from craftd.errors import InvalidParams
from craftd.model.annotations import ID
from craftd.protocol.contract import Committed, Created, Updated
from craftd.protocol.methods.annotations import CreateAnnotation, DeleteAnnotation, UpdateAnnotation
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.nouns import chosen
from craftd.workspace import annotations as marks
from craftd.workspace.changes import check_patch
from craftd.workspace.workspace import Workspace


@handles
async def create(call: Call, params: CreateAnnotation) -> Created:
    workspace = _scope(call, params.session, params.id)
    done = await workspace.commit(
        marks.CreateAnnotation(
            origin=call.origin,
            connection=call.connection,
            id=params.session,
            message=params.message,
            annotation=params.id,
            value=params.value,
        )
    )
    return Created(item=done.answer, epoch=done.epoch, revision=done.revision)


@handles
async def update(call: Call, params: UpdateAnnotation) -> Updated:
    workspace = _scope(call, params.session, params.id)
    done = await workspace.commit(
        marks.UpdateAnnotation(
            origin=call.origin,
            connection=call.connection,
            id=params.session,
            message=params.message,
            annotation=params.id,
            patch=check_patch(params.patch),
            expected=params.expected_version,
        )
    )
    item = chosen(done.answer.item, params.fields)
    return Updated(item=item, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)


@handles
async def delete(call: Call, params: DeleteAnnotation) -> Committed:
    workspace = _scope(call, params.session, params.id)
    done = await workspace.commit(
        marks.DeleteAnnotation(
            origin=call.origin,
            connection=call.connection,
            id=params.session,
            message=params.message,
            annotation=params.id,
            expected=params.expected_version,
            missing_ok=params.missing_ok,
        )
    )
    return Committed(epoch=done.epoch, revision=done.revision)


def _scope(call: Call, session: str, id: str | None) -> Workspace:
    """Where *session* would be.  Raises: InvalidParams for what is no id."""
    workspace: Workspace = call.scope
    workspace.check_session_id(session, "session")
    if id is not None and ID.fullmatch(id) is None:
        raise InvalidParams.of("id", "is no id of an annotation: 1 to 200 characters, none of them a control character")
    return workspace
