"""A change of many records: several commits, a few at a time, so that other clients have their turn in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from craftd.errors import IoError
from craftd.workspace.commit import Done
from craftd.workspace.sessions import SessionCommit

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace

AT_ONCE: Final = 200
"""Records of one part; a change of no more has no progress."""


async def in_parts(workspace: Workspace, commits: Sequence[SessionCommit], told: Callable[[int], None]) -> list[Any]:
    """Carry out all *commits*; their answers. *told* how many are done, after each part. The first is queued at once.

    Raises: the first failure, after its part: what is done stays done. IoError says how much that is.
    """
    answers: list[Any] = []
    for start in range(0, len(commits), AT_ONCE):
        part = [workspace.submit(commit) for commit in commits[start : start + AT_ONCE]]
        results = await asyncio.gather(*part, return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        done = start + len(part) - len(failures)
        if failures:
            if isinstance(failures[0], IoError):
                failures[0].done, failures[0].left = done, len(commits) - done
            raise failures[0]
        told(done)
        answers += [result.answer for result in results if isinstance(result, Done)]
    return answers
