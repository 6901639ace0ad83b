"""Sessions: what was read, who looks at them, what executors say of them."""

from __future__ import annotations

from craftd.errors import Forbidden, InvalidParams
from craftd.protocol.contract import Committed
from craftd.protocol.methods.sessions import (
    CountUnread,
    FoundDamage,
    MarkRead,
    PublishEvent,
    Repaired,
    RepairSession,
    Unread,
    UnreadSessions,
    ViewSessions,
)
from craftd.server.dispatch import Call, handles
from craftd.workspace import repair, sessions
from craftd.workspace.home import Home
from craftd.workspace.many import AT_ONCE, in_parts
from craftd.workspace.workspace import Workspace


@handles
async def mark_read(call: Call, params: MarkRead) -> Committed:
    workspace: Workspace = call.scope
    if (params.sessions is None) != params.all:
        raise InvalidParams.of("sessions", "either sessions or all: true says which")
    ids = workspace.unread() if params.sessions is None else tuple(dict.fromkeys(params.sessions))
    for id in ids:
        workspace.session(id, "sessions")
    commits = [
        sessions.MarkRead(origin=call.origin, connection=call.connection, id=id, one_of_all=params.all) for id in ids
    ]
    token = params.work_done_token if len(commits) > AT_ONCE else None
    call.progress(token, {"kind": "begin", "title": "Marking sessions as read", "percentage": 0})

    def told(done: int) -> None:
        message = f"{done} of {len(commits)}"
        call.progress(token, {"kind": "report", "message": message, "percentage": 100 * done // len(commits)})

    try:
        await in_parts(workspace, commits, told)
    finally:
        call.progress(token, {"kind": "end"})
    return Committed(epoch=workspace.epoch, revision=workspace.revision)


@handles
async def repair_session(call: Call, params: RepairSession) -> Repaired:
    workspace: Workspace = call.scope
    workspace.session(params.id)
    done = await workspace.commit(
        repair.RepairSession(origin=call.origin, connection=call.connection, id=params.id, dry_run=params.dry_run)
    )
    return Repaired(
        item=workspace.session(params.id).item(),
        changed=done.answer.kept is not None,
        found=tuple(
            FoundDamage(code=one.code, line=one.line, message=one.message, remedy=one.remedy)
            for one in done.answer.found
        ),
        kept=done.answer.kept,
        epoch=done.epoch,
        revision=done.revision,
    )


@handles
def unread(call: Call, params: CountUnread) -> Unread:
    scope: Workspace | Home = call.scope
    allowed = call.grant.workspaces
    found = [scope] if isinstance(scope, Workspace) else scope.open_workspaces
    counted = []
    for workspace in found:
        if allowed is None or workspace.id in allowed:
            ids = workspace.unread()
            counted.append(
                UnreadSessions(
                    workspace=workspace.id,
                    count=len(ids),
                    sessions=ids,
                    epoch=workspace.epoch,
                    revision=workspace.revision,
                )
            )
    return Unread(total=sum(one.count for one in counted), workspaces=tuple(counted))


@handles
def view(call: Call, params: ViewSessions) -> None:
    """Who may not write still does not let a session become unread, but what is unread already stays so."""
    workspace: Workspace = call.scope
    for id in params.sessions:
        workspace.check_session_id(id, "sessions")
    if not call.connection.alive:
        return
    live = workspace.place.live
    call.dispatcher.relay.remember(workspace.id, live, call.connection)
    for id in live.view(call.connection, params.sessions):
        row = workspace.sessions.get(id)
        if row is not None:
            workspace.files.want(id)
        if row is not None and row.value.get("hasUnread") is True and "write" in call.grant.rights:
            workspace.quietly(sessions.MarkRead(origin=call.origin, id=id))


@handles
def publish(call: Call, params: PublishEvent) -> None:
    workspace: Workspace = call.scope
    if "executor" not in call.connection.roles:
        raise Forbidden(
            "sessions/publish is for connections that said at initialize they are an executor", scope="executor"
        )
    workspace.session(params.session, "session")
    call.dispatcher.relay.publish(workspace.id, workspace.place.live, call.connection, params.session, params.event)
