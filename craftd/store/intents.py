"""What was begun and takes several commits, kept in the daemon's own folder so that the next start can finish it."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from craftd.model import json_text
from craftd.model.records import Record
from craftd.store import atomic, disk
from craftd.store.atomic import DirectoryNotFlushed

log = logging.getLogger(__name__)

FOLDER = "intents"


def keep(state: Path, workspace: str, record: Record) -> Path:
    """Write down *record* durably. Raises: OSError; nothing is left then."""
    folder = state / FOLDER
    if not folder.is_dir():
        disk.make_directory(folder, 0o700)
        disk.flush_directory(state)
    path = folder / f"{workspace}.{token_hex(8)}.json"
    try:
        atomic.replace(path, json_text.dumps({"workspace": workspace, **record}), mode=0o600)
    except DirectoryNotFlushed:
        with suppress(OSError):
            disk.remove(path)  # who asked is told that it failed: no later start may carry it out
        raise
    return path


def kept(state: Path, workspace: str) -> dict[Path, Any]:
    """What was written down for *workspace*; what cannot be read is left where it is."""
    found = {}
    for path in sorted((state / FOLDER).glob(f"{workspace}.*.json")):
        try:
            record = json_text.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            log.warning("%s cannot be read: %s", path, error)
            continue
        if isinstance(record, dict) and record.get("workspace") == workspace:
            found[path] = record
    return found


def drop(path: Path) -> None:
    """It is done. Raises: OSError."""
    disk.remove(path)
    disk.flush_directory(path.parent)
