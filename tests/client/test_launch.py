from __future__ import annotations

import fcntl
import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from craftd.client import launch
from craftd.client.launch import Link, Mismatch, NotReached, Silent
from craftd.protocol.rendezvous import LOCK_LOST, PROTOCOL, VERSION, Card, Places
from tests.client.conftest import starts

Behave = Callable[..., None]


@pytest.fixture
def connect(places: Places) -> Iterator[Callable[[], Link]]:
    links: list[Link] = []

    def dial() -> Link:
        links.append(launch.connect(places, "a test"))
        return links[-1]

    yield dial
    for link in links:
        link.close()


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_nobody_is_greeted_where_no_daemon_runs(places: Places) -> None:
    assert launch.greet(places, "a test") is None
    assert not Path(places.folder).exists()


def test_a_daemon_is_started_once_and_found_from_then_on(
    places: Places, fake: Behave, connect: Callable[[], Link]
) -> None:
    first, second = connect(), connect()
    assert [first.hello["pid"]] == [second.hello["pid"]] == starts(places)
    assert (first.hello["version"], first.hello["protocol"]) == (VERSION, PROTOCOL)
    asked = second.hello["asked"]
    assert asked == {
        "client": "a test",
        "version": VERSION,
        "protocol": PROTOCOL,
        "configDir": places.config,
        "pid": os.getpid(),
    }


def test_a_started_daemon_is_alone_in_its_session_and_keeps_few_variables(
    places: Places, fake: Behave, connect: Callable[[], Link], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "secret")
    monkeypatch.setenv("https_proxy", "http://proxy")
    monkeypatch.setenv("CRAFT_DEBUG", "1")
    monkeypatch.setenv("CRAFT_CONFIG_DIR", os.path.relpath(places.config))
    link = connect()
    seen = link.ask("initialize")["result"]["capabilities"]["experimental"]["craft"]
    assert seen["session"] == link.hello["pid"]
    assert "MY_API_KEY" not in seen["environ"]
    assert seen["environ"]["https_proxy"] == "http://proxy"
    assert seen["environ"]["CRAFT_DEBUG"] == "1"
    assert seen["environ"]["CRAFT_CONFIG_DIR"] == places.config
    assert {"HOME", "PATH"} <= seen["environ"].keys()


def test_log_and_folder_are_for_our_eyes_only(places: Places, fake: Behave, connect: Callable[[], Link]) -> None:
    connect()
    assert stat.S_IMODE(os.stat(places.folder).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(places.log).st_mode) == 0o600


@pytest.mark.parametrize("crashed", [False, True])
def test_twelve_at_once_end_with_one_daemon(
    places: Places, fake: Behave, connect: Callable[[], Link], crashed: bool
) -> None:
    if crashed:
        kill(connect().hello["pid"])
        assert Path(places.card).exists()
    before = len(starts(places))
    ready = threading.Barrier(12)

    def together(_: int) -> int:
        ready.wait()
        return int(connect().hello["pid"])

    with ThreadPoolExecutor(12) as pool:
        pids = list(pool.map(together, range(12)))
    assert len(set(pids)) == 1
    assert starts(places)[before:] == pids[:1]


def test_a_lock_that_is_still_held_by_a_daemon_that_ends_is_waited_for(
    places: Places, fake: Behave, connect: Callable[[], Link]
) -> None:
    fake(lateLock=0.7)
    old = connect()
    old.ask("daemon/stop")
    assert old.wait_for_end()
    fake()
    assert connect().hello["pid"] != old.hello["pid"]
    assert len(starts(places)) == 2


def test_a_daemon_that_cannot_start_is_reported_with_its_last_word(places: Places, fake: Behave) -> None:
    fake(fail=1)
    Path(places.folder).mkdir()
    Path(places.log).write_text("an old line\n")
    with pytest.raises(NotReached, match=r"exit 1.*the disk is made of cheese"):
        launch.connect(places, "a test")


def test_a_lock_held_for_good_by_somebody_silent_ends_in_an_error(
    places: Places, fake: Behave, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "PATIENCE", 1.0)
    Path(places.folder).mkdir()
    with open(places.lock, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(NotReached, match="no daemon answered within 1 s"):
            launch.connect(places, "a test")
    assert starts(places) == []


def test_a_daemon_that_does_not_answer_is_reported_and_left_alone(
    places: Places, fake: Behave, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(silent=True)
    monkeypatch.setattr(launch, "PATIENCE", 1.0)
    with pytest.raises(Silent, match="does not answer"):
        launch.connect(places, "a test")
    assert len(starts(places)) == 1


def test_a_configuration_that_cannot_be_made_is_reported(fake: Behave, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotReached, match="cannot be started"):
        launch.connect(Places(str(tmp_path / "file")), "a test")


def test_an_old_daemon_without_clients_is_replaced(places: Places, fake: Behave, connect: Callable[[], Link]) -> None:
    fake(hello={"version": "0.0.9", "clients": 0})
    old = start_only(places)
    fake()
    assert connect().hello["pid"] != old


def test_an_old_daemon_with_clients_is_used_if_it_speaks_our_major(
    places: Places, fake: Behave, connect: Callable[[], Link]
) -> None:
    fake(hello={"version": "0.0.9", "protocol": "1.7", "clients": 2})
    old = start_only(places)
    fake()
    assert connect().hello["pid"] == old


def test_an_old_daemon_that_got_a_client_in_between_is_used(
    places: Places, fake: Behave, connect: Callable[[], Link]
) -> None:
    fake(hello={"version": "0.0.9", "clients": 0}, refuseStop=True)
    old = start_only(places)
    fake()
    assert connect().hello["pid"] == old


@pytest.mark.parametrize("hello", [{"protocol": "2.0"}, {"version": "0.0.9", "protocol": "0.9", "clients": 1}])
def test_a_daemon_of_another_major_in_use_is_a_mismatch(places: Places, fake: Behave, hello: dict[str, object]) -> None:
    fake(hello=hello)
    pid = start_only(places)
    with pytest.raises(Mismatch, match="craftd restart"):
        launch.connect(places, "a test")
    os.kill(pid, 0)


def test_a_daemon_of_another_configuration_is_a_mismatch(places: Places, fake: Behave) -> None:
    fake(hello={"configDir": "/somewhere/else"})
    start_only(places)
    with pytest.raises(Mismatch, match="/somewhere/else"):
        launch.connect(places, "a test")


def test_a_listener_of_another_user_is_not_spoken_to(
    places: Places, fake: Behave, connect: Callable[[], Link], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect()
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.raises(Mismatch, match=f"belongs to user {me}"):
        launch.greet(places, "a test")


def test_a_card_that_names_no_socket_leads_to_a_start(
    places: Places, fake: Behave, connect: Callable[[], Link]
) -> None:
    Path(places.folder).mkdir()
    Path(places.card).write_bytes(Card(1, places.folder + "/gone").as_json())
    assert connect().hello["pid"] == starts(places)[0]


def test_losing_has_the_exit_code_that_sysexits_calls_try_again() -> None:
    assert os.EX_TEMPFAIL == LOCK_LOST


def start_only(places: Places) -> int:
    """Start the fake as a daemon that no link has judged yet; its pid."""
    pid = launch.start(places)
    while (link := launch.greet(places, "a test")) is None:
        time.sleep(0.01)
    link.close()
    return pid
