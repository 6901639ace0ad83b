"""Rules files and what they decide."""

from __future__ import annotations

import asyncio

from craftd.errors import InvalidParams
from craftd.model.permissions import parse_mode
from craftd.protocol.contract import Got, Page, Updated
from craftd.protocol.methods.permissions import (
    Checked,
    CheckPermission,
    GetPermission,
    ListPermissions,
    UpdatePermission,
)
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.daemon import daemon_of
from craftd.server.handlers.nouns import chosen, page_of
from craftd.workspace import permissions
from craftd.workspace.home import Home
from craftd.workspace.workspace import Workspace


@handles
def list_permissions(call: Call, params: ListPermissions) -> Page:
    scope: Workspace | Home = call.scope
    return page_of(scope.tables["permissions"].index, params, scope.journal.epoch, scope.journal.revision)


@handles
def get(call: Call, params: GetPermission) -> Got:
    scope: Workspace | Home = call.scope
    item = permissions.item(scope, params.id)
    return Got(item=chosen(item, params.fields), epoch=scope.journal.epoch, revision=scope.journal.revision)


@handles
async def update(call: Call, params: UpdatePermission) -> Updated:
    scope: Workspace | Home = call.scope
    change = permissions.change(scope, params.id, params.patch, params.expected_version, call.origin, call.connection)
    done = await scope.commit(change)
    item = chosen(done.answer.item, params.fields)
    return Updated(item=item, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)


@handles
async def check(call: Call, params: CheckPermission) -> Checked:
    scope: Workspace | Home = call.scope
    mode = parse_mode(params.mode)
    if mode is None:
        raise InvalidParams.of("mode", "is no mode: safe, ask or allow-all")
    if isinstance(scope, Home) and params.session is not None:
        raise InvalidParams.of("session", "is in a workspace, which is not named")
    workspace = None if isinstance(scope, Home) else scope
    asked = permissions.question(daemon_of(call).home, workspace, params.session)
    found = await asyncio.to_thread(asked.decide, mode, params.tool, params.input)
    return Checked(
        decision=found.decision,
        code=found.code,
        reason=found.reason,
        rule=None if found.rule is None else found.rule.as_json(),
        hint=found.hint,
    )
