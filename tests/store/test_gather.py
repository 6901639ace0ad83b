"""What of a folder goes into a bundle."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from craftd.errors import TooLarge
from craftd.model import bundles
from craftd.store.gather import gather, holds


def test_only_plain_files_that_a_bundle_can_hold_are_gathered(tmp_path: Path) -> None:
    for path in ("b.txt", "A.txt", "c/d/e.txt", ".hidden", "c/.git/config", "x..y", "back\\slash"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    os.symlink("/etc/hostname", tmp_path / "link")
    os.symlink(tmp_path, tmp_path / "around")
    os.mkfifo(tmp_path / "pipe")
    found, unfit = gather(tmp_path, 1000)
    assert list(found.items()) == [(path, path.encode()) for path in ("A.txt", "b.txt", "c/d/e.txt")]
    assert unfit == ["back\\slash", "x..y"]


def test_folders_without_end_are_told_and_not_entered(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(300):
        deep = deep / "d"
        deep.mkdir()
    found, unfit = gather(tmp_path, 1000)
    assert (found, unfit) == ({}, ["/".join("d" * (bundles.DEEPEST_PATH + 1))])


def test_more_than_there_is_room_for_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    (tmp_path / "b").write_bytes(b"x" * 10)
    with pytest.raises(TooLarge):
        gather(tmp_path, 19)


def test_a_folder_holds_something_only_if_nothing_else_is_there(tmp_path: Path) -> None:
    contents = {"a": b"1", "b/c": b"2"}
    (tmp_path / "b").mkdir()
    for path, data in contents.items():
        (tmp_path / path).write_bytes(data)
    assert holds(tmp_path, contents)
    assert not holds(tmp_path, {"a": b"1"})
    assert not holds(tmp_path, {**contents, "d": b""})
    assert not holds(tmp_path, {**contents, "a": b"2"})
    assert not holds(tmp_path / "nowhere", contents)
    (tmp_path / "b/.hidden").touch()
    assert not holds(tmp_path, contents)
    (tmp_path / "b/.hidden").unlink()
    (tmp_path / "empty").mkdir()
    assert not holds(tmp_path, contents)
    (tmp_path / "empty").rmdir()
    os.symlink(tmp_path / "b", tmp_path / "also")
    assert not holds(tmp_path, contents)
    (tmp_path / "also").unlink()
    (tmp_path / "a").unlink()
    os.symlink(tmp_path / "b/c", tmp_path / "a")
    assert not holds(tmp_path, {"a": b"2", "b/c": b"2"})
