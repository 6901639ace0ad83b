"""Notes of a session."""

from __future__ import annotations

from craftd.protocol.contract import Got, Updated
from craftd.protocol.methods.notes import GetNotes, UpdateNotes
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.files import check_text
from craftd.workspace import session_files
from craftd.workspace.record_files import EditText
from craftd.workspace.session_files import NOTES, folder_of
from craftd.workspace.workspace import Workspace


@handles
async def get(call: Call, params: GetNotes) -> Got:
    workspace: Workspace = call.scope
    workspace.session(params.session, "session")
    revision = workspace.revision
    item = await session_files.item(workspace, "notes", params.session, params.session)
    return Got(item=item, epoch=workspace.epoch, revision=revision)


@handles
async def update(call: Call, params: UpdateNotes) -> Updated:
    workspace: Workspace = call.scope
    workspace.check_session_id(params.session, "session")
    check_text("text", params.text)
    done = await workspace.commit(
        EditText(
            origin=call.origin,
            connection=call.connection,
            parts=folder_of(params.session, NOTES),
            expected=params.expected_version,
            edit=lambda there: params.text,
            what="notes",
        )
    )
    item = session_files.notes_item(done.answer.text, done.answer.written.version, params.session)
    return Updated(item=item, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)
