from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from craftd.errors import Issue
from craftd.model.json_text import canonical
from craftd.model.records import Record
from craftd.store import files
from craftd.store.files import JsonForm, graft
from tests.strategies import records


@given(stored=records, old=records, new=records)
def test_a_graft_shows_the_change_and_keeps_what_neither_side_knew(stored: Record, old: Record, new: Record) -> None:
    result = graft(stored | old, old, new)
    shown = {name: member for name, member in result.items() if name in new}
    assert canonical(shown) == canonical(new)
    assert result.keys() == new.keys() | (stored.keys() - old.keys())


def test_a_graft_leaves_equal_members_as_stored() -> None:
    stored: Any = {"b": {"path": "~/x", "n": 1}, "a": 1}
    old = {"b": {"path": "/home/ada/x", "n": 1}, "a": 1}
    new = {"a": 1, "b": {"n": 2, "path": "/home/ada/x"}}
    assert list(graft(stored, old, new).items()) == [("b", {"path": "~/x", "n": 2}), ("a", 1)]


def line_of(issue: Issue) -> int:
    assert issue.range is not None
    return int(issue.range["start"]["line"]) + 1


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", 1), (b'{\n"a": 1,\n}', 3), (b"[]", 1), (b"\n\n\xff", 3), (b"{", 1), (b'{"a": NaN}', None),
        (b"[" * 9000, None),
    ],
)  # fmt: skip
def test_what_is_no_json_object_is_not_sound_and_says_where(data: bytes, line: int | None) -> None:
    parsed = JsonForm().parse(data)
    assert (parsed.sound, parsed.value, len(parsed.problems)) == (False, {}, 1)
    if line is not None:
        assert line_of(parsed.problems[0].issue("x.json", "views")) == line


def test_json_keeps_its_final_newline_and_loses_a_byte_order_mark() -> None:
    assert JsonForm().format({"a": 1}, b"\xef\xbb\xbf{}\n") == b'{\n  "a": 1\n}\n'
    assert JsonForm().format({"a": 1}, b"{}") == b'{\n  "a": 1\n}'
    assert JsonForm().format({}, None) == b"{}"
    assert JsonForm(newline=True).format({}, None) == b"{}\n"


def test_reading_never_hangs_on_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(files.Unreadable):
            files.read(tmp_path / name)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(files.LARGEST + 1)
    with pytest.raises(files.Unreadable):
        files.read(tmp_path / "huge")


def test_folders_are_made_below_the_workspace_but_never_the_workspace(tmp_path: Path) -> None:
    files.make_folders(tmp_path / "a" / "b", tmp_path)
    assert (tmp_path / "a" / "b").is_dir()
    with pytest.raises(FileNotFoundError):
        files.make_folders(tmp_path / "gone" / "a", tmp_path / "gone")
    assert not (tmp_path / "gone").exists()
