"""What a message mentions, and what has to be read before tools are called."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from craftd.errors import InvalidParams, NotFound, Ref
from craftd.model import mentions as model
from craftd.model.prerequisites import Guides, Prerequisites
from craftd.model.records import Record
from craftd.protocol.methods.mentions import (
    CheckedPrerequisites,
    CheckPrerequisites,
    Mentioned,
    ResolvedMentions,
    ResolveMentions,
    Skipped,
    Unread,
)
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.daemon import daemon_of
from craftd.workspace import mentions
from craftd.workspace.mentions import Meant
from craftd.workspace.workspace import Workspace


@handles
async def resolve(call: Call, params: ResolveMentions) -> ResolvedMentions:
    workspace: Workspace = call.scope
    session = session_of(workspace, params.session)
    levels = await mentions.read_levels(workspace, mentions.directory_of(workspace, session))
    found = mentions.resolve(workspace, levels, params.text, session, params.directory, list(params.skills))
    return ResolvedMentions(
        message=found.message,
        mentions=tuple(map(_mentioned, found.meant)),
        near_misses=tuple(Unread(start=start, end=end) for start, end in model.near_misses(params.text)),
        enable=tuple(found.enable),
        skipped=tuple(Skipped(source=slug, reason=reason) for slug, reason in found.skipped.items()),
        epoch=workspace.epoch,
        revision=workspace.revision,
    )


def session_of(workspace: Workspace, id: str | None) -> Record | None:
    if id is None:
        return None
    workspace.check_session_id(id, "session")
    row = workspace.sessions.get(id)
    if row is None:
        raise NotFound(Ref("sessions", id, workspace.id))
    value: Record = row.value
    return value


def _mentioned(meant: Meant) -> Mentioned:
    mention, value = meant.mention, meant.value
    title = None if value is None else value.get("name")
    return Mentioned(
        kind=mention.kind,
        name=mention.name,
        start=mention.start,
        end=mention.end,
        known=value is not None or mention.kind in ("file", "folder"),
        path=meant.path,
        title=title if isinstance(title, str) else None,
    )


@handles
async def check(call: Call, params: CheckPrerequisites) -> CheckedPrerequisites:
    workspace: Workspace = call.scope
    docs = Path(daemon_of(call).places.config) / "docs" / "browser-tools.md"
    browser = str(docs) if params.browser and await asyncio.to_thread(docs.is_file) else None
    guides = mentions.guides(workspace, browser)
    try:
        now = Prerequisites.of_json(params.state or {})
    except ValueError as error:
        raise InvalidParams.of(f"state.{error}", "must be a list of texts") from None
    answers = tuple(_step(now, step, f"steps.{at}", guides) for at, step in enumerate(params.steps))
    return CheckedPrerequisites(state=now.as_json(), answers=answers)


def _step(now: Prerequisites, step: Mapping[str, Any], path: str, guides: Guides) -> Record | None:
    if len(step) != 1:
        raise InvalidParams.of(path, "must have one of mention, read, bash, call, reset")
    [(name, what)] = step.items()
    if name == "mention" and isinstance(what, list) and all(isinstance(one, str) for one in what):
        now.mention(what)
    elif name == "read" and isinstance(what, str):
        now.has_read(what, guides.home)
    elif name == "bash" and isinstance(what, str):
        now.has_run(what, guides.home)
    elif name == "reset" and what is True:
        now.reset()
    elif name == "call" and isinstance(what, str):
        verdict = now.check(what, guides)
        return {"allowed": verdict.allowed, "needs": list(verdict.needs)}
    else:
        raise InvalidParams.of(f"{path}.{name}", "must be a list of texts for mention, true for reset, else text")
    return None
