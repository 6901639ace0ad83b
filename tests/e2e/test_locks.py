"""Who may write, and how a daemon ends, on real processes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.protocol.rendezvous import LOCK_LOST
from tests.daemon import CRAFTD, Daemon, snapshot
from tests.e2e.places import CASES, WORKSPACE, set_up, start_impatient
from tests.wire import PATIENCE, Failed, Wire
from tests.workspace.house import line, message, until

Connect = Callable[..., Awaitable[Wire]]

SESSION = "260102-tidy-heron"


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    """Not started; there is one session."""
    daemon = make_daemon()
    path = set_up(daemon) / "sessions" / SESSION / "session.jsonl"
    path.parent.mkdir(parents=True)
    header = {"id": SESSION, "createdAt": 1, "name": "Old", "messageCount": 60}
    path.write_bytes(b"".join(map(line, [header, *(message(f"m{number}") for number in range(60))])))
    yield daemon
    daemon.end()


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A living program that is not craftd."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def app_lock(daemon: Daemon) -> Path:
    return daemon.config / ".server.lock"


def holds(daemon: Daemon) -> Any:
    """pid in the app's lock file, None without one."""
    try:
        return json.loads(app_lock(daemon).read_bytes())["pid"]
    except FileNotFoundError:
        return None


def take(daemon: Daemon, pid: int, started_at: int | None = None) -> None:
    content = {"pid": pid, "startedAt": time.time_ns() // 1_000_000 if started_at is None else started_at}
    app_lock(daemon).write_text(json.dumps(content))


def counted(daemon: Daemon) -> int:
    """What line 1 on disk says."""
    path = daemon.base / "ws" / "sessions" / SESSION / "session.jsonl"
    return int(json.loads(path.read_bytes().split(b"\n")[0])["messageCount"])


def state(daemon: Daemon) -> list[Any]:
    """Everything that must not change while somebody else may write."""
    config = {k: v for k, v in snapshot(daemon.config).items() if k.split("/")[0] != "craftd"}
    return [config, snapshot(daemon.base / "ws")]


async def append(client: Wire, id: str = "mine") -> Any:
    one = {"id": id, "type": "user", "content": "x", "timestamp": 1772323200000}
    return await client.call("messages/append", {"workspace": WORKSPACE, "session": SESSION, "messages": [one]})


def craftd(daemon: Daemon, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*CRAFTD, *arguments], env=daemon.environment, capture_output=True, timeout=PATIENCE, check=False
    )


async def subscribed(daemon: Daemon, connect: Connect) -> Wire:
    client = await connect(daemon, WORKSPACE)
    await client.call("events/subscribe", {"workspace": WORKSPACE})
    return client


async def test_a_second_daemon_ends_and_says_why(daemon: Daemon) -> None:
    daemon.start()
    assert daemon.process is not None
    for arguments, code in (((), 1), (("--auto",), LOCK_LOST)):
        second = craftd(daemon, "serve", *arguments)
        assert second.returncode == code
        if arguments:
            assert second.stdout + second.stderr == b""
        else:
            assert str(daemon.process.pid).encode() in second.stderr
            assert daemon.places.lock.encode() in second.stderr


@pytest.mark.parametrize("case", ["a_dead_pid", "b_live_pid_before_boot", "c_legacy_plain_dead", "d_own_pid", "text"])
async def test_o11_a_stale_lock_of_the_app_stops_nothing(
    daemon: Daemon, connect: Connect, stranger: subprocess.Popen[bytes], case: str
) -> None:
    if case != "text":
        text = (CASES / "O11" / case / ".server.lock").read_text()
        app_lock(daemon).write_text(text.replace('"@PID_OF_A_SLEEP@"', str(stranger.pid)))
    else:
        app_lock(daemon).write_text("no JSON")
    daemon.start()
    assert daemon.process is not None
    if case == "d_own_pid":  # as in a container, where a new process has the old one's number
        app_lock(daemon).write_text(json.dumps({"pid": daemon.process.pid, "startedAt": 1767225600000}))
    before = app_lock(daemon).read_bytes()
    client = await connect(daemon, WORKSPACE)
    assert (await client.call("daemon/status"))["readOnly"] is False
    assert app_lock(daemon).read_bytes() == before
    begin = time.time_ns() // 1_000_000
    await append(client)
    taken = json.loads(app_lock(daemon).read_bytes())
    assert taken["pid"] == daemon.process.pid
    assert taken["startedAt"] >= begin
    assert daemon.stop() == 0
    assert not app_lock(daemon).exists()


async def test_while_the_app_runs_the_daemon_reads_and_says_so(
    daemon: Daemon, connect: Connect, stranger: subprocess.Popen[bytes]
) -> None:
    start_impatient(daemon, home__LOOK_EVERY_READ_ONLY=0.05)
    client = await subscribed(daemon, connect)
    await append(client)
    assert daemon.process is not None
    assert holds(daemon) == daemon.process.pid

    take(daemon, stranger.pid)
    told = await client.notified("daemon/didChange")
    assert told == {"readOnly": True, "holder": {"pid": stranger.pid, "name": "sleep"}}
    before = state(daemon)
    changes = {
        "messages/append": {"session": SESSION, "messages": [{"type": "user", "content": "x"}]},
        "sessions/update": {"id": SESSION, "patch": {"set": {"name": "New"}}},
        "sessions/create": {"value": {"name": "New"}},
        "sessions/delete": {"id": SESSION},
        "labels/create": {"value": {"name": "New"}},
    }
    for method, params in changes.items():
        with pytest.raises(Failed) as failed:
            await client.call(method, {"workspace": WORKSPACE, **params})
        assert failed.value.name == "ReadOnly"
        assert failed.value.error["data"]["holder"] == {"pid": stranger.pid, "name": "sleep"}
    assert (await client.call("messages/list", {"workspace": WORKSPACE, "session": SESSION}))["total"] == 61
    another = await connect(daemon, WORKSPACE)
    opened = await another.call("daemon/status")
    assert (opened["readOnly"], opened["holder"]["pid"], opened["holdsAppLock"]) == (True, stranger.pid, False)
    await client.call("daemon/release")
    assert state(daemon) == before

    stranger.kill()
    stranger.wait()
    assert await client.notified("daemon/didChange", 2) == {"readOnly": False}
    await append(client, "after")
    assert holds(daemon) == daemon.process.pid


async def test_a_daemon_that_stops_while_the_app_runs_writes_nothing(
    daemon: Daemon, connect: Connect, stranger: subprocess.Popen[bytes]
) -> None:
    daemon.start()
    client = await subscribed(daemon, connect)
    await append(client)
    take(daemon, stranger.pid)
    await client.notified("daemon/didChange")
    before = state(daemon)
    assert daemon.stop() == 0
    assert state(daemon) == before
    stranger.kill()
    stranger.wait()
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    item = (await client.call("sessions/get", {"workspace": WORKSPACE, "id": SESSION}))["item"]
    assert item["value"]["messageCount"] == 61


async def test_release_folds_and_gives_the_lock_back(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    assert holds(daemon) is None
    await append(client)
    assert (holds(daemon) is None, counted(daemon)) == (False, 60)
    assert craftd(daemon, "release").returncode == 0
    assert (holds(daemon), counted(daemon)) == (None, 61)
    await append(client, "another")
    assert holds(daemon) is not None


async def test_the_lock_is_given_back_after_a_while_without_changes(daemon: Daemon, connect: Connect) -> None:
    start_impatient(daemon, core__GIVE_BACK_SECONDS=0.3, core__HOUSE_SECONDS=0.05)
    client = await connect(daemon, WORKSPACE)
    await append(client)
    await until(lambda: holds(daemon) is None)
    assert counted(daemon) == 61


async def test_the_lock_is_given_back_soon_after_the_last_client_has_left(daemon: Daemon, connect: Connect) -> None:
    start_impatient(daemon, core__GIVE_BACK_ALONE_SECONDS=0.3, core__HOUSE_SECONDS=0.05)
    client = await connect(daemon, WORKSPACE)
    other = await connect(daemon, WORKSPACE)
    await append(client)
    await client.close()
    await other.call("daemon/status")
    assert holds(daemon) is not None
    await other.close()
    await until(lambda: holds(daemon) is None)
    assert counted(daemon) == 61


def serve_exclusively(daemon: Daemon) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*CRAFTD, "serve", "--exclusive"], env=daemon.environment, stderr=subprocess.DEVNULL)


async def test_an_exclusive_daemon_keeps_the_lock_for_life(daemon: Daemon) -> None:
    process = serve_exclusively(daemon)
    await until(lambda: holds(daemon) == process.pid)
    assert craftd(daemon, "release").returncode == 0
    assert holds(daemon) == process.pid
    process.terminate()
    assert process.wait(PATIENCE) == 0
    assert holds(daemon) is None


async def test_two_configurations_share_a_folder_with_one_writer(
    daemon: Daemon, make_daemon: Callable[..., Daemon], connect: Connect
) -> None:
    root = daemon.base / "ws"
    other = make_daemon()
    other.register(shared=root)
    daemon.start()
    start_impatient(other, house_every=0.05)
    writer = await connect(daemon, WORKSPACE)
    reader = await connect(other)
    welcome = await reader.call("events/subscribe", {"workspace": "shared"})
    assert welcome["replay"] == "none"
    [status] = (await reader.call("daemon/status"))["workspaces"]
    assert daemon.process is not None
    assert (status["readOnly"], status["holder"]["pid"]) == (True, daemon.process.pid)
    before = snapshot(root)
    for method, params in {
        "sessions/update": {"workspace": "shared", "id": SESSION, "patch": {"set": {"name": "New"}}},
        "workspaces/update": {"id": "shared", "patch": {"set": {"name": "New"}}},
    }.items():
        with pytest.raises(Failed) as failed:
            await reader.call(method, params)
        assert (failed.value.name, failed.value.error["data"]["holder"]["pid"]) == ("ReadOnly", daemon.process.pid)
    assert snapshot(root) == before
    await append(writer)
    assert (await reader.notified("messages/didAppend"))["origin"] == {"kind": "disk"}

    assert daemon.stop() == 0
    told = await reader.notified("daemon/didChange")
    while told["workspaces"][0]["readOnly"]:
        told = await reader.notified("daemon/didChange", len(reader.notifications("daemon/didChange")) + 1)
    one = {"id": "theirs", "type": "user", "content": "x", "timestamp": 1}
    await reader.call("messages/append", {"workspace": "shared", "session": SESSION, "messages": [one]})
    other.end()


async def test_a_killed_daemon_leaves_nothing_that_stops_the_next(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    await append(client)
    daemon.kill()
    assert holds(daemon) is not None
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    item = (await client.call("sessions/get", {"workspace": WORKSPACE, "id": SESSION}))["item"]
    assert item["value"]["messageCount"] == 61
    await append(client, "after")
    assert daemon.process is not None
    assert holds(daemon) == daemon.process.pid


async def test_a_daemon_that_stops_folds_and_tells_its_clients(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    client = await subscribed(daemon, connect)
    await append(client)
    assert counted(daemon) == 60
    assert daemon.process is not None
    daemon.process.terminate()
    assert await client.notified("daemon/willStop") == {"reason": "stop", "graceMs": 5000}
    await client.closed()
    assert daemon._gone() == 0
    assert (counted(daemon), holds(daemon)) == (61, None)
    assert not Path(daemon.places.card).exists()


async def test_what_was_sent_before_the_stop_is_carried_out_and_answered(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    asked = {}
    for number in range(50):
        one = {"id": f"last-{number}", "type": "user", "content": "x", "timestamp": 1}
        params = {"workspace": WORKSPACE, "session": SESSION, "messages": [one]}
        asked[f"last-{number}"] = client.ask("messages/append", params)
    stop = client.ask("daemon/stop", {"reason": "stop"})
    await client.answer(stop)
    await client.closed()
    answers = await asyncio.gather(*map(client.answer, asked.values()), return_exceptions=True)
    assert {error.name for error in answers if isinstance(error, Failed)} <= {"ServerCancelled"}
    answered = {id for id, answer in zip(asked, answers, strict=True) if not isinstance(answer, BaseException)}
    daemon._gone()
    data = (daemon.base / "ws" / "sessions" / SESSION / "session.jsonl").read_bytes()
    there = {record["id"] for record in map(json.loads, data.splitlines()[1:])} - {f"m{n}" for n in range(60)}
    assert there == answered
    assert counted(daemon) == 60 + len(answered)


async def test_an_idle_daemon_that_a_client_had_started_ends(daemon: Daemon, connect: Connect) -> None:
    start_impatient(daemon, auto=True, core__IDLE_SECONDS=0.5, core__HOUSE_SECONDS=0.05)
    client = await subscribed(daemon, connect)
    await append(client)
    process = daemon.process
    assert process is not None
    assert process.poll() is None
    await client.close()
    assert process.wait(PATIENCE) == 0
    daemon.process = None
    assert (counted(daemon), holds(daemon)) == (61, None)


async def test_a_daemon_with_a_client_or_started_by_hand_does_not_end(daemon: Daemon, connect: Connect) -> None:
    start_impatient(daemon, core__IDLE_SECONDS=0.1, core__HOUSE_SECONDS=0.02)
    client = await connect(daemon, WORKSPACE)
    await client.close()
    client = await connect(daemon, WORKSPACE)
    await append(client)
    assert daemon.stop() == 0
    start_impatient(daemon, auto=True, core__IDLE_SECONDS=0.3, core__HOUSE_SECONDS=0.02)
    client = await connect(daemon, WORKSPACE)
    deadline = time.monotonic() + 0.6
    while time.monotonic() < deadline:
        await client.call("daemon/status")
    os.kill(daemon.process.pid, 0)  # type: ignore[union-attr]
