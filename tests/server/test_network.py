"""TCP, and what all ways in over the network have in common."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from craftd.protocol.framing import encode
from craftd.server import connection as module
from craftd.server import network, streams
from craftd.server.daemon import Address, Network
from craftd.server.dispatch import MAX_TURNED_AWAY
from craftd.server.network import open_all
from tests.server.toys import Toys
from tests.wire import Failed, Wire

TLS = Path(__file__).parents[1] / "tls"
CERTIFICATE = {"tls_cert": str(TLS / "cert.pem"), "tls_key": str(TLS / "key.pem")}
KINDS = ("tcp", "ws")


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(TLS / "cert.pem"))


async def said(url: str, data: bytes, tls: ssl.SSLContext | None = None) -> bytes:
    """What comes back for raw bytes, until the end."""
    host, port = url.partition("://")[2].split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    writer.write(data)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_with_a_token_is_served(toys: Toys, kind: str) -> None:
    wire = await toys.dial(await toys.open(kind))
    welcome = await wire.initialize()
    assert welcome["rights"] == ["read", "write", "execute", "secrets", "admin"]
    assert await wire.call("toys/echo", {"value": "é\ud83d"}) == {"value": "é\ud83d"}
    assert [one.kind for one in toys.dispatcher.connections.values()] == [kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("token", [None, "", "wrong", 17, {"a": 1}])
async def test_initialize_without_a_valid_token_is_the_last_request(toys: Toys, kind: str, token: Any) -> None:
    wire = await toys.dial(await toys.open(kind), token=None)
    with pytest.raises(Failed) as failed:
        await wire.initialize({"token": token})
    assert failed.value.error["data"] == {"code": "Unauthenticated", "retryable": False}
    end = await wire.closed()
    assert end.get("code") == (4401 if kind == "ws" else None)
    assert toys.core.wishes == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["toys/echo", "toys/create", "daemon/stop", "shutdown", "toys/nothing", "toys/look"])
async def test_nothing_else_comes_before_the_token(toys: Toys, kind: str, method: str) -> None:
    wire = await toys.dial(await toys.open(kind), token=None)
    with pytest.raises(Failed) as failed:
        await wire.call(method, {})
    assert failed.value.name == "Unauthenticated"
    await wire.closed()
    assert toys.core.shelves["a"].log == []


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_sent_behind_a_wrong_token_is_answered_and_not_done(toys: Toys, kind: str) -> None:
    wire = await toys.dial(await toys.open(kind), token=None)
    wire.send("initialize", {"capabilities": {}, "initializationOptions": {"craft": {"token": "wrong"}}}, id="i")
    wire.send("toys/look", {"what": "x", "workspace": "a"})
    behind = [wire.ask("toys/create", {"workspace": "a", "value": {}}) for _ in range(20)]
    for id_ in ("i", *behind):
        with pytest.raises(Failed) as failed:
            await wire.answer(id_)
        assert failed.value.name == "Unauthenticated"
    await wire.closed()
    assert toys.core.shelves["a"].log == []


@pytest.mark.parametrize("kind", KINDS)
async def test_who_says_nothing_is_closed_after_a_while(toys: Toys, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "START_SECONDS", 0.05)
    wire = await toys.dial(await toys.open(kind))
    end = await wire.closed()
    assert wire.received[0]["error"]["data"] == {"code": "Timeout", "retryable": True}
    assert end.get("code") == (4408 if kind == "ws" else None)


async def test_who_does_not_even_shake_hands_is_closed_too(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "START_SECONDS", 0.05)
    assert await said(await toys.open("ws"), b"GET / HTTP/1.1\r\nHost: loc") == b""


async def test_who_has_begun_is_not_hurried(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "START_SECONDS", 0.05)
    url = await toys.open("tcp")
    fine = await toys.dial(url)
    await fine.initialize()
    late = await toys.dial(url)
    await late.closed()
    assert await fine.call("toys/echo") == {"value": None}


@pytest.mark.parametrize("kind", KINDS)
async def test_large_messages_are_for_those_who_have_shown_a_token(toys: Toys, kind: str) -> None:
    url = await toys.open(kind)
    value = "x" * (2 << 20)
    stranger = await toys.dial(url, token=None)
    stranger.send("initialize", {"value": value}, id=1)
    end = await stranger.closed()
    assert stranger.received[0]["error"]["data"]["code"] == "TooLarge"
    assert end.get("code") == (4413 if kind == "ws" else None)
    known = await toys.dial(url)
    await known.initialize()
    assert await known.call("toys/echo", {"value": value}) == {"value": value}


@pytest.mark.parametrize("kind", KINDS)
async def test_strangers_take_half_of_the_connections_at_most(toys: Toys, kind: str) -> None:
    toys.dispatcher.max_connections = 4
    url = await toys.open(kind)
    strangers = [await toys.dial(url, token=None) for _ in range(2)]
    third = await toys.dial(url, token=None)
    end = await third.closed()
    assert third.received[0]["error"]["data"] == {"code": "Busy", "retryable": True, "retryAfterMs": 1000}
    assert end.get("code") == (4429 if kind == "ws" else None)
    await toys.client()  # the owner still comes in
    for stranger in strangers:
        await stranger.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tls", [False, True])
async def test_plain_http_is_refused_and_runs_nothing(toys: Toys, kind: str, tls: bool) -> None:
    url = await toys.open(kind, **(CERTIFICATE if tls else {}))
    body = encode(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}')
    posts = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b"
    for request in (
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        posts % (len(body), body),
        posts % (len(body[21:]), body[21:]),
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n",
        b"GET http://localhost:80/ HTTP/1.0\r\n\r\n",
    ):
        answer = await said(url, request, trusting() if tls else None)
        assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 505 ")), answer
        assert len(answer) < 500
        assert b"jsonrpc" not in answer
    assert toys.core.wishes == []


async def test_http_on_a_port_for_tls_is_closed(toys: Toys) -> None:
    for kind in KINDS:
        url = await toys.open(kind, **CERTIFICATE)
        assert b"jsonrpc" not in await said(url, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")


async def test_a_websocket_on_the_tcp_port_is_http_there(toys: Toys) -> None:
    url = await toys.open("tcp")
    with pytest.raises(ConnectionError, match="refused with 400"):
        await toys.dial(url.replace("tcp", "ws"))
    assert toys.core.wishes == []


@pytest.mark.parametrize("kind", KINDS)
async def test_tls_carries_the_same(toys: Toys, kind: str) -> None:
    url = await toys.open(kind, **CERTIFICATE)
    assert url.startswith(f"{kind}s://")
    wire = await toys.dial(url, tls=trusting())
    await wire.initialize()
    value = "é" * 3_000_000
    assert await wire.call("toys/echo", {"value": value}) == {"value": value}
    wire.send("exit")
    await wire.closed()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_that_breaks_off_leaves_nothing_behind(toys: Toys, kind: str) -> None:
    wire = await toys.dial(await toys.open(kind))
    await wire.initialize()
    wire.ask("toys/slowly", {"gate": "g", "firm": True})
    await toys.core.shelves["a"].log.reached("begin g")
    wire.writer.transport.abort()
    toys.core.gate("g").set()
    await toys.core.shelves["a"].log.reached("end g")
    other = await toys.client()
    while len(toys.dispatcher.connections) > 1:
        await other.call("toys/echo")
    assert toys.core.left == ["c-1"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_token_that_waits_for_its_turn_waits_no_longer_than_its_client(toys: Toys, kind: str) -> None:
    url = await toys.open(kind)
    waiting, let_go = asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            let_go.set()

    toys.core.auth.sleep = sleep
    for _ in range(5):
        wrong = await toys.dial(url, token=None)
        with pytest.raises(Failed):
            await wrong.initialize({"token": "wrong"})
    sixth = await toys.dial(url, token="wrong again")
    initialize = {"capabilities": {}, "initializationOptions": {"craft": {"token": "wrong again"}}}
    sixth.send("initialize", initialize, id=1)
    await asyncio.wait_for(waiting.wait(), 10)
    assert [message for message in sixth.received if message.get("id") == 1] == []
    sixth.writer.transport.abort()
    await asyncio.wait_for(let_go.wait(), 10)


@pytest.mark.parametrize("kind", KINDS)
async def test_who_speaks_another_protocol_is_told_and_closed(toys: Toys, kind: str) -> None:
    wire = await toys.dial(await toys.open(kind))
    capabilities = {"experimental": {"craft": {"protocol": "2.0"}}}
    with pytest.raises(Failed) as failed:
        await wire.initialize(capabilities=capabilities)
    assert failed.value.error["data"]["supported"] == ["1.0"]
    assert (await wire.closed()).get("code") == (4409 if kind == "ws" else None)


async def test_what_arrived_before_the_end_of_the_stream_is_answered(toys: Toys) -> None:
    wire = await toys.dial(await toys.open("tcp"))
    await wire.initialize()
    asked = wire.ask("toys/create", {"value": {}})
    wire.writer.write_eof()
    assert (await wire.answer(asked))["revision"] == 1
    await wire.closed()


async def test_small_answers_are_not_held_back_and_dead_machines_are_noticed(toys: Toys) -> None:
    url = await toys.open("tcp")
    await (await toys.dial(url)).initialize()
    (served,) = toys.dispatcher.connections.values()
    sink: Any = served._sink
    connected = sink._transport.get_extra_info("socket")
    assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "198.51.100.1"])
async def test_where_others_read_along_no_port_opens_without_tls(
    toys: Toys, kind: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "_open", None)
    with pytest.raises(OSError, match="--tls-cert and --tls-key, or say --allow-insecure-bind"):
        await open_all(Network(**{kind: Address(host, 0)}), toys.dispatcher)


async def test_it_may_be_opened_with_tls_or_when_asked_for(toys: Toys) -> None:
    for more in (CERTIFICATE, {"insecure": True}):
        (listener,) = await open_all(Network(tcp=Address("0.0.0.0", 0), **more), toys.dispatcher)  # type: ignore[arg-type]
        assert listener.address.startswith("0.0.0.0:")
        listener.server.close()


async def test_a_port_that_is_taken_opens_nothing(toys: Toys) -> None:
    taken = await toys.open("tcp")
    port = int(taken.rpartition(":")[2])
    with pytest.raises(OSError, match=f"ws 127.0.0.1:{port}: Address already in use"):
        await open_all(Network(tcp=Address("127.0.0.1", 0), ws=Address("127.0.0.1", port)), toys.dispatcher)


async def test_a_certificate_that_cannot_be_read_is_named(toys: Toys, tmp_path: Path) -> None:
    missing = Network(tcp=Address("127.0.0.1", 0), tls_cert=str(tmp_path / "none.pem"), tls_key=str(tmp_path / "none"))
    with pytest.raises(OSError, match=r"--tls-cert .*none\.pem"):
        await open_all(missing, toys.dispatcher)


async def test_a_client_that_never_takes_its_last_bytes_is_let_go(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STALL_SECONDS", 0.05)
    monkeypatch.setattr(streams, "LINGER", 0.01)
    wire = await Wire.connect(await toys.open("tcp"), token=toys.secret, reading=False)
    wire.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.send("initialize", {"capabilities": {}, "initializationOptions": {"craft": {"token": toys.secret}}}, id=1)
    other = await toys.client()
    (served,) = [one for one in toys.dispatcher.connections.values() if one.kind == "tcp"]
    sink: Any = served._sink
    while not served.lifecycle.initialized and served.lifecycle.unanswered:
        await other.call("toys/echo")
    sink._transport.write(b"x" * (8 << 20))
    sink.close()
    while served.alive:
        await other.call("toys/echo")
    assert wire.received == []
    wire.writer.transport.abort()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_crowd_takes_few_places_and_none_of_those_for_the_local_user(toys: Toys, kind: str) -> None:
    toys.dispatcher.max_connections = 16
    url = await toys.open(kind)
    host, port = url.partition("://")[2].split(":")
    crowd = [await asyncio.open_connection(host, int(port)) for _ in range(60)]
    held = 16 // 2 + MAX_TURNED_AWAY  # without a token; and those that may still hear why not
    ended = [asyncio.ensure_future(reader.read()) for reader, _ in crowd]
    while sum(one.done() for one in ended) < len(crowd) - held:
        await asyncio.wait([one for one in ended if not one.done()], return_when=asyncio.FIRST_COMPLETED)
    assert await (await toys.client()).call("toys/echo") == {"value": None}
    for _, writer in crowd:
        writer.close()
    await asyncio.gather(*ended, return_exceptions=True)

    inside = []
    async with asyncio.timeout(10):
        while len(inside) < 16 - 16 // 8:
            try:
                wire = await toys.dial(url)
                await wire.initialize()
                inside.append(wire)
            except (Failed, ConnectionError):
                await asyncio.sleep(0.05)  # until those of the crowd have gone
    refused = await toys.dial(url)
    await refused.closed()
    assert refused.received[0]["error"]["data"]["code"] == "Busy"
    assert await (await toys.client()).call("toys/echo") == {"value": None}
