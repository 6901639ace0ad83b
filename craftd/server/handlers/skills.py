"""Skills: what is wrong with one that is not stored, and which a session has."""

from __future__ import annotations

import asyncio

from craftd.errors import Forbidden, InvalidParams, NotFound, Ref
from craftd.model import skill_levels, sources
from craftd.model.records import Record
from craftd.model.skill_levels import Found
from craftd.model.skills import SKILLS
from craftd.protocol.contract import Committed, Created, Got, Updated
from craftd.protocol.methods.mentions import Skipped
from craftd.protocol.methods.skills import (
    CreateSkill,
    DeleteSkill,
    GetSkill,
    ResolvedSkills,
    ResolveSkills,
    SessionSkill,
    SkillLevel,
    UpdateSkill,
    ValidatedSkill,
    ValidateSkill,
)
from craftd.server.dispatch import Call, handles
from craftd.server.handlers import nouns
from craftd.server.handlers.mentions import session_of
from craftd.store.files import encoded
from craftd.store.layout import SKILL_FOLDERS
from craftd.workspace import mentions
from craftd.workspace.skill_levels import Levels
from craftd.workspace.workspace import Workspace


@handles
async def get(call: Call, params: GetSkill) -> Got:
    workspace: Workspace = call.scope
    if params.level is None and params.session is None:
        return nouns.get(call, params)
    try:
        session = session_of(workspace, params.session)
    except NotFound:
        workspace.verbs.check_name(SKILLS, params.id)
        raise
    levels = await mentions.read_levels(workspace, mentions.directory_of(workspace, session))
    found = levels.skills.get(params.id, [])
    if params.level is None:
        one = skill_levels.that_counts(found)
    else:
        one = next((one for one in found if one.level == params.level), None)
    if one is None:
        workspace.verbs.check_name(SKILLS, params.id)
        raise NotFound(Ref("skills", params.id, workspace.id))
    item = skill_levels.item(params.id, found, one, levels.plugin)
    return Got(item=nouns.chosen(item, params.fields), epoch=workspace.epoch, revision=workspace.revision)


@handles
async def create(call: Call, params: CreateSkill) -> Created:
    _refuse_outside(params)
    return await nouns.create(call, params)


@handles
async def update(call: Call, params: UpdateSkill) -> Updated:
    _refuse_outside(params)
    return await nouns.update(call, params)


@handles
async def delete(call: Call, params: DeleteSkill) -> Committed:
    _refuse_outside(params)
    return await nouns.delete(call, params)


def _refuse_outside(params: CreateSkill | UpdateSkill | DeleteSkill) -> None:
    if params.level != "workspace":
        raise Forbidden(f"skills of the level {params.level} lie outside of the workspaces: they are only read here")


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
    return ResolvedSkills(directory=directory, skills=skills, issues=levels.issues)


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
