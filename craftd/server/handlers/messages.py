"""Messages of a session."""

from __future__ import annotations

from functools import partial

from craftd.errors import InvalidParams
from craftd.protocol.codec import Raw
from craftd.protocol.contract import Changed, Committed, Got, Page, Updated
from craftd.protocol.methods.messages import (
    Appended,
    AppendMessages,
    DeleteMessage,
    GetMessage,
    ListMessages,
    TruncateMessages,
    UpdateMessage,
)
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.nouns import chosen
from craftd.workspace import effective, messages, reading
from craftd.workspace.changes import check_patch
from craftd.workspace.lineage import reads_of
from craftd.workspace.workspace import Workspace


@handles
async def list_messages(call: Call, params: ListMessages) -> Page:
    workspace = _scope(call, params.session)
    for member in ("filter", "sort"):
        if getattr(params, member) is not None:
            raise InvalidParams.of(member, "messages are listed by position")
    revision = workspace.revision  # before the file is read: later changes may be in the page, earlier ones are
    page = await reading.page(
        workspace,
        params.session,
        backward=params.direction == "backward",
        fields=params.fields,
        limit=params.limit,
        cursor=params.cursor,
    )
    return Page(
        items=tuple(map(Raw, page.items)),
        next_cursor=page.next_cursor,
        total=page.total,
        epoch=workspace.epoch,
        revision=revision,
    )


@handles
async def append(call: Call, params: AppendMessages) -> Appended:
    workspace = _scope(call, params.session)
    done = await workspace.commit(
        messages.AppendMessages(
            origin=call.origin,
            connection=call.connection,
            reads=reads_of(params.set_ or ()),
            id=params.session,
            messages=params.messages,
            labels=workspace.labels,
            known=workspace.has,
            mode=partial(effective.permission_mode, workspace),
            expected_tail=params.expected_tail,
            set=params.set_,
        )
    )
    stored = tuple(Changed(**one) for one in done.answer)
    return Appended(messages=stored, epoch=done.epoch, revision=done.revision)


@handles
async def get_message(call: Call, params: GetMessage) -> Got:
    workspace = _scope(call, params.session)
    revision = workspace.revision  # as in `list_messages`
    item = await reading.one(workspace, params.session, params.id)
    return Got(item=chosen(item, params.fields), epoch=workspace.epoch, revision=revision)


@handles
async def update(call: Call, params: UpdateMessage) -> Updated:
    workspace = _scope(call, params.session)
    done = await workspace.commit(
        messages.UpdateMessage(
            origin=call.origin,
            connection=call.connection,
            id=params.session,
            message=params.id,
            patch=check_patch(params.patch),
            expected=params.expected_version,
        )
    )
    item = chosen(done.answer.item, params.fields)
    return Updated(item=item, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)


@handles
async def delete(call: Call, params: DeleteMessage) -> Committed:
    workspace = _scope(call, params.session)
    done = await workspace.commit(
        messages.DeleteMessage(
            origin=call.origin,
            connection=call.connection,
            id=params.session,
            message=params.id,
            expected=params.expected_version,
            missing_ok=params.missing_ok,
        )
    )
    return Committed(epoch=done.epoch, revision=done.revision)


@handles
async def truncate(call: Call, params: TruncateMessages) -> Committed:
    workspace = _scope(call, params.session)
    if (params.keep is None) == (params.after_message is None):
        raise InvalidParams.of("keep", "either keep or afterMessage says how much is left")
    if params.keep is not None and params.keep < 0:
        raise InvalidParams.of("keep", "must be at least 0")
    done = await workspace.commit(
        messages.TruncateMessages(
            origin=call.origin,
            connection=call.connection,
            id=params.session,
            keep=params.keep,
            after=params.after_message,
        )
    )
    return Committed(epoch=done.epoch, revision=done.revision)


def _scope(call: Call, session: str) -> Workspace:
    """Where *session* would be.  Raises: InvalidParams for what is no id of one."""
    workspace: Workspace = call.scope
    workspace.check_session_id(session, "session")
    return workspace
