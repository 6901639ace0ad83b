"""Skills: what is wrong with one that is not stored, and which a session has."""

from __future__ import annotations

import asyncio

from craftd.errors import InvalidParams
from craftd.model import skill_levels, sources
from craftd.model.records import Record
from craftd.model.skill_levels import Found
from craftd.protocol.methods.mentions import Skipped
from craftd.protocol.methods.skills import (
    ResolvedSkills,
    ResolveSkills,
    SessionSkill,
    SkillLevel,
    ValidatedSkill,
    ValidateSkill,
)
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.mentions import session_of
from craftd.store.files import encoded
from craftd.store.layout import SKILL_FOLDERS
from craftd.workspace import mentions
from craftd.workspace.skill_levels import Levels
from craftd.workspace.workspace import Workspace


@handles
async def validate(call: Call, params: ValidateSkill) -> ValidatedSkill:
    if params.folder is not None and (
        params.folder in ("", ".", "..") or "/" in params.folder or "\0" in params.folder
    ):
        raise InvalidParams.of("folder", "is no name of a folder")
    issues = await asyncio.to_thread(SKILL_FOLDERS.check, encoded(params.text), params.folder)
    return ValidatedSkill(issues=tuple(issues))


@handles
async def resolve(call: Call, params: ResolveSkills) -> ResolvedSkills:
    workspace: Workspace = call.scope
    directory = mentions.directory_of(workspace, session_of(workspace, params.session))
    levels = await mentions.read_levels(workspace, directory)
    known = {row.id: row.value for row in workspace.tables["sources"].index}
    skills = tuple(_skill(id, found, levels, known) for id, found in levels.skills.items())
    return ResolvedSkills(directory=directory, skills=skills)


def _skill(id: str, found: list[Found], levels: Levels, known: dict[str, Record]) -> SessionSkill:
    one = skill_levels.that_counts(found)
    value = {} if one is None else {name: member for name, member in one.value.items() if name != "content"}
    _, unusable = sources.to_enable(skill_levels.required_sources(value), (), known)
    return SessionSkill(
        id=id,
        level=None if one is None else one.level,
        path=None if one is None else one.path,
        value=value,
        sdk_name=skill_levels.qualified(id, None if one is None else one.level, levels.plugin),
        levels=tuple(SkillLevel(level=at.level, path=at.path, loads=at.loads, issues=at.issues) for at in found),
        unusable=tuple(Skipped(source=slug, reason=reason) for slug, reason in unusable.items()),
    )
