"""What was known of all sessions when the daemon last stopped: saves reading every file at the next start.

One JSON file in the daemon's own folder, never in the workspace. Each row holds the fingerprint of the file it came
from and counts only while that is the file's still. Missing, old or damaged: everything is read again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from craftd.model import json_text
from craftd.store import atomic, disk
from craftd.store.atomic import Fingerprint
from craftd.store.lines import Body
from craftd.workspace.rows import Place, SessionRow

log = logging.getLogger(__name__)

FORM: Final = 1
"""Of the file; another number is thrown away."""


def read(path: Path) -> dict[str, list[Any]]:
    """Rows by session id; empty on any doubt."""
    try:
        content = json_text.loads(path.read_bytes())
        if content["form"] != FORM:
            return {}
        return {row[0]: row for row in content["sessions"]}
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return {}


def write(path: Path, rows: Iterable[SessionRow]) -> None:
    """Failing to write it costs time at the next start, nothing else."""
    content = {"form": FORM, "sessions": [_from_row(row) for row in rows if row.fingerprint is not None]}
    try:
        if not path.parent.is_dir():
            disk.make_directory(path.parent, 0o700)
        atomic.replace(path, json_text.dumps(content))
    except OSError as error:
        log.warning("the cache of sessions was not written: %s", error)


def _from_row(row: SessionRow) -> list[Any]:
    mark = row.fingerprint
    assert mark is not None
    return [
        row.id,
        [mark.device, mark.inode, mark.size, mark.mtime_ns, mark.links],
        row.header.decode(),
        row.at,
        row.derived,
        list(row.damage),
        None if row.body is None else [row.body.digest, row.body.length],
    ]


def row_from(cached: list[Any], place: Place, found: Fingerprint) -> SessionRow | None:
    """The row, if it was read from the file that is there now; None if not."""
    try:
        id, mark, header, at, derived, damage, body = cached
        if Fingerprint(*mark) != found:
            return None
        known = None if body is None else Body(*body)
        return SessionRow(id, place, header.encode(), found, at, derived, tuple(damage), known)
    except (TypeError, ValueError, AttributeError):
        return None
