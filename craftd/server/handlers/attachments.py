"""Attachments of a session."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any
from uuid import uuid4

from craftd.errors import InvalidParams, IoError, NotFound, Ref, VersionConflict
from craftd.model import attachments as rules
from craftd.model.attachments import Attachment
from craftd.model.files import is_hidden, parts_of
from craftd.protocol.contract import Committed, Got, Page
from craftd.protocol.methods.attachments import (
    CreateAttachment,
    DeleteAttachment,
    GetAttachment,
    ListAttachments,
    StoredAttachment,
)
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.files import check_text, content_of
from craftd.server.handlers.nouns import chosen, page_of
from craftd.workspace import attachments, record_files
from craftd.workspace.attachments import FOLDER, NotEmpty, WriteBeside
from craftd.workspace.commit import Done
from craftd.workspace.files import DeleteFile, Given, WriteFile
from craftd.workspace.record_files import begun
from craftd.workspace.session_files import ExpectFile, folder_of
from craftd.workspace.workspace import Workspace

_one_after_another = asyncio.Semaphore(2)
"""Processes that make something of attachments, so that a hundred of them leave room for others."""


@handles
async def list_attachments(call: Call, params: ListAttachments) -> Page:
    workspace: Workspace = call.scope
    workspace.session(params.session, "session")
    epoch, revision = workspace.epoch, workspace.revision
    work = partial(attachments.index_of, session=params.session, epoch=epoch)
    return page_of(await workspace.in_pool(work, workspace.ground()), params, epoch, revision)


@handles
async def get(call: Call, params: GetAttachment) -> Got:
    workspace = _scope(call, params.session, params.id)
    workspace.session(params.session, "session")
    revision = workspace.revision
    item = await attachments.item(workspace, params.session, params.id)
    return Got(item=chosen(item, params.fields), epoch=workspace.epoch, revision=revision)


@handles
async def create(call: Call, params: CreateAttachment) -> StoredAttachment:
    workspace = _scope(call, params.session, None)
    name, media_type = _named(params)
    id = str(uuid4())
    file = rules.stored_name(id, name)
    if is_hidden(file):
        raise InvalidParams.of("value.name", f"{name} looks like a secret, and such files are kept from every client")
    with content_of(call, params.content) as source:
        done = await workspace.commit(
            WriteFile(
                origin=call.origin,
                connection=call.connection,
                parts=folder_of(params.session, FOLDER, file),
                record=Ref("attachments", id, workspace.id),
                expected="",
                source=NotEmpty(source),
            )
        )
    stored = record_files.written(file, done.answer)
    [attachment] = rules.grouped([file])
    if rules.renditions(attachment):
        attachment, done = await _rendered(call, params.session, attachment, done)
    item = attachments.item_of(workspace.ground(), params.session, attachment, stored)
    folder = workspace.place.directory(params.session)
    told = rules.stored(attachment, stored.size, f"{folder}/{FOLDER}")
    told |= {"name": name, "type": rules.kind_of(name)} | ({} if media_type is None else {"mimeType": media_type})
    return StoredAttachment(item=item, attachment=told, epoch=done.epoch, revision=done.revision)


async def _rendered(call: Call, session: str, attachment: Attachment, stored: Done) -> tuple[Attachment, Done]:
    """Store what can be made of *attachment*; what it is with that.

    For want of it nothing is refused: the attachment itself is there, or has been taken away by somebody meanwhile.
    """
    workspace: Workspace = call.scope
    work = partial(attachments.rendered, session=session, attachment=attachment)
    done, there = stored, [attachment.file]
    try:
        async with _one_after_another:
            made = await workspace.in_pool(work, workspace.ground())
        for name, data in made:
            done = await workspace.commit(
                WriteBeside(
                    origin=call.origin,
                    connection=call.connection,
                    parts=folder_of(session, FOLDER, name),
                    beside=folder_of(session, FOLDER, attachment.file),
                    expected="",
                    source=Given(data),
                )
            )
            there.append(name)
    except (IoError, NotFound, OSError, VersionConflict):
        pass
    return rules.grouped(there)[0], done


@handles
async def delete(call: Call, params: DeleteAttachment) -> Committed:
    workspace = _scope(call, params.session, params.id)
    find = partial(attachments.one, session=params.session, id=params.id)
    try:
        attachment, _ = await workspace.in_pool(find, workspace.ground())
    except NotFound:
        if not params.missing_ok:
            raise
        return Committed(epoch=workspace.epoch, revision=workspace.revision)
    *made, file = attachment.files
    whole: dict[str, Any] = {
        "origin": call.origin,
        "connection": call.connection,
        "record": Ref("attachments", params.id, workspace.id),
        "parts": folder_of(params.session, FOLDER, file),
        "expected": params.expected_version,
        "missing_ok": params.missing_ok,
    }
    await workspace.commit(ExpectFile(**whole))
    for name in made:
        derived = {"parts": folder_of(params.session, FOLDER, name), "expected": None, "missing_ok": True}
        await begun(workspace.commit(DeleteFile(**{**whole, **derived})))
    done = await workspace.commit(DeleteFile(**whole))
    # What was made of it in this moment: from now on nothing is.
    for name in {name for name, _ in rules.renditions(attachment)} - set(made):
        derived = {"parts": folder_of(params.session, FOLDER, name), "expected": None, "missing_ok": True}
        done = await workspace.commit(DeleteFile(**{**whole, **derived}))
    return Committed(epoch=done.epoch, revision=done.revision)


def _named(params: CreateAttachment) -> tuple[str, str | None]:
    """Name and media type that were given. Raises: InvalidParams."""
    for member, text in params.value.items():
        if member not in ("name", "mimeType"):
            raise InvalidParams.of(f"value.{member}", "cannot be set: value is {name, mimeType?}")
        if not isinstance(text, str) or not text:
            raise InvalidParams.of(f"value.{member}", "must be a string, and not empty")
        check_text(f"value.{member}", text)
    if "name" not in params.value:
        raise InvalidParams.of("value.name", "is missing")
    return params.value["name"], params.value.get("mimeType")


def _scope(call: Call, session: str, id: str | None) -> Workspace:
    """Raises: InvalidParams for what is no id."""
    workspace: Workspace = call.scope
    workspace.check_session_id(session, "session")
    if id is not None and len(parts_of(id, "id")) != 1:
        raise InvalidParams.of("id", "is no id of an attachment")
    return workspace
