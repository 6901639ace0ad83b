"""The trash: what is in it, what comes back, what goes for good, what is old enough to go there."""

from __future__ import annotations

from craftd.errors import InvalidParams
from craftd.protocol.contract import Created, Page
from craftd.protocol.methods.sessions import DeletedSession, DeleteSession
from craftd.protocol.methods.trash import Emptied, EmptyTrash, ListTrash, Purged, PurgeSessions, RestoreSession
from craftd.server.dispatch import Call, handles
from craftd.workspace import trash
from craftd.workspace.many import AT_ONCE
from craftd.workspace.workspace import Workspace


@handles
async def list_trash(call: Call, params: ListTrash) -> Page:
    workspace: Workspace = call.scope
    found = await workspace.in_pool(lambda place: trash.listed(place, params.limit, params.cursor), workspace.place)
    return Page(
        items=tuple(found.items),
        next_cursor=found.next,
        total=found.total,
        epoch=workspace.epoch,
        revision=workspace.revision,
    )


@handles
async def delete(call: Call, params: DeleteSession) -> DeletedSession:
    workspace: Workspace = call.scope
    done = await workspace.verbs.delete(
        "sessions",
        params.id,
        params.expected_version,
        call.origin,
        call.connection,
        missing_ok=params.missing_ok,
        permanent=params.permanent,
    )
    return DeletedSession(
        trash=done.answer.get("trash"),
        children=tuple(done.answer.get("children", ())),
        branches=tuple(done.answer.get("branches", ())),
        epoch=done.epoch,
        revision=done.revision,
    )


@handles
async def restore(call: Call, params: RestoreSession) -> Created:
    workspace: Workspace = call.scope
    done = await workspace.commit(trash.Restore.named(params.id, workspace.place, call.origin, call.connection))
    return Created(item=done.answer, epoch=done.epoch, revision=done.revision)


@handles
async def empty_trash(call: Call, params: EmptyTrash) -> Emptied:
    workspace: Workspace = call.scope
    if params.ids is not None and params.older_than_days is not None:
        raise InvalidParams.of("olderThanDays", "does not go with ids, which say what is meant")
    before = None if params.older_than_days is None else trash.moment(params.older_than_days, workspace.now())
    commit = trash.EmptyTrash(
        origin=call.origin,
        connection=call.connection,
        reads=frozenset({"sessions/"}),
        names=None if params.ids is None else tuple(dict.fromkeys(params.ids)),
        before=before,
    )
    removed = await trash.empty(workspace, commit)
    return Emptied(removed=tuple(removed), epoch=workspace.epoch, revision=workspace.revision)


@handles
async def purge(call: Call, params: PurgeSessions) -> Purged:
    workspace: Workspace = call.scope
    before = trash.moment(params.older_than_days, workspace.now())
    ids = trash.due(workspace, before)
    if not params.dry_run:
        token = params.work_done_token if len(ids) > AT_ONCE else None
        total = len(ids)
        call.progress(token, {"kind": "begin", "title": "Purging archived sessions", "percentage": 0})

        def told(done: int) -> None:
            report = {"kind": "report", "message": f"{done} of {total}", "percentage": 100 * done // total}
            call.progress(token, report)

        try:
            ids = await trash.purge(workspace, ids, before, call.origin, call.connection, told)
        finally:
            call.progress(token, {"kind": "end"})
    return Purged(sessions=tuple(ids), epoch=workspace.epoch, revision=workspace.revision)
