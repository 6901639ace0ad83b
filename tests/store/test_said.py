from __future__ import annotations

from pathlib import Path

from craftd.store.said import REMEMBERED_CHANGES, Said


def written(path: Path) -> int:
    path.write_bytes(b"x")
    return path.stat().st_mtime_ns


def test_a_file_knows_what_was_there_when_it_was_written(tmp_path: Path) -> None:
    said = Said()
    first = written(tmp_path / "a")
    said.replaced({"name": "One"})
    assert said.at(first) == {"name": "One"}
    said.replaced({"name": "Two"})
    assert said.at(first) == {"name": "One"}


def test_a_file_that_is_newer_than_all_changes_knows_the_last() -> None:
    said = Said()
    assert said.at(0) is None
    said.replaced({"name": "One"})
    assert said.at(1 << 63) is None


def test_only_so_many_changes_are_remembered() -> None:
    said = Said()
    for number in range(REMEMBERED_CHANGES + 1):
        said.replaced({"name": number})
    assert said.at(0) == {"name": 1}
