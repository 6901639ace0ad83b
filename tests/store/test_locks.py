from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.store import disk
from craftd.store.locks import AppLock, DaemonLock, FolderLock, Holder

TESTS = Path(__file__).parents[1]
DEAD = 4194301
"""Above what the kernel gives out, unless told otherwise."""


class Process:
    """Another process that runs a few lines, says "ready" and then waits to be ended."""

    def __init__(self, script: str, *args: object) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-c", f"{script}\nprint('ready', flush=True)\ninput()", *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.popen.stdout is not None
        assert self.popen.stdout.readline() == "ready\n"

    @property
    def pid(self) -> int:
        return self.popen.pid

    def kill(self) -> None:
        self.popen.kill()
        self.popen.communicate()


@pytest.fixture
def stranger() -> Iterator[Process]:
    """A living process that is not us."""
    process = Process("")
    yield process
    process.kill()


def lock_text(pid: object, started_at: object = None) -> bytes:
    return json.dumps({"pid": pid} if started_at is None else {"pid": pid, "startedAt": started_at}).encode()


def now() -> int:
    return int(time.time() * 1000)


def boot() -> int:
    return int((time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)) * 1000)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_ours(lock: AppLock) -> None:
    value = json.loads(lock.path.read_bytes())
    assert list(value) == ["pid", "startedAt"]
    assert value["pid"] == os.getpid()
    assert abs(value["startedAt"] - now()) < 60_000
    assert lock.still_ours()
    assert names(lock.path.parent) == [".server.lock"]


# The app's lock


def test_what_the_app_decides_about_lock_files_is_decided_alike(tmp_path: Path, stranger: Process) -> None:
    contents: dict[str, bytes | None] = {
        "no lock file": None,
        "json, own pid": lock_text(os.getpid(), now()),
        "json, dead pid": lock_text(DEAD, now()),
        "json, live pid, started after boot": lock_text(stranger.pid, now()),
        "json, live pid, started before boot": lock_text(stranger.pid, 1_000_000_000_000),
        "plain live pid (old format)": b"%d" % stranger.pid,
        "plain dead pid (old format)": b"%d" % DEAD,
        "text": b"hello",
        "empty": b"",
        "json without pid": b'{"startedAt":1767225600000}',
        "json with string pid": lock_text(str(stranger.pid), now()),
        "json, live pid, startedAt missing": lock_text(stranger.pid),
    }
    cases = dict(json.loads((TESTS / "golden/workspace/expected.json").read_bytes())["lock"])
    assert cases.pop("release with a foreign lock") == {"kept": True}
    assert set(cases) == set(contents)
    for name, expected in cases.items():
        (config := tmp_path / name).mkdir()
        lock = AppLock(config)
        if (content := contents[name]) is not None:
            lock.path.write_bytes(content)
        if expected["starts"]:
            assert lock.inspect() is None, name
            assert lock.take() is None, name
            assert_ours(lock)
            lock.give_back()
            assert names(config) == [], name
        else:
            holder = lock.take()
            assert holder is not None, name
            assert (holder.pid, holder.ours) == (stranger.pid, False), name
            assert holder == lock.inspect()
            assert lock.path.read_bytes() == content, name


@pytest.mark.parametrize("case", sorted(p.name for p in (TESTS / "field_bugs/O11").iterdir()))
def test_a_stale_lock_file_does_not_stop_the_start(tmp_path: Path, stranger: Process, case: str) -> None:
    text = (TESTS / "field_bugs/O11" / case / ".server.lock").read_text()
    text = text.replace('"@PID_OF_A_SLEEP@"', str(stranger.pid))
    text = text.replace('"@PID_THE_DAEMON_WILL_HAVE@"', str(os.getpid()))
    lock = AppLock(tmp_path)
    lock.path.write_text(text)
    assert lock.take() is None
    assert_ours(lock)
    lock.give_back()
    assert names(tmp_path) == []


WEIRD = [
    b"0",
    b"-1",
    b'{"pid":0}',
    b'{"pid":-1}',
    b'{"pid":true}',
    b'{"pid":null}',
    b'{"pid":1.5}',
    b'{"pid":1e400}',
    b'{"pid":NaN}',
    b'{"pid":%d}' % 2**70,
    b"9" * 5000,
    b"[" * 100_000,
    b'{"pid":' * 2000,
    b"[1]",
    b'"1"',
    b"null",
    b"true",
    b"\xff\xfe\x00\x01",
    b"\x00" * 40,
    b'{"pid":',
    b"x" * 10_000_000,
]


@pytest.mark.parametrize("content", WEIRD, ids=lambda content: repr(content[:20]))
def test_weird_content_is_a_free_lock(tmp_path: Path, content: bytes) -> None:
    lock = AppLock(tmp_path)
    lock.path.write_bytes(content)
    assert lock.inspect() is None
    assert lock.take() is None
    assert_ours(lock)


@pytest.mark.parametrize("started", ["x", "true", "null", "[]", "-5", "0", "1e999"])
def test_a_start_time_that_is_none_does_not_make_a_living_holder_stale(
    tmp_path: Path, stranger: Process, started: str
) -> None:
    lock = AppLock(tmp_path)
    started = json.dumps(started) if started == "x" else started
    lock.path.write_text(f'{{"pid":{stranger.pid},"startedAt":{started}}}')
    holder = lock.take()
    assert holder is not None
    assert holder.pid == stranger.pid


def test_a_holder_from_just_before_the_boot_is_stale_and_from_just_after_is_not(
    tmp_path: Path, stranger: Process
) -> None:
    lock = AppLock(tmp_path)
    lock.path.write_bytes(lock_text(stranger.pid, boot() + 2_000))
    assert lock.inspect() is not None
    lock.path.write_bytes(lock_text(stranger.pid, boot() - 2_000))
    assert lock.inspect() is None


@pytest.mark.parametrize("kind", ["pipe", "dangling", "loop", "device"])
def test_a_lock_file_that_is_no_file_is_replaced(tmp_path: Path, kind: str) -> None:
    lock = AppLock(tmp_path)
    if kind == "pipe":
        os.mkfifo(lock.path)
    else:
        target = {"dangling": "/nowhere/at/all", "loop": ".server.lock", "device": "/dev/zero"}[kind]
        lock.path.symlink_to(target)
    assert lock.inspect() is None
    assert lock.take() is None
    assert not lock.path.is_symlink()
    assert_ours(lock)


def test_a_folder_in_its_place_does_not_hurt(tmp_path: Path) -> None:
    lock = AppLock(tmp_path)
    lock.path.mkdir()
    (lock.path / "kept").write_bytes(b"")
    assert lock.inspect() is None
    assert lock.take() is None
    assert lock.still_ours()
    assert [path.name for path in tmp_path.rglob("kept")] == ["kept"]


def test_a_holder_names_its_process_and_knows_when_it_is_us(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom craftd.store.locks import AppLock\n"
        "assert AppLock(Path(sys.argv[1])).take() is None"
    )
    other = Process(script, tmp_path)
    lock = AppLock(tmp_path)
    holder = lock.take()
    assert holder is not None
    assert (holder.pid, holder.ours) == (other.pid, False)
    assert holder.started_at is not None
    assert abs(holder.started_at - now()) < 60_000
    assert holder.name == Path(f"/proc/{other.pid}/comm").read_text().strip()
    assert holder.as_json() == {"pid": other.pid, "name": holder.name}
    other.kill()
    assert lock.take() is None
    ours = lock.inspect()
    assert ours is not None
    assert (ours.pid, ours.ours) == (os.getpid(), True)


def test_an_ended_process_nobody_waited_for_holds_nothing(tmp_path: Path) -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    os.kill(child.pid, 0)  # it still takes signals
    lock = AppLock(tmp_path)
    lock.path.write_bytes(lock_text(child.pid, now()))
    assert lock.take() is None
    child.wait()


def test_taking_twice_keeps_the_file(tmp_path: Path) -> None:
    lock = AppLock(tmp_path)
    assert lock.take() is None
    before = lock.path.stat()
    assert lock.take() is None
    after = lock.path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_our_pid_in_a_file_that_is_not_ours_is_stale(tmp_path: Path) -> None:
    lock = AppLock(tmp_path)
    lock.path.write_bytes(lock_text(os.getpid(), now()))
    assert lock.inspect() is None
    assert not lock.still_ours()
    lock.give_back()
    assert lock.path.exists()


@pytest.mark.parametrize("how", ["in place", "in the same tick of the clock", "by rename", "removed"])
def test_a_lock_that_the_app_took_from_us_is_lost_and_not_removed(tmp_path: Path, stranger: Process, how: str) -> None:
    lock = AppLock(tmp_path)
    assert lock.take() is None
    theirs, taken = lock_text(stranger.pid, now()), lock.path.stat().st_mtime_ns
    if how.startswith("in "):
        lock.path.write_bytes(theirs)
        os.utime(lock.path, ns=(taken, taken + (how == "in place")))
    elif how == "by rename":
        (tmp_path / "new").write_bytes(theirs)
        (tmp_path / "new").rename(lock.path)
    else:
        lock.path.unlink()
    assert not lock.still_ours()
    lock.give_back()
    if how == "removed":
        assert names(tmp_path) == []
        assert lock.take() is None
    else:
        assert lock.path.read_bytes() == theirs
        holder = lock.take()
        assert holder is not None
        assert holder.pid == stranger.pid


@pytest.mark.parametrize(
    ("before", "step"), [(None, "rename_new"), (lock_text(DEAD), "rename_new"), (lock_text(DEAD), "exchange")]
)
def test_an_app_that_starts_in_the_same_moment_keeps_its_lock(
    tmp_path: Path, stranger: Process, monkeypatch: pytest.MonkeyPatch, before: bytes | None, step: str
) -> None:
    lock = AppLock(tmp_path)
    theirs = lock_text(stranger.pid, now())
    if before is not None:
        lock.path.write_bytes(before)
    real = getattr(disk, step)

    def late(source: Path, target: Path) -> Any:
        monkeypatch.setattr(disk, step, real)
        lock.path.write_bytes(theirs)
        return real(source, target)

    monkeypatch.setattr(disk, step, late)
    holder = lock.take()
    assert holder is not None
    assert holder.pid == stranger.pid
    assert lock.path.read_bytes() == theirs
    assert names(tmp_path) == [".server.lock"]
    assert not lock.still_ours()


def test_an_app_that_starts_while_we_give_back_keeps_its_lock(
    tmp_path: Path, stranger: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = AppLock(tmp_path)
    assert lock.take() is None
    theirs = lock_text(stranger.pid, now())
    real = disk.rename

    def late(source: Path, target: Path) -> None:
        lock.path.write_bytes(theirs)
        real(source, target)

    monkeypatch.setattr(disk, "rename", late)
    lock.give_back()
    assert lock.path.read_bytes() == theirs
    assert names(tmp_path) == [".server.lock"]


def test_without_exchange_a_stale_lock_is_replaced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "exchange", lambda first, second: False)
    lock = AppLock(tmp_path)
    lock.path.write_bytes(lock_text(DEAD))
    assert lock.take() is None
    assert_ours(lock)


def test_a_reader_never_sees_half_a_lock(tmp_path: Path) -> None:
    lock = AppLock(tmp_path)
    done = threading.Event()
    halves: list[bytes] = []
    whole = 0

    def read() -> None:
        nonlocal whole
        while not done.is_set():
            try:
                data = lock.path.read_bytes()
            except FileNotFoundError:
                continue
            if json.loads(data or b"0") and data.endswith(b"}"):
                whole += 1
            else:
                halves.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for turn in range(400):
            if turn % 2:
                os.replace(_stale(tmp_path), lock.path)
            assert lock.take() is None
            lock.give_back()
    finally:
        done.set()
        reader.join()
    assert halves == []
    assert whole > 0


def _stale(folder: Path) -> Path:
    (path := folder / "stale").write_bytes(lock_text(DEAD))
    return path


@pytest.mark.parametrize("step", ["create", "write", "rename_new", "exchange"])
def test_a_full_disk_leaves_the_stale_lock_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    lock = AppLock(tmp_path)
    lock.path.write_bytes(lock_text(DEAD))

    def fail(*args: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(disk, step, fail)
    with pytest.raises(OSError, match="full"):
        lock.take()
    assert lock.path.read_bytes() == lock_text(DEAD)
    assert names(tmp_path) == [".server.lock"]
    assert not lock.still_ours()


# The system's locks


HOLD = """
import sys
from pathlib import Path
from craftd.store import locks
lock = getattr(locks, sys.argv[1])(Path(sys.argv[2]))
assert lock.take() is None
"""

both = pytest.mark.parametrize("kind", [DaemonLock, FolderLock])


@both
def test_a_second_process_is_told_who_holds_it_until_that_is_killed(
    tmp_path: Path, kind: type[DaemonLock | FolderLock]
) -> None:
    other = Process(HOLD, kind.__name__, tmp_path)
    lock = kind(tmp_path)
    holder = lock.take()
    assert holder is not None
    assert not holder.ours
    assert not lock.held
    if holder.pid is not None:  # a system may not tell
        assert holder == Holder(other.pid, None, Path(f"/proc/{other.pid}/comm").read_text().strip())
    os.kill(other.pid, signal.SIGKILL)
    other.popen.communicate()
    assert lock.take() is None
    assert lock.held
    assert lock.protected
    assert lock.take() is None
    ours = lock.holder()
    assert ours is not None
    assert ours.ours
    lock.give_back()
    assert not lock.held
    assert lock.holder() is None
    assert kind(tmp_path).take() is None


@both
def test_two_in_one_process_exclude_each_other_too(tmp_path: Path, kind: type[DaemonLock | FolderLock]) -> None:
    first, second = kind(tmp_path), kind(tmp_path)
    assert first.take() is None
    assert second.take() is not None
    second.give_back()
    assert first.held
    first.give_back()
    assert second.take() is None


@both
@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF])
def test_a_file_system_without_locks_is_used_unprotected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[DaemonLock | FolderLock], code: int
) -> None:
    def refuse(fd: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    lock = kind(tmp_path)
    assert lock.take() is None
    assert lock.held
    assert not lock.protected


@both
def test_any_other_failure_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[DaemonLock | FolderLock]
) -> None:
    def fail(fd: int, operation: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(fcntl, "flock", fail)
    lock = kind(tmp_path)
    with pytest.raises(OSError, match="broken"):
        lock.take()
    assert not lock.held


def test_a_folder_lock_adds_nothing_to_the_folder(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    assert lock.take() is None
    assert names(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        FolderLock(tmp_path / "nowhere").take()


def test_a_folder_reached_by_a_link_is_the_same_folder(tmp_path: Path) -> None:
    (folder := tmp_path / "ws").mkdir()
    (link := tmp_path / "link").symlink_to(folder)
    first = FolderLock(folder)
    assert first.take() is None
    assert FolderLock(link).take() is not None


def test_the_daemon_lock_makes_its_folders_for_nobody_else(tmp_path: Path) -> None:
    config = tmp_path / "not" / "yet" / "there"
    lock = DaemonLock(config)
    assert lock.take() is None
    assert lock.path == config / "craftd" / "lock"
    assert (config / "craftd").stat().st_mode & 0o777 == 0o700
    assert lock.path.stat().st_mode & 0o777 == 0o600
    lock.give_back()
    assert lock.path.exists()


def test_a_lock_file_replaced_while_it_is_taken_is_taken_at_its_new_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = DaemonLock(tmp_path)
    real = fcntl.flock

    def late(fd: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        lock.path.unlink()
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    assert lock.take() is None
    assert DaemonLock(tmp_path).take() is not None


RACE = """
import sys
from pathlib import Path
from craftd.store.locks import DaemonLock
lock = DaemonLock(Path(sys.argv[1]))
input()
print("won" if lock.take() is None else "lost", flush=True)
input()
"""


def test_of_many_that_start_at_once_one_wins(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    results = [racer.stdout.readline().strip() for racer in racers if racer.stdout is not None]
    for racer in racers:
        racer.communicate("end\n")
    assert sorted(results) == ["lost"] * 5 + ["won"]
