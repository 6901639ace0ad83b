"""Somebody else saves a session between two system calls of ours: neither their edit nor what we answered is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from craftd.store import disk
from craftd.workspace.annotations import CreateAnnotation
from craftd.workspace.messages import AppendMessages
from tests.workspace.house import CLIENT, SESSION, House, Mirror, line, message, rename_over, unlink_and_rename

CALLS = (
    "create",
    "open_append",
    "open_read",
    "write",
    "copy_range",
    "flush",
    "flush_full",
    "flush_directory",
    "rename",
    "rename_new",
    "exchange",
    "remove",
    "close",
    "keep_mode_and_owner",
)


class Intruder:
    """Runs *act* once, right before or right after the *at*-th system call on a session's file or folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
        self.act = act
        self.at = -1
        self.count = 0
        self.happened = ""
        for name in CALLS:
            monkeypatch.setattr(disk, name, self._around(name, getattr(disk, name)))

    def arm(self, at: int) -> None:
        self.at, self.count, self.happened = at, 0, ""

    def disarm(self) -> None:
        self.at = -1

    def _around(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            self._step(f"before {name}")
            result = real(*arguments, **more)
            self._step(f"after {name}")
            return result

        return call

    def _step(self, where: str) -> None:
        if self.at < 0:
            return
        if self.count == self.at:
            self.at = -1  # its own calls are not counted
            self.act()
            self.happened = where
        else:
            self.count += 1


def header_edit(house: House, number: int) -> None:
    header, *lines = house.lines()
    rename_over(house.transcript(), b"".join(map(line, [{**header, "labels": [f"l{number}"]}, *lines])))


def app_save(house: House, number: int) -> None:
    """The whole file from a copy that the app read when nothing of ours was in it."""
    header = {**house.lines()[0], "labels": [f"l{number}"]}
    theirs = [message(f"theirs-{one}") for one in range(number + 1)]
    kept = [one for one in house.lines()[1:] if one["id"].startswith("m")]
    unlink_and_rename(house.transcript(), b"".join(map(line, [header, *kept, *theirs])))


def appended(house: House, number: int) -> None:
    with house.transcript().open("ab") as file:
        file.write(line(message(f"theirs-{number}")))


def in_place_edit(house: House, number: int) -> None:
    header, *lines = house.lines()
    house.transcript().write_bytes(b"".join(map(line, [{**header, "labels": [f"l{number}"]}, *lines])))


EDITS = (header_edit, app_save, appended, in_place_edit)


async def append(house: House, number: int) -> None:
    await house.append(SESSION, f"ours-{number}")


async def append_after_closing(house: House, number: int) -> None:
    """The handle has to be opened first."""
    for transcript in house.workspace.transcripts.values():
        transcript.close()
    await house.append(SESSION, f"ours-{number}")


async def rename(house: House, number: int) -> None:
    await house.update("sessions", SESSION, name=f"Name {number}")


async def rename_and_append(house: House, number: int) -> None:
    commit = AppendMessages(
        origin=CLIENT, labels=dict, id=SESSION, messages=[message(f"ours-{number}")], set={"name": f"Name {number}"}
    )
    await house.workspace.commit(commit)


async def edit(house: House, number: int) -> None:
    await house.edit(SESSION, "m1", content=f"edited {number}")


async def take_out(house: House, number: int) -> None:
    await house.append(SESSION, f"gone-{number}")
    await house.take_out(SESSION, f"gone-{number}")


async def append_long_result(house: House, number: int) -> None:
    """Its file is there before its line, wherever the line goes in the end."""
    result = f"{number} {'ab ' * 20_000}"
    one = {**message(f"ours-{number}"), "type": "tool", "toolName": "Read", "toolResult": result}
    await house.workspace.commit(AppendMessages(origin=CLIENT, labels=dict, id=SESSION, messages=[one]))


async def annotate(house: House, number: int) -> None:
    value = {"target": {"selectors": [{"type": "text-quote", "exact": "x"}]}}
    await house.workspace.commit(
        CreateAnnotation(origin=CLIENT, id=SESSION, message="m1", annotation=f"a{number}", value=value)
    )


APPENDING = (append, append_after_closing, rename_and_append, append_long_result)
CHANGES = (*APPENDING, rename, edit, take_out, annotate)


MOMENTS = 200
"""More than any of these changes has system calls: the test ends at the first moment that never came."""


@pytest.mark.parametrize("theirs", EDITS)
@pytest.mark.parametrize("change", CHANGES)
async def test_nothing_is_lost_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[..., Any], theirs: Callable[..., Any]
) -> None:
    house = House.make(tmp_path)
    house.new_session(SESSION, "m1", "m2")
    await house.open()
    mirror = await Mirror.of(house)
    number = 0
    intruder = Intruder(monkeypatch, lambda: theirs(house, number))
    places = set()
    for number in range(MOMENTS):
        await house.sync()
        intruder.arm(number)
        await change(house, number)
        intruder.disarm()
        if not intruder.happened:
            break
        places.add(intruder.happened)
        await house.sync()
        where = f"{intruder.happened}, moment {number}"
        value, ids = house.value("sessions", SESSION), await house.ids()
        on_disk = {record["id"] for record in house.lines()[1:]}
        assert on_disk == set(ids), where
        if change in APPENDING:
            assert {f"ours-{one}" for one in range(number + 1)} <= on_disk, where
        if change is edit:
            assert house.lines()[1]["content"] == f"edited {number}", where
        if change is annotate:
            assert [one["id"] for one in house.lines()[1]["annotations"]] == [f"a{n}" for n in range(number + 1)], where
        if change is append_long_result:
            for one in [record for record in house.lines() if record["id"].startswith("ours")]:
                name = one["toolResult"].partition("long_responses/")[2].partition("\n")[0]
                kept = (house.root / "sessions" / SESSION / "long_responses" / name).read_text()
                assert kept.startswith(f"{one['id'].removeprefix('ours-')} ab"), where
        assert not any(id.startswith("gone") for id in ids), where
        if change in (rename, rename_and_append):
            assert value["name"] == house.lines()[0]["name"] == f"Name {number}", where
        if theirs is not appended:
            assert value["labels"] == house.lines()[0]["labels"] == [f"l{number}"], where
        if theirs is app_save:
            assert f"theirs-{number}" in on_disk, where
        if theirs is appended:
            assert {f"theirs-{one}" for one in range(number + 1)} <= on_disk, where
        assert {"m1", "m2"} <= on_disk, where
        assert len(ids) == len(set(ids)), where
        if change is append and theirs is header_edit:
            # What was acknowledged is ours, whoever wrote the file it was found in.
            rename_over(house.transcript(), b"".join(line(one) for one in house.lines() if one["id"][:4] != "ours"))
            await house.sync()
            assert {f"ours-{one}" for one in range(number + 1)} <= set(await house.ids()), where
        mirror.follow(house.events)
        house.events.clear()
        await mirror.compare(house)
    else:
        pytest.fail("there were more moments than expected")
    assert len(places) >= 4
    await house.close()
    assert not list((house.root / "sessions" / SESSION).glob(".*.tmp")), "a temporary file was left"
