"""Annotations of a message. To subscribers they are changes of the message: `messages/didChange`."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Committed, Create, Created, Delete, Update, Updated
from craftd.protocol.registry import method


@method("annotations/create", result=Created, right="write")
@frozen(kw_only=True)
class CreateAnnotation(Create):
    """Annotate a message, 200 times at most: `value: {target: {selectors}, body?, intent?, ...}`."""

    session: str
    message: str
    """What `messages/get` takes."""


@method("annotations/update", result=Updated, right="write")
@frozen(kw_only=True)
class UpdateAnnotation(Update):
    """Change members of an annotation; its `updatedAt` follows."""

    session: str
    message: str


@method("annotations/delete", result=Committed, right="write")
@frozen(kw_only=True)
class DeleteAnnotation(Delete):
    """Take an annotation from its message."""

    session: str
    message: str
