"""Memory, uploads and the prompt block of projects over the wire, on the recorded projects."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.model.project_context import INSTRUCTIONS
from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

GOLDEN = Path(__file__).parents[1] / "golden" / "projects"
EXPECTED = json.loads((GOLDEN / "expected.json").read_bytes())
ATLAS = "proj_a11a5001"


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    root = set_up(daemon)
    shutil.copytree(GOLDEN / "workspace" / "projects", root / "projects", dirs_exist_ok=True)
    for path, at in EXPECTED["setup"]["assetMtimesMs"].items():
        os.utime(root / path, ns=(at * 1_000_000, at * 1_000_000))
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, WORKSPACE)


async def new_project(client: Wire) -> tuple[str, str]:
    value = (await client.call("projects/create", {"value": {"name": "Garden"}}))["item"]["value"]
    return value["id"], value["slug"]


async def refused(client: Wire, method: str, **params: Any) -> Failed:
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    return failed.value


@pytest.mark.parametrize("slug", EXPECTED["projects"])
async def test_a_recorded_project_tells_its_sessions_what_the_app_tells(
    client: Wire, daemon: Daemon, slug: str
) -> None:
    expected, root = EXPECTED["projects"][slug], daemon.base / "ws"
    got = (await client.call("projects/get", {"id": slug, "context": True}))["item"]
    context = got["info"]["context"]
    assert context["assetsPath"] == expected["load"]["assetsPath"].replace("${ROOT}", str(root))
    shown = [one for one in expected["assets"] if not one["filename"].startswith(".")]  # hidden, as everywhere
    assert [(one["name"], one["mimeType"], one["size"]) for one in context["assets"]] == [
        (one["filename"], one["mimeType"], one["sizeBytes"]) for one in shown
    ]
    if isinstance(expected["promptBlock"], list):
        lines = [line.replace("${ROOT}", str(root)) for line in expected["promptBlock"] if "- .dotfile" not in line]
        assert context["text"].replace(INSTRUCTIONS, "<<instructions>>").split("\n") == lines
    assert "context" not in (await client.call("projects/get", {"id": slug}))["item"].get("info", {})

    memory = (await client.call("memory/get", {"project": slug}))["item"]
    assert memory["id"] == got["id"]
    assert memory["info"]["tokens"] == expected["memory"]["fileTokens"]
    assert ("truncatedAt" in memory["info"]) == expected["memory"]["truncated"]

    page = await client.call("assets/list", {"project": slug, "limit": 3})
    assert [item["id"] for item in page["items"]] == [one["filename"] for one in shown][:3]
    if page["items"]:
        path = page["items"][0]["info"]["path"]
        assert (await client.call("files/read", {"path": path}))["size"] == shown[0]["sizeBytes"]


async def test_what_is_noted_comes_on_top_and_two_who_note_at_once_lose_nothing(
    client: Wire, connect: Connect, daemon: Daemon
) -> None:
    project, slug = await new_project(client)
    other = await connect(daemon, WORKSPACE)
    await other.call("events/subscribe", {"workspace": WORKSPACE, "topics": ["files"]})
    empty = (await client.call("memory/get", {"project": project}))["item"]
    assert (empty["value"], empty["version"]) == ({"text": ""}, "")
    asked = [client.ask("memory/update", {"project": project, "prepend": f"- {n}"}) for n in range(5)]
    asked_other = [other.ask("memory/update", {"project": slug, "prepend": f"- other {n}"}) for n in range(5)]
    for id in asked:
        assert (await client.answer(id))["changed"]
    for id in asked_other:
        await other.answer(id)
    text = (await client.call("memory/get", {"project": project}))["item"]["value"]["text"]
    assert sorted(text.split("\n")) == sorted([f"- {n}" for n in range(5)] + [f"- other {n}" for n in range(5)])
    assert [line for line in text.split("\n") if "other" not in line] == [f"- {n}" for n in (4, 3, 2, 1, 0)]
    assert (daemon.base / "ws/projects" / slug / "MEMORY.md").read_text() == text
    assert (await other.notified("files/didChange"))["path"] == f"projects/{slug}/MEMORY.md"


async def test_a_memory_is_replaced_only_as_it_was_read(client: Wire, daemon: Daemon) -> None:
    project, slug = await new_project(client)
    first = (await client.call("memory/update", {"project": project, "text": "one\n", "expectedVersion": ""}))["item"]
    same = await client.call("memory/update", {"project": project, "text": "one\n"})
    assert (same["changed"], same["item"]["version"]) == (False, first["version"])
    (daemon.base / "ws/projects" / slug / "MEMORY.md").write_text("theirs\n")
    failed = await refused(client, "memory/update", project=project, text="two\n", expectedVersion=first["version"])
    assert failed.name == "VersionConflict"
    now = (await client.call("memory/get", {"project": project}))["item"]
    assert now["value"]["text"] == "theirs\n"
    done = await client.call("memory/update", {"project": project, "text": "", "expectedVersion": now["version"]})
    assert done["item"]["value"]["text"] == ""
    key = "k" * 16
    again = [await client.call("memory/update", {"project": project, "prepend": "once", "key": key}) for _ in range(2)]
    assert again[0]["revision"] == again[1]["revision"]
    assert (await client.call("memory/get", {"project": project}))["item"]["value"]["text"] == "once"


@pytest.mark.parametrize(
    ("params", "name", "path"),
    [
        ({}, "InvalidParams", "text"),
        ({"text": "a", "prepend": "b"}, "InvalidParams", "text"),
        ({"text": "\ud800"}, "InvalidParams", "text"),
        ({"text": "x" * (1 << 20) + "y"}, "TooLarge", None),
        ({"project": "..", "text": "x"}, "InvalidParams", "project"),
        ({"project": "../atlas-migration", "text": "x"}, "InvalidParams", "project"),
        ({"project": "nowhere", "text": "x"}, "NotFound", None),
    ],
)
async def test_what_cannot_be_noted_is_named(client: Wire, params: Any, name: str, path: str | None) -> None:
    before = (await client.call("memory/get", {"project": ATLAS}))["item"]
    failed = await refused(client, "memory/update", **{"project": ATLAS, **params})
    assert failed.name == name
    assert path is None or failed.error["data"]["issues"][0]["path"] == path
    assert (await client.call("memory/get", {"project": ATLAS}))["item"] == before


async def test_uploads_get_names_that_are_free_and_go_again(client: Wire, daemon: Daemon) -> None:
    project, slug = await new_project(client)
    upload = {"project": project, "content": {"text": "x"}}
    asked = [client.ask("assets/create", {**upload, "value": {"name": "dir/plan.tar.gz"}}) for _ in range(3)]
    names = [(await client.answer(id))["item"]["id"] for id in asked]
    assert sorted(names) == ["plan.tar-2.gz", "plan.tar-3.gz", "plan.tar.gz"]
    folder = daemon.base / "ws/projects" / slug / "assets"
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    item = (await client.call("assets/create", {**upload, "value": {"name": "..\\..\\Größe.PNG"}}))["item"]
    assert (item["id"], item["value"]["mimeType"], item["value"]["size"]) == ("Größe.PNG", "image/png", 1)
    named = (await client.call("assets/create", {**upload, "value": {}}))["item"]["id"]
    assert named.startswith("asset_")
    (folder / "link").symlink_to("/etc/hosts")
    (folder / "folder").mkdir()
    listed = [item["id"] for item in (await client.call("assets/list", {"project": project}))["items"]]
    assert {"link", "folder"}.isdisjoint(listed)
    found = await client.call("assets/list", {"project": project, "filter": {"mimeType": "image/png"}})
    assert [item["id"] for item in found["items"]] == ["Größe.PNG"]
    assert (await refused(client, "assets/delete", project=project, id=names[0], expectedVersion="x")).name == (
        "VersionConflict"
    )
    await client.call("assets/delete", {"project": project, "id": names[0]})
    assert (await refused(client, "assets/delete", project=project, id=names[0])).name == "NotFound"
    for bad in ("../config.json", "..", "a/b", ""):
        assert (await refused(client, "assets/delete", project=project, id=bad)).name == "InvalidParams"
    assert (await refused(client, "assets/create", **upload, value={"name": "server.key"})).name == "InvalidParams"
    assert (await refused(client, "assets/create", **upload, value={"name": "a", "x": 1})).name == "InvalidParams"
    assert (folder.parent / "config.json").exists()


async def test_links_lead_nowhere(client: Wire, daemon: Daemon) -> None:
    project, slug = await new_project(client)
    folder, outside = daemon.base / "ws/projects" / slug, daemon.base / "outside"
    outside.mkdir()
    (outside / "MEMORY.md").write_text("secret\n")
    (folder / "MEMORY.md").symlink_to(outside / "MEMORY.md")
    shutil.rmtree(folder / "assets")
    (folder / "assets").symlink_to(outside)
    assert (await refused(client, "memory/get", project=project)).name == "Forbidden"
    assert (await refused(client, "memory/update", project=project, text="x")).name == "Forbidden"
    asset = {"project": project, "value": {"name": "a"}, "content": {"text": "x"}}
    assert (await refused(client, "assets/create", **asset)).name == "Forbidden"
    assert (await refused(client, "assets/list", project=project)).name == "Forbidden"
    assert (outside / "MEMORY.md").read_text() == "secret\n"
    assert [path.name for path in outside.iterdir()] == ["MEMORY.md"]
