"""The end of a transcript that is not open, read backwards: a page costs what it returns, however long the file is.

The last whole reading said how many lines there are and what is wrong with them. So everything is counted from the end,
and what a page says of a line is what an open transcript says.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left, insort
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from attrs import evolve

from craftd.store import atomic, disk
from craftd.store.atomic import Fingerprint, ForeignWrite
from craftd.store.lines import BODY_DAMAGE, Segment, repeated, scan_text, segment
from craftd.store.table import Damage, Table

STEP: Final = 64 << 10
"""Bytes looked at in one go, if no line is longer; and how far apart places are that are remembered."""


class Unsure(Exception):
    """Only who reads the whole file can say what stands there."""


class Mark(NamedTuple):
    """Where a line of the body begins, and how many lines are listed, messages and damages are known before it."""

    offset: int
    position: int
    messages: int
    damages: int


class Tail:
    """What is known of one state of a file. Any thread may ask.

    known, damage: of the file. length: bytes of its body; lines, messages: how many of them it has.
    """

    def __init__(
        self,
        path: Path,
        directory: str,
        known: Fingerprint,
        length: int,
        lines: int,
        messages: int,
        damage: Sequence[Damage],
    ) -> None:
        self.fingerprint = known
        self.lines, self.messages = lines, messages
        self._path, self._directory = path, directory
        self._body = known.size - length
        self._repeated = {one.message for one in damage if one.code == "id-repeated"}
        self._damage = [one for one in damage if one.code in BODY_DAMAGE and one.code != "id-repeated"]
        self._marks = [Mark(length, lines, messages, len(self._damage))]
        self._lock = threading.Lock()

    def before(self, edge: int, count: int, most: int) -> list[Segment]:
        """The last *count* segments before position *edge*, in their order: as many as have *most* bytes, at least one.

        Raises: ForeignWrite if it is not the file we know any more; Unsure; OSError.
        """
        try:
            fd = disk.open_read(self._path)
        except FileNotFoundError:
            raise ForeignWrite(self._path) from None
        try:
            self._expect_known(fd)
            with self._lock:
                found = self._before(fd, min(edge, self.lines), count, most)
            self._expect_known(fd)
            return found
        finally:
            disk.close(fd)

    def _expect_known(self, fd: int) -> None:
        if atomic.of_stat(os.fstat(fd)) != self.fingerprint:
            raise ForeignWrite(self._path)

    def _before(self, fd: int, edge: int, count: int, most: int) -> list[Segment]:
        found: list[Segment] = []
        size = 0
        # Behind the marks before the edge; those that stand at it are of blank lines, which are nothing's.
        mark = self._marks[bisect_left(self._marks, edge, key=lambda mark: mark.position)]
        while mark.position > 0:
            mark, segments = self._step(fd, mark, edge)
            for one in reversed(segments):
                size += one.length
                if len(found) == count or (found and size > most):
                    return found[::-1]
                found.append(one)
        return found[::-1]

    def _step(self, fd: int, stop: Mark, edge: int) -> tuple[Mark, list[Segment]]:
        """The lines of about STEP bytes before *stop*: where they begin, and which stand before position *edge*."""
        offset, data = self._lines_before(fd, stop.offset)
        table = Table(self._directory)
        scan_text(data, offset, table, self._directory)
        if any(identity is not None and repeated(identity, 0).message in self._repeated for identity in table.ids):
            raise Unsure  # whether a line is the first of its id is not to be seen from behind
        start = Mark(
            offset,
            stop.position - len(table),
            stop.messages - (len(table) - len(table.unreadable)),
            stop.damages - len(table.damage),
        )
        damage = self._damage[max(start.damages, 0) : stop.damages]
        if min(start) < 0 or (offset == 0 and (start.position or start.messages)) or not _alike(damage, table.damage):
            raise Unsure
        if self._is_far(start):
            insort(self._marks, start)
        numbered = {id(one): same for one, same in zip(table.damage, damage, strict=True)}
        found = []
        for position in range(min(len(table), edge - start.position)):
            raw = data[table.offsets[position] - offset : table.end(position) - offset]
            one = segment(table, self._body, position, raw, self._directory)
            index = None if one.index is None else one.index + start.messages
            flaw = None if one.damage is None else numbered[id(one.damage)]
            found.append(evolve(one, index=index, damage=flaw))
        return start, found

    def _lines_before(self, fd: int, stop: int) -> tuple[int, bytes]:
        """Whole lines that end at *stop*: offset of the first in the body, and their bytes."""
        length = STEP
        while True:
            start = max(0, stop - length)
            data = os.pread(fd, stop - start, self._body + start)
            if len(data) != stop - start:
                raise ForeignWrite(self._path)
            if start == 0:
                return 0, data
            end = data.find(b"\n", 0, len(data) - 1)
            if end >= 0:
                return start + end + 1, data[end + 1 :]
            length *= 2

    def _is_far(self, mark: Mark) -> bool:
        """Whether *mark* is worth remembering."""
        at = bisect_left(self._marks, mark)
        return self._marks[at].offset - mark.offset >= STEP // 2 and (
            at == 0 or mark.offset - self._marks[at - 1].offset >= STEP // 2
        )


def _alike(known: Sequence[Damage], found: Sequence[Damage]) -> bool:
    """Whether they are the same but for the numbers of lines."""
    return [(one.code, one.message) for one in known] == [(one.code, one.message) for one in found]
