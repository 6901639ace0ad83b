"""An open transcript as far as it can be read: what its tables say, and lines fetched from the file when asked for."""

from __future__ import annotations

import hashlib
import os
import threading
from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from craftd.model.messages import Counters
from craftd.model.records import Record
from craftd.store import atomic, disk
from craftd.store.atomic import Fingerprint, ForeignWrite
from craftd.store.lines import Body, Scan, Segment, new_digest, same_beginning, segment
from craftd.store.locate import damage_of_place, in_linked_folder, locate, scan_file
from craftd.store.recount import recounted
from craftd.store.sound import Sound
from craftd.store.table import Damage, Table

RECENT: Final = 2000
"""How many of the last messages are recognised by id when a client repeats an append (protocol.md, messages/append)."""

FOLD_FRACTION: Final = 8
"""Line 1 is due when the lines it does not know of are one part in this many of the file."""

READ_BATCH: Final = 4 << 20
"""Bytes fetched in one system call."""


class Reading:
    """The reading half of `Transcript`. Any thread may ask."""

    def __init__(self, path: Path, directory: str, actual: Path, known: Fingerprint, found: Scan) -> None:
        self.path = path
        self.directory = directory
        self._lock = threading.Lock()
        self._generation = 0
        self._adopt(actual, known, found)

    def _adopt(self, actual: Path, known: Fingerprint, found: Scan) -> None:
        self.fingerprint = known
        self._actual = actual
        self._head, self._table = found.head, found.table
        self._ended, self._line_one = found.ended, found.line_one
        self._digest: hashlib.blake2b | None = found.digest
        self._length = known.size - found.head.body
        self._unfolded = self._beyond_header()
        self._recent = self._table.latest(RECENT)
        self._generation += 1

    @classmethod
    def load(cls, path: Path, directory: str, sound: Sound | None = None) -> Self:
        """Read *path* in one pass. *directory*: the session's folder as paths in messages name it; *sound*: what an
        earlier reading found. Never writes.

        Raises: FileNotFoundError if there is neither the file nor a complete `.tmp` of the app's; OSError.
        """
        actual = locate(path)
        return cls(path, directory, actual, *scan_file(actual, path.parent.name, directory, sound=sound))

    # What is known without looking at the disk

    @property
    def header(self) -> Record | None:
        """Line 1 with the session's paths expanded; None where it is missing or cannot be read. Not to be changed."""
        return self._head.header

    @property
    def writable(self) -> bool:
        """False if a change would lose what line 1 says, or would be made behind a link: the answer is Corrupt."""
        return self._head.sound and not in_linked_folder(self.path)

    @property
    def counters(self) -> Counters:
        """What the lines add up to, whatever line 1 says."""
        with self._lock:
            return self._table.counters

    @property
    def count(self) -> int:
        """Number of messages."""
        return self.counters.count

    def __len__(self) -> int:
        """Number of segments: messages and damaged lines."""
        return len(self._table)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """All that is wrong: with line 1, the lines in their order, the counts, the place of the file."""
        found = [*self._head.damage, *self._table.damage]
        stored = None if self.header is None else self.header.get("messageCount")
        if isinstance(stored, int) and stored > (there := len(self._table)):
            found.append(Damage("count-mismatch", 1, f"line 1 counts {stored} messages, {there} are there"))
        elif self.header is not None and stored == (counters := self.counters).count:
            for name, value in (
                ("lastMessageRole", counters.last_role),
                ("lastFinalMessageId", counters.last_final_id),
            ):
                if self.header.get(name, value) != value:
                    found.append(
                        Damage("count-mismatch", 1, f"line 1 says {name} {self.header[name]!r}, not {value!r}")
                    )
        found += damage_of_place(self.path, self._actual)
        return tuple(found)

    @property
    def unfolded_bytes(self) -> int:
        """Bytes of lines that line 1 does not know of."""
        return self._unfolded

    @property
    def needs_fold(self) -> bool:
        return self._unfolded > 0 and self._unfolded * FOLD_FRACTION >= self.fingerprint.size

    @property
    def tail_id(self) -> str:
        """Id of the last message, `#<index>` if it has none, "" if there is no message."""
        with self._lock:
            index = self._table.counters.count - 1
            position = self._table.position_of(index)
            return "" if position is None else self._table.ids[position] or f"#{index}"

    @property
    def flaws(self) -> Mapping[int, Damage]:
        """What is wrong with single lines, by position."""
        return self._table.flaws

    def id_of(self, position: int) -> str | None:
        """Of the message at *position*."""
        return self._table.ids[position]

    def digest_of(self, position: int) -> int:
        """Hash of the line at *position*."""
        return self._table.digests[position]

    def index_of(self, position: int) -> int | None:
        """Number of the message at *position*, None for a damaged line."""
        return self._table.index_of(position)

    def position_of(self, index: int) -> int | None:
        """Position of message number *index*."""
        return self._table.position_of(index)

    def bytes_from(self, position: int) -> int:
        """Bytes of the lines from *position* to the end, and of what stands between them."""
        return self._length - self._table.offsets[position] if position < len(self._table) else 0

    def recent_position(self, identity: str) -> int | None:
        """Position of what `recent` answers."""
        return self._recent.get(identity)

    def counters_with(self, changed: Mapping[int, Record | None]) -> Counters:
        """What the lines would add up to with the messages at some positions *changed* (None = taken out)."""
        return recounted(self._table, changed, lambda position: self.read(position, position + 1)[0].record)

    def find(self, identity: str, start: int = 0) -> int | None:
        """Position of the message *identity* (of equal ids the first from *start* on), `#<index>`, or damaged line
        `~<byte offset>`."""
        position = self._table.find(identity, start)
        if position is None and identity[:1] in ("#", "~") and identity[1:].isdecimal() and len(identity) < 20:
            number = int(identity[1:])
            if identity[0] == "#":
                return self._table.position_of(number)
            at = bisect_left(self._table.offsets, number - self._head.body) if number >= self._head.body else 0
            if at < len(self._table) and self._table.offsets[at] + self._head.body == number:
                return at
        return position

    # Reading

    def check(self) -> bool:
        """Whether the file is still the one we know; False: reload."""
        return self._now() == self.fingerprint

    def read(self, start: int, stop: int) -> list[Segment]:
        """The segments from position *start* to before *stop*, fetched from the file.

        Raises: ForeignWrite if it is not the file we know any more; OSError.
        """
        while True:
            with self._lock:
                generation, table, body = self._generation, self._table, self._head.body
                inode, last = self.fingerprint.inode, min(stop, len(table))
            try:
                return self._read(table, body, inode, start, last)
            except ForeignWrite:
                with self._lock:
                    if self._generation == generation:
                        raise
            # Rewritten by ourselves between the look at the tables and the look at the file.

    def within(self, start: int, stop: int, most: int, *, from_end: bool) -> tuple[int, int]:
        """As many of these positions as have *most* bytes together, at least one if there is one."""
        with self._lock:
            lengths = self._table.lengths[start:stop]
        size = kept = 0
        for length in reversed(lengths) if from_end else lengths:
            size += length
            if kept and size > most:
                break
            kept += 1
        return (start + len(lengths) - kept, start + len(lengths)) if from_end else (start, start + kept)

    def _read(self, table: Table, body: int, inode: int, start: int, stop: int) -> list[Segment]:
        if start >= stop:
            return []
        fd = self._open_known(inode)
        try:
            segments: list[Segment] = []
            while start < stop:
                upto = max(start + 1, bisect_left(table.offsets, table.offsets[start] + READ_BATCH, start, stop))
                first = table.offsets[start]
                data = os.pread(fd, table.end(upto - 1) - first, body + first)
                for position in range(start, upto):
                    raw = data[table.offsets[position] - first : table.end(position) - first]
                    if hash(raw) != table.digests[position]:
                        raise ForeignWrite(self.path)
                    segments.append(segment(table, body, position, raw, self.directory))
                start = upto
            return segments
        finally:
            disk.close(fd)

    @property
    def first_line(self) -> bytes:
        """The text of line 1, readable or not; b"" where there is no header."""
        return self._head.text

    def joints(self) -> list[int]:
        """Positions of lines that have no LF between them and the next. Raises: ForeignWrite, OSError."""
        fd = self._open_known(self.fingerprint.inode)
        try:
            table, body, found = self._table, self._head.body, []
            for position in range(len(table) - 1):
                end = table.end(position)
                if b"\n" not in os.pread(fd, table.offsets[position + 1] - end, body + end):
                    found.append(position)
            return found
        finally:
            disk.close(fd)

    def recent(self, identity: str) -> Record | None:
        """The message *identity* if it is among the last 2,000 or was appended by this process since loading."""
        position = self._recent.get(identity)
        return None if position is None else self.read(position, position + 1)[0].record

    def body(self) -> Body:
        """Digest and length of everything behind line 1. Raises: ForeignWrite, OSError."""
        digest = self._digest
        if digest is None:
            fd = self._open_known(self.fingerprint.inode)
            try:
                digest = new_digest()
                same_beginning(fd, self._head.body, Body("", self._length), digest)
            finally:
                disk.close(fd)
            if not self.check():
                raise ForeignWrite(self.path)
            self._digest = digest
        return Body(digest.hexdigest(), self._length)

    # Inner parts

    def _beyond_header(self) -> int:
        stored = None if self.header is None else self.header.get("messageCount")
        if not isinstance(stored, int) or (first := self._table.position_of(max(stored, 0))) is None:
            return 0
        return self._length - self._table.offsets[first]

    def _open_known(self, inode: int) -> int:
        """A handle for reading the file we know."""
        try:
            fd = disk.open_read(self._actual)
        except FileNotFoundError:
            raise ForeignWrite(self.path) from None
        if os.fstat(fd).st_ino != inode:
            disk.close(fd)
            raise ForeignWrite(self.path)
        return fd

    def _now(self) -> Fingerprint | None:
        rescued = self._actual.name != self.path.name
        return None if rescued and self.path.exists() else atomic.fingerprint(self._actual)
