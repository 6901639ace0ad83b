"""One open `session.jsonl`: constant-cost appends in a format that keeps counters on line 1.

* `append` writes behind the end and flushes. `rewrite` makes a new file beside and swaps names. Nothing else changes a
  transcript, and both have happened durably when they return.
* Before every write the file behind the name must be the one we know, and after it still be; else `ForeignWrite`,
  and the caller reloads, merges and tries again. What is at the name is theirs, and ours is not acknowledged.
* Lines that nobody changed keep their bytes, readable or not.

One thread changes a transcript; `read`, `recent`, `prepare` and `check` may be called from any.
"""

from __future__ import annotations

import hashlib
import os
import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from craftd.model import sessions
from craftd.model.messages import Counters
from craftd.model.portable import parse_line
from craftd.model.records import Record
from craftd.store import atomic, disk
from craftd.store.atomic import Fingerprint, ForeignWrite
from craftd.store.compare import Foreign, Ours, compared
from craftd.store.lines import Body, Scan, Segment, new_digest, read_head, same_beginning, segment
from craftd.store.locate import damage_of_place, locate, scan_file
from craftd.store.rewrite import Prepared, body_after, copy_body, edits_for
from craftd.store.table import Damage, Table

RECENT: Final = 2000
"""How many of the last messages are recognised by id when a client repeats an append (protocol.md, messages/append)."""

FOLD_FRACTION: Final = 8
"""Line 1 is due when the lines it does not know of are one part in this many of the file."""

READ_BATCH: Final = 4 << 20
"""Bytes fetched in one system call."""


class Stale(Exception):
    """The transcript was rewritten or reloaded since this file was prepared: prepare again."""


class Transcript:
    """An open session.jsonl; see the module. Made by `load`."""

    def __init__(self, path: Path, directory: str, actual: Path, known: Fingerprint, found: Scan) -> None:
        self.path = path
        self.directory = directory
        self._lock = threading.Lock()
        self._generation = 0
        self._fd = -1
        self._poisoned = False
        self._ours = Ours()
        self._unsure: set[int] = set()
        self._adopt(actual, known, found)

    def _adopt(self, actual: Path, known: Fingerprint, found: Scan) -> None:
        self.fingerprint = known
        self._actual = actual
        self._head, self._table = found.head, found.table
        self._ended = found.ended
        self._digest: hashlib.blake2b | None = found.digest
        self._length = known.size - found.head.body
        self._unfolded = self._beyond_header()
        self._recent = self._table.latest(RECENT)
        # Who gave the file its name need not have flushed the folder.
        self._name_safe = False
        self._generation += 1

    @classmethod
    def load(cls, path: Path, directory: str) -> Transcript:
        """Read *path* in one pass. *directory*: the session's folder as paths in messages name it. Never writes.

        Raises: FileNotFoundError if there is neither the file nor a complete `.tmp` of the app's; OSError.
        """
        actual = locate(path)
        return cls(path, directory, actual, *scan_file(actual, path.parent.name, directory))

    # What is known without looking at the disk

    @property
    def header(self) -> Record | None:
        """Line 1 with the session's paths expanded; None where it is missing or cannot be read. Not to be changed."""
        return self._head.header

    @property
    def writable(self) -> bool:
        """False if a change would lose what line 1 says, or would be made behind a link: the answer is Corrupt."""
        return self._head.sound and not self.path.parent.is_symlink()

    @property
    def counters(self) -> Counters:
        """What the lines add up to, whatever line 1 says."""
        return self._table.counters

    @property
    def count(self) -> int:
        """Number of messages."""
        return self._table.counters.count

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
        if self.count == 0:
            return ""
        last = self._table.position_of(self.count - 1)
        return (None if last is None else self._table.ids[last]) or f"#{self.count - 1}"

    def find(self, identity: str) -> int | None:
        """Position of the message *identity* (of equal ids the first), `#<index>`, or damaged line `~<byte offset>`."""
        position = self._table.find(identity)
        if position is None and identity[:1] in ("#", "~") and identity[1:].isdecimal():
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

    # Changing

    def append(self, lines: Sequence[bytes], records: Sequence[Record]) -> None:
        """Append *lines* (no LF at their ends) durably; *records*: the same, parsed.

        Raises: ForeignWrite; the lines may be in the file all the same, so look for their ids after reloading.
        OSError: nothing was acknowledged and nothing is left of it where the disk allows. After a failed flush the
        next change writes a new file, and until that succeeds every change raises.
        """
        if not lines:
            return
        self._settle_name()
        now = self._verify()
        if self._poisoned or now.links > 1 or not (self._ended or self._length):
            # Also line 1 without an LF: appending one would move the beginning of the body.
            self._swap(self._begin(None, {}), lines, records)
            return
        fd = self._handle()
        data = _text(lines, self._ended)
        try:
            disk.write(fd, data)
        except OSError:
            self._cut_back(fd, data)
            raise
        try:
            disk.flush(fd)
        except OSError:
            self._poisoned = True
            self._cut_back(fd, data)
            raise
        after = atomic.fingerprint(self._actual)
        if after is None or after.inode != now.inode or after.size != now.size + len(data):
            self._unsure.update(map(hash, lines))
            raise ForeignWrite(self.path)
        with self._lock:
            self.fingerprint = after
            self._extend(lines, records, data)
            self._unfolded += len(data)

    def rewrite(
        self, header: Record, lines: Sequence[bytes] = (), *, replaced: Mapping[int, bytes | None] | None = None
    ) -> None:
        """Write a new file with *header* as line 1, the lines at some positions *replaced* (None = taken out) and
        *lines* appended, durably. Line 1 is taken to count all of them.

        Raises: ForeignWrite: nothing was changed. DirectoryNotFlushed: all is in place, but not yet safe from a power
        loss; the next change tries again. Other OSError: nothing was changed.
        """
        self._settle_name()
        self._verify()
        self._swap(self._begin(header, replaced or {}), lines, self._parsed(lines), counted=True)

    def prepare(self, header: Record, *, replaced: Mapping[int, bytes | None] | None = None) -> Prepared:
        """Do the long part of a rewrite: copy and flush beside. For `finish`, or `Prepared.discard`.

        Raises: ForeignWrite, OSError, with nothing left behind.
        """
        prepared = self._begin(header, replaced or {})
        try:
            disk.flush_full(prepared.fd)
        except BaseException:
            prepared.discard()
            raise
        return prepared

    def finish(self, prepared: Prepared, lines: Sequence[bytes] = ()) -> None:
        """The short part: copy what was appended since, then *lines*, and swap names.

        Raises: Stale if the transcript was rewritten or reloaded meanwhile; else like `rewrite`. What was prepared is
        used up in any case.
        """
        try:
            if prepared.generation != self._generation:
                raise Stale
            self._settle_name()
            self._verify()
        except BaseException:
            prepared.discard()
            raise
        self._swap(prepared, lines, self._parsed(lines))

    def close(self) -> None:
        """Give the handle back; the next append opens another.

        From then on only the last MiB of acknowledged lines could be put back after a foreign save.
        """
        if self._fd >= 0:
            disk.close(self._fd)
            self._fd = -1

    # Foreign writes

    def reload(self) -> Foreign:
        """Look at what somebody else wrote and take it as the state; ours that they dropped is in the answer.

        Raises: FileNotFoundError if the file is gone for longer than a save takes; OSError. Then nothing has changed.
        """
        old = self._table
        known = None
        if self._ended and self._digest is not None:
            known = (Body(self._digest.hexdigest(), self._length), old)
        actual = locate(self.path)
        fingerprint, found = scan_file(actual, self.path.parent.name, self.directory, known)
        headers = self.header, found.head.header
        if found.kept:
            foreign = Foreign(*headers, appended=tuple(range(len(old), len(found.table))))
            for position in foreign.appended:
                # Ours from an append that met theirs: in the file, and the caller's next try only confirms it.
                found.table.own[position] = found.table.digests[position] in self._unsure
        else:
            foreign = compared(old, found.table, *headers, earlier=self._ours.earlier, line_of=self._old_line)
        if fingerprint.inode != self.fingerprint.inode:
            self.close()
            self._poisoned = False
        self._unsure.clear()
        with self._lock:
            self._adopt(actual, fingerprint, found)
        return foreign

    def _old_line(self, position: int) -> bytes | None:
        """A line of ours that is not in the file any more: from the old file if that is still open, or from memory."""
        table = self._table
        digest = table.digests[position]
        if self._fd >= 0:
            line = os.pread(self._fd, table.lengths[position], self._head.body + table.offsets[position])
            if hash(line) == digest:
                return line
        return self._ours.lines.get(digest)

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

    def _verify(self) -> Fingerprint:
        now = self._now()
        if now is None or now != self.fingerprint:
            raise ForeignWrite(self.path)
        return now

    def _now(self) -> Fingerprint | None:
        rescued = self._actual.name != self.path.name
        return None if rescued and self.path.exists() else atomic.fingerprint(self._actual)

    def _handle(self) -> int:
        """The handle for appending; it is behind the name we know, or ForeignWrite."""
        if self._fd < 0:
            try:
                fd = disk.open_append(self._actual)
            except FileNotFoundError:
                raise ForeignWrite(self.path) from None
            if os.fstat(fd).st_ino != self.fingerprint.inode:
                disk.close(fd)
                raise ForeignWrite(self.path)
            self._fd = fd
        return self._fd

    def _settle_name(self) -> None:
        """Before the first change: a rescued file gets its name, and the name survives a power loss."""
        if self._actual.name != self.path.name:
            self._verify()
            try:
                disk.rename_new(self._actual, self.path)
            except (FileExistsError, FileNotFoundError):
                raise ForeignWrite(self.path) from None
            self._actual = self.path
        if not self._name_safe:
            disk.flush_directory(self._target().parent)
            self._name_safe = True

    def _target(self) -> Path:
        """The file itself, where the name is a link."""
        return Path(os.path.realpath(self._actual)) if self._actual.is_symlink() else self._actual

    def _cut_back(self, fd: int, data: bytes) -> None:
        """Take back what a failed append of *data* left, unless a foreign program wrote there as well."""
        size = self.fingerprint.size
        try:
            extra = os.pread(fd, len(data) + 1, size)
            if not data.startswith(extra):
                return
            if extra:
                disk.truncate(fd, size)
        except OSError:
            self._poisoned = True
        now = atomic.of_stat(os.fstat(fd))
        if now.inode == self.fingerprint.inode:
            self.fingerprint = now

    def _begin(self, header: Record | None, replaced: Mapping[int, bytes | None]) -> Prepared:
        """A new file beside with line 1 (None = as it is) and the body as it is now, edited; not flushed."""
        with self._lock:
            generation, known, table, count = self._generation, self.fingerprint, self._table, len(self._table)
            body, length = self._head.body, self._length
        target = self._target()
        source = self._open_known(known.inode)
        try:
            with self._foreign_first():
                edits = () if header is None else edits_for(table, count, replaced, source, body, length)
                first_line = None if header is None else sessions.header_line(header, self.directory) + b"\n"
                temporary = atomic.temporary_beside(target)
                fd = disk.create(temporary)
                prepared = Prepared(temporary, fd, first_line, edits, length, generation)
                try:
                    disk.keep_mode_and_owner(fd, os.fstat(source))
                    if first_line is None:
                        disk.copy_range(source, fd, 0, body)
                    else:
                        disk.write(fd, first_line)
                    copy_body(source, fd, body, length, edits)
                except BaseException:
                    prepared.discard()
                    raise
        finally:
            disk.close(source)
        return prepared

    @contextmanager
    def _foreign_first(self) -> Iterator[None]:
        """An error while reading a file that somebody else is writing is theirs, not the disk's."""
        try:
            yield
        except OSError as error:
            if self.check():
                raise
            raise ForeignWrite(self.path) from error

    def _swap(
        self, prepared: Prepared, lines: Sequence[bytes], records: Sequence[Record], *, counted: bool = False
    ) -> None:
        """Complete the new file, give it the name, and take it as the state. *counted*: line 1 knows of everything."""
        fd, target, body = prepared.fd, self._target(), self._head.body
        try:
            with self._foreign_first():
                source = self._handle()
                disk.copy_range(source, fd, body + prepared.length, body + self._length)
                size = os.fstat(fd).st_size
                ended = size == 0 or os.pread(fd, 1, size - 1) == b"\n"
                table, digest = self._table, self._digest
                if prepared.first_line is not None:
                    table, digest = body_after(
                        prepared, self._head, table, digest, source, size, self.directory, self.path.parent.name
                    )
                data = _text(lines, ended)
                disk.write(fd, data)
                disk.flush_full(fd)
                known = atomic.of_stat(os.fstat(fd))
                head = read_head(fd, known.size, self.directory, self.path.parent.name)
                appender = disk.open_append(prepared.temporary)
        except BaseException:
            prepared.discard()
            raise
        with self._lock:
            try:
                atomic.swap_in(prepared.temporary, target, self.fingerprint, known)
            except BaseException:
                disk.close(appender)
                raise
            finally:
                prepared.release()
            self.close()
            self._ours.edited(self._table, prepared.edits)
            appended = len(data) + self._length - prepared.length
            self._unfolded = self._unfolded + len(data) if prepared.first_line is None else 0 if counted else appended
            self._fd, self.fingerprint, self._poisoned = appender, known, False
            self._head, self._table, self._digest = head, table, digest
            self._ended, self._length = ended, known.size - len(data) - head.body
            if self._length < 0:
                # Line 1 had no LF; the one we wrote belongs to it.
                self._ended, self._length, data = True, 0, data[1:]
            if prepared.edits:
                self._recent = table.latest(RECENT)
            self._extend(lines, records, data)
            self._generation += 1
            self._name_safe = False
        atomic.flush_name(target)
        self._name_safe = True

    def _extend(self, lines: Sequence[bytes], records: Sequence[Record], data: bytes) -> None:
        """Take *lines*, written as *data*, into the tables."""
        if not lines:
            return
        table, offset = self._table, self._length
        if not self._ended:
            offset += 1
            table.settle_tail()
        if self._digest is not None:
            self._digest.update(data)
        for line, record in zip(lines, records, strict=True):
            if isinstance(identity := record.get("id"), str):
                self._recent.setdefault(identity, len(table))
            table.add(offset, line, record, own=True)
            offset += len(line) + 1
            self._ours.remember(line)
        self._length, self._ended = offset, True

    def _parsed(self, lines: Sequence[bytes]) -> list[Record]:
        return [parse_line(line, self.directory) for line in lines]


def _text(lines: Sequence[bytes], ended: bool) -> bytes:
    """*lines* as they are appended to a file whose last line has *ended* or not."""
    if not lines:
        return b""
    return b"".join((b"" if ended else b"\n", *(line + b"\n" for line in lines)))
