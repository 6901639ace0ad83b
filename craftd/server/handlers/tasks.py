"""Tasks and automations: what is wrong with a text that is not stored."""

from __future__ import annotations

from functools import partial

from craftd.errors import InvalidParams
from craftd.protocol.methods.automations import ValidateAutomations
from craftd.protocol.methods.issues import Validated
from craftd.protocol.methods.tasks import ValidateTask
from craftd.server.dispatch import Call, handles
from craftd.store.files import encoded
from craftd.store.layout import CHECKED
from craftd.workspace.workspace import Workspace


@handles
async def validate_task(call: Call, params: ValidateTask) -> Validated:
    folder = params.folder
    if folder is not None and (folder.startswith(".") or "/" in folder or "\0" in folder or not folder):
        raise InvalidParams.of("folder", "is no name of a folder")
    return await _validated(call, "tasks", "task.yaml" if folder is None else f"tasks/{folder}/task.yaml", params.text)


@handles
async def validate_automations(call: Call, params: ValidateAutomations) -> Validated:
    return await _validated(call, "automations", "automations.json", params.text)


async def _validated(call: Call, noun: str, path: str, text: str) -> Validated:
    workspace: Workspace = call.scope
    work = partial(CHECKED.check, noun, path, encoded(text))
    return Validated(issues=tuple(await workspace.in_pool(work, workspace.place.root)))
