"""Things in a workspace that are no files: none of them keeps anybody from working with the rest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.daemon import Daemon
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

ODD: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "circle": lambda path: path.symlink_to(path.name),
}


def make_workspace(root: Path) -> Path:
    (root / "sessions" / "good").mkdir(parents=True)
    (root / "sessions" / "good" / "session.jsonl").write_text('{"id":"good","createdAt":1,"lastUsedAt":1}\n')
    (root / "config.json").write_text('{"id": "ws_0000000a", "name": "Odd"}')
    return root


def make_odd(root: Path) -> None:
    """A thing of every kind where a file of every kind should be."""
    for kind, make in ODD.items():
        for place in (f"sessions/{kind}/session.jsonl", f"projects/{kind}/config.json", f"sources/{kind}/config.json"):
            (root / place).parent.mkdir(parents=True)
            make(root / place)
        (root / "skills" / kind).mkdir(parents=True)
        make(root / "skills" / kind / "SKILL.md")
        (root / "sessions" / f"{kind}-left").mkdir()
        make(root / "sessions" / f"{kind}-left" / "session.jsonl.tmp")
    for noun in ("labels", "statuses"):
        (root / noun).mkdir(exist_ok=True)
        os.mkfifo(root / noun / "config.json")
    names = (b"sessions/\xff", b"skills/\xff", b"projects/\xff", b"sources/\xff", b"skills/new\nline")
    for name in names:
        os.mkdir(os.fsencode(root) + b"/" + name)


async def works(client: Wire) -> None:
    """The rest of the workspace is there and can be changed."""
    made = await client.call("sessions/create", {"value": {"name": "New"}})
    await client.call("messages/append", {"session": "good", "messages": [{"type": "user", "content": "x"}]})
    await client.call("sessions/delete", {"id": made["item"]["id"]})
    await client.call("projects/create", {"value": {"name": "New"}})
    for noun in ("labels", "statuses"):
        assert (await client.call(f"{noun}/list"))["total"] > 0  # those of the app, or the last good ones
        with pytest.raises(Failed) as failed:
            await client.call(f"{noun}/create", {"value": {"name": "New"}})
        assert failed.value.name == "Corrupt"
    await client.call("daemon/sync", {"workspace": "ws"})


@pytest.mark.parametrize("when", ["before", "while"])
async def test_what_is_no_file_is_told_and_keeps_nobody_waiting(
    make_daemon: Callable[..., Daemon], connect: Connect, when: str
) -> None:
    daemon = make_daemon()
    root = make_workspace(daemon.base / "ws")
    daemon.register(ws=root)
    if when == "before":
        make_odd(root)
    daemon.start()
    client = await connect(daemon, "ws")
    if when == "while":
        make_odd(root)
        await client.call("daemon/sync", {"workspace": "ws"})
    await works(client)
    listed = {item["id"]: item for item in (await client.call("sessions/list"))["items"]}
    assert set(listed) == {"good", *ODD}
    issues = (await client.call("issues/list", {"workspace": "ws"}))["items"]
    for kind in ODD:
        [damage] = listed[kind]["info"]["damage"]
        assert damage["code"] == "header-unreadable"
        assert kind in [issue.get("id") for issue in issues if issue["path"] == f"sessions/{kind}/session.jsonl"]
        for method, params in (
            ("messages/list", {"session": kind}),
            ("messages/append", {"session": kind, "messages": [{"type": "user", "content": "x"}]}),
            ("sessions/update", {"id": kind, "patch": {"set": {"name": "x"}}}),
        ):
            with pytest.raises(Failed) as failed:
                await client.call(method, params)
            assert failed.value.name == "Corrupt"
    # They can be got rid of.
    await client.call("sessions/delete", {"id": "pipe"})
    assert not (root / "sessions" / "pipe").exists()
    assert daemon.stop() == 0


async def test_a_room_that_leads_in_a_circle_loses_nothing(
    make_daemon: Callable[..., Daemon], connect: Connect
) -> None:
    daemon = make_daemon()
    root = make_workspace(daemon.base / "ws")
    daemon.register(ws=root)
    daemon.start()
    client = await connect(daemon, "ws")
    await client.call("events/subscribe", {"workspace": "ws"})
    sessions = root / "sessions"
    sessions.rename(root / "aside")
    sessions.symlink_to("sessions")
    with pytest.raises(Failed) as failed:
        await client.call("daemon/sync", {"workspace": "ws"})
    assert (failed.value.name, failed.value.error["data"]["errno"]) == ("IoError", "ELOOP")
    assert (await client.call("sessions/list"))["total"] == 1  # what cannot be looked at is not gone
    sessions.unlink()
    (root / "aside").rename(sessions)
    await client.call("daemon/sync", {"workspace": "ws"})
    await client.call("messages/append", {"session": "good", "messages": [{"type": "user", "content": "x"}]})
    assert not client.notifications("sessions/didDelete")


@pytest.mark.parametrize("kind", ODD)
async def test_a_configuration_that_is_no_file_is_told_and_left(
    make_daemon: Callable[..., Daemon], connect: Connect, kind: str
) -> None:
    daemon = make_daemon()
    root = make_workspace(daemon.base / "ws")
    daemon.register(ws=root)
    (root / "config.json").unlink()
    ODD[kind](root / "config.json")
    daemon.start()
    client = await connect(daemon, "ws")
    assert (await client.call("sessions/list"))["total"] == 1
    [item] = (await client.call("workspaces/list"))["items"]
    assert item["info"]["issues"][0]["code"] == "config-unreadable"
    with pytest.raises(Failed) as failed:
        await client.call("workspaces/update", {"id": "ws", "patch": {"set": {"name": "x"}}})
    assert failed.value.name == "Corrupt"
    assert daemon.stop() == 0

    good = (daemon.config / "config.json").read_bytes()
    (daemon.config / "config.json").unlink()
    ODD[kind](daemon.config / "config.json")
    daemon.start()
    client = await connect(daemon)
    [issue] = (await client.call("issues/list"))["items"]
    assert (issue["path"], issue["code"]) == ("config.json", "unreadable")
    with pytest.raises(Failed) as failed:
        await client.call("workspaces/create", {"value": {"name": "x"}})
    assert failed.value.name == "Corrupt"
    shutil.rmtree(daemon.config / "config.json") if kind == "folder" else (daemon.config / "config.json").unlink()
    (daemon.config / "config.json").write_bytes(good)
    assert [one["id"] for one in (await client.call("workspaces/list"))["items"]] == ["ws"]


async def test_a_file_that_is_a_link_out_of_the_workspace_is_read_and_never_written(
    make_daemon: Callable[..., Daemon], connect: Connect
) -> None:
    daemon = make_daemon()
    root, outside = make_workspace(daemon.base / "ws"), daemon.base / "outside"
    outside.mkdir()
    for path in (root / "sessions" / "good" / "session.jsonl", root / "config.json"):
        shutil.move(path, outside / path.name)
        path.symlink_to(outside / path.name)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    daemon.register(ws=root)
    daemon.start()
    client = await connect(daemon, "ws")
    assert (await client.call("sessions/get", {"id": "good"}))["item"]["value"]["createdAt"] == 1
    changes = (
        ("sessions/update", {"id": "good", "patch": {"set": {"name": "x"}}}),
        ("messages/append", {"session": "good", "messages": [{"type": "user", "content": "x"}]}),
        ("workspaces/update", {"id": "ws", "patch": {"set": {"name": "x"}}}),
    )
    for method, params in changes:
        with pytest.raises(Failed) as failed:
            await client.call(method, params)
        assert failed.value.name == "Forbidden", method
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before
