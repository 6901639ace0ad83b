"""Skills as a session has them: of its working directory, of the workspace, of everybody.

Two of the three folders lie outside of what is watched and written: they are read when somebody asks, and kept nowhere.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from attrs import define, evolve, frozen

from craftd.errors import Issue
from craftd.model.skill_levels import Found, stack
from craftd.model.workspaces import plugin_manifest
from craftd.store import atomic, files, frontmatter
from craftd.store.files import JsonForm
from craftd.store.layout import SKILL_FOLDERS
from craftd.workspace.registry import can_be_path

SHARED: Final = ".agents"
"""Folder of a home or working directory that has `skills`."""

MOST: Final = 1_000
"""Skills of one level outside of the workspace that are looked at, the first by name."""

LARGEST: Final = 256 * 1024
TOGETHER: Final = 4 * 1024 * 1024
"""Bytes of one of them, of all: they are read anew each time, and nobody has asked for most of them."""

MATTER: Final = 16 * 1024
MATTER_TOGETHER: Final = 128 * 1024
"""The same of their front matter: a list of 8,000 names takes a second to parse."""

ISSUES: Final = 20
"""Of one of them: a list of a thousand wrong members needs no line for each."""


@frozen(kw_only=True)
class Levels:
    """skills: all of each name, highest level first. plugin: what the model's toolkit calls the workspace.

    issues: why some were not looked at.
    """

    skills: dict[str, list[Found]]
    plugin: str
    issues: tuple[Issue, ...] = ()


def read(root: Path, home: str, directory: str | None) -> Levels:
    """directory: of the session; one that is not absolute or not there has no skills. In a pool thread."""
    issues: list[Issue] = []
    project: dict[str, Found] = {}
    if directory is not None and os.path.isabs(directory) and can_be_path(directory):
        project = _outside("project", Path(directory), issues)
    workspace = {
        key.rpartition("/")[2]: one for key in SKILL_FOLDERS.keys(root) if (one := _load("workspace", root, key))
    }
    levels = (project, workspace, _outside("global", Path(home), issues))
    return Levels(skills=stack(levels), plugin=_plugin(root), issues=tuple(issues))


def _outside(level: str, base: Path, issues: list[Issue]) -> dict[str, Found]:
    """What a link leads to outside of *base* is not read: it is not known to be a skill. Adds to *issues*."""
    root, within = base / SHARED, os.path.realpath(base)
    found: dict[str, Found] = {}
    keys, room = SKILL_FOLDERS.keys(root), _Room()
    if len(keys) > MOST:
        said = f"has {len(keys)} folders: only the first {MOST} are looked at"
        issues.append(Issue(path=str(root / SKILL_FOLDERS.folder), message=said, code="too-many"))
    for key in keys[:MOST]:
        path = root / key / SKILL_FOLDERS.main
        one: Found | None
        if os.path.commonpath((within, os.path.realpath(path))) != within:
            one = _unread(level, path, "is a link that leads out of the folder", "link-outside")
        elif (message := room.refuse(path)) is not None:
            one = _unread(level, path, message, "too-large")
        else:
            one = _load(level, root, key)
        if one is not None:
            told = tuple(evolve(issue, path=one.path) for issue in one.issues[:ISSUES])
            found[path.parent.name] = evolve(one, issues=told)
    return found


@define
class _Room:
    """What may still be read of one level."""

    size: int = TOGETHER
    matter: int = MATTER_TOGETHER

    def refuse(self, path: Path) -> str | None:
        """Why the file is not read, or None: then its bytes are taken off. What cannot be read costs nothing."""
        mark = atomic.glance(path)
        if mark is None:
            return None
        if mark.size > LARGEST:
            return f"is larger than {LARGEST} bytes"
        if mark.size > self.size:
            return f"is not read: it and those before it have more than {TOGETHER} bytes"
        try:
            read = files.read(path)
        except files.Unreadable:
            return None
        data = b"" if read is None else read[0]
        matter = len(frontmatter.split(data).matter)
        if matter > MATTER:
            return f"front matter longer than {MATTER} bytes; is its closing line missing?"
        if matter > self.matter:
            return f"is not read: its front matter and that before it have more than {MATTER_TOGETHER} bytes"
        self.size -= len(data)
        self.matter -= matter
        return None


def _load(level: str, root: Path, key: str) -> Found | None:
    document = SKILL_FOLDERS.load(root, key)
    if document is None:
        return None
    [value] = document.records.values()
    path = str(root / key / SKILL_FOLDERS.main)
    return Found(level=level, path=path, value=value, sound=document.sound, issues=document.issues)


def _unread(level: str, path: Path, message: str, code: str) -> Found:
    issue = Issue(path=str(path), message=message, code=code)
    return Found(level=level, path=str(path), value={}, sound=False, issues=(issue,))


def _plugin(root: Path) -> str:
    """Where the file is missing, the app writes it with this name."""
    given = _name_in(root / ".claude-plugin" / "plugin.json")
    return given or str(plugin_manifest(_name_in(root / "config.json") or root.name)["name"])


def _name_in(path: Path) -> str | None:
    try:
        read = files.read(path)
    except files.Unreadable:
        return None
    value = None if read is None else JsonForm().parse(read[0]).value
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) and name else None
