"""Which noun lives in which file of a workspace. Adding a noun with small files is one row here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from craftd.model.labels import LABELS
from craftd.model.projects import PROJECTS
from craftd.model.skills import SKILLS
from craftd.model.sources import SOURCES
from craftd.model.statuses import STATUSES
from craftd.store.entries import Entries
from craftd.store.files import Shelf
from craftd.store.folders import Folders
from craftd.store.frontmatter import MatterForm

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
    Folders(
        noun=SKILLS,
        folder="skills",
        main="SKILL.md",
        form=MatterForm(body="content", texts=frozenset({"name", "description"})),
    ),
    Entries(
        noun=STATUSES,
        file="statuses/config.json",
        member="statuses",
        around={"version": 1, "statuses": [], "defaultStatusId": "todo"},
    ),
    Entries(
        noun=LABELS,
        file="labels/config.json",
        member="labels",
        around={"version": 1, "labels": []},
        children="children",
    ),
)

SHELVES: dict[str, Shelf] = {shelf.noun.name: shelf for shelf in _SHELVES}
"""By the noun's name."""


def written_folders(root: Path) -> Iterator[Path]:
    """Every folder of the workspace *root* in which craftd makes or replaces something."""
    yield root
    yield root / ".claude-plugin"
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
