"""Skills: what is wrong with one that is not stored, and which a session has."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

from craftd.errors import Issue
from craftd.model.records import Record
from craftd.protocol.contract import Committed, Create, Created, Delete, Get, Got, Ref, Update, Updated
from craftd.protocol.methods.mentions import Skipped
from craftd.protocol.registry import method

Level: TypeAlias = Literal["project", "workspace", "global"]


@method("skills/get", result=Got, right="read")
@frozen(kw_only=True)
class GetSkill(Get):
    """One skill: the workspace's, that of another level, or the one that a session has."""

    level: Level | None = None
    """Absent: with `session` the one that counts there, otherwise the workspace's."""
    session: str | None = None
    """Whose working directory has the level `project`; absent: that of one that has yet to begin."""


@method("skills/create", result=Created, right="write")
@frozen(kw_only=True)
class CreateSkill(Create):
    """A new skill of the workspace."""

    level: Level = "workspace"
    """The others are read, never written: Forbidden."""


@method("skills/update", result=Updated, right="write")
@frozen(kw_only=True)
class UpdateSkill(Update):
    """Change members of a skill of the workspace."""

    level: Level = "workspace"
    """The others are read, never written: Forbidden."""


@method("skills/delete", result=Committed, right="write")
@frozen(kw_only=True)
class DeleteSkill(Delete):
    """Remove a skill of the workspace."""

    level: Level = "workspace"
    """The others are read, never written: Forbidden."""


@frozen(kw_only=True)
class ValidatedSkill:
    """issues: what `issues/list` would have if the text were the file; ranges are those of the text."""

    issues: tuple[Issue, ...]


@method("skills/validate", result=ValidatedSkill, right="read", scope="either")
@frozen(kw_only=True)
class ValidateSkill(Ref):
    """What is wrong with the text of a SKILL.md; nothing is read or stored."""

    text: str
    folder: str | None = None
    """Name of the one it is for, its id; absent: nothing is said about that."""


@frozen(kw_only=True)
class SkillLevel:
    """level: project, workspace, global. path: of the SKILL.md. loads: it can be used."""

    level: str
    path: str
    loads: bool
    issues: tuple[Issue, ...]


@frozen(kw_only=True)
class SessionSkill:
    """level, path, value: of the one that counts, null and empty if none loads; value without `content`.

    levels: all of that name, highest first. sdk_name: what the model's toolkit calls it. unusable: of the sources
    that it requires, those that cannot be switched on.
    """

    id: str
    level: str | None
    path: str | None
    value: Record
    sdk_name: str
    levels: tuple[SkillLevel, ...]
    unusable: tuple[Skipped, ...]


@frozen(kw_only=True)
class ResolvedSkills:
    """directory: whose `.agents/skills` was looked into. issues: why some skills were not."""

    directory: str
    skills: tuple[SessionSkill, ...]
    issues: tuple[Issue, ...]


@method("skills/resolve", result=ResolvedSkills, right="read")
@frozen(kw_only=True)
class ResolveSkills(Ref):
    """The skills of a session: of its directory, of the workspace, of the home folder, and which of them count."""

    session: str | None = None
    """Absent: one that has yet to begin."""
