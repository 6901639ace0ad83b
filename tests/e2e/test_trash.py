"""Deleted sessions: listed, given back, removed for good; and sessions archived long ago, moved there."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon, snapshot
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

KEY = "a-key-of-sixteen-or-more"
DAY = 86_400_000
STAYS = ["260102-fresh-iso", "260102-fresh-secs", "260102-no-stamp", "260102-not-archived"]


@pytest.fixture(scope="module")
def shared(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    root = set_up(daemon)
    (root / ".trash" / "1783000000000-projects-atlas").mkdir(parents=True)  # of another noun
    daemon.start()
    return daemon


@pytest.fixture
async def client(shared: Daemon, connect: Connect) -> Wire:
    return await connect(shared, WORKSPACE)


@pytest.fixture
def root(shared: Daemon) -> Path:
    return shared.base / "ws"


async def session(client: Wire, **value: Any) -> str:
    """A session with two messages and a file."""
    id = str((await client.call("sessions/create", {"value": {"name": "Talk", **value}}))["item"]["id"])
    messages = [{"id": f"m{n}", "type": "user", "content": f"text {n}"} for n in (1, 2)]
    await client.call("messages/append", {"session": id, "messages": messages})
    await client.call("files/write", {"path": f"sessions/{id}/data/a.txt", "content": {"text": "kept"}})
    return id


async def trashed(client: Wire, *sessions: str) -> list[dict[str, Any]]:
    """What the trash has of *sessions*."""
    items = (await client.call("sessions/listTrash", {"limit": 500}))["items"]
    return [item for item in items if item["info"]["session"] in sessions]


async def refused(client: Wire, method: str, params: dict[str, Any]) -> Failed:
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    return failed.value


async def test_a_deleted_session_comes_back_whole(client: Wire, shared: Daemon, root: Path, connect: Connect) -> None:
    other = await connect(shared, WORKSPACE)
    id = await session(client, labels=["bug"])
    before = await client.call("sessions/get", {"id": id, "messages": 9})
    files = snapshot(root / "sessions" / id)
    for one in (client, other):
        await one.call("events/subscribe", {"workspace": WORKSPACE, "topics": ["sessions"], "sessions": [id]})
    await client.call("sessions/delete", {"id": id})
    [entry] = await trashed(client, id)
    assert entry["id"] == f"{entry['info']['deletedAt']}-{id}"
    assert (entry["value"]["id"], entry["value"]["name"], entry["value"]["labels"]) == (id, "Talk", ["bug"])
    assert not (root / "sessions" / id).exists()
    restore = client.ask("sessions/restore", {"id": entry["id"]})
    answer = await client.answer(restore)
    assert client.order.index("sessions/didDelete") < client.order.index("sessions/didCreate")
    assert client.order.index("sessions/didCreate") < client.order.index(restore)
    [told] = other.notifications("sessions/didCreate")
    assert (told["revision"], told["item"]) == (answer["revision"], answer["item"])
    after = await client.call("sessions/get", {"id": id, "messages": 9})
    assert (after["item"]["value"], after["messages"]) == (before["item"]["value"], before["messages"])
    assert after["item"]["version"] == answer["item"]["version"] == before["item"]["version"]
    assert {k: v for k, v in snapshot(root / "sessions" / id).items() if k != "session.jsonl"} == {
        k: v for k, v in files.items() if k != "session.jsonl"
    }
    assert await trashed(client, id) == []
    await client.call("messages/append", {"session": id, "messages": [{"id": "m3", "type": "user", "content": "on"}]})
    shared.restart()
    again = await connect(shared, WORKSPACE)
    assert (await again.call("sessions/get", {"id": id}))["item"]["value"]["messageCount"] == 3


async def test_line_one_of_what_comes_back_is_brought_up_to_date_like_any_other(client: Wire, root: Path) -> None:
    id = await session(client)
    await client.call("daemon/release")
    messages = [{"id": "m3", "type": "user", "content": "text 3"}]
    await client.call("messages/append", {"session": id, "messages": messages})
    line_one = root / "sessions" / id / "session.jsonl"
    assert json.loads(line_one.read_bytes().partition(b"\n")[0])["messageCount"] == 2
    await client.call("sessions/delete", {"id": id})
    await client.call("sessions/restore", {"id": id})
    await client.call("daemon/release")
    assert json.loads(line_one.read_bytes().partition(b"\n")[0])["messageCount"] == 3


async def test_changes_sent_one_behind_the_other_find_what_the_one_before_did(client: Wire) -> None:
    id = await session(client)
    name = {"id": id, "patch": {"set": {"name": "Back"}}}
    asked = [
        client.ask("sessions/delete", {"id": id}),
        client.ask("sessions/restore", {"id": id}),
        client.ask("sessions/update", name),
        client.ask("sessions/delete", {"id": id}),
        client.ask("sessions/emptyTrash", {}),
        client.ask("sessions/restore", {"id": id}),
    ]
    *done, last = await asyncio.gather(*map(client.answer, asked), return_exceptions=True)
    assert done[2]["item"]["value"]["name"] == "Back"
    assert [entry.partition("-")[2] for entry in done[4]["removed"]][:1] == [id]
    assert isinstance(last, Failed)
    assert last.name == "NotFound"


async def test_the_last_deletion_is_meant_by_the_id_of_a_session(client: Wire) -> None:
    for name in ("First", "Second"):
        await client.call("sessions/create", {"id": "again", "value": {"name": name}})
        await client.call("sessions/delete", {"id": "again"})
    later, earlier = await trashed(client, "again")
    assert later["info"]["deletedAt"] > earlier["info"]["deletedAt"]
    assert (await client.call("sessions/restore", {"id": "again"}))["item"]["value"]["name"] == "Second"
    taken = await refused(client, "sessions/restore", {"id": earlier["id"]})
    assert (taken.name, taken.error["data"]["current"]["value"]["name"]) == ("AlreadyExists", "Second")
    assert [entry["id"] for entry in await trashed(client, "again")] == [earlier["id"]]
    await client.call("sessions/delete", {"id": "again", "permanent": True})
    assert (await client.call("sessions/restore", {"id": earlier["id"]}))["item"]["value"]["name"] == "First"


async def test_a_folder_that_somebody_else_made_keeps_its_name(client: Wire, root: Path) -> None:
    id = await session(client)
    await client.call("sessions/delete", {"id": id})
    (root / "sessions" / id).mkdir()
    assert (await refused(client, "sessions/restore", {"id": id})).name == "AlreadyExists"
    (root / "sessions" / id).rmdir()
    await client.call("sessions/restore", {"id": id})


async def test_a_restoration_sent_again_with_its_key_is_not_made_again(client: Wire) -> None:
    id = await session(client)
    await client.call("sessions/delete", {"id": id})
    restore = {"id": id, "key": KEY}
    first = await client.call("sessions/restore", restore)
    assert await client.call("sessions/restore", restore) == first
    await client.call("sessions/delete", {"id": id})
    empty = {"key": f"{KEY}-2", "ids": [(await trashed(client, id))[0]["id"]]}
    assert await client.call("sessions/emptyTrash", empty) == await client.call("sessions/emptyTrash", empty)


async def test_what_leaves_the_trash_is_gone(client: Wire, root: Path) -> None:
    one, two, three = [await session(client) for _ in range(3)]
    for id in (one, two, three):
        await client.call("sessions/delete", {"id": id})
    names = [entry["id"] for entry in await trashed(client, one, two, three)]
    assert [name.partition("-")[2] for name in names] == [three, two, one]  # the latest first
    unknown = await refused(client, "sessions/emptyTrash", {"ids": [names[0], "1783000000000-nobody"]})
    assert unknown.name == "NotFound"
    assert (await client.call("sessions/emptyTrash", {"ids": names[:1] * 2}))["removed"] == names[:1]
    assert [entry["id"] for entry in await trashed(client, one, two, three)] == names[1:]
    assert (await client.call("sessions/emptyTrash", {"olderThanDays": 1}))["removed"] == []
    os.rename(root / ".trash" / names[2], root / ".trash" / f"1783000000000-{one}")
    assert (await client.call("sessions/emptyTrash", {"olderThanDays": 1}))["removed"] == [f"1783000000000-{one}"]
    assert names[1] in (await client.call("sessions/emptyTrash"))["removed"]
    assert (await client.call("sessions/listTrash"))["items"] == []
    assert os.listdir(root / ".trash") == ["1783000000000-projects-atlas"]
    assert (await refused(client, "sessions/restore", {"id": two})).name == "NotFound"


async def test_the_trash_comes_in_pages(client: Wire) -> None:
    for _ in range(5):
        await client.call("sessions/delete", {"id": await session(client)})
    whole = await client.call("sessions/listTrash")
    found, page = [], await client.call("sessions/listTrash", {"limit": 2})
    assert page["total"] == whole["total"] >= 5
    while True:
        found += page["items"]
        if "nextCursor" not in page:
            break
        page = await client.call("sessions/listTrash", {"limit": 2, "cursor": page["nextCursor"]})
    assert found == whole["items"]


@pytest.mark.parametrize(
    ("file", "data", "damage"),
    [
        ("session.jsonl", b'{"id":"torn","name":"To\n{"id":"m1","type":"user","content":"x"}\n', "header-unreadable"),
        ("session.jsonl.tmp", b'{"id":"torn","name":"T"}\n{"id":"m1","type":"user","content":"x"}\n', "rescued"),
    ],
)
async def test_a_damaged_session_comes_back_as_it_was(
    client: Wire, root: Path, file: str, data: bytes, damage: str
) -> None:
    (root / "sessions" / "torn").mkdir()
    (root / "sessions" / "torn" / file).write_bytes(data)
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    await client.call("sessions/delete", {"id": "torn"})
    [entry] = await trashed(client, "torn")
    assert entry["info"]["session"] == "torn"
    await client.call("sessions/restore", {"id": entry["id"]})
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    item = (await client.call("sessions/get", {"id": "torn"}))["item"]
    assert damage in [one["code"] for one in item["info"]["damage"]]
    assert [one["id"] for one in (await client.call("messages/list", {"session": "torn"}))["items"]] == ["m1"]
    assert (root / "sessions" / "torn" / file).read_bytes() == data
    await client.call("sessions/delete", {"id": "torn", "permanent": True})


async def test_a_trash_that_is_a_link_is_not_entered(client: Wire, root: Path, shared: Daemon) -> None:
    kept, outside = root / ".trash-kept", shared.base / "outside"
    (outside / "1783000000000-theirs").mkdir(parents=True)
    (outside / "1783000000000-theirs" / "session.jsonl").write_text('{"id":"theirs"}\n')
    before = snapshot(outside)
    id = await session(client)
    (root / ".trash").rename(kept)
    (root / ".trash").symlink_to(outside)
    try:
        assert (await client.call("sessions/listTrash"))["items"] == []
        assert (await refused(client, "sessions/restore", {"id": "theirs"})).name == "NotFound"
        assert (await client.call("sessions/emptyTrash"))["removed"] == []
        assert (await refused(client, "sessions/delete", {"id": id})).name == "Forbidden"
        assert snapshot(outside) == before
        assert (await client.call("sessions/get", {"id": id}))["item"]["value"]["name"] == "Talk"
    finally:
        (root / ".trash").unlink()
        kept.rename(root / ".trash")


async def test_nothing_is_restored_or_removed_while_another_program_may_write(client: Wire, shared: Daemon) -> None:
    id = await session(client)
    await client.call("sessions/delete", {"id": id})
    await client.call("daemon/release")
    lock = shared.config / ".server.lock"
    lock.write_text(json.dumps({"pid": os.getppid(), "startedAt": int(time.time() * 1000)}))
    try:
        for method in ("sessions/restore", "sessions/emptyTrash"):
            params = {"id": id} if method == "sessions/restore" else {}
            assert (await refused(client, method, params)).name == "ReadOnly"
        assert len(await trashed(client, id)) == 1
    finally:
        lock.unlink()
    await client.call("sessions/restore", {"id": id})


# What is old


@pytest.fixture(scope="module")
def old(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    root = set_up(daemon, "O06")
    now = time.time()
    stamps = {
        '"@NOW_SECONDS@"': str(int(now)),
        "@NOW_ISO_STRING@": datetime.now(UTC).isoformat(),
        '"@NOW_MINUS_40D_MS@"': str(int(now * 1000) - 40 * DAY),
    }
    for path in root.glob("sessions/*/session.jsonl"):
        text = path.read_text()
        for name, stamp in stamps.items():
            text = text.replace(name, stamp)
        path.write_text(text)
    (root / "sessions" / "260102-old-archive" / "data").mkdir()
    (root / "sessions" / "260102-old-archive" / "data" / "a.txt").write_text("kept")
    daemon.start()
    return daemon


async def test_o06_only_what_was_archived_long_ago_for_certain_is_purged(old: Daemon, connect: Connect) -> None:
    client, root = await connect(old, WORKSPACE), old.base / "ws"
    await client.call("events/subscribe", {"workspace": WORKSPACE, "topics": ["sessions"]})
    purge = {"olderThanDays": 30}
    before = snapshot(root)
    for wrong in (0, -1, "30", True, None, [30]):
        failed = await refused(client, "sessions/purge", {"olderThanDays": wrong})
        assert (failed.code, failed.error["data"]["issues"][0]["path"]) == (-32602, "olderThanDays")
    assert (await refused(client, "sessions/purge", {})).code == -32602
    assert (await client.call("sessions/purge", {"olderThanDays": 41}))["sessions"] == []
    dry = await client.call("sessions/purge", {**purge, "dryRun": True})
    assert dry["sessions"] == ["260102-old-archive"]
    assert snapshot(root) == before
    assert client.notifications("sessions/didDelete") == []
    done = await client.call("sessions/purge", {**purge, "key": KEY})
    assert done["sessions"] == ["260102-old-archive"]
    assert await client.call("sessions/purge", {**purge, "key": KEY}) == done
    [told] = client.notifications("sessions/didDelete")
    assert (told["id"], told["revision"]) == ("260102-old-archive", done["revision"])
    assert sorted(os.listdir(root / "sessions")) == [".keep", *STAYS]
    [entry] = (await client.call("sessions/listTrash"))["items"]
    assert (root / ".trash" / entry["id"] / "data" / "a.txt").read_text() == "kept"  # the whole folder
    assert entry["id"] in old.log
    assert old.log.count("purging") == 1
    assert (await client.call("sessions/purge", {"olderThanDays": 1e-6}))["sessions"] == []  # nothing else is certain
    await client.call("sessions/restore", {"id": "260102-old-archive"})


async def test_a_session_that_works_is_not_purged(old: Daemon, connect: Connect) -> None:
    client = await connect(old, WORKSPACE)
    agent = await connect(old, WORKSPACE, capabilities={"experimental": {"craft": {"roles": ["executor"]}}})
    id = str(
        (await client.call("sessions/create", {"value": {"isArchived": True, "archivedAt": 10**12}}))["item"]["id"]
    )
    await agent.call("sessions/publish", {"session": id, "event": {"type": "state", "state": "running"}})
    assert id not in (await client.call("sessions/purge", {"olderThanDays": 1000, "dryRun": True}))["sessions"]
    await agent.call("sessions/publish", {"session": id, "event": {"type": "state", "state": "idle"}})
    assert id in (await client.call("sessions/purge", {"olderThanDays": 1000}))["sessions"]


async def test_o10_a_deleted_session_does_not_come_back(shared: Daemon, connect: Connect) -> None:
    root = shared.base / "ws"
    deleting = await connect(shared, WORKSPACE)
    other = await connect(shared, WORKSPACE)
    listening = await connect(shared, WORKSPACE)
    await listening.call("events/subscribe", {"workspace": WORKSPACE, "topics": ["sessions"]})
    for renaming in (deleting, other):
        shutil.copytree(
            Path(__file__).parents[1] / "field_bugs" / "O10" / "ws" / "sessions", root / "sessions", dirs_exist_ok=True
        )
        await deleting.call("daemon/sync", {"workspace": WORKSPACE})
        id = "260102-hasty-mole"
        before = [renaming.ask("sessions/update", rename(id, n)) for n in range(20)]
        await deleting.call("sessions/delete", {"id": id})
        assert not (root / "sessions" / id).exists()
        late = [renaming.ask("sessions/update", rename(id, n)) for n in range(5)]
        late.append(renaming.ask("files/write", {"path": f"sessions/{id}/data/x", "content": {"text": "x"}}))
        late.append(renaming.ask("notes/update", {"session": id, "text": "x"}))
        late.append(renaming.ask("messages/append", {"session": id, "messages": [{"id": "a", "type": "user"}]}))
        answers = await asyncio.gather(*map(renaming.answer, before + late), return_exceptions=True)
        assert [answer.name for answer in answers[20:] if isinstance(answer, Failed)] == ["NotFound"] * 8
        assert all(answer.name == "NotFound" for answer in answers if isinstance(answer, Failed))
        await deleting.call("daemon/sync", {"workspace": WORKSPACE})
        assert not (root / "sessions" / id).exists()
    shared.restart()
    again = await connect(shared, WORKSPACE)
    assert (await again.call("sessions/list", {"filter": {"id": id}}))["items"] == []
    assert not (root / "sessions" / id).exists()
    assert len(listening.notifications("sessions/didDelete")) == 2


def rename(id: str, number: int) -> dict[str, Any]:
    return {"id": id, "patch": {"set": {"name": f"Name {number}"}}}
