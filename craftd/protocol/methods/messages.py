"""Messages of a session, in the order of the transcript."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from craftd.model.records import Record
from craftd.protocol.contract import (
    Change,
    Changed,
    Committed,
    Delete,
    Get,
    Got,
    List,
    Mutation,
    Page,
    Update,
    Updated,
)
from craftd.protocol.registry import method, notification


@method("messages/list", result=Page, right="read")
@frozen(kw_only=True)
class ListMessages(List):
    """One page of a transcript, by position."""

    session: str
    direction: Literal["forward", "backward"] = "forward"
    """backward: pages start at the end; the items of a page are in the order of the transcript all the same."""


@method("messages/get", result=Got, right="read")
@frozen(kw_only=True)
class GetMessage(Get):
    """One message: by its id, as `#<index>`, or a damaged line as `~<byte offset>`."""

    session: str


@frozen(kw_only=True)
class Appended(Committed):
    """Ids and versions in the order given."""

    messages: tuple[Changed | Record, ...]


@method("messages/append", result=Appended, right="write")
@frozen(kw_only=True)
class AppendMessages(Mutation):
    """Append messages in one commit; one already stored with the same id and content is skipped."""

    session: str
    messages: tuple[Record, ...]
    expected_tail: str | None = None
    """Id of the message believed to be last; "" for an empty transcript."""
    set_: Record | None = None
    """Header fields to set in the same commit."""


@method("messages/update", result=Updated, right="write")
@frozen(kw_only=True)
class UpdateMessage(Update):
    """Change members of a message, in place; by its id or as `#<index>`."""

    session: str


@method("messages/delete", result=Committed, right="write")
@frozen(kw_only=True)
class DeleteMessage(Delete):
    """Take a message, or a damaged line, out of a transcript."""

    session: str


@method("messages/truncate", result=Committed, right="write")
@frozen(kw_only=True)
class TruncateMessages(Mutation):
    """Leave the first *keep* messages, or those up to *afterMessage*; `keep: 0` clears the session and its usage."""

    session: str
    keep: int | None = None
    after_message: str | None = None
    """Id of the last message to stay."""


@notification("messages/didAppend")
@frozen(kw_only=True)
class MessagesDidAppend(Change):
    """Messages came to the end of a transcript. index: position of the first; count: how many there are now."""

    session: str
    index: int
    messages: tuple[Record, ...]
    count: int


@notification("messages/didTruncate")
@frozen(kw_only=True)
class MessagesDidTruncate(Change):
    """Only the first *keep* messages are left."""

    session: str
    keep: int
