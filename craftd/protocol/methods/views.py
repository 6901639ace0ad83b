"""Views: what their expressions match."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Change, Position, Ref
from craftd.protocol.registry import method, notification


@frozen(kw_only=True)
class ExpressionFault:
    """code: syntax, unknown-function, type, bad-pattern or too-slow. offset: characters before the place to blame."""

    code: str
    message: str
    offset: int


@frozen(kw_only=True)
class Evaluated(Position):
    """sessions: ids of those that match, the latest first."""

    sessions: tuple[str, ...]
    failed: int
    """Sessions for which the expression fails; they do not match."""
    error: ExpressionFault | None = None
    """Why: of the expression as a whole, or the first of a session."""


@method("views/evaluate", result=Evaluated, right="read")
@frozen(kw_only=True)
class EvaluateView(Ref):
    """Which sessions an expression matches, saved or not."""

    expression: str


@notification("views/didReorder")
@frozen(kw_only=True)
class ViewsDidReorder(Change):
    """The views stand in this order now."""

    ids: tuple[str, ...]
