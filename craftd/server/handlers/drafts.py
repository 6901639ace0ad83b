"""Drafts of sessions."""

from __future__ import annotations

from typing import Any

from craftd.errors import Forbidden, InvalidParams
from craftd.model.drafts import DRAFTS
from craftd.protocol.contract import Committed, Got, Page, Updated
from craftd.protocol.methods.drafts import DeleteDraft, GetDraft, ListDrafts, UpdateDraft
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.daemon import daemon_of
from craftd.server.handlers.files import check_text
from craftd.server.handlers.nouns import page_of
from craftd.workspace import drafts
from craftd.workspace.changes import DeleteRecord
from craftd.workspace.drafts import SetDraft
from craftd.workspace.home import DRAFTS_FILE, Home
from craftd.workspace.workspace import Workspace


@handles
def list_drafts(call: Call, params: ListDrafts) -> Page:
    workspace: Workspace = call.scope
    home = _shared(call)
    index = home.tables[DRAFTS.name].index
    only = frozenset(row.id for row in index if workspace.sessions.get(row.id) is not None)
    return page_of(index, params, home.journal.epoch, home.journal.revision, only)


@handles
def get(call: Call, params: GetDraft) -> Got:
    home = _home(call, params.session)
    row = home.tables[DRAFTS.name].find(params.session)
    item = drafts.empty(params.session) if row is None else row.item()
    return Got(item=item, epoch=home.journal.epoch, revision=home.journal.revision)


@handles
async def update(call: Call, params: UpdateDraft) -> Updated:
    home = _home(call, params.session)
    given: dict[str, Any] = {}
    if params.text is not None:
        check_text("text", params.text)
        given["text"] = params.text
    if params.attachments is not None:
        given["attachments"] = list(params.attachments) or None
    if not given:
        raise InvalidParams.of("text", "text or attachments say what changes")
    done = await home.commit(
        SetDraft(
            origin=call.origin,
            connection=call.connection,
            noun=DRAFTS,
            key=DRAFTS_FILE,
            id=params.session,
            workspace=None,
            facts=home.facts(),
            given=given,
            expected=params.expected_version,
        )
    )
    return Updated(item=done.answer.item, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)


@handles
async def delete(call: Call, params: DeleteDraft) -> Committed:
    home = _home(call, params.session)
    done = await home.commit(
        DeleteRecord(
            origin=call.origin,
            connection=call.connection,
            noun=DRAFTS,
            key=DRAFTS_FILE,
            id=params.session,
            workspace=None,
            facts=home.facts(),
            expected=params.expected_version,
            missing_ok=params.missing_ok,
        )
    )
    return Committed(epoch=done.epoch, revision=done.revision)


def _home(call: Call, session: str) -> Home:
    """Raises: InvalidParams, NotFound: drafts of other workspaces are no business of this one's clients."""
    workspace: Workspace = call.scope
    home = _shared(call)
    workspace.session(session, "session")
    return home


def _shared(call: Call) -> Home:
    """Where drafts are. Raises: Forbidden: one of a session elsewhere would be got at by a session of the same id."""
    if call.grant.workspaces is not None:
        raise Forbidden("this token is for some workspaces, not for what they share", scope="workspaces")
    return daemon_of(call).home
