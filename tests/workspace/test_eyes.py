"""How a workspace comes to know of changes: what watches tell, and looking at everything when they do not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from craftd.store import watch
from craftd.store.watch import GONE, OVERFLOW, UNWATCHED_FOLDER, Watcher
from craftd.workspace import eyes as eyes_module
from tests.workspace.house import SESSION, House, line, message, rename_over, until, write


class Blind:
    """Takes the place of the watcher and sees nothing; says what a test tells it to."""

    def __init__(self, root: Path, on_paths: Callable[[set[str]], None], on_lost: Callable[[str], None], *_: Any):
        self.ready = asyncio.Event()
        self.root, self.on_paths, self.on_lost = root, on_paths, on_lost
        self.watches = 0
        self.failed = 0
        self.overflows = 0
        self.stopped = False
        made.append(self)

        class Ready:
            @staticmethod
            def wait() -> bool:
                return True

        self.ready = Ready()  # type: ignore[assignment]

    def start(self) -> None: ...

    def stop(self) -> None:
        self.stopped = True


made: list[Blind] = []


@pytest.fixture
async def blind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A workspace that hears of nothing by itself, and sweeps only when it must."""
    monkeypatch.setattr(eyes_module, "Watcher", Blind)
    made.clear()
    house = House.make(tmp_path)
    house.new_session(SESSION, "m1")
    await house.open()
    await house.sync()
    yield house
    await house.close()


def change(house: House) -> None:
    header, *lines = house.lines()
    rename_over(house.transcript(), b"".join(map(line, [{**header, "name": "Theirs"}, *lines, message("theirs")])))
    write(house.root / "labels" / "config.json", {"version": 1, "labels": [{"id": "one", "name": "One"}]})


@pytest.mark.parametrize("reason", [OVERFLOW, UNWATCHED_FOLDER])
async def test_a_loss_makes_it_look_at_everything(blind: House, reason: str) -> None:
    change(blind)
    assert blind.events == []
    made[-1].on_lost(reason)
    await blind.hear("messages/didAppend")
    await blind.hear("labels/didCreate")
    assert blind.value("sessions", SESSION)["name"] == "Theirs"


async def test_many_losses_at_once_are_one_or_two_sweeps(blind: House, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeps = []
    real = blind.workspace._eyes._differences
    monkeypatch.setattr(blind.workspace._eyes, "_differences", lambda: (sweeps.append(1), real())[1])
    change(blind)
    for _ in range(100):
        made[-1].on_lost(OVERFLOW)
    await blind.hear("messages/didAppend")
    await blind.hear("labels/didCreate")
    await asyncio.sleep(0.1)
    assert 1 <= len(sweeps) <= 2


async def test_now_and_then_it_looks_at_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eyes_module, "Watcher", Blind)
    house = House.make(tmp_path, sweep_every=0.05, house_every=0.02)
    house.new_session(SESSION, "m1")
    await house.open()
    change(house)
    await house.hear("messages/didAppend")
    await house.hear("labels/didCreate")
    await house.close()


async def test_what_changed_between_reading_and_watching_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(Blind):
        def start(self) -> None:
            change(house)

    monkeypatch.setattr(eyes_module, "Watcher", Late)
    house = House.make(tmp_path)
    house.new_session(SESSION, "m1")
    await house.open()
    await until(lambda: house.value("sessions", SESSION)["name"] == "Theirs")
    await house.close()


async def test_a_client_may_say_what_it_saw(blind: House) -> None:
    change(blind)
    blind.workspace.hint([str(blind.transcript()), "/elsewhere/labels/config.json"])
    await blind.hear("messages/didAppend")
    assert blind.heard("labels/") == []


async def test_a_folder_that_comes_back_is_watched_again(blind: House, tmp_path: Path) -> None:
    os.rename(blind.root, tmp_path / "away")
    made[-1].on_lost(GONE)
    os.rename(tmp_path / "away", blind.root)
    made[-1].failed, made[-1].overflows = 2, 3
    change(blind)
    await blind.workspace.sync()
    assert [watcher.stopped for watcher in made[-2:]] == [True, False]
    status = blind.workspace.status()
    assert (status["failedWatches"], status["overflows"]) == (2, 3)
    assert blind.value("sessions", SESSION)["name"] == "Theirs"


async def test_losses_are_counted_in_the_status(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = house.workspace._eyes._watcher
    assert isinstance(watcher, Watcher)
    watcher.lost(OVERFLOW)
    watcher.lost(UNWATCHED_FOLDER)
    status = house.workspace.status()
    assert (status["overflows"], status["failedWatches"]) == (1, 1)
    await until(lambda: house.workspace.status()["watches"] >= 7)


@pytest.mark.skipif(not hasattr(watch, "InotifyFD"), reason="only here are folders watched one by one")
async def test_folders_that_cannot_be_watched_are_counted_and_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = watch.InotifyFD.add_callback

    def add(self: Any, path: bytes, *rest: Any) -> Any:
        if SESSION.encode() in path:
            raise OSError(28, "no watches left")
        return real(self, path, *rest)

    monkeypatch.setattr(watch.InotifyFD, "add_callback", add)
    house = House.make(tmp_path)
    house.new_session(SESSION, "m1")
    await house.open()
    await until(lambda: house.workspace.status()["failedWatches"])
    change(house)
    await house.sync()
    assert house.value("sessions", SESSION)["name"] == "Theirs"
    await house.close()
