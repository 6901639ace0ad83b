"""What the mentions of a text mean in a workspace."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from attrs import field, frozen

from craftd.model import mentions, settings, sources
from craftd.model.mentions import Mention
from craftd.model.prerequisites import Guides
from craftd.model.records import Record
from craftd.model.skill_levels import Found, required_sources, that_counts
from craftd.workspace import effective, skill_levels
from craftd.workspace.skill_levels import Levels

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace


@frozen(kw_only=True)
class Meant:
    """A mention and what it points to. value: the skill or source, None = there is none."""

    mention: Mention
    path: str | None
    value: Record | None


@frozen(kw_only=True)
class Resolved:
    """See `protocol.methods.mentions.ResolvedMentions`."""

    message: str
    meant: list[Meant]
    enable: list[str]
    skipped: dict[str, str] = field(factory=dict)


def directory_of(workspace: Workspace, session: Record | None) -> str:
    """Where a session of that value works; None: one that has yet to begin."""
    return str(settings.resolve(effective.levels(workspace, session or {}))["workingDirectory"].value)


async def read_levels(workspace: Workspace, directory: str) -> Levels:
    return await asyncio.to_thread(skill_levels.read, workspace.place.root, workspace.place.home, directory)


def resolve(
    workspace: Workspace, levels: Levels, text: str, session: Record | None, directory: str | None, also: list[str]
) -> Resolved:
    """session: value of the one that counts. also: slugs of skills beside those of the text."""
    holds = settings.resolve(effective.levels(workspace, session or {}))
    directory = directory or str(holds["workingDirectory"].value)
    chosen_by_level = {id: that_counts(found) for id, found in levels.skills.items()}
    skills = {id: one for id, one in chosen_by_level.items() if one is not None}
    known = {row.id: row.value for row in workspace.tables["sources"].index}
    meant = [_meant(workspace, mention, skills, known, directory) for mention in mentions.find(text)]
    chosen = dict.fromkeys([*(one.mention.name for one in meant if one.mention.kind == "skill"), *also])
    required = [slug for name in chosen if name in skills for slug in required_sources(skills[name].value)]
    enable, skipped = sources.to_enable(required, holds["enabledSourceSlugs"].value, known)
    titles = {slug: str(one.value["name"]) for slug, one in skills.items()}
    return Resolved(message=mentions.message(text, titles, directory), meant=meant, enable=enable, skipped=skipped)


def _meant(
    workspace: Workspace, mention: Mention, skills: dict[str, Found], known: dict[str, Record], directory: str
) -> Meant:
    if mention.kind == "skill":
        skill = skills.get(mention.name)
        return Meant(
            mention=mention, path=None if skill is None else skill.path, value=None if skill is None else skill.value
        )
    if mention.kind == "source":
        value = known.get(mention.name)
        path = None if value is None else f"{workspace.place.root}/sources/{mention.name}"
        return Meant(mention=mention, path=path, value=value)
    return Meant(mention=mention, path=mentions.located(mention.name, directory), value=None)


def guides(workspace: Workspace, browser: str | None) -> Guides:
    """What there is to read before tools of this workspace are called."""
    return Guides(
        guides={
            row.id: f"{workspace.place.root}/sources/{row.id}/guide.md"
            for row in workspace.tables["sources"].index
            if isinstance(row.value.get("guide"), str)
        },
        home=workspace.place.home,
        browser=browser,
    )
