"""Messages for readers: pages by position, single messages by id. Reads what it returns, in a pool thread."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from craftd.errors import Busy, InvalidParams, NotFound, Ref, StaleCursor
from craftd.model import json_text
from craftd.model.records import Item, version_of
from craftd.store.atomic import ForeignWrite, is_fresh
from craftd.store.lines import Segment
from craftd.store.tail import Tail, Unsure
from craftd.store.transcript import Transcript
from craftd.workspace import foreign
from craftd.workspace.index import PAGE, PAGE_BYTES, PAGE_MOST, Page
from craftd.workspace.rows import damage_json

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace

_T = TypeVar("_T")

TRIES = 5
"""How often a file that somebody rewrites while it is read is read again."""


async def page(
    workspace: Workspace,
    session: str,
    *,
    backward: bool = False,
    fields: tuple[str, ...] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Page:
    """One page in the order of the transcript; *backward* pages begin at the end.

    Raises: InvalidParams, StaleCursor, NotFound.
    """
    count = PAGE if limit is None else limit
    if count < 1:
        raise InvalidParams.of("limit", "must be at least 1")
    count = min(count, PAGE_MOST)
    at = None if cursor is None else _read_cursor(cursor, workspace.epoch, session)

    def shown(segments: Sequence[Segment], next_edge: int, messages: int, *, more: bool) -> Page:
        texts = [json_text.dumps(item_of(segment).as_json(_wanted(fields))) for segment in segments]
        return Page(texts, _write_cursor(workspace.epoch, session, next_edge) if more else None, messages)

    def read(transcript: Transcript) -> Page:
        total = len(transcript)
        edge = (total if backward else 0) if at is None else min(at, total)
        start, stop = (max(0, edge - count), edge) if backward else (edge, min(total, edge + count))
        start, stop = transcript.within(start, stop, PAGE_BYTES, from_end=backward)
        segments = transcript.read(start, stop)
        return shown(
            segments, start if backward else stop, transcript.count, more=start > 0 if backward else stop < total
        )

    def read_tail(tail: Tail) -> Page:
        edge = tail.lines if at is None else min(at, tail.lines)
        segments = tail.before(edge, count, PAGE_BYTES)
        next_edge = edge - len(segments)
        return shown(segments, next_edge, tail.messages, more=next_edge > 0)

    if backward and (tail := _tail(workspace, session)) is not None:
        try:
            return await workspace.in_pool(read_tail, tail)
        except (ForeignWrite, Unsure, OSError):
            pass  # an open transcript finds out
    return await _on_transcript(workspace, session, read)


def _tail(workspace: Workspace, session: str) -> Tail | None:
    """Raises: InvalidParams, NotFound."""
    row, transcript = workspace.session(session), workspace.transcripts.get(session)
    if transcript is not None and transcript.fingerprint == row.fingerprint:
        return None
    if row.fingerprint is not None and is_fresh(row.fingerprint):
        return None  # what is written within one tick of the clock has the same fingerprint
    return workspace.tails.of(row)


async def one(workspace: Workspace, session: str, id: str) -> Item:
    """The message *id*, `#<index>` or `~<byte offset>`. Raises: NotFound."""

    def read(transcript: Transcript) -> Item | None:
        position = transcript.find(id)
        return None if position is None else item_of(transcript.read(position, position + 1)[0])

    item = await _on_transcript(workspace, session, read)
    if item is None:
        raise NotFound(Ref("messages", id, workspace.id))
    return item


async def _on_transcript(workspace: Workspace, session: str, read: Callable[[Transcript], _T]) -> _T:
    for _ in range(TRIES):
        transcript = await workspace.transcript(session)
        try:
            return await workspace.in_pool(read, transcript)
        except ForeignWrite:
            if transcript.check():  # it looks the same and is not: written within one tick of the clock
                transcript.distrust()
    raise Busy(f"sessions/{session} is being rewritten by another program", 200)


def item_of(segment: Segment) -> Item:
    """How a line is listed: a message by its id, a damaged line by its place with what is there."""
    info: dict[str, Any] = {}
    if segment.damage is not None:
        info["damage"] = [damage_json(segment.damage)]
    if segment.record is None:
        info["raw"] = segment.raw.decode("utf-8", "replace")
        return Item(foreign.message_id(segment), version_of({"raw": info["raw"]}), {}, info)
    return Item(foreign.message_id(segment), version_of(segment.record), segment.record, info)


def _wanted(fields: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if fields == ("*",) else fields


def _write_cursor(epoch: str, session: str, position: int) -> str:
    return base64.urlsafe_b64encode(json_text.dumps([epoch, session, position])).decode()


def _read_cursor(cursor: str, epoch: str, session: str) -> int:
    try:
        made, belongs, position = json_text.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, TypeError, binascii.Error):
        raise InvalidParams.of("cursor", "is no cursor of this daemon") from None
    if made != epoch:
        raise StaleCursor("the cursor is from before a restart: list again from the start")
    if belongs != session or not isinstance(position, int) or position < 0:
        raise InvalidParams.of("cursor", "belongs to another list")
    return position
