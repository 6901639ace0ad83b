"""Partial results of every list, and progress of what takes long."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from craftd.model import json_text
from craftd.protocol import methods as _complete_registry  # noqa: F401
from craftd.protocol.framing import encode
from craftd.protocol.registry import METHODS
from craftd.workspace import foreign
from tests.daemon import Daemon
from tests.faults.served import WORK, Served
from tests.wire import PATIENCE, Failed, Wire

LISTS = sorted(
    name for name, row in METHODS.items() if row.verb == "list" and hasattr(row.params, "partial_result_token")
)
SESSION = "260704-quiet-fjord"


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    root = daemon.base / "ws"
    (root / "docs").mkdir(parents=True)
    for number in range(300):
        (root / "docs" / f"{number:03}-{'x' * 200}.txt").touch()
    daemon.register(ws=root)
    daemon.start()
    return daemon


@pytest.fixture
async def client(daemon: Daemon) -> AsyncIterator[Wire]:
    client = await daemon.connect("ws")
    yield client
    await client.close()


def told(client: Wire, token: Any) -> list[Any]:
    return [params["value"] for params in client.notifications("$/progress") if params["token"] == token]


def test_every_list_can_be_told_in_parts() -> None:
    few = {"tokens/list"}
    assert {name for name, row in METHODS.items() if row.verb == "list"} - few == set(LISTS)


@pytest.mark.parametrize("method", LISTS)
async def test_the_parts_are_the_page(client: Wire, method: str) -> None:
    params: dict[str, Any] = {}
    if method == "messages/list":
        await client.call("sessions/create", {"id": SESSION, "value": {}}) if not await known(client) else None
        messages = [{"id": f"m{n}", "type": "user", "content": "y" * 20_000} for n in range(20)]
        await client.call("messages/append", {"session": SESSION, "messages": messages})
        params = {"session": SESSION}
    elif method == "files/list":
        params = {"path": "docs", "limit": 500}
    elif method == "assets/list":
        project = (await client.call("projects/create", {"value": {"name": "Garden"}}))["item"]["id"]
        params = {"project": project}
        await client.call("assets/create", {**params, "value": {"name": "plan.md"}, "content": {"text": "x"}})
    elif method in ("plans/list", "attachments/list"):
        await client.call("sessions/create", {"id": SESSION, "value": {}}) if not await known(client) else None
        params = {"session": SESSION}
        await client.call("plans/create", {**params, "value": {"title": "Plan"}})
        attachment = {"value": {"name": "plan.md"}, "content": {"text": "x"}}
        await client.call("attachments/create", {**params, **attachment})
    elif method == "drafts/list":
        await client.call("sessions/create", {"id": SESSION, "value": {}}) if not await known(client) else None
        await client.call("drafts/update", {"session": SESSION, "text": "half a"})
    whole = await client.call(method, params)
    answer = await client.call(method, {**params, "partialResultToken": 7})
    parts = told(client, 7)
    assert [item for part in parts for item in part["items"]] == whole["items"]
    assert answer == {**whole, "items": []}
    assert all(part["items"] and list(part) == ["items"] for part in parts)
    if method in ("messages/list", "files/list"):
        assert len(parts) > 1
        assert all(len(str(part)) < 100_000 for part in parts)
    assert client.order[-1 - len(parts) :] == ["$/progress"] * len(parts) + [client.received[-1]["id"]]


async def known(client: Wire) -> bool:
    page = await client.call("sessions/list")
    return any(item["id"] == SESSION for item in page["items"])


async def test_the_next_page_is_told_of_in_the_answer(client: Wire) -> None:
    seen: list[str] = []
    cursor: dict[str, str] = {}
    for token in ("a", "b", "c"):
        params = {"path": "docs", "limit": 120, "partialResultToken": token, **cursor}
        answer = await client.call("files/list", params)
        seen += [item["value"]["name"][:3] for part in told(client, token) for item in part["items"]]
        cursor = {"cursor": answer["nextCursor"]} if "nextCursor" in answer else {}
    assert seen == [f"{number:03}" for number in range(300)]
    assert cursor == {}


async def test_events_of_earlier_changes_come_before_the_parts(client: Wire) -> None:
    await client.call("events/subscribe", {"workspace": "ws", "topics": ["labels"]})
    client.received.clear()
    made = client.ask("labels/create", {"value": {"name": "One"}})
    listed = client.ask("labels/list", {"partialResultToken": "p"})
    await client.answer(listed)
    assert client.order == ["labels/didCreate", made, "$/progress", listed]


async def test_making_a_workspace_begins_and_ends(client: Wire, daemon: Daemon) -> None:
    path = daemon.base / "new"
    params = {"value": {"name": "Notes", "path": str(path)}, "workDoneToken": "w"}
    await client.call("workspaces/create", params)
    assert [one["kind"] for one in told(client, "w")] == ["begin", "end"]
    assert told(client, "w")[0]["title"] == "Making workspace Notes"
    with pytest.raises(Failed, match="AlreadyExists"):
        await client.call("workspaces/create", {**params, "workDoneToken": "again"})
    assert [one["kind"] for one in told(client, "again")] in ([], ["begin", "end"])
    await client.call("workspaces/create", {"value": {"name": "Silent"}})
    assert {params["token"] for params in client.notifications("$/progress")} <= {"w", "again"}


async def test_what_is_cancelled_while_it_waits_ends_too(client: Wire, daemon: Daemon) -> None:
    """Changes of one connection wait for a large one of theirs; the one behind it is taken back."""
    large = {"path": "large.bin", "content": {"text": "x" * 8_000_000}}
    first = client.ask("files/write", large)
    second = client.ask("files/write", {"path": "small.txt", "content": {"text": "x"}})
    client.send("$/cancelRequest", {"id": second})
    await client.answer(first)
    with pytest.raises(Failed, match="Cancelled"):
        await client.answer(second)
    assert not Path(daemon.base, "ws", "small.txt").exists()


async def test_the_first_reading_of_a_workspace_is_shown_to_who_can_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, go = foreign.verified, threading.Event()
    monkeypatch.setattr(foreign, "VERIFY_AT_ONCE", -1)
    monkeypatch.setattr(foreign, "verified", lambda row: (go.wait(PATIENCE), read(row))[1])
    with tempfile.TemporaryDirectory(prefix="craftd-", dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        async with Served.start(tmp_path) as served:
            assert served.daemon.socket is not None
            clients = [await Wire.connect(served.daemon.socket) for _ in range(3)]
            able = {"capabilities": {"window": {"workDoneProgress": True}}}
            for client, more in zip(clients, (able, able, {}), strict=True):
                await client.initialize({"workspaces": [{"id": WORK}]}, **more)
            shows, refuses, cannot = clients
            for client, reply in ((shows, {"result": None}), (refuses, {"error": {"code": -32603, "message": "no"}})):
                asked = await client.wait(lambda m: m.get("method") == "window/workDoneProgress/create")
                client.raw(encode(json_text.dumps({"jsonrpc": "2.0", "id": asked["id"], **reply})))
            begin = await shows.notified("$/progress")
            assert begin == {"token": "reading-0", "value": {"kind": "begin", "title": "Reading Work", "percentage": 0}}
            go.set()
            await shows.wait(lambda m: m.get("params", {}).get("value") == {"kind": "end"})
            for client in (refuses, cannot):
                await client.call("daemon/sync", {"workspace": WORK})
                assert client.notifications("$/progress") == []
            assert not any(m.get("method") == "window/workDoneProgress/create" for m in cannot.received)
            for client in clients:
                await client.close()
