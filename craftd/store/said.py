"""What line 1 said before each of our changes: a foreign save knows only what was there when its bytes were written.

Programs write beside and then rename. Who wrote before our change and renames after it did not undo it.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Final

from craftd.model.records import Record

REMEMBERED_CHANGES: Final = 64
"""Of line 1. Between writing and renaming of a program lie milliseconds."""

_CLOCK: Final = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
"""That of the file system, where there is such a one."""


class Said:
    """One transcript's."""

    def __init__(self) -> None:
        self._until: deque[tuple[int, Record]] = deque(maxlen=REMEMBERED_CHANGES)

    def replaced(self, header: Record) -> None:
        """*header* has been there up to now."""
        self._until.append((time.clock_gettime_ns(_CLOCK), header))

    def at(self, mtime_ns: int) -> Record | None:
        """What was there when a file was written; None: what is there now."""
        return next((header for until, header in self._until if mtime_ns <= until), None)
