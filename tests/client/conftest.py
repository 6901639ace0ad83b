from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.client import launch
from craftd.protocol import rendezvous
from craftd.protocol.rendezvous import Places
from tests.daemon import Daemon

FAKE = Path(__file__).with_name("fake_daemon.py")


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """An empty configuration folder, below a short name because a socket will lie in it; its daemons are ended."""
    with tempfile.TemporaryDirectory(prefix="craftd-") as folder:
        monkeypatch.setenv("CRAFT_CONFIG_DIR", folder)
        yield rendezvous.find()
        end_all_of(folder)


def end_all_of(folder: str) -> None:
    """Kill every process that was started for the configuration *folder*, those too that are only about to find out
    that they lost the race.
    """
    needle = f"CRAFT_CONFIG_DIR={folder}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(name) != os.getpid() and needle in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                os.kill(int(name), signal.SIGKILL)
                os.waitpid(int(name), 0)
        except (OSError, ChildProcessError):
            pass  # it has ended, or is not our child


@pytest.fixture
def fake(places: Places, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the fake daemon be started in place of the real one; call it with how it shall behave from now on."""
    monkeypatch.setattr(launch, "COMMAND", (str(FAKE),))

    def behave(**behaviour: Any) -> None:
        monkeypatch.setenv("CRAFTD_FAKE", json.dumps(behaviour))

    behave()
    return behave


def starts(places: Places) -> list[int]:
    """Process ids of all fake daemons that ever won the lock."""
    try:
        return [int(line) for line in Path(places.folder, "starts").read_text().split()]
    except FileNotFoundError:
        return []


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A real daemon with the workspace `ws`, not started."""
    with tempfile.TemporaryDirectory(prefix="craftd-", dir="/tmp") as folder:
        daemon = Daemon(Path(folder))
        root = daemon.base / "ws"
        root.mkdir()
        (root / "config.json").write_text('{"id": "ws_00000001", "name": "Notes", "slug": "notes"}')
        daemon.register(ws=root)
        yield daemon
        daemon.end()
