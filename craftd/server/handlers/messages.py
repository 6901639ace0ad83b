"""Messages of a session."""

from __future__ import annotations

from craftd.errors import InvalidParams
from craftd.protocol.codec import Raw
from craftd.protocol.contract import Changed, Got, Page
from craftd.protocol.methods.messages import Appended, AppendMessages, GetMessage, ListMessages
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.nouns import chosen
from craftd.workspace import reading, sessions
from craftd.workspace.workspace import Workspace


@handles
async def list_messages(call: Call, params: ListMessages) -> Page:
    workspace: Workspace = call.scope
    workspace.check_session_id(params.session, "session")
    for member in ("filter", "sort"):
        if getattr(params, member) is not None:
            raise InvalidParams.of(member, "messages are listed by position")
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
        revision=workspace.revision,
    )


@handles
async def append(call: Call, params: AppendMessages) -> Appended:
    workspace: Workspace = call.scope
    workspace.check_session_id(params.session, "session")
    done = await workspace.commit(
        sessions.AppendMessages(
            origin=call.origin,
            connection=call.connection,
            id=params.session,
            messages=params.messages,
            expected_tail=params.expected_tail,
            set=params.set_,
        )
    )
    stored = tuple(Changed(**one) for one in done.answer)
    return Appended(messages=stored, epoch=done.epoch, revision=done.revision)


@handles
async def get_message(call: Call, params: GetMessage) -> Got:
    workspace: Workspace = call.scope
    workspace.check_session_id(params.session, "session")
    item = await reading.one(workspace, params.session, params.id)
    return Got(item=chosen(item, params.fields), epoch=workspace.epoch, revision=workspace.revision)
