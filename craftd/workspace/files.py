"""Changes of files that are no records: each is a commit of its own on a unit of its own, in the workspace's queue.

What is long (copying, flushing) is done beside, at the top of the workspace, where what a crash leaves is found again;
the new file then gets its name in a folder that is held open. So nobody sees half of a file, and no link that somebody
puts in the way leads it out of the workspace.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from attrs import define, field, frozen

from craftd.errors import CraftdError, Forbidden, InvalidState, NotFound, Ref, VersionConflict
from craftd.model.files import check_open
from craftd.model.nouns import NOUNS
from craftd.model.workspaces import WORKSPACES
from craftd.store import atomic, confine, disk, layout
from craftd.store.atomic import Copy, DirectoryNotFlushed, Fingerprint, ForeignWrite, Staged
from craftd.store.confine import Spot
from craftd.workspace.commit import Commit, Planned, Unit
from craftd.workspace.journal import Change

if TYPE_CHECKING:
    from craftd.workspace.seen import SeenFiles

FILES: Final = "files/"
"""Prefix of the units."""

HEAVY: Final = 256 * 1024
"""Bytes from which content is written outside the queue."""

Identity = tuple[int, int]
"""Device and inode of a folder."""


class Source(Protocol):
    """Content on its way into a file. heavy: it takes long to write, or to look at."""

    @property
    def heavy(self) -> bool: ...
    def opened(self) -> AbstractContextManager[bytes | Copy]:
        """In a thread. Raises: CraftdError (it is not what was announced), OSError."""
        ...


@frozen
class Given:
    """Content that came with the request."""

    data: bytes

    @property
    def heavy(self) -> bool:
        return len(self.data) > HEAVY

    @contextmanager
    def opened(self) -> Iterator[bytes | Copy]:
        yield self.data


@frozen
class Ground:
    """Where files are served. root: the workspace's real folder; named: how the registry calls it.

    others: folders that are not served from here although they may lie in it: other workspaces, the daemon's own.
    """

    root: Path
    named: Path
    others: Collection[Path] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (str(self.root), str(self.named))

    @cached_property
    def shut(self) -> frozenset[Identity]:
        """The others as they are met on the way."""
        own = _identity(self.root)
        return frozenset(found for folder in self.others if (found := _identity(folder)) not in (None, own))

    @contextmanager
    def found(self, parts: tuple[str, ...], *, follow: bool = True) -> Iterator[Spot]:
        """Raises: Forbidden, NotFound."""
        spot = self.find(parts, follow=follow)
        try:
            yield spot
        finally:
            spot.close()

    def find(self, parts: tuple[str, ...], *, follow: bool = True) -> Spot:
        """Where the file is; the caller closes it. Raises: Forbidden, NotFound (a file where a folder should be)."""
        check_open(parts)
        try:
            spot = confine.find(self.root, parts, shut=self.shut, follow=follow)
        except (NotADirectoryError, FileNotFoundError):
            raise NotFound(Ref("files", "/".join(parts))) from None
        except PermissionError:
            raise Forbidden(f"{'/'.join(parts)} may not be opened by this user", path="/".join(parts)) from None
        except OSError as error:
            if error.errno != errno.ELOOP:  # a folder became a link while we walked
                raise
            raise NotFound(Ref("files", "/".join(parts))) from None
        try:
            check_open(spot.parts)  # a link may lead to what is not served
        except BaseException:
            spot.close()
            raise
        return spot


def version_of(known: Fingerprint) -> str:
    """Another one after every write, of the same bytes too."""
    text = f"{known.device}:{known.inode}:{known.size}:{known.mtime_ns}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@define(eq=False)
class Written:
    """What is true after a write: filled in when it is on disk. modified_at: ms since 1970 UTC."""

    version: str = ""
    size: int = 0
    modified_at: int = 0


@frozen
class Prepared:
    """Content complete beside. like: the file whose mode and owner it has."""

    temporary: Path
    new: Fingerprint
    like: Identity | None

    def discard(self) -> None:
        atomic.discard(self.temporary)


@define(eq=False)
class FileUnit(Unit):
    """One path inside a round. Nothing is kept between rounds but what watching needs."""

    key: str
    ground: Ground
    seen: SeenFiles
    prepared: Prepared | None = None
    failure: CraftdError | None = None
    """What was wrong with the content when it was prepared."""
    _known: dict[str, Fingerprint | None] = field(factory=dict)
    """What readers know after this round, by path."""
    _spot: Spot | None = None
    _commit: FileCommit | None = None
    _change: Change | None = None

    @property
    def dirty(self) -> bool:
        return self._commit is not None

    def __attrs_post_init__(self) -> None:
        if self.seen.certain(self.path):
            self._known[self.path] = self.seen.known.get(self.path)

    @property
    def path(self) -> str:
        return self.key.removeprefix(FILES)

    def refresh(self) -> list[Change]:
        if self.path not in self._known:
            return []
        before, now = self._known[self.path], _regular(self.ground.root / self.path)
        if now == before:
            return []
        self._known[self.path] = now
        kind = "deleted" if now is None else "created" if before is None else "changed"
        version = None if now is None else version_of(now)
        return [change_of(tuple(self.path.split("/")), kind, version)]

    def wrote(self, spot: Spot, now: Fingerprint | None) -> None:
        """This is there now, and everybody is told."""
        self._known["/".join((*spot.parts, *spot.missing))] = now

    def stage(self, commit: FileCommit, spot: Spot, change: Change | None) -> None:
        self._commit, self._spot, self._change = commit, spot, change

    def write(self) -> None:
        assert self._commit is not None
        assert self._spot is not None
        try:
            self._commit.carry_out(self, self._spot, self._change)
        finally:
            self.discard()

    def discard(self) -> None:
        if self._spot is not None:
            self._spot.close()
        self._commit = self._spot = self._change = None

    def publish(self) -> None:
        for path, now in self._known.items():
            if self.seen.covers(path):
                self.seen.settle(path, now)

    def take(self, result: Prepared | CraftdError | None) -> None:
        """What `prepare_early` made of its commit."""
        if isinstance(result, CraftdError):
            self.failure = result
        else:
            self.prepared = result

    def tidy(self) -> None:
        """After the round: what was prepared and not needed."""
        if self.prepared is not None:
            self.prepared.discard()
            self.prepared = None

    def content(self, source: Source, spot: Spot) -> Prepared:
        """*source*, complete and waiting for its name. Raises: OSError, CraftdError."""
        prepared, self.prepared = self.prepared, None
        like = None if spot.status is None else (spot.status.st_dev, spot.status.st_ino)
        if prepared is not None and prepared.like != like:
            prepared.discard()
            prepared = None
        return prepared or prepare(self.ground, source, spot)


def prepare_early(ground: Ground, commit: FileCommit) -> Prepared | CraftdError | None:
    """The long part of *commit*, outside the queue; None where it has to be looked at again in its turn."""
    if not isinstance(commit, WriteFile):
        return None
    try:
        with ground.found(commit.parts) as spot:
            return prepare(ground, commit.source, spot)
    except (Forbidden, NotFound, OSError):
        return None
    except CraftdError as error:
        return error


def prepare(ground: Ground, source: Source, spot: Spot) -> Prepared:
    """Write *source* down, flushed, under a name that is nobody's."""
    same_disk = os.stat(ground.root).st_dev == os.fstat(spot.folder).st_dev
    folder = ground.root if same_disk else spot.held
    temporary = atomic.temporary_beside(folder / "file")
    mode = stat.S_IMODE(os.fstat(spot.folder).st_mode) & 0o666
    with source.opened() as data:
        new = atomic.write_new(temporary, data, mode=mode, like=spot.status)
    return Prepared(temporary, new, None if spot.status is None else (spot.status.st_dev, spot.status.st_ino))


def change_of(parts: tuple[str, ...], kind: str, version: str | None = None) -> Change:
    """What those are told who asked for files."""
    members = {"path": "/".join(parts), "kind": kind}
    if version is not None:
        members["version"] = version
    return Change("files/didChange", "files", members, session_of(parts))


def session_of(parts: tuple[str, ...]) -> str | None:
    record = layout.record_of(parts)
    return record[1] if record is not None and record[0] == "sessions" else None


def _regular(path: Path) -> Fingerprint | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return atomic.of_stat(status) if stat.S_ISREG(status.st_mode) else None


@define(eq=False, kw_only=True)
class LookAtFile(Commit):
    """Look what became of a file; its unit does the work."""

    promises = False
    path: str

    @property
    def unit(self) -> str:
        return FILES + self.path

    def plan(self, unit: FileUnit, now: int) -> Planned:
        return Planned(None)


@define(eq=False, kw_only=True)
class FileCommit(Commit):
    """parts: the path from the workspace's root. expected: version it must have, "" = it must not be there.

    record: what the file is called in errors, if it is served as a record.
    """

    parts: tuple[str, ...]
    expected: str | None = None
    record: Ref | None = None

    def __attrs_post_init__(self) -> None:
        # One at a time per path; and the record whose folder it is in is as the earlier changes made it.
        record = layout.record_of(self.parts)
        above = frozenset() if record is None else frozenset({"/".join(record)})
        self.reads = self.reads | above | {self.unit}

    @property
    def path(self) -> str:
        return "/".join(self.parts)

    @property
    def unit(self) -> str:
        return FILES + self.path

    @property
    def ref(self) -> Ref:
        return self.record or Ref("files", self.path)

    def carry_out(self, unit: FileUnit, spot: Spot, change: Change | None) -> None:
        """Make it so, durably. Raises: ForeignWrite, OSError, CraftdError."""
        raise NotImplementedError

    def _expect(self, spot: Spot) -> None:
        if self.expected is None:
            return
        there = "" if spot.status is None else version_of(atomic.of_stat(spot.status))
        if there != self.expected:
            raise VersionConflict(self.ref, {"version": there})

    def _check_changeable(self, spot: Spot) -> None:
        """Raises: Forbidden, InvalidState."""
        parts = (*spot.parts, *spot.missing)
        noun = layout.noun_of(parts)
        if noun is not None:
            known = NOUNS.get(noun, WORKSPACES if noun == "workspaces" else None)
            verbs = () if known is None else sorted({"create", "update", "delete"} & set(known.verbs))
            allowed = tuple(f"{noun}/{verb}" for verb in verbs)
            raise InvalidState(
                f"{spot.shown} holds records of {noun}, which are no files to write", "resource", allowed, self.ref
            )
        if spot.folder_link is not None:
            why = "is a link: what it leads to is read, never written"
            raise Forbidden(f"{spot.folder_link} {why}", path=spot.folder_link)
        if spot.status is not None and stat.S_ISDIR(spot.status.st_mode):
            raise InvalidState(f"{self.path or 'this'} is a folder", "folder", ("files/list",), self.ref)


@define(eq=False, kw_only=True)
class WriteFile(FileCommit):
    """Give a file new content, or make it; folders that are missing in the folder of a record are made."""

    source: Source
    _answer: Written = field(factory=Written, init=False)

    def plan(self, unit: FileUnit, now: int) -> Planned:
        if unit.failure is not None:
            raise unit.failure
        spot = unit.ground.find(self.parts)
        try:
            self._check_changeable(spot)
            self._check_place(spot)
            self._expect(spot)
        except BaseException:
            spot.close()
            raise
        self._answer = Written()
        change = change_of((*spot.parts, *spot.missing), "created" if spot.status is None else "changed")
        unit.stage(self, spot, change)
        return Planned(self._answer, [change])

    def _check_place(self, spot: Spot) -> None:
        """Raises: Forbidden, NotFound."""
        if spot.status is not None:
            if not stat.S_ISREG(spot.status.st_mode):
                raise Forbidden(f"{self.path} is no regular file", path=self.path)
            return
        if (*spot.parts, *spot.missing) != self.parts:
            raise Forbidden(f"{self.path} is a link that leads to no file", path=self.path)
        record = layout.record_of(self.parts)
        if record is not None and len(self.parts) == 2:
            raise Forbidden(f"{record[0]} holds folders of records and nothing else", path=self.path)
        if spot.missing and len(spot.parts) - 1 < layout.standing(self.parts):
            raise NotFound(Ref("files", spot.path.name) if record is None else Ref(*record))

    def carry_out(self, unit: FileUnit, spot: Spot, change: Change | None) -> None:
        prepared = unit.content(self.source, spot)
        expect = None if spot.status is None else atomic.of_stat(spot.status)
        try:
            with _parents(spot) as last:
                try:
                    Staged(last.path, last.path, prepared.temporary, prepared.new).swap(expect)
                except FileNotFoundError:  # the folder is gone in this moment
                    raise ForeignWrite(last.path) from None
                self._answer.version, self._answer.size = version_of(prepared.new), prepared.new.size
                self._answer.modified_at = prepared.new.mtime_ns // 1_000_000
                assert change is not None
                change.members["version"] = self._answer.version
                unit.wrote(spot, prepared.new)
                _flush(spot, last)
        except DirectoryNotFlushed:
            raise
        except BaseException:
            prepared.discard()
            raise


@define(eq=False, kw_only=True)
class DeleteFile(FileCommit):
    """Remove a file, or a link as a link."""

    missing_ok: bool = False

    def plan(self, unit: FileUnit, now: int) -> Planned:
        spot = unit.ground.find(self.parts, follow=False)
        try:
            self._check_changeable(spot)
            if spot.status is None and not self.missing_ok:
                raise NotFound(self.ref)
            self._expect(spot)
        except BaseException:
            spot.close()
            raise
        change = None if spot.status is None else change_of(spot.parts, "deleted")
        unit.stage(self, spot, change)
        return Planned(None, [] if change is None else [change])

    def carry_out(self, unit: FileUnit, spot: Spot, change: Change | None) -> None:
        if spot.status is not None:
            now = os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
            if atomic.of_stat(now) != atomic.of_stat(spot.status):
                raise ForeignWrite(spot.path)
            disk.remove(spot.path)
            unit.wrote(spot, None)
        _flush(spot, spot)  # that it is not there is durable, whoever removed it


@contextmanager
def _parents(spot: Spot) -> Iterator[Spot]:
    """*spot*, or the file's own once the folders above it are there; they go again if the block fails."""
    held, made = [spot], 0
    try:
        while held[-1].missing:
            try:
                disk.make_directory(held[-1].path)
            except FileExistsError:
                raise ForeignWrite(held[-1].path) from None
            made += 1
            held.append(held[-1].below(held[-1].missing[0]))
        yield held[-1]
    except DirectoryNotFlushed:
        raise
    except BaseException:
        for one in reversed(held[:made]):
            _take_away(one.path)
        raise
    finally:
        for one in held[1:]:
            one.close()


def _flush(first: Spot, last: Spot) -> None:
    """Make the names in all folders from *first* to *last* durable. Raises: DirectoryNotFlushed, by plain paths."""
    real = [first.root.joinpath(*last.parts[:at]) for at in range(len(first.parts) - 1, len(last.parts))]
    try:
        disk.flush_directory(last.held)
        for folder in real[:-1]:
            disk.flush_directory(folder)
    except OSError as error:
        unsafe = DirectoryNotFlushed(error.errno, error.strerror, str(real[-1]))
        unsafe.folders = tuple(real)
        raise unsafe from error


def _take_away(folder: Path) -> None:
    try:
        disk.remove_directory(folder)
    except OSError:
        pass


def _identity(folder: Path) -> Identity | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino
