"""Skills as a session has them: of its working directory, of the workspace, of everybody.

Two of the three folders lie outside of what is watched and written: they are read when somebody asks, and kept nowhere.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from craftd.errors import Issue
from craftd.model.skill_levels import Found, stack
from craftd.model.workspaces import plugin_manifest
from craftd.store import files
from craftd.store.files import JsonForm
from craftd.store.layout import SKILL_FOLDERS

SHARED: Final = ".agents"
"""Folder of a home or working directory that has `skills`."""


@frozen(kw_only=True)
class Levels:
    """skills: all of each name, highest level first. plugin: what the model's toolkit calls the workspace."""

    skills: dict[str, list[Found]]
    plugin: str


def read(root: Path, home: str, directory: str | None) -> Levels:
    """directory: absolute, of the session; one that is not there has no skills. In a pool thread."""
    project = {} if directory is None else _outside("project", Path(directory))
    workspace = _level("workspace", root)
    return Levels(skills=stack((project, workspace, _outside("global", Path(home)))), plugin=_plugin(root))


def _outside(level: str, base: Path) -> dict[str, Found]:
    """What a link leads to outside of *base* is not read: it is not known to be a skill."""
    within = os.path.realpath(base)
    found: dict[str, Found] = {}
    for name, one in _level(level, base / SHARED, within).items():
        found[name] = evolve(one, issues=tuple(evolve(issue, path=one.path) for issue in one.issues))
    return found


def _level(level: str, root: Path, within: str | None = None) -> dict[str, Found]:
    found: dict[str, Found] = {}
    for key in SKILL_FOLDERS.keys(root):
        path = root / key / SKILL_FOLDERS.main
        name = path.parent.name
        if within is not None and os.path.commonpath((within, os.path.realpath(path))) != within:
            issue = Issue(path=str(path), message="is a link that leads out of the folder", code="link-outside")
            found[name] = Found(level=level, path=str(path), value={}, sound=False, issues=(issue,))
        elif (document := SKILL_FOLDERS.load(root, key)) is not None:
            [value] = document.records.values()
            found[name] = Found(level=level, path=str(path), value=value, sound=document.sound, issues=document.issues)
    return found


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
