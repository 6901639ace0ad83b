"""Repair inside a workspace: beside other changes, outside of the queue, after foreign saves, for who mirrors."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from craftd.errors import Busy, Corrupt, ReadOnly
from craftd.workspace import foreign
from craftd.workspace import workspace as workspaces
from craftd.workspace.messages import AppendMessages, TruncateMessages, UpdateMessage
from craftd.workspace.repair import Repaired, RepairSession
from tests.workspace.house import CLIENT, SESSION, House, line, message


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House.make(tmp_path)
    house.new_session(SESSION, "m1", "m2")
    await house.open()
    yield house
    await house.close()


async def repair(house: House, session: str = SESSION) -> Repaired:
    done = await house.workspace.commit(RepairSession(origin=CLIENT, id=session))
    assert isinstance(done.answer, Repaired)
    return done.answer


async def damage(house: House, *lines: bytes) -> bytes:
    """Append to the file as another program; what is there then."""
    path = house.transcript()
    path.write_bytes(path.read_bytes() + b"".join(lines))
    await house.sync()
    return path.read_bytes()


async def test_a_large_file_is_mended_outside_of_the_queue(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspaces, "PREPARE_ABOVE", 0)
    before = await damage(house, b"broken\n", line(message("m3")), b'{"id":"m4"')
    answer = await repair(house)
    assert answer.kept is not None
    assert (house.transcript().parent / answer.kept).read_bytes() == before
    assert await house.ids() == ["m1", "m2", "m3"]
    assert house.info("sessions", SESSION) == {}


@pytest.mark.parametrize(("keep", "left"), [(1, ["m1"]), (3, ["m1", "m2", "m3"]), (4, ["m1", "m2", "m3", "m4"])])
async def test_what_is_asked_for_behind_a_repair_finds_what_it_made(house: House, keep: int, left: list[str]) -> None:
    half = b'{"id":"m9","content":"ha'
    await damage(house, b"broken\n", half + line(message("m3")), line(message("m4")), line(message("m1", "other")))
    commits = (
        RepairSession(origin=CLIENT, id=SESSION),
        AppendMessages(origin=CLIENT, labels=dict, id=SESSION, messages=[message("m5")]),
        UpdateMessage(origin=CLIENT, id=SESSION, message="#2", patch={"set": {"content": "third"}}),
        TruncateMessages(origin=CLIENT, id=SESSION, keep=keep),
    )
    house.events.clear()
    await asyncio.gather(*map(house.workspace.submit, commits))
    assert await house.ids() == left
    if keep > 2:
        assert (await house.messages(SESSION))[2]["content"] == "third"
    assert house.value("sessions", SESSION)["messageCount"] == keep
    assert house.info("sessions", SESSION) == {}
    assert [event["method"] for event in house.heard("messages/")][-1] == "messages/didTruncate"


async def test_a_repair_waits_for_edits_of_the_same_round(house: House) -> None:
    await damage(house, b"broken\n")
    edit = TruncateMessages(origin=CLIENT, id=SESSION, keep=1)
    both = [house.workspace.submit(edit), house.workspace.submit(RepairSession(origin=CLIENT, id=SESSION))]
    truncated, repaired = await asyncio.gather(*both, return_exceptions=True)
    assert not isinstance(truncated, BaseException)
    assert isinstance(repaired, Busy)
    assert await house.ids() == ["m1"]


async def test_what_a_foreign_save_dropped_comes_back_once_the_header_is_mended(house: House) -> None:
    old = house.transcript().read_bytes()
    await house.append(SESSION, "mine")
    first, rest = old.split(b"\n", 1)
    house.transcript().write_bytes(first[:20] + b"\n" + rest)  # an older copy, and torn
    await house.sync()
    assert await house.ids() == ["m1", "m2"]
    await repair(house)
    await house.append(SESSION, "later")
    assert await house.ids() == ["m1", "m2", "mine", "later"]
    assert house.value("sessions", SESSION)["name"] == "Old"


@pytest.mark.parametrize("number", [3, 300])
async def test_a_mirror_that_applies_the_events_equals_the_session(house: House, number: int) -> None:
    await damage(house, *(b"broken\n" + line(message(f"n{at}")) for at in range(number)))
    known = await house.ids()
    house.events.clear()
    await repair(house)
    listed = await house.ids()
    assert listed == known
    if number > foreign.DELETED_ONE_BY_ONE:
        [truncated] = house.heard("messages/didTruncate")
        appended = house.heard("messages/didAppend")
        told = known[: truncated["keep"]] + [one["id"] for event in appended for one in event["messages"]]
        assert told == listed
        assert appended[-1]["count"] == len(listed)
    else:
        assert len(house.heard("messages/didDelete")) == number
        assert not house.heard("messages/didTruncate")
    assert {event["origin"]["kind"] for event in house.heard("sessions/")} <= {"client"}


async def test_an_unreadable_file_is_said_to_be_and_left(house: House) -> None:
    path = house.new_session("260302-other", "m1")
    path.unlink()
    path.mkdir()
    await house.sync()
    with pytest.raises(Corrupt, match="cannot be read"):
        await repair(house, "260302-other")
    assert path.is_dir()


async def test_two_repairs_of_one_moment_keep_both_files(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.workspace.around.clock = lambda: 1_772_323_200_000
    first = await damage(house, b"broken\n")
    one = await repair(house)
    second = await damage(house, b"broken again\n")
    two = await repair(house)
    assert one.kept is not None
    assert two.kept is not None
    assert (one.kept, two.kept) == (".damaged-1772323200000.jsonl", ".damaged-1772323200000-2.jsonl")
    folder = house.transcript().parent
    assert ((folder / one.kept).read_bytes(), (folder / two.kept).read_bytes()) == (first, second)


async def test_the_copy_is_as_open_to_others_as_the_file_was(house: House) -> None:
    await damage(house, b"broken\n")
    os.chmod(house.transcript(), 0o600)
    await house.sync()
    answer = await repair(house)
    assert answer.kept is not None
    assert os.stat(house.transcript().parent / answer.kept).st_mode & 0o777 == 0o600
    assert os.stat(house.transcript()).st_mode & 0o777 == 0o600


async def test_who_may_not_write_says_what_is_wrong_and_repairs_nothing(tmp_path: Path) -> None:
    """A daemon of another configuration has the folder."""
    first, second = House.make(tmp_path), House.make(tmp_path, "second")
    second.root = first.root
    second.register({"id": "ws", "rootPath": str(first.root)})
    path = first.new_session(SESSION, "m1")
    path.write_bytes(path.read_bytes() + b"broken\n")
    before = path.read_bytes()
    await first.open()
    await second.open()
    done = await second.workspace.commit(RepairSession(origin=CLIENT, id=SESSION, dry_run=True))
    assert [one.remedy for one in done.answer.found] == ["is taken out"]
    with pytest.raises(ReadOnly):
        await repair(second)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["session.jsonl"]
    await second.close()
    await first.close()
