"""Purging by itself: once an hour, and when the settings of the workspace change, if they want it."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from attrs import define, field

from craftd.errors import CraftdError
from craftd.model.retention import Wanted
from craftd.workspace import trash
from craftd.workspace.journal import DAEMON

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace

log = logging.getLogger(__name__)

EVERY: Final = 3600.0
"""Seconds."""


@define(eq=False)
class Retention:
    """Of one open workspace. Nothing is written, and no lock taken, unless something is due."""

    workspace: Workspace
    _done: Wanted = field(factory=Wanted)
    _at: float = 0.0
    _task: asyncio.Task[None] | None = None

    def keep_house(self) -> None:
        """Begin, if it is time."""
        wanted = Wanted.of(self.workspace.around.above(self.workspace.id).workspace)
        now = time.monotonic()
        if wanted == Wanted():
            self._done = wanted
        if wanted == Wanted() or (self._task is not None and not self._task.done()):
            return
        if wanted != self._done or now - self._at >= EVERY:
            self._done, self._at = wanted, now
            self._task = self.workspace.supervise(self._run(wanted))

    async def _run(self, wanted: Wanted) -> None:
        workspace = self.workspace
        try:
            if wanted.trash is not None:
                before = trash.moment(wanted.trash, workspace.now())
                reads = frozenset({"sessions/"})
                await trash.empty(workspace, trash.EmptyTrash(origin=DAEMON, reads=reads, names=None, before=before))
            if wanted.archived is not None:
                before = trash.moment(wanted.archived, workspace.now())
                await trash.purge(workspace, trash.due(workspace, before), before, DAEMON)
        except CraftdError as error:
            log.warning("%s is not purged: %s", workspace.place.root, error)
