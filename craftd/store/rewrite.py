"""A transcript written anew: another line 1, some lines changed or taken out, everything else copied unparsed.

Copying is the kernel's work and may happen outside the workspace's queue (`Prepared`). What was appended meanwhile is
copied when the names are swapped.
"""

from __future__ import annotations

import errno
import hashlib
import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import define, field, frozen

from craftd.model.portable import parse_line
from craftd.model.records import Record
from craftd.store import atomic, disk
from craftd.store.lines import CHUNK, Head, new_digest, scan
from craftd.store.recount import recounted
from craftd.store.table import Table, id_of


@frozen
class Edit:
    """Bytes *start* to *stop* of the body become *data*. position: the line this is about, None = padding.

    line: the new line without LF, None = the line goes away, and with it the next ones if *lines* is more than one.
    """

    start: int
    stop: int
    data: bytes
    position: int | None = None
    line: bytes | None = None
    lines: int = 1

    @property
    def positions(self) -> range:
        """Of the lines this is about."""
        return range(0) if self.position is None else range(self.position, self.position + self.lines)


@define
class Prepared:
    """A new file beside the old one: written, for the most part flushed, and waiting for its name.

    first_line: the new line 1 with its LF, None = everything before the body was copied as it is.
    length: bytes of the old body that were copied. generation: of the transcript it was made from.
    replaced: the lines that are others in it, as they were asked for. digest: of the new body so far, where that is not
    the old one: read here, where nobody else can have written.
    """

    temporary: Path
    fd: int
    first_line: bytes | None
    edits: tuple[Edit, ...]
    length: int
    generation: int
    replaced: Mapping[int, bytes | None]
    digest: hashlib.blake2b | None = None
    spent: bool = field(default=False, init=False)

    def look_through(self, start: int) -> None:
        """Add what stands in the new file from *start* on to the digest."""
        digest = self.digest or new_digest()
        while chunk := os.pread(self.fd, CHUNK, start):
            digest.update(chunk)
            start += len(chunk)
        self.digest = digest

    def discard(self) -> None:
        """Throw the new file away; without effect once it has its name."""
        self.release()
        atomic.discard(self.temporary)

    def release(self) -> None:
        if not self.spent:
            self.spent = True
            disk.close(self.fd)


def edits_for(
    table: Table, count: int, replaced: Mapping[int, bytes | None], source: int, body: int, length: int
) -> tuple[Edit, ...]:
    """What to change in a body of *length* bytes and *count* lines; *source*: the file, whose body begins at *body*.

    A replaced line keeps what stands around it and gets an LF if it had none. Lines taken out take their LFs along.
    NUL bytes that stand beside lines go.
    """

    def gap_after(position: int) -> bytes:
        start = table.end(position) if position >= 0 else 0
        stop = table.offsets[position + 1] if position + 1 < count else length
        if stop - start == 1 and not table.damage:
            return b"\n"
        return os.pread(source, stop - start, body + start)

    edits = []
    for first, last, line in _runs(replaced):
        start, stop = table.offsets[first], table.end(last)
        gap = gap_after(last)
        if line is not None:
            edits.append(Edit(start, stop, line if b"\n" in gap else line + b"\n", first, line))
        else:
            first_on_its_line = first == 0 or b"\n" in gap_after(first - 1)
            stop += gap.find(b"\n") + 1 if first_on_its_line else 0
            # What stood before on the same line, and what stands behind on the last one, must not become one line.
            meet = not first_on_its_line and b"\n" not in gap and last + 1 < count
            edits.append(Edit(start, stop, b"\n" if meet else b"", first, lines=last - first + 1))
    edits += [Edit(start, stop, data) for start, stop, data in table.padding]
    edits.sort(key=lambda edit: (edit.start, edit.stop))
    done = 0
    kept = []
    for edit in edits:
        # Padding inside the gap that goes with a line taken out.
        if edit.start >= done:
            kept.append(edit)
            done = edit.stop
    return tuple(kept)


def _runs(replaced: Mapping[int, bytes | None]) -> Iterator[tuple[int, int, bytes | None]]:
    """(first position, last position, new line): lines in a row that are taken out go together."""
    run: tuple[int, int] | None = None
    for position, line in sorted(replaced.items()):
        if run is not None and line is None and position == run[1] + 1:
            run = run[0], position
            continue
        if run is not None:
            yield *run, None
        run = (position, position) if line is None else None
        if line is not None:
            yield position, position, line
    if run is not None:
        yield *run, None


def copy_body(source: int, target: int, body: int, length: int, edits: tuple[Edit, ...]) -> None:
    """Write the first *length* bytes of the body with *edits* applied at the end of *target*."""
    at = 0
    for edit in edits:
        disk.copy_range(source, target, body + at, body + edit.start)
        if edit.data:
            disk.write(target, edit.data)
        at = edit.stop
    disk.copy_range(source, target, body + at, body + length)


def body_after(
    prepared: Prepared,
    head: Head,
    table: Table,
    digest: hashlib.blake2b | None,
    source: int,
    size: int,
    directory: str,
    name: str,
) -> tuple[Table, hashlib.blake2b | None]:
    """Table and digest of the body in a prepared file with a new line 1.

    *head*, *table*, *digest*: of the old file, open as *source*. *size*: bytes of the new file so far.
    """
    if head.alone and not prepared.edits:
        return table, digest
    if head.alone and not table.damage:
        return _edited(table, prepared.edits, directory, source, head.body), prepared.digest
    # Line numbers and kinds of damage change: only a look at the new file says how.
    found = scan(prepared.fd, size, directory, name)
    ours = {table.ids[edit.position] for edit in prepared.edits if edit.position is not None and edit.line is not None}
    found.table.mark_own(table.own_ids() | {identity for identity in ours if identity is not None})
    return found.table, found.digest


def _edited(table: Table, edits: tuple[Edit, ...], directory: str, source: int, body: int) -> Table:
    """The table of an undamaged body after *edits*. *source*: the old file, whose body begins at *body*."""
    new = Table(directory)
    position = shift = 0
    changed: dict[int, Record | None] = {}
    for edit in edits:
        upto = bisect_left(table.offsets, edit.start)
        new.take(table, position, upto, shift)
        position = upto
        if edit.position is not None:
            position += edit.lines
            changed |= dict.fromkeys(edit.positions)
            if edit.line is not None:
                record = changed[edit.position] = parse_line(edit.line, directory)
                new.put(edit.start + shift, edit.line, id_of(record), own=True)
        shift += len(edit.data) - (edit.stop - edit.start)
    new.take(table, position, len(table), shift)
    new.counted_as(recounted(table, changed, lambda at: parse_line(_line(table, at, source, body), directory)))
    return new


def _line(table: Table, position: int, source: int, body: int) -> bytes:
    line = os.pread(source, table.lengths[position], body + table.offsets[position])
    if hash(line) != table.digests[position]:
        raise OSError(errno.EIO, "file changed while it was read")
    return line
