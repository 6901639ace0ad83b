"""Projects over the wire: other names, archiving, deleting with what follows for sessions; the recorded operations."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire
from tests.workspace.house import line

Connect = Callable[..., Awaitable[Wire]]

GOLDEN = Path(__file__).parents[1] / "golden" / "projects"
ATLAS = {"id": "proj_a11a5001", "slug": "atlas", "name": "Atlas", "createdAt": 1, "updatedAt": 1}
MANY = 450


def project(daemon: Daemon, folder: str, text: str) -> Path:
    path = daemon.base / "ws" / "projects" / folder / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def session(daemon: Daemon, id: str, **header: Any) -> None:
    folder = daemon.base / "ws" / "sessions" / id
    folder.mkdir(parents=True)
    (folder / "session.jsonl").write_bytes(line({"id": id, "createdAt": 1, "messageCount": 0, **header}))


def header(daemon: Daemon, id: str) -> Any:
    return json.loads((daemon.base / "ws" / "sessions" / id / "session.jsonl").read_bytes().split(b"\n")[0])


def begin(daemon: Daemon) -> None:
    root = set_up(daemon)
    for other in (root / "sessions").glob("*/session.jsonl"):
        other.unlink()
    project(daemon, "atlas", json.dumps(ATLAS))
    project(daemon, "other", json.dumps({**ATLAS, "id": "proj_b0b0b002", "slug": "other"}))


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    begin(daemon)
    session(daemon, "a", projectId=ATLAS["id"], lastUsedAt=7, workingDirectory="/srv/a", odd=None)
    session(daemon, "b", projectId="proj_b0b0b002")
    session(daemon, "c", name=f"mentions {ATLAS['id']}")
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
def many(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    begin(daemon)
    for number in range(MANY):
        session(daemon, f"s-{number}", projectId=ATLAS["id"])
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    client = await connect(daemon, WORKSPACE)
    await client.call("events/subscribe", {"workspace": WORKSPACE})
    return client


async def test_deleting_a_project_unbinds_its_sessions_first(client: Wire, daemon: Daemon, connect: Connect) -> None:
    other = await connect(daemon, WORKSPACE)
    await other.call("events/subscribe", {"workspace": WORKSPACE})
    untouched = [header(daemon, id) for id in "bc"]
    done = await client.call("projects/delete", {"id": "atlas", "key": "k" * 16})
    assert done["sessions"] == 1
    assert await client.call("projects/delete", {"id": "atlas", "key": "k" * 16}) == done
    now = header(daemon, "a")
    assert "projectId" not in now
    assert (now["lastUsedAt"], now["workingDirectory"], now["odd"]) == (7, "/srv/a", None)
    assert [header(daemon, id) for id in "bc"] == untouched
    await other.call("daemon/sync", {"workspace": WORKSPACE})
    told = [m for m in other.received if str(m.get("method")).startswith(("sessions/", "projects/"))]
    assert [event["method"] for event in told] == ["sessions/didChange", "projects/didDelete"]
    assert told[0]["params"]["patch"] == {"unset": ["/projectId"]}
    assert told[1]["params"]["id"] == ATLAS["id"]
    assert not (daemon.base / "ws" / "projects" / "atlas").exists()


async def test_a_dead_project_is_never_written_back(client: Wire, daemon: Daemon, connect: Connect) -> None:
    message = {"id": "m-1", "type": "user", "content": "Hello", "timestamp": 1}
    await client.call("messages/append", {"session": "a", "messages": [message]})
    await client.call("projects/delete", {"id": ATLAS["id"]})
    await client.call("messages/append", {"session": "a", "messages": [{**message, "id": "m-2"}]})
    await client.call("sessions/update", {"id": "a", "patch": {"set": {"name": "Later"}}})
    daemon.stop()
    assert "projectId" not in header(daemon, "a")
    daemon.start()
    again = await connect(daemon, WORKSPACE)
    assert "projectId" not in (await again.call("sessions/get", {"id": "a"}))["item"]["value"]
    with pytest.raises(Failed, match="ValidationFailed"):
        await again.call("sessions/create", {"value": {"projectId": ATLAS["id"]}})


async def test_a_project_that_changed_meanwhile_stays_with_its_sessions(client: Wire, daemon: Daemon) -> None:
    with pytest.raises(Failed, match="VersionConflict"):
        await client.call("projects/delete", {"id": "atlas", "expectedVersion": "0123456789abcdef"})
    assert header(daemon, "a")["projectId"] == ATLAS["id"]
    assert (daemon.base / "ws" / "projects" / "atlas" / "config.json").exists()


async def test_what_is_not_there_is_not_found_or_missing_as_asked(client: Wire) -> None:
    for id in ("nope", "proj_00000000"):
        with pytest.raises(Failed, match="NotFound"):
            await client.call("projects/delete", {"id": id})
        with pytest.raises(Failed, match="NotFound"):
            await client.call("projects/get", {"id": id})
        assert (await client.call("projects/delete", {"id": id, "missingOk": True}))["sessions"] == 0


@pytest.mark.parametrize("id", ["..", ".", "", "../projects/atlas", "/", "atlas/../..", "a\\b", ".trash", "a\n"])
@pytest.mark.parametrize("method", ["projects/get", "projects/delete", "projects/update"])
async def test_a_name_that_is_no_name_reaches_no_file(client: Wire, daemon: Daemon, method: str, id: str) -> None:
    with pytest.raises(Failed, match="InvalidParams"):
        await client.call(method, {"id": id, **({"patch": {"set": {"name": "x"}}} if "update" in method else {})})
    assert (daemon.base / "ws" / "config.json").exists()
    assert (daemon.base / "ws" / "projects" / "atlas" / "config.json").exists()


async def test_a_project_is_found_by_id_folder_and_slug_and_written_where_it_was_read(
    client: Wire, daemon: Daemon
) -> None:
    moved = project(daemon, "moved", json.dumps({**ATLAS, "id": "proj_b0000003", "slug": "original"}))
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    for name in ("proj_b0000003", "moved", "original"):
        assert (await client.call("projects/get", {"id": name}))["item"]["id"] == "proj_b0000003"
    await client.call("projects/update", {"id": "original", "patch": {"set": {"name": "Touched"}}})
    assert json.loads(moved.read_bytes())["name"] == "Touched"
    assert not (daemon.base / "ws" / "projects" / "original").exists()


async def test_a_renamed_or_archived_project_keeps_its_folder_and_its_sessions(client: Wire, daemon: Daemon) -> None:
    patch = {"set": {"name": "Globe", "archivedAt": 5}}
    value = (await client.call("projects/update", {"id": "atlas", "patch": patch}))["item"]["value"]
    assert (value["name"], value["slug"], value["archivedAt"]) == ("Globe", "atlas", 5)
    value = (await client.call("projects/update", {"id": "atlas", "patch": {"unset": ["/archivedAt"]}}))["item"][
        "value"
    ]
    assert "archivedAt" not in value
    assert header(daemon, "a")["projectId"] == ATLAS["id"]


async def test_a_damaged_project_can_be_deleted_and_its_sessions_are_unbound(client: Wire, daemon: Daemon) -> None:
    (daemon.base / "ws" / "projects" / "atlas" / "config.json").write_text("{")
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    assert (await client.call("projects/delete", {"id": ATLAS["id"]}))["sessions"] == 1
    assert "projectId" not in header(daemon, "a")


@pytest.mark.parametrize("parts", [1, 2])
async def test_the_next_start_ends_what_a_kill_cut_short(many: Daemon, connect: Connect, parts: int) -> None:
    client = await connect(many, WORKSPACE)
    client.ask("projects/delete", {"id": "atlas", "workDoneToken": "t"})
    await client.notified("$/progress", 1 + parts)
    many.kill()
    assert any("projectId" in header(many, f"s-{number}") for number in range(MANY))
    many.start()
    again = await connect(many, WORKSPACE)
    await again.call("daemon/sync", {"workspace": WORKSPACE})
    assert not any("projectId" in header(many, f"s-{number}") for number in range(MANY))
    assert [item["id"] for item in (await again.call("projects/list"))["items"]] == ["proj_b0b0b002"]
    assert not list((many.config / "craftd" / "intents").glob("*"))


async def test_recorded_operations_end_as_the_app_ends_them_but_for_the_named_differences(
    client: Wire, daemon: Daemon
) -> None:
    home = daemon.environment["HOME"]
    text = (GOLDEN / "operations.json").read_text().replace("${HOME_DIR}", home)
    for step in json.loads(text)["steps"]:
        args, expected = step["args"], step["result"]
        if step["op"] == "create":
            answer = await client.call("projects/create", {"value": args})
            if "color" in args:
                expected = {**expected, "color": args["color"]}
        else:
            patch = args["patch"]
            if isinstance(patch, str):
                patch = {name: expected[name] for name in ("color", "kanbanColumns")}
            if "error" in expected:
                with pytest.raises(Failed, match="NotFound"):
                    await client.call("projects/update", {"id": args["slug"], "patch": {"set": patch}})
                continue
            if "id" in patch:
                with pytest.raises(Failed, match="ValidationFailed"):
                    await client.call("projects/update", {"id": args["slug"], "patch": {"set": patch}})
                patch = {"name": patch["name"]}
            answer = await client.call("projects/update", {"id": args["slug"], "patch": {"set": patch}})
        chosen = ("id", "createdAt", "updatedAt")
        value = answer["item"]["value"]
        assert all(name in value for name in chosen)
        assert {name: member for name, member in value.items() if name not in chosen} == {
            name: member for name, member in expected.items() if name not in chosen
        }
