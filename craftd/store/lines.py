"""A transcript file taken apart: line 1, then the lines of the body, whatever state they are in.

Lines end at byte 0x0A and nowhere else. Nothing here writes, raises for damage, or holds more of a file than a chunk
and one line. What cannot be understood stays where it is and is reported. Source: app 0.11.1 and golden `sessions`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from attrs import field, frozen

from craftd.model import sessions
from craftd.model.messages import is_message
from craftd.model.portable import parse_line
from craftd.model.records import Record
from craftd.store import disk
from craftd.store.table import Damage, Table, id_of

CHUNK: Final = 1 << 20
FIRST_CHUNK: Final = 16 << 10
"""Bytes of the first read: line 1 of nearly every session, so that listing costs one read per session."""

BODY_DAMAGE: Final = frozenset({"line-unreadable", "torn-tail", "nul-bytes", "id-repeated"})
"""What can be wrong with the lines behind line 1."""

UNHEADED: Final = frozenset({"header-unreadable", "header-missing"})
"""Damage after which nobody knows what line 1 says."""

_BOM: Final = b"\xef\xbb\xbf"
BLANK: Final = b" \t\r\x00"
"""What may stand around a record on its line."""

_NULS: Final = re.compile(rb"\x00+")
_DECODER: Final = json.JSONDecoder()


@frozen
class Segment:
    """One line of a transcript. offset: of its first byte in the file. index: number among the messages, 0-based.

    record: the message with paths expanded, None (and no index) where it cannot be read; raw: the bytes as stored.
    damage: what is wrong with this line; a message that could be read in spite of it has both.
    """

    offset: int
    length: int
    record: Record | None
    raw: bytes
    damage: Damage | None
    index: int | None


@frozen
class Head:
    """Line 1 and where the body begins. header is None where there is none; damage says why.

    first_line: number of the line the body begins in. alone: a new line 1 in place of this one changes no line number.
    text: the bytes that `header` was read from.
    """

    header: Record | None
    body: int
    first_line: int
    alone: bool
    damage: tuple[Damage, ...]
    text: bytes = b""

    @property
    def sound(self) -> bool:
        """Whether the header can be believed: what else is wrong with line 1 takes nothing away from it."""
        return self.header is not None and all(damage.code not in UNHEADED for damage in self.damage)


@frozen
class Body:
    """What identifies all bytes behind line 1. digest: 32 hex digits; length: bytes."""

    digest: str
    length: int


def segment(table: Table, body: int, position: int, raw: bytes, directory: str) -> Segment:
    """What *table* and the bytes *raw* say about one line of a file whose body begins at *body*."""
    index = table.index_of(position)
    record = None if index is None else _parse(raw, directory)[0]
    return Segment(body + table.offsets[position], len(raw), record, raw, table.flaws.get(position), index)


class Piece(NamedTuple):
    """A JSON object, or something unreadable, within a line. start: offset in the line."""

    start: int
    raw: bytes
    record: Record | None
    problem: str | None = None


def new_digest() -> hashlib.blake2b:
    """The running hash that `Body.digest` is made of."""
    return hashlib.blake2b(digest_size=16)


def read_head(fd: int, size: int, directory: str, name: str) -> Head:
    """Line 1 of a transcript of *size* bytes in the session folder *directory*, called *name*."""
    for number, (offset, line, ended) in enumerate(_physical_lines(fd, 0, size, FIRST_CHUNK), 1):
        length = len(line)
        if offset == 0 and line.startswith(_BOM):
            offset, line = len(_BOM), line[len(_BOM) :]
        content = line.strip(BLANK)
        if not content:
            continue
        start = offset + line.index(content)
        after = offset + len(line) + ended
        first, *more = split(content, directory)
        if first.record is not None and is_message(first.record):
            missing = Damage("header-missing", number, "the file begins with a message")
            return Head(None, offset, number, False, (missing,))
        glued = bool(more)
        body = start + len(first.raw) if glued else after
        damage = (*_head_damage(first, number, name), *_damage_of_line_1(first, number, length, len(more)))
        alone = number == 1 and not glued and ended
        return Head(first.record or None, body, number if glued else number + 1, alone, damage, first.raw)
    return Head(None, size, 1, False, (Damage("header-missing", None, "the file is empty"),))


def _head_damage(first: Piece, number: int, name: str) -> Iterator[Damage]:
    if first.record is None:
        yield Damage("header-unreadable", number, first.problem or "not readable")
    elif first.problem is not None:
        yield Damage("header-unreadable", number, first.problem)
    elif not first.record:
        yield Damage("header-missing", number, "line 1 is an empty object")
    elif first.record.get("id") != name:
        yield Damage("id-mismatch", number, f"line 1 says {first.record.get('id')!r}, the folder's name counts")


def _damage_of_line_1(first: Piece, number: int, length: int, glued: int) -> Iterator[Damage]:
    """What keeps other programs from a header that can be read. length: bytes of its line; glued: records behind it."""
    if not first.record:
        return
    if number > 1:
        yield Damage("blank-first-line", 1, "the header stands behind blank lines, where the app does not list it")
    if glued == 1:  # of more the body tells
        yield Damage("line-unreadable", number, "the header and a record on one line, read as if on their own")
    elif length > sessions.LINE_ONE:
        yield Damage("header-oversized", number, sessions.oversized(first.record, length))


def scan_body(
    fd: int, start: int, size: int, table: Table, directory: str, *, body: int, line: int, digest: hashlib.blake2b
) -> bool:
    """Add the lines between *start* and *size* to *table* and *digest*; whether the last one ends in LF.

    *body*: where offsets count from; *line*: number of the line at *start*.
    """
    ids = {hash(identity) for identity in table.ids if identity is not None}
    ended = True
    for number, (offset, text, ended) in enumerate(_physical_lines(fd, start, size, CHUNK), line):
        digest.update(text)
        if ended:
            digest.update(b"\n")
        _add_line(table, text, offset - body, number, ended, directory, ids)
    return ended


def scan_text(data: bytes, offset: int, table: Table, directory: str) -> None:
    """Add the lines of *data*, which begins with one at *offset* of the body, to *table*; numbers begin with 1."""
    ids: set[int] = set()
    lines = data.split(b"\n")
    for number, text in enumerate(lines, 1):
        if number < len(lines) or text:
            _add_line(table, text, offset, number, number < len(lines), directory, ids)
        offset += len(text) + 1


def split(content: bytes, directory: str) -> list[Piece]:
    """The objects in a line without blanks around; what is none becomes one piece without a record."""
    record, problem = _parse(content, directory)
    if record is not None:
        return [Piece(0, content, record, problem)]
    pieces = list(_glued(content, directory))
    if any(piece.record is not None for piece in pieces):
        return pieces
    return [Piece(0, content, None, problem)]


def same_beginning(fd: int, start: int, known: Body, digest: hashlib.blake2b) -> bool:
    """Whether the bytes from *start* on begin with those *known*; they are added to *digest*."""
    left = known.length
    while left:
        chunk = os.pread(fd, min(CHUNK, left), start + known.length - left)
        if not chunk:
            return False
        digest.update(chunk)
        left -= len(chunk)
    return digest.hexdigest() == known.digest


def compare_body(path: Path, known: Body) -> str:
    """What happened to a body since it was *known*: "same", "appended" (what was there is unchanged) or "changed".

    For files that are not open here: reads and hashes, parses nothing but line 1. Raises: OSError.
    """
    fd = disk.open_read(path)
    try:
        size = os.fstat(fd).st_size
        start = read_head(fd, size, "", path.parent.name).body
        if size - start < known.length or not same_beginning(fd, start, known, new_digest()):
            return "changed"
        return "same" if size - start == known.length else "appended"
    finally:
        disk.close(fd)


def _physical_lines(fd: int, start: int, stop: int, first: int) -> Iterator[tuple[int, bytes, bool]]:
    """(offset, bytes without LF, whether there was an LF) of each line between *start* and *stop*."""
    held: list[bytes] = []
    at = offset = start
    length = first
    while at < stop:
        chunk = os.pread(fd, min(length, stop - at), at)
        if not chunk:
            break  # Became shorter meanwhile; the caller looks at size and time.
        length = CHUNK
        at += len(chunk)
        if b"\n" not in chunk:
            held.append(chunk)
            continue
        lines = b"".join((*held, chunk)).split(b"\n")
        held = [lines.pop()]
        for line in lines:
            yield offset, line, True
            offset += len(line) + 1
    if rest := b"".join(held):
        yield offset, rest, False


def _add_line(table: Table, text: bytes, offset: int, number: int, ended: bool, directory: str, ids: set[int]) -> None:
    """A line without its LF, at *offset* of the body. ids: hashes of those of the lines before it."""
    try:
        record = parse_line(text, directory)
    except ValueError:
        record = None
    if type(record) is dict:
        if text[-1] != 125 or text[0] != 123:
            raw = text.strip(BLANK)
            offset += text.index(raw)
            text = raw
        _add(table, Piece(0, text, record), offset, number, ids)
    else:
        _add_hard_line(table, text, offset, number, ended, directory, ids)


def repeated(identity: str, number: int) -> Damage:
    """A second message *identity*, on line *number*."""
    return Damage("id-repeated", number, f"{identity} is the id of an earlier message")


def _add(table: Table, piece: Piece, offset: int, number: int, ids: set[int]) -> None:
    position = len(table)
    table.add(offset, piece.raw, piece.record)
    if piece.problem is not None:
        table.report(Damage("line-unreadable", number, piece.problem), position)
    identity = None if piece.record is None else id_of(piece.record)
    if identity is not None:
        if (digest := hash(identity)) in ids:
            table.report(repeated(identity, number), position)
        ids.add(digest)


def _add_hard_line(
    table: Table, line: bytes, offset: int, number: int, ended: bool, directory: str, ids: set[int]
) -> None:
    """A line that is not simply one object: blank, padded with NULs, several objects, or unreadable."""
    content = line.strip(BLANK)
    pieces = split(content, directory) if content else []
    at = offset + (line.index(content) if content else len(line))
    edges = [offset, *(edge for piece in pieces for edge in (at + piece.start, at + piece.start + len(piece.raw)))]
    _find_padding(table, line, offset, number, [*edges, offset + len(line)], ended)
    if len(pieces) > 1:
        table.report(Damage("line-unreadable", number, f"{len(pieces)} records on one line, read as if on their own"))
    for piece in pieces:
        if piece.record is None:
            torn = not ended and piece is pieces[-1]
            position = len(table)
            table.add(at + piece.start, piece.raw, None)
            what = Damage("torn-tail" if torn else "line-unreadable", number, piece.problem or "not readable")
            table.report(what, position)
        else:
            _add(table, piece, at + piece.start, number, ids)


def _find_padding(table: Table, line: bytes, offset: int, number: int, edges: list[int], ended: bool) -> None:
    """Note the runs of NULs between the pieces of a line; *edges*: start and end of each gap in turn."""
    if b"\0" not in line:
        return
    if len(edges) == 2 and not line.strip(b"\0"):
        table.padding.append((offset, offset + len(line) + ended, b""))
        table.report(Damage("nul-bytes", number, f"{len(line)} NUL bytes"))
        return
    total = 0
    for gap, (start, stop) in enumerate(zip(edges[::2], edges[1::2], strict=True)):
        inner = 0 < gap < len(edges) // 2 - 1
        for run in _NULS.finditer(line, start - offset, stop - offset):
            # Between two objects the first run becomes the line end that is missing there.
            table.padding.append((offset + run.start(), offset + run.end(), b"\n" if inner else b""))
            inner = False
            total += run.end() - run.start()
    if total:
        table.report(Damage("nul-bytes", number, f"{total} NUL bytes beside a record"))


def _parse(content: bytes, directory: str) -> tuple[Record | None, str | None]:
    """The object *content* is, and what is wrong with it."""
    problem: str | None = None
    try:
        record = parse_line(content, directory)
    except UnicodeDecodeError:
        problem = "not UTF-8; U+FFFD stands for what is wrong"
        try:
            record = parse_line(content.decode("utf-8", "replace").encode(), directory)
        except ValueError as error:
            return None, f"neither UTF-8 nor JSON: {error}"
    except ValueError as error:
        return None, f"not JSON: {error}"
    if not isinstance(record, dict):
        return None, "JSON, but no object"
    return record, problem


def _glued(content: bytes, directory: str) -> Iterator[Piece]:
    """The objects that follow each other in *content*, then what is left."""
    text = content.decode("latin-1")  # One character per byte; the structure of JSON is ASCII.
    at = 0
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, end = None, len(text)
        raw = content[at:end]
        record, problem = _parse(raw, directory) if isinstance(value, dict) else (None, "no JSON object")
        yield Piece(at, raw, record, problem)
        at = end
        while at < len(text) and text[at] in " \t\r\0":
            at += 1


@frozen
class Scan:
    """Everything one pass over a file finds. ended: the file ends in LF (or is empty). line_one: hash of what stands
    before the body, good within this process."""

    head: Head
    table: Table
    ended: bool
    digest: hashlib.blake2b = field(eq=False)
    line_one: int
    kept: bool = False
    """The body begins with the bytes that were known before; the table is the old one and what follows."""


def scan(fd: int, size: int, directory: str, name: str, known: tuple[Body, Table] | None = None) -> Scan:
    """Read the first *size* bytes of a transcript. *known*: a body that ended in LF, and its table; if the file still
    begins with it, only the rest is parsed."""
    head = read_head(fd, size, directory, name)
    digest = new_digest()
    if known is not None and size - head.body >= known[0].length and same_beginning(fd, head.body, known[0], digest):
        table, start, kept = known[1].copy(), head.body + known[0].length, True
        line = 0 if start == size else head.first_line + _count_lines(fd, head.body, start)
    else:
        table, start, line, kept = Table(directory), head.body, head.first_line, False
        digest = new_digest()
    ended = scan_body(fd, start, size, table, directory, body=head.body, line=line, digest=digest)
    if start == size:
        ended = kept or (size == 0 or os.pread(fd, 1, size - 1) == b"\n")
    return Scan(head, table, ended, digest, hash(os.pread(fd, head.body, 0)), kept)


def _count_lines(fd: int, start: int, stop: int) -> int:
    total = 0
    while start < stop and (chunk := os.pread(fd, min(CHUNK, stop - start), start)):
        total += chunk.count(b"\n")
        start += len(chunk)
    return total
