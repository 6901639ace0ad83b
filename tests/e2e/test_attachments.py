"""Attachments of sessions over the wire."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from openpyxl import Workbook
from PIL import Image

from tests.daemon import Daemon
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
GOLDEN = Path(__file__).parents[1] / "golden/sessions/workspace/sessions"
OTTER = "260307-silver-otter"
RIVER = "260102-glad-river"


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    root = daemon.base / "ws"
    shutil.copytree(GOLDEN / OTTER, root / "sessions" / OTTER)
    shutil.copytree(Path(__file__).parents[1] / "field_bugs/O07/ws/sessions" / RIVER, root / "sessions" / RIVER)
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
    return daemon.base / "ws/sessions" / session / "attachments"


async def refused(client: Wire, method: str, **params: Any) -> Failed:
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    return failed.value


async def attach(client: Wire, session: str, name: str, content: Any, **more: Any) -> dict[str, Any]:
    params = {"session": session, "value": {"name": name}, "content": content, **more}
    answer: dict[str, Any] = await client.call("attachments/create", params)
    return answer


async def test_a_recorded_session_has_the_attachments_that_its_messages_name(client: Wire, daemon: Daemon) -> None:
    items = (await client.call("attachments/list", {"session": OTTER, "sort": "name"}))["items"]
    assert [item["value"]["name"] for item in items] == ["harbour view.png", "notes.txt"]
    messages = (await client.call("messages/list", {"session": OTTER}))["items"]
    said = {one["id"]: one for item in messages for one in item["value"].get("attachments", [])}
    for item in items:
        told, value = said[item["id"]], item["value"]
        for name in ("type", "name", "mimeType", "size", "storedPath", "thumbnailPath"):
            assert value.get(name) == told.get(name), name
        got = await client.call("attachments/get", {"session": OTTER, "id": item["id"]})
        assert got["item"] == item
        read = await client.call("files/read", {"path": item["info"]["path"], "encoding": "base64"})
        assert read["size"] == value["size"]
    images = await client.call("attachments/list", {"session": OTTER, "filter": {"type": "image"}, "fields": ["size"]})
    assert [list(item["value"]) for item in images["items"]] == [["size"]]


async def test_a_file_is_stored_for_a_message_and_followed(
    client: Wire, connect: Connect, daemon: Daemon, session: str, folder: Path
) -> None:
    other = await connect(daemon, "ws")
    await other.call("events/subscribe", {"workspace": "ws", "topics": ["files"]})
    stored = await attach(client, session, "../a:b*c?.txt", {"text": "Größe"}, key="a" * 16)
    told = stored["attachment"]
    assert str(UUID(told["id"])) == told["id"] == stored["item"]["id"]
    path = folder / f"{told['id']}__a_b_c_.txt"
    assert told == {
        "id": told["id"],
        "type": "text",
        "name": "../a:b*c?.txt",
        "mimeType": "text/plain",
        "size": 7,
        "storedPath": str(path),
        "wasResized": False,
    }
    assert path.read_text() == "Größe"
    assert stored["item"]["value"]["name"] == "_a_b_c_.txt"
    event = await other.notified("files/didChange")
    assert (event["path"], event["kind"]) == (stored["item"]["info"]["path"], "created")
    again = await attach(client, session, "../a:b*c?.txt", {"text": "Größe"}, key="a" * 16)
    assert again == stored
    assert len(list(folder.iterdir())) == 1
    listed = await client.call("attachments/list", {"session": session})
    assert listed["items"] == [stored["item"]]

    message = {"type": "user", "content": "see", "attachments": [told]}
    await client.call("messages/append", {"session": session, "messages": [message]})
    line = json.loads((folder.parent / "session.jsonl").read_bytes().splitlines()[1])
    assert line["attachments"][0]["storedPath"] == "{{SESSION_PATH}}/attachments/" + path.name
    shown = (await client.call("messages/list", {"session": session}))["items"][0]["value"]
    assert shown["attachments"] == [told]


async def test_content_comes_as_bytes_a_blob_or_a_file_of_the_workspace(
    client: Wire, daemon: Daemon, session: str, folder: Path
) -> None:
    data = bytes(range(256)) * 2000
    (daemon.base / "ws/local.bin").write_bytes(data)
    made = await client.call("blobs/create", {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()})
    await client.call("blobs/write", {"blob": made["blob"], "offset": 0, "data": base64.b64encode(data).decode()})
    contents = (
        {"base64": base64.b64encode(data).decode()},
        {"blob": made["blob"]},
        {"path": f"{daemon.base}/ws/local.bin"},
    )
    for content in contents:
        stored = await attach(client, session, "x.bin", content)
        assert stored["attachment"]["size"] == len(data)
        assert Path(stored["attachment"]["storedPath"]).read_bytes() == data
    assert len(list(folder.iterdir())) == 3
    assert not [path for path in (daemon.base / "ws").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("params", "name", "path"),
    [
        ({"value": {}}, "InvalidParams", "value.name"),
        ({"value": {"name": ""}}, "InvalidParams", "value.name"),
        ({"value": {"name": 1}}, "InvalidParams", "value.name"),
        ({"value": {"name": "\ud800"}}, "InvalidParams", "value.name"),
        ({"value": {"name": "server.key"}}, "InvalidParams", "value.name"),
        ({"value": {"name": "a", "size": 1}}, "InvalidParams", "value.size"),
        ({"content": {"text": ""}}, "InvalidParams", "content"),
        ({"content": {"base64": "?"}}, "InvalidParams", "content.base64"),
        ({"content": {"path": "/etc/hostname"}}, "Forbidden", None),
        ({"content": {"blob": "b0"}}, "NotFound", None),
        ({"session": "../x"}, "InvalidParams", "session"),
        ({"session": "260101-not-there"}, "NotFound", None),
    ],
)
async def test_what_cannot_be_stored_is_named_and_leaves_nothing(
    client: Wire, session: str, folder: Path, params: Any, name: str, path: str | None
) -> None:
    well = {"session": session, "value": {"name": "a.txt"}, "content": {"text": "x"}}
    failed = await refused(client, "attachments/create", **{**well, **params})
    assert failed.name == name
    assert path is None or failed.error["data"]["issues"][0]["path"] == path
    assert list(folder.iterdir()) == []


async def test_an_image_gets_a_thumbnail_and_a_document_its_text(
    client: Wire, connect: Connect, daemon: Daemon, session: str, folder: Path
) -> None:
    image, book = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (800, 400), "navy").save(image, "PNG")
    sheets = Workbook()
    sheets.active.append(["rooms", 12])
    sheets.save(book)
    other = await connect(daemon, "ws")
    await other.call("events/subscribe", {"workspace": "ws", "topics": ["files"]})
    for name, data, member, made in (
        ("view.png", image, "thumbnailPath", "{}_thumb.png"),
        ("rooms.xlsx", book, "markdownPath", "{}_rooms.xlsx.md"),
        ("thumb.png", image, "thumbnailPath", "{}_thumb.png"),
        ("broken.png", io.BytesIO(b"no image"), None, None),
        ("old.doc", io.BytesIO(b"no document"), None, None),
    ):
        content = {"base64": base64.b64encode(data.getvalue()).decode()}
        stored = await attach(client, session, name, content)
        id, told, value = stored["item"]["id"], stored["attachment"], stored["item"]["value"]
        assert Path(told["storedPath"]).read_bytes() == data.getvalue()
        paths = {key: path for key, path in told.items() if key in ("thumbnailPath", "markdownPath")}
        assert paths == ({} if member is None else {member: str(folder / made.format(id))})
        assert {key: path for key, path in value.items() if key in ("thumbnailPath", "markdownPath")} == paths
        await other.call("daemon/sync", {"workspace": "ws"})
        event = other.notifications("files/didChange")[-1]
        assert event["revision"] == stored["revision"]
        assert folder.parent.parent.parent / event["path"] == Path(next(iter(paths.values()), told["storedPath"]))
        if member == "thumbnailPath":
            with Image.open(paths[member]) as small:
                assert small.size == (200, 100)
        if member == "markdownPath":
            assert "| rooms | 12 |" in Path(paths[member]).read_text()
    items = (await client.call("attachments/list", {"session": session}))["items"]
    assert sorted(item["value"]["name"] for item in items) == [
        "broken.png",
        "old.doc",
        "rooms.xlsx",
        "thumb-1.png",
        "view.png",
    ]


async def test_an_attachment_goes_with_all_that_was_made_of_it(client: Wire, session: str, folder: Path) -> None:
    stored, kept = [await attach(client, session, name, {"text": "x"}) for name in ("report.docx", "other.txt")]
    id = stored["item"]["id"]
    for name in (f"{id}_thumb.png", f"{id}_report.docx.md"):
        (folder / name).write_text("made")
    item = (await client.call("attachments/get", {"session": session, "id": id}))["item"]
    assert item["value"]["thumbnailPath"] == str(folder / f"{id}_thumb.png")
    assert item["value"]["markdownPath"] == str(folder / f"{id}_report.docx.md")
    failed = await refused(client, "attachments/delete", session=session, id=id, expectedVersion="other")
    assert failed.name == "VersionConflict"
    assert failed.error["data"]["resource"]["noun"] == "attachments"
    assert len(list(folder.iterdir())) == 4
    await client.call("attachments/delete", {"session": session, "id": id, "expectedVersion": item["version"]})
    assert [path.name for path in folder.iterdir()] == [f"{kept['item']['id']}_other.txt"]
    assert (await refused(client, "attachments/delete", session=session, id=id)).name == "NotFound"
    await client.call("attachments/delete", {"session": session, "id": id, "missingOk": True})
    for bad in ("..", "../session.jsonl", "a/b", ""):
        failed = await refused(client, "attachments/delete", session=session, id=bad)
        assert (failed.name, failed.error["data"]["issues"][0]["path"]) == ("InvalidParams", "id")
    (folder / "by hand.txt").write_text("x")
    await client.call("attachments/delete", {"session": session, "id": "by hand.txt"})
    assert not (folder / "by hand.txt").exists()


async def test_a_linked_folder_of_attachments_is_never_written(
    client: Wire, daemon: Daemon, session: str, folder: Path
) -> None:
    outside = daemon.base / "outside"
    outside.mkdir()
    (outside / "x.txt").write_text("x")
    folder.rmdir()
    folder.symlink_to(outside)
    well = {"session": session, "value": {"name": "a.txt"}, "content": {"text": "x"}}
    assert (await refused(client, "attachments/create", **well)).name == "Forbidden"
    assert (await refused(client, "attachments/list", session=session)).name == "Forbidden"
    assert (await refused(client, "attachments/delete", session=session, id="x.txt")).name == "Forbidden"
    folder.unlink()
    (daemon.base / "ws/aside").mkdir()
    (daemon.base / "ws/aside/x.txt").write_text("x")
    folder.symlink_to(daemon.base / "ws/aside")
    assert [item["id"] for item in (await client.call("attachments/list", {"session": session}))["items"]] == ["x.txt"]
    assert (await refused(client, "attachments/create", **well)).name == "Forbidden"
    assert (await refused(client, "attachments/delete", session=session, id="x.txt")).name == "Forbidden"
    assert [path.name for path in (daemon.base / "ws/aside").iterdir()] == ["x.txt"]


async def test_paths_in_stored_text_come_back_as_they_were_and_no_file_is_called_like_a_token(
    client: Wire, daemon: Daemon
) -> None:
    root = daemon.base / "ws/sessions" / RIVER
    before = (root / "session.jsonl").read_bytes().splitlines()
    first, tool = [item["value"] for item in (await client.call("messages/list", {"session": RIVER}))["items"]]
    assert first["content"] == f"open {root}/plans/first.md"
    assert first["attachments"][0]["storedPath"] == f"{root}/attachments/first.md"
    said = json.loads(before[2])
    assert (tool["toolInput"], tool["toolResult"]) == (said["toolInput"], said["toolResult"])
    paths = []
    for text in ("one", "two"):
        stored = await attach(client, RIVER, "first.md", {"text": text})
        paths.append(Path(stored["attachment"]["storedPath"]))
        assert paths[-1].read_text() == text
        message = {"type": "user", "content": "see", "attachments": [stored["attachment"]]}
        await client.call("messages/append", {"session": RIVER, "messages": [message]})
    await client.call("sessions/update", {"id": RIVER, "patch": {"set": {"name": "Renamed"}}})
    assert {path.parent for path in paths} == {root / "attachments"}
    assert len(set(paths)) == 2
    assert (root / "session.jsonl").read_bytes().splitlines()[1:3] == before[1:3]
    names = [path.name for path in daemon.base.rglob("*")]
    assert not [name for name in names if "{{" in name]
    assert [path.name for path in root.iterdir() if path.is_dir()].count("attachments") == 1
