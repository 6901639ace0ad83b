"""Edits of sessions by other programs."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from craftd.errors import Busy, Corrupt, NotFound
from craftd.workspace.journal import DISK
from craftd.workspace.sessions import Reconcile
from tests.workspace.house import SAVES, SESSION, WHOLE_SAVES, House, Mirror, in_place, line, message, rename_over

Save = Callable[[Path, bytes], None]


def look(session: str = SESSION) -> Reconcile:
    """What the watcher asks for when it saw something."""
    return Reconcile(origin=DISK, id=session)


def renamed(house: House, name: str, session: str = SESSION) -> bytes:
    """The session's file with another name on line 1."""
    header, *lines = house.lines(session)
    return b"".join(map(line, [{**header, "name": name}, *lines]))


@pytest.mark.parametrize("save", SAVES)
async def test_a_header_saved_by_another_program_is_announced_once(house: House, save: Save) -> None:
    save(house.transcript(), renamed(house, "Theirs"))
    event = await house.hear("sessions/didChange")
    await house.sync()
    assert event["patch"] == {"set": {"name": "Theirs"}}
    assert event["origin"] == {"kind": "disk"}
    assert event["changes"][0]["version"] == house.workspace.session(SESSION).version
    assert house.methods == ["sessions/didChange"]
    assert house.value("sessions", SESSION)["name"] == "Theirs"


@pytest.mark.parametrize("save", SAVES)
async def test_a_file_saved_without_a_change_is_not_announced(house: House, save: Save) -> None:
    save(house.transcript(), house.transcript().read_bytes())
    await house.sync()
    await house.sync()
    assert house.events == []


async def test_own_changes_are_never_heard_as_somebody_elses(house: House) -> None:
    mirror = await Mirror.of(house)
    for number in range(20):
        await house.append(SESSION, f"a{number}")
        await house.update("sessions", SESSION, name=f"Name {number}")
    await house.create("sessions", "260302-new-one", name="New")
    await house.create("labels", name="Home")
    await house.sync()
    assert house.heard(kind="disk") == []
    mirror.follow(house.events)
    await mirror.compare(house)


async def test_a_foreign_header_and_our_change_of_another_field_are_both_kept(house: House) -> None:
    rename_over(house.transcript(), renamed(house, "Theirs"))
    await house.update("sessions", SESSION, isFlagged=True)
    assert house.methods == ["sessions/didChange", "sessions/didChange"]
    assert [event["origin"]["kind"] for event in house.events] == ["disk", "client"]
    header = house.lines()[0]
    assert (header["name"], header["isFlagged"]) == ("Theirs", True)


async def test_lines_appended_by_somebody_else_are_announced_with_their_place(house: House) -> None:
    with house.transcript().open("ab") as file:
        file.write(line(message("x1")) + line(message("x2")))
    event = await house.hear("messages/didAppend")
    assert (event["index"], event["count"], [m["id"] for m in event["messages"]]) == (3, 5, ["x1", "x2"])
    await house.sync()
    assert house.methods == ["messages/didAppend", "sessions/didChange"]
    assert house.value("sessions", SESSION)["messageCount"] == 5
    assert await house.ids() == ["m1", "m2", "m3", "x1", "x2"]


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("open_first", [True, False])
async def test_a_deleted_line_is_announced(house: House, save: Save, open_first: bool) -> None:
    if open_first:
        await house.append(SESSION, "mine")
    mirror = await Mirror.of(house)
    header, *lines = house.lines()
    save(house.transcript(), b"".join(map(line, [header, *(one for one in lines if one["id"] != "m2")])))
    await house.sync()
    if save in WHOLE_SAVES:
        assert [e["id"] for e in house.heard("messages/didDelete")] == ["m2"]
    mirror.follow(house.events)
    await mirror.compare(house)
    assert await house.ids() == ["m1", "m3", *(["mine"] if open_first else [])]


@pytest.mark.parametrize("save", SAVES)
async def test_a_changed_line_is_announced_as_a_patch_or_anew(house: House, save: Save) -> None:
    await house.append(SESSION, "mine")
    mirror = await Mirror.of(house)
    header, *lines = house.lines()
    lines[1] = {**lines[1], "content": "changed by hand", "more": [1]}
    save(house.transcript(), b"".join(map(line, [header, *lines])))
    await house.sync()
    mirror.follow(house.events)
    await mirror.compare(house)
    if save in WHOLE_SAVES:
        [event] = house.heard("messages/")
        assert (event["method"], event["changes"][0]["id"]) == ("messages/didChange", "m2")
        assert event["patch"] == {"set": {"content": "changed by hand", "more": [1]}}


@pytest.mark.parametrize("save", SAVES)
async def test_acknowledged_lines_that_a_foreign_save_drops_are_put_back(house: House, save: Save) -> None:
    stale = house.transcript().read_bytes()
    await house.append(SESSION, "mine", "mine too")
    mirror = await Mirror.of(house)
    save(house.transcript(), stale + line(message("theirs")))
    await house.sync()
    assert sorted(await house.ids()) == sorted(["m1", "m2", "m3", "mine", "mine too", "theirs"])
    assert [record["id"] for record in house.lines()[1:]] == await house.ids()
    mirror.follow(house.events)
    await mirror.compare(house)
    assert [event["origin"]["kind"] for event in house.heard("messages/didAppend")][-1] == "daemon"


@pytest.mark.parametrize("save", [rename_over, in_place])
async def test_a_line_of_ours_that_was_changed_and_then_dropped_is_put_back(house: House, save: Save) -> None:
    stale = house.transcript().read_bytes()
    await house.append(SESSION, "mine")
    mirror = await Mirror.of(house)
    save(house.transcript(), house.transcript().read_bytes().replace(b"text of mine", b"text of mine, changed"))
    await house.sync()
    save(house.transcript(), stale)
    await house.sync()
    assert await house.ids() == ["m1", "m2", "m3", "mine"]
    mirror.follow(house.events)
    await mirror.compare(house)


async def test_lines_are_not_put_back_into_a_file_that_is_still_being_written(house: House) -> None:
    stale = house.transcript().read_bytes()
    await house.append(SESSION, "mine")
    mirror = await Mirror.of(house)
    theirs = line(message("theirs"))
    with house.transcript().open("wb") as file:
        file.write(stale[: len(stale) // 2])
        file.flush()
        await house.hear("messages/")
        file.write(stale[len(stale) // 2 :] + theirs[:20])
        file.flush()
        await house.workspace.commit(look())
        file.write(theirs[20:])
    await house.sync()
    assert sorted(await house.ids()) == sorted(["m1", "m2", "m3", "theirs", "mine"])
    body = b"".join(map(line, [message("m1"), message("m2"), message("m3"), message("theirs"), message("mine")]))
    assert house.transcript().read_bytes().endswith(b"}\n" + body)
    mirror.follow(house.events)
    await mirror.compare(house)


async def test_lines_are_put_back_behind_half_a_line_that_nobody_completes(house: House) -> None:
    stale = house.transcript().read_bytes()
    await house.append(SESSION, "mine")
    house.events.clear()
    rename_over(house.transcript(), stale + b'{"id":"half')
    await house.hear("messages/didAppend")
    assert await house.ids() == ["m1", "m2", "m3", "mine"]
    assert house.transcript().read_bytes().endswith(b'{"id":"half\n' + line(message("mine")))


async def test_a_broken_line_one_keeps_the_last_good_header(house: House) -> None:
    await house.append(SESSION, "mine")
    good = house.transcript().read_bytes()
    house.events.clear()
    rename_over(house.transcript(), b'{"id": broken' + good[13:])
    await house.hear("issues/didChange")
    assert house.value("sessions", SESSION)["name"] == "Old"
    assert house.info("sessions", SESSION)["damage"][0]["code"] == "header-unreadable"
    for change in (house.update("sessions", SESSION, name="New"), house.append(SESSION, "more")):
        with pytest.raises(Corrupt):
            await change
    assert house.heard("sessions/") == []
    rename_over(house.transcript(), good)
    await house.hear("issues/didChange", 2)
    assert house.info("sessions", SESSION) == {}
    await house.update("sessions", SESSION, name="New")
    assert house.lines()[0]["name"] == "New"


async def test_a_session_moved_in_is_created_and_one_moved_out_deleted(house: House, tmp_path: Path) -> None:
    house.new_session("260302-moved-in", "a", where=tmp_path / "elsewhere", name="Guest")
    os.rename(tmp_path / "elsewhere" / "260302-moved-in", house.root / "sessions" / "260302-moved-in")
    event = await house.hear("sessions/didCreate")
    assert event["item"]["value"]["name"] == "Guest"
    assert await house.ids("260302-moved-in") == ["a"]
    os.rename(house.root / "sessions" / "260302-moved-in", tmp_path / "elsewhere" / "260302-moved-in")
    assert (await house.hear("sessions/didDelete"))["id"] == "260302-moved-in"
    assert house.methods == ["sessions/didCreate", "sessions/didDelete"]
    with pytest.raises(NotFound):
        await house.append("260302-moved-in", "b")


async def test_a_renamed_folder_is_one_session_less_and_one_more(house: House) -> None:
    os.rename(house.transcript().parent, house.transcript("260302-other-name").parent)
    await house.sync()
    assert sorted(house.heard("sessions/"), key=lambda e: e["method"])[0]["item"]["id"] == "260302-other-name"
    assert sorted(e["method"] for e in house.heard("sessions/")) == ["sessions/didCreate", "sessions/didDelete"]
    assert set(house.values("sessions")) == {"260302-other-name"}


async def test_two_hundred_folders_in_a_burst_are_all_announced_once(house: House) -> None:
    ids = [f"2603{number // 28 + 10}-burst-{number}" for number in range(200)]
    for id in ids:
        house.new_session(id, "a")
    await house.hear("sessions/didCreate", 200)
    await house.sync()
    assert sorted(event["item"]["id"] for event in house.heard("sessions/didCreate")) == sorted(ids)
    assert set(house.values("sessions")) == {*ids, SESSION}
    for id in ids:
        shutil.rmtree(house.transcript(id).parent)
    await house.hear("sessions/didDelete", 200)
    assert set(house.values("sessions")) == {SESSION}


async def test_a_folder_without_a_transcript_is_not_announced(house: House) -> None:
    (house.root / "sessions" / "260302-half-made").mkdir()
    await house.sync()
    assert house.events == []
    (house.root / "sessions" / "260302-half-made" / "session.jsonl").write_bytes(
        line({"id": "260302-half-made", "name": "Whole"})
    )
    assert (await house.hear("sessions/didCreate"))["item"]["value"]["name"] == "Whole"


async def test_a_file_that_is_away_for_a_moment_is_not_a_deleted_session(house: House) -> None:
    data = house.transcript().read_bytes()
    house.transcript().unlink()
    await house.workspace.commit(look())
    assert SESSION in house.values("sessions")
    for change in (house.append(SESSION, "later"), house.create("sessions", SESSION, name="Another")):
        with pytest.raises(Busy):
            await change
    house.transcript().write_bytes(data)
    await house.sync()
    assert house.events == []
    await house.append(SESSION, "mine")


@pytest.mark.parametrize("opened", [True, False])
async def test_a_deleted_transcript_is_a_deleted_session(house: House, opened: bool) -> None:
    if opened:
        await house.append(SESSION, "mine")
        house.events.clear()
    house.transcript().unlink()
    await house.sync()
    assert house.methods == ["sessions/didDelete"]
    with pytest.raises(NotFound):
        await house.update("sessions", SESSION, name="New")
    assert not house.transcript().exists()


async def test_sessions_moved_away_together_are_all_deleted(house: House, tmp_path: Path) -> None:
    house.new_session("260302-second")
    await house.hear("sessions/didCreate")
    os.rename(house.root / "sessions", tmp_path / "away")
    await house.hear("sessions/didDelete", 2)
    os.rename(tmp_path / "away", house.root / "sessions")
    await house.hear("sessions/didCreate", 3)
    assert set(house.values("sessions")) == {SESSION, "260302-second"}


async def test_a_workspace_that_is_away_for_a_while_loses_nothing(house: House, tmp_path: Path) -> None:
    await house.append(SESSION, "mine")
    os.rename(house.root, tmp_path / "away")
    with pytest.raises(NotFound):
        await house.append(SESSION, "while it is away")
    with pytest.raises(NotFound):
        await house.workspace.sync()
    assert not house.root.exists()
    os.rename(tmp_path / "away", house.root)
    house.events.clear()
    await house.workspace.sync()
    assert house.heard("sessions/") == []
    rename_over(house.transcript(), renamed(house, "Watched again"))
    await house.hear("sessions/didChange")
    await house.append(SESSION, "back")
    assert await house.ids() == ["m1", "m2", "m3", "mine", "back"]


async def test_an_unparsable_session_made_by_somebody_else_is_listed_as_damaged(house: House) -> None:
    (house.root / "sessions" / "260302-broken").mkdir()
    (house.root / "sessions" / "260302-broken" / "session.jsonl").write_bytes(b"no JSON\n" + line(message("a")))
    await house.hear("issues/didChange")
    assert house.info("sessions", "260302-broken")["damage"][0]["code"] == "header-unreadable"
    assert await house.ids("260302-broken") == ["a"]


async def test_a_rename_of_ours_and_a_foreign_save_at_the_same_time_lose_nothing(house: House) -> None:
    mirror = await Mirror.of(house)
    for number in range(30):
        mine = asyncio.create_task(house.update("sessions", SESSION, name=f"Ours {number}"))
        if number % 3:
            await asyncio.sleep(0)
        header, *lines = house.lines()
        theirs = {**header, "labels": [f"l{number}"]}
        await asyncio.to_thread(WHOLE_SAVES[number % 3], house.transcript(), b"".join(map(line, [theirs, *lines])))
        await mine
        await house.sync()
        value = house.value("sessions", SESSION)
        assert value["labels"] == [f"l{number}"]
        # A copy that was read before our change and saved after it takes the name back.
        assert value["name"] in (f"Ours {number}", header["name"])
    mirror.follow(house.events)
    await mirror.compare(house)


async def test_a_session_written_with_utf8_bom_or_crlf_is_read(house: House) -> None:
    data = b"\xef\xbb\xbf" + house.transcript().read_bytes().replace(b"\n", b"\r\n")
    rename_over(house.transcript(), data)
    await house.sync()
    assert await house.ids() == ["m1", "m2", "m3"]
    assert house.heard("messages/didTruncate") or house.heard("messages/") == []
    await house.append(SESSION, "mine")
    assert house.transcript().read_bytes().startswith(data)


async def test_an_edit_that_leaves_size_and_times_as_they_were_is_noticed_when_it_is_met(house: House) -> None:
    """Two writes within one tick of the file system's clock look like one."""
    await house.append(SESSION, "mine")
    await house.sync()
    mirror = await Mirror.of(house)
    status = house.transcript().stat()
    in_place(house.transcript(), house.transcript().read_bytes().replace(b"text of m2", b"TEXT OF M2"))
    os.utime(house.transcript(), ns=(status.st_atime_ns, status.st_mtime_ns))
    assert [record["content"] for record in await house.messages(SESSION)][1] == "TEXT OF M2"
    in_place(house.transcript(), house.transcript().read_bytes().replace(b'"Old"', b'"New"'))
    os.utime(house.transcript(), ns=(status.st_atime_ns, status.st_mtime_ns))
    await house.append(SESSION, "more")
    assert house.value("sessions", SESSION)["name"] == "New"
    assert await house.ids() == ["m1", "m2", "m3", "mine", "more"]
    mirror.follow(house.events)
    await mirror.compare(house)
