from __future__ import annotations

import contextlib
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

FAKE = Path(__file__).with_name("fake_daemon.py")


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """An empty configuration folder, below a short name because a socket will lie in it; its daemons are ended."""
    with tempfile.TemporaryDirectory(prefix="craftd-") as folder:
        monkeypatch.setenv("CRAFT_CONFIG_DIR", folder)
        places = rendezvous.find()
        yield places
        for pid in starts(places):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


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
