"""Who may write: one daemon per folder, and nobody while the Craft Agents app runs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import ReadOnly
from craftd.store.locks import AppLock
from craftd.workspace import home as home_module
from craftd.workspace.guard import Guard
from craftd.workspace.registry import UpdateSettings
from tests.workspace.house import (
    CLIENT,
    PATIENCE,
    SESSION,
    House,
    everything_below,
    line,
    message,
    rename_over,
    until,
)


class App:
    """A living program that is not us: the Craft Agents app, as far as its lock shows."""

    def __init__(self, config: Path) -> None:
        self.lock = config / ".server.lock"
        self.process = subprocess.Popen(["sleep", "600"])

    def start(self) -> None:
        self.lock.write_text(json.dumps({"pid": self.process.pid, "startedAt": time.time_ns() // 1_000_000}))

    def end(self) -> None:
        """Without taking its lock away, as after a crash."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def app(house: House) -> Iterator[App]:
    app = App(house.config)
    yield app
    app.end()


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home_module, "LOOK_EVERY_READ_ONLY", 0.02)


def state(house: House) -> list[Any]:
    """Everything that must not change while somebody else may write."""
    config = [entry for entry in everything_below(house.config) if not entry[0].startswith("craftd/")]
    return [config, list(everything_below(house.root))]


async def every_change(house: House) -> list[Exception]:
    """What happens to one change of each kind."""
    known = house.home.known["ws"].settings
    settings = UpdateSettings(
        origin=CLIENT, id="ws", patch={"set": {"name": "New"}}, facts=house.home.facts(), expected=None
    )
    assert known is not None
    changes = (
        house.append(SESSION, "refused"),
        house.update("sessions", SESSION, name="Refused"),
        house.create("sessions", "260302-refused", name="Refused"),
        house.delete("sessions", SESSION),
        house.create("labels", name="Refused"),
        house.create("skills", "refused", name="Refused", description="d", content="Text"),
        house.home.commit(settings),
    )
    return [error for error in await asyncio.gather(*changes, return_exceptions=True) if isinstance(error, Exception)]


async def test_nothing_is_locked_before_the_first_change(house: House) -> None:
    await house.sync()
    await house.messages(SESSION)
    assert not (house.config / ".server.lock").exists()
    await house.append(SESSION, "mine")
    assert json.loads((house.config / ".server.lock").read_bytes())["pid"] == os.getpid()


async def test_while_the_app_runs_nothing_is_written_and_everything_can_be_read(house: House, app: App) -> None:
    await house.append(SESSION, "mine")
    app.start()
    await until(lambda: house.workspace.read_only)
    before = state(house)
    errors = await every_change(house)
    assert [type(error) for error in errors] == [ReadOnly] * 7
    assert errors[0].holder == {"pid": app.process.pid, "name": "sleep"}  # type: ignore[attr-defined]
    assert await house.ids() == ["m1", "m2", "m3", "mine"]
    await house.workspace.fold_all()
    await house.sync()
    assert state(house) == before
    house.events.clear()
    house.transcript().open("ab").write(line(message("theirs")))
    await house.hear("messages/didAppend")
    assert house.workspace.status()["readOnly"] is True


async def test_when_the_app_has_ended_writing_goes_on(house: House, app: App) -> None:
    told = []
    house.home.around.guard.changed = lambda: told.append(house.home.around.guard.read_only)
    app.start()
    await until(lambda: told == [True])
    with pytest.raises(ReadOnly):
        await house.append(SESSION, "refused")
    app.end()
    await until(lambda: told == [True, False])
    await house.append(SESSION, "accepted")
    assert json.loads((house.config / ".server.lock").read_bytes())["pid"] == os.getpid()


async def test_a_lock_that_is_lost_is_noticed_before_the_next_round(house: House, app: App) -> None:
    await house.append(SESSION, "mine")
    await house.workspace.fold_all()  # nothing may take the lock while the app writes its file
    app.start()
    with pytest.raises(ReadOnly):
        await house.append(SESSION, "refused")


async def test_what_was_not_folded_when_the_app_came_is_folded_when_it_has_ended(tmp_path: Path) -> None:
    house = House.make(tmp_path, house_every=0.02, fold_after=0.08)
    house.new_session(SESSION, *(f"m{number}" for number in range(50)))
    await house.open()
    app = App(house.config)
    await house.append(SESSION, "mine")
    app.start()
    await until(lambda: house.workspace.read_only)
    before = state(house)
    await asyncio.sleep(0.2)  # longer than what would be due
    assert state(house) == before
    app.end()
    await until(lambda: house.lines()[0]["messageCount"] == 51)
    await house.close()


async def test_lines_that_the_app_dropped_are_put_back_when_it_has_ended(tmp_path: Path) -> None:
    house = House.make(tmp_path, house_every=0.02)
    house.new_session(SESSION, "m1")
    await house.open()
    app = App(house.config)
    stale = house.transcript().read_bytes()
    await house.append(SESSION, "mine")
    app.start()
    await until(lambda: house.workspace.read_only)
    rename_over(house.transcript(), stale + line(message("theirs")))
    await house.hear("messages/didDelete")
    before = state(house)
    await house.sync()
    assert state(house) == before
    assert await house.ids() == ["m1", "theirs"]
    app.end()
    await until(lambda: len(house.lines()) == 4)
    await house.sync()
    assert await house.ids() == ["m1", "theirs", "mine"]
    await house.close()


async def test_a_second_daemon_on_a_folder_only_reads_until_the_first_has_ended(tmp_path: Path) -> None:
    first = House.make(tmp_path, "first", house_every=0.02)
    first.new_session(SESSION, "m1")
    second = House.make(tmp_path, "second", house_every=0.02)
    second.root = first.root
    second.register({"id": "ws", "rootPath": str(first.root)})
    await first.open()
    await second.open()
    told: list[bool] = []
    second.workspace.guard.changed = lambda: told.append(second.workspace.read_only)
    assert (first.workspace.read_only, second.workspace.read_only) == (False, True)
    assert second.workspace.status()["holder"]["pid"] == os.getpid()

    before = state(second)
    errors = await every_change(second)
    assert [type(error) for error in errors] == [ReadOnly] * 7
    assert state(second) == before

    await first.append(SESSION, "mine")
    await first.update("sessions", SESSION, name="By the first")
    await second.hear("messages/didAppend")
    await second.sync()
    assert second.value("sessions", SESSION)["name"] == "By the first"
    assert {event["origin"]["kind"] for event in second.events} == {"disk"}

    await first.close()
    await until(lambda: told == [False])
    await second.append(SESSION, "by the second")
    assert await second.ids() == ["m1", "mine", "by the second"]
    await second.close()


def test_the_lock_is_not_given_back_while_somebody_writes(tmp_path: Path) -> None:
    guard = Guard(AppLock(tmp_path), time.monotonic)
    given = threading.Event()

    def give_back() -> None:
        guard.give_back()
        given.set()

    with guard.writing():
        thread = threading.Thread(target=give_back)
        thread.start()
        assert not given.wait(0.05)
        assert guard.held
    thread.join(PATIENCE)
    assert given.is_set()
    assert not guard.held


def test_the_lock_is_kept_if_something_came_in_the_last_moment(tmp_path: Path) -> None:
    guard = Guard(AppLock(tmp_path), time.monotonic)
    guard.permit()
    assert not guard.give_back(unless=lambda: True)
    assert guard.held
    assert guard.give_back()
    assert not guard.held
