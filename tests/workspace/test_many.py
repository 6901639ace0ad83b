"""A change of many sessions: in parts, each of which is told, and honest about how far it came."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import Corrupt, IoError
from craftd.store import disk
from craftd.workspace import many
from craftd.workspace.many import in_parts
from craftd.workspace.sessions import MarkRead
from tests.workspace.house import CLIENT, House

IDS = [f"26030{number}-calm-cedar" for number in range(1, 6)]


@pytest.fixture
async def unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    """Five unread sessions, changed two at a time."""
    monkeypatch.setattr(many, "AT_ONCE", 2)
    house = House.make(tmp_path)
    for id in IDS:
        house.new_session(id, "m1", hasUnread=True)
    await house.open()
    yield house
    await house.close()


def marks(**how: Any) -> list[MarkRead]:
    return [MarkRead(origin=CLIENT, id=id, **how) for id in IDS]


async def test_each_part_is_told_and_all_are_changed(unread: House) -> None:
    told: list[int] = []
    await in_parts(unread.workspace, marks(), told.append)
    assert told == [2, 4, 5]
    assert unread.workspace.unread() == ()
    assert [unread.lines(id)[0]["hasUnread"] for id in IDS] == [False] * 5
    unread.events.clear()
    await in_parts(unread.workspace, marks(), told.append)
    assert unread.events == []


async def test_a_full_disk_says_how_far_it_came(unread: House, monkeypatch: pytest.MonkeyPatch) -> None:
    create = disk.create

    def full(path: Path, mode: int | None = None) -> int:
        if IDS[2] in str(path):
            raise OSError(errno.ENOSPC, "ENOSPC")
        return create(path, mode)

    monkeypatch.setattr(disk, "create", full)
    told: list[int] = []
    with pytest.raises(IoError) as failed:
        await in_parts(unread.workspace, marks(), told.append)
    assert failed.value.details() == {"errno": "ENOSPC", "done": 3, "left": 2}
    assert told == [2]
    assert set(unread.workspace.unread()) == {IDS[2], IDS[4]}
    monkeypatch.undo()
    await in_parts(unread.workspace, marks(), told.append)
    assert unread.workspace.unread() == ()


async def test_of_all_those_that_cannot_be_written_are_left(tmp_path: Path) -> None:
    house = House.make(tmp_path)
    house.new_session(IDS[0], "m1", hasUnread=True)
    house.new_session(IDS[1], "m1", where=tmp_path / "elsewhere", hasUnread=True)
    (house.root / "sessions" / IDS[1]).symlink_to(tmp_path / "elsewhere" / IDS[1])
    await house.open()
    assert set(house.workspace.unread()) == set(IDS[:2])
    await in_parts(house.workspace, marks(one_of_all=True)[:2], lambda _: None)
    assert house.workspace.unread() == (IDS[1],)
    with pytest.raises(Corrupt):
        await in_parts(house.workspace, marks()[:2], lambda _: None)
    await house.close()
