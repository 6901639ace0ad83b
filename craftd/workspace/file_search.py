"""Files by name, below one folder: read when somebody asks, level by level."""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from typing import Final

from attrs import define, field, frozen

from craftd.errors import CraftdError, InvalidParams, InvalidState, NotFound, Ref
from craftd.model.search import LONGEST_QUERY
from craftd.store.scan import Stop
from craftd.workspace import browse
from craftd.workspace.files import Ground

LIMIT: Final = 50
MOST: Final = 500
MOST_NAMES: Final = 200_000
SECONDS: Final = 5.0


@frozen
class FoundFiles:
    """items: JSON texts."""

    items: list[bytes]
    searched: int
    stopped: str | None


def limit(given: int | None) -> int:
    """Raises: InvalidParams."""
    if given is not None and given < 1:
        raise InvalidParams.of("limit", "must be at least 1")
    return LIMIT if given is None else min(given, MOST)


@define(eq=False)
class Looking:
    """One search."""

    parts: tuple[str, ...]
    query: str
    limit: int
    stop: Stop = field(factory=Stop)

    def run(self, ground: Ground) -> FoundFiles:
        """In a pool thread. Of blanks alone nothing is found.

        Raises: NotFound, Forbidden, InvalidState (no folder), InvalidParams; Stopped.
        """
        if len(self.query) > LONGEST_QUERY:
            raise InvalidParams.of("query", f"must have at most {LONGEST_QUERY} characters")
        sought, in_path = self.query.casefold(), "/" in self.query
        folders, items, searched = deque([self.parts]), list[bytes](), 0
        deadline = time.monotonic() + SECONDS
        while folders:
            folder = folders.popleft()
            for name, status in sorted(self._names(ground, folder)):
                searched += 1
                path = (*folder, name)
                below = "/".join(path[len(self.parts) :]) if in_path else name
                if sought.strip() and sought in below.casefold():
                    if len(items) == self.limit:
                        return FoundFiles(items, searched, "limit")
                    items.append(browse.row(ground, path, status).text())
                if stat.S_ISDIR(status.st_mode):
                    folders.append(path)
            if searched > MOST_NAMES:
                return FoundFiles(items, searched, "many")
            if time.monotonic() > deadline:
                return FoundFiles(items, searched, "time")
        return FoundFiles(items, searched, None)

    def _names(self, ground: Ground, folder: tuple[str, ...]) -> list[tuple[str, os.stat_result]]:
        """Raises: as `run`, for the folder it begins with; others may go, or be closed to us."""
        self.stop.check()
        path = "/".join(folder)
        try:
            with ground.found(folder) as spot:
                if spot.status is None:
                    raise NotFound(Ref("files", path))
                if not stat.S_ISDIR(spot.status.st_mode):
                    raise InvalidState(f"{path} is no folder", "file", ("files/read",), Ref("files", path))
                return list(browse.visible(ground, spot))
        except (CraftdError, OSError):
            if folder == self.parts:
                raise
            return []
