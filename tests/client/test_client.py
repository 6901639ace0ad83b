"""Calls, failures and the connection that comes back: on a real daemon, and on a scripted one what that never does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.client import CallFailed, Changed, Client, ConnectionLost, NotReached, connect, download, launch, upload
from craftd.client.errors import (
    NotFound,
    TooLarge,
    Unauthenticated,
    ValidationFailed,
    VersionConflict,
)
from craftd.protocol import rendezvous
from craftd.protocol.rendezvous import Places
from tests.client.proxy import Proxy
from tests.client.scripted import Message, Scripted
from tests.daemon import Daemon
from tests.wire import PATIENCE


@pytest.fixture(autouse=True)
async def in_time() -> AsyncIterator[None]:
    async with asyncio.timeout(2 * PATIENCE):
        yield


@pytest.fixture
async def proxy(daemon: Daemon) -> AsyncIterator[Proxy]:
    """A way to the daemon, which runs."""
    daemon.start()
    async with Proxy(daemon.base / "proxy", lambda: socket_of(daemon)) as proxy:
        yield proxy


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[Client]:
    async with connect(proxy.url, workspaces=["ws"]) as client:
        yield client


@pytest.fixture
async def witness(daemon: Daemon, client: Client) -> AsyncIterator[Client]:
    """A client that nothing stands in the way of."""
    async with connect(daemon.url(), workspaces=["ws"]) as witness:
        yield witness


@pytest.mark.parametrize("kind", ["tcp", "ws"])
async def test_certificates_are_checked_and_then_it_is_a_connection_like_any_other(daemon: Daemon, kind: str) -> None:
    tls = Path(__file__).parents[1] / "tls"
    daemon.start(f"--{kind}", "127.0.0.1:0", "--tls-cert", f"{tls}/cert.pem", "--tls-key", f"{tls}/key.pem")
    url, token = daemon.url(kind), daemon.token
    assert url.startswith(f"{kind}s://")
    with pytest.raises(NotReached, match="certificate"):
        await connect(url, token=token)
    trusting = ssl.create_default_context(cafile=f"{tls}/cert.pem")
    async with connect(url, token=token, tls=trusting, workspaces=["ws"]) as client, client.subscribe("ws") as events:
        made = await client.sessions.create(value={"name": "Over TLS"})
        assert (await anext(events))["params"]["item"]["id"] == made["item"]["id"]


def socket_of(daemon: Daemon) -> str | None:
    card = rendezvous.read_card(daemon.places)
    return None if card is None else card.socket


def message(id: str, content: str = "text") -> dict[str, Any]:
    return {"id": id, "type": "user", "content": content}


async def lose_answer(proxy: Proxy, witness: Client, change: Any, event: str) -> asyncio.Task[Any]:
    """Begin *change*; when its *event* shows that it was made, cut the connection before the answer comes through."""
    async with witness.subscribe("ws") as events:
        proxy.flowing.clear()
        task = asyncio.ensure_future(change)
        async for one in events:
            if isinstance(one, dict) and one["method"] == event:
                break
    return task


# Calls and their failures


async def test_calls_have_python_names_and_their_answers_are_the_json_as_sent(client: Client) -> None:
    made = await client.sessions.create(id="s-1", value={"name": "One"})
    got = await client.sessions.get(id="s-1", fields=["name"])
    assert got["item"]["value"] == {"name": "One"}
    version = made["item"]["version"]
    done = await client.sessions.update(id="s-1", expected_version=version, patch={"set": {"isFlagged": True}})
    assert done["changed"] is True
    assert await client.sessions.delete(id="gone", missing_ok=True) == {
        "epoch": done["epoch"], "revision": done["revision"], "children": [], "branches": [],
    }  # fmt: skip
    assert await client.call("sessions/get", {"id": "s-1", "fields": ["name"], "workspace": None}) == {
        **got, "item": {**got["item"], "version": done["item"]["version"]}, "revision": done["revision"],
    }  # fmt: skip


async def test_failures_are_classes_with_what_the_daemon_says(client: Client) -> None:
    with pytest.raises(NotFound) as missing:
        await client.sessions.get(id="s-1")
    assert missing.value.resource == {"noun": "sessions", "id": "s-1", "workspace": "ws"}
    assert (missing.value.code, missing.value.retryable) == (1001, False)
    made = await client.sessions.create(id="s-1", value={"name": "One"})
    with pytest.raises(VersionConflict) as conflict:
        await client.sessions.update(id="s-1", expected_version="0" * 16, patch={"set": {"name": "Two"}})
    assert conflict.value.current["version"] == made["item"]["version"]
    assert conflict.value.retryable
    with pytest.raises(ValidationFailed) as wrong:
        await client.sessions.update(id="s-1", patch={"set": {"isFlagged": "yes"}})
    assert wrong.value.issues[0]["path"] == "isFlagged"
    with pytest.raises(AttributeError):
        _ = wrong.value.current  # type: ignore[attr-defined]


async def test_all_pages_are_one_iterator(client: Client) -> None:
    for number in range(5):
        await client.labels.create(id=f"label-{number}", value={"name": str(number)})
    found = [item["id"] async for item in client.labels.iterate(limit=2)]
    assert len(found) == len(set(found))
    assert {f"label-{number}" for number in range(5)} < {*found}


async def test_what_is_no_json_is_refused_before_it_is_sent(client: Client) -> None:
    with pytest.raises(ValueError, match="JSON"):
        await client.sessions.create(value={"name": float("nan")})
    assert (await client.sessions.list())["items"] == []


async def test_a_message_that_is_too_large_is_that_and_the_client_goes_on(client: Client) -> None:
    with pytest.raises(TooLarge):
        await client.sessions.create(value={"name": "x" * (17 << 20)})
    assert (await client.sessions.list())["items"] == []


async def test_a_large_file_goes_in_and_comes_out_in_pieces(client: Client, daemon: Daemon, tmp_path: Path) -> None:
    data = os.urandom(2_500_000)
    (tmp_path / "plan.pdf").write_bytes(data)
    for source in (data, tmp_path / "plan.pdf"):
        await client.files.write(workspace="ws", path="plan.pdf", content=await upload(client, source))
        assert (daemon.base / "ws" / "plan.pdf").read_bytes() == data
    pieces = [piece async for piece in download(client, workspace="ws", path="plan.pdf")]
    assert len(pieces) > 2
    assert b"".join(pieces) == data
    await client.files.write(workspace="ws", path="empty", content={"text": ""})
    assert [piece async for piece in download(client, workspace="ws", path="empty")] == []
    reading = download(client, workspace="ws", path="plan.pdf")
    await anext(reading)
    (daemon.base / "ws" / "plan.pdf").write_bytes(data + b"more")
    with pytest.raises(Changed):
        await anext(reading)


async def test_whoever_stops_waiting_takes_the_request_back(tmp_path: Path) -> None:
    async with Scripted(tmp_path / "s", lambda heard: []) as daemon, connect(daemon.url) as client:
        call = asyncio.create_task(client.daemon.sync(workspace="ws"))
        asked = await daemon.hear("daemon/sync")
        call.cancel()
        assert (await daemon.hear("$/cancelRequest"))["params"] == {"id": asked["id"]}


async def test_an_answer_to_what_was_taken_back_is_nobodys(tmp_path: Path) -> None:
    def answer(heard: Message) -> list[Message | bytes | None]:
        if heard["method"] == "$/cancelRequest":
            return [{"id": heard["params"]["id"], "result": "late"}]
        return [{"id": heard["id"], "result": "mine"}] if heard["method"] == "second" else []

    async with Scripted(tmp_path / "s", answer) as daemon, connect(daemon.url) as client:
        first = asyncio.create_task(client.call("first"))
        await daemon.hear("first")
        first.cancel()
        assert await client.call("second") == "mine"


async def test_reports_of_work_and_parts_of_results_come_before_the_result(tmp_path: Path) -> None:
    def answer(heard: Message) -> list[Message | bytes | None]:
        params = heard["params"]
        report = {"token": params["workDoneToken"], "value": {"kind": "report", "percentage": 50}}
        part = {"token": params["partialResultToken"], "value": {"items": [1]}}
        other = {"token": "nobody's", "value": 0}
        told: list[Message | bytes | None] = [
            {"method": "$/progress", "params": each} for each in (report, other, part)
        ]
        return [*told, {"id": heard["id"], "result": {"items": []}}]

    told: list[Any] = []
    async with Scripted(tmp_path / "s", answer) as daemon, connect(daemon.url) as client:
        await client.sessions.list(on_progress=told.append, on_part=told.append)
    assert told == [{"kind": "report", "percentage": 50}, {"items": [1]}]


async def test_a_callback_that_fails_harms_neither_the_call_nor_the_connection(tmp_path: Path) -> None:
    def answer(heard: Message) -> list[Message | bytes | None]:
        report = {"token": heard["params"].get("workDoneToken"), "value": {"kind": "report"}}
        return [{"method": "$/progress", "params": report}, {"id": heard["id"], "result": "done"}]

    def fail(what: Any) -> None:
        raise RuntimeError(what)

    failures: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failures.append(context["exception"]))
    async with Scripted(tmp_path / "s", answer) as daemon, connect(daemon.url, reconnect=False) as client:
        assert await client.call("work", on_progress=fail) == "done"
        with pytest.raises(RuntimeError):
            await client.call("work", then=fail)
        assert await client.call("work") == "done"
    assert len(failures) == 1


async def test_the_daemons_own_requests_are_answered(tmp_path: Path) -> None:
    def answer(heard: Message) -> list[Message | bytes | None]:
        if heard.get("method") == "begin":
            return [{"id": n, "method": method} for n, method in enumerate(asked)]
        return [{"id": 1, "result": "done"}] if heard.get("id") == 2 and "method" not in heard else []

    asked = ["client/registerCapability", "window/workDoneProgress/create", "workspace/applyEdit"]
    async with Scripted(tmp_path / "s", answer) as daemon, connect(daemon.url) as client:
        task = asyncio.create_task(client.call("begin"))
        while len(daemon.heard) < 4:
            daemon.news.clear()
            await daemon.news.wait()
        first, second, third = daemon.heard[1:]
        assert first == {"jsonrpc": "2.0", "id": 0, "result": None}
        assert second == {"jsonrpc": "2.0", "id": 1, "result": None}
        assert third["error"]["code"] == -32601
        task.cancel()


async def test_a_failure_without_a_class_is_a_failure_all_the_same(tmp_path: Path) -> None:
    error = {"code": 4711, "message": "no coffee", "data": {"code": "OutOfCoffee", "retryable": True}}
    async with (
        Scripted(tmp_path / "s", lambda heard: [{"id": heard["id"], "error": error}]) as daemon,
        connect(daemon.url) as client,
    ):
        with pytest.raises(CallFailed, match="no coffee") as failed:
            await client.call("coffee/make")
        assert (failed.value.code, failed.value.name, failed.value.retryable) == (4711, "OutOfCoffee", True)


async def test_what_could_not_be_read_is_the_failure_of_the_one_that_waits(tmp_path: Path) -> None:
    error = {"code": -32700, "message": "nested too deeply", "data": {"code": "ParseError"}}
    async with (
        Scripted(tmp_path / "s", lambda heard: [{"id": None, "error": error}]) as daemon,
        connect(daemon.url) as client,
    ):
        with pytest.raises(CallFailed, match="nested too deeply"):
            await client.call("deep")


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 200 OK\r\n\r\n", b"Content-Length: 5\r\n\r\n{]...", b"Content-Length: 2\r\n\r\n[]"]
)
async def test_what_is_no_protocol_ends_the_connection(tmp_path: Path, said: bytes) -> None:
    async with Scripted(tmp_path / "s", lambda heard: [said]) as daemon, connect(daemon.url, reconnect=False) as client:
        with pytest.raises(ConnectionLost):
            await client.call("anything")


# The connection


async def test_what_was_only_read_is_asked_again(proxy: Proxy, client: Client) -> None:
    told: list[bool] = []
    async with connect(proxy.url, workspaces=["ws"], on_connection=told.append) as other:
        proxy.flowing.clear()
        reading = asyncio.create_task(other.sessions.list())
        await client_is_heard(proxy)
        proxy.cut()
        proxy.flowing.set()
        assert (await reading)["items"] == []
    assert told == [False, True]


async def client_is_heard(proxy: Proxy) -> None:
    """Let what was sent reach the daemon."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_change_whose_answer_is_lost_is_made_once(proxy: Proxy, client: Client, witness: Client) -> None:
    task = await lose_answer(proxy, witness, client.sessions.create(value={"name": "Once"}), "sessions/didCreate")
    proxy.cut()
    proxy.flowing.set()
    made = await task
    listed = await witness.sessions.list()
    assert [item["id"] for item in listed["items"]] == [made["item"]["id"]]


async def test_whether_another_daemon_made_a_change_is_not_known(
    daemon: Daemon, proxy: Proxy, client: Client, witness: Client
) -> None:
    task = await lose_answer(proxy, witness, client.sessions.create(value={"name": "Once"}), "sessions/didCreate")
    await asyncio.to_thread(daemon.kill)
    proxy.cut()
    proxy.flowing.set()
    await asyncio.to_thread(daemon.start)
    with pytest.raises(ConnectionLost) as lost:
        await task
    assert lost.value.maybe_done
    assert len((await witness.sessions.list())["items"]) == 1


async def test_messages_with_ids_are_appended_once_whoever_is_asked(
    daemon: Daemon, proxy: Proxy, client: Client, witness: Client
) -> None:
    await client.sessions.create(id="s-1", value={"name": "One"})
    append = client.messages.append(session="s-1", messages=[message("m1")])
    task = await lose_answer(proxy, witness, append, "messages/didAppend")
    await asyncio.to_thread(daemon.kill)
    proxy.cut()
    proxy.flowing.set()
    await asyncio.to_thread(daemon.start)
    await task
    assert [item["id"] async for item in witness.messages.iterate(session="s-1")] == ["m1"]


async def test_without_reconnecting_the_end_is_the_end(proxy: Proxy) -> None:
    async with connect(proxy.url, reconnect=False) as client:
        proxy.cut()
        for _ in range(2):
            with pytest.raises(ConnectionLost):
                await client.daemon.status()


async def test_nobody_waits_for_ever_for_a_connection(proxy: Proxy) -> None:
    lost = asyncio.Event()
    async with connect(proxy.url, patience=0.2, on_connection=lambda there: lost.set()) as client:
        proxy.open = False
        proxy.cut()
        await lost.wait()
        with pytest.raises(ConnectionLost, match="no connection for"):
            await client.daemon.status()
        proxy.open = True
        while not client.connected:
            with contextlib.suppress(ConnectionLost):  # it goes on trying
                await client.daemon.status()


async def test_a_client_that_nobody_needs_does_not_connect_again(proxy: Proxy) -> None:
    lost = asyncio.Event()
    async with connect(proxy.url, on_connection=lambda there: None if there else lost.set()) as client:
        before = proxy.connections
        proxy.cut()
        await lost.wait()
        assert proxy.connections == before
        await client.daemon.status()
        assert proxy.connections == before + 1


async def test_calls_fail_when_the_client_is_closed(client: Client) -> None:
    waiting = asyncio.create_task(client.events.read(since={"epoch": "", "revision": 0}, wait_ms=60_000))
    await client.close()
    with pytest.raises((ConnectionLost, CallFailed)):
        await waiting
    with pytest.raises(ConnectionLost):
        await client.sessions.list()


# Ways in


@pytest.mark.parametrize("kind", ["unix", "tcp", "ws"])
async def test_every_way_in_leads_to_the_same(daemon: Daemon, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """On this machine the token is found in the configuration folder."""
    daemon.start("--tcp", "127.0.0.1:0", "--ws", "127.0.0.1:0")
    monkeypatch.setenv("CRAFT_CONFIG_DIR", str(daemon.config))
    async with connect(daemon.url(kind), workspaces=["ws"]) as client, client.subscribe("ws") as events:
        await client.sessions.create(id="s-1", value={"name": "é \ud800" + "x" * 200_000})
        told = {event["method"] for event in events.arrived() if isinstance(event, dict)}
        assert told == {"issues/didChange", "sessions/didCreate"}  # the app lists no session with such a line 1
        got = await client.sessions.get(id="s-1")
        assert got["item"]["value"]["name"].startswith("é \ud800x")


@pytest.mark.parametrize("kind", ["tcp", "ws"])
async def test_a_wrong_token_is_refused(daemon: Daemon, kind: str) -> None:
    daemon.start("--tcp", "127.0.0.1:0", "--ws", "127.0.0.1:0")
    with pytest.raises((Unauthenticated, NotReached), match=r"token|401"):
        await connect(daemon.url(kind), token="x" * 43)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "tcp://127.0.0.1", "127.0.0.1:4711"])
async def test_what_is_no_address_of_a_daemon_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="none of unix:/path"):
        await connect(url)


@pytest.mark.parametrize("url", ["unix:/nowhere/sock", "tcp://127.0.0.1:1", "ws://127.0.0.1:1"])
async def test_a_daemon_that_is_not_there_is_not_reached(url: str) -> None:
    with pytest.raises(NotReached):
        await connect(url)


# The daemon of the configuration folder


@pytest.fixture
def at_home(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """Whoever names no address means *daemon*'s folder; what is started there is ended."""
    for name in ("CRAFT_CONFIG_DIR", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, daemon.environment[name])
    yield daemon.places
    card = rendezvous.read_card(daemon.places)
    if card is not None and daemon.process is None:
        os.kill(card.pid, signal.SIGKILL)


async def test_a_daemon_is_found_or_started(at_home: Places) -> None:
    with pytest.raises(NotReached, match="no daemon is running"):
        await connect(start=False)
    async with connect(workspaces=["ws"]) as client, connect(start=False) as other:
        assert client.hello["pid"] == other.hello["pid"]
        assert client.hello["configDir"] == at_home.config
        assert client.welcome["workspaces"][0]["id"] == "ws"


async def test_a_daemon_that_was_killed_is_started_again(at_home: Places) -> None:
    async with connect(workspaces=["ws"]) as client:
        before = client.hello["pid"]
        os.kill(before, signal.SIGKILL)
        await client.sessions.list()
        assert client.hello["pid"] != before


def wait_for_end(link: launch.Link, places: Places) -> None:
    link.wait_for_end()
    link.close()
    while rendezvous.is_held(places):
        time.sleep(0.01)


async def test_a_daemon_that_was_told_to_stop_is_waited_for(daemon: Daemon, at_home: Places) -> None:
    async with connect(workspaces=["ws"]) as client, client.subscribe("ws") as events:
        link = launch.greet(at_home, "a test")
        assert link is not None
        link.ask("daemon/stop")
        await asyncio.to_thread(wait_for_end, link, at_home)
        daemon.start()  # which cannot be if somebody else has started one
        assert daemon.process is not None
        async for event in events:
            if not isinstance(event, dict):
                break
        assert client.hello["pid"] == daemon.process.pid
