"""What changed on disk while no daemon ran."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from craftd.model import json_text
from tests.workspace.house import SESSION, House, Mirror, line, message, rename_over, write

GONE, CHANGED, GREW, MADE = "260302-gone", "260303-changed", "260304-grew", "260305-made"


@pytest.fixture
async def left(tmp_path: Path) -> AsyncIterator[tuple[House, Mirror]]:
    """A workspace whose daemon has stopped, and what a client knew of it."""
    house = House.make(tmp_path)
    for id in (GONE, CHANGED, GREW, SESSION):
        house.new_session(id, "m1", "m2")
    write(house.root / "labels" / "config.json", {"version": 1, "labels": [{"id": "one", "name": "One"}]})
    write(house.root / "skills" / "tide" / "skill.txt", "not read")
    (house.root / "skills" / "tide" / "SKILL.md").write_text("---\nname: Tide\ndescription: d\n---\nText\n")
    await house.open()
    await house.append(SESSION, "mine")
    mirror = await Mirror.of(house)
    await house.close()
    yield house, mirror
    await house.close()


def change_everything(house: House) -> None:
    shutil.rmtree(house.transcript(GONE).parent)
    header, *lines = house.lines(CHANGED)
    rename_over(house.transcript(CHANGED), b"".join(map(line, [{**header, "name": "Theirs"}, lines[1]])))
    with house.transcript(GREW).open("ab") as file:
        file.write(line(message("m3")))
    house.new_session(MADE, "n1", name="Made")
    write(house.root / "labels" / "config.json", {"version": 1, "labels": [{"id": "two", "name": "Two"}]})
    (house.root / "skills" / "tide" / "SKILL.md").write_text("---\nname: Tide\ndescription: else\n---\nText\n")


async def test_everything_is_announced_to_the_first_who_listens(left: tuple[House, Mirror]) -> None:
    house, mirror = left
    change_everything(house)
    await house.open()
    assert set(house.values("sessions")) == {CHANGED, GREW, MADE, SESSION}
    assert house.value("sessions", CHANGED)["name"] == "Theirs"
    assert house.value("sessions", GREW)["messageCount"] == 3
    house.workspace.tell_missed()
    await house.sync()
    assert {event["origin"]["kind"] for event in house.events} == {"disk"}
    mirror.follow(house.events)
    await mirror.compare(house)
    assert {(e["method"], e.get("id") or e.get("session")) for e in house.heard("messages/")} == {
        ("messages/didTruncate", CHANGED),
        ("messages/didAppend", CHANGED),
        ("messages/didAppend", GREW),
    }
    house.events.clear()
    house.workspace.tell_missed()
    await house.sync()
    assert house.events == []


async def test_the_journal_holds_it_from_the_beginning(left: tuple[House, Mirror]) -> None:
    house, mirror = left
    change_everything(house)
    await house.open()
    await house.workspace.sync()
    changes = house.workspace.journal.since(house.workspace.epoch, 0)
    assert changes is not None
    events = [json_text.loads(change.body) for change in changes]
    mirror.follow([{"method": event["method"], **event["params"]} for event in events])
    await mirror.compare(house)


async def test_it_comes_before_any_later_change(left: tuple[House, Mirror]) -> None:
    house, mirror = left
    change_everything(house)
    await house.open()
    await house.update("sessions", CHANGED, name="Ours")
    await house.append(GREW, "m4")
    await house.create("labels", name="Three")
    assert house.heard("sessions/didChange", "client")[0]["patch"] == {"set": {"name": "Ours"}}
    await house.sync()
    mirror.follow(house.events)
    await mirror.compare(house)


async def test_nothing_is_announced_where_nothing_changed(left: tuple[House, Mirror]) -> None:
    house, mirror = left
    await house.open()
    await house.sync()
    assert house.events == []
    await mirror.compare(house)


async def test_a_line_one_that_was_broken_meanwhile_keeps_the_last_good_header(left: tuple[House, Mirror]) -> None:
    house, _ = left
    data = house.transcript(CHANGED).read_bytes()
    house.transcript(CHANGED).write_bytes(b"{" + data)
    await house.open()
    await house.sync()
    assert house.value("sessions", CHANGED)["name"] == "Old"
    assert house.info("sessions", CHANGED)["damage"][0]["code"] == "header-unreadable"
    assert [event["path"] for event in house.heard("issues/didChange")] == [f"sessions/{CHANGED}/session.jsonl"]
    assert house.heard("sessions/") == []


@pytest.mark.parametrize("damage", ["missing", "empty", "another form", "not JSON", "of another folder"])
async def test_without_a_usable_cache_everything_is_read_and_nothing_counts_as_changed(
    left: tuple[House, Mirror], damage: str
) -> None:
    house, _ = left
    [cache] = (house.config / "craftd" / "cache").iterdir()
    known = json.loads(cache.read_bytes())
    if damage == "missing":
        cache.unlink()
    else:
        cache.write_text(
            {
                "empty": "",
                "another form": json.dumps({**known, "form": 1}),
                "not JSON": "{",
                "of another folder": json.dumps({**known, "root": "/else"}),
            }[damage]
        )
    change_everything(house)
    await house.open()
    assert set(house.values("sessions")) == {CHANGED, GREW, MADE, SESSION}
    await house.sync()
    assert house.events == []


async def test_a_session_that_grew_again_before_anybody_listened_is_told_once(left: tuple[House, Mirror]) -> None:
    house, mirror = left
    with house.transcript(GREW).open("ab") as file:
        file.write(line(message("m3")))
    await house.open()
    with house.transcript(GREW).open("ab") as file:
        file.write(line(message("m4")))
    await house.hear("messages/didAppend")
    await house.sync()
    assert [record["id"] for event in house.heard("messages/didAppend") for record in event["messages"]] == ["m3", "m4"]
    mirror.follow(house.events)
    await mirror.compare(house)


async def test_a_workspace_folder_that_is_another_one_now_is_read_as_it_is(left: tuple[House, Mirror]) -> None:
    house, _ = left
    os.rename(house.root, house.root.with_name("old"))
    shutil.copytree(house.root.with_name("old"), house.root)
    await house.open()
    await house.sync()
    assert house.heard("sessions/") == []
    assert await house.ids() == ["m1", "m2", "mine"]
