from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from craftd.store import disk


def test_a_short_write_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:3])))
    fd = disk.create(tmp_path / "a")
    disk.write(fd, b"0123456789")
    disk.close(fd)
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_appending_goes_to_the_end_wherever_that_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    fd = disk.open_append(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"123")
    disk.write(fd, b"4")
    disk.close(fd)
    assert (tmp_path / "a").read_bytes() == b"1234"


@pytest.mark.parametrize("in_kernel", [True, False])
def test_a_range_is_copied_whole_between_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_kernel: bool
) -> None:
    def missing(*_: object) -> int:
        raise OSError(errno.EXDEV, "EXDEV")

    if not in_kernel:
        monkeypatch.setattr(os, "copy_file_range", missing)
    monkeypatch.setattr(disk, "COPY_CHUNK", 7)
    (tmp_path / "a").write_bytes(bytes(range(100)))
    source, target = disk.open_read(tmp_path / "a"), disk.create(tmp_path / "b")
    disk.write(target, b"<")
    disk.copy_range(source, target, 10, 90)
    disk.copy_range(source, target, 20, 20)
    disk.write(target, b">")
    with pytest.raises(OSError, match="shorter"):
        disk.copy_range(source, target, 90, 101)
    disk.close(source)
    disk.close(target)
    assert (tmp_path / "b").read_bytes()[:82] == b"<" + bytes(range(10, 90)) + b">"


def test_names_are_never_taken_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        disk.close(disk.create(tmp_path / name))
    disk.make_directory(tmp_path / "c")
    for attempt in (
        lambda: disk.create(tmp_path / "a"),
        lambda: disk.make_directory(tmp_path / "a"),
        lambda: disk.rename_new(tmp_path / "a", tmp_path / "b"),
        lambda: disk.move_folder(tmp_path / "c", tmp_path / "a"),
    ):
        with pytest.raises(FileExistsError):
            attempt()


@pytest.mark.skipif(sys.platform != "linux", reason="no other system is asked")
def test_exchange_swaps_two_names(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2")
    assert disk.exchange(tmp_path / "a", tmp_path / "b")
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "b").read_bytes()) == (b"2", b"1")
    with pytest.raises(FileNotFoundError):
        disk.exchange(tmp_path / "a", tmp_path / "missing")


LOSE_OR_KEEP = """
import os, sys, time
from pathlib import Path
from craftd.store import disk
fd = disk.create(Path(sys.argv[1]))
disk.write(fd, b"kept")
time.sleep(0.5)
assert os.stat(sys.argv[1]).st_size == 4
disk.write(fd, b"lost")
disk.flush_full(fd)
assert os.stat(sys.argv[1]).st_size == 8
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(("switch", "found"), [("lazy", b"kept\0\0\0\0"), ("", b"keptlost")])
def test_the_lazy_disk_loses_what_was_flushed_and_no_other_disk_does(tmp_path: Path, switch: str, found: bytes) -> None:
    environment = {**os.environ, "CRAFTD_TEST_DISK": switch}
    done = subprocess.run([sys.executable, "-c", LOSE_OR_KEEP, str(tmp_path / "a")], env=environment, check=False)
    assert done.returncode == -9
    assert (tmp_path / "a").read_bytes() == found


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755, 0o775])
def test_what_is_made_is_as_open_as_the_folder_it_is_in(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    old = os.umask(0o077)
    try:
        disk.close(disk.create(tmp_path / "file"))
        disk.make_directory(tmp_path / "folder")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode & 0o666
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == mode


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        with pytest.raises(OSError, match="is no regular file"):
            disk.open_read(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        disk.open_read(tmp_path)
