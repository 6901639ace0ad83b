"""Views: what their expressions match."""

from __future__ import annotations

from craftd.protocol.methods.views import Evaluated, EvaluateView, ExpressionFault
from craftd.server.dispatch import Call, handles
from craftd.workspace import views
from craftd.workspace.workspace import Workspace


@handles
async def evaluate(call: Call, params: EvaluateView) -> Evaluated:
    workspace: Workspace = call.scope
    epoch, revision = workspace.epoch, workspace.revision
    found = await views.evaluate(workspace, params.expression)
    fault = None
    if found.error is not None:
        fault = ExpressionFault(code=found.error.code, message=found.error.message, offset=found.error.offset)
    return Evaluated(
        sessions=found.sessions,
        failed=found.failed,
        error=fault,
        epoch=epoch,
        revision=revision,
    )
