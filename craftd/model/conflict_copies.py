"""Names that file synchronisers give to the second of two versions they could not put together.

Such a copy is nobody's record: it is reported, so that a person compares it with what it is a copy of. Names that a
person could have chosen count only beside the original.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from attrs import frozen

from craftd.model.ids import is_session_id


@frozen
class Copy:
    """original: the name it is a copy of. program: who names copies like that."""

    original: str
    program: str


_WHO: Final = r"(?:[^()]*['’]s? )?"
_SURE: Final = (
    ("Syncthing", r"\.sync-conflict-\d{8}-\d{6}(?:-[A-Z2-7]{7})?"),
    ("Nextcloud", rf" \({_WHO}conflicted copy \d{{4}}-\d\d-\d\d \d{{6}}\)"),
    ("Nextcloud", r"_conflict-\d{8}-\d{6}"),
    ("Nextcloud", r" \(case clash from [^()]*\)"),
    (
        "Dropbox",
        rf" \({_WHO}(?:conflicted copy|[Cc]ase [Cc]onflict|Selective Sync Conflict|Unicode Encoding Conflict"
        r"|White ?[Ss]pace Conflict)[^()]*\)",
    ),
    ("Synology Drive", r"_[\w-]+_[A-Z][a-z]{2}-\d\d-\d{4,6}-\d{4}_(?:Case)?Conflict"),
    ("Seafile", r" \(SFConflict [^()]*\)"),
    ("pCloud", r" \[conflicted\d*\]"),
    ("Google Drive", r" ?\[Conflict(?: \d+)?\]"),
)
_BESIDE: Final = (
    ("Dropbox", r" \([^()]*(?:[Kk]onflikt|en conflit|en conflicto|in conflitto)[^()]*\)"),
    ("Google Drive", r" \(\d{1,3}\)"),
    ("OneDrive", r"-(?=[A-Z0-9-]*[A-Z])[A-Z0-9][A-Z0-9-]{0,14}(?:-\d{1,3})?"),
    ("iCloud Drive", r" \d{1,3}"),
)
"""Also the names of things that were numbered, or called after a computer."""

_COMPUTER: Final = re.compile(r"(.+)-(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{5,12}(?:-\d{1,3})?", re.ASCII)
"""What Windows calls computers that nobody named: sessions have names in which other ones could occur."""


def _compiled(rows: tuple[tuple[str, str], ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((program, re.compile(rf"{mark}((?:\.[^./ ]+)*)", re.ASCII | re.DOTALL)) for program, mark in rows)


_SURE_NAMES: Final = _compiled(_SURE)
_BESIDE_NAMES: Final = _compiled(_BESIDE)
_HINT: Final = re.compile(r"onflict|case clash| \(?\d|-[A-Z0-9-]*[A-Z]", re.ASCII)
_EDGES: Final = re.compile(r"[ .\[_-]")


def recognise(name: str, is_there: Callable[[str], bool]) -> Copy | None:
    """What the file or folder *name* is a copy of, if it is one; is_there: whether a name is taken beside it."""
    if _HINT.search(name) is None:
        return None
    if (copy := _match(_SURE_NAMES, name, lambda original: True)) is not None:
        return copy
    if is_session_id(name):
        found = _COMPUTER.fullmatch(name)
        return Copy(found[1], "OneDrive") if found is not None and is_there(found[1]) else None
    return _match(_BESIDE_NAMES, name, is_there)


def could_be(name: str) -> bool:
    """Whether something of this name would be taken for a copy, if not now then beside another one."""
    return recognise(name, lambda original: True) is not None


def _match(rows: tuple[tuple[str, re.Pattern[str]], ...], name: str, is_there: Callable[[str], bool]) -> Copy | None:
    for program, pattern in rows:
        for edge in _EDGES.finditer(name, 1):
            found = pattern.fullmatch(name, edge.start())
            if found is not None and is_there(original := name[: found.start()] + found[1]):
                return Copy(original, program)
    return None
