"""The rules files of a scope, and what the rules of all levels say about one call of a tool."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from craftd.errors import InvalidParams, NotFound, Ref
from craftd.model import rules, verdicts
from craftd.model.permissions import DEFAULT, PERMISSIONS, SOURCE, WORKSPACE, Mode
from craftd.model.records import Item, Record
from craftd.model.verdicts import Decision, Places
from craftd.workspace.changes import UpdateRecord, check_patch
from craftd.workspace.journal import Origin

if TYPE_CHECKING:
    from craftd.workspace.home import Home
    from craftd.workspace.workspace import Workspace

NAME = PERMISSIONS.name


def item(scope: Workspace | Home, id: str) -> Item:
    """Raises: InvalidParams, NotFound."""
    _check_id(id)
    row = scope.tables[NAME].find(id)
    if row is None:
        raise NotFound(Ref(NAME, id, scope.id))
    return row.item()


def change(
    scope: Workspace | Home, id: str, patch: Any, expected: str | None, origin: Origin, connection: object
) -> UpdateRecord:
    """The commit that changes the rules of level *id*. Raises: InvalidParams, NotFound."""
    _check_id(id)
    return UpdateRecord(
        origin=origin,
        connection=connection,
        noun=PERMISSIONS,
        key=scope.tables[NAME].shelf.key_for(id, {}),
        id=id,
        workspace=scope.id,
        facts=scope.facts(),
        patch=check_patch(patch),
        expected=expected,
    )


def _check_id(id: str) -> None:
    if PERMISSIONS.id_pattern.fullmatch(id) is None:
        raise InvalidParams.of("id", f"is no level: {DEFAULT}, {WORKSPACE} or {SOURCE}<slug>")


@frozen(kw_only=True)
class Question:
    """Everything a decision needs, as it is in this moment. folder: of the session, None without one."""

    files: tuple[tuple[str, Record], ...]
    home: str
    cwd: str | None
    folder: Path | None

    def decide(self, mode: Mode, tool: str, input: Mapping[str, Any]) -> Decision:
        """Looks at links on the disk and may take a while: for a thread."""
        places = Places(home=self.home, cwd=self.cwd, writable=self._writable(), real=os.path.realpath)
        return verdicts.decide(mode, tool, input, rules.merge(self.files), places)

    def _writable(self) -> tuple[str, ...]:
        """A `plans` or `data` that is a link out of the session is not the session's."""
        if self.folder is None:
            return ()
        real = os.path.realpath(self.folder)
        return tuple(
            found for name in ("plans", "data") if (found := os.path.realpath(f"{real}/{name}")).startswith(f"{real}/")
        )


def question(home: Home, workspace: Workspace | None, session: str | None) -> Question:
    """The rules of the shared configuration, of *workspace*, and of the sources of *session*.

    Raises: InvalidParams, NotFound.
    """
    value: Record = {}
    folder = None
    if workspace is not None and session is not None:
        row = workspace.session(session, "session")
        value, folder = row.value, row.place.folder(row.id)
    slugs = value.get("enabledSourceSlugs")
    sources = sorted({slug for slug in slugs if isinstance(slug, str)}) if isinstance(slugs, list) else []
    levels = [WORKSPACE, *(f"{SOURCE}{slug}" for slug in sources)]
    files = [(row.id, row.value) for row in home.tables[NAME].index]
    if workspace is not None:
        rows = (workspace.tables[NAME].index.get(level) for level in levels)
        files += [(row.id, row.value) for row in rows if row is not None]
    works_in = value.get("workingDirectory")
    if not isinstance(works_in, str):
        works_in = None if workspace is None else str(workspace.place.root)
    return Question(files=tuple(files), home=home.around.home, cwd=works_in, folder=folder)
