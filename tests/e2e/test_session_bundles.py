"""Sessions in bundles over the wire: out of one workspace into another one far away, whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from craftd.workspace.session_bundles import _parents_first
from tests.daemon import Daemon, snapshot
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
GOLDEN = Path(__file__).parents[1] / "golden/sessions"
EXPECTED = json.loads((GOLDEN / "expected.json").read_bytes())
VECTORS = json.loads((GOLDEN / "vectors.json").read_bytes())
OTTER = "260307-silver-otter"
WORKSPACES = ("from", "to", "rename", "bad", "app", "family", "linked", "transfer", "torn", 'odd "place"')
STANDARD = ("attachments", "data", "downloads", "long_responses", "plans")
CREATED = 1772874000000


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    for name in WORKSPACES:
        (root := daemon.base / name).mkdir()
        slug = "odd" if '"' in name else name
        (root / "config.json").write_text(json.dumps({"id": f"ws_{slug}", "name": name, "slug": slug, "createdAt": 1}))
    shutil.copytree(GOLDEN / "workspace", daemon.base / "from", dirs_exist_ok=True)
    daemon.register(**{("odd" if '"' in name else name): daemon.base / name for name in WORKSPACES})
    daemon.start()
    return daemon


async def exported(client: Wire, workspace: str, **what: Any) -> tuple[Any, list[dict[str, Any]]]:
    """The bundle, read piece by piece, and the warnings."""
    made = await client.call("bundles/export", {"workspace": workspace, **what})
    data = b""
    while len(data) < made["size"]:
        piece = await client.call("blobs/read", {"blob": made["blob"], "offset": len(data)})
        data += base64.b64decode(piece["data"])
    assert hashlib.sha256(data).hexdigest() == made["sha256"]
    return json.loads(data), made["warnings"]


async def bring_in(client: Wire, workspace: str, bundle: Any, **how: Any) -> Any:
    return await client.call("bundles/import", {"workspace": workspace, "content": {"text": json.dumps(bundle)}, **how})


async def refused(client: Wire, workspace: str, bundle: Any, **how: Any) -> Failed:
    with pytest.raises(Failed) as caught:
        await bring_in(client, workspace, bundle, **how)
    return caught.value


def a_file(path: str, data: bytes) -> dict[str, Any]:
    return {"relativePath": path, "contentBase64": base64.b64encode(data).decode(), "size": len(data)}


def a_session(id: str, *messages: Any, files: Any = (), **header: Any) -> dict[str, Any]:
    stored = {"id": id, "workspaceRootPath": "~/elsewhere/ws", "createdAt": CREATED, "lastUsedAt": CREATED, **header}
    return {"version": 1, "session": {"header": stored, "messages": list(messages)}, "files": list(files)}


def said(id: str, content: str = "hello", type: str = "user", **more: Any) -> dict[str, Any]:
    return {"id": id, "content": content, "timestamp": CREATED, **more, "type": type}


def lines(root: Path, id: str) -> list[Any]:
    return [json.loads(line) for line in (root / "sessions" / id / "session.jsonl").read_bytes().splitlines()]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_session_leaves_as_the_app_lets_it_but_for_paths_of_this_machine(
    daemon: Daemon, connect: Connect
) -> None:
    client = await connect(daemon, "from")
    bundle, warnings = await exported(client, "from", session=OTTER)
    recorded = EXPECTED["bundles"][OTTER]
    assert warnings == []
    assert bundle["version"] == recorded["version"]
    header = {**bundle["session"]["header"], "workspaceRootPath": recorded["header"]["workspaceRootPath"]}
    assert header == recorded["header"]
    assert [message["id"] for message in bundle["session"]["messages"]] == recorded["messageIds"]
    found = [
        {**{name: one[name] for name in ("relativePath", "size")}, "sha256": hashlib.sha256(data).hexdigest()}
        for one in bundle["files"]
        for data in (base64.b64decode(one["contentBase64"]),)
    ]
    assert found == recorded["files"]
    stored = bundle["session"]["messages"][0]["attachments"][0]["storedPath"]
    assert stored.startswith("{{SESSION_PATH}}/attachments/")
    assert str(daemon.base) not in json.dumps(bundle["session"]["messages"])
    branch = {"sdkSessionId": recorded["header"]["sdkSessionId"], "sdkTurnId": "msg_01BBB"}
    assert bundle["branchInfo"] == {**branch, "sdkCwd": recorded["header"]["sdkCwd"]}
    again = await client.call("bundles/export", {"workspace": "from", "session": OTTER, "inline": True})
    assert again["bundle"] == bundle


@pytest.mark.parametrize("id", ["260406-with-bom", "260404-header-only", "260302-calm-cedar", "260303-misty-harbor"])
async def test_what_is_exported_comes_in_as_it_was(daemon: Daemon, connect: Connect, id: str) -> None:
    client, other = await connect(daemon, "from", "to"), await connect(daemon, "to")
    await other.call("events/subscribe", {"workspace": "to"})
    bundle, _ = await exported(client, "from", session=id)
    came = await bring_in(client, "to", bundle)
    assert came["sessions"]["imported"] == [id]
    new = other.notifications("sessions/didCreate")[-1]
    assert new["item"]["id"] == id
    assert came["revision"] >= new["revision"]
    pages = [
        await client.call("messages/list", {"workspace": workspace, "session": id, "fields": ["*"]})
        for workspace in ("from", "to")
    ]
    old, now = ([json.dumps(item["value"]) for item in page["items"]] for page in pages)
    before, after = (f"{daemon.base}/{workspace}/sessions/{id}" for workspace in ("from", "to"))
    assert [text.replace(before, after) for text in old] == now
    mine, theirs = [
        (await client.call("sessions/get", {"workspace": workspace, "id": id}))["item"]["value"]
        for workspace in ("from", "to")
    ]
    other_place = {"workspaceRootPath", "sdkCwd", "sharedUrl", "sharedId"}
    assert {k: v for k, v in mine.items() if k not in other_place} == {
        k: v for k, v in theirs.items() if k not in other_place
    }
    assert set(STANDARD) <= set(os.listdir(daemon.base / "to/sessions" / id))


async def test_files_and_the_paths_that_lead_to_them_come_along(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "from", "to")
    bundle, _ = await exported(client, "from", session=OTTER)
    await bring_in(client, "to", bundle)
    folder = daemon.base / "to/sessions" / OTTER
    shipped = {one["relativePath"]: base64.b64decode(one["contentBase64"]) for one in bundle["files"]}
    found = files_of(folder)
    assert {path: data for path, data in found.items() if path != "session.jsonl"} == shipped
    first = (await client.call("messages/list", {"workspace": "to", "session": OTTER, "fields": ["*"]}))["items"][0]
    stored = first["value"]["attachments"][0]["storedPath"]
    assert stored == f"{folder}/attachments/{stored.rpartition('/')[2]}"
    assert Path(stored).exists()
    assert b"{{SESSION_PATH}}/attachments/" in found["session.jsonl"]
    header = lines(daemon.base / "to", OTTER)[0]
    assert header["workspaceRootPath"] == str(daemon.base / "to")
    assert header["sdkCwd"] == "{{SESSION_PATH}}"  # the working directory of the other machine is not here


async def test_paths_that_the_app_wrote_out_are_found_and_replaced_at_their_ends_only(
    daemon: Daemon, connect: Connect
) -> None:
    client = await connect(daemon, "app", "odd")
    old = f"/home/ada/elsewhere/ws/sessions/{OTTER}"
    messages = [
        said("m0", "a literal {{SESSION_PATH}} was typed elsewhere"),
        said("m1", f"see {old}/plans/a.md, {old}-2/b and {old}", planPath=f"{old}/plans/a.md", type="plan"),
        said("m2", f"/mnt/x{old}y", attachments=[{"storedPath": f"{old}/attachments/x"}]),
    ]
    bundle = a_session(OTTER, *messages, files=[a_file("plans/a.md", b"# A")], workingDirectory=f"{old}/data")
    for workspace, name in (("app", "app"), ("odd", 'odd "place"')):
        await bring_in(client, workspace, bundle)
        here = f"{daemon.base}/{name}/sessions/{OTTER}"
        page = await client.call("messages/list", {"workspace": workspace, "session": OTTER, "fields": ["*"]})
        values = [item["value"] for item in page["items"]]
        assert values[1]["content"] == f"see {here}/plans/a.md, {old}-2/b and {here}"
        assert values[1]["planPath"] == f"{here}/plans/a.md"
        assert values[2]["content"] == f"/mnt/x{old}y"
        assert values[2]["attachments"][0]["storedPath"] == f"{here}/attachments/x"
        item = (await client.call("sessions/get", {"workspace": workspace, "id": OTTER}))["item"]
        assert item["value"]["workingDirectory"] == f"{here}/data"
    raw = (daemon.base / "app/sessions" / OTTER / "session.jsonl").read_text()
    assert str(daemon.base) not in raw.partition("\n")[2]


async def test_what_the_app_loses_on_the_way_stays_and_what_cannot_go_along_is_told(
    daemon: Daemon, connect: Connect
) -> None:
    client = await connect(daemon, "to")
    header = {
        "isArchived": True, "archivedAt": CREATED, "kanbanColumn": "later", "taskSlug": "t", "hasUnread": True,
        "pendingPlanExecution": {"planPath": "{{SESSION_PATH}}/plans/a.md", "awaitingCompaction": True},
        "futureField": {"a": 1}, "projectId": "proj_none", "parentSessionId": "260101-no-one", "sharedId": "s",
        "sharedUrl": "https://example.org/s", "labels": ["nowhere"], "enabledSourceSlugs": ["nothing"],
        "llmConnection": "none", "workingDirectory": "/nowhere/at/all", "sdkSessionId": "sdk-1", "sdkCwd": "/nowhere",
    }  # fmt: skip
    came = await bring_in(client, "to", a_session("260801-kept-whole", said("m1"), **header))
    assert {(one["path"], one["code"]) for one in came["warnings"]} == {
        (name, "not-here")
        for name in (
            "projectId", "parentSessionId", "labels", "enabledSourceSlugs", "llmConnection", "workingDirectory",
        )
    }  # fmt: skip
    stored = lines(daemon.base / "to", "260801-kept-whole")[0]
    gone = {"sharedId", "sharedUrl", "parentSessionId"}
    assert stored.items() >= {
        **{name: member for name, member in header.items() if name not in gone}, "sdkCwd": "{{SESSION_PATH}}",
        "messageCount": 1, "preview": "hello", "lastMessageRole": "user", "createdAt": CREATED,
    }.items()  # fmt: skip
    assert not gone & stored.keys()


async def test_a_taken_id_is_skipped_gets_another_one_or_is_replaced(daemon: Daemon, connect: Connect) -> None:
    client, other = await connect(daemon, "rename"), await connect(daemon, "rename")
    id = "260802-taken-name"
    bundle = a_session(id, said("m1", "first"), sdkSessionId="sdk-1")
    bundle["branchInfo"] = {"sdkSessionId": "sdk-1", "sdkTurnId": "turn-1", "sdkCwd": "/x"}
    await bring_in(client, "rename", bundle)
    await client.call(
        "messages/append", {"workspace": "rename", "session": id, "messages": [said("m2", "said here", type="user")]}
    )
    await client.call("daemon/sync", {"workspace": "rename"})
    before = files_of(daemon.base / "rename/sessions" / id)
    bundle["session"]["messages"][0]["content"] = "second"
    skipped = await bring_in(client, "rename", bundle)
    assert (skipped["sessions"]["skipped"], skipped["sessions"]["imported"]) == ([id], [])
    renamed = await bring_in(client, "rename", bundle, onConflict="rename")
    [pair] = renamed["sessions"]["renamed"]
    assert pair["id"] == id
    assert files_of(daemon.base / "rename/sessions" / id) == before
    stored = lines(daemon.base / "rename", pair["newId"])
    assert (stored[0]["id"], stored[1]["content"]) == (pair["newId"], "second")
    assert "sdkSessionId" not in stored[0]  # two must not continue one conversation
    assert stored[0]["branchFromSdkSessionId"] == "sdk-1"
    assert stored[0]["branchFromSdkTurnId"] == "turn-1"
    await other.call("events/subscribe", {"workspace": "rename"})
    await bring_in(client, "rename", bundle, onConflict="overwrite")
    told = [one for one in other.order if one in ("sessions/didDelete", "sessions/didCreate")]
    assert told == ["sessions/didDelete", "sessions/didCreate"]
    page = await client.call("messages/list", {"workspace": "rename", "session": id, "fields": ["*"]})
    assert [item["value"]["content"] for item in page["items"]] == ["second"]
    [trashed] = [path for path in (daemon.base / "rename/.trash").iterdir() if path.name.endswith(id)]
    assert b"said here" in (trashed / "session.jsonl").read_bytes()
    await client.call("messages/append", {"workspace": "rename", "session": id, "messages": [said("m3", "goes on")]})
    assert lines(daemon.base / "rename", id)[-1]["content"] == "goes on"


async def test_parents_come_before_their_children_whatever_the_order(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "family", "from")
    mother, child = "260803-mother-ship", "260803-little-child"
    entries = [a_session(child, parentSessionId=mother), a_session(mother)]
    bundle = {"version": 1, "exportedAt": 1, "resources": {"sessions": entries}}
    came = await bring_in(client, "family", bundle)
    assert came["sessions"]["imported"] == [mother, child]
    assert came["warnings"] == []
    again = await bring_in(client, "family", bundle, onConflict="rename")
    new = {pair["id"]: pair["newId"] for pair in again["sessions"]["renamed"]}
    assert lines(daemon.base / "family", new[child])[0]["parentSessionId"] == new[mother]
    out, _ = await exported(client, "family", sessions="all", skills="all")
    assert [one["session"]["header"]["id"] for one in out["resources"]["sessions"]] == sorted(
        [mother, child, *new.values()]
    )
    assert out["resources"]["skills"] == []


def with_file(file: Any) -> Any:
    return a_session("260804-bad-files", said("m1"), files=[a_file("plans/good.md", b"x"), file])


WRONG: dict[str, tuple[Any, str]] = {
    "version": ({**a_session("260804-a-b"), "version": 2}, "version"),
    "no header": ({"version": 1, "session": {"messages": []}, "files": []}, "session.header"),
    "header is a list": ({"version": 1, "session": {"header": [], "messages": []}, "files": []}, "session.header"),
    "no messages": (
        {"version": 1, "session": {"header": {"id": "a", "createdAt": 1}}, "files": []},
        "session.messages",
    ),
    "no files": ({"version": 1, "session": {"header": {"id": "a", "createdAt": 1}, "messages": []}}, "files"),
    "session is text": ({"version": 1, "session": "x", "files": []}, "session"),
    "id leads out": (a_session("../x"), "session.header.id"),
    "id is empty": (a_session(""), "session.header.id"),
    "id is dots": (a_session(".."), "session.header.id"),
    "id of a copy": (a_session("260804-a-b_conflict-20260102-101112"), "session.header.id"),
    "createdAt": (a_session("260804-a-b", createdAt="soon"), "session.header.createdAt"),
    "the transcript": (with_file(a_file("session.jsonl", b"{}")), "files.1.relativePath"),
    "the transcript, spelt otherwise": (with_file(a_file("Session.JSONL", b"{}")), "files.1.relativePath"),
    "a hidden file": (with_file(a_file(".unreadable.jsonl", b"{}")), "files.1.relativePath"),
    "a standard folder": (with_file(a_file("plans", b"{}")), "files.1.relativePath"),
    "a file twice": (with_file(a_file("plans/good.md", b"{}")), "files.1.relativePath"),
    "a file in a file": (with_file(a_file("plans/good.md/x", b"{}")), "files.1.relativePath"),
    "no content": (with_file({"relativePath": "x", "size": 0}), "files.1.contentBase64"),
    "a number": (with_file(3), "files.1"),
    "an entry": ({"version": 1, "exportedAt": 1, "resources": {"sessions": [3]}}, "resources.sessions.0"),
    "one twice": (
        {"version": 1, "exportedAt": 1, "resources": {"sessions": [a_session("260804-a-b")] * 2}},
        "resources.sessions.1.session.header.id",
    ),
    **{
        f"recorded {one['relativePath']!r} {one['contentBase64']}": (
            with_file({name: one[name] for name in ("relativePath", "contentBase64", "size")}),
            "files.1.",
        )
        for one in VECTORS["bundleFiles"]
        if not one["accepted"] and one["relativePath"] != "a..b"
    },
    "recorded no base64": (with_file({"relativePath": "x", "contentBase64": "!!", "size": 0}), "files.1."),
    "recorded ./x": (with_file(a_file("./x", b"")), "files.1."),
}


@pytest.mark.parametrize("case", WRONG)
async def test_a_bundle_that_is_wrong_anywhere_changes_nothing(daemon: Daemon, connect: Connect, case: str) -> None:
    client = await connect(daemon, "bad")
    bundle, path = WRONG[case]
    before = snapshot(daemon.base / "bad"), sorted(os.listdir(daemon.base))
    failure = await refused(client, "bad", bundle, onConflict="overwrite")
    assert failure.name == "ValidationFailed"
    assert any(issue["path"].startswith(path) for issue in failure.error["data"]["issues"])
    assert (snapshot(daemon.base / "bad"), sorted(os.listdir(daemon.base))) == before


async def test_dots_inside_of_a_name_and_odd_messages_are_no_reason_to_refuse(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "to")
    id = "260805-odd-things"
    messages = [None, 42, "text", [], said("m1"), {"note": "no id"}]
    came = await bring_in(client, "to", a_session(id, *messages, files=[a_file("data/a..b.txt", b"x")]))
    assert [(one["path"], one["message"][:1]) for one in came["warnings"]] == [("messages", "4")]
    assert (daemon.base / "to/sessions" / id / "data/a..b.txt").read_bytes() == b"x"
    assert lines(daemon.base / "to", id)[1:] == [said("m1"), {"note": "no id"}]


async def test_what_cannot_be_read_stays_out_and_is_told(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "from")
    bundle, warnings = await exported(client, "from", session="260402-bad-middle")
    assert [one["code"] for one in warnings] == ["unreadable"]
    listed = await client.call("messages/list", {"workspace": "from", "session": "260402-bad-middle"})
    whole = [item["id"] for item in listed["items"] if not item["id"].startswith("~")]
    assert [message["id"] for message in bundle["session"]["messages"]] == whole
    for id in ("260412-torn-header", "260403-zero-bytes"):
        with pytest.raises(Failed) as caught:
            await client.call("bundles/export", {"workspace": "from", "session": id})
        assert caught.value.name == "Corrupt"
    for params, name in (
        ({"session": "260101-no-such"}, "NotFound"),
        ({"sessions": ["../x"]}, "InvalidParams"),
        ({"session": OTTER, "skills": "all"}, "InvalidParams"),
    ):
        with pytest.raises(Failed) as caught:
            await client.call("bundles/export", {"workspace": "from", **params})
        assert caught.value.name == name


async def test_of_all_sessions_those_that_can_be_read_leave(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "from")
    bundle, warnings = await exported(client, "from", sessions="all")
    there = {item["id"] for item in (await client.call("sessions/list", {"workspace": "from", "limit": 500}))["items"]}
    left_out = {one["id"] for one in warnings if one["path"] == "" and one["code"] == "unreadable"}
    assert {"260412-torn-header", "260403-zero-bytes"} <= left_out
    assert {one["session"]["header"]["id"] for one in bundle["resources"]["sessions"]} | left_out >= there - {
        "260415-wrong-id"
    }


async def test_no_session_becomes_its_own_ancestor_by_an_import(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "rename")
    mother, child = "260808-a-mother", "260808-a-child"
    await client.call("sessions/create", {"id": mother, "value": {}})
    await client.call("sessions/create", {"id": child, "value": {"parentSessionId": mother}})
    came = await bring_in(client, "rename", a_session(mother, parentSessionId=child), onConflict="overwrite")
    assert came["sessions"]["imported"] == [mother]
    assert "parentSessionId" not in (await client.call("sessions/get", {"id": mother}))["item"]["value"]
    assert "session.header.parentSessionId" in [one["path"] for one in came["warnings"]]


def test_a_long_line_of_parents_is_put_in_order() -> None:
    them = [SimpleNamespace(id=str(n), parent=str(n - 1)) for n in range(5_000)]
    assert _parents_first(tuple(reversed(them))) == them  # type: ignore[arg-type, comparison-overlap]
    circle = (SimpleNamespace(id="a", parent="b"), SimpleNamespace(id="b", parent="a"))
    assert len(_parents_first(circle)) == 2  # type: ignore[arg-type]


async def test_links_are_neither_followed_nor_written_through(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "linked")
    id = "260806-has-links"
    await bring_in(client, "linked", a_session(id, said("m1")))
    folder = daemon.base / "linked/sessions" / id
    (daemon.base / "secret.txt").write_text("hush")
    os.symlink(daemon.base / "secret.txt", folder / "data/secret.txt")
    os.symlink(daemon.base, folder / "downloads/all")
    os.mkfifo(folder / "data/pipe")
    bundle, _ = await exported(client, "linked", session=id)
    assert bundle["files"] == []
    other = "260806-is-link"
    os.symlink(folder, folder.with_name(other))
    await client.call("daemon/sync", {"workspace": "linked"})
    before = files_of(folder)
    came = await bring_in(client, "linked", a_session(other, said("x")), onConflict="overwrite")
    assert [one["error"] for one in came["sessions"]["failed"]] == ["Forbidden"]
    assert files_of(folder) == before
    assert folder.with_name(other).is_symlink()


async def test_nothing_is_written_while_the_app_runs(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "bad")
    bundle = a_session("260807-not-now", said("m1"))
    before = snapshot(daemon.base / "bad")
    lock = daemon.config / ".server.lock"
    await client.call("daemon/release")
    lock.write_text(json.dumps({"pid": os.getpid(), "startedAt": time.time_ns() // 1_000_000}))
    try:
        assert (await refused(client, "bad", bundle)).name == "ReadOnly"
        assert snapshot(daemon.base / "bad") == before
    finally:
        lock.unlink()
    assert (await bring_in(client, "bad", bundle))["sessions"]["imported"] == ["260807-not-now"]


async def test_a_request_that_is_repeated_with_its_key_is_carried_out_once(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "transfer")
    bundle = a_session("260808-only-once", said("m1"))
    first, second = [await bring_in(client, "transfer", bundle, onConflict="rename", key="k" * 16) for _ in range(2)]
    assert first == second
    assert len(os.listdir(daemon.base / "transfer/sessions")) == 1


async def test_a_remote_transfer_makes_a_session_with_its_summary(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "transfer")
    payload = {"sourceSessionId": "260101-far-away", "name": "Tides", "permissionMode": "ask", "summary": " what was\n"}
    came = await bring_in(client, "transfer", payload)
    [pair] = came["sessions"]["renamed"]
    assert (came["sessions"]["imported"], pair["id"]) == (["260101-far-away"], "260101-far-away")
    value = (await client.call("sessions/get", {"workspace": "transfer", "id": pair["newId"], "fields": ["*"]}))["item"]
    assert value["value"].items() >= {
        "name": "Tides", "permissionMode": "ask", "transferredSessionSummary": "what was",
        "transferredSessionSummaryApplied": False, "messageCount": 0,
    }.items()  # fmt: skip
    for wrong, path in (
        ({**payload, "summary": " \n"}, "summary"),
        ({**payload, "permissionMode": 3}, "permissionMode"),
    ):
        failure = await refused(client, "transfer", wrong)
        assert [issue["path"] for issue in failure.error["data"]["issues"]] == [path]
