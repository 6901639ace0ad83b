"""Skills: what is wrong with one that is not stored."""

from __future__ import annotations

from attrs import frozen

from craftd.errors import Issue
from craftd.protocol.contract import Ref
from craftd.protocol.registry import method


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
