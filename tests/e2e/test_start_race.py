from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.client import launch, wire
from craftd.protocol import rendezvous
from craftd.protocol.rendezvous import Places
from tests.client.conftest import end_all_of

BRIDGES = 12


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """A configuration folder and a runtime folder that nobody has used; the daemon of it is ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="craftd-") as folder:
        os.mkdir(f"{folder}/run", 0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", f"{folder}/run")
        monkeypatch.setenv("CRAFT_CONFIG_DIR", f"{folder}/config")
        places = rendezvous.find()
        yield places
        end_all_of(places.config)
        _wait_until_unlocked(places)


class Bridge:
    """One `craftd stdio`, as an editor starts it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "craftd", "stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        output = self.process.stdout.fileno()
        self.stdin = self.process.stdin
        self.incoming = wire.Incoming(lambda size: os.read(output, size))

    def send(self, method: str, id: int, **params: Any) -> None:
        self.stdin.write(wire.frame({"id": id, "method": method, "params": params}))

    def answer(self, id: int) -> wire.Message:
        while (message := self.incoming.next()) is not None:
            if message.get("id") == id:
                return message
        assert self.process.stderr is not None
        raise EOFError(self.process.stderr.read().decode())

    def close(self) -> None:
        self.process.kill()
        if not self.stdin.closed:
            self.stdin.close()
        self.process.wait()


@pytest.fixture
def race() -> Iterator[list[Bridge]]:
    bridges: list[Bridge] = []
    yield bridges
    for bridge in bridges:
        bridge.close()


def run(race: list[Bridge], count: int = BRIDGES) -> set[int]:
    """Start *count* bridges at once and initialize each; the process ids of the daemons that answered."""
    bridges = [Bridge() for _ in range(count)]
    race += bridges
    for bridge in bridges:
        bridge.send("initialize", 1, processId=None, rootUri=None, capabilities={})
    answers = [bridge.answer(1)["result"] for bridge in bridges]
    return {answer["capabilities"]["experimental"]["craft"]["pid"] for answer in answers}


def clients(places: Places) -> int:
    """How many connections the daemon has, beside the one that asks."""
    link = launch.greet(places, "a test")
    assert link is not None
    link.close()
    return int(link.hello["clients"])


def _wait_until_unlocked(places: Places) -> None:
    """The lock says when a killed daemon is gone, as it does for whoever comes next."""
    import fcntl

    with open(places.lock, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def test_twelve_editors_on_a_cold_machine_share_one_daemon(places: Places, race: list[Bridge]) -> None:
    assert len(run(race)) == 1
    assert clients(places) == BRIDGES


def test_twelve_editors_after_a_crash_share_one_new_daemon(places: Places, race: list[Bridge]) -> None:
    [crashed] = run(race)
    card = Path(places.card).read_bytes()
    os.kill(crashed, signal.SIGKILL)
    for bridge in race:
        assert bridge.incoming.next() is None
        bridge.close()
    _wait_until_unlocked(places)
    assert Path(places.card).read_bytes() == card
    assert Path(json.loads(card)["socket"]).is_socket()

    [pid] = run(race)
    assert pid != crashed
    assert clients(places) == BRIDGES


def test_the_losers_of_a_race_end_silently(places: Places, race: list[Bridge]) -> None:
    [winner] = run(race, 2)
    loser = subprocess.run(
        [sys.executable, "-m", "craftd", "serve", "--auto"], check=False, capture_output=True, timeout=10
    )
    assert (loser.returncode, loser.stdout, loser.stderr) == (rendezvous.LOCK_LOST, b"", b"")
    person = subprocess.run([sys.executable, "-m", "craftd", "serve"], check=False, capture_output=True, timeout=10)
    assert person.returncode == 1
    assert str(winner).encode() in person.stderr
    assert places.lock.encode() in person.stderr


def test_an_editor_that_leaves_takes_nobody_along(places: Places, race: list[Bridge]) -> None:
    run(race, 2)
    first, second, *_ = race
    first.stdin.close()
    assert first.process.wait(10) == 0
    second.send("daemon/status", 2)
    assert "result" in second.answer(2)


def test_commands_find_the_editors_daemon_and_stop_it(places: Places, race: list[Bridge]) -> None:
    [pid] = run(race, 2)
    craftd = [sys.executable, "-m", "craftd"]
    status = subprocess.run([*craftd, "status", "--json"], check=True, capture_output=True, timeout=10)
    assert json.loads(status.stdout)["pid"] == pid
    begin = time.monotonic()
    subprocess.run([*craftd, "stop"], check=True, capture_output=True, timeout=20)
    assert time.monotonic() - begin < launch.PATIENCE / 2
    for bridge in race:
        while bridge.incoming.next() is not None:
            pass
    assert subprocess.run([*craftd, "status"], check=False, capture_output=True, timeout=10).returncode == 1
