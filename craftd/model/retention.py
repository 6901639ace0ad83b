"""What goes by itself, where the settings of a workspace say so; they say nothing unless somebody wants it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from attrs import frozen

from craftd.errors import Issue
from craftd.model.checks import nullable, shape
from craftd.model.records import Record

MEMBER: Final = "retention"
ARCHIVED: Final = "archivedDays"
TRASH: Final = "trashDays"


def is_days(value: Any) -> bool:
    """Whether something may go after so many days: never at once, never by mistake."""
    return type(value) in (int, float) and math.isfinite(value) and value > 0


def _days(value: Any, path: str) -> Iterator[Issue]:
    if not is_days(value):
        yield Issue(path=path, message="must be a number of days, more than 0", code="schema")


CHECK: Final = nullable(shape({ARCHIVED: nullable(_days), TRASH: nullable(_days)}))


@frozen
class Wanted:
    """After how many days; None = never. archived: sessions go to the trash; trash: what is in there goes for good."""

    archived: float | None = None
    trash: float | None = None

    @classmethod
    def of(cls, config: Record) -> Wanted:
        """What the `config.json` of a workspace says; a value that is wrong says nothing."""
        told = config.get(MEMBER)
        if not isinstance(told, dict):
            return cls()
        archived, trash = (told.get(name) if is_days(told.get(name)) else None for name in (ARCHIVED, TRASH))
        return cls(archived, trash)
