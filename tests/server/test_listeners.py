from __future__ import annotations

import asyncio
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from craftd.protocol.framing import MAX_BODY, encode
from craftd.protocol.rendezvous import Untrusted, peer
from craftd.server import streams
from craftd.server.connection import Connection
from craftd.server.listeners import listen
from craftd.server.stdio import serve_stdio
from craftd.server.streams import hung_up
from tests.server.toys import Toys
from tests.wire import Wire

INITIALIZE = encode(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}')
ECHO = encode(b'{"jsonrpc":"2.0","id":2,"method":"toys/echo","params":{}}')


async def test_only_its_owner_can_reach_the_socket(toys: Toys) -> None:
    assert stat.S_IMODE(toys.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(toys.path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in toys.path.parent.iterdir()] == ["sock"]


async def test_a_folder_that_others_may_enter_is_no_place_for_a_socket(toys: Toys, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    for path in (tmp_path / "open" / "sock", tmp_path / "open" / "inner" / "sock"):
        with pytest.raises(Untrusted):
            await listen(path, toys.dispatcher)
        assert not path.exists()


async def test_a_folder_behind_a_link_is_no_place_for_a_socket(toys: Toys, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "run")
    with pytest.raises(Untrusted):
        await listen(tmp_path / "link" / "other", toys.dispatcher)


async def test_a_dead_socket_of_the_same_name_is_replaced(toys: Toys, tmp_path: Path) -> None:
    path = tmp_path / "run" / "again"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    server = await listen(path, toys.dispatcher)
    wire = await Wire.connect(path)
    assert await wire.call("daemon/hello") == {"pid": 1}
    await wire.close()
    server.close()


async def test_another_user_is_turned_away(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "peer", lambda connected: os.geteuid() + 1)
    wire = await Wire.connect(toys.path)
    await wire.closed()
    assert wire.received == [{"closed": True}]
    assert toys.dispatcher.connections == {}


def test_the_kernel_tells_who_is_at_the_other_end() -> None:
    one, two = socket.socketpair()
    with one, two:
        assert peer(one) == os.geteuid()
        assert not hung_up(one)
        two.shutdown(socket.SHUT_WR)
        assert not hung_up(one)
        two.close()
        assert hung_up(one)


@pytest.mark.parametrize(
    ("stream", "code", "data"),
    [
        (b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1), "TooLarge", {"limit": MAX_BODY, "actual": MAX_BODY + 1}),
        (b"Content-Length: x\r\n\r\n", "InvalidRequest", {}),
        (b"nonsense\r\n\r\n", "InvalidRequest", {}),
        (b"x" * 5000, "InvalidRequest", {}),
    ],
)
async def test_a_stream_that_cannot_be_followed_is_closed_with_the_reason(
    toys: Toys, wire: Wire, stream: bytes, code: str, data: dict[str, Any]
) -> None:
    before = wire.ask("toys/create", {"value": {}})
    wire.raw(stream)
    wire.raw(ECHO)
    await wire.closed()
    refused = [message for message in wire.received if message.get("id", 0) is None]
    assert [message["error"]["data"] for message in refused] == [{"code": code, "retryable": False, **data}]
    assert (await wire.answer(before))["revision"] == 1
    assert 2 not in wire.order[3:]


async def test_a_client_that_still_sends_a_huge_message_can_read_why_it_is_closed(toys: Toys, wire: Wire) -> None:
    wire.raw(b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1))
    for _ in range(64):
        wire.raw(b"x" * (256 << 10))
    await wire.closed()
    assert wire.received[-2]["error"]["code"] == 1009


async def test_the_largest_message_is_served(wire: Wire) -> None:
    value = "x" * (MAX_BODY - 200)
    assert len((await wire.call("toys/echo", {"value": value}))["value"]) == len(value)


async def test_a_web_page_cannot_call_anything(toys: Toys) -> None:
    reader, writer = await asyncio.open_unix_connection(str(toys.path))
    writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(INITIALIZE) + INITIALIZE)
    answer = await asyncio.wait_for(reader.read(), 10)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"jsonrpc" not in answer
    assert toys.core.wishes == []
    writer.close()


async def test_the_129th_client_is_told_and_closed(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    toys.dispatcher.max_connections = 3
    clients = [await toys.client() for _ in range(3)]
    refused = await Wire.connect(toys.path)
    refused.raw(INITIALIZE)
    await refused.closed()
    assert [message.get("error", {}).get("code") for message in refused.received] == [1010, None]
    await clients[0].close()
    while len(toys.dispatcher.connections) == 3:
        await clients[1].call("toys/echo")
    assert await (await toys.client()).call("toys/echo") == {"value": None}


async def test_a_flood_of_one_client_leaves_the_others_their_turns(
    toys: Toys, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await toys.client()
    turns: list[str] = []
    taken = Connection.receive

    def noting(connection: Connection, body: bytes) -> None:
        turns.append(connection.id)
        taken(connection, body)

    monkeypatch.setattr(Connection, "receive", noting)
    wire.raw(ECHO.replace(b'"id":2', b'"id":3') * 2000)
    other.raw(ECHO)
    await other.answer(2)
    assert turns.index("c-2") < 1000
    await wire.wait(lambda m: len(wire.received) >= 2001)


async def test_the_daemon_ends_its_connections_after_their_last_answers(toys: Toys, wire: Wire) -> None:
    change = wire.ask("toys/slowly", {"gate": "g"})
    idle = await toys.client()
    await toys.core.shelves["a"].log.reached("begin g")
    closing = asyncio.create_task(toys.dispatcher.close(10))
    await idle.closed()
    assert not closing.done()
    toys.core.gate("g").set()
    await wire.closed()
    assert (await wire.answer(change))["revision"] == 1
    await closing


async def test_the_daemon_does_not_wait_for_ever(toys: Toys, wire: Wire) -> None:
    wire.ask("toys/slowly", {"gate": "g"})
    await toys.core.shelves["a"].log.reached("begin g")
    await toys.dispatcher.close(0.05)
    await wire.closed()
    toys.core.gate("g").set()
    await toys.core.shelves["a"].log.reached("end g")


# stdin and stdout


class Pipes:
    """The far ends of a process's stdin and stdout."""

    def __init__(self, toys: Toys) -> None:
        self.stdin, self.to = os.pipe()
        self.from_, self.stdout = os.pipe()
        os.set_inheritable(self.to, False)
        self.serving = asyncio.create_task(serve_stdio(toys.dispatcher, self.stdin, self.stdout))

    async def read(self) -> bytes:
        """Everything until the other end closes."""
        parts = []
        while part := await asyncio.to_thread(os.read, self.from_, 65_536):
            parts.append(part)
        return b"".join(parts)

    async def served(self) -> None:
        await asyncio.wait_for(self.serving, 10)
        os.close(self.stdout)

    def close(self) -> None:
        for end in (self.stdin, self.from_):
            os.close(end)


async def test_stdin_is_served_until_its_end_and_everything_is_answered(toys: Toys) -> None:
    pipes = Pipes(toys)
    reading = asyncio.create_task(pipes.read())
    big = encode(b'{"jsonrpc":"2.0","id":3,"method":"toys/echo","params":{"value":"%b"}}' % (b"x" * 500_000))
    await asyncio.to_thread(os.write, pipes.to, INITIALIZE + ECHO + big)
    os.close(pipes.to)
    await pipes.served()
    output = await reading
    assert output.count(b"Content-Length") == 3
    assert output.endswith(b"x" * 1000 + b'"}}')
    assert toys.core.left == ["c-1"]
    pipes.close()


async def test_a_reader_of_stdout_that_stops_blocks_nobody(toys: Toys, wire: Wire) -> None:
    pipes = Pipes(toys)
    echo = encode(b'{"jsonrpc":"2.0","id":%d,"method":"toys/echo","params":{"value":"%b"}}' % (9, b"x" * 30_000))
    await asyncio.to_thread(os.write, pipes.to, INITIALIZE)
    for number in range(3, 43):
        await asyncio.to_thread(os.write, pipes.to, echo.replace(b'"id":9', b'"id":%d' % (number % 10)))
    assert await wire.call("toys/echo") == {"value": None}
    os.close(pipes.to)
    reading = asyncio.create_task(pipes.read())
    await pipes.served()
    assert (await reading).count(b"Content-Length") == 41
    pipes.close()


async def test_a_closed_stdout_ends_the_connection_and_its_changes_are_carried_out(toys: Toys) -> None:
    pipes = Pipes(toys)
    change = encode(b'{"jsonrpc":"2.0","id":4,"method":"toys/create","params":{"id":"x","value":{}}}')
    os.close(pipes.from_)
    await asyncio.to_thread(os.write, pipes.to, INITIALIZE + change)
    await toys.core.shelves["a"].log.reached("create x")
    await pipes.served()
    os.close(pipes.to)
    os.close(pipes.stdin)
    assert toys.dispatcher.connections == {}


async def test_a_broken_frame_on_stdin_ends_it_with_the_reason(toys: Toys) -> None:
    pipes = Pipes(toys)
    await asyncio.to_thread(os.write, pipes.to, INITIALIZE + b"Content-Length: x\r\n\r\n")
    await pipes.served()
    assert b'"code":"InvalidRequest"' in await pipes.read()
    os.close(pipes.to)
    pipes.close()
