"""Lists are answered from memory: no file is touched for them, and one that changed is read once."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from craftd.store import disk
from tests.workspace.house import House, line


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that are looked at, opened, listed or changed, by whatever call."""
    seen: list[str] = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(path, int):
                seen.append(os.fspath(path))
            return function(path, *args, **kwargs)

        return call

    for where, names in ((os, ("open", "stat", "lstat", "listdir", "scandir", "unlink", "mkdir", "rename")),
                         (builtins, ("open",))):  # fmt: skip
        for name in names:
            monkeypatch.setattr(where, name, noting(getattr(where, name)))
    return seen


async def test_a_list_touches_no_file(tmp_path: Path, touched: list[str]) -> None:
    house = House.make(tmp_path)
    for number in range(30):
        house.new_session(f"s-{number}", "m1", sessionStatus="todo")
    await house.open()
    await house.sync()
    touched.clear()
    for _ in range(3):
        assert len(house.workspace.verbs.index("sessions").page(limit=500).items) == 30
        house.workspace.unread()
    assert touched == []
    await house.close()


async def test_one_file_that_changed_is_read_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House.make(tmp_path)
    paths = [house.new_session(f"s-{number}", "m1") for number in range(30)]
    await house.open()
    await house.sync()
    read: list[str] = []
    honest = disk.open_read
    monkeypatch.setattr(disk, "open_read", lambda path: (read.append(Path(path).parent.name), honest(path))[1])
    paths[7].write_bytes(line({"id": "s-7", "createdAt": 1, "name": "New"}))
    await house.sync()
    assert house.value("sessions", "s-7")["name"] == "New"
    assert {name for name in read if name.startswith("s-")} == {"s-7"}
    await house.close()
