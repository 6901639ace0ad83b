"""Files of a workspace over the wire: what is served, what is refused, and that nothing leads out."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import socket
import time
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from tests.daemon import Daemon
from tests.e2e.places import start_impatient
from tests.wire import PATIENCE, Failed, Wire

SESSION = "260704-quiet-fjord"

_numbers = count(1)


@define
class Place:
    """A workspace with one session, and a folder beside it that nobody may reach."""

    daemon: Daemon
    id: str
    root: Path
    outside: Path
    client: Wire

    async def refused(self, method: str, **params: Any) -> dict[str, Any]:
        """`data` of the error that the call ends with."""
        with pytest.raises(Failed) as failure:
            await self.client.call(method, params)
        data: dict[str, Any] = failure.value.error["data"]
        return data

    async def read(self, path: str, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = await self.client.call("files/read", {"path": path, **more})
        return answer

    async def write(self, path: str, text: str = "new", **more: Any) -> dict[str, Any]:
        params = {"path": path, "content": {"text": text}, **more}
        answer: dict[str, Any] = await self.client.call("files/write", params)
        return answer

    async def sync(self) -> None:
        await self.client.call("daemon/sync", {"workspace": self.id})

    async def names(self, path: str = "", **more: Any) -> list[str]:
        page = await self.client.call("files/list", {"path": path, **more})
        return [item["value"]["name"] for item in page["items"]]


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    daemon.register()
    daemon.start()
    return daemon


@pytest.fixture
async def place(daemon: Daemon) -> AsyncIterator[Place]:
    number = next(_numbers)
    (base := daemon.base / str(number)).mkdir()
    root, outside = base / "ws", base / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret-plan.txt").write_text("not yours")
    first = await daemon.connect()
    await first.call("workspaces/create", {"id": f"ws-{number}", "value": {"name": "Files", "path": str(root)}})
    client = await daemon.connect(f"ws-{number}")
    await client.call("sessions/create", {"id": SESSION, "value": {"name": "Plan the move"}})
    yield Place(daemon, f"ws-{number}", root, outside, client)
    await first.close()
    await client.close()


# Reading and writing


async def test_what_was_written_is_there(place: Place) -> None:
    written = await place.write("data/notes/first.txt", "Where do we begin?", session=SESSION)
    path = place.root / "sessions" / SESSION / "data" / "notes" / "first.txt"
    assert path.read_text() == "Where do we begin?"
    read = await place.client.call("files/read", {"uri": path.as_uri()})
    assert read == {
        "data": "Where do we begin?",
        "offset": 0,
        "length": 18,
        "size": 18,
        "eof": True,
        "version": written["version"],
    }
    assert await place.read("data/notes/first.txt", session=SESSION, ifVersion=read["version"]) == {
        "unchanged": True,
        "version": read["version"],
    }
    assert not [name for name in os.listdir(place.root) if name.endswith(".tmp")]


async def test_a_write_keeps_the_mode_and_a_new_file_is_as_open_as_its_folder(place: Place) -> None:
    (place.root / "run.sh").write_text("old")
    (place.root / "run.sh").chmod(0o750)
    await place.write("run.sh")
    assert (place.root / "run.sh").stat().st_mode & 0o777 == 0o750
    place.root.chmod(0o700)
    await place.write("new.txt")
    assert (place.root / "new.txt").stat().st_mode & 0o777 == 0o600


async def test_a_version_guards_a_write_and_a_removal(place: Place) -> None:
    first = await place.write("a.txt", expectedVersion="")
    assert (await place.refused("files/write", path="a.txt", content={"text": "x"}, expectedVersion=""))["code"] == (
        "VersionConflict"
    )
    (place.root / "a.txt").write_text("theirs, and longer")
    conflict = await place.refused("files/write", path="a.txt", content={"text": "x"}, expectedVersion=first["version"])
    assert conflict["current"] == {"version": (await place.read("a.txt"))["version"]}
    assert (await place.refused("files/delete", path="a.txt", expectedVersion=first["version"]))["code"] == (
        "VersionConflict"
    )
    await place.client.call("files/delete", {"path": "a.txt", "expectedVersion": conflict["current"]["version"]})
    assert not (place.root / "a.txt").exists()
    assert (await place.refused("files/delete", path="a.txt"))["code"] == "NotFound"
    await place.client.call("files/delete", {"path": "a.txt", "missingOk": True})


async def test_changes_of_one_connection_are_made_in_the_order_sent(place: Place) -> None:
    client = place.client
    ids = [client.ask("files/write", {"path": "a.txt", "content": {"text": "x" * n}}) for n in (400_000, 1, 300_000, 7)]
    last = client.ask("files/read", {"path": "a.txt"})
    assert [(await client.answer(id))["size"] for id in ids] == [400_000, 1, 300_000, 7]
    assert (await client.answer(last))["data"] == "xxxxxxx"
    made = client.ask("sessions/create", {"id": "260705-calm-lake", "value": {}})
    into = client.ask("files/write", {"path": "data/a", "session": "260705-calm-lake", "content": {"text": "x"}})
    gone = client.ask("sessions/delete", {"id": "260705-calm-lake"})
    late = client.ask("files/write", {"path": "data/b", "session": "260705-calm-lake", "content": {"text": "x"}})
    for id in (made, into, gone):
        await client.answer(id)
    with pytest.raises(Failed, match="NotFound"):
        await client.answer(late)
    assert not (place.root / "sessions" / "260705-calm-lake").exists()


async def test_folders_are_made_in_the_folder_of_a_record_and_nowhere_else(place: Place) -> None:
    assert (await place.refused("files/write", path="docs/a.md", content={"text": "x"}))["code"] == "NotFound"
    missing = await place.refused("files/write", path="sessions/nobody/data/a", content={"text": "x"})
    assert missing["resource"] == {"noun": "sessions", "id": "nobody", "workspace": place.id}
    assert (await place.refused("files/write", path="skills/a.md", content={"text": "x"}))["code"] == "Forbidden"
    (place.root / "docs").mkdir()
    await place.write("docs/a.md")
    assert await place.names("docs") == ["a.md"]


# Ranges


async def test_text_comes_in_whole_characters(place: Place) -> None:
    text = "aä€𝄞" * 3
    await place.write("t.txt", text)
    for length in range(1, 12):
        offset, pieces = 0, []
        while True:
            piece = await place.read("t.txt", offset=offset, length=length)
            pieces.append(piece["data"])
            offset += piece["length"]
            assert piece["length"] == len(piece["data"].encode())
            if piece["eof"]:
                break
        assert "".join(pieces) == text
    assert (await place.refused("files/read", path="t.txt", offset=2))["issues"] == [
        {"path": "offset", "message": "lies inside a character"}
    ]
    assert (await place.read("t.txt", offset=1000)) | {"version": ""} == {
        "version": "", "data": "", "offset": 1000, "length": 0, "size": 30, "eof": True,
    }  # fmt: skip


async def test_what_is_no_text_is_read_as_base64(place: Place) -> None:
    data = b"ok \xff\xfe\x00 " + bytes(range(256))
    (place.root / "b.bin").write_bytes(data)
    said = (await place.refused("files/read", path="b.bin"))["issues"]
    assert said == [{"path": "encoding", "message": "byte 3 is no UTF-8: read this file as base64"}]
    piece = await place.read("b.bin", encoding="base64", offset=2, length=100)
    assert base64.b64decode(piece["data"]) == data[2:102]
    assert not piece["eof"]


async def test_an_answer_has_at_most_one_mebibyte(place: Place) -> None:
    (place.root / "big.txt").write_text("ä" * (1 << 20))
    piece = await place.read("big.txt", length=1 << 30)
    assert (piece["length"], piece["eof"], piece["size"]) == (1 << 20, False, 1 << 21)


# Names


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret-plan.txt",
        "/etc/passwd",
        "a/../../x",
        "a//b",
        "./a",
        "a/",
        "a\0b",
        "x" * 256,
        "\ud800",
        "é" * 128,
    ],
)
@pytest.mark.parametrize("method", ["files/list", "files/read", "files/write", "files/delete"])
async def test_what_is_no_name_in_the_workspace_is_refused(place: Place, method: str, path: str) -> None:
    content = {"content": {"text": "x"}} if method == "files/write" else {}
    refused = await place.refused(method, path=path, **content)
    assert refused["code"] == "InvalidParams"
    assert refused["issues"][0]["path"] == "path"


@pytest.mark.parametrize(
    "path",
    [".env", "sub/.ssh/config", "credentials.enc", "CREDENTIALS.ENC", "id_rsa", "id_ed25519.bak", "x.PEM", "a.key",
     "secrets.yaml", "\u200b.env", "x.ｐem", ".git/config"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["files/list", "files/read", "files/write", "files/delete"])
async def test_hidden_files_and_keys_are_refused_however_they_are_spelt(place: Place, method: str, path: str) -> None:
    target = place.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("secret")
    content = {"content": {"text": "x"}} if method == "files/write" else {}
    assert (await place.refused(method, path=path, **content))["code"] == "Forbidden"
    assert target.read_text() == "secret"
    assert target.name not in await place.names(path.rpartition("/")[0] if "/" not in path else "")


async def test_a_uri_of_another_place_is_refused(place: Place) -> None:
    assert (await place.refused("files/read", uri=(place.outside / "secret-plan.txt").as_uri()))["code"] == "Forbidden"
    for odd in ("http://x.test/a", "file://[", "file://[::1/a"):
        assert (await place.refused("files/read", uri=odd))["code"] == "InvalidParams"
    assert (await place.refused("files/read", uri=f"file://{place.root}/%2e%2e/outside/x"))["code"] == "InvalidParams"
    assert (await place.refused("files/read", uri=place.root.as_uri() + "/a", path="a"))["code"] == "InvalidParams"


async def test_names_are_taken_as_they_are(place: Place) -> None:
    composed, apart = (unicodedata.normalize(form, "Zürich.txt") for form in ("NFC", "NFD"))
    await place.write(composed, "composed")
    await place.write(apart, "apart")
    await place.write("zürich.TXT", "case")
    assert (await place.read(composed))["data"] == "composed"
    assert (await place.read(apart))["data"] == "apart"
    assert {composed, apart, "zürich.TXT"} <= set(await place.names())


async def test_a_name_that_is_no_utf_8_is_listed_and_can_be_read(place: Place) -> None:
    Path(os.fsdecode(os.fsencode(place.root) + b"/caf\xe9")).write_text("bytes")
    names = [name for name in await place.names() if name.startswith("caf")]
    assert names == ["caf\udce9"]
    assert (await place.read(names[0]))["data"] == "bytes"


# Records


@pytest.mark.parametrize(
    ("path", "noun"),
    [("config.json", "workspaces"), (f"sessions/{SESSION}/session.jsonl", "sessions"), ("labels/config.json", "labels"),
     ("skills/x/SKILL.md", "skills"), ("skills/x/skill.md", "skills"), ("sources/x/guide.md", "sources"),
     ("projects/x/config.json", "projects"), ("automations.json", "automations"), ("permissions.json", "permissions"),
     ("tasks/x/runs/1/run-log.jsonl", "runs")],
)  # fmt: skip
async def test_records_are_read_as_files_and_written_by_their_methods(place: Place, path: str, noun: str) -> None:
    target = place.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.exists() or target.write_text("{}")
    before = target.read_text()
    assert (await place.read(path))["data"] == before
    for method, more in (("files/write", {"content": {"text": "x"}}), ("files/delete", {})):
        refused = await place.refused(method, path=path, **more)
        assert (refused["code"], refused["state"]) == ("InvalidState", "resource")
        assert all(name.startswith(f"{noun}/") for name in refused["allowed"])
    assert target.read_text() == before
    if noun in ("sessions", "labels"):
        assert f"{noun}/update" in refused["allowed"]


# What is no regular file


async def test_pipes_and_sockets_are_never_opened(place: Place) -> None:
    os.mkfifo(place.root / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(place.root / "sock"))
    for path in ("pipe", "sock"):
        assert (await place.refused("files/read", path=path))["code"] == "Forbidden"
        assert (await place.refused("files/write", path=path, content={"text": "x"}))["code"] == "Forbidden"
        assert (await place.refused("files/write", path="a", content={"path": str(place.root / path)}))["code"] == (
            "Forbidden"
        )
    listening.close()
    page = await place.client.call("files/list", {"filter": {"kind": "other"}})
    assert [item["id"] for item in page["items"]] == ["pipe", "sock"]
    assert (await place.refused("files/read", path="sessions"))["allowed"] == ["files/list"]
    await place.write("plain")
    assert (await place.refused("files/list", path="plain"))["allowed"] == ["files/read"]
    assert (await place.refused("files/read", path="plain/below"))["code"] == "NotFound"


# Links


async def test_a_link_to_a_file_inside_is_read_and_written_at_its_target(place: Place) -> None:
    (place.root / "docs").mkdir()
    (place.root / "docs" / "real.txt").write_text("old")
    (place.root / "near.txt").symlink_to("docs/real.txt")
    (place.root / "far.txt").symlink_to(place.root / "docs" / "real.txt")
    for link in ("near.txt", "far.txt"):
        assert (await place.read(link))["data"] == (place.root / "docs" / "real.txt").read_text()
        await place.write(link, f"by {link}")
        assert (place.root / "docs" / "real.txt").read_text() == f"by {link}"
        assert (place.root / link).is_symlink()
    await place.client.call("files/delete", {"path": "near.txt"})
    assert not (place.root / "near.txt").is_symlink()
    assert (place.root / "docs" / "real.txt").exists()


@pytest.mark.parametrize(
    "target",
    ["../outside/secret-plan.txt", "/etc/hostname", "../outside/new.txt", "loop", "docs/../../outside/secret-plan.txt"],
)
async def test_a_link_that_leads_out_is_refused(place: Place, target: str) -> None:
    (place.root / "docs").mkdir()
    (place.root / "loop").symlink_to("loop")
    (place.root / "link").symlink_to(target)
    for method, more in (("files/read", {}), ("files/write", {"content": {"text": "x"}}), ("files/list", {})):
        assert (await place.refused(method, path="link", **more))["code"] == "Forbidden"
    assert sorted(os.listdir(place.outside)) == ["secret-plan.txt"]


async def test_what_a_linked_folder_holds_is_read_if_it_is_inside_and_never_written(place: Place) -> None:
    (place.root / "docs").mkdir()
    (place.root / "docs" / "a.md").write_text("a")
    (place.root / "inside").symlink_to("docs")
    (place.root / "away").symlink_to(place.outside)
    assert (await place.read("inside/a.md"))["data"] == "a"
    assert await place.names("inside") == ["a.md"]
    assert (await place.refused("files/write", path="inside/a.md", content={"text": "x"}))["path"] == "inside"
    assert (await place.refused("files/delete", path="inside/a.md"))["path"] == "inside"
    for method in ("files/read", "files/delete"):
        assert (await place.refused(method, path="away/secret-plan.txt"))["code"] == "Forbidden"
    assert (await place.refused("files/list", path="away"))["code"] == "Forbidden"


async def test_a_link_leads_to_nothing_that_its_target_would_not_be_asked_for(place: Place) -> None:
    (place.root / ".env").write_text("secret")
    (place.root / "env.txt").symlink_to(".env")
    (place.root / "line.txt").symlink_to(f"sessions/{SESSION}/session.jsonl")
    assert (await place.refused("files/read", path="env.txt"))["code"] == "Forbidden"
    assert (await place.refused("files/write", path="line.txt", content={"text": "x"}))["state"] == "resource"


async def test_a_link_swapped_in_again_and_again_never_leads_out(place: Place) -> None:
    """A folder and a link to the outside change places all the time; every answer is one or the other's refusal."""
    room, away, aside = place.root / "room", place.root / "away", place.root / "aside"
    room.mkdir()
    away.symlink_to(place.outside)
    running = True

    def swap() -> None:
        while running:
            room.rename(aside)
            away.rename(room)
            room.rename(away)
            aside.rename(room)

    swapping = asyncio.get_running_loop().run_in_executor(None, swap)
    good, names = 0, set()
    try:
        for _ in range(150):
            for method, more in (("files/write", {"content": {"text": "ours"}}), ("files/read", {})):
                try:
                    answer = await place.client.call(method, {"path": "room/a.txt", **more})
                except Failed as failure:
                    names.add(failure.name)
                else:
                    assert answer.get("data", "ours") == "ours"
                    good += 1
    finally:
        running = False
        await swapping
    assert good
    assert names <= {"Forbidden", "NotFound", "IoError"}
    assert sorted(os.listdir(place.outside)) == ["secret-plan.txt"]


# Whose file it is


async def test_an_inner_workspace_and_the_configuration_are_not_served_from_outside(
    make_daemon: Callable[..., Daemon], connect: Callable[..., Awaitable[Wire]]
) -> None:
    daemon = make_daemon()
    outer, inner = daemon.base, daemon.base / "inner"
    inner.mkdir()
    (inner / "a.txt").write_text("inner")
    daemon.register(outer=outer, inner=inner)
    daemon.start()
    client = await connect(daemon, "outer", "inner")
    for path in ("inner/a.txt", "cfg/config.json", "cfg/craftd/lock"):
        with pytest.raises(Failed, match="Forbidden"):
            await client.call("files/read", {"workspace": "outer", "path": path})
    page = await client.call("files/list", {"workspace": "outer"})
    assert not {"inner", "cfg"} & {item["id"] for item in page["items"]}
    assert (await client.call("files/read", {"workspace": "inner", "path": "a.txt"}))["data"] == "inner"


# Lists


async def test_a_list_is_paged_sorted_and_filtered(place: Place) -> None:
    (place.root / "docs").mkdir()
    for n in range(7):
        (place.root / "docs" / f"{n}.txt").write_text("x" * (7 - n))
    (place.root / "docs" / "folder").mkdir()
    seen, cursor = [], None
    while True:
        more = {"cursor": cursor} if cursor else {}
        page = await place.client.call("files/list", {"path": "docs", "sort": "-size", "limit": 3, **more})
        seen += [item["value"]["name"] for item in page["items"]]
        if (cursor := page.get("nextCursor")) is None:
            break
    assert seen == [*(f"{n}.txt" for n in range(7)), "folder"]
    assert await place.names("docs", filter={"kind": "folder"}) == ["folder"]
    one = (await place.client.call("files/list", {"path": "docs", "limit": 1}))["items"][0]
    assert one["id"] == "docs/0.txt"
    assert one["version"] == (await place.read("docs/0.txt"))["version"]
    assert one["value"] | {"modifiedAt": 0} == {"name": "0.txt", "kind": "file", "size": 7, "modifiedAt": 0}


# Who is told


async def test_a_change_is_told_to_who_asked_for_files(place: Place, connect: Callable[..., Awaitable[Wire]]) -> None:
    told, other = await connect(place.daemon, place.id), await connect(place.daemon, place.id)
    await told.call("events/subscribe", {"workspace": place.id, "topics": ["files"], "sessions": [SESSION]})
    await other.call("events/subscribe", {"workspace": place.id})
    written = await place.write("data/a.txt", session=SESSION)
    await place.write("elsewhere.txt")
    await place.client.call("files/delete", {"path": "data/a.txt", "session": SESSION})
    for client in (told, other):
        await client.call("daemon/sync", {"workspace": place.id})
    path = f"sessions/{SESSION}/data/a.txt"
    events = [
        {name: event.get(name) for name in ("path", "kind", "version")}
        for event in told.notifications("files/didChange")
    ]
    assert events[0] == {"path": path, "kind": "created", "version": written["version"]}
    assert {"path": path, "kind": "deleted", "version": None} in events
    assert other.notifications("files/didChange") == []


def changes(client: Wire) -> list[tuple[str, str, str]]:
    return [(one["path"], one["kind"], one["origin"]["kind"]) for one in client.notifications("files/didChange")]


async def test_what_others_do_to_files_is_told(place: Place) -> None:
    (place.root / "docs.md").write_text("there before")
    (place.root / "gone.md").write_text("there before")
    skill = place.root / "skills" / "berth-plan" / "scripts"
    skill.mkdir(parents=True)
    (skill.parent / "SKILL.md").write_text("---\nname: Berth plan\ndescription: x\n---\nDo it.\n")
    await place.client.call("events/subscribe", {"workspace": place.id, "topics": ["files"]})
    await place.sync()
    (place.root / "docs.md").write_text("changed")
    (place.root / "gone.md").unlink()
    (skill / "plan.py").write_text("print()")
    (place.root / ".hidden").write_text("x")
    (place.root / "id_rsa").write_text("x")
    (skill.parent / "SKILL.md").write_text("---\nname: Another\ndescription: x\n---\nDo it.\n")
    await place.sync()
    assert sorted(changes(place.client)) == [
        ("docs.md", "changed", "disk"),
        ("gone.md", "deleted", "disk"),
        ("skills/berth-plan/scripts/plan.py", "created", "disk"),
    ]
    told = next(one for one in place.client.notifications("files/didChange") if one["path"] == "docs.md")
    assert told["version"] == (await place.read("docs.md"))["version"]


async def test_what_craftd_wrote_is_told_once(place: Place) -> None:
    await place.client.call("events/subscribe", {"workspace": place.id, "topics": "*"})
    await place.sync()
    await place.write("data/a/b.txt", session=SESSION)
    await place.sync()
    await place.write("data/a/b.txt", "again", session=SESSION)
    (place.root / "link.txt").symlink_to("plain.txt")
    await place.write("plain.txt")
    await place.write("link.txt", "through the link")
    await place.client.call("files/delete", {"path": "plain.txt"})
    await place.sync()
    path = f"sessions/{SESSION}/data/a/b.txt"
    assert changes(place.client) == [
        (path, "created", "client"),
        (path, "changed", "client"),
        ("plain.txt", "created", "client"),
        ("plain.txt", "changed", "client"),
        ("plain.txt", "deleted", "client"),
    ]


@pytest.mark.parametrize("opened", ["followed", "looked at", "changed", "closed"])
async def test_the_files_of_a_session_are_watched_while_it_is_open(place: Place, opened: str) -> None:
    data = place.root / "sessions" / SESSION / "data"
    data.mkdir(exist_ok=True)
    (data / "early.json").write_text("{}")
    narrowed = {"sessions": [SESSION]} if opened == "followed" else {}
    await place.client.call("events/subscribe", {"workspace": place.id, "topics": ["files"], **narrowed})
    await place.sync()
    if opened == "looked at":
        await place.client.call("sessions/view", {"sessions": [SESSION]})
    elif opened == "changed":
        await place.client.call("sessions/update", {"id": SESSION, "patch": {"set": {"name": "Another"}}})
    await place.sync()
    (data / "early.json").write_text("{} ")
    (data / "deep").mkdir()
    (data / "deep" / "late.json").write_text("{}")
    await place.sync()
    room = f"sessions/{SESSION}/data"
    expected = [(f"{room}/deep/late.json", "created", "disk"), (f"{room}/early.json", "changed", "disk")]
    assert sorted(changes(place.client)) == ([] if opened == "closed" else expected)
    if opened != "closed":
        shutil.rmtree(data)
        await place.sync()
        assert sorted(changes(place.client))[2:] == [] or {kind for _, kind, _ in changes(place.client)[2:]} == {
            "deleted"
        }
        assert len(changes(place.client)) == 4


async def test_a_session_is_left_when_nobody_has_it_open(make_daemon: Callable[..., Daemon]) -> None:
    daemon = make_daemon()
    root = daemon.base / "ws"
    (root / "sessions" / SESSION / "data").mkdir(parents=True)
    (root / "sessions" / SESSION / "session.jsonl").write_text(f'{{"id":"{SESSION}","createdAt":1}}\n')
    daemon.register(ws=root)
    start_impatient(daemon, house_every=0.02, seen__OPEN_SECONDS=0.0)
    client = await daemon.connect("ws")

    async def watches() -> int:
        [one] = (await client.call("daemon/status"))["workspaces"]
        return int(one["watches"])

    async def until(count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while await watches() != count:
                await client.call("daemon/sync", {"workspace": "ws"})

    await client.call("daemon/sync", {"workspace": "ws"})
    least = await watches()
    await client.call("events/subscribe", {"workspace": "ws", "topics": ["files"], "sessions": [SESSION]})
    await until(least + 1)
    await client.call("events/unsubscribe", {"workspace": "ws"})
    await until(least)
    await client.close()


async def test_nothing_is_written_while_the_app_runs(place: Place) -> None:
    lock = place.daemon.config / ".server.lock"
    await place.write("a.txt")
    await place.client.call("daemon/release")
    lock.write_text(f'{{"pid": {os.getpid()}, "startedAt": {time.time_ns() // 1_000_000}}}')
    for content in ({"text": "x"}, {"text": "x" * 1_000_000}):
        assert (await place.refused("files/write", path="a.txt", content=content))["code"] == "ReadOnly"
    assert (await place.refused("files/delete", path="a.txt"))["code"] == "ReadOnly"
    assert (await place.read("a.txt"))["data"] == "new"
    assert not [name for name in os.listdir(place.root) if name.endswith(".tmp")]
    lock.unlink()
    await place.write("a.txt", "again")
