"""Who may write: one daemon per configuration folder, one writer per workspace folder, and the app's own lock file.

`take()` of all three answers None when the lock is ours now, else the Holder who has it. None of them waits.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from craftd.store import atomic, disk

LONGEST_LOCK_FILE = 4096
"""Bytes of a lock file that are looked at; a true one has about 40."""

_UNSUPPORTED = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF, errno.EREMOTEIO})
"""What file systems without locks answer. EBADF: NFS, which takes no exclusive lock on what is open for reading."""


@frozen
class Holder:
    """Who holds a lock. None: unknown. started_at: when it took the lock, milliseconds since 1970."""

    pid: int | None
    started_at: int | None = None
    name: str | None = None
    """Name of the process, as the system shows it."""
    ours: bool = False

    def as_json(self) -> dict[str, Any]:
        """`holder` of protocol.md: `{pid?, name?}`."""
        return {key: value for key, value in (("pid", self.pid), ("name", self.name)) if value is not None}


class _Flock:
    """A lock of the operating system on an open file or folder; it ends with the process, however that ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.protected = True
        """False while held on a file system without locks: another machine may hold it as well."""
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        return self._fd is not None

    def take(self) -> Holder | None:
        """One we have is taken anew if something else is at the path now. Raises: OSError if that cannot be opened."""
        if self._fd is not None:
            if _is_at(self.path, self._fd):
                return None
            self.give_back()
        while True:
            fd = self._open()
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.protected = True
            except BlockingIOError:
                os.close(fd)
                return self.holder() or Holder(None)
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    os.close(fd)
                    raise
                self.protected = False
            if _is_at(self.path, fd):
                self._fd = fd
                return None
            os.close(fd)  # removed or replaced between opening and locking: a lock nobody else would meet

    def give_back(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def holder(self) -> Holder | None:
        """Who holds it, ourselves included; None if nobody does or the system does not tell."""
        if self._fd is not None:
            return _holder(os.getpid(), ours=True)
        try:
            status = os.stat(self.path)
            table = Path("/proc/locks").read_text()
        except OSError:
            return None
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        pids = re.findall(rf"FLOCK +ADVISORY +WRITE +(\d+) {place} ", table)
        return _holder(int(pids[0])) if pids else None

    def _open(self) -> int:
        raise NotImplementedError


class FolderLock(_Flock):
    """The right to write in a workspace folder. The lock is on the folder itself, so no file is added to it."""

    def _open(self) -> int:
        return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


class DaemonLock(_Flock):
    """The right to be the daemon of a configuration folder: `<config>/craftd/lock`, held for the daemon's life."""

    def __init__(self, config: Path) -> None:
        super().__init__(config / "craftd" / "lock")

    def _open(self) -> int:
        """The file stays when the lock is given back: who removes it may remove the one another daemon just locked."""
        _make_folder(self.path.parent)
        try:
            return disk.create(self.path, 0o600)
        except FileExistsError:
            return disk.open_append(self.path)


TICK_NS: Final = 100_000_000
"""Two writes this far apart have different times in every file system."""


class AppLock:
    """`.server.lock` of the app: `{"pid": <int>, "startedAt": <ms>}`, or in old files the bare pid.

    The app (0.11.1) reads it once, at its start, and then writes it without looking again. It starts without a window
    if a living stranger holds it. So this lock can be lost: ask `still_ours()` before every round of writes.
    """

    def __init__(self, config: Path) -> None:
        self.path = config / ".server.lock"
        self._ours: tuple[int, int, int] | None = None
        self._content = b""
        self._settled = False

    def inspect(self) -> Holder | None:
        """Who holds it: a living stranger, or ourselves (`ours`). None if it is free or stale.

        Stale, as the app sees it: unreadable, not a pid, a pid that takes no signal from us, taken before this boot;
        beyond that pid 0 and negative ones, ended processes nobody has waited for, and our own pid in a file that is
        not ours (a container gives the same pid again).
        """
        if self.still_ours():
            return _holder(os.getpid(), ours=True)
        return _living_stranger(self.path)

    def take(self) -> Holder | None:
        """Readers see the old file, none, or the new one; never a part.

        Raises: OSError if the file cannot be written.
        """
        while True:
            if self.still_ours():
                return None
            self._ours = None
            if (holder := _living_stranger(self.path)) is not None:
                return holder
            about = {"pid": os.getpid(), "startedAt": time.time_ns() // 1_000_000}
            content = json.dumps(about, separators=(",", ":")).encode()
            temporary = atomic.temporary_beside(self.path)
            try:
                ours = _write(temporary, content)
                if self._put(temporary):
                    self._ours, self._content, self._settled = ours, content, False
            finally:
                _remove_if_there(temporary)

    def give_back(self) -> None:
        """Remove our own file and nobody else's. Raises: OSError if the folder cannot be written."""
        if not self.still_ours():
            self._ours = None
            return
        aside = atomic.temporary_beside(self.path)
        disk.rename(self.path, aside)  # first take it off, then look: the app may write it in this moment
        if self._is_ours(aside):
            disk.remove(aside)
        else:
            try:
                disk.rename_new(aside, self.path)
            except FileExistsError:
                disk.remove(aside)
        self._ours = None

    def still_ours(self) -> bool:
        """Is the file the one we wrote: the same inode, untouched since? One `stat`, once the clock has moved on."""
        return self._is_ours(self.path)

    def _is_ours(self, path: Path) -> bool:
        now = time.time_ns()
        if self._ours is None or _identity(path) != self._ours:
            return False
        if not self._settled:
            # The app writes into the file that is there: within one tick of the clock that changes no time.
            if not self._says_so(path):
                return False
            self._settled = now - self._ours[2] > TICK_NS
        return True

    def _says_so(self, path: Path) -> bool:
        """Whether the file, which is ours by all but its content, has what we wrote."""
        try:
            fd = disk.open_read(path)
        except OSError:
            return False
        try:
            return os.pread(fd, LONGEST_LOCK_FILE, 0) == self._content
        finally:
            disk.close(fd)

    def _put(self, temporary: Path) -> bool:
        """Give the file its name; False if somebody took the lock in this moment, and then it is theirs."""
        try:
            disk.rename_new(temporary, self.path)
            return True
        except FileExistsError:
            pass
        try:
            swapped = disk.exchange(temporary, self.path)
        except FileNotFoundError:
            return False  # the stale file went away; look again
        if not swapped:
            disk.rename(temporary, self.path)
        elif _living_stranger(temporary) is not None:
            disk.exchange(temporary, self.path)
            return False
        return True


def _living_stranger(path: Path) -> Holder | None:
    pid, started_at = _parse(_read(path))
    if pid is None or pid == os.getpid() or not _is_alive(pid):
        return None
    if started_at is not None and 0 < started_at < _boot_time():
        return None
    return _holder(pid, started_at)


def _read(path: Path) -> bytes:
    """Its first bytes; b"" for anything that is no readable file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not hold us up
    except OSError:
        return b""
    try:
        return os.read(fd, LONGEST_LOCK_FILE) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)


def _parse(data: bytes) -> tuple[int | None, int | None]:
    """pid and startedAt; pid None for everything that names none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None, None
    if isinstance(value, dict):
        return _whole(value.get("pid")), _whole(value.get("startedAt"))
    return _whole(value), None


def _whole(value: object) -> int | None:
    """A JavaScript number without a fraction."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_alive(pid: int) -> bool:
    if pid <= 0:  # a signal to these goes to whole groups, ours among them
        return False
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        return False  # "not permitted" too, as in the app: the app would run as the same user
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return state in (b"Z", b"X") and len(os.listdir(f"/proc/{pid}/task")) == 1  # not just its first thread ended
    except (OSError, IndexError):
        return False


def _boot_time() -> int:
    """Milliseconds since 1970. Counted with the time asleep, else a lock from before a sleep would look too old."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return int((time.time() - time.clock_gettime(clock)) * 1000)


def _holder(pid: int, started_at: int | None = None, ours: bool = False) -> Holder:
    try:
        name = os.fsdecode(Path(f"/proc/{pid}/comm").read_bytes()).strip() or None
    except OSError:
        name = None
    return Holder(pid, started_at, name, ours)


def _make_folder(path: Path) -> None:
    if not path.is_dir():
        _make_folder(path.parent)
        try:
            disk.make_directory(path, 0o700)
        except FileExistsError:
            pass


def _write(path: Path, data: bytes) -> tuple[int, int, int]:
    """Identity of the new file. Nothing is flushed: what a power loss spoils is older than the next boot."""
    fd = disk.create(path, 0o600)
    try:
        disk.write(fd, data)
        return _identity_of(os.fstat(fd))
    finally:
        disk.close(fd)


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        return _identity_of(os.lstat(path))
    except OSError:
        return None


def _identity_of(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _is_at(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def _remove_if_there(path: Path) -> None:
    try:
        disk.remove(path)
    except OSError:
        pass
