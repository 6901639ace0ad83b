"""What readers are told about sessions and their messages: the changes of protocol.md, Notifications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from craftd.model import json_text
from craftd.model import patch as patches
from craftd.model.records import Item, Record, version_of
from craftd.workspace.journal import Change

EVENT_BODY: Final = 256 * 1024
"""Bytes of a message inside an event; a longer one is named, not carried (protocol.md, Limits)."""


def created(item: Item) -> Change:
    return Change("sessions/didCreate", "sessions", {"item": item.as_json()}, item.id)


def changed(id: str, version: str, old: Record, new: Record) -> list[Change]:
    """For the difference of two values; empty when there is none."""
    patch = patches.diff(old, new)
    if not patch:
        return []
    return [Change("sessions/didChange", "sessions", {"changes": [{"id": id, "version": version}], "patch": patch}, id)]


def deleted(id: str) -> Change:
    return Change("sessions/didDelete", "sessions", {"id": id}, id)


def appended(session: str, index: int, records: Sequence[Record], sizes: Sequence[int], count: int) -> Change:
    """index: of the first of *records* among the messages; sizes: bytes of their lines; count: of all afterwards."""
    shown = [event_body(record, size) for record, size in zip(records, sizes, strict=True)]
    members = {"session": session, "index": index, "messages": shown, "count": count}
    return Change("messages/didAppend", "messages", members, session)


def event_body(record: Record, size: int) -> Record:
    """*record*, or what names it when it is too large to be sent to everybody."""
    if size <= EVENT_BODY:
        return record
    return {"id": record.get("id"), "type": record.get("type"), "omitted": size}


def message_changed(session: str, id: str, old: Record, new: Record, size: int) -> Change:
    """size: bytes of the new line. Where the patch is too large to be sent to everybody, it leaves what names *new*."""
    patch = patches.diff(old, new)
    if size > EVENT_BODY and len(json_text.dumps(patch)) > EVENT_BODY:
        patch = patches.diff(old, event_body(new, size))
    members = {"session": session, "changes": [{"id": id, "version": version_of(new)}], "patch": patch}
    return Change("messages/didChange", "messages", members, session)


def message_deleted(session: str, id: str) -> Change:
    return Change("messages/didDelete", "messages", {"session": session, "id": id}, session)


def truncated(session: str, keep: int, *, unsent: bool = False) -> Change:
    """keep: how many messages are left. unsent: what stands behind them now is too much for events."""
    return Change("messages/didTruncate", "messages", {"session": session, "keep": keep}, session, unsent)
