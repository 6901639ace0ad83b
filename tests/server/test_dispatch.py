from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from attrs import frozen

from craftd.protocol.framing import encode
from craftd.protocol.registry import Registry
from craftd.server import dispatch
from craftd.server.auth import Grant
from craftd.server.dispatch import Call, Dispatcher, Handlers
from tests.server.toys import Core, Journal, Shelf, Toys
from tests.wire import Failed, Wire


async def refused(wire: Wire, method: str, params: Any = None) -> Failed:
    with pytest.raises(Failed) as failed:
        await wire.call(method, params)
    return failed.value


async def test_any_value_comes_back_as_it_was_sent(wire: Wire) -> None:
    nested = {"jsonrpc": "2.0", "id": 41, "method": "x", "params": {"X-Api-Key": "k", "class": "A", "1st": True}}
    for value in (nested, {"__proto__": None, "": [None]}, "\ud83d", 2**80, 9007199254740993, "x" * 1_000_000):
        assert await wire.call("toys/echo", {"value": value}) == {"value": value}


async def test_absent_and_null_params_and_foreign_members_are_fine(wire: Wire) -> None:
    wire.raw(encode(b'{"jsonrpc":"2.0","id":"a","method":"toys/echo"}'))
    wire.raw(encode(b'{"jsonrpc":"2.0","id":"b","method":"toys/echo","params":null}'))
    wire.raw(encode(b'{"jsonrpc":"2.0","id":"c","method":"toys/echo","params":{"_meta":{}},"trace":"abc"}'))
    for id_ in "abc":
        assert await wire.answer(id_) == {"value": None}


HOVER = "textDocument/hover"
COMMAND = "workspace/executeCommand"
POSITION = {"textDocument": {"uri": "x"}, "position": {"line": 0, "character": 0}}


@pytest.mark.parametrize(
    ("method", "params", "code", "detail"),
    [
        ("no/such", None, "MethodNotFound", {"method": "no/such"}),
        ("toys/unserved", None, "MethodNotFound", {"method": "toys/unserved"}),
        (HOVER, POSITION, "MethodNotFound", {"method": HOVER}),
        ("toys/get", {"id": "x"}, "NotFound", {"resource": {"noun": "toys", "id": "x", "workspace": "a"}}),
        ("toys/get", {"id": "x", "workspace": "c"}, "NotFound", {"resource": {"noun": "workspaces", "id": "c"}}),
        ("initialize", {"capabilities": {}}, "InvalidRequest", {}),
    ],
)
async def test_a_request_that_cannot_be_served_is_answered_with_the_reason(
    wire: Wire, method: str, params: Any, code: str, detail: dict[str, Any]
) -> None:
    failed = await refused(wire, method, params)
    assert failed.name == code
    assert failed.error["data"] == {"code": code, "retryable": False, **detail}


@pytest.mark.parametrize(
    ("method", "params", "wrong"),
    [
        ("toys/get", {"id": 12}, {"id": "expected a string, not an integer"}),
        ("toys/get", "oops", {"": "params must be an object, not a string"}),
        ("toys/get", None, {"id": "required"}),
        ("toys/get", {"id": "x", "ide": 1}, {"ide": "unknown member"}),
        ("toys/create", {"value": {}, "key": "short"}, {"key": "expected 16 to 128 characters"}),
        ("shelves/list", {"workspace": "a"}, {"workspace": "shelves belong to no workspace"}),
        (HOVER, {"bad": 1}, {"textDocument": "required", "position": "required"}),
        (HOVER, "oops", {"": "params must be an object, not a string"}),
        (COMMAND, {"command": "x"}, {"command": "there is no command 'x'"}),
        (COMMAND, {"command": 5}, {"command": "expected a string, not an integer"}),
    ],
)
async def test_wrong_params_are_answered_once_and_every_wrong_member_is_named(
    wire: Wire, method: str, params: Any, wrong: dict[str, str]
) -> None:
    failed = await refused(wire, method, params)
    assert failed.code == -32602
    assert {issue["path"]: issue["message"] for issue in failed.error["data"]["issues"]} == wrong
    before = len(wire.received)
    assert await wire.call("toys/echo") == {"value": None}
    assert len(wire.received) == before + 1


async def test_messages_that_are_no_requests_are_answered_with_null(wire: Wire) -> None:
    for body in (b"{", b"[]", b"5", b'{"jsonrpc":"2.0","id":null,"method":"toys/echo"}'):
        wire.raw(encode(body))
    await wire.call("toys/echo")
    errors = [m["error"]["code"] for m in wire.received if m.get("id", 0) is None]
    assert errors == [-32700, -32600, -32600, -32600]


@pytest.mark.parametrize("how", ["raise", "return"])
async def test_a_fault_of_ours_is_told_without_its_traceback(
    wire: Wire, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    failed = await refused(wire, "toys/fail", {"how": how})
    assert failed.code == -32603
    assert set(failed.error["data"]) == {"code", "retryable", "incident"}
    assert "secret" not in str(failed.error)
    assert failed.error["data"]["incident"] in caplog.text
    assert (logging.ERROR, True) in [(record.levelno, record.exc_info is not None) for record in caplog.records]


async def test_a_right_that_is_missing_is_named(toys: Toys, wire: Wire) -> None:
    (connection,) = toys.dispatcher.connections.values()
    assert await wire.call("toys/forbid") is None
    connection.grant = Grant(None, frozenset({"read"}))
    failed = await refused(wire, "toys/forbid")
    assert (failed.name, failed.error["data"]["scope"]) == ("Forbidden", "secrets")


async def test_an_editor_reaches_every_method_through_a_command(wire: Wire) -> None:
    nested = {"jsonrpc": "2.0", "class": None}
    arguments = ["toys/create", {"id": "x", "value": nested}]
    created = await wire.call("workspace/executeCommand", {"command": "craft.call", "arguments": arguments})
    assert created["item"]["value"] == nested
    for arguments in ([], ["toys/get", {}, 1], [5], "toys/get"):
        failed = await refused(wire, "workspace/executeCommand", {"command": "craft.call", "arguments": arguments})
        assert failed.error["data"]["issues"][0]["path"] == "arguments"
    for inner in ("initialize", "shutdown", "workspace/executeCommand", "no/such"):
        failed = await refused(wire, "workspace/executeCommand", {"command": "craft.call", "arguments": [inner]})
        assert failed.code == -32601


async def test_the_workspace_may_be_left_out_only_when_there_is_one(toys: Toys, wire: Wire) -> None:
    await wire.call("toys/create", {"id": "x", "value": {}})
    assert [item["id"] for item in (await wire.call("toys/list", {"workspace": "a"}))["items"]] == ["x"]
    both = await toys.client({"workspaces": [{"id": "a"}, {"id": "b"}]})
    failed = await refused(both, "toys/list")
    assert failed.error["data"]["issues"][0]["path"] == "workspace"
    assert await both.call("toys/list", {"workspace": "b"}) == {"items": [], "epoch": "e", "revision": 0}


async def test_partial_results_come_before_an_answer_without_items(wire: Wire) -> None:
    await wire.call("toys/create", {"id": "x", "value": {}})
    answer = await wire.call("toys/list", {"partialResultToken": "p"})
    assert answer == {"items": [], "epoch": "e", "revision": 1}
    item = {"id": "x", "version": "v", "value": {}}
    assert wire.notifications("$/progress") == [{"token": "p", "value": {"items": [item]}}]


async def test_a_change_sent_again_with_its_key_is_not_made_again(toys: Toys, wire: Wire) -> None:
    params = {"value": {"n": 1}, "key": "k" * 16}
    first = wire.ask("toys/create", params)
    again = wire.ask("toys/create", params)
    assert (await wire.answer(first))["item"] == {"id": "t0", "version": "v", "value": {"n": 1}}
    assert await wire.answer(again) == {
        "item": {"id": "t0", "version": "later", "value": {"n": 1}}, "epoch": "e", "revision": 1,
    }  # fmt: skip
    assert toys.core.shelves["a"].log == ["create t0"]
    failed = await refused(wire, "toys/create", {"value": {"n": 2}, "key": "k" * 16})
    assert failed.error["data"]["reason"] == "keyReused"
    failed = await refused(wire, "toys/update", {"id": "t0", "patch": {}, "key": "k" * 16})
    assert failed.error["data"]["reason"] == "keyReused"


async def test_a_key_belongs_to_a_client_and_a_scope(toys: Toys, wire: Wire) -> None:
    params = {"value": {}, "key": "k" * 16}
    await wire.call("toys/create", params)
    await wire.call("toys/create", {**params, "workspace": "b"})
    other = await toys.client(clientInfo={"name": "other"})
    await other.call("toys/create", params)
    reconnected = await toys.client()
    await reconnected.call("toys/create", params)
    assert toys.core.shelves["a"].log == ["create t0", "create t1"]
    assert toys.core.shelves["b"].log == ["create t0"]


async def test_a_change_that_failed_may_be_tried_again_with_its_key(toys: Toys, wire: Wire) -> None:
    toys.core.gate("g").set()
    params = {"gate": "g", "key": "k" * 16}
    await refused(wire, "toys/slowly", {**params, "fail": True})
    assert (await wire.call("toys/slowly", params))["revision"] == 1


async def test_a_repeat_waits_for_the_first_even_if_its_client_has_gone(toys: Toys, wire: Wire) -> None:
    params = {"gate": "g", "key": "k" * 16}
    wire.ask("toys/slowly", params)
    await toys.core.shelves["a"].log.reached("begin g")
    await wire.close()
    again = await toys.client()
    repeat = again.ask("toys/slowly", params)
    again.ask("toys/slowly", {"gate": "h"})
    await toys.core.shelves["a"].log.reached("begin h")
    toys.core.gate("g").set()
    assert (await again.answer(repeat))["revision"] == 1
    assert toys.core.shelves["a"].log == ["begin g", "begin h", "end g"]


async def test_changes_are_refused_when_the_daemon_stops(toys: Toys, wire: Wire) -> None:
    toys.dispatcher.stopping = True
    failed = await refused(wire, "toys/create", {"value": {}})
    assert (failed.name, failed.error["data"]["retryable"]) == ("ServerCancelled", True)
    assert (await wire.call("toys/list"))["items"] == []


async def have_arrived(toys: Toys, requests: int) -> None:
    """Wait until so many requests of the only client are unanswered."""
    (connection,) = toys.dispatcher.connections.values()
    while len(connection.lifecycle.unanswered) < requests:  # noqa: ASYNC110 (nothing tells of them)
        await asyncio.sleep(0)


async def test_changes_begin_in_the_order_sent_while_their_scope_is_being_opened(toys: Toys, wire: Wire) -> None:
    opened: asyncio.Future[Shelf] = asyncio.get_running_loop().create_future()
    toys.core.shelves["c"] = opened
    shelf = Shelf("c", toys.core, Journal("c", "e"))
    ids = [wire.ask("toys/create", {"workspace": "c", "id": f"{n}", "value": {}}) for n in range(3)]
    read = wire.ask("toys/list", {"workspace": "c"})
    await have_arrived(toys, 4)
    toys.core.shelves["c"] = shelf
    opened.set_result(shelf)
    assert len((await wire.answer(read))["items"]) == 3
    assert shelf.log == ["create 0", "create 1", "create 2"]
    assert wire.order[-4:] == [*ids, read]


async def test_a_scope_that_cannot_be_opened_fails_its_requests_alone(toys: Toys, wire: Wire) -> None:
    opened: asyncio.Future[Shelf] = asyncio.get_running_loop().create_future()
    toys.core.shelves["c"] = opened
    change = wire.ask("toys/create", {"workspace": "c", "value": {}})
    after = wire.ask("toys/create", {"workspace": "a", "value": {}})
    await have_arrived(toys, 2)
    opened.set_exception(OSError("gone"))
    with pytest.raises(Failed, match="IoError"):
        await wire.answer(change)
    assert (await wire.answer(after))["revision"] == 1


async def test_a_notification_of_a_client_runs_its_handler_and_has_no_answer(toys: Toys, wire: Wire) -> None:
    wire.send("toys/look", {"what": "x"})
    wire.send("toys/look", {"what": 5})
    wire.send("toys/create", {"value": {}})
    wire.send("no/such", {})
    wire.send("$/setTrace", {"value": "off"})
    wire.send("textDocument/didOpen", {"wrong": True})
    await wire.call("toys/echo")
    assert toys.core.shelves["a"].log == ["look x"]
    assert [m for m in wire.received if "method" in m or m.get("id", 0) is None] == []


async def test_a_request_sent_without_an_id_does_nothing(toys: Toys, wire: Wire) -> None:
    arguments = ["toys/create", {"value": {}}]
    wire.send(COMMAND, {"command": "craft.call", "arguments": arguments})
    wire.send("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    await wire.call("toys/echo")
    assert (toys.core.shelves["a"].log, len(toys.core.wishes)) == ([], 1)


async def test_reports_of_changed_files_are_passed_on(toys: Toys, wire: Wire) -> None:
    uris = ("file:///shelves/a/x%20y.json", "untitled:z", "file://[")
    changes = [{"uri": uri, "type": 2} for uri in uris]
    wire.send("workspace/didChangeWatchedFiles", {"changes": changes})
    await wire.call("toys/echo")
    assert toys.core.hinted == ["/shelves/a/x y.json"]


async def test_a_change_must_be_a_coroutine_function() -> None:
    registry, handlers = Registry(), Handlers()

    @registry.method("toys/set", result=None, right="write")
    @frozen(kw_only=True)
    class Set(dispatch.contract.Mutation):
        pass

    @handlers.handles
    def set_(call: Call, params: dispatch.contract.Mutation) -> None:
        return None

    with pytest.raises(TypeError, match="coroutine"):
        Dispatcher(Core(), registry, handlers)
