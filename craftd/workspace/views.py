"""Which sessions a view expression matches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from craftd.model import sessions
from craftd.model.expressions import Expression, ExpressionError, parse
from craftd.model.views import context_of

if TYPE_CHECKING:
    from craftd.workspace.rows import SessionRow
    from craftd.workspace.workspace import Workspace

SECONDS: Final = 2.0
"""Time for one expression and all sessions; patterns can take long without being too slow for a single one."""


@define(eq=False)
class Sieve:
    """Says of sessions whether they match. error: the first failure; failed: how many sessions have one.

    active: ids of the sessions at work; now: ms since 1970.
    """

    expression: Expression
    active: frozenset[str]
    now: int
    error: ExpressionError | None = None
    failed: int = 0
    _until: float = field(factory=lambda: time.monotonic() + SECONDS)

    def __call__(self, row: SessionRow) -> bool:
        try:
            if self.error is not None and self.error.code == "too-slow":
                raise self.error
            if time.monotonic() > self._until:
                raise ExpressionError(0, "takes too long for so many sessions", "too-slow")
            shown = {**row.value, "sessionStatus": sessions.status_of(row.value)}
            return self.expression.matches(context_of(shown, processing=row.id in self.active), self.now)
        except ExpressionError as error:
            self.error = self.error if self.error is not None and error.code != "too-slow" else error
            self.failed += 1
            return False


def sieve(workspace: Workspace, expression: Any) -> Sieve:
    """Raises: ExpressionError for what cannot be evaluated for any session."""
    if not isinstance(expression, str):
        raise ExpressionError(0, "is no text")
    parsed = parse(expression)
    for error in parsed.unknown_functions():
        raise error
    return Sieve(parsed, workspace.place.live.sessions("running", "waiting"), workspace.now())


@frozen
class Evaluated:
    """sessions: ids of those that match, the latest first."""

    sessions: tuple[str, ...]
    failed: int = 0
    error: ExpressionError | None = None


async def evaluate(workspace: Workspace, expression: str) -> Evaluated:
    """Of the sessions there are now."""
    try:
        matches = sieve(workspace, expression)
    except ExpressionError as error:
        return Evaluated((), 0, error)

    def work(rows: list[SessionRow]) -> tuple[str, ...]:
        found = sorted(filter(matches, rows), key=lambda row: (-row.at, row.id))
        return tuple(row.id for row in found)

    return Evaluated(await workspace.in_pool(work, list(workspace.sessions)), matches.failed, matches.error)
