"""Everybody else on the disk, seen by clients of a real daemon."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.e2e.places import CASES, WORKSPACE, set_up
from tests.wire import Failed, Wire
from tests.workspace.house import SAVES, line, message, rename_over

Connect = Callable[..., Awaitable[Wire]]
Save = Callable[[Path, bytes], None]

SESSION = "260102-tidy-heron"


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    root = set_up(daemon)
    new_session(root, SESSION, "m1", "m2")
    (root / "skills" / "tide").mkdir()
    (root / "skills" / "tide" / "SKILL.md").write_bytes(skill("Before"))
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    """Has subscribed to the workspace, and heard nothing yet."""
    client = await connect(daemon, WORKSPACE)
    await client.call("events/subscribe", {"workspace": WORKSPACE})
    return client


def new_session(root: Path, session: str, *ids: str) -> Path:
    path = root / "sessions" / session / "session.jsonl"
    path.parent.mkdir(parents=True)
    header = {"id": session, "createdAt": 1, "name": "Before", "messageCount": len(ids)}
    path.write_bytes(b"".join(map(line, [header, *map(message, ids)])))
    return path


def skill(description: str) -> bytes:
    return f"---\nname: Tide\ndescription: {description}\n---\nText\n".encode()


def changed(path: Path) -> bytes:
    """What an editor saves after a small change."""
    data = path.read_bytes()
    if path.name == "SKILL.md":
        return skill("After")
    if path.name == "session.jsonl":
        return data.replace(b'"Before"', b'"After"', 1)
    return data.replace(b'"Priority"', b'"Urgency"', 1)


def events(client: Wire) -> list[tuple[str, dict[str, Any]]]:
    return [(m["method"], m["params"]) for m in client.received if "method" in m]


async def settled(client: Wire) -> None:
    await client.call("daemon/sync", {"workspace": WORKSPACE})


@pytest.mark.parametrize("save", SAVES)
async def test_o22_every_way_of_saving_is_one_notification(daemon: Daemon, client: Wire, save: Save) -> None:
    root = daemon.base / "ws"
    files = {
        "labels": root / "labels" / "config.json",
        "skills": root / "skills" / "tide" / "SKILL.md",
        "sessions": root / "sessions" / SESSION / "session.jsonl",
    }
    for noun, path in files.items():
        client.received.clear()
        save(path, changed(path))
        told = await client.notified(f"{noun}/didChange")
        assert told["origin"] == {"kind": "disk"}
        save(path, path.read_bytes())
        await settled(client)
        heard = events(client)
        assert [method for method, _ in heard if method != "issues/didChange"] == [f"{noun}/didChange"]
        # Who writes in place can be seen with half a file, which is an issue until the rest is there.
        halves = [params["issues"] for method, params in heard if method == "issues/didChange"]
        assert not halves or (save.__name__ in ("in_place", "rename_away_and_write") and halves[-1] == [])


async def test_o22_folders_that_come_and_go(daemon: Daemon, client: Wire) -> None:
    root = daemon.base / "ws"
    new_session(daemon.base / "elsewhere", "260103-moved-in", "a")
    os.rename(daemon.base / "elsewhere" / "sessions" / "260103-moved-in", root / "sessions" / "260103-moved-in")
    assert (await client.notified("sessions/didCreate"))["item"]["id"] == "260103-moved-in"
    for number in range(200):
        new_session(root, f"260104-burst-{number}", "a")
    await client.notified("sessions/didCreate", 201)
    os.rename(root / "sessions" / "260103-moved-in", root / "sessions" / "260103-other-name")
    assert (await client.notified("sessions/didCreate", 202))["item"]["id"] == "260103-other-name"
    assert (await client.notified("sessions/didDelete"))["id"] == "260103-moved-in"
    os.rename(root / "sessions" / "260103-other-name", daemon.base / "away")
    assert (await client.notified("sessions/didDelete", 2))["id"] == "260103-other-name"
    (root / "sessions" / "260105-half-made").mkdir()
    await settled(client)
    assert len(client.notifications("sessions/didCreate")) == 202
    listed = await client.call("sessions/list", {"workspace": WORKSPACE, "limit": 1})
    assert listed["total"] == 201


@pytest.mark.parametrize(
    ("noun", "case"),
    [
        ("statuses", "partial_statuses.json"),
        ("labels", "trailing_comma_labels.json"),
        ("statuses", "missing_fixed_status.json"),
    ],
)
async def test_o15_a_half_written_configuration_resets_nothing(
    daemon: Daemon, client: Wire, noun: str, case: str
) -> None:
    file = daemon.base / "ws" / noun / "config.json"
    good = file.read_bytes()
    before = await client.call(f"{noun}/list", {"workspace": WORKSPACE})
    await client.call(
        "sessions/update",
        {"workspace": WORKSPACE, "id": SESSION, "patch": {"set": {"sessionStatus": "waiting-on-vendor"}}},
    )
    file.write_bytes((CASES / "O15" / case).read_bytes())
    told = await client.notified("issues/didChange")
    assert (told["path"], bool(told["issues"])) == (f"{noun}/config.json", True)
    assert (await client.call(f"{noun}/list", {"workspace": WORKSPACE}))["items"] == before["items"]
    item = await client.call("sessions/get", {"workspace": WORKSPACE, "id": SESSION})
    assert item["item"]["value"]["sessionStatus"] == "waiting-on-vendor"
    new = {"label": "Blocked", "category": "open"} if noun == "statuses" else {"name": "Blocked"}
    with pytest.raises(Failed, match="Corrupt"):
        await client.call(f"{noun}/create", {"workspace": WORKSPACE, "value": new})
    assert file.read_bytes() == (CASES / "O15" / case).read_bytes()
    file.write_bytes(good)
    assert (await client.notified("issues/didChange", 2))["issues"] == []
    await client.call(f"{noun}/create", {"workspace": WORKSPACE, "value": new})
    assert client.notifications(f"{noun}/didDelete") == []


async def test_o16_linked_skills(daemon: Daemon, client: Wire) -> None:
    shutil.copytree(CASES / "O16" / "outside", daemon.base / "outside")
    skills, target = daemon.base / "ws" / "skills", daemon.base / "outside" / "shared-skill"
    (skills / "shared-skill").symlink_to(target)
    (skills / "dangling").symlink_to(daemon.base / "nothing")
    (skills / "plain").symlink_to(CASES / "README.md")
    await client.notified("skills/didCreate")
    listed = await client.call("skills/list", {"workspace": WORKSPACE})
    assert sorted(item["id"] for item in listed["items"]) == ["shared-skill", "tide"]
    rename_over(target / "SKILL.md", (target / "SKILL.md").read_bytes() + b"More\n")
    await settled(client)
    item = await client.call("skills/get", {"workspace": WORKSPACE, "id": "shared-skill"})
    assert item["item"]["value"]["content"].endswith("More\n")
    await client.call("skills/delete", {"workspace": WORKSPACE, "id": "shared-skill"})
    assert not os.path.lexists(skills / "shared-skill")
    assert (target / "SKILL.md").exists()


async def test_o10_a_deleted_session_never_comes_back(make_daemon: Callable[..., Daemon], connect: Connect) -> None:
    daemon = make_daemon()
    root = set_up(daemon, "O10")
    for session in ("260102-twice-over", "260102-once-more"):
        new_session(root, session, "m1")
    daemon.start()
    one, other = await connect(daemon, WORKSPACE), await connect(daemon, WORKSPACE)
    await one.call("events/subscribe", {"workspace": WORKSPACE})
    sessions = sorted(path.name for path in (root / "sessions").iterdir() if path.is_dir())
    assert len(sessions) >= 2
    for number, session in enumerate(sessions):
        renamer = one if number == 0 else other
        renames = [renamer.ask("sessions/update", rename(session, f"Name {number}")) for number in range(20)]
        deletion = one.ask("sessions/delete", {"workspace": WORKSPACE, "id": session})
        late = [renamer.ask("sessions/update", rename(session, f"Late {number}")) for number in range(20)]
        await one.answer(deletion)
        assert not (root / "sessions" / session).exists()
        outcomes = await asyncio.gather(*map(renamer.answer, [*renames, *late]), return_exceptions=True)
        failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert {type(error) for error in failed} <= {Failed}
        assert {error.name for error in failed if isinstance(error, Failed)} <= {"NotFound"}
        if number == 0:
            assert len(failed) == 20
        await settled(one)
        assert not (root / "sessions" / session).exists()
        assert [params["id"] for params in one.notifications("sessions/didDelete")].count(session) == 1
    assert one.notifications("sessions/didCreate") == []
    daemon.restart()
    again = await connect(daemon, WORKSPACE)
    assert (await again.call("sessions/list", {"workspace": WORKSPACE}))["items"] == []
    assert [path.name for path in (root / "sessions").iterdir() if path.is_dir()] == []
    assert len(list((root / ".trash").iterdir())) == len(sessions)


def rename(session: str, name: str) -> dict[str, Any]:
    return {"workspace": WORKSPACE, "id": session, "patch": {"set": {"name": name}}}


async def test_a_broken_line_one_is_corrupt_until_it_is_good_again(daemon: Daemon, client: Wire) -> None:
    path = daemon.base / "ws" / "sessions" / SESSION / "session.jsonl"
    good = path.read_bytes()
    rename_over(path, b"{" + good)
    await client.notified("issues/didChange")
    item = (await client.call("sessions/get", {"workspace": WORKSPACE, "id": SESSION}))["item"]
    assert item["value"]["name"] == "Before"
    assert item["info"]["damage"][0]["code"] == "header-unreadable"
    with pytest.raises(Failed, match="Corrupt"):
        await client.call("sessions/update", rename(SESSION, "New"))
    assert path.read_bytes() == b"{" + good
    rename_over(path, good)
    assert (await client.notified("issues/didChange", 2))["issues"] == []
    await client.call("sessions/update", rename(SESSION, "New"))
    assert json.loads(path.read_bytes().split(b"\n")[0])["name"] == "New"


async def test_lines_dropped_by_a_foreign_save_are_put_back(daemon: Daemon, client: Wire) -> None:
    path = daemon.base / "ws" / "sessions" / SESSION / "session.jsonl"
    stale = path.read_bytes()
    mine = {"id": "mine", "type": "user", "content": "ours", "timestamp": 1772323200000}
    await client.call("messages/append", {"workspace": WORKSPACE, "session": SESSION, "messages": [mine]})
    rename_over(path, stale + line(message("theirs")))
    await settled(client)
    listed = await client.call("messages/list", {"workspace": WORKSPACE, "session": SESSION})
    assert [item["id"] for item in listed["items"]] == ["m1", "m2", "theirs", "mine"]
    assert [json.loads(text).get("id") for text in path.read_bytes().splitlines()][1:] == ["m1", "m2", "theirs", "mine"]


async def test_what_changed_while_no_daemon_ran_is_told_to_the_first_subscriber(
    daemon: Daemon, client: Wire, connect: Connect
) -> None:
    root = daemon.base / "ws"
    assert daemon.stop() == 0
    path = root / "sessions" / SESSION / "session.jsonl"
    path.write_bytes(changed(path) + line(message("m3")))
    new_session(root, "260103-new-one", "a")
    (root / "skills" / "tide" / "SKILL.md").write_bytes(skill("After"))
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    position = await client.call("events/subscribe", {"workspace": WORKSPACE})
    await client.notified("messages/didAppend")
    await settled(client)
    told = [(method, params["origin"]["kind"]) for method, params in events(client)]
    assert sorted(told) == [
        ("messages/didAppend", "disk"),
        ("sessions/didChange", "disk"),
        ("sessions/didCreate", "disk"),
        ("skills/didChange", "disk"),
    ]
    assert client.order.index("sessions/didCreate") > client.order.index(2)  # the answer to events/subscribe
    since = {"epoch": position["epoch"], "revision": 0}
    read = await client.call("events/read", {"workspace": WORKSPACE, "since": since})
    assert [event["method"] for event in read["events"]] == [method for method, _ in events(client)]


async def test_the_list_of_workspaces_is_watched(daemon: Daemon, connect: Connect, client: Wire) -> None:
    other = daemon.base / "other"
    (other / "sessions").mkdir(parents=True)
    (other / "config.json").write_text(json.dumps({"id": "ws_00000001", "name": "Other", "slug": "other"}))
    await client.call("events/subscribe", {})
    config = json.loads((daemon.config / "config.json").read_bytes())
    entry = {"id": "second", "name": "Other", "slug": "other", "rootPath": str(other), "createdAt": 1}
    good = json.dumps({**config, "workspaces": [*config["workspaces"], entry]}).encode()
    rename_over(daemon.config / "config.json", good)
    assert (await client.notified("workspaces/didCreate"))["item"]["id"] == "second"
    (daemon.config / "config.json").write_bytes(good[: len(good) // 2])
    assert len((await client.call("workspaces/list"))["items"]) == len(config["workspaces"]) + 1
    assert (await client.call("sessions/list", {"workspace": "second"}))["items"] == []
    with pytest.raises(Failed, match="Corrupt"):
        await client.call("workspaces/create", {"value": {"name": "Refused"}})
    assert (daemon.config / "config.json").read_bytes() == good[: len(good) // 2]
    rename_over(daemon.config / "config.json", json.dumps(config).encode())
    assert (await client.notified("workspaces/didDelete"))["id"] == "second"
    settings = json.loads((daemon.base / "ws" / "config.json").read_bytes())
    rename_over(daemon.base / "ws" / "config.json", json.dumps({**settings, "name": "By hand"}).encode())
    told = await client.notified("workspaces/didChange")
    assert told["patch"] == {"set": {"name": "By hand"}}


async def test_a_workspace_that_was_unlisted_for_a_while_is_opened_anew(
    daemon: Daemon, client: Wire, connect: Connect
) -> None:
    file = daemon.config / "config.json"
    listed = file.read_bytes()
    await client.call("events/subscribe", {})
    rename_over(file, json.dumps({**json.loads(listed), "workspaces": []}).encode())
    await client.notified("workspaces/didDelete")
    with pytest.raises(Failed, match="NotFound"):
        await client.call("sessions/list", {"workspace": WORKSPACE})
    rename_over(file, listed)
    await client.notified("workspaces/didCreate")
    now = await client.call("sessions/list", {"workspace": WORKSPACE})
    lapse = await client.notified("events/didLapse")
    assert lapse == {"workspace": WORKSPACE, "epoch": now["epoch"], "revision": 0, "reason": "epoch"}
    await client.call("sessions/update", rename(SESSION, "New"))
    assert (await client.notified("sessions/didChange"))["epoch"] == now["epoch"]
