"""Conflict copies of file synchronisers in a workspace: where they would count as something of its own.

Looked for are copies of the files and folders of records, and of what lies in the folder of a session. Whatever else
people keep beside them, and call as they like, is theirs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

from craftd.errors import Issue
from craftd.model.conflict_copies import Copy, could_be, recognise

ROOMS: Final = ("sessions", "projects", "skills", "sources", "tasks")
"""Folders in which every folder is a record."""
CODE: Final = "conflict-copy"

_TOP: Final = frozenset({"config.json", "views.json", "permissions.json", "automations.json"})
_LISTS: Final = ("labels", "statuses")
_MAIN: Final = frozenset({"config.json", "guide.md", "permissions.json", "SKILL.md", "task.yaml", "task.yml"})


def is_copy(folder: str, name: str) -> bool:
    """Whether *name* in *folder* is a copy of something else there."""
    return recognise(name, lambda original: os.path.lexists(f"{folder}/{original}")) is not None


def counts(path: str) -> bool:
    """Whether *path*, relative to the workspace, may be one: by its name and place alone."""
    parts = path.split("/")
    return could_be(parts[-1]) and _place(parts)


@frozen
class Found:
    """A copy that is there. original: what it is one of, which need not be there."""

    original: str
    issue: Issue


def at(root: Path, path: str) -> Found | None:
    """What *path*, relative to the workspace *root*, is a copy of; None of what is none, or is not there."""
    *above, name = parts = path.split("/")
    if not _place(parts) or not os.path.lexists(root / path):
        return None
    beside = (root / path).parent
    named = len(parts) > 3  # plans are called by people and agents
    copy = recognise(name, lambda original: not named and os.path.lexists(beside / original))
    if copy is None or not _ours(parts, copy):
        return None
    original = "/".join((*above, copy.original))
    record = parts[0] if parts[0] in ROOMS and above else None
    id = None if record is None else copy.original if len(parts) == 2 else parts[1]
    message = (
        f"looks like a conflict copy of {original}, made by {copy.program}: compare them, then remove or rename it"
    )
    return Found(original, Issue(path=path, message=message, severity="warning", code=CODE, noun=record, id=id))


def in_records(root: Path) -> Iterator[str]:
    """Paths of all copies outside of the folders of sessions."""
    yield from _in(root, "")
    for room in (*_LISTS, *ROOMS):
        yield from _in(root, room)
    for room in ROOMS[1:]:
        for name in _names(root / room):
            yield from _in(root, f"{room}/{name}")


def in_sessions(root: Path) -> Iterator[str]:
    """Paths of all copies in the folders of sessions. Looks into each of them."""
    for name in _names(root / "sessions"):
        if is_copy(f"{root}/sessions", name):
            continue
        yield from _in(root, f"sessions/{name}")
        yield from _in(root, f"sessions/{name}/plans")


def _in(root: Path, folder: str) -> Iterator[str]:
    for name in _names(root / folder):
        path = f"{folder}/{name}" if folder else name
        if could_be(name) and at(root, path) is not None:
            yield path


def _names(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return []


def _place(parts: list[str]) -> bool:
    if any(part.startswith(".") for part in parts):
        return False
    room = parts[0]
    return (
        len(parts) == 1
        or (len(parts) == 2 and room in (*ROOMS, *_LISTS))
        or (len(parts) == 3 and room in ROOMS)
        or (len(parts) == 4 and room == "sessions" and parts[2] == "plans")
    )


def _ours(parts: list[str], copy: Copy) -> bool:
    if len(parts) == 1:
        return copy.original in _TOP
    if parts[0] in _LISTS:
        return copy.original == "config.json"
    return parts[0] == "sessions" or len(parts) == 2 or copy.original in _MAIN
