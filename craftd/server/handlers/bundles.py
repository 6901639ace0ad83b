"""Bundles of resources and of sessions; sessions for people."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from craftd.errors import (
    Corrupt,
    CraftdError,
    Forbidden,
    InvalidParams,
    Issue,
    NotFound,
    Ref,
    TooLarge,
    Undecryptable,
    ValidationFailed,
)
from craftd.model import bundles as model
from craftd.model import json_text
from craftd.model.app_records import connections_of
from craftd.model.credentials import OWNERS
from craftd.protocol.methods.bundles import (
    ExportBundle,
    ExportedBundle,
    ExportedMarkdown,
    ExportMarkdown,
    FailedResource,
    ImportBundle,
    ImportedBundle,
    ImportedResources,
    RenamedResource,
)
from craftd.server.blobs import CONNECTION_BYTES, Making
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.daemon import daemon_of
from craftd.server.handlers.files import content_of
from craftd.store import session_bundle
from craftd.store.json_stream import Bytes
from craftd.store.session_bundle import Contents
from craftd.store.session_export import Sink
from craftd.workspace import bundles, session_bundles
from craftd.workspace.credentials import DeleteCredential
from craftd.workspace.files import Source
from craftd.workspace.importing import Came, Importing
from craftd.workspace.session_bundles import ImportingSessions
from craftd.workspace.workspace import Workspace

INLINE_BYTES: Final = 8 * 1024 * 1024
"""Of what is exported and no blob."""
LARGEST_IMPORT: Final = CONNECTION_BYTES
"""Bytes of a bundle in a file: as many as one can have that was exported."""

_SECRETS = tuple(type for type, parts in OWNERS.items() if parts == ("workspace", "source"))


@handles
async def export(call: Call, params: ExportBundle) -> ExportedBundle:
    workspace: Workspace = call.scope
    if params.session is not None and (params.sessions or params.sources or params.skills or params.automations):
        raise InvalidParams.of("session", "stands alone: with others it is one of sessions")
    for id in () if params.sessions == "all" else params.sessions:
        workspace.session(id, "sessions")
    async with daemon_of(call).blobs.making(call.connection) as making:
        with call.work(params.work_done_token, "Exporting"):
            if params.session is not None:
                workspace.session(params.session, "session")
                warnings = await session_bundles.export(workspace, params.session, making.write)
            else:
                warnings = await _export_resources(call, params, making.write)
        _check_inline(params.inline, making)
    answer: dict[str, Any] = {"size": making.size, "sha256": making.digest.hexdigest(), "warnings": tuple(warnings)}
    if params.inline:
        return ExportedBundle(bundle=json_text.loads(await _taken(call, making)), **answer)
    return ExportedBundle(blob=making.blob.id, **answer)


@handles
async def export_markdown(call: Call, params: ExportMarkdown) -> ExportedMarkdown:
    workspace: Workspace = call.scope
    workspace.session(params.id)
    async with daemon_of(call).blobs.making(call.connection) as making:
        with call.work(params.work_done_token, "Exporting"):
            redacted = await session_bundles.export_markdown(
                workspace, params.id, making.write, redact=params.redact, tools=params.tools
            )
        _check_inline(params.inline, making)
    answer: dict[str, Any] = {"size": making.size, "sha256": making.digest.hexdigest(), "redacted": redacted}
    if params.inline:
        return ExportedMarkdown(text=(await _taken(call, making)).decode(), **answer)
    return ExportedMarkdown(blob=making.blob.id, **answer)


def _check_inline(inline: bool, making: Making) -> None:
    if inline and making.size > INLINE_BYTES:
        raise TooLarge("what is exported, in an answer,", INLINE_BYTES, making.size)


async def _taken(call: Call, making: Making) -> bytes:
    """What was made, instead of the blob."""
    data = await call.scope.in_pool(Path.read_bytes, making.blob.path)
    daemon_of(call).blobs.delete(call.connection, making.blob.id)
    return bytes(data)


async def _export_resources(call: Call, params: ExportBundle, sink: Sink) -> list[Issue]:
    workspace: Workspace = call.scope
    loop = asyncio.get_running_loop()
    wanted = bundles.Wanted(
        **{
            noun: None if (ids := getattr(params, noun)) == "all" else ids
            for noun in ("sources", "skills", "automations")
        }
    )

    def told(id: str) -> None:
        loop.call_soon_threadsafe(call.progress, params.work_done_token, {"kind": "report", "message": id})

    begin = {"version": model.VERSION, "exportedAt": workspace.now()}
    sink(json_text.dumps(begin)[:-1] + b',"resources":{')
    work = partial(bundles.export, wanted=wanted, sink=sink, told=told)
    warnings = await workspace.in_pool(work, workspace.place.root)
    if params.sessions:
        ids = sorted(workspace.sessions.rows) if params.sessions == "all" else list(dict.fromkeys(params.sessions))
        sink((b"," if wanted != bundles.Wanted() else b"") + b'"sessions":[')
        comma = b""

        def led(data: bytes) -> None:
            nonlocal comma
            sink(comma + data)
            comma = b""

        for id in ids:
            call.progress(params.work_done_token, {"kind": "report", "message": id})
            try:
                warnings += await session_bundles.export(workspace, id, led)
            except (Corrupt, Forbidden, NotFound) as error:  # before anything of it was written
                if params.sessions != "all":
                    raise
                message, code = str(error), "not-found" if isinstance(error, NotFound) else "unreadable"
                warnings.append(Issue(path="", message=message, severity="warning", code=code, noun="sessions", id=id))
            else:
                comma = b","
        sink(b"]")
    name = daemon_of(call).home.item(workspace.id).value.get("name", "")
    sink(b'},"sourceWorkspace":' + json_text.dumps(str(name)) + b"}")
    return warnings


@handles
async def import_bundle(call: Call, params: ImportBundle) -> ImportedBundle:
    workspace: Workspace = call.scope
    token = params.work_done_token
    with (
        content_of(call, params.content, largest=LARGEST_IMPORT) as source,
        call.work(token, "Importing"),
        ExitStack() as held,
    ):
        content = await workspace.in_pool(_open, (source, held))
        contents, bundle = await workspace.in_pool(_judged, content)

        def told(id: str) -> None:
            call.progress(token, {"kind": "report", "message": id})

        how: dict[str, Any] = {
            "workspace": workspace,
            "origin": call.origin,
            "connection": call.connection,
            "on_conflict": params.on_conflict,
            "told": told,
        }
        importing = Importing(**how, forget=partial(_forget, call))
        sources = await importing.folders("sources", bundle.sources)
        skills = await importing.folders("skills", bundle.skills)
        automations = await importing.automations(bundle.automations)
        coming = ImportingSessions(**how, has=partial(_has, call))
        sessions, warnings = await coming.sessions(contents.sessions)
        if contents.transfer is not None:
            made = await session_bundles.transfer(workspace, contents.transfer, call.origin, call.connection)
            old = str(contents.transfer["sourceSessionId"])
            sessions.imported.append(old)
            sessions.renamed[old] = made.id
    return ImportedBundle(
        sources=_shown(sources),
        skills=_shown(skills),
        automations=_shown(automations),
        sessions=_shown(sessions),
        warnings=tuple(warnings),
        epoch=workspace.epoch,
        revision=workspace.revision,
    )


def _has(call: Call, noun: str, name: str) -> bool:
    if noun == "connections":
        return name in connections_of(daemon_of(call).home.file.value or {})
    workspace: Workspace = call.scope
    return workspace.has(noun, name)


def _open(what: tuple[Source, ExitStack]) -> Bytes:
    """In a thread: the content, until the stack is closed. Raises: ValidationFailed, TooLarge."""
    source, held = what
    content = held.enter_context(source.opened())
    return Bytes.given(content) if isinstance(content, bytes) else Bytes(content.size, content.fd)


def _judged(content: Bytes) -> tuple[Contents, model.Bundle]:
    """In a thread. Raises: ValidationFailed."""
    contents, wrong = session_bundle.read(content)
    bundle = model.Bundle()
    if not wrong and (contents.rest is not None or not (contents.sessions or contents.transfer)):
        bundle, wrong = model.read(contents.rest)
    if wrong:
        raise _unfit(tuple(wrong))
    return contents, bundle


def _unfit(issues: tuple[Issue, ...]) -> ValidationFailed:
    return ValidationFailed(issues, Ref("bundles", ""))


async def _forget(call: Call, slug: str) -> None:
    """Take away what is kept for the source *slug*: another one must not get it."""
    home, workspace = daemon_of(call).home, call.scope
    for type in _SECRETS:
        id = home.credential_id(f"{type}::{workspace.id}::{slug}")
        with suppress(Undecryptable):  # nobody can use it
            await home.commit(DeleteCredential(origin=call.origin, id=id, missing_ok=True))


def _shown(came: Came) -> ImportedResources:
    return ImportedResources(
        imported=tuple(came.imported),
        skipped=tuple(came.skipped),
        failed=tuple(_failure(id, error) for id, error in came.failed),
        renamed=tuple(RenamedResource(id=old, new_id=new) for old, new in came.renamed.items()),
    )


def _failure(id: str, error: CraftdError) -> FailedResource:
    issues = error.issues if isinstance(error, ValidationFailed) else ()
    return FailedResource(id=id, error=error.name, message=str(error), issues=issues)
