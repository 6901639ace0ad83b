"""Everything that is wrong with files."""

from __future__ import annotations

import asyncio

from craftd.protocol.methods.issues import Issues, ListIssues
from craftd.server.dispatch import Call, handles
from craftd.workspace.home import Home
from craftd.workspace.workspace import Workspace


@handles
async def list_issues(call: Call, params: ListIssues) -> Issues:
    scope: Workspace | Home = call.scope
    if isinstance(scope, Home):
        await scope.sync()
    found = await asyncio.to_thread(scope.issues)
    paths = sorted(found) if params.path is None else [params.path]
    items = tuple(issue.as_json() for path in paths for issue in found.get(path, ()))
    return Issues(items=items, epoch=scope.journal.epoch, revision=scope.journal.revision)
