"""What was known of a workspace when the daemon last stopped: saves reading every file at the next start, and tells
what changed on disk meanwhile.

One JSON file in the daemon's own folder, never in the workspace. A session's row holds the fingerprint of the file it
came from and stands for it only while that is the file's still; if not, it is what people last saw. Missing, old or
damaged: everything is read again, and nothing counts as changed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
from attrs import define

from craftd.model import json_text
from craftd.model.records import Record
from craftd.store import atomic, disk
from craftd.store.atomic import Fingerprint
from craftd.store.lines import Body
from craftd.workspace.rows import Place, SessionRow

log = logging.getLogger(__name__)

FORM: Final = 5
"""Of the file; another number is thrown away."""

_BIG: Final = 1 << 63

Documents = dict[str, dict[str, dict[str, Record]]]
"""Published records: noun -> document -> id -> value."""


@define
class Known:
    """sessions: rows as they were, by id. documents: records of the nouns with small files."""

    sessions: dict[str, SessionRow]
    documents: Documents


def read(path: Path, place: Place) -> Known | None:
    """None on any doubt."""
    try:
        content = _parsed(path.read_bytes())
        if content["form"] != FORM or content["root"] != str(place.root):
            return None
        documents = json_text.loads(content["documents"])
        return Known({row[0]: _row(row, place) for row in content["sessions"]}, documents)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None


def _parsed(data: bytes) -> Any:
    """No number of the file has more than 64 bits: what people wrote is text inside of it."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:  # half a surrogate pair in a preview
        return json_text.loads(data)


def write(path: Path, place: Place, rows: Iterable[SessionRow], documents: Mapping[str, Any]) -> None:
    """Failing to write it costs time at the next start, nothing else."""
    content = {
        "form": FORM,
        "root": str(place.root),
        "sessions": [_from_row(row) for row in rows if row.fingerprint is not None and abs(row.at) < _BIG],
        "documents": json_text.dumps(documents).decode(),
    }
    try:
        if not path.parent.is_dir():
            disk.make_directory(path.parent, 0o700)
        atomic.replace(path, json_text.dumps(content), mode=0o600)
    except OSError as error:
        log.warning("the cache of sessions was not written: %s", error)


def _from_row(row: SessionRow) -> list[Any]:
    mark, body = row.fingerprint, row.body
    assert mark is not None
    return [
        row.id,
        [mark.device, mark.inode, mark.size, mark.links, mark.mtime_ns],
        row.header.decode(),
        row.at,
        row.derived,
        list(row.damage),
        None if body is None else [body.digest, body.length],
        row.lines,
    ]


def _row(cached: list[Any], place: Place) -> SessionRow:
    id, (device, inode, size, links, mtime_ns), header, at, derived, damage, body, lines = cached
    mark = Fingerprint(device, inode, size, mtime_ns, links)
    known = None if body is None else Body(*body)
    return SessionRow(id, place, header.encode(), mark, at, derived, tuple(damage), known, lines)
