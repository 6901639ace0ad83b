"""The system calls that change a disk, and nothing else; no other module makes them.

Every function here either does what it says or raises OSError; none retries, none hides an error. Callers write
`disk.write(...)`, never an imported name: tests break single functions and record calls by replacing them here.

**Tests only:** with `CRAFTD_TEST_DISK=lazy` in the environment flushing does nothing and what is written reaches the
kernel 50 ms late, so that `kill -9` really loses it. The proof that the fault suites would notice.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, Final

COPY_CHUNK: Final = 8 << 20
"""Bytes asked of the kernel in one copy call; small enough that a signal or a full disk is noticed soon."""

FREED_ALONE: Final = 4 << 20
"""Bytes of a file without a name from which a thread gives it back."""

_AT_FDCWD: Final = -100
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCHANGE: Final = 2
_NO_SUCH_CALL: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EXDEV})


def create(path: Path, mode: int | None = None) -> int:
    """Handle on a new, empty file for reading and writing. FileExistsError if the name is taken.

    *mode*: None = as open to others as the folder it is in, whatever the umask of whoever started us.
    """
    wanted = stat.S_IMODE(os.stat(path.parent).st_mode) & 0o666 if mode is None else mode
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, wanted)
    if mode is None:
        os.fchmod(fd, wanted)
    return fd


def open_append(path: Path) -> int:
    """Handle on an existing file for reading and appending."""
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)


def open_write(path: Path) -> int:
    """Handle on an existing file for `write_at`."""
    return os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def open_read(path: Path | str) -> int:
    """Handle on an existing regular file for reading what was written so far.

    Raises: OSError; at once, too, for a pipe or a device, whose end might never come.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "is no regular file", str(path))


def write(fd: int, data: bytes) -> None:
    """Write all of *data* at the end of a file from `create` or `open_append`.

    After an OSError any part of it may be there.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def write_at(fd: int, data: bytes, offset: int) -> None:
    """Write all of *data* from *offset* on, into a file from `open_write`.

    After an OSError any part of it may be there.
    """
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view, offset)
        view, offset = view[done:], offset + done


def copy_range(source: int, target: int, start: int, stop: int) -> None:
    """Write bytes *start* to *stop* of *source* at the end of *target* (from `create`), in the kernel where it can.

    OSError (EIO) if *source* ends before *stop*.
    """
    while start < stop:
        done = _copy_some(source, target, start, min(COPY_CHUNK, stop - start))
        if done == 0:
            raise OSError(errno.EIO, "file became shorter while it was copied")
        start += done


def truncate(fd: int, size: int) -> None:
    """Cut the file to *size* bytes."""
    os.ftruncate(fd, size)


def flush(fd: int) -> None:
    """Bytes and size of the file survive a power loss after return."""
    if sys.platform == "darwin":
        flush_full(fd)
    else:
        os.fdatasync(fd)


def flush_full(fd: int) -> None:
    """Bytes, size, mode and owner of the file survive a power loss after return."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def flush_directory(path: Path) -> None:
    """Names made, moved and removed in *path* survive a power loss after return."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def close(fd: int) -> None:
    """Give a handle back."""
    os.close(fd)


def close_last(fd: int, size: int) -> None:
    """Give back the last handle on a file of *size* bytes that has lost its name: that frees its blocks.

    Which takes 30 ms for 100 MB, so for a large file a thread waits for it and not the caller.
    """
    if size < FREED_ALONE:
        close(fd)
    else:
        threading.Thread(target=close, args=(fd,), name="free", daemon=True).start()


def rename(source: Path, target: Path) -> None:
    """Atomically give *source* the name *target*; what had that name is gone."""
    os.rename(source, target)


def rename_new(source: Path, target: Path) -> None:
    """Like `rename`, but FileExistsError if *target* exists."""
    if not _renameat2(source, target, _RENAME_NOREPLACE):
        if source.is_dir():
            # mkdir is the reservation: a folder moves onto an empty folder only.
            os.mkdir(target)
            os.rename(source, target)
        else:
            os.link(source, target, follow_symlinks=False)
            os.unlink(source)


def exchange(first: Path, second: Path) -> bool:
    """Atomically swap two names. False, with nothing done, where the system cannot."""
    return _renameat2(first, second, _RENAME_EXCHANGE)


def remove(path: Path) -> None:
    """Remove the name of a file or link."""
    os.unlink(path)


def make_directory(path: Path, mode: int | None = None) -> None:
    """New empty folder. FileExistsError if the name is taken. *mode*: None = that of the folder it is in."""
    wanted = stat.S_IMODE(os.stat(path.parent).st_mode) if mode is None else mode
    os.mkdir(path, wanted)
    if mode is None:
        os.chmod(path, wanted)


def remove_directory(path: Path) -> None:
    """Remove an empty folder. OSError (ENOTEMPTY) if it is not."""
    os.rmdir(path)


def move_folder(source: Path, target: Path) -> None:
    """Move a folder within one file system. FileExistsError if *target* exists, OSError (EXDEV) across file systems."""
    rename_new(source, target)


def remove_tree(path: Path) -> None:
    """Remove a folder with everything in it; links in it are removed, never followed."""
    shutil.rmtree(path)


def set_mode(path: Path, mode: int) -> None:
    """Who may do what with the file *path* leads to."""
    os.chmod(path, mode)


def keep_mode_and_owner(fd: int, old: os.stat_result) -> None:
    """Give the new file behind *fd* the mode and owner of the file it replaces.

    Only root may give files away. Who may not keeps the file: content matters more than its owner.
    """
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(fd, old.st_uid, old.st_gid)
        except PermissionError:
            pass
    if stat.S_IMODE(new.st_mode) != stat.S_IMODE(old.st_mode):
        os.fchmod(fd, stat.S_IMODE(old.st_mode))


def _copy_some(source: int, target: int, start: int, length: int) -> int:
    if sys.platform == "linux":
        try:
            return os.copy_file_range(source, target, length, start)
        except OSError as error:
            if error.errno not in _NO_SUCH_CALL:
                raise
    data = os.pread(source, min(length, 1 << 20), start)
    write(target, data)
    return len(data)


def _load_renameat2() -> Any:
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
        function.restype = ctypes.c_int
    return function


_renameat2_function = _load_renameat2()


def _renameat2(source: Path, target: Path, flags: int) -> bool:
    """False if this system or file system does not know *flags*."""
    if _renameat2_function is None:
        return False
    if _renameat2_function(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(source), None, str(target))


class _LazyDisk:
    """Tests only: files get their new size at once and their bytes 50 ms later; flushing does nothing.

    Sizes and times look as they would, so nobody in this process notices; `kill -9` leaves zeros where the bytes
    should be, as file systems with delayed allocation do after a power cut.
    """

    DELAY: Final = 0.05

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, int, bytes, int]] = deque()
        self._lock = threading.RLock()
        threading.Thread(target=self._run, name="lazy-disk", daemon=True).start()

    def write(self, fd: int, data: bytes) -> None:
        with self._lock:
            start = os.fstat(fd).st_size
            os.ftruncate(fd, start + len(data))
            os.lseek(fd, 0, os.SEEK_END)
            # Opened anew: bytes must go to an offset, which a handle open for appending ignores.
            later = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_CLOEXEC)
            self._waiting.append((time.monotonic() + self.DELAY, later, bytes(data), start))

    def settle(self) -> None:
        """Hand over everything now: the same process reads or copies what it wrote."""
        with self._lock:
            while self._waiting:
                self._hand_over()

    def _hand_over(self) -> None:
        _, fd, data, start = self._waiting.popleft()
        now = os.fstat(fd)
        os.pwrite(fd, data[: max(0, now.st_size - start)], start)
        os.utime(fd, ns=(now.st_atime_ns, now.st_mtime_ns))
        os.close(fd)

    def _run(self) -> None:
        while True:
            time.sleep(self.DELAY / 10)
            with self._lock:
                while self._waiting and self._waiting[0][0] <= time.monotonic():
                    self._hand_over()


if os.environ.get("CRAFTD_TEST_DISK") == "lazy":
    _lazy = _LazyDisk()
    _eager_copy_range, _eager_open_read = copy_range, open_read

    def write(fd: int, data: bytes) -> None:
        _lazy.write(fd, data)

    def flush(fd: int) -> None:
        pass

    def flush_full(fd: int) -> None:
        pass

    def flush_directory(path: Path) -> None:
        pass

    def copy_range(source: int, target: int, start: int, stop: int) -> None:
        _lazy.settle()
        _eager_copy_range(source, target, start, stop)

    def open_read(path: Path | str) -> int:
        _lazy.settle()
        return _eager_open_read(path)
