"""Resource bundles."""

from __future__ import annotations

import asyncio
import hashlib
import os
from contextlib import suppress
from functools import partial
from typing import Final

from craftd.errors import CraftdError, Issue, Ref, TooLarge, Undecryptable, ValidationFailed
from craftd.model import bundles as model
from craftd.model import json_text
from craftd.model.credentials import OWNERS
from craftd.protocol.methods.bundles import (
    ExportBundle,
    ExportedBundle,
    FailedResource,
    ImportBundle,
    ImportedBundle,
    ImportedResources,
    RenamedResource,
)
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.daemon import daemon_of
from craftd.server.handlers.files import content_of
from craftd.workspace import bundles
from craftd.workspace.credentials import DeleteCredential
from craftd.workspace.files import Source
from craftd.workspace.importing import Came, Importing
from craftd.workspace.workspace import Workspace

INLINE_BYTES: Final = 8 * 1024 * 1024
"""Of a bundle that is no blob."""

_SECRETS = tuple(type for type, parts in OWNERS.items() if parts == ("workspace", "source"))


@handles
async def export(call: Call, params: ExportBundle) -> ExportedBundle:
    workspace: Workspace = call.scope
    loop = asyncio.get_running_loop()
    wanted = bundles.Wanted(
        **{
            noun: None if (ids := getattr(params, noun)) == "all" else ids
            for noun in ("sources", "skills", "automations")
        }
    )
    name = str(daemon_of(call).home.item(workspace.id).value.get("name", ""))

    def told(id: str) -> None:
        loop.call_soon_threadsafe(call.progress, params.work_done_token, {"kind": "report", "message": id})

    with call.work(params.work_done_token, "Exporting"):
        work = partial(bundles.export, wanted=wanted, name=name, now=workspace.now(), told=told)
        made = await workspace.in_pool(work, workspace.place.root)
        size, digest = len(made.data), hashlib.sha256(made.data).hexdigest()
        if not params.inline:
            blob = await daemon_of(call).blobs.keep(call.connection, made.data)
            return ExportedBundle(blob=blob.id, size=size, sha256=digest, warnings=made.warnings)
    if size > INLINE_BYTES:
        raise TooLarge("a bundle in an answer", INLINE_BYTES, size)
    return ExportedBundle(bundle=json_text.loads(made.data), size=size, sha256=digest, warnings=made.warnings)


@handles
async def import_bundle(call: Call, params: ImportBundle) -> ImportedBundle:
    workspace: Workspace = call.scope
    token = params.work_done_token
    with content_of(call, params.content) as source, call.work(token, "Importing"):
        bundle = await workspace.in_pool(_read, source)
        importing = Importing(
            workspace=workspace,
            origin=call.origin,
            connection=call.connection,
            on_conflict=params.on_conflict,
            forget=partial(_forget, call),
            told=lambda id: call.progress(token, {"kind": "report", "message": id}),
        )
        sources = await importing.folders("sources", bundle.sources)
        skills = await importing.folders("skills", bundle.skills)
        automations = await importing.automations(bundle.automations)
    return ImportedBundle(
        sources=_shown(sources),
        skills=_shown(skills),
        automations=_shown(automations),
        epoch=workspace.epoch,
        revision=workspace.revision,
    )


def _read(source: Source) -> model.Bundle:
    """In a thread. Raises: ValidationFailed, TooLarge."""
    with source.opened() as content:
        size = len(content) if isinstance(content, bytes) else content.size
        if size > model.LARGEST:
            raise TooLarge("a bundle", model.LARGEST, size)
        data = content if isinstance(content, bytes) else os.pread(content.fd, size, 0)
    try:
        value = json_text.loads(data)
    except ValueError as error:
        raise _unfit((Issue(path="", message=f"is no JSON: {error}", code="not-json"),)) from None
    bundle, wrong = model.read(value)
    if wrong:
        raise _unfit(tuple(wrong))
    return bundle


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
