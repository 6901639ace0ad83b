"""Bytes on their way in: staged in files of the daemon's own folder until a change uses them.

A blob belongs to the connection that made it: its id means nothing to others, and it goes with the connection. What is
done to one blob is done in the order asked for, in threads; nothing here is flushed, because a crash drops it anyway.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import os
import re
from bisect import insort
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, Future, wait
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import ClassVar, Final, TypeVar

from attrs import define, field

from craftd.errors import Busy, InvalidParams, InvalidState, Issue, NotFound, Ref, TooLarge, ValidationFailed
from craftd.server.connection import Connection
from craftd.store import atomic, disk

CHUNK_BYTES: Final = 1 << 20
BLOB_BYTES: Final = 100 << 20
CONNECTION_BYTES: Final = 256 << 20
"""Of all blobs of one connection together: declared sizes count whole."""
CONNECTION_BLOBS: Final = 256
IDLE_SECONDS: Final = 300.0
"""A blob that nobody writes to or uses for so long is dropped."""
RELEASE_SECONDS: Final = 0.5
"""Between two looks at whether the changes of a client that is gone are done."""

_DIGEST: Final = re.compile(r"[0-9a-fA-F]{64}")

_T = TypeVar("_T")


@define(eq=False)
class Blob:
    """size, sha256: as announced. ranges: what was written, sorted and disjoint. users: changes at work on it."""

    id: str
    path: Path
    size: int | None
    sha256: str | None
    ranges: list[tuple[int, int]] = field(factory=list)
    reserved: int = 0
    users: int = 0
    idle: asyncio.TimerHandle | None = None
    heavy: ClassVar[bool] = True
    _last: Future[None] | None = None

    @property
    def received(self) -> int:
        return sum(stop - start for start, stop in self.ranges)

    def later(self, pool: Executor, work: Callable[[], _T]) -> Future[_T]:
        """Do *work* in a thread, behind everything that was asked for before."""
        before = self._last

        def run() -> _T:
            if before is not None:
                wait([before])
            return work()

        future = pool.submit(run)
        self._last = future  # type: ignore[assignment]  # only waited for
        return future

    def put(self, offset: int, data: bytes) -> int:
        """In a thread. Raises: OSError."""
        fd = disk.open_write(self.path)
        try:
            disk.write_at(fd, data, offset)
        finally:
            disk.close(fd)
        if data:
            self._cover(offset, offset + len(data))
        return self.received

    def _cover(self, start: int, stop: int) -> None:
        apart = [(a, b) for a, b in self.ranges if b < start or a > stop]
        touching = [(a, b) for a, b in self.ranges if not (b < start or a > stop)]
        for a, b in touching:
            start, stop = min(start, a), max(stop, b)
        insort(apart, (start, stop))
        self.ranges = apart

    @contextmanager
    def opened(self) -> Iterator[atomic.Copy]:
        """The bytes as announced, once everything asked for before is done. In a thread. Raises: ValidationFailed."""
        if self._last is not None:
            wait([self._last])
        size = self.ranges[-1][1] if self.ranges else 0
        if len(self.ranges) > 1 or (self.ranges and self.ranges[0][0] > 0):
            gap = self.ranges[0][1] if self.ranges[0][0] == 0 else 0
            raise self._unfit(f"bytes from {gap} on were never written")
        if self.size is not None and self.size != size:
            raise self._unfit(f"{size} bytes were written, {self.size} were announced")
        fd = disk.open_read(self.path)
        try:
            if self.sha256 is not None and _digest(fd) != self.sha256.lower():
                raise self._unfit("the bytes do not have the sha256 that was announced")
            yield atomic.Copy(fd, size)
        finally:
            disk.close(fd)

    def _unfit(self, why: str) -> ValidationFailed:
        return ValidationFailed((Issue(path="content.blob", message=why),), Ref("blobs", self.id))


@define(eq=False)
class Making:
    """A blob that is being written. room: bytes there may be."""

    blob: Blob
    fd: int
    room: int
    size: int = 0
    digest: hashlib._Hash = field(factory=hashlib.sha256)

    def write(self, data: bytes) -> None:
        """In a thread. Raises: TooLarge, OSError."""
        if self.size + len(data) > self.room:
            raise TooLarge("the blobs of a connection", self.room, self.size + len(data))
        disk.write_at(self.fd, data, self.size)
        self.size += len(data)
        self.digest.update(data)


def _digest(fd: int) -> str:
    digest, at = hashlib.sha256(), 0
    while piece := os.pread(fd, CHUNK_BYTES, at):
        digest.update(piece)
        at += len(piece)
    return digest.hexdigest()


@define(eq=False)
class Blobs:
    """All staged blobs of a daemon. folder: the daemon's own; pool: for what reads or writes them."""

    folder: Path
    pool: Executor
    _held: dict[Connection, dict[str, Blob]] = field(factory=dict)
    _made: dict[Connection, int] = field(factory=dict)
    _lent: set[Blob] = field(factory=set)

    def clear(self) -> None:
        """Before the first client: make the folder, remove what an earlier daemon left in it."""
        with suppress(FileExistsError):
            disk.make_directory(self.folder, 0o700)
        with os.scandir(self.folder) as entries:
            left = [Path(entry.path) for entry in entries]
        for path in left:
            atomic.discard(path)

    def create(self, owner: Connection, size: int | None, sha256: str | None) -> Blob:
        if size is not None and size < 0:
            raise InvalidParams.of("size", "must not be negative")
        if sha256 is not None and _DIGEST.fullmatch(sha256) is None:
            raise InvalidParams.of("sha256", "must be 64 hexadecimal digits")
        if size is not None and size > BLOB_BYTES:
            raise TooLarge("a blob", BLOB_BYTES, size)
        mine = self._held.get(owner, {})
        if len(mine) >= CONNECTION_BLOBS:
            raise Busy(f"this connection has {CONNECTION_BLOBS} blobs already: use or delete one", 1000)
        self._reserve(owner, 0, size or 0)
        number = self._made[owner] = self._made.get(owner, 0) + 1
        blob = Blob(f"b{number}", self.folder / token_hex(8), size, sha256, reserved=size or 0)
        disk.close(disk.create(blob.path, 0o600))
        self._held.setdefault(owner, mine)[blob.id] = blob
        self._keep(owner, blob)
        return blob

    async def write(self, owner: Connection, id: str, offset: int, data: str) -> int:
        """How many bytes of the blob are there. Submits before its first await.

        Raises: InvalidState while it is used: what was checked is what gets into the file, and a use waits for nothing
        that may itself wait for a thread behind it.
        """
        blob = self._find(owner, id)
        if blob in self._lent:
            raise _in_use()
        if offset < 0:
            raise InvalidParams.of("offset", "must not be negative")
        if len(data) > CHUNK_BYTES * 4 // 3 + 4:
            raise TooLarge("a chunk", CHUNK_BYTES, len(data) * 3 // 4)
        piece = decoded(data, "data")
        if len(piece) > CHUNK_BYTES:
            raise TooLarge("a chunk", CHUNK_BYTES, len(piece))
        limit = BLOB_BYTES if blob.size is None else blob.size
        if offset + len(piece) > limit:
            raise TooLarge("the blob", limit, offset + len(piece))
        self._reserve(owner, blob.reserved, offset + len(piece))
        blob.reserved = max(blob.reserved, offset + len(piece))
        with self._used(owner, blob):
            return await asyncio.wrap_future(blob.later(self.pool, partial(blob.put, offset, piece)))

    async def keep(self, owner: Connection, data: bytes) -> Blob:
        """A blob that holds *data*, for *owner* to read."""
        blob = self.create(owner, len(data), hashlib.sha256(data).hexdigest())
        with self._used(owner, blob):
            await asyncio.wrap_future(blob.later(self.pool, partial(blob.put, 0, data)))
        return blob

    @asynccontextmanager
    async def making(self, owner: Connection) -> AsyncIterator[Making]:
        """A blob for *owner* to read, written piece by piece; dropped if the block fails."""
        blob = self.create(owner, None, None)
        room = CONNECTION_BYTES - sum(other.reserved for other in self._held[owner].values())
        making = Making(blob, disk.open_write(blob.path), room)
        try:
            try:
                with self._used(owner, blob):
                    yield making
            finally:
                disk.close(making.fd)
            self._reserve(owner, 0, making.size)
        except BaseException:
            self._drop(owner, blob)
            raise
        blob.size, blob.reserved, blob.ranges = making.size, making.size, [(0, making.size)]
        blob.sha256 = making.digest.hexdigest()

    async def read(self, owner: Connection, id: str, offset: int, length: int | None) -> tuple[bytes, int]:
        """Bytes of a blob, once what was asked for before is done, and how many it has."""
        blob = self._find(owner, id)
        if offset < 0:
            raise InvalidParams.of("offset", "must not be negative")
        if length is not None and not 0 < length <= CHUNK_BYTES:
            raise InvalidParams.of("length", f"must be from 1 to {CHUNK_BYTES}")

        def work() -> tuple[bytes, int]:
            fd = disk.open_read(blob.path)
            try:
                return os.pread(fd, length or CHUNK_BYTES, offset), os.fstat(fd).st_size
            finally:
                disk.close(fd)

        with self._used(owner, blob):
            return await asyncio.wrap_future(blob.later(self.pool, work))

    def delete(self, owner: Connection, id: str) -> None:
        blob = self._find(owner, id)
        if blob.users:
            raise _in_use()
        self._drop(owner, blob)

    @contextmanager
    def borrowed(self, owner: Connection, id: str) -> Iterator[Blob]:
        """For one use: consumed if the block ends well, there again if it fails. Raises: NotFound, InvalidState."""
        blob = self._find(owner, id)
        if blob in self._lent:
            raise _in_use()
        self._lent.add(blob)
        try:
            with self._used(owner, blob):
                yield blob
        finally:
            self._lent.discard(blob)
        self._drop(owner, blob)

    def close(self) -> None:
        """No client is left."""
        for blobs in list(self._held.values()):
            for blob in list(blobs.values()):
                atomic.discard(blob.path)
        self._held.clear()

    def release(self, owner: Connection) -> None:
        """The client is gone; changes that it sent are still carried out, then its blobs go."""
        loop = asyncio.get_running_loop()
        if owner.lifecycle.unanswered:
            loop.call_later(RELEASE_SECONDS, self.release, owner)
            return
        for blob in list(self._held.get(owner, {}).values()):
            self._drop(owner, blob)
        self._made.pop(owner, None)

    def _find(self, owner: Connection, id: str) -> Blob:
        blob = self._held.get(owner, {}).get(id)
        if blob is None:
            raise NotFound(Ref("blobs", id))
        return blob

    def _reserve(self, owner: Connection, had: int, wanted: int) -> None:
        """Raises: Busy when the blobs of *owner* would be too large together."""
        others = sum(blob.reserved for blob in self._held.get(owner, {}).values()) - had
        if others + max(had, wanted) > CONNECTION_BYTES:
            raise Busy(f"the blobs of this connection would have more than {CONNECTION_BYTES} bytes", 1000)

    @contextmanager
    def _used(self, owner: Connection, blob: Blob) -> Iterator[None]:
        blob.users += 1
        try:
            yield
        finally:
            blob.users -= 1
            self._keep(owner, blob)

    def _keep(self, owner: Connection, blob: Blob) -> None:
        """The time until it counts as forgotten begins anew."""
        if blob.idle is not None:
            blob.idle.cancel()
        if not blob.users:
            blob.idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._forget, owner, blob)

    def _forget(self, owner: Connection, blob: Blob) -> None:
        if not blob.users:
            self._drop(owner, blob)

    def _drop(self, owner: Connection, blob: Blob) -> None:
        if blob.idle is not None:
            blob.idle.cancel()
        mine = self._held.get(owner, {})
        mine.pop(blob.id, None)
        if not mine:
            self._held.pop(owner, None)
        blob.later(self.pool, partial(atomic.discard, blob.path))


def _in_use() -> InvalidState:
    return InvalidState("the blob is being used by another request", "in-use", ())


def decoded(text: str, member: str) -> bytes:
    """Raises: InvalidParams for what is no base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidParams.of(member, "is no base64") from None
