"""Which noun lives in which file of a workspace. Adding a noun with small files is one row here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from craftd.errors import Issue
from craftd.model import app_config, automations, permissions, statuses, workspaces
from craftd.model.app_records import PREFERENCES
from craftd.model.checks import shape, whole
from craftd.model.drafts import DRAFTS, is_draft
from craftd.model.labels import LABELS, ids_in
from craftd.model.permission_defaults import DEFAULTS
from craftd.model.permissions import PERMISSIONS
from craftd.model.projects import PROJECTS
from craftd.model.records import Record
from craftd.model.skills import SKILLS
from craftd.model.sources import SOURCES
from craftd.model.statuses import STATUSES
from craftd.model.views import VIEWS, of_smart_labels
from craftd.store import files, task_file
from craftd.store.checked import Checked, Kind, json
from craftd.store.entries import Entries
from craftd.store.files import JsonForm, Shelf
from craftd.store.folders import TRASH, Folders
from craftd.store.frontmatter import MatterForm
from craftd.store.members import Members
from craftd.store.singles import Singles

_versioned = shape({"version": whole})


def _check_rules(value: Any, level: str) -> Iterator[Issue]:
    return permissions.check(value, "", level)


SKILL_FOLDERS = Folders(
    noun=SKILLS,
    folder="skills",
    main="SKILL.md",
    form=MatterForm(body="content", texts=frozenset({"name", "description"})),
)


def _smart_labels(root: Path) -> list[Record]:
    try:
        found = files.read(root / "labels/config.json")
    except files.Unreadable:
        return []
    parsed = None if found is None else JsonForm().parse(found[0])
    return [] if parsed is None or parsed.problems else of_smart_labels(parsed.value)


_SHELVES: tuple[Shelf, ...] = (
    Folders(
        noun=PROJECTS,
        folder="projects",
        main="config.json",
        slug="slug",
        paths=(("workingDirectory",),),
        inside=("assets",),
    ),
    Folders(
        noun=SOURCES,
        folder="sources",
        main="config.json",
        slug="slug",
        texts={"guide": "guide.md"},
        paths=(("local", "path"),),
    ),
    SKILL_FOLDERS,
    Entries(
        noun=STATUSES,
        file="statuses/config.json",
        member="statuses",
        around={"version": 1, "statuses": [], "defaultStatusId": "todo"},
        naming="defaultStatusId",
        check=statuses.check_file,
    ),
    Entries(
        noun=LABELS,
        file="labels/config.json",
        member="labels",
        around={"version": 1, "labels": []},
        children="children",
        check=lambda file: _versioned(file, ""),
    ),
    Entries(
        noun=VIEWS,
        file="views.json",
        member="views",
        around={"version": 1, "views": []},
        inherited=_smart_labels,
        check=lambda file: _versioned(file, ""),
    ),
    Singles(
        noun=PERMISSIONS,
        fixed={permissions.WORKSPACE: "permissions.json"},
        rooms={permissions.SOURCE: ("sources", "permissions.json")},
        check=_check_rules,
    ),
)

SHELVES: dict[str, Shelf] = {shelf.noun.name: shelf for shelf in _SHELVES}
"""By the noun's name."""

DEFAULT_RULES = Singles(
    noun=PERMISSIONS,
    fixed={permissions.DEFAULT: "permissions/default.json"},
    check=_check_rules,
    absent={permissions.DEFAULT: DEFAULTS},
)
"""Of the configuration folder."""

PREFERENCES_SHELF = Singles(
    noun=PREFERENCES,
    fixed={PREFERENCES.name: "preferences.json"},
    check=lambda value, id: iter(app_config.check_preferences(value)),
    form=JsonForm(),
)
"""Of the configuration folder."""


DRAFTS_SHELF = Members(
    noun=DRAFTS,
    file="drafts.json",
    member="drafts",
    stamp="updatedAt",
    usable=is_draft,
    check=app_config.check_drafts,
)
"""Of the configuration folder."""


_SINGLE_FILES = {
    "config.json": "workspaces",
    "views.json": "views",
    "permissions.json": "permissions",
    "automations.json": "automations",
    "automations-history.jsonl": "automations",
    "automations-retry-queue.jsonl": "automations",
    "events.jsonl": "automations",
}
"""Files at the top of a workspace that hold records."""

_FILES_IN_FOLDERS = {
    ("sessions", "session.jsonl"): "sessions",
    ("sessions", "session.jsonl.tmp"): "sessions",
    ("sources", "permissions.json"): "permissions",
    ("tasks", "task.yaml"): "tasks",
    ("tasks", "task.yml"): "tasks",
    ("tasks", "runs"): "runs",
}
"""The same in the folder of a record; a folder stands for everything in it."""

_RECORD_ROOMS = frozenset({"sessions", "projects", "skills", "sources", "tasks"})
"""Folders in which every folder is a record."""


def noun_of(parts: tuple[str, ...]) -> str | None:
    """The noun whose records lie in this file, None for a file like any other. Case does not matter: on some file
    systems another spelling is the same file.
    """
    folded = tuple(part.casefold() for part in parts)
    if len(folded) == 1:
        return _SINGLE_FILES.get(folded[0])
    for shelf in _SHELVES:
        if isinstance(shelf, Entries):
            if "/".join(folded) == shelf.file.casefold():
                return shelf.noun.name
        elif isinstance(shelf, Folders) and len(folded) == 3 and folded[0] == shelf.folder:
            files = {file.casefold() for file in (shelf.main, *shelf.texts.values())}
            if folded[2] in files:
                return shelf.noun.name
    return _FILES_IN_FOLDERS.get((folded[0], folded[2])) if len(folded) > 2 else None


def record_of(parts: tuple[str, ...]) -> tuple[str, str] | None:
    """Noun and folder of the record to whose folder the path belongs."""
    return (parts[0], parts[1]) if len(parts) > 1 and parts[0] in _RECORD_ROOMS else None


def standing(parts: tuple[str, ...]) -> int:
    """How many of the folders above the file *parts* must be there; those below are made when it is written.

    A folder in a room of records would be a record, and what else lies at the top of a workspace is not ours.
    """
    if parts[:2] == ("statuses", "icons"):
        return 1
    return 2 if record_of(parts) is not None else len(parts) - 1


def written_folders(root: Path) -> Iterator[Path]:
    """Every folder of the workspace *root* in which craftd makes or replaces something."""
    yield root
    yield root / ".claude-plugin"
    yield root / TRASH
    for shelf in SHELVES.values():
        if isinstance(shelf, Entries):
            yield (root / shelf.file).parent
    for room in ("sessions", *(shelf.folder for shelf in SHELVES.values() if isinstance(shelf, Folders))):
        yield root / room
        try:
            with os.scandir(root / room) as entries:
                inside = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        yield from (root / room / name for name in inside)


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _check_automations(value: Any, beside: Mapping[str, Any]) -> list[Issue]:
    known = ids_in(beside["labels/config.json"])
    return automations.check(value, automations.Around(zones=_zones(), labels=known))


def _check_task(data: bytes, beside: Mapping[str, Any]) -> list[Issue]:
    return task_file.check(data)


CHECKED = Checked(
    kinds=(
        Kind(noun="workspaces", pattern="config.json", check=json(workspaces.check)),
        Kind(
            noun="automations",
            pattern="automations.json",
            check=json(_check_automations, bom=False),
            beside=("labels/config.json",),
        ),
        Kind(noun="tasks", pattern="tasks/*/task.yaml", check=_check_task),
        Kind(noun="tasks", pattern="tasks/*/task.yml", check=_check_task),
    ),
    copies=True,
)
"""What else of a workspace is looked at: with the shelves and the transcripts, every kind of file that it has."""

HOME_CHECKED = Checked(
    kinds=(
        Kind(noun="workspaces", pattern="config.json", check=json(app_config.check_config)),
        Kind(noun="settings", pattern="config-defaults.json", check=json(app_config.check_defaults)),
        Kind(noun="settings", pattern="theme.json", check=json(app_config.check_theme)),
        Kind(noun="settings", pattern="tool-icons/tool-icons.json", check=json(app_config.check_tool_icons)),
    )
)
"""The same of the configuration folder."""
