from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any

import pytest

from craftd.client import wire
from craftd.protocol.rendezvous import Places
from tests.client.conftest import FAKE, starts

Behave = Callable[..., None]


class Editor:
    """Starts a bridge and speaks to it, as an editor does."""

    def __init__(self, *arguments: str) -> None:
        script = f"import sys; from craftd.client import launch, bridge; launch.COMMAND = ({str(FAKE)!r},)"
        script += "; sys.exit(bridge.main(sys.argv[1:], lambda config: 1))"
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0
        )
        self.stdin = _present(self.process.stdin)
        self.stdout = _present(self.process.stdout)
        self.stderr = _present(self.process.stderr)
        self.incoming = wire.Incoming(lambda size: os.read(self.stdout.fileno(), size))

    def send(self, method: str, id: int | None = None, **params: Any) -> None:
        members: dict[str, Any] = {"method": method, "params": params}
        self.stdin.write(wire.frame(members if id is None else {**members, "id": id}))

    def ask(self, method: str, **params: Any) -> wire.Message:
        self.send(method, 1, **params)
        while (message := self.incoming.next()) is not None:
            if message.get("id") == 1:
                return message
        raise EOFError(self.stderr.read().decode())

    def end(self) -> int:
        return self.process.wait(10)


def _present(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


@pytest.fixture
def open_editor(places: Places, fake: Behave) -> Iterator[Callable[..., Editor]]:
    editors: list[Editor] = []

    def open_one(*arguments: str) -> Editor:
        editors.append(Editor(*arguments))
        return editors[-1]

    yield open_one
    for editor in editors:
        editor.process.kill()
        editor.process.wait()
        for stream in (editor.stdin, editor.stdout, editor.stderr):
            stream.close()


def test_an_editor_talks_to_a_daemon_that_was_not_there(places: Places, open_editor: Callable[..., Editor]) -> None:
    editor = open_editor()
    assert editor.ask("initialize")["result"]["serverInfo"]["pid"] == starts(places)[0]
    assert editor.ask("echo", text="\ud800 é 12345678901234567890 \u0000")["result"] == {
        "text": "\ud800 é 12345678901234567890 \u0000"
    }


def test_two_editors_share_one_daemon_that_stays_when_they_end(
    places: Places, open_editor: Callable[..., Editor]
) -> None:
    first, second = open_editor("--stdio", "--clientProcessId=4711"), open_editor()
    pids = {editor.ask("initialize")["result"]["serverInfo"]["pid"] for editor in (first, second)}
    first.send("exit")
    assert first.end() == 0
    assert second.ask("echo", n=1)["result"] == {"n": 1}
    second.stdin.close()
    assert second.end() == 0
    assert pids == set(starts(places))
    os.kill(pids.pop(), 0)


def test_what_the_daemon_still_has_to_say_is_said_after_the_end_of_input(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor()
    editor.send("flood", 7, count=2000)  # two megabytes: more than any pipe on the way holds
    editor.stdin.close()
    numbers = []
    while (message := editor.incoming.next()) is not None:
        if "id" not in message:
            numbers.append(message["params"]["number"])
        else:
            assert message["id"] == 7
    assert numbers == list(range(2000))
    assert editor.end() == 0


def test_large_messages_pass_in_both_directions_at_once(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor()
    text = "x" * 3_000_000
    assert editor.ask("echo", text=text)["result"] == {"text": text}


def test_the_bridge_ends_when_the_daemon_is_killed(places: Places, open_editor: Callable[..., Editor]) -> None:
    editor = open_editor()
    editor.ask("initialize")
    os.kill(starts(places)[0], signal.SIGKILL)
    assert editor.incoming.next() is None
    editor.end()


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_bridge_and_not_the_daemon(
    places: Places, open_editor: Callable[..., Editor], signal_number: signal.Signals
) -> None:
    editor, other = open_editor(), open_editor()
    editor.ask("initialize")
    other.ask("initialize")
    editor.process.send_signal(signal_number)
    assert editor.end() != 0
    assert b"Traceback" not in editor.stderr.read()
    assert other.ask("echo", n=1)["result"] == {"n": 1}


def test_a_bridge_whose_editor_stops_reading_ends(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor()
    editor.ask("initialize")
    editor.stdout.close()
    editor.send("flood", 1, count=100)
    assert editor.end() == 1
    assert editor.stderr.read() == b""


def test_a_mismatch_is_the_answer_to_the_editors_initialize(fake: Behave, open_editor: Callable[..., Editor]) -> None:
    fake(hello={"protocol": "2.0", "version": "7.0"})
    editor = open_editor()
    editor.send("initialize", 1)
    shown, answer = editor.incoming.next(), editor.incoming.next()
    assert shown is not None
    assert answer is not None
    assert shown["method"] == "window/showMessage"
    assert "protocol 2.0" in shown["params"]["message"]
    assert answer["id"] == 1
    assert answer["error"]["data"] == {"code": "Unsupported", "retryable": False, "feature": "protocol"}
    assert editor.ask("shutdown")["error"]["code"] == 1011
    editor.send("exit")
    assert editor.end() == 1
    assert editor.stderr.read().startswith(b"craftd: Unsupported (1011): the running daemon is version 7.0")


def test_a_daemon_that_cannot_start_is_the_answer_too(fake: Behave, open_editor: Callable[..., Editor]) -> None:
    fake(fail=1)
    editor = open_editor()
    error = editor.ask("initialize")["error"]
    assert (error["code"], error["data"]["code"]) == (1014, "Unavailable")
    assert "the disk is made of cheese" in error["message"]
    editor.stdin.close()
    assert editor.end() == 1


def test_an_unknown_argument_is_refused_by_name(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor("--port=1")
    assert editor.end() == 2
    assert b"--port=1" in editor.stderr.read()


def test_what_an_editor_starts_imports_nothing_heavy() -> None:
    """Each of these costs an editor more than everything the bridge does (measured: 5 ms for typing to 500 ms)."""
    script = "import sys, craftd.cli.main; from craftd.client import bridge; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    heavy = {"asyncio", "argparse", "attr", "click", "hashlib", "lsprotocol", "logging", "orjson", "pygls", "selectors",
             "socket", "subprocess", "tempfile", "typing"}  # fmt: skip
    assert not heavy & set(loaded)
