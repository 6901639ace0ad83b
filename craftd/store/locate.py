"""Find a transcript's file and read it while other programs replace it.

The app saves by removing `session.jsonl` and then renaming `session.jsonl.tmp`, so a missing file is usually back
within 5 ms. If the app died in between, the complete `.tmp` is the session. One that is not complete is it, too, once
nobody can be writing it any more: the power went. Source: app 0.11.1, measured.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from craftd.store import atomic, disk
from craftd.store.atomic import Fingerprint
from craftd.store.lines import Body, Scan, read_head, scan
from craftd.store.sound import Sound, scan_sound
from craftd.store.table import Damage, Table

ABSENCE_MS: Final = 100
"""How long a missing file may still be on its way."""

GIVEN_UP_MS: Final = 60_000
"""Age from which half of a `.tmp` is all that there will ever be of it."""

SCAN_ATTEMPTS: Final = 3
"""How often a file that grows while it is read is read again; then what was there at the beginning is taken."""


def locate(path: Path) -> Path:
    """*path*, or its `.tmp` if that is usable and the file itself stays away.

    Raises: FileNotFoundError if there is neither.
    """
    rescue = path.with_name(path.name + ".tmp")
    deadline = time.monotonic() + ABSENCE_MS / 1000
    while not path.exists():
        if not rescue.exists():
            # Renamed between the two looks, or there is no such session.
            os.stat(path)
            break
        if time.monotonic() > deadline:
            if not usable(rescue):
                raise FileNotFoundError(2, "neither the file nor a complete .tmp is there", str(path))
            return rescue
        time.sleep(0.001)
    return path


def scan_file(
    actual: Path, name: str, directory: str, known: tuple[Body, Table] | None = None, sound: Sound | None = None
) -> tuple[Fingerprint, Scan]:
    """Everything in the file and the fingerprint that belongs to it. *known*: see `lines.scan`; *sound*: what an
    earlier reading found. Raises: OSError.
    """
    fd = disk.open_read(actual)
    try:
        for _ in range(SCAN_ATTEMPTS):
            before = atomic.of_stat(os.fstat(fd))
            again = None if sound is None else scan_sound(fd, before.size, directory, name, sound)
            found = again or scan(fd, before.size, directory, name, known)
            if atomic.of_stat(os.fstat(fd)) == before:
                break
        # Still growing: what was read is true, and the next comparison with the disk will say that there is more.
        return before, found
    finally:
        disk.close(fd)


def in_linked_folder(path: Path) -> bool:
    return os.path.islink(os.path.dirname(path))


def damage_of_place(path: Path, actual: Path) -> tuple[Damage, ...]:
    """Damage that lies not in the file but in where it is."""
    found: list[Damage] = []
    if actual.name != path.name:
        found.append(Damage("rescued", None, f"read from {actual.name}; {path.name} is missing"))
    if in_linked_folder(path):
        found.append(Damage("linked", None, "the session's folder is a link"))
    return tuple(found)


def usable(rescue: Path) -> bool:
    """Whether a `.tmp` that is alone is a session: its writer had finished, line 1 sound and the last line with its
    end, or has given up.
    """
    try:
        fd = disk.open_read(rescue)
    except OSError:
        return False
    try:
        status = os.fstat(fd)
        size = status.st_size
        if size == 0:
            return False
        if time.time_ns() - status.st_mtime_ns > GIVEN_UP_MS * 1_000_000:
            return True
        return os.pread(fd, 1, size - 1) == b"\n" and read_head(fd, size, "", rescue.parent.name).sound
    except OSError:
        return False
    finally:
        disk.close(fd)
