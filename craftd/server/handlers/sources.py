"""Sources."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import Any

from craftd.errors import CraftdError, InvalidParams, InvalidState, NotFound, Ref, Timeout, ValidationFailed
from craftd.model import credentials, source_tests
from craftd.model.credentials import Identity
from craftd.model.records import Item
from craftd.model.sources import authentication, validate
from craftd.protocol.methods.sources import TIMES, TestedSource, TestSource
from craftd.server import connecting
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.daemon import daemon_of
from craftd.workspace.credentials import Reveal
from craftd.workspace.workspace import Workspace


@handles
async def test(call: Call, params: TestSource) -> TestedSource:
    workspace: Workspace = call.scope
    if params.timeout_ms is not None and params.timeout_ms not in TIMES:
        raise InvalidParams.of("timeoutMs", f"must be from {TIMES.start} to {TIMES.stop - 1}")
    item = workspace.verbs.item("sources", params.id)
    ref = Ref("sources", item.id)
    if errors := [issue for issue in validate(item.value, None) if issue.severity == "error"]:
        raise ValidationFailed(tuple(errors), ref)
    program = item.value["type"] == "mcp" and item.value["mcp"].get("transport") == "stdio"
    if program and not _may_start(call):
        raise InvalidState("programs of sources are switched off here (localMcpServers)", "switched-off", (), ref)
    with call.work(params.work_done_token, "Connecting"):
        told = partial(_report, call, params.work_done_token)
        seconds = None if params.timeout_ms is None else params.timeout_ms / 1000
        outcome = await connecting.connect(item.value, await _secret(call, item), workspace.place.root, told, seconds)
    patch = source_tests.marks(item.value, outcome, workspace.now(), params.auto_enable)
    written = False
    with suppress(CraftdError):  # it may have gone meanwhile, or be read-only: how it went is told all the same
        await workspace.verbs.update("sources", item.id, patch, None, call.origin, call.connection)
        written = True
    if outcome.late:
        raise Timeout(str(outcome.message))
    return TestedSource(
        status=outcome.status,
        message=outcome.message,
        written=written,
        found=outcome.found,
        search_path=os.environ.get("PATH", os.defpath) if program else None,
        epoch=workspace.epoch,
        revision=workspace.revision,
    )


def _report(call: Call, token: int | str | None, message: str) -> None:
    call.progress(token, {"kind": "report", "message": message})


def _may_start(call: Call) -> bool:
    """The environment decides before the workspace, which may say no."""
    told = os.environ.get("CRAFT_LOCAL_MCP_ENABLED")
    if told is not None:
        return told.lower() == "true"
    settings: Any = daemon_of(call).home.item(call.scope.id).value.get("localMcpServers")
    return not isinstance(settings, dict) or settings.get("enabled") is not False


async def _secret(call: Call, item: Item) -> str | None:
    """The value of the first credential of the source that is set; in memory for as long as the test runs."""
    if authentication(item.value) is None:
        return None
    home = daemon_of(call).home
    for type in credentials.slots(item.value):
        id = home.credential_id(Identity(type, (call.scope.id, item.id)).account)
        with suppress(NotFound):
            entry = (await home.commit(Reveal(origin=call.origin, connection=call.connection, id=id))).answer.entry
            if isinstance(entry, dict) and isinstance(entry.get("value"), str) and entry["value"]:
                return str(entry["value"])
    return None
