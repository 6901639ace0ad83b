"""Attachments of a session. To subscribers they are files: `files/didChange`."""

from __future__ import annotations

from attrs import frozen

from craftd.model.records import Record
from craftd.protocol.contract import Committed, Created, Delete, Get, Got, List, Mutation, Page
from craftd.protocol.methods.blobs import Content
from craftd.protocol.registry import method


@method("attachments/list", result=Page, right="read")
@frozen(kw_only=True)
class ListAttachments(List):
    """One page of a session's attachments, the newest first."""

    session: str


@method("attachments/get", result=Got, right="read")
@frozen(kw_only=True)
class GetAttachment(Get):
    """One attachment: what a message can have in its `attachments`."""

    session: str


@frozen(kw_only=True)
class StoredAttachment(Created):
    """attachment: what the message gets in its `attachments`, with the name and type that were given."""

    attachment: Record


@method("attachments/create", result=StoredAttachment, right="write")
@frozen(kw_only=True)
class CreateAttachment(Mutation):
    """Store a file for a message that is about to be sent. `value: {name, mimeType?}`."""

    session: str
    value: Record
    content: Content


@method("attachments/delete", result=Committed, right="write")
@frozen(kw_only=True)
class DeleteAttachment(Delete):
    """Remove an attachment with what was made of it."""

    session: str
