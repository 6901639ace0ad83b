"""Messages changed, taken out and cut off: what stays keeps its bytes, what follows is counted, everybody hears it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import AlreadyExists, Busy, Corrupt, NotFound, ValidationFailed, VersionConflict
from craftd.model import json_text
from craftd.store import disk
from craftd.store.transcript import Transcript
from craftd.workspace import workspace as workspaces
from craftd.workspace.messages import AppendMessages
from craftd.workspace.reading import one
from tests.workspace.house import CLIENT, SESSION, House, Mirror, line, message, rename_over, unlink_and_rename


def reply(id: str, content: str = "answer", **more: Any) -> dict[str, Any]:
    return {**message(id, content), **more, "type": "assistant"}


async def append(house: House, *records: dict[str, Any], session: str = SESSION) -> None:
    await house.workspace.commit(AppendMessages(origin=CLIENT, labels=dict, id=session, messages=records))


def body(house: House) -> list[bytes]:
    return house.transcript().read_bytes().split(b"\n")[1:-1]


async def test_an_edit_changes_one_line_and_no_byte_of_the_others(house: House) -> None:
    odd = b'{"type":"user", "content":"odd \\u0041 spelling","id":"odd","n":1.50,"timestamp":1}'
    house.transcript().write_bytes(house.transcript().read_bytes() + odd + b"\n")
    await house.sync()
    mirror, before = await Mirror.of(house), body(house)
    done = await house.edit(SESSION, "m2", content="new", note={"deep": [None, 1]})
    assert done.answer.changed
    assert done.answer.item.value == {**message("m2"), "content": "new", "note": {"deep": [None, 1]}}
    after = body(house)
    assert [*after[:1], *after[2:]] == [*before[:1], *before[2:]]
    assert after[1] == b'{"id":"m2","content":"new","timestamp":1772323200000,"note":{"deep":[null,1]},"type":"user"}'
    [event] = house.heard("messages/didChange")
    assert event["changes"] == [{"id": "m2", "version": done.answer.item.version}]
    assert event["patch"] == {"set": {"content": "new", "note": {"deep": [None, 1]}}}
    mirror.follow(house.events)
    await mirror.compare(house)


async def test_an_edit_that_changes_nothing_writes_nothing(house: House) -> None:
    before = house.transcript().read_bytes()
    done = await house.edit(SESSION, "m1", content=message("m1")["content"])
    assert (done.answer.changed, house.events, house.transcript().read_bytes()) == (False, [], before)


async def test_an_edit_of_another_version_is_a_conflict(house: House) -> None:
    seen = await one(house.workspace, SESSION, "m1")
    await house.edit(SESSION, "m1", expected=seen.version, content="first")
    with pytest.raises(VersionConflict) as conflict:
        await house.edit(SESSION, "m1", expected=seen.version, content="second")
    assert conflict.value.current["item"]["value"]["content"] == "first"
    with pytest.raises(VersionConflict):
        await house.take_out(SESSION, "m1", expected=seen.version)
    await house.take_out(SESSION, "m1", expected=conflict.value.current["version"])
    assert await house.ids() == ["m2", "m3"]


@pytest.mark.parametrize(
    ("set", "path"), [({"id": "other"}, "id"), ({"content": 5}, "content"), ({"toolInput": []}, "toolInput")]
)
async def test_an_edit_that_breaks_a_message_is_refused(house: House, set: dict[str, Any], path: str) -> None:
    before = house.transcript().read_bytes()
    with pytest.raises(ValidationFailed) as refused:
        await house.edit(SESSION, "m1", **set)
    assert [issue.path for issue in refused.value.issues] == [path]
    assert house.transcript().read_bytes() == before


async def test_what_a_message_had_wrong_already_is_no_fault_of_an_edit(house: House) -> None:
    with house.transcript().open("ab") as file:
        file.write(b'{"id":"bad","content":7,"type":"user"}\n{"content":"nameless","type":"user"}\n')
    await house.sync()
    await house.edit(SESSION, "bad", toolName="t")
    done = await house.edit(SESSION, "#4", toolName="t")
    assert done.answer.item.id == "#4"
    assert [event["changes"][0]["id"] for event in house.heard("messages/didChange")] == ["bad", "#4"]
    with pytest.raises(ValidationFailed):
        await house.edit(SESSION, "#4", id="named")


async def test_a_number_that_json_cannot_say_keeps_its_line(house: House) -> None:
    with house.transcript().open("ab") as file:
        file.write(b'{"id":"big","content":"c","n":1e400,"type":"user"}\n')
    await house.sync()
    with pytest.raises(ValidationFailed):
        await house.edit(SESSION, "big", content="d")
    await house.edit(SESSION, "m1", content="d")
    assert b'"n":1e400' in body(house)[3]
    await house.workspace.verbs.update("sessions", SESSION, {"set": {"name": "N"}}, None, CLIENT, None)
    assert b'"n":1e400' in body(house)[3]


async def test_live_state_is_not_stored_and_paths_are_portable(house: House) -> None:
    folder = str(house.transcript().parent)
    await house.edit(
        SESSION, "m1", isStreaming=True, role="user", planPath=f"{folder}/plans/a.md", content="{{SESSION_PATH}}"
    )
    [first, *_] = body(house)
    assert json.loads(first).keys() == {"id", "content", "timestamp", "planPath", "type"}
    assert b'"planPath":"{{SESSION_PATH}}/plans/a.md"' in first
    assert (await house.messages(SESSION))[0]["planPath"] == f"{folder}/plans/a.md"
    assert (await house.messages(SESSION))[0]["content"] == "{{SESSION_PATH}}"


async def test_the_early_append_of_a_tool_call_is_completed_by_an_edit(house: House) -> None:
    call = {
        "id": "t1",
        "content": "Running Read...",
        "toolName": "Read",
        "toolStatus": "executing",
        "timestamp": 5,
        "type": "tool",
    }
    await append(house, call)
    patch = {"set": {"toolStatus": "completed", "toolResult": "done", "content": ""}}
    await house.edit(SESSION, "t1", **patch["set"])
    whole = {**call, **patch["set"]}
    await append(house, whole)  # known as what it is now
    with pytest.raises(AlreadyExists):
        await append(house, call)
    assert len(house.lines()) == 5


async def test_what_follows_from_the_messages_follows_an_edit(house: House) -> None:
    await append(house, reply("a1", isIntermediate=True), reply("a2", isIntermediate=True))
    assert "lastFinalMessageId" not in house.value("sessions", SESSION)
    await house.edit(SESSION, "a1", isIntermediate=False)
    value = house.value("sessions", SESSION)
    assert (value["lastFinalMessageId"], value["hasUnread"], value["lastMessageRole"]) == ("a1", True, "assistant")
    await house.edit(SESSION, "m1", content="Another beginning")
    assert house.value("sessions", SESSION)["preview"] == "Another beginning" == house.lines()[0]["preview"]
    await house.take_out(SESSION, "m1")
    assert house.value("sessions", SESSION)["preview"] == "text of m2"
    assert house.value("sessions", SESSION)["messageCount"] == 4 == house.lines()[0]["messageCount"]
    await house.take_out(SESSION, "a1")
    value = house.value("sessions", SESSION)
    assert ("lastFinalMessageId" in value, value["hasUnread"]) == (False, False)
    for id in ("a2", "m2", "m3"):
        await house.take_out(SESSION, id)
    value = house.value("sessions", SESSION)
    assert value["messageCount"] == 0
    assert not {"preview", "lastMessageRole"} & value.keys()


async def test_the_mark_of_what_was_read_never_points_at_what_is_gone(house: House) -> None:
    await append(house, reply("a1"), reply("a2"))
    await house.update("sessions", SESSION, hasUnread=False, lastReadMessageId="a2")
    await house.take_out(SESSION, "a2")
    value = house.value("sessions", SESSION)
    assert (value["lastReadMessageId"], value["hasUnread"]) == ("a1", False)
    await append(house, reply("a3"))
    await house.take_out(SESSION, "a1")
    value = house.value("sessions", SESSION)
    assert ("lastReadMessageId" in value, value["hasUnread"]) == (False, True)


async def test_a_message_is_taken_out_once(house: House) -> None:
    await house.take_out(SESSION, "m2")
    with pytest.raises(NotFound):
        await house.take_out(SESSION, "m2")
    await house.take_out(SESSION, "m2", missing_ok=True)
    await house.append(SESSION, "m2")  # its id is free again
    assert await house.ids() == ["m1", "m3", "m2"]
    with pytest.raises(NotFound):
        await house.take_out("260301-no-session", "m2", missing_ok=True)


async def test_of_equal_ids_the_first_is_meant(house: House) -> None:
    with house.transcript().open("ab") as file:
        file.write(line(message("m1", "second")) + line({**message("x"), "id": None}))
    await house.sync()
    mirror = await Mirror.of(house)
    await house.take_out(SESSION, "m1")
    await house.edit(SESSION, "m1", content="was the second")
    await house.take_out(SESSION, "#3")
    assert [record["content"] for record in await house.messages(SESSION)] == [
        "text of m2", "text of m3", "was the second",
    ]  # fmt: skip
    mirror.follow(house.events)
    await mirror.compare(house)


async def test_a_damaged_line_can_be_taken_out_and_its_bytes_are_kept(house: House) -> None:
    broken = b'{"id":"half","content":"lo\xff'
    with house.transcript().open("ab") as file:
        file.write(broken + b"\n" + line(message("m4")))
    await house.sync()
    offset = house.transcript().read_bytes().index(broken)
    with pytest.raises(Corrupt):
        await house.edit(SESSION, f"~{offset}", content="x")
    await house.take_out(SESSION, f"~{offset}")
    assert "damage" not in house.info("sessions", SESSION)
    assert await house.ids() == ["m1", "m2", "m3", "m4"]
    kept = house.transcript().with_name(".unreadable.jsonl")
    assert kept.read_bytes() == broken + b"\n"
    assert [event["id"] for event in house.heard("messages/didDelete")] == [f"~{offset}"]


async def test_bytes_that_a_readable_line_hides_are_kept_when_it_is_edited(house: House) -> None:
    hidden = b'{"id":"m4","content":"caf\xe9","type":"user"}'
    with house.transcript().open("ab") as file:
        file.write(hidden + b"\n")
    await house.sync()
    await house.edit(SESSION, "m4", content="café")
    assert house.transcript().with_name(".unreadable.jsonl").read_bytes() == hidden + b"\n"
    assert "damage" not in house.info("sessions", SESSION)


async def test_truncating_leaves_the_first_messages_as_they_are(house: House) -> None:
    mirror, before = await Mirror.of(house), body(house)
    await append(house, reply("a1"))
    await house.truncate(SESSION, keep=2)
    assert body(house) == before[:2]
    assert house.heard("messages/didTruncate")[0]["keep"] == 2
    await append(house, reply("a1", "another"))  # forgotten, so it is new
    await house.truncate(SESSION, after="m1")
    assert await house.ids() == ["m1"]
    mirror.follow(house.events)
    await mirror.compare(house)
    house.events.clear()
    for keep in (1, 2, 99):
        await house.truncate(SESSION, keep=keep)
    assert house.events == []
    with pytest.raises(NotFound):
        await house.truncate(SESSION, after="m2")


async def test_clearing_ends_the_conversation_of_the_provider_too(house: House) -> None:
    usage = {"inputTokens": 5, "outputTokens": 1, "totalTokens": 6, "contextTokens": 0, "costUsd": 0.5}
    await append(house, reply("a1"))
    await house.update(
        "sessions", SESSION, tokenUsage=usage, sdkSessionId="sdk", lastReadMessageId="a1", hasUnread=False
    )
    with house.transcript().open("ab") as file:
        file.write(b"broken\n")
    await house.sync()
    await house.truncate(SESSION, keep=0)
    value = house.value("sessions", SESSION)
    assert value["messageCount"] == 0
    assert value["tokenUsage"] == dict.fromkeys(usage, 0)
    assert not {"sdkSessionId", "lastReadMessageId", "lastFinalMessageId", "preview"} & value.keys()
    assert value["name"] == "Old"
    assert body(house) == []
    assert house.transcript().with_name(".unreadable.jsonl").read_bytes() == b"broken\n"
    house.events.clear()
    await house.truncate(SESSION, keep=0)
    assert house.events == []


async def test_changes_that_wait_together_share_one_copy(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order asked, on what the ones before have made of it."""
    mirror = await Mirror.of(house)
    swaps: list[None] = []
    real = disk.exchange
    monkeypatch.setattr(disk, "exchange", lambda one, other: (swaps.append(None), real(one, other))[1])
    await asyncio.gather(
        house.append(SESSION, "n1", "n2"),
        house.edit(SESSION, "n1", content="edited"),
        house.take_out(SESSION, "m1"),
        house.edit(SESSION, "#0", note="the second"),
        house.take_out(SESSION, "#2"),
        house.append(SESSION, "n3"),
        house.edit(SESSION, "#3", note="the last"),
        house.take_out(SESSION, "#1"),
    )
    assert len(swaps) <= 2  # the first may have begun alone
    found = await house.messages(SESSION)
    assert [record["id"] for record in found] == ["m2", "n2", "n3"]
    assert [record.get("note") for record in found] == ["the second", None, "the last"]
    mirror.follow(house.events)
    await mirror.compare(house)
    await house.reopen()
    assert await house.messages(SESSION) == found


@pytest.mark.parametrize("at", ["first", "last"])
async def test_a_large_session_is_edited_from_a_copy_made_beside(
    house: House, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    monkeypatch.setattr(workspaces, "PREPARE_ABOVE", 1000)
    finished: list[None] = []
    real = Transcript.finish
    monkeypatch.setattr(Transcript, "finish", lambda *given: (finished.append(None), real(*given))[1])
    await house.append(SESSION, *(f"n{number}" for number in range(30)))
    mirror, name = await Mirror.of(house), "m1" if at == "first" else "n29"
    await asyncio.gather(
        house.edit(SESSION, name, content="edited"), house.take_out(SESSION, "n10"), house.append(SESSION, "z")
    )
    assert len(await house.ids()) == 33
    assert finished
    finished.clear()
    await house.truncate(SESSION, keep=20)
    assert len(finished) == 1
    mirror.follow(house.events)
    await mirror.compare(house)
    assert [one["id"] for one in house.lines()[1:]] == await house.ids()


async def test_a_large_change_is_named_in_the_event_not_carried(house: House) -> None:
    await house.edit(SESSION, "m1", content="x" * 300_000)
    [event] = house.heard("messages/didChange")
    size = len(body(house)[0])
    assert event["patch"] == {"unset": ["/content", "/timestamp"], "set": {"omitted": size}}


# What a program that saves an older copy brings back


async def saved_over(house: House, before: bytes, save: Any = unlink_and_rename) -> None:
    """The whole file from what another program read before; only the name on line 1 is its own change."""
    save(house.transcript(), before.replace(b'"name":"Old"', b'"name":"Theirs"'))
    await house.sync()


async def test_an_edit_survives_a_save_of_an_older_copy(house: House) -> None:
    mirror, before = await Mirror.of(house), house.transcript().read_bytes()
    await house.edit(SESSION, "m2", content="one")
    await house.edit(SESSION, "m2", content="two")
    await saved_over(house, before)
    await house.edit(SESSION, "m1", content="also mends")
    assert [record["content"] for record in house.lines()[1:]] == ["also mends", "two", "text of m3"]
    assert house.value("sessions", SESSION)["name"] == "Theirs"
    mirror.follow(house.events)
    await mirror.compare(house)


async def test_what_they_changed_in_an_older_copy_is_merged_with_our_edit(house: House) -> None:
    mirror, before = await Mirror.of(house), house.transcript().read_bytes()
    await house.edit(SESSION, "m2", content="ours", toolStatus="completed")
    await house.edit(SESSION, "m2", toolResult="r")
    for number in range(2):  # they go on with the copy they have
        theirs = line(message("m2", "text", note=number)).rstrip(b"\n")
        await saved_over(house, before.replace(line(message("m2")).rstrip(b"\n"), theirs))
        await house.append(SESSION, f"mends-{number}")
        expected = {**message("m2"), "content": "ours", "toolStatus": "completed", "toolResult": "r", "note": number}
        assert house.lines()[2] == expected == (await house.messages(SESSION))[1]
        assert list(house.lines()[2])[-1] == "type"
    theirs = line(message("m2", "theirs")).rstrip(b"\n")
    await saved_over(house, before.replace(line(message("m2")).rstrip(b"\n"), theirs))
    await house.append(SESSION, "mends")
    assert house.lines()[2]["content"] == "theirs of m2"  # both changed it
    assert house.lines()[2]["toolResult"] == "r"
    mirror.follow(house.events)
    await mirror.compare(house)


async def test_a_deleted_message_does_not_come_back_with_an_older_copy(house: House) -> None:
    await append(house, reply("a1"), reply("a2"))
    mirror, before = await Mirror.of(house), house.transcript().read_bytes()
    await house.take_out(SESSION, "m2")
    await house.truncate(SESSION, after="a1")
    await saved_over(house, before)
    await house.append(SESSION, "mends")
    assert await house.ids() == ["m1", "m3", "a1", "mends"]
    assert [one["id"] for one in house.lines()[1:]] == ["m1", "m3", "a1", "mends"]
    mirror.follow(house.events)
    await mirror.compare(house)


async def test_a_deleted_message_that_somebody_wrote_anew_stays(house: House) -> None:
    await house.take_out(SESSION, "m3")
    with house.transcript().open("ab") as file:
        file.write(line(message("m3", "theirs")))
    await house.sync()
    await house.append(SESSION, "n")
    assert await house.ids() == ["m1", "m2", "m3", "n"]


async def test_what_is_owed_is_put_back_as_it_was_edited(house: House) -> None:
    before = house.transcript().read_bytes()
    await house.append(SESSION, "ours", "gone")
    await house.edit(SESSION, "ours", content="edited")
    await house.take_out(SESSION, "gone")
    await saved_over(house, before)
    await house.append(SESSION, "next")
    assert [(one["id"], one["content"]) for one in house.lines()[4:]] == [("ours", "edited"), ("next", "text of next")]


async def test_what_is_owed_is_busy_until_it_is_back(house: House) -> None:
    before = house.transcript().read_bytes()
    await house.append(SESSION, "ours")
    rename_over(house.transcript(), before + b'{"id":"theirs","con')  # who writes this line may be about to end it
    await house.sync()
    for change in (
        house.edit(SESSION, "ours", content="x"),
        house.take_out(SESSION, "ours"),
        house.truncate(SESSION, keep=1),
    ):
        with pytest.raises(Busy):
            await change
    await house.hear("messages/didAppend", 2)
    await house.edit(SESSION, "ours", content="x")
    assert (await house.messages(SESSION))[-1]["content"] == "x"


async def test_a_change_of_a_session_whose_line_1_is_broken_is_refused(tmp_path: Path) -> None:
    house = House.make(tmp_path)
    path = house.new_session(SESSION, "m1")
    path.write_bytes(b"broken\n" + path.read_bytes().split(b"\n", 1)[1])
    await house.open()
    for change in (
        house.edit(SESSION, "m1", content="x"),
        house.take_out(SESSION, "m1"),
        house.truncate(SESSION, keep=0),
    ):
        with pytest.raises(Corrupt):
            await change
    await house.close()


async def test_messages_read_the_same_from_memory_and_from_disk(house: House) -> None:
    await append(house, reply("a1"), {**message("odd"), "1": 1, "__proto__": {"x": None}, "big": 2**70})
    await house.edit(SESSION, "odd", note="\ud83d lone", **{"0": [1.0, True, None]})
    found = await house.messages(SESSION)
    await house.reopen()
    assert json_text.dumps(await house.messages(SESSION)) == json_text.dumps(found)
