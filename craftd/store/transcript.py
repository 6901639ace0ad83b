"""One open `session.jsonl`: constant-cost appends in a format that keeps counters on line 1.

* `append` writes behind the end and flushes. `rewrite` makes a new file beside and swaps names. Nothing else changes a
  transcript, and both have happened durably when they return.
* Before every write the file behind the name must be the one we know, and after it still be; else `ForeignWrite`,
  and the caller reloads, merges and tries again. What is at the name is theirs, and ours is not acknowledged.
* Lines that nobody changed keep their bytes, readable or not.

One thread changes a transcript; any may read it (`Reading`) and prepare a rewrite.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve

from craftd.model import sessions
from craftd.model.portable import parse_line
from craftd.model.records import Record
from craftd.store import atomic, disk
from craftd.store.atomic import Fingerprint, ForeignWrite
from craftd.store.compare import Foreign, Ours, compared
from craftd.store.lines import Body, Scan, read_head
from craftd.store.locate import locate, scan_file
from craftd.store.reading import RECENT, Reading
from craftd.store.rewrite import Prepared, body_after, copy_body, edits_for
from craftd.store.said import Said
from craftd.store.table import Table


class Stale(Exception):
    """The transcript was rewritten or reloaded since this file was prepared: prepare again."""


class Transcript(Reading):
    """An open session.jsonl; see the module. Made by `load`."""

    def __init__(self, path: Path, directory: str, actual: Path, known: Fingerprint, found: Scan) -> None:
        self._fd = -1
        self._poisoned = False
        self._ours = Ours()
        self._said = Said()
        self._unsure: set[int] = set()
        super().__init__(path, directory, actual, known, found)

    def _adopt(self, actual: Path, known: Fingerprint, found: Scan) -> None:
        super()._adopt(actual, known, found)
        # Who wrote the file and gave it its name need not have flushed anything.
        self._name_safe = self._data_safe = False

    # Changing

    def append(self, lines: Sequence[bytes], records: Sequence[Record]) -> None:
        """Append *lines* (no LF at their ends) durably; *records*: the same, parsed.

        Raises: ForeignWrite; the lines may be in the file all the same, so look for their ids after reloading.
        OSError: nothing was acknowledged and nothing is left of it where the disk allows. After a failed flush the
        next change writes a new file, and until that succeeds every change raises. DirectoryNotFlushed: see `rewrite`.
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
        if atomic.of_stat(os.fstat(fd)) != now:
            raise ForeignWrite(self.path)
        data = _text(lines, self._ended)
        try:
            disk.write(fd, data)
        except OSError:
            self._cut_back(fd, data)
            raise
        written = atomic.of_stat(os.fstat(fd))
        try:
            disk.flush(fd)
        except OSError:
            self._poisoned = True
            self._cut_back(fd, data)
            raise
        after = atomic.fingerprint(self._actual)
        # Written within one tick of the clock, the file looks the same; its line 1, at least, is compared.
        touched = after != written or hash(os.pread(fd, self._head.body, 0)) != self._line_one
        if after is None or touched or after.size != now.size + len(data):
            self._unsure.update(map(hash, lines))
            for line, record in zip(lines, records, strict=True):
                self._ours.remember(line, record.get("id"))
            self.distrust()
            raise ForeignWrite(self.path)
        self._data_safe = True
        with self._lock:
            self.fingerprint = after
            self._extend(lines, records, data)
            self._unfolded += len(data)

    @property
    def safe(self) -> bool:
        """Whether all that is in the file is known to survive a power loss."""
        return self._name_safe and self._data_safe

    def make_safe(self) -> None:
        """Flush what is there, whoever wrote it: somebody is about to be told that it is stored. Nothing is changed.

        Raises: ForeignWrite, OSError.
        """
        self._flush_name()
        self._verify()
        disk.flush(self._handle())
        self._data_safe = True

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

    def copy_to(self, beside: Path) -> None:
        """Give a copy of the file the new name *beside* in the same folder, durably.

        Raises: ForeignWrite; FileExistsError; OSError. Then nothing is left of it.
        """
        source = self._open_known(self.fingerprint.inode)
        try:
            with self._foreign_first():
                copy = atomic.Copy(source, self.fingerprint.size)
                atomic.write_new(beside, copy, mode=None, like=os.fstat(source))
            try:
                disk.flush_directory(beside.parent)
            except BaseException:
                atomic.discard(beside)
                raise
        finally:
            disk.close(source)

    def in_place(self, *, safe: bool) -> None:
        """The folder in which it was read, complete and flushed, has its name now. safe: for good."""
        self._actual, self._data_safe, self._name_safe = self.path.with_name(self._actual.name), True, safe
        with self._lock:
            self._table.own[:] = b"\1" * len(self._table)  # a program that knew what was here before may save now

    def hold(self) -> None:
        """Keep the file open, so that its lines are found when another takes its name."""
        try:
            self._handle()
        except (OSError, ForeignWrite):
            pass

    def distrust(self) -> None:
        """The file is not what it looks like: `check` says no until it is read again."""
        self.fingerprint = evolve(self.fingerprint, mtime_ns=-1)

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
        known_by_them = self._said.at(fingerprint.mtime_ns)
        headers = self.header if known_by_them is None else known_by_them, found.head.header
        if found.kept:
            foreign = Foreign(*headers, appended=tuple(range(len(old), len(found.table))))
        else:
            foreign = compared(old, found.table, *headers, earlier=self._ours.earlier, line_of=self._old_line)
        returned = tuple(position for position in foreign.appended if self._ours.took_out(found.table, position))
        bases = tuple(self._ours.bases.get(found.table.ids[position] or "") for position in foreign.changed)
        foreign = evolve(foreign, returned=returned, bases=bases, late=known_by_them is not None)
        for position in foreign.appended:
            # Ours from an append that met theirs: in the file, and the caller's next try only confirms it.
            found.table.own[position] = found.table.digests[position] in self._unsure
        if fingerprint.inode != self.fingerprint.inode:
            self.close()
            self._poisoned = False
        self._unsure.clear()
        with self._lock:
            self._adopt(actual, fingerprint, found)
        if any(found.table.own):
            self.hold()  # should the next save drop one of them
        return foreign

    def _old_line(self, position: int) -> bytes | None:
        """A line of ours that is not in the file any more: from the old file if that is still open, or from memory."""
        table = self._table
        digest = table.digests[position]
        if self._fd >= 0:
            line = os.pread(self._fd, table.lengths[position], self._head.body + table.offsets[position])
            if hash(line) == digest:
                return line
        return self._ours.line(digest, table.ids[position])

    # Inner parts

    def _verify(self) -> Fingerprint:
        now = self._now()
        if now is None or now != self.fingerprint:
            raise ForeignWrite(self.path)
        return now

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
            self._actual, self._name_safe = self.path, False
        self._flush_name()

    def _flush_name(self) -> None:
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
                prepared = Prepared(temporary, fd, first_line, edits, length, generation, dict(replaced))
                try:
                    disk.keep_mode_and_owner(fd, os.fstat(source))
                    if first_line is None:
                        disk.copy_range(source, fd, 0, body)
                    else:
                        disk.write(fd, first_line)
                    copy_body(source, fd, body, length, edits)
                    if edits:
                        assert first_line is not None
                        prepared.look_through(len(first_line))
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
                if prepared.edits:
                    prepared.look_through(size - (self._length - prepared.length))
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
                line_one = hash(os.pread(fd, head.body, 0))
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
            if self.header is not None:
                self._said.replaced(self.header)
            old = self._fd, self._table, self._head.body
            self._ours.edited(self._table, prepared.edits, lambda at: _line_at(*old, at))
            disk.close_last(self._fd, self.fingerprint.size)
            appended = len(data) + self._length - prepared.length
            self._unfolded = self._unfolded + len(data) if prepared.first_line is None else 0 if counted else appended
            self._fd, self.fingerprint, self._poisoned = appender, known, False
            self._head, self._table, self._digest, self._line_one = head, table, digest, line_one
            self._ended, self._length = ended, known.size - len(data) - head.body
            if self._length < 0:
                # Line 1 had no LF; the one we wrote belongs to it.
                self._ended, self._length, data = True, 0, data[1:]
            if prepared.edits:
                self._recent = table.latest(RECENT)
            self._extend(lines, records, data)
            self._generation += 1
            self._name_safe, self._data_safe = False, True
        atomic.flush_names(target)
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
            identity = record.get("id")
            if isinstance(identity, str):
                self._recent.setdefault(identity, len(table))
                self._ours.remember(line, identity)
            table.add(offset, line, record, own=True)
            offset += len(line) + 1
        self._length, self._ended = offset, True

    def _parsed(self, lines: Sequence[bytes]) -> list[Record]:
        return [parse_line(line, self.directory) for line in lines]


def _line_at(fd: int, table: Table, body: int, position: int) -> bytes | None:
    line = os.pread(fd, table.lengths[position], body + table.offsets[position])
    return line if hash(line) == table.digests[position] else None


def _text(lines: Sequence[bytes], ended: bool) -> bytes:
    """*lines* as they are appended to a file whose last line has *ended* or not."""
    if not lines:
        return b""
    return b"".join((b"" if ended else b"\n", *(line + b"\n" for line in lines)))
