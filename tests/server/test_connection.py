from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from craftd.protocol import lsp
from craftd.protocol.framing import encode
from craftd.server import connection as module
from craftd.server.connection import ClientError, Order
from tests.server.toys import Toys
from tests.wire import Failed, Wire


async def code(wire: Wire, id_: Any) -> str:
    with pytest.raises(Failed) as failed:
        await wire.answer(id_)
    return failed.value.name


# Life cycle


async def test_before_initialize_only_hello_is_answered(toys: Toys) -> None:
    wire = await Wire.connect(toys.path)
    assert await wire.call("daemon/hello") == {"pid": 1}
    for method in ("toys/echo", "shutdown", "textDocument/hover"):
        assert await code(wire, wire.ask(method)) == "NotInitialized"
    await wire.initialize()
    assert await wire.call("toys/echo") == {"value": None}
    await wire.close()


async def test_hello_does_not_wait_for_what_initialize_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported, load = threading.Event(), lsp.load
    monkeypatch.setattr(lsp, "load", lambda: imported.wait(10) and load())
    toys = await Toys.start(tmp_path / "sock")
    wire = await Wire.connect(toys.path)
    first = wire.ask("initialize", {"capabilities": {}})
    other = await Wire.connect(toys.path)
    assert await other.call("daemon/hello") == {"pid": 1}
    assert wire.received == []
    imported.set()
    assert (await wire.answer(first))["serverInfo"]["name"] == "craftd"
    for client in (wire, other):
        await client.close()
    await toys.stop()


def test_a_server_starts_without_the_language_server_libraries() -> None:
    code = "import sys, craftd.server.listeners; print(sorted({'pygls', 'lsprotocol'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


async def test_what_is_sent_right_behind_initialize_waits_for_it(toys: Toys) -> None:
    wire = await Wire.connect(toys.path)
    first = wire.ask("initialize", {"capabilities": {}})
    wire.send("initialized", {})
    second, third = wire.ask("toys/echo"), wire.ask("initialize", {"capabilities": {}})
    assert await wire.answer(second) == {"value": None}
    assert await code(wire, third) == "InvalidRequest"
    assert wire.order == [first, second, third]
    await wire.close()


async def test_initialize_with_wrong_params_may_be_repeated(toys: Toys) -> None:
    wire = await Wire.connect(toys.path)
    for wrong in (
        {},
        {"capabilities": {}, "processId": "1"},
        {"capabilities": {}, "initializationOptions": {"craft": {"workspace": "a"}}},
        {"capabilities": {"experimental": {"craft": {"protocol": 1}}}},
    ):
        assert await code(wire, wire.ask("initialize", wrong)) == "InvalidParams"
        assert await code(wire, wire.ask("toys/echo")) == "NotInitialized"
    other_major = {"capabilities": {"experimental": {"craft": {"protocol": "2.0", "brandNew": 1}}}}
    with pytest.raises(Failed) as failed:
        await wire.call("initialize", other_major)
    assert failed.value.error["data"] == {"code": "InvalidRequest", "retryable": False, "supported": ["1.0"]}
    await wire.initialize()
    await wire.close()


async def test_initialize_announces_exactly_what_is_served(toys: Toys) -> None:
    wire = await Wire.connect(toys.path)
    capabilities = {"experimental": {"craft": {"protocol": "1.3", "roles": ["executor"]}}}
    welcome = await wire.initialize({"workspaces": [{"id": "b"}]}, capabilities=capabilities)
    assert welcome["workspaces"] == [
        {"id": "b", "name": "b", "path": "/shelves/b", "epoch": "e", "revision": 0, "readOnly": False}
    ]
    assert "toys/list" in welcome["methods"]
    assert "toys/unserved" not in welcome["methods"]
    assert welcome["notifications"][0] == "toys/didCreate"
    assert (welcome["protocol"], welcome["clientId"]) == ("1.0", "c-1")
    assert welcome["rights"] == ["read", "write", "execute", "secrets", "admin"]
    assert welcome["limits"]["maxInFlight"] == 64
    assert toys.core.wishes[0].abilities.roles == ("executor",)
    await wire.close()


@pytest.mark.parametrize(
    ("members", "folders"),
    [
        ({"workspaceFolders": [{"uri": "file:///a/b%20c", "name": ""}, {"uri": "x:1", "name": ""}]}, ("/a/b c",)),
        ({"rootUri": "file:///r", "rootPath": "/p"}, ("/r",)),
        ({"rootPath": "/p"}, ("/p",)),
        ({}, ()),
    ],
)  # fmt: skip
async def test_the_folders_of_an_editor_are_passed_on(toys: Toys, members: Any, folders: tuple[str, ...]) -> None:
    await toys.client(**members)
    assert toys.core.wishes[0].folders == folders


async def test_shutdown_comes_after_the_changes_before_it_and_exit_ends_this_connection_alone(toys: Toys) -> None:
    other, wire = await toys.client(), await toys.client()
    change = wire.ask("toys/slowly", {"gate": "g"})
    down = wire.ask("shutdown")
    late = wire.ask("toys/echo")
    await toys.core.shelves["a"].log.reached("begin g")
    toys.core.gate("g").set()
    assert await wire.answer(down) is None
    assert await code(wire, late) == "InvalidRequest"
    assert [entry for entry in wire.order if entry != late][-2:] == [change, down]
    wire.send("exit")
    await wire.closed()
    assert await other.call("toys/echo") == {"value": None}


async def test_everything_sent_before_the_end_of_input_is_carried_out_and_answered(toys: Toys, wire: Wire) -> None:
    ids = [wire.ask("toys/create", {"id": str(n), "value": {}}) for n in range(200)]
    read = wire.ask("toys/list")
    wire.writer.write_eof()
    assert len((await wire.answer(read))["items"]) == 200
    await wire.closed()
    assert [entry for entry in wire.order if entry in ids] == ids


async def test_exit_ends_reads_that_take_too_long(toys: Toys, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_WORDS", 0.01)
    read = wire.ask("toys/wait", {"gate": "g"})
    wire.send("exit")
    wire.ask("toys/create", {"value": {}})
    assert await code(wire, read) == "Cancelled"
    await wire.closed()
    assert toys.core.shelves["a"].log == ["read g"]


async def test_a_client_that_dies_loses_its_reads_and_none_of_its_changes(toys: Toys, wire: Wire) -> None:
    wire.ask("toys/slowly", {"gate": "g"})
    for n in range(100):
        wire.ask("toys/create", {"id": str(n), "value": {}})
    wire.ask("toys/wait", {"gate": "h"})
    await toys.core.shelves["a"].log.reached("create 50")
    await wire.close()
    log = toys.core.shelves["a"].log
    toys.core.gate("g").set()
    await log.reached("end g")
    await log.reached("create 99")
    assert toys.core.left == ["c-1"]
    assert "read h" not in log
    assert toys.dispatcher.connections == {}


# Order


async def test_a_thousand_changes_are_made_in_the_order_sent(toys: Toys, wire: Wire) -> None:
    ids = [wire.ask("toys/create", {"id": str(n), "value": {}}) for n in range(1000)]
    assert (await wire.answer(ids[-1]))["revision"] == 1000
    assert toys.core.shelves["a"].log == [f"create {n}" for n in range(1000)]
    assert wire.order[-1000:] == ids


async def test_a_read_waits_for_the_changes_sent_before_it_and_for_no_later_one(toys: Toys, wire: Wire) -> None:
    first = wire.ask("toys/slowly", {"gate": "1"})
    read = wire.ask("toys/list")
    second = wire.ask("toys/slowly", {"gate": "2"})
    await toys.core.shelves["a"].log.reached("begin 2")
    assert read not in wire.order
    toys.core.gate("1").set()
    await wire.answer(read)
    assert wire.order[-2:] == [first, read]
    toys.core.gate("2").set()
    await wire.answer(second)


async def test_reads_overtake_each_other_and_other_clients_wait_for_nobody(toys: Toys, wire: Wire) -> None:
    slow = wire.ask("toys/wait", {"gate": "g"})
    assert await wire.call("toys/echo") == {"value": None}
    wire.ask("toys/slowly", {"gate": "h"})
    other = await toys.client()
    assert await other.call("toys/echo") == {"value": None}
    toys.core.gate("g").set()
    assert await wire.answer(slow) == "g"


def test_reads_are_let_go_when_the_oldest_change_they_follow_is_done() -> None:
    order, begun = Order(), []
    one, two = order.change(), order.change()
    order.hold(lambda: begun.append("after two"))
    three = order.change()
    order.hold(lambda: begun.append("after three"))
    order.done(two)
    assert begun == []
    order.done(one)
    assert begun == ["after two"]
    order.done(three)
    assert begun == ["after two", "after three"]


async def test_an_event_is_written_before_the_answer_of_the_change_that_caused_it(toys: Toys, wire: Wire) -> None:
    await wire.call("toys/subscribe")
    ids = [wire.ask("toys/create", {"id": str(n), "value": {}, "key": f"{n:016}"}) for n in range(5)]
    await wire.answer(ids[-1])
    for n, id_ in enumerate(ids):
        before = [message["params"]["revision"] for message in wire.received[: wire.received.index(
            next(m for m in wire.received if m.get("id") == id_)
        )] if message.get("method") == "toys/didCreate"]  # fmt: skip
        assert n + 1 in before
    assert (await wire.notified("toys/didCreate"))["origin"] == {
        "kind": "client", "client": "c-1", "key": "0000000000000000",
    }  # fmt: skip


async def test_what_was_missed_comes_behind_the_answer_and_before_live_changes(toys: Toys, wire: Wire) -> None:
    for n in range(3):
        await wire.call("toys/create", {"id": str(n), "value": {}})
    late = await toys.client()
    subscribed = late.ask("toys/subscribe", {"since": 1})
    created = late.ask("toys/create", {"id": "new", "value": {}})
    await late.answer(created)
    assert late.order[-5:] == [subscribed, *["toys/didCreate"] * 3, created]
    assert [event["revision"] for event in late.notifications("toys/didCreate")] == [2, 3, 4]


# Limits


async def test_more_than_64_requests_wait_in_order_and_more_than_1024_others_are_busy(toys: Toys, wire: Wire) -> None:
    ids = [wire.ask("toys/wait", {"gate": "g"}) for _ in range(64 + 1024 + 3)]
    for busy in ids[-3:]:
        with pytest.raises(Failed) as failed:
            await wire.answer(busy)
        assert failed.value.error["data"] == {"code": "Busy", "retryable": True, "retryAfterMs": 100}
    assert toys.core.shelves["a"].log == ["read g"] * 64
    wire.send("toys/look", {"what": "x"})
    wire.send("$/cancelRequest", {"id": ids[1000]})
    assert await code(wire, ids[1000]) == "Cancelled"
    assert toys.core.shelves["a"].log[-1] == "look x"
    toys.core.gate("g").set()
    assert await wire.answer(ids[-4]) == "g"
    answered = [entry for entry in wire.order if entry in ids]
    assert sorted(answered) == ids
    assert answered[4:] == [id_ for id_ in ids[:-3] if id_ != ids[1000]]


async def test_requests_that_wait_may_not_hold_more_than_their_share_of_memory(
    toys: Toys, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 1000)
    slow = [wire.ask("toys/wait", {"gate": "g"}) for _ in range(64)]
    big = [wire.ask("toys/echo", {"value": "x" * 600}) for _ in range(2)]
    assert await code(wire, big[1]) == "Busy"
    toys.core.gate("g").set()
    assert await wire.answer(slow[-1]) == "g"
    assert len((await wire.answer(big[0]))["value"]) == 600


async def test_nothing_is_begun_for_a_client_that_does_not_read_its_answers(toys: Toys) -> None:
    wire = await Wire.connect(toys.path, reading=False)
    wire.send("initialize", {"capabilities": {}}, id=0)
    for n in range(1, 41):
        wire.send("toys/echo", {"value": "x" * 200_000}, id=n)
    wire.send("toys/create", {"value": {}}, id=99)
    other = await toys.client()
    (connection,) = [c for c in toys.dispatcher.connections.values() if c.id == "c-1"]
    while connection.outbox.size <= 1 << 20:
        await other.call("toys/echo")
    await other.call("toys/echo")
    assert toys.core.shelves["a"].log == []
    wire.start_reading()
    await wire.answer(99)
    assert wire.order == [*range(41), 99]
    assert toys.core.shelves["a"].log == ["create t0"]
    await wire.close()


async def test_an_id_in_flight_is_refused_and_both_get_their_answer(toys: Toys, wire: Wire) -> None:
    wire.send("toys/wait", {"gate": "g"}, id="same")
    wire.send("toys/echo", id="same")
    assert await code(wire, "same") == "InvalidRequest"
    toys.core.gate("g").set()
    await wire.wait(lambda m: m.get("result") == "g")


@pytest.mark.parametrize("id_", [0, -1, 2**53, 2**63, -(2**70), "", "ü\ud83d", "1"])
async def test_every_id_comes_back_as_it_was(wire: Wire, id_: Any) -> None:
    wire.send("toys/echo", id=id_)
    assert await wire.answer(id_) == {"value": None}


# Cancelling


async def test_a_read_is_cancelled_wherever_it_is_and_answered_once(toys: Toys, wire: Wire) -> None:
    running = wire.ask("toys/wait", {"gate": "g"})
    await toys.core.shelves["a"].log.reached("read g")
    wire.ask("toys/slowly", {"gate": "h"})
    held = wire.ask("toys/list")
    for id_ in (held, running, 999, None):
        wire.send("$/cancelRequest", {"id": id_})
    wire.send("$/cancelRequest", "wrong")
    assert await code(wire, held) == "Cancelled"
    assert await code(wire, running) == "Cancelled"
    toys.core.gate("h").set()
    await wire.call("toys/list")
    assert sorted(entry for entry in wire.order if entry in (running, held)) == [running, held]


async def test_a_cancelled_read_leaves_the_scope_that_others_wait_for(toys: Toys, wire: Wire) -> None:
    opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    toys.core.shelves["c"] = opened
    first, second = wire.ask("toys/list", {"workspace": "c"}), wire.ask("toys/list", {"workspace": "c"})
    await wire.call("toys/echo")
    wire.send("$/cancelRequest", {"id": first})
    assert await code(wire, first) == "Cancelled"
    opened.set_result(toys.core.shelves["b"])
    assert (await wire.answer(second))["items"] == []


async def test_a_change_is_taken_back_and_what_waits_for_it_goes_on(toys: Toys, wire: Wire) -> None:
    change = wire.ask("toys/slowly", {"gate": "g", "key": "k" * 16})
    repeat = wire.ask("toys/slowly", {"gate": "g", "key": "k" * 16})
    read = wire.ask("toys/list")
    await toys.core.shelves["a"].log.reached("begin g")
    wire.send("$/cancelRequest", {"id": change})
    for id_ in (change, repeat):
        assert await code(wire, id_) == "Cancelled"
    assert (await wire.answer(read))["revision"] == 0


async def test_a_change_that_can_no_longer_be_taken_back_is_answered_as_if_nobody_had_asked(
    toys: Toys, wire: Wire
) -> None:
    change = wire.ask("toys/slowly", {"gate": "g", "firm": True})
    await toys.core.shelves["a"].log.reached("begin g")
    wire.send("$/cancelRequest", {"id": change})
    wire.send("toys/look", {"what": "x"})
    await toys.core.shelves["a"].log.reached("look x")
    toys.core.gate("g").set()
    assert (await wire.answer(change))["revision"] == 1


async def test_another_client_cannot_cancel(toys: Toys, wire: Wire) -> None:
    read = wire.ask("toys/wait", {"gate": "g"})
    await toys.core.shelves["a"].log.reached("read g")
    other = await toys.client()
    other.send("$/cancelRequest", {"id": read})
    await other.call("toys/echo")
    toys.core.gate("g").set()
    assert await wire.answer(read) == "g"


# Questions to the client


async def test_a_client_that_reports_files_is_asked_to(toys: Toys) -> None:
    ability = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
    wire = await toys.client({"workspaces": [{"id": "b"}]}, capabilities=ability)
    asked = await wire.wait(lambda m: m.get("method") == "client/registerCapability")
    (registration,) = asked["params"]["registrations"]
    assert registration["method"] == "workspace/didChangeWatchedFiles"
    assert registration["registerOptions"] == {"watchers": [{"globPattern": "/shelves/b/**/*"}]}
    assert asked["id"] == 1
    assert await wire.call("toys/echo") == {"value": None}
    wire.raw(encode(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'))
    assert await wire.call("toys/echo") == {"value": None}


async def test_questions_have_ids_of_their_own_and_replies_survive_whole(toys: Toys, wire: Wire) -> None:
    (connection,) = toys.dispatcher.connections.values()
    question = connection.ask("workspace/configuration", {"items": []})
    mine = wire.ask("toys/wait", {"gate": "g"})
    nested = b'{"jsonrpc":"2.0","id":41,"method":"tools/call","params":{"X-Api-Key":"k","class":null,"1st":true}}'
    wire.raw(encode(b'{"jsonrpc":"2.0","id":99,"result":1}'))
    wire.raw(encode(b'{"jsonrpc":"2.0","id":"1","result":2}'))
    wire.raw(encode(b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}'))
    wire.raw(encode(b'{"jsonrpc":"2.0","id":1,"result":%b}' % nested))
    wire.raw(encode(b'{"jsonrpc":"2.0","id":1,"result":"twice"}'))
    params = {"X-Api-Key": "k", "class": None, "1st": True}
    assert await question == {"jsonrpc": "2.0", "id": 41, "method": "tools/call", "params": params}
    refused = connection.ask("workspace/configuration", {"items": []})
    wire.raw(encode(b'{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}'))
    with pytest.raises(ClientError, match=r"no \(-32601\)"):
        await refused
    toys.core.gate("g").set()
    assert await wire.answer(mine) == "g"


async def test_a_question_ends_with_its_client(toys: Toys, wire: Wire) -> None:
    (connection,) = toys.dispatcher.connections.values()
    question = connection.ask("workspace/configuration", {"items": []})
    await wire.close()
    with pytest.raises(asyncio.CancelledError):
        await question


async def test_each_client_gets_its_own_answers_and_the_others_stay_when_one_leaves(toys: Toys) -> None:
    one, two = await toys.client(), await toys.client()
    slow = one.ask("toys/wait", {"gate": "g"})
    ids = [two.ask("toys/echo", {"value": n}) for n in range(20)]
    assert [(await two.answer(id_))["value"] for id_ in ids] == list(range(20))
    probe = await Wire.connect(toys.path)
    await probe.close()
    await two.close()
    three = await toys.client()
    assert await three.call("toys/echo") == {"value": None}
    toys.core.gate("g").set()
    assert await one.answer(slow) == "g"
    assert len([m for m in one.received if "id" in m]) == 2
