"""Open a transcript that was read whole before, and nothing was wrong with it: lines are found, not parsed.

The digest of the body says at the end whether these are the bytes of that reading; if not, all is read as for the first
time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import evolve, frozen

from craftd.model.messages import Counters
from craftd.model.portable import parse_line
from craftd.model.records import Record
from craftd.store.lines import BLANK, Body, Scan, new_digest, read_head
from craftd.store.table import Table, id_of

CHUNK: Final = 128 << 10
"""Bytes of lines looked at together: what is odd about one costs time for all of them."""

_FIRST: Final = b'{"id":"'
LOOKED_AT: Final = 200
"""Messages at the end among which the last time is looked for."""


@frozen
class Sound:
    """A body without damage: digest, number of lines, and what those say of the header (`Counters.header_fields`)."""

    body: Body
    lines: int
    fields: Mapping[str, Any]


def scan_sound(fd: int, size: int, directory: str, name: str, sound: Sound) -> Scan | None:
    """What `lines.scan` finds; None if the file is another one, or what is known of it does not say enough."""
    head = read_head(fd, size, directory, name)
    if size - head.body != sound.body.length or sound.fields.get("preview") is None or not sound.lines:
        return None
    table, digest, data = Table(directory), new_digest(), b"\n"
    for offset, data in _whole_lines(fd, head.body, size):
        digest.update(data)
        if not _add_alike(table, offset - head.body, data):
            try:
                _add(table, offset - head.body, data, directory)
            except (ValueError, TypeError):
                return None
    if digest.hexdigest() != sound.body.digest or len(table) != sound.lines:
        return None
    counters = _counters(fd, table, head.body, sound, directory)
    if counters is None:
        return None
    table.counted_as(counters)
    return Scan(head, table, data.endswith(b"\n"), digest, hash(os.pread(fd, head.body, 0)))


def _whole_lines(fd: int, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """(offset, lines with their LFs) in pieces of about CHUNK bytes; only the last line may lack its LF."""
    held: list[bytes] = []
    offset = at = start
    while at < stop and (chunk := os.pread(fd, min(CHUNK, stop - at), at)):
        at += len(chunk)
        end = chunk.rfind(b"\n") + 1
        if not end:
            held.append(chunk)
            continue
        data = b"".join((*held, chunk[:end]))
        yield offset, data
        offset += len(data)
        held = [chunk[end:]]
    if rest := b"".join(held):
        yield offset, rest


def _add_alike(table: Table, offset: int, data: bytes) -> bool:
    """Add lines that all begin with their id and hold no other member of that name; False if they are not like that."""
    lines = data.split(b"\n")
    count = len(lines) - 1
    if lines.pop() or data.count(b"}\n") != count or data.count(b'"id"') != count or b"\\u00" in data:
        return False
    if not data.startswith(_FIRST) or data.count(b"\n" + _FIRST) != count - 1:
        return False
    names = [line[len(_FIRST) : line.index(b'"', len(_FIRST))] for line in lines]
    together = b"".join(names)
    if b"\\" in together or b"{" in together:
        return False
    table.put_all(offset, lines, names)
    return True


def _add(table: Table, offset: int, data: bytes, directory: str) -> None:
    """Add lines that may be anything. Raises: ValueError, TypeError for one that is no message."""
    for text in data.split(b"\n"):
        content = text.strip(BLANK)
        if content:
            table.put(offset + text.index(content), content, _id_in(content, directory))
        offset += len(text) + 1


def _id_in(text: bytes, directory: str) -> str | None:
    """The id of the message that *text* is. Parses nothing where only one member can be it and it comes first."""
    if text.startswith(_FIRST) and text.count(b'"id"') == 1 and b"\\u00" not in text:
        identity = text[len(_FIRST) : text.index(b'"', len(_FIRST))]
        if b"\\" not in identity and b"{" not in identity:
            return identity.decode()
    record: Record = parse_line(text, directory)
    if not isinstance(record, dict):
        raise TypeError
    return id_of(record)


def _counters(fd: int, table: Table, body: int, sound: Sound, directory: str) -> Counters | None:
    """What the lines add up to; None if the last messages do not say when they were."""
    last: Counters | None = None
    for position in range(len(table) - 1, max(-1, len(table) - 1 - LOOKED_AT), -1):
        record = parse_line(os.pread(fd, table.lengths[position], body + table.offsets[position]), directory)
        one = Counters().add(record)
        last = last or one
        if one.last_timestamp is not None:
            fields = sound.fields
            return evolve(
                last,
                count=len(table),
                last_role=fields.get("lastMessageRole"),
                last_final_id=fields.get("lastFinalMessageId"),
                preview=fields["preview"],
                preview_done=True,
                last_timestamp=one.last_timestamp,
                directory=directory,
            )
    return None
