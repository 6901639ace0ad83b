"""Listing sessions: it never takes a file away, waits for nobody's save, and reads what changed once."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.daemon import Daemon
from tests.model import golden
from tests.wire import Wire

Connect = Callable[..., Awaitable[Wire]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("listing") / "ws"
    for session in ("260302-calm-cedar", "260407-left-tmp", "260408-tmp-only", "260410-null-lines"):
        shutil.copytree(golden.FOLDERS / session, root / "sessions" / session)
    return root


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon], root: Path) -> Daemon:
    daemon = make_daemon(home=golden.HOME)
    daemon.register(ws=root)
    daemon.start()
    return daemon


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, "ws")


async def test_listing_takes_no_temporary_file_away(client: Wire, root: Path) -> None:
    for _ in range(3):
        await client.call("sessions/list", {"limit": 500})
        await client.call("daemon/sync", {"workspace": "ws"})
    for session in ("260407-left-tmp", "260408-tmp-only"):
        tmp = "session.jsonl.tmp"
        assert (root / "sessions" / session / tmp).read_bytes() == (golden.FOLDERS / session / tmp).read_bytes()


async def test_listing_in_a_loop_loses_no_save_of_ours_or_of_another_program(
    client: Wire, daemon: Daemon, connect: Connect, root: Path
) -> None:
    """Two MB, as the app saves: `.tmp` beside, the old file away, then the name."""
    other = await connect(daemon, "ws")
    big = {"id": "m1", "type": "user", "content": "x" * 2_000_000, "timestamp": 1}
    await client.call("sessions/create", {"id": "ours", "value": {"name": "Ours"}})
    await client.call("messages/append", {"session": "ours", "messages": [big]})
    (theirs := root / "sessions" / "theirs").mkdir()
    header = {"id": "theirs", "createdAt": 1, "name": "Theirs 0"}
    body = json.dumps(big).encode() + b"\n"
    (theirs / "session.jsonl").write_bytes(json.dumps(header).encode() + b"\n" + body)
    await client.call("daemon/sync", {"workspace": "ws"})
    stop = asyncio.Event()
    listed = 0

    async def list_them() -> None:
        nonlocal listed
        while not stop.is_set():
            page = await other.call("sessions/list", {"limit": 500})
            assert {"ours", "theirs"} <= {item["id"] for item in page["items"]}
            listed += 1

    async with asyncio.TaskGroup() as group:
        group.create_task(list_them())
        for number in range(1, 11):
            await client.call("sessions/update", {"id": "ours", "patch": {"set": {"name": f"Ours {number}"}}})
            text = json.dumps({**header, "name": f"Theirs {number}"}).encode() + b"\n" + body
            (theirs / "session.jsonl.tmp").write_bytes(text)
            (theirs / "session.jsonl").unlink()
            os.rename(theirs / "session.jsonl.tmp", theirs / "session.jsonl")
        await client.call("daemon/sync", {"workspace": "ws"})
        stop.set()
    assert listed
    for session, name in (("ours", "Ours 10"), ("theirs", "Theirs 10")):
        item = await client.call("sessions/get", {"id": session, "messages": 1})
        assert item["item"]["value"]["name"] == name
        assert len(item["messages"][0]["value"]["content"]) == 2_000_000
        first = (root / "sessions" / session / "session.jsonl").read_bytes().split(b"\n")[0]
        assert json.loads(first)["name"] == name


async def test_what_is_no_message_before_the_first_word_of_a_user_stops_no_save(client: Wire, root: Path) -> None:
    path = root / "sessions" / "null-first" / "session.jsonl"
    path.parent.mkdir()
    word = {"id": "m1", "type": "user", "content": "hello", "timestamp": 1}
    lines = [json.dumps({"id": "null-first", "createdAt": 1}).encode(), b"null", b"42", json.dumps(word).encode(), b""]
    path.write_bytes(b"\n".join(lines))
    await client.call("daemon/sync", {"workspace": "ws"})
    item = (await client.call("sessions/get", {"id": "null-first"}))["item"]
    assert [one["code"] for one in item["info"]["damage"]] == ["line-unreadable"] * 2
    assert (item["value"]["messageCount"], item["value"]["preview"]) == (1, "hello")
    await client.call("sessions/update", {"id": "null-first", "patch": {"set": {"name": "New"}}})
    assert path.read_bytes().split(b"\n")[1:] == lines[1:]
    assert json.loads(path.read_bytes().split(b"\n")[0])["preview"] == "hello"
