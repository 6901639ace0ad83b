"""Skills: what is wrong with one that is not stored."""

from __future__ import annotations

import asyncio

from craftd.errors import InvalidParams
from craftd.protocol.methods.skills import ValidatedSkill, ValidateSkill
from craftd.server.dispatch import Call, handles
from craftd.store.files import encoded
from craftd.store.layout import SKILL_FOLDERS


@handles
async def validate(call: Call, params: ValidateSkill) -> ValidatedSkill:
    if params.folder is not None and (
        params.folder in ("", ".", "..") or "/" in params.folder or "\0" in params.folder
    ):
        raise InvalidParams.of("folder", "is no name of a folder")
    issues = await asyncio.to_thread(SKILL_FOLDERS.check, encoded(params.text), params.folder)
    return ValidatedSkill(issues=tuple(issues))
