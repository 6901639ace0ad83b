from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from websockets.datastructures import Headers
from websockets.frames import Close, Frame, Opcode
from websockets.http11 import Request

from craftd.model import json_text
from craftd.protocol.framing import MAX_BODY
from craftd.server import outbox, streams, websocket
from craftd.server.websocket import Admission
from tests.server.toys import Toys
from tests.wire import Failed, WebWire, Wire


def echo(id_: Any, value: Any = None) -> bytes:
    return json_text.dumps({"jsonrpc": "2.0", "id": id_, "method": "toys/echo", "params": {"value": value}})


def frame(opcode: Opcode, data: bytes, *, fin: bool = True, mask: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=mask)


@pytest.fixture
async def web(toys: Toys) -> WebWire:
    """A client over a WebSocket that is initialized."""
    wire = await toys.dial(await toys.open("ws"))
    assert isinstance(wire, WebWire)
    await wire.initialize()
    return wire


async def ended(wire: Wire) -> tuple[int, str]:
    end = await wire.closed()
    return end["code"], end["reason"]


@pytest.mark.parametrize("length", [0, 125, 126, 65_535, 65_536, 3_000_000])
async def test_messages_of_every_length_come_back(web: WebWire, length: int) -> None:
    assert await web.call("toys/echo", {"value": "x" * length}) == {"value": "x" * length}


async def test_the_largest_message_is_served_and_a_larger_one_is_the_last(toys: Toys, web: WebWire) -> None:
    value = "x" * (MAX_BODY - 200)
    assert len((await web.call("toys/echo", {"value": value}))["value"]) == len(value)
    before = web.ask("toys/create", {"value": {}})
    web.ask("toys/echo", {"value": "x" * MAX_BODY})
    web.ask("toys/create", {"value": {}})
    assert await ended(web) == (4413, f"a message is larger than {MAX_BODY} bytes")
    assert (await web.answer(before))["revision"] == 1
    (refused,) = [message for message in web.received if message.get("id", 0) is None]
    assert refused["error"]["data"]["code"] == "TooLarge"
    assert refused["error"]["data"]["limit"] == MAX_BODY
    assert toys.core.shelves["a"].journal.revision == 1


async def test_pieces_together_may_not_be_larger_either(web: WebWire) -> None:
    web.raw(frame(Opcode.TEXT, b"x" * (MAX_BODY - 10), fin=False))
    web.raw(frame(Opcode.CONT, b"x" * 11, fin=False))
    assert (await ended(web))[0] == 4413


async def test_a_message_in_pieces_is_one_and_pings_between_them_are_answered(web: WebWire) -> None:
    body = echo("p", "é" * 1000)
    for at in range(0, len(body), 7):
        opcode = Opcode.CONT if at else Opcode.TEXT
        web.raw(frame(opcode, body[at : at + 7], fin=False))
        web.raw(frame(Opcode.PING, b"%d" % at))
    web.raw(frame(Opcode.CONT, b""))
    assert await web.answer("p") == {"value": "é" * 1000}
    pongs = [bytes(control.data) for control in web.controls if control.opcode is Opcode.PONG]
    assert pongs == [b"%d" % at for at in range(0, len(body), 7)]


async def test_bytes_may_arrive_one_by_one(web: WebWire) -> None:
    for byte in frame(Opcode.TEXT, echo(7)):
        web.raw(bytes((byte,)))
        await web.writer.drain()
        await asyncio.sleep(0)
    assert await web.answer(7) == {"value": None}


async def test_many_messages_in_one_packet_are_answered_in_order(toys: Toys, web: WebWire) -> None:
    web.raw(b"".join(frame(Opcode.TEXT, echo(f"n{number}")) for number in range(1000)))
    await web.answer("n999")
    assert web.order[1:] == [f"n{number}" for number in range(1000)]


async def test_something_that_is_no_json_is_answered_and_the_next_message_served(web: WebWire) -> None:
    web.raw(frame(Opcode.TEXT, b"{"))
    web.raw(frame(Opcode.TEXT, b"[]"))
    assert await web.call("toys/echo") == {"value": None}
    refused = [message["error"]["data"]["code"] for message in web.received if message.get("id", 0) is None]
    assert refused == ["ParseError", "InvalidRequest"]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(frame(Opcode.BINARY, echo(1)), 1003, id="binary"),
        pytest.param(frame(Opcode.BINARY, b"", fin=False), 1003, id="a beginning of binary"),
        pytest.param(frame(Opcode.TEXT, b'"\xff"'), 1007, id="no UTF-8"),
        pytest.param(frame(Opcode.TEXT, echo(1), mask=False), 1002, id="unmasked"),
        pytest.param(frame(Opcode.CONT, echo(1)), 1002, id="nothing to continue"),
        pytest.param(frame(Opcode.TEXT, b"a", fin=False) + frame(Opcode.TEXT, b"b"), 1002, id="two beginnings"),
        pytest.param(b"\xc1\x80\0\0\0\0", 1002, id="a reserved bit"),
        pytest.param(b"\x83\x80\0\0\0\0", 1002, id="an unknown kind"),
        pytest.param(b"\x89\xfe\x00\x80\0\0\0\0" + b"x" * 128, 1002, id="a long ping"),
        pytest.param(b"\x81\xff" + b"\xff" * 8 + b"\0" * 4, 1002, id="a length beyond 63 bits"),
    ],
)
async def test_what_no_client_may_send_ends_it_with_the_reason(
    toys: Toys, web: WebWire, sent: bytes, code: int
) -> None:
    before = web.ask("toys/create", {"value": {}})
    web.raw(sent)
    web.raw(frame(Opcode.TEXT, echo("after")))
    assert (await ended(web))[0] in (code, 4413)
    assert (await web.answer(before))["revision"] == 1
    assert "after" not in web.order


async def test_a_client_that_closes_gets_its_answers_and_then_its_own_code(toys: Toys, web: WebWire) -> None:
    change = web.ask("toys/slowly", {"gate": "g", "firm": True})
    web.raw(frame(Opcode.CLOSE, Close(4999, "enough").serialize()))
    web.raw(frame(Opcode.TEXT, echo("after")))
    await toys.core.shelves["a"].log.reached("begin g")
    toys.core.gate("g").set()
    assert (await web.answer(change))["revision"] == 1
    assert await ended(web) == (4999, "enough")
    assert "after" not in web.order


async def test_a_close_without_a_code_is_answered_too(web: WebWire) -> None:
    web.raw(frame(Opcode.CLOSE, b""))
    assert (await ended(web))[0] == 1005


async def test_exit_closes_normally(toys: Toys, web: WebWire) -> None:
    web.send("exit")
    assert (await ended(web))[0] == 1000
    other = await toys.client()
    await other.call("toys/echo")
    assert toys.core.left == ["c-1"]


async def test_a_client_that_does_not_answer_our_close_is_let_go(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LINGER", 0.05)
    wire = await Wire.connect(await toys.open("ws"), token=toys.secret, reading=False)
    wire.post(b'{"jsonrpc":"2.0","method":"exit"}')
    assert isinstance(wire, WebWire)
    wire.flush()
    data = await asyncio.wait_for(wire.reader.read(), 10)
    assert data == frame(Opcode.CLOSE, Close(1000, "").serialize(), mask=False)
    await wire.close()


async def test_the_daemons_end_is_going_away(toys: Toys, web: WebWire) -> None:
    await toys.dispatcher.close(5)
    assert await ended(web) == (1001, "the daemon stops")


async def test_half_an_end_still_gets_its_answers(toys: Toys, web: WebWire) -> None:
    change = web.ask("toys/create", {"value": {}})
    web.writer.write_eof()
    assert (await web.answer(change))["revision"] == 1
    assert (await ended(web))[0] == 1000


async def test_a_client_that_answers_no_ping_is_gone(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "PING_SECONDS", 0.02)
    wire = await Wire.connect(await toys.open("ws"), token=toys.secret, reading=False)
    heard = b""
    try:
        while data := await asyncio.wait_for(wire.reader.read(1 << 16), 10):
            heard += data
    except ConnectionResetError:
        pass
    assert heard == b"\x89\x00" * 2
    await wire.close()


async def test_a_client_that_answers_pings_stays(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "PING_SECONDS", 0.02)
    wire = await toys.dial(await toys.open("ws"))
    assert isinstance(wire, WebWire)
    await wire.initialize()
    while len([control for control in wire.controls if control.opcode is Opcode.PING]) < 5:
        await wire.call("toys/echo")
    assert await wire.call("toys/echo") == {"value": None}


async def test_a_flood_of_pings_that_nobody_reads_the_answers_of_costs_no_memory(toys: Toys) -> None:
    wire = await Wire.connect(await toys.open("ws"), token=toys.secret, reading=False)
    assert isinstance(wire, WebWire)
    other = await toys.client()
    (served,) = [one for one in toys.dispatcher.connections.values() if one.kind == "ws"]
    ping = frame(Opcode.PING, b"x" * 125) * 1000
    sink: Any = served._sink
    for _ in range(200):
        wire.raw(ping)
        await wire.writer.drain()
        assert sink.buffered() < 2 * streams.HIGH_WATER + streams.READ_BYTES
    wire.raw(frame(Opcode.PING, b"last"))
    await other.call("toys/echo")
    wire.start_reading()
    while not any(control.data == b"last" for control in wire.controls):
        await other.call("toys/echo")
    await wire.close()


async def test_a_client_that_stops_reading_harms_only_itself(
    toys: Toys, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "LAPSE_BYTES", 200_000)
    slow = await Wire.connect(await toys.open("ws"), token=toys.secret, reading=False)
    slow.send("initialize", {"capabilities": {}}, id="i")
    slow.send("toys/subscribe", id="s")
    await wire.call("toys/subscribe")
    while len(toys.dispatcher.subscribers()) < 2:
        await wire.call("toys/echo")
    value = {"text": "x" * 20_000}
    (served,) = [one for one in toys.dispatcher.connections.values() if one.kind == "ws"]
    made = 0
    while not served.outbox.subscriptions["a"].lapsed:
        await wire.call("toys/create", {"value": value})
        made += 1
    for _ in range(10):
        await wire.call("toys/create", {"value": value})
    assert len(wire.notifications("toys/didCreate")) == made + 10
    slow.start_reading()
    lapsed = await slow.notified("events/didLapse")
    heard = [event["revision"] for event in slow.notifications("toys/didCreate")]
    assert heard == list(range(1, len(heard) + 1))
    assert len(heard) < made
    assert lapsed["revision"] == made + 10
    await wire.call("toys/create", {"value": {}})
    assert (await slow.notified("toys/didCreate", len(heard) + 1))["revision"] == made + 11
    await slow.close()


async def test_one_serialisation_is_told_to_both_kinds_of_client(toys: Toys, wire: Wire, web: WebWire) -> None:
    for client in (wire, web):
        await client.call("toys/subscribe")
    for number in range(20):
        await (wire if number % 2 else web).call("toys/create", {"value": {"n": number}})
    for client in (wire, web):
        await client.notified("toys/didCreate", 20)
    told = [[body for body in client.bodies if b'"method":"toys/didCreate"' in body] for client in (wire, web)]
    assert told[0] == told[1]
    assert len(told[0]) == 20


# The handshake


async def test_a_browser_shows_its_token_as_a_subprotocol(toys: Toys) -> None:
    url = await toys.open("ws")
    token = base64.urlsafe_b64encode(toys.secret.encode()).rstrip(b"=").decode()
    wire = await toys.dial(url, token=None, subprotocols=["craftd.v1", f"craftd.token.{token}"])
    assert isinstance(wire, WebWire)
    assert wire.response is not None
    assert wire.response.headers["Sec-WebSocket-Protocol"] == "craftd.v1"
    await wire.initialize()


@pytest.mark.parametrize("shown", ["wrong", "%%%", "w", ""])
async def test_a_wrong_token_in_the_handshake_closes_with_the_reason(toys: Toys, shown: str) -> None:
    url = await toys.open("ws")
    by_header = await toys.dial(url, token=shown)
    assert (await ended(by_header))[0] == 4401
    if shown == "w" or shown == "wrong":
        by_name = await toys.dial(url, token=None, subprotocols=["craftd.v1", f"craftd.token.{shown}"])
        assert await ended(by_name) == (4401, "this token is not valid")


async def test_a_client_may_show_its_token_later_too(toys: Toys) -> None:
    wire = await toys.dial(await toys.open("ws"), token=None)
    await wire.initialize({"token": toys.secret})
    assert await wire.call("toys/echo") == {"value": None}


async def test_no_subprotocol_at_all_is_fine_and_others_are_not_spoken(toys: Toys) -> None:
    url = await toys.open("ws")
    await (await toys.dial(url, subprotocols=())).initialize()
    other = await toys.dial(url, subprotocols=["graphql-ws"])
    assert (await ended(other))[0] == 4409
    assert other.received[0]["error"]["data"]["supported"] == ["craftd.v1"]


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"Host": "localhost"}, True),
        ({"Host": "LOCALHOST:1"}, True),
        ({"Host": "[::1]:4711"}, True),
        ({"Host": "127.1.2.3:80"}, True),
        ({"Host": "box.example:4711"}, True),
        ({"Host": "evil.example"}, False),
        ({"Host": "localhost.evil.example"}, False),
        ({"Host": "127.0.0.1.evil.example:80"}, False),
        ({"Host": "localhost@evil.example"}, False),
        ({"Host": "localhost:@evil.example"}, False),
        ({"Host": "localhost]evil.example"}, False),
        ({"Host": "[::1].evil.example"}, False),
        ({"Host": "127.0.0.1:80abc"}, False),
        ({"Host": "192.168.1.1"}, False),
        ({"Host": "::1"}, False),
        ({"Host": ""}, False),
        ({"Origin": "https://good.example"}, True),
        ({"Origin": "HTTPS://GOOD.example"}, True),
        ({"Origin": "http://good.example"}, False),
        ({"Origin": "https://good.example:444"}, False),
        ({"Origin": "https://good.example.evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "NULL"}, False),
        ({"Origin": ""}, False),
        ({"Origin": "http://localhost"}, False),
        ({"Origin": "https://good.example", "Host": "evil.example"}, False),
    ],
)
async def test_only_known_pages_get_in_whatever_token_they_have(
    toys: Toys, headers: dict[str, str], allowed: bool
) -> None:
    url = await toys.open("ws", origins=("https://good.example",), hosts=("box.example",))
    wire = await toys.dial(url, headers=headers)
    if allowed:
        await wire.initialize()
        return
    wire.raw(frame(Opcode.TEXT, b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'))
    assert (await ended(wire))[0] == 4403
    assert wire.received[0]["error"]["data"]["code"] == "Forbidden"
    assert len(wire.received) == 2
    assert toys.core.wishes == []


async def test_no_origin_is_allowed_when_none_was_named(toys: Toys) -> None:
    wire = await toys.dial(await toys.open("ws"), headers={"Origin": "http://localhost:5173"})
    assert (await ended(wire))[0] == 4403


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_two_of_what_is_checked_are_none(name: str) -> None:
    headers = Headers([("Host", "localhost"), ("Origin", "http://a.example")])
    admission = Admission(frozenset({"http://a.example"}))
    assert admission.problem(Request("/", headers)) is None
    headers[name] = headers[name]
    assert f"this {name} is not allowed" in str(admission.problem(Request("/", headers)))


async def test_a_request_before_the_handshake_is_done_is_not_lost(toys: Toys) -> None:
    """A client that does not wait for our answer to its handshake, and sends everything in one packet."""
    url = await toys.open("ws")
    host, port = url.removeprefix("ws://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    key = base64.b64encode(b"0123456789abcdef").decode()
    head = (
        "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nAuthorization: bearer {toys.secret}\r\n\r\n"
    )
    initialize = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
    exit_ = b'{"jsonrpc":"2.0","method":"exit"}'
    writer.write(
        head.encode() + frame(Opcode.TEXT, initialize) + frame(Opcode.TEXT, echo(2)) + frame(Opcode.TEXT, exit_)
    )
    answer = await asyncio.wait_for(reader.read(), 10)
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert b'"id":1,"result"' in answer
    assert b'{"jsonrpc":"2.0","id":2,"result":{"value":null}}' in answer
    writer.close()


@pytest.mark.parametrize(
    "first", [b"\x00\n", b"GET / HTTP/1.1\r\n\r\n", b"x" * 20_000, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 500]
)
async def test_who_goes_on_after_a_refused_handshake_is_not_heard(
    toys: Toys, first: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = (await toys.open("ws")).removeprefix("ws://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(first)
    assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 4")
    for _ in range(20):
        writer.write(first)
        await asyncio.sleep(0)
    await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize(
    "behind", [b"\xff" * 50, frame(Opcode.CLOSE, b"\x03\xe8"), frame(Opcode.BINARY, b"x"), b"\x81"]
)
@pytest.mark.parametrize("proper", [True, False])
async def test_nonsense_in_the_packet_of_the_handshake_is_said_after_it(
    toys: Toys, behind: bytes, proper: bool, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = (await toys.open("ws")).removeprefix("ws://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" if proper else b""
    key = b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + upgrade + key + behind)
    writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    if proper:
        assert answer.startswith(b"HTTP/1.1 101 ")
        assert b"\x88" in answer.partition(b"\r\n\r\n")[2]
    else:
        assert answer.startswith(b"HTTP/1.1 426 ")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_what_a_client_sends_never_reaches_the_log(
    toys: Toys, web: WebWire, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    wire = await toys.dial(await toys.open("ws"))
    await wire.initialize()
    await wire.call("toys/echo", {"value": "a private matter"})
    await toys.dial(await toys.open("ws"), token="wrong-but-somebodys")
    with pytest.raises(Failed):
        await (await toys.dial(await toys.open("ws"), token=None)).initialize({"token": "mistyped-secret"})
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("craftd"))
    assert "a wrong token from 127.0.0.1" in ours
    for private in (toys.secret, "a private matter", "wrong-but-somebodys", "mistyped-secret"):
        assert private not in ours
