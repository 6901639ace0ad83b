from __future__ import annotations

from typing import Any

import orjson
import pytest

from craftd.errors import InvalidRequest, NotInitialized, ParseError
from craftd.protocol.lifecycle import Ignored, Lifecycle, Notification, Phase, Refused, Reply, Request


def take(lifecycle: Lifecycle, **message: Any) -> Any:
    return lifecycle.receive(orjson.dumps({"jsonrpc": "2.0", **message}))


def ready() -> Lifecycle:
    lifecycle = Lifecycle()
    request = take(lifecycle, id=0, method="initialize")
    assert lifecycle.admit(request) is None
    lifecycle.started(succeeded=True)
    lifecycle.answered(request)
    return lifecycle


@pytest.mark.parametrize(
    ("body", "id_", "error"),
    [
        (b"{", None, ParseError),
        (b"\xff\xfe", None, ParseError),
        (b'[{"jsonrpc":"2.0","id":1,"method":"x/y"}]', None, InvalidRequest),
        (b"[]", None, InvalidRequest),
        (b"7", None, InvalidRequest),
        (b"{}", None, InvalidRequest),
        (b'{"jsonrpc":"2.0","id":1}', 1, InvalidRequest),
        (b'{"id":1,"method":"x/y"}', 1, InvalidRequest),
        (b'{"jsonrpc":"1.0","id":"a","method":"x/y"}', "a", InvalidRequest),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', 1, InvalidRequest),
        (b'{"jsonrpc":"2.0","id":null,"method":"x/y"}', None, InvalidRequest),
        (b'{"jsonrpc":"2.0","id":true,"method":"x/y"}', None, InvalidRequest),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"x/y"}', None, InvalidRequest),
        (b'{"jsonrpc":"2.0","id":{},"method":"x/y"}', None, InvalidRequest),
        (b'{"jsonrpc":"2.0","method":5}', None, InvalidRequest),
    ],
)
def test_whatever_is_no_request_is_refused_with_the_id_it_had(body: bytes, id_: Any, error: type) -> None:
    refused = ready().receive(body)
    assert isinstance(refused, Refused)
    assert (refused.id, type(refused.error)) == (id_, error)


def test_further_members_of_a_message_do_not_matter() -> None:
    request = take(ready(), id=3, method="labels/list", params={"jsonrpc": "2.0", "id": 1}, trace="abc")
    assert (request.id, request.method, request.params) == (3, "labels/list", {"jsonrpc": "2.0", "id": 1})


def test_absent_and_null_params_are_the_same() -> None:
    lifecycle = ready()
    assert take(lifecycle, id=3, method="a/b").params is None
    assert take(lifecycle, id=4, method="a/b", params=None).params is None


def test_an_id_in_flight_is_refused_and_free_again_after_its_answer() -> None:
    lifecycle = ready()
    first = take(lifecycle, id=1, method="a/b")
    assert isinstance(take(lifecycle, id=1, method="a/b"), Refused)
    assert isinstance(take(lifecycle, id="1", method="a/b"), Request)
    lifecycle.answered(first)
    assert isinstance(take(lifecycle, id=1, method="a/b"), Request)


def test_a_request_is_answered_once() -> None:
    lifecycle = ready()
    request = take(lifecycle, id=1, method="a/b")
    lifecycle.answered(request)
    with pytest.raises(KeyError):
        lifecycle.answered(request)


@pytest.mark.parametrize("early", ["daemon/hello", "daemon/stop"])
def test_before_initialize_only_a_few_requests_are_served(early: str) -> None:
    lifecycle = Lifecycle()
    assert isinstance(lifecycle.admit(take(lifecycle, id=1, method="labels/list")), NotInitialized)
    assert isinstance(lifecycle.admit(take(lifecycle, id=2, method="shutdown")), NotInitialized)
    assert lifecycle.admit(take(lifecycle, id=3, method=early)) is None
    assert isinstance(take(lifecycle, method="sessions/view"), Ignored)
    assert isinstance(take(lifecycle, method="exit"), Notification)


def test_a_second_initialize_is_refused_but_a_failed_one_may_be_repeated() -> None:
    lifecycle = Lifecycle()
    assert lifecycle.admit(take(lifecycle, id=1, method="initialize")) is None
    assert lifecycle.starting
    lifecycle.started(succeeded=False)
    assert lifecycle.admit(take(lifecycle, id=2, method="initialize")) is None
    lifecycle.started(succeeded=True)
    assert isinstance(lifecycle.admit(take(lifecycle, id=3, method="initialize")), InvalidRequest)


def test_after_shutdown_only_exit_is_left() -> None:
    lifecycle = ready()
    assert lifecycle.admit(take(lifecycle, id=1, method="shutdown")) is None
    assert lifecycle.phase is Phase.ENDING
    for id_, method in enumerate(("labels/list", "shutdown", "initialize", "daemon/hello"), start=2):
        assert isinstance(lifecycle.admit(take(lifecycle, id=id_, method=method)), InvalidRequest)
    assert isinstance(take(lifecycle, method="exit"), Notification)


def test_the_daemon_may_speak_after_initialized() -> None:
    lifecycle = Lifecycle()
    take(lifecycle, method="initialized")
    assert not lifecycle.initialized
    lifecycle.admit(take(lifecycle, id=1, method="initialize"))
    take(lifecycle, method="initialized", params={})
    assert lifecycle.initialized


def test_a_reply_keeps_whatever_is_in_it() -> None:
    reply = take(ready(), id=1, result={"jsonrpc": "2.0", "id": 5, "method": "x", "params": {"class": None}})
    assert isinstance(reply, Reply)
    assert reply.result == {"jsonrpc": "2.0", "id": 5, "method": "x", "params": {"class": None}}
