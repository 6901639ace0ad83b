from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from craftd.store import atomic, disk
from craftd.store.atomic import ANY, DirectoryNotFlushed, ForeignWrite

BreakDisk = Callable[..., None]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (path := tmp_path / "config.json").write_bytes(b"old")
    return path


@pytest.fixture
def break_disk(monkeypatch: pytest.MonkeyPatch) -> BreakDisk:
    def broken(step: str, number: int) -> None:
        def fail(*_: object, **__: object) -> None:
            raise OSError(number, errno.errorcode[number])

        monkeypatch.setattr(disk, step, fail)

    return broken


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_replace_leaves_exactly_one_file_with_the_new_bytes(config: Path) -> None:
    new = atomic.replace(config, b"new")
    assert names(config.parent) == ["config.json"]
    assert atomic.read(config) == (b"new", new)


def test_a_missing_file_is_made(tmp_path: Path) -> None:
    atomic.replace(tmp_path / "a", b"1", expect=None)
    atomic.replace(tmp_path / "b", b"2")
    assert names(tmp_path) == ["a", "b"]


def test_mode_survives_a_replacement(config: Path) -> None:
    config.chmod(0o640)
    atomic.replace(config, b"new", expect=atomic.fingerprint(config))
    assert stat.S_IMODE(config.stat().st_mode) == 0o640


def test_a_link_is_written_at_its_target(config: Path) -> None:
    (link := config.with_name("link.json")).symlink_to(config)
    atomic.replace(link, b"new")
    assert link.is_symlink()
    assert config.read_bytes() == b"new"


def test_the_expected_file_is_replaced(config: Path) -> None:
    new = atomic.replace(config, b"new", expect=atomic.fingerprint(config))
    atomic.replace(config, b"newer", expect=new)
    assert config.read_bytes() == b"newer"
    assert names(config.parent) == ["config.json"]


def test_a_file_changed_since_it_was_read_is_not_replaced(config: Path) -> None:
    before = atomic.fingerprint(config)
    config.write_bytes(b"theirs")
    with pytest.raises(ForeignWrite):
        atomic.replace(config, b"ours", expect=before)
    assert config.read_bytes() == b"theirs"
    assert names(config.parent) == ["config.json"]


def test_a_file_that_vanished_is_not_brought_back(config: Path) -> None:
    before = atomic.fingerprint(config)
    config.unlink()
    with pytest.raises(ForeignWrite):
        atomic.replace(config, b"ours", expect=before)
    assert names(config.parent) == []


def test_a_file_that_appeared_is_not_replaced(config: Path) -> None:
    with pytest.raises(ForeignWrite):
        atomic.replace(config, b"ours", expect=None)
    assert config.read_bytes() == b"old"


def write_before(monkeypatch: pytest.MonkeyPatch, step: str, foreign: Callable[[], object]) -> None:
    """*foreign* happens once, at the last moment before our disk step."""
    ours = getattr(disk, step)

    def delayed(*args: object) -> object:
        monkeypatch.setattr(disk, step, ours)
        foreign()
        return ours(*args)

    monkeypatch.setattr(disk, step, delayed)


def theirs_by_rename(config: Path) -> None:
    (beside := config.with_name("theirs")).write_bytes(b"theirs")
    beside.rename(config)


@pytest.mark.parametrize("how", [theirs_by_rename, lambda config: config.write_bytes(b"theirs")])
def test_a_file_written_right_before_the_swap_stays(
    config: Path, monkeypatch: pytest.MonkeyPatch, how: Callable[[Path], object]
) -> None:
    write_before(monkeypatch, "exchange", lambda: how(config))
    with pytest.raises(ForeignWrite):
        atomic.replace(config, b"ours", expect=atomic.fingerprint(config))
    assert config.read_bytes() == b"theirs"
    assert names(config.parent) == ["config.json"]


def test_a_file_removed_right_before_the_swap_is_foreign_too(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_before(monkeypatch, "exchange", config.unlink)
    with pytest.raises(ForeignWrite):
        atomic.replace(config, b"ours", expect=atomic.fingerprint(config))
    assert names(config.parent) == []


def test_of_two_foreign_writes_around_the_swap_the_newer_stays(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = atomic.fingerprint(config)
    swap = disk.exchange
    foreign = [b"newer", b"older"]

    def delayed(first: Path, second: Path) -> bool:
        if foreign:
            (beside := config.with_name("theirs")).write_bytes(foreign.pop())
            beside.rename(config)
        return swap(first, second)

    monkeypatch.setattr(disk, "exchange", delayed)
    with pytest.raises(ForeignWrite):
        atomic.replace(config, b"ours", expect=before)
    assert config.read_bytes() == b"newer"
    assert names(config.parent) == ["config.json"]


def test_a_foreign_file_the_disk_will_not_put_back_is_kept(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = atomic.fingerprint(config)
    swap = disk.exchange
    calls: list[int] = []

    def once(first: Path, second: Path) -> bool:
        calls.append(1)
        if len(calls) > 1:
            raise OSError(errno.EIO, "EIO")
        config.write_bytes(b"theirs")
        return swap(first, second)

    monkeypatch.setattr(disk, "exchange", once)
    with pytest.raises(OSError, match="EIO"):
        atomic.replace(config, b"ours", expect=before)
    assert b"theirs" in {path.read_bytes() for path in config.parent.iterdir()}


def test_without_exchange_a_rename_does(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_renameat2_function", None)
    new = atomic.replace(config, b"new", expect=atomic.fingerprint(config))
    assert atomic.read(config) == (b"new", new)
    config.write_bytes(b"theirs")
    with pytest.raises(ForeignWrite):
        atomic.replace(config, b"ours", expect=new)
    atomic.replace(config.with_name("fresh"), b"1", expect=None)
    with pytest.raises(ForeignWrite):
        atomic.replace(config, b"ours", expect=None)
    assert names(config.parent) == ["config.json", "fresh"]


STEPS = [
    ("create", b"old"), ("write", b"old"), ("keep_mode_and_owner", b"old"), ("flush_full", b"old"),
    ("exchange", b"old"), ("flush_directory", b"new"),
]  # fmt: skip


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize(("step", "survivor"), STEPS)
def test_a_broken_disk_never_leaves_a_mix(
    config: Path, break_disk: BreakDisk, step: str, survivor: bytes, number: int
) -> None:
    break_disk(step, number)
    with pytest.raises(OSError, match=errno.errorcode[number]):
        atomic.replace(config, b"new", expect=atomic.fingerprint(config))
    assert {path.name: path.read_bytes() for path in config.parent.iterdir()} == {"config.json": survivor}


def test_a_broken_plain_rename_leaves_the_old_file(config: Path, break_disk: BreakDisk) -> None:
    break_disk("rename", errno.EIO)
    with pytest.raises(OSError, match="EIO"):
        atomic.replace(config, b"new", expect=ANY)
    assert {path.name: path.read_bytes() for path in config.parent.iterdir()} == {"config.json": b"old"}


def test_an_old_file_that_cannot_be_removed_is_no_failure(config: Path, break_disk: BreakDisk) -> None:
    break_disk("remove", errno.EIO)
    atomic.replace(config, b"new", expect=atomic.fingerprint(config))
    assert config.read_bytes() == b"new"


def test_only_the_last_flush_says_that_the_new_bytes_are_there(config: Path, break_disk: BreakDisk) -> None:
    break_disk("flush_directory", errno.EIO)
    with pytest.raises(DirectoryNotFlushed) as caught:
        atomic.replace(config, b"new")
    assert caught.value.errno == errno.EIO


def test_read_tells_of_a_file_that_never_rests(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = os.pread

    def restless(fd: int, length: int, offset: int) -> bytes:
        with config.open("ab") as file:
            file.write(b"x")
        return read(fd, length, offset)

    monkeypatch.setattr(os, "pread", restless)
    with pytest.raises(ForeignWrite):
        atomic.read(config)


def test_a_folder_appears_complete(tmp_path: Path) -> None:
    atomic.create_folder(tmp_path / "s", {"session.jsonl": b"{}\n", "notes.md": b""}, ("plans", "data"))
    assert names(tmp_path) == ["s"]
    assert names(tmp_path / "s") == ["data", "notes.md", "plans", "session.jsonl"]


def test_a_taken_folder_name_is_refused_even_if_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s").mkdir()
    with pytest.raises(FileExistsError):
        atomic.create_folder(tmp_path / "s", {"a": b""})
    monkeypatch.setattr(disk, "_renameat2_function", None)
    with pytest.raises(FileExistsError):
        atomic.create_folder(tmp_path / "s", {"a": b""})
    atomic.create_folder(tmp_path / "t", {"a": b""})
    assert names(tmp_path) == ["s", "t"]
    assert names(tmp_path / "s") == []


@pytest.mark.parametrize("step", ["make_directory", "create", "write", "flush_full", "flush_directory", "move_folder"])
def test_a_broken_disk_leaves_no_half_folder(tmp_path: Path, break_disk: BreakDisk, step: str) -> None:
    break_disk(step, errno.ENOSPC)
    with pytest.raises(OSError, match="ENOSPC"):
        atomic.create_folder(tmp_path / "s", {"session.jsonl": b"{}\n"}, ("plans",))
    assert names(tmp_path) == []


def test_what_killed_writers_left_is_known_from_everything_else(config: Path) -> None:
    ours = atomic.temporary_beside(config)
    of_another = config.with_name(".config.json.1-0123abcd.tmp")
    of_an_earlier_life = config.with_name(f".config.json.{os.getpid()}-{_other_life(ours)}abcd.tmp")
    for path in (ours, of_another, of_an_earlier_life, *map(config.with_name, ("session.jsonl.tmp", ".hidden.tmp"))):
        path.write_bytes(b"")
    assert sorted(atomic.leftovers(config.parent)) == sorted([of_another, of_an_earlier_life])


def _other_life(ours: Path) -> str:
    return "ffff" if f"{os.getpid()}-0" in ours.name else "0000"


def test_nothing_is_left_over_in_a_linked_or_missing_folder(config: Path, tmp_path: Path) -> None:
    config.with_name(".config.json.1-0123abcd.tmp").write_bytes(b"")
    (link := tmp_path / "link").symlink_to(config.parent)
    assert atomic.leftovers(config.parent)
    assert atomic.leftovers(link) == atomic.leftovers(tmp_path / "none") == []


def test_a_file_that_has_gone_is_left_out_of_a_folder(tmp_path: Path) -> None:
    atomic.create_folder(tmp_path / "s", {"gone.txt": lambda: None, "there.txt": lambda: [b"a", b"b"]})
    assert names(tmp_path / "s") == ["there.txt"]
    assert (tmp_path / "s" / "there.txt").read_bytes() == b"ab"
