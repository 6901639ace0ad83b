"""Bringing in a bundle: one commit per resource, one after the other; what fails stops nobody else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from attrs import define, evolve, field

from craftd.errors import AlreadyExists, CraftdError, IoError, ReadOnly, ServerCancelled
from craftd.model.bundles import Automation, Folder, OnConflict
from craftd.model.nouns import NOUNS
from craftd.workspace.bundles import FOLDERS, ImportAutomations, ImportFolder, contents_of
from craftd.workspace.journal import Origin

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace

NAMES_TRIED: Final = 100


@define
class Came:
    """What became of the resources of one noun, by their ids in the bundle. renamed: new ids."""

    imported: list[str] = field(factory=list)
    skipped: list[str] = field(factory=list)
    failed: list[tuple[str, CraftdError]] = field(factory=list)
    renamed: dict[str, str] = field(factory=dict)

    def fail(self, id: str, error: CraftdError) -> None:
        """Raises *error* where all that follow would meet it too."""
        if isinstance(error, (IoError, ReadOnly, ServerCancelled)):
            raise error
        self.failed.append((id, error))


@define(eq=False, kw_only=True)
class Importing:
    """forget(slug): secrets kept for a source go, before another one takes its place. told(id): of each resource."""

    workspace: Workspace
    origin: Origin
    connection: object
    on_conflict: OnConflict
    forget: Callable[[str], Awaitable[None]]
    told: Callable[[str], None]

    async def folders(self, noun: str, them: Sequence[Folder]) -> Came:
        """Raises: IoError, ReadOnly, ServerCancelled; what came in before stays."""
        came = Came()
        for one in them:
            self._begin(one.slug)
            try:
                slug = await self._folder(noun, one)
            except AlreadyExists:
                came.skipped.append(one.slug)
            except CraftdError as error:
                came.fail(one.slug, error)
            else:
                came.imported.append(one.slug)
                if slug != one.slug:
                    came.renamed[one.slug] = slug
        return came

    async def _folder(self, noun: str, folder: Folder) -> str:
        """The folder's name. Raises: AlreadyExists if it is not to be imported."""
        contents_of(noun, folder)
        for slug in self._names(folder.slug):
            called = folder if folder.config is None else evolve(folder, config={**folder.config, "slug": slug})
            key = f"{FOLDERS[noun].folder}/{slug}"
            overwrite = self.on_conflict == "overwrite"
            if overwrite and noun == "sources" and os.path.lexists(self.workspace.place.root / key):
                await self.forget(slug)
            commit = ImportFolder(
                origin=self.origin,
                connection=self.connection,
                noun=NOUNS[noun],
                key=key,
                id=slug,
                workspace=self.workspace.id,
                facts=self.workspace.facts(),
                contents=contents_of(noun, called),
                overwrite=overwrite,
            )
            try:
                await self.workspace.commit(commit)
            except AlreadyExists:
                if self.on_conflict == "rename":
                    continue
                raise
            if noun == "sources":  # its rules are records of their own
                self.workspace.hint([str(self.workspace.place.root / key / "permissions.json")])
            return slug
        raise AlreadyExists(commit.ref)

    def _begin(self, id: str) -> None:
        """Raises: CancelledError, if that was asked for while the resource before was being written."""
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        self.told(id)

    def _names(self, slug: str) -> Iterator[str]:
        yield slug
        if self.on_conflict == "rename":
            yield from (f"{slug}-{number}" for number in range(2, NAMES_TRIED))

    async def automations(self, them: tuple[Automation, ...]) -> Came:
        """All of them or none."""
        came = Came()
        if not them:
            return came
        self._begin("automations")
        commit = ImportAutomations(
            origin=self.origin,
            connection=self.connection,
            workspace=self.workspace.id,
            them=them,
            on_conflict=self.on_conflict,
            pick=self.workspace.around.pick,
        )
        try:
            merged = (await self.workspace.commit(commit)).answer
        except CraftdError as error:
            for one in them:
                came.fail(one.id, error)
            return came
        came.imported, came.skipped = list(merged.imported), list(merged.skipped)
        came.renamed = {old: new for old, new in merged.imported.items() if old != new}
        return came
