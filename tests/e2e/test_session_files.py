"""Plans, notes and other files of sessions over the wire."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    root = daemon.base / "ws"
    root.mkdir()
    daemon.register(ws=root)
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, "ws")


@pytest.fixture
async def session(client: Wire) -> str:
    id: str = (await client.call("sessions/create", {"value": {}}))["item"]["id"]
    return id


@pytest.fixture
def folder(daemon: Daemon, session: str) -> Path:
    return daemon.base / "ws/sessions" / session


async def refused(client: Wire, method: str, **params: Any) -> Failed:
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    return failed.value


async def new_plan(client: Wire, session: str, **value: str) -> dict[str, Any]:
    item: dict[str, Any] = (await client.call("plans/create", {"session": session, "value": value}))["item"]
    return item


async def pending(client: Wire, session: str) -> Any:
    got = await client.call("sessions/get", {"id": session})
    return got["item"]["value"].get("pendingPlanExecution")


# Plans


async def test_plans_of_one_title_get_names_of_their_own(
    client: Wire, connect: Connect, daemon: Daemon, session: str, folder: Path
) -> None:
    other = await connect(daemon, "ws")
    await other.call("events/subscribe", {"workspace": "ws", "topics": ["files"]})
    asked = [
        client.ask("plans/create", {"session": session, "value": {"title": "Fix the Lamp", "text": f"{n}\n"}})
        for n in range(3)
    ]
    items = [(await client.answer(id))["item"] for id in asked]
    ids = sorted(item["id"] for item in items)
    assert [id[10:] for id in ids] == ["-fix-the-lamp-2.md", "-fix-the-lamp-3.md", "-fix-the-lamp.md"]
    assert sorted(path.name for path in (folder / "plans").iterdir()) == ids
    for item in items:
        assert item["info"]["path"] == f"sessions/{session}/plans/{item['id']}"
        assert item["value"]["text"] == (folder / "plans" / item["id"]).read_text()
        assert item["value"]["text"].startswith("# Fix the Lamp\n\n")
    told = await other.notified("files/didChange")
    assert (told["path"], told["kind"]) == (f"sessions/{session}/plans/{items[0]['id']}", "created")


async def test_the_newest_plan_comes_first_and_its_text_is_kept_as_it_is(
    client: Wire, session: str, folder: Path
) -> None:
    text = "\ufeffintro\r\n# Ship it\r\n\r\n## Steps\r\n\r\n- [x] a\r\n- [ ] b *(in progress)*\r\nmore <!-- x -->\r\n"
    (folder / "plans/a.md.old.md").write_bytes(text.encode())
    (folder / "plans/2026-01-01-other.md").write_text("no heading")
    (folder / "plans/folder.md").mkdir()
    (folder / "plans/link.md").symlink_to(folder / "session.jsonl")
    (folder / "plans/plan.txt").write_text("none")
    os.utime(folder / "plans/2026-01-01-other.md", ns=(1_000_000_000, 1_000_000_000))
    page = await client.call("plans/list", {"session": session})
    assert [(item["id"], item["value"]["title"]) for item in page["items"]] == [
        ("a.md.old.md", "Ship it"),
        ("2026-01-01-other.md", "2026-01-01-other"),
    ]
    assert "text" not in page["items"][0]["value"]
    assert page["items"][1]["value"]["modifiedAt"] == 1000
    found = await client.call("plans/list", {"session": session, "filter": {"title": "Ship it"}, "fields": ["title"]})
    assert [item["value"] for item in found["items"]] == [{"title": "Ship it"}]

    item = (await client.call("plans/get", {"session": session, "id": "a.md.old.md"}))["item"]
    assert item["value"]["text"] == text
    assert item["version"] == page["items"][0]["version"]
    assert item["info"]["outline"]["steps"] == [
        {"description": "a", "status": "completed"},
        {"description": "b\nmore <!-- x -->", "status": "in_progress"},
    ]
    params = {"session": session, "id": "a.md.old.md"}
    new = await client.call("plans/update", {**params, "patch": {"set": {"title": "Ship it now"}}})
    assert new["item"]["value"]["text"] == text.replace("# Ship it\r", "# Ship it now\r")
    assert (await client.call("plans/update", {**params, "patch": {"set": {"title": "Ship it now"}}}))["changed"] is (
        False
    )
    for id in ("folder.md", "link.md"):
        assert (await refused(client, "plans/get", session=session, id=id)).name == "NotFound"
        patch = {"set": {"text": "x"}}
        assert (await refused(client, "plans/update", session=session, id=id, patch=patch)).name == "NotFound"


async def test_bytes_that_are_no_text_outlive_a_new_title(client: Wire, session: str, folder: Path) -> None:
    (folder / "plans/odd.md").write_bytes(b"# Old\n\xff\xfe\n")
    params = {"session": session, "id": "odd.md", "patch": {"set": {"title": "New"}}}
    assert (await client.call("plans/update", params))["item"]["value"]["text"] == "# New\n\ufffd\ufffd\n"
    assert (folder / "plans/odd.md").read_bytes() == b"# New\n\xff\xfe\n"


async def test_a_plan_is_changed_only_as_it_was_read(client: Wire, session: str, folder: Path) -> None:
    first = await new_plan(client, session, text="# One\n")
    params = {"session": session, "id": first["id"]}
    (folder / "plans" / first["id"]).write_text("# Theirs\n")
    for method, more in (("plans/update", {"patch": {"set": {"text": "x"}}}), ("plans/delete", {})):
        failed = await refused(client, method, **params, **more, expectedVersion=first["version"])
        assert failed.name == "VersionConflict"
        assert failed.error["data"]["resource"] == {"noun": "plans", "id": first["id"], "workspace": "ws"}
    now = (await client.call("plans/get", params))["item"]
    assert now["value"]["title"] == "Theirs"
    change = {**params, "patch": {"set": {"text": "# Ours\n"}}, "expectedVersion": now["version"], "key": "p" * 16}
    again = [await client.call("plans/update", change) for _ in range(2)]
    assert again[0]["revision"] == again[1]["revision"]
    assert (folder / "plans" / first["id"]).read_text() == "# Ours\n"
    taken = await refused(client, "plans/create", session=session, id=first["id"], value={"text": "x"})
    assert taken.name == "AlreadyExists"
    assert taken.error["data"]["current"]["value"]["title"] == "Ours"


async def test_a_chosen_name_is_kept_and_a_plan_goes(client: Wire, session: str, folder: Path) -> None:
    made = await client.call("plans/create", {"session": session, "id": "Großer Plan.md", "value": {"text": "x"}})
    assert made["item"]["id"] == "Großer Plan.md"
    params = {"session": session, "id": "Großer Plan.md"}
    await client.call("plans/delete", params)
    assert (await refused(client, "plans/delete", **params)).name == "NotFound"
    await client.call("plans/delete", {**params, "missingOk": True})
    assert list((folder / "plans").iterdir()) == []


@pytest.mark.parametrize("id", ["../../../precious.md", "../session.jsonl", "..", "session.jsonl", ".x.md", "a/b.md"])
async def test_no_name_leads_out_of_the_folder_of_plans(client: Wire, daemon: Daemon, session: str, id: str) -> None:
    precious = daemon.base / "ws/precious.md"
    precious.write_text("keep\n")
    for method, more in (
        ("get", {}),
        ("delete", {}),
        ("update", {"patch": {"set": {"text": "x"}}}),
        ("create", {"value": {"text": "x"}}),
    ):
        failed = await refused(client, f"plans/{method}", session=session, id=id, **more)
        assert (failed.name, failed.error["data"]["issues"][0]["path"]) == ("InvalidParams", "id")
    assert precious.read_text() == "keep\n"
    precious.unlink()


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({}, "value"),
        ({"text": ""}, "value"),
        ({"title": ""}, "value.title"),
        ({"title": " x"}, "value.title"),
        ({"title": "two\nlines"}, "value.title"),
        ({"title": 1}, "value.title"),
        ({"text": "\ud800"}, "value.text"),
        ({"text": "x", "state": "ready"}, "value.state"),
    ],
)
async def test_what_is_no_plan_is_named(client: Wire, session: str, folder: Path, value: Any, path: str) -> None:
    failed = await refused(client, "plans/create", session=session, value=value)
    assert (failed.name, failed.error["data"]["issues"][0]["path"]) == ("InvalidParams", path)
    (folder / "plans/x.md").write_text("x")
    if value.keys() - {"text"}:
        failed = await refused(client, "plans/update", session=session, id="x.md", patch={"set": value})
        assert failed.error["data"]["issues"][0]["path"] == path.replace("value", "patch.set")
    failed = await refused(client, "plans/update", session=session, id="x.md", patch={"unset": ["/text"]})
    assert failed.error["data"]["issues"][0]["path"] == "patch.unset"
    assert (await refused(client, "plans/create", session=session, value={"text": "x" * (1 << 20) + "y"})).name == (
        "TooLarge"
    )
    assert sorted(path.name for path in (folder / "plans").iterdir()) == ["x.md"]


async def test_a_linked_folder_of_plans_is_read_and_never_written(
    client: Wire, daemon: Daemon, session: str, folder: Path
) -> None:
    inside, outside = daemon.base / "ws/elsewhere", daemon.base / "outside"
    for path in (inside, outside):
        path.mkdir(exist_ok=True)
        (path / "x.md").write_text("# There\n")
    shutil.rmtree(folder / "plans")
    (folder / "plans").symlink_to(inside)
    listed = await client.call("plans/list", {"session": session})
    assert [item["value"]["title"] for item in listed["items"]] == ["There"]
    for method, more in (("create", {"value": {"text": "x"}}), ("delete", {"id": "x.md"})):
        assert (await refused(client, f"plans/{method}", session=session, **more)).name == "Forbidden"
    (folder / "plans").unlink()
    (folder / "plans").symlink_to(outside)
    for method, more in (("create", {"value": {"text": "x"}}), ("get", {"id": "x.md"}), ("list", {})):
        assert (await refused(client, f"plans/{method}", session=session, **more)).name == "Forbidden"
    for path in (inside, outside):
        assert [(one.name, one.read_text()) for one in path.iterdir()] == [("x.md", "# There\n")]


async def test_a_missing_folder_of_plans_is_empty_and_made_again(client: Wire, session: str, folder: Path) -> None:
    shutil.rmtree(folder / "plans")
    assert (await client.call("plans/list", {"session": session}))["items"] == []
    made = await new_plan(client, session, title="Again")
    assert (folder / "plans" / made["id"]).read_text() == "# Again\n"
    assert (await refused(client, "plans/list", session="260101-not-there")).name == "NotFound"
    assert (await refused(client, "plans/create", session="260101-not-there", value={"title": "x"})).name == "NotFound"


async def test_a_plan_that_waits_is_forgotten_when_it_goes(
    client: Wire, connect: Connect, daemon: Daemon, session: str, folder: Path
) -> None:
    other = await connect(daemon, "ws")
    await other.call("events/subscribe", {"workspace": "ws"})
    plan, kept = await new_plan(client, session, title="One"), await new_plan(client, session, title="Two")
    path = str(folder / "plans" / plan["id"])
    asked = {"id": session, "patch": {"set": {"pendingPlanExecution": {"planPath": path}}}}
    await client.call("sessions/update", asked)
    waits = {"planPath": path, "awaitingCompaction": True, "executionDispatched": False}
    assert await pending(client, session) == waits
    line = json.loads((folder / "session.jsonl").read_bytes().splitlines()[0])
    assert line["pendingPlanExecution"]["planPath"] == "{{SESSION_PATH}}/plans/" + plan["id"]

    marked = {"id": session, "patch": {"set": {"pendingPlanExecution": {"awaitingCompaction": False}}}}
    await client.call("sessions/update", marked)
    await client.call("plans/delete", {"session": session, "id": kept["id"]})
    wrong = {"session": session, "id": plan["id"], "expectedVersion": "other"}
    assert (await refused(client, "plans/delete", **wrong)).name == "VersionConflict"
    assert await pending(client, session) == {**waits, "awaitingCompaction": False}

    done = await client.call("plans/delete", {"session": session, "id": plan["id"]})
    assert await pending(client, session) is None
    assert not (folder / "plans" / plan["id"]).exists()
    await other.call("daemon/sync", {"workspace": "ws"})
    told = other.notifications("sessions/didChange")[-1]
    assert (told["patch"], told["revision"]) == ({"unset": ["/pendingPlanExecution"]}, done["revision"] - 1)
    await client.call("sessions/update", marked)
    assert await pending(client, session) is None

    again = await new_plan(client, session, title="Again")
    waiting = {"pendingPlanExecution": {"planPath": str(folder / "plans" / again["id"])}}
    await client.call("sessions/update", {"id": session, "patch": {"set": waiting}})
    await client.call("files/delete", {"session": session, "path": f"plans/{again['id']}"})
    assert await pending(client, session) is None


# Everything else


async def test_a_session_says_how_many_plans_and_attachments_it_has(
    client: Wire, daemon: Daemon, session: str, folder: Path
) -> None:
    async def counted() -> tuple[Any, Any]:
        info = (await client.call("sessions/get", {"id": session}))["item"]["info"]
        return info.get("planCount"), info.get("attachments")

    assert await counted() == (None, None)
    for title in ("One", "Two"):
        await new_plan(client, session, title=title)
    (folder / "plans/folder.md").mkdir()
    made = {"session": session, "value": {"name": "a.txt"}, "content": {"text": "x"}}
    id = (await client.call("attachments/create", made))["item"]["id"]
    (folder / "attachments" / f"{id}_a.txt.md").write_text("made of it")
    assert await counted() == (2, 1)
    shutil.rmtree(folder / "plans")
    (folder / "plans").symlink_to("/etc")
    assert await counted() == (None, 1)


async def test_all_files_of_a_session_are_listed_and_read_whatever_lies_beside_them(
    client: Wire, daemon: Daemon, session: str, folder: Path
) -> None:
    for name in ("downloads/assets", "data", "long_responses"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "x.json").write_text("[1]")
        (folder / name / "broken").symlink_to("nothing")
        listed = await client.call("files/list", {"session": session, "path": name})
        assert [(item["value"]["name"], item["value"]["kind"]) for item in listed["items"]] == [
            ("broken", "link"),
            ("x.json", "file"),
        ]
        read = await client.call("files/read", {"session": session, "path": f"{name}/x.json"})
        assert (read["data"], read["eof"]) == ("[1]", True)
    (folder / "plans/broken.md").symlink_to("nothing")
    (folder / "attachments/broken").symlink_to("nothing")
    await new_plan(client, session, title="One")
    assert len((await client.call("plans/list", {"session": session}))["items"]) == 1
    assert (await client.call("attachments/list", {"session": session}))["items"] == []


async def test_a_session_that_is_a_link_is_listed_as_it_is_loaded(client: Wire, daemon: Daemon, session: str) -> None:
    inside = daemon.base / "ws/aside/260101-linked-one"
    shutil.copytree(daemon.base / "ws/sessions" / session, inside)
    (daemon.base / "ws/sessions/260101-linked-one").symlink_to(inside)
    await client.call("daemon/sync", {"workspace": "ws"})
    listed = (await client.call("sessions/list", {"filter": {"id": "260101-linked-one"}}))["items"]
    assert [item["id"] for item in listed] == ["260101-linked-one"]
    got = (await client.call("sessions/get", {"id": "260101-linked-one"}))["item"]
    assert got["version"] == listed[0]["version"]


# Notes


async def test_notes_are_free_text_that_two_clients_do_not_lose(
    client: Wire, connect: Connect, daemon: Daemon, session: str, folder: Path
) -> None:
    other = await connect(daemon, "ws")
    await other.call("events/subscribe", {"workspace": "ws", "topics": ["files"]})
    empty = (await client.call("notes/get", {"session": session}))["item"]
    assert (empty["id"], empty["value"], empty["version"]) == (session, {"text": ""}, "")
    first = await client.call("notes/update", {"session": session, "text": "one\r\n", "expectedVersion": ""})
    assert (folder / "notes.md").read_bytes() == b"one\r\n"
    assert (await other.notified("files/didChange"))["path"] == f"sessions/{session}/notes.md"
    failed = await refused(other, "notes/update", session=session, text="two", expectedVersion="")
    assert failed.name == "VersionConflict"
    version = first["item"]["version"]
    second = await other.call("notes/update", {"session": session, "text": "two", "expectedVersion": version})
    assert (await client.call("notes/get", {"session": session}))["item"] == second["item"]
    same = await client.call("notes/update", {"session": session, "text": "two"})
    assert (same["changed"], same["revision"]) == (False, second["revision"])
    (folder / "notes.md").write_text("theirs")
    assert (await client.call("notes/get", {"session": session}))["item"]["value"]["text"] == "theirs"
    again = [await client.call("notes/update", {"session": session, "text": "", "key": "n" * 16}) for _ in range(2)]
    assert again[0] == again[1]
    assert (folder / "notes.md").read_bytes() == b""


@pytest.mark.parametrize(
    ("params", "name", "path"),
    [
        ({"text": "\ud800"}, "InvalidParams", "text"),
        ({"text": 1}, "InvalidParams", "text"),
        ({"text": "x" * (1 << 20) + "y"}, "TooLarge", None),
        ({"session": "..", "text": "x"}, "InvalidParams", "session"),
        ({"session": "260101-not-there", "text": "x"}, "NotFound", None),
    ],
)
async def test_what_cannot_be_noted_is_named(
    client: Wire, session: str, folder: Path, params: Any, name: str, path: str | None
) -> None:
    failed = await refused(client, "notes/update", **{"session": session, **params})
    assert failed.name == name
    assert path is None or failed.error["data"]["issues"][0]["path"] == path
    assert not (folder / "notes.md").exists()
