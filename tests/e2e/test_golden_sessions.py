"""The recorded sessions through the running daemon (tests/golden/sessions/README.md says what is right)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from craftd.model.moved import PATHS
from tests.daemon import Daemon, snapshot
from tests.model import golden
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
Values = dict[str, Any]

GOLDEN = golden.SESSIONS.parent
RECORDED = golden.SESSIONS / "workspace"
EXPECTED = golden.load("expected.json")["sessions"]
METADATA = golden.load("expected.json")["metadata"]
FOLDERS = sorted(path.name for path in golden.FOLDERS.iterdir() if path.is_dir())

NO_SESSION = {"260499-no-file"}
"""Folders without a transcript: no sessions."""

DAMAGE: dict[str, list[tuple[str, int | None]]] = {
    "260401-torn-tail": [("torn-tail", 4)],
    "260402-bad-middle": [("line-unreadable", 3)],
    "260403-zero-bytes": [("header-missing", None)],
    "260404-header-only": [("count-mismatch", 1)],
    "260405-crlf-lines": [],
    "260406-with-bom": [],
    "260407-left-tmp": [],
    "260408-tmp-only": [("rescued", None)],
    "260409-blank-first": [("blank-first-line", 1)],
    "260410-null-lines": [("line-unreadable", line) for line in (3, 4, 5, 6)],
    "260411-null-header": [("header-unreadable", 1)],
    "260412-torn-header": [("header-unreadable", 1)],
    "260413-no-header": [("header-missing", 1)],
    "260414-torn-utf8": [("line-unreadable", 3), ("torn-tail", 4)],
    "260415-wrong-id": [("id-mismatch", 1)],
    "260416-glued": [("line-unreadable", 2)],
    "260417-dup-ids": [("id-repeated", 4)],
    "260418-empty-object-header": [("header-missing", 1)],
}
"""Damaged session -> code and line of what is reported. Line ends, a BOM, a blank line of the body and another's
temporary file are no damage; a header without messages says that it counts three."""

MESSAGES: dict[str, list[str]] = {
    "260401-torn-tail": ["m1", "m2", "~595"],
    "260402-bad-middle": ["m1", "~516", "m3"],
    "260403-zero-bytes": [],
    "260404-header-only": [],
    "260410-null-lines": ["m1", "~516", "~521", "~524", "~531", "m2", "m3"],
    "260414-torn-utf8": ["m1", "m2", "~594"],
    "260417-dup-ids": ["m1", "m2", "m2", "m3"],
}
"""Damaged session -> ids listed, in order; all others: three messages. `~<byte offset>`: a line that is none."""

UNREADABLE = {
    "260403-zero-bytes", "260411-null-header", "260412-torn-header", "260413-no-header", "260418-empty-object-header",
}  # fmt: skip
"""No header to change: nothing is written over what is left."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the copies of the recorded workspace are: `read` is only read, the others are changed."""
    return tmp_path_factory.mktemp("golden")


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon], root: Path) -> Daemon:
    daemon = make_daemon(home=golden.HOME)
    roots = {name: root / name for name in ("read", "written", "mended")}
    for place in roots.values():
        shutil.copytree(RECORDED, place)
    daemon.register(**roots)
    daemon.start()
    return daemon


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, "read")


@pytest.fixture
async def writer(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, "written")


async def everything(client: Wire, method: str, **params: Any) -> list[Values]:
    """All items, page after page."""
    items: list[Values] = []
    cursor = None
    while True:
        page = await client.call(method, {**params, **({} if cursor is None else {"cursor": cursor})})
        assert page["items"]
        at = 0 if params.get("direction") == "backward" else len(items)
        items[at:at] = page["items"]
        if (cursor := page.get("nextCursor")) is None:
            return items


def said_elsewhere(value: Any, root: Path) -> Any:
    """A recorded answer with the place where we read."""
    return json.loads(json.dumps(value).replace("${ROOT}", str(root)))


WRITTEN_AT = f"{golden.HOME}/.craft-agent/workspaces/atlas"


def moved_along(header: dict[str, Any], root: Path) -> dict[str, Any]:
    """*header* with the paths that the app leaves where the workspace was written, where it is now."""
    moved = {}
    for name in header.keys() & set(PATHS):
        path = header[name].replace("~", golden.HOME)
        if path.startswith(f"{WRITTEN_AT}/"):
            moved[name] = f"{root}{path.removeprefix(WRITTEN_AT)}"
    return {name: moved.get(name, value) for name, value in header.items()}


async def test_every_folder_that_is_a_session_is_listed_under_its_name(client: Wire) -> None:
    items = await everything(client, "sessions/list", limit=7)
    assert sorted(item["id"] for item in items) == sorted(set(FOLDERS) - NO_SESSION)
    assert all(item["value"]["id"] == item["id"] for item in items)


@pytest.mark.parametrize("session", golden.SOUND)
async def test_a_sound_session_reads_as_in_the_app(client: Wire, root: Path, session: str) -> None:
    item = (await client.call("sessions/get", {"id": session}))["item"]
    damage = item["info"].pop("damage", [])
    assert [one["code"] for one in damage] == (["header-oversized"] if session in golden.OVERSIZED else [])
    beside = {"planCount", "attachments", "children", "branches"}
    assert item["info"].keys() - beside == {"effective"}
    value = item["value"]
    place = root / "read"

    header = said_elsewhere(EXPECTED[session]["readSessionHeader"] or EXPECTED[session]["loadSession"], place)
    header.pop("messages", None)
    # Real paths instead of `~`, and the root is where we read, not where the session was written.
    for name in ("sdkCwd", "workingDirectory"):
        if name in header:
            header[name] = header[name].replace("~", golden.HOME)
    header["workspaceRootPath"] = str(place)
    if session == "260316-early-dawn":
        # The app's list shows the status, its load loses it. What line 1 of an old file lacks follows from the rest.
        header |= {"sessionStatus": "done", "sdkCwd": header["workingDirectory"]}
        header |= {"messageCount": 2, "lastFinalMessageId": "msg-l2"}
    if EXPECTED[session]["readSessionHeader"] is None:
        # The app cannot read a first line this long in its lists, so it records no counters.
        assert session in golden.OVERSIZED
        assert value.pop("messageCount") == len(EXPECTED[session]["loadSession"]["messages"])
        for name in ("preview", "lastMessageRole", "lastFinalMessageId"):
            value.pop(name, None)
    assert value == moved_along(header, place)


@pytest.mark.parametrize("session", sorted(METADATA.keys() & set(golden.SOUND)))
async def test_a_sound_session_is_listed_as_in_the_app(client: Wire, root: Path, session: str) -> None:
    page = await client.call("sessions/list", {"filter": {"id": session}, "fields": ["*"]})
    [item] = page["items"]
    expected = said_elsewhere(METADATA[session], root / "read")
    expected.pop("planCount", None)  # plans are a noun of their own
    value = item["value"]
    value.pop("pendingPlanExecution", None)  # the app's list leaves it out
    if session == "260317-snug-ember-2":
        assert value["sessionStatus"] == "retired"  # a status that is gone is shown as todo, and kept
        value["sessionStatus"] = "todo"
    if session == "260316-early-dawn":
        expected |= {"messageCount": 2, "lastFinalMessageId": "msg-l2"}  # as counted; line 1 of an old file lacks them
    assert {"sessionStatus": "todo", **value} == moved_along(expected, root / "read")


@pytest.mark.parametrize("session", golden.SOUND)
async def test_messages_of_a_sound_session_read_as_in_the_app(client: Wire, root: Path, session: str) -> None:
    page = await client.call("messages/list", {"session": session, "limit": 500})
    expected = said_elsewhere(EXPECTED[session]["loadSession"]["messages"], root / "read")
    assert [item["value"] for item in page["items"]] == expected
    assert page["total"] == len(expected)
    assert all("info" not in item for item in page["items"])


async def test_a_lone_surrogate_is_on_the_wire_as_it_is_on_the_disk(client: Wire) -> None:
    page = await client.call("messages/list", {"session": "260303-misty-harbor"})
    assert any("\ud83d" in item["value"].get("content", "") for item in page["items"])


@pytest.mark.parametrize(
    ("state", "recorded"),
    [
        ("active", "listActiveSessions"),
        ("inbox", "listInboxSessions"),
        ("completed", "listCompletedSessions"),
        ("archived", "listArchivedSessions"),
        ("all", "listSessions"),
    ],
)
async def test_each_state_lists_what_the_apps_list_does(client: Wire, state: str, recorded: str) -> None:
    items = await everything(client, "sessions/list", filter={"state": state})
    expected = set(golden.load("expected.json")["lists"][recorded]) & set(golden.SOUND)
    if state in ("active", "inbox", "all"):
        expected |= golden.OVERSIZED
    assert {item["id"] for item in items} & set(golden.SOUND) == expected
    # What cannot be read could be anything.
    assert {item["id"] for item in items} >= UNREADABLE


@pytest.mark.parametrize("session", DAMAGE)
async def test_damage_is_reported_and_what_is_left_is_readable(client: Wire, root: Path, session: str) -> None:
    item = (await client.call("sessions/get", {"id": session}))["item"]
    damage = item.get("info", {}).get("damage", [])
    assert [(one["code"], one.get("line")) for one in damage] == DAMAGE[session]

    page = await client.call("messages/list", {"session": session})
    assert [item["id"] for item in page["items"]] == MESSAGES.get(session, ["m1", "m2", "m3"])
    messages = [item for item in page["items"] if not item["id"].startswith("~")]
    assert page["total"] == len(messages)
    if session != "260404-header-only":  # it counts messages that are not there
        assert item["value"]["messageCount"] == len(messages)
    for item in messages:
        assert item["value"]["id"] == item["id"]
        got = await client.call("messages/get", {"session": session, "id": item["id"]})
        assert got["item"] == next(one for one in messages if one["id"] == item["id"])  # of equal ids the first
    lines = (root / "read" / "sessions" / session / "session.jsonl").read_bytes() if session[:6] != "260408" else b""
    for item in page["items"]:
        if item["id"].startswith("~"):
            assert item["value"] == {}
            offset = int(item["id"][1:])
            assert item["info"]["raw"] == lines[offset:].split(b"\n")[0].decode("utf-8", "replace")

    # The same is in the list of everything that is wrong with files.
    issues = (await client.call("issues/list", {"workspace": "read"}))["items"]
    told = [issue["code"] for issue in issues if issue["path"].startswith(f"sessions/{session}/")]
    assert told == [code for code, _ in DAMAGE[session]]


async def test_both_records_of_one_line_are_found(client: Wire) -> None:
    page = await client.call("messages/list", {"session": "260416-glued"})
    assert [item["value"]["content"] for item in page["items"]] == ["first of 260416-glued", "second, 日本", "third"]


async def test_reading_changes_no_byte(make_daemon: Callable[..., Daemon], root: Path, connect: Connect) -> None:
    daemon = make_daemon(home=golden.HOME)
    workspace = daemon.base / "ws"
    shutil.copytree(RECORDED, workspace)
    (workspace / "sessions" / "260301-vivid-heath" / "plans").mkdir(exist_ok=True)
    before = snapshot(workspace)
    daemon.register(ws=workspace)
    for _ in range(2):
        daemon.start()
        client = await connect(daemon, "ws")
        listed = await everything(client, "sessions/list", limit=500)
        for size in (1, 3, 500):
            for item in listed:
                session = item["id"]
                many = item["value"].get("messageCount", 0)
                if MESSAGES.get(session, ["m1"]) and 0 < many < 50 * size:
                    forward = await everything(client, "messages/list", session=session, limit=size)
                    backward = await everything(
                        client, "messages/list", session=session, limit=size, direction="backward"
                    )
                    assert forward == backward
        for item in listed:
            got = await client.call("sessions/get", {"id": item["id"], "messages": 3})
            assert got["item"]["version"] == item["version"]
        await client.call("issues/list", {"workspace": "ws"})
        await client.call("daemon/sync", {"workspace": "ws"})
        await client.close()
        assert daemon.stop() == 0
        assert snapshot(workspace) == before


def in_the_apps_order(header: Values) -> list[tuple[str, Any]]:
    """Members as the app orders them: its recorded session with every field shows how."""
    order = list(json.loads(golden.lines("260301-amber-brook")[0]))
    return sorted(header.items(), key=lambda member: order.index(member[0]))


def pairs(line: bytes | str) -> list[tuple[str, Any]]:
    members: list[tuple[str, Any]] = list(json.loads(line).items())
    return members


@pytest.mark.parametrize("session", golden.SOUND)
async def test_a_rename_writes_the_line_that_the_app_would_and_no_other(writer: Wire, root: Path, session: str) -> None:
    path = root / "written" / "sessions" / session / "session.jsonl"
    before = path.read_bytes().split(b"\n")
    answer = await writer.call("sessions/update", {"id": session, "patch": {"set": {"name": "Renamed"}}})
    assert answer["changed"] is True
    after = path.read_bytes().split(b"\n")
    assert after[1:] == before[1:]

    was = json.loads(before[0])
    recorded = moved_along(json.loads(golden.load("rewrite.json")["sessions"][session]["header"]), root / "written")
    token = (
        json.dumps(recorded)
        .replace(f'{path.parent}"', '{{SESSION_PATH}}"')
        .replace(f"{path.parent}/", "{{SESSION_PATH}}/")
    )
    expected = json.loads(token)
    expected["name"] = "Renamed"
    expected["workspaceRootPath"] = str(root / "written")
    expected["lastUsedAt"] = was["lastUsedAt"]  # a rename is no use of the session
    if session == "260316-early-dawn":
        # Nobody asked for these to be added, respelt or dropped.
        del expected["sdkCwd"]
        kept = ("permissionMode", "previousPermissionMode", "todoState", "futureField")
        expected |= {name: was[name] for name in kept}
        assert dict(pairs(after[0])) == expected
        return
    if session == "260317-snug-ember-2":
        expected["permissionMode"] = was["permissionMode"]  # unknown to the app, so it drops it
    if session.startswith("260306-jade"):
        expected["preview"] = was["preview"]  # it depends on where the session lies
    if session.startswith("260315") and len(after[0]) <= 8192:
        # As much of it as leaves the app a line that it lists.
        preview = json.loads(after[0]).get("preview", "")
        assert expected["preview"].startswith(preview)
        expected = (
            {**expected, "preview": preview} if preview else {k: v for k, v in expected.items() if k != "preview"}
        )
    assert pairs(after[0]) == in_the_apps_order(expected)


@pytest.mark.parametrize("session", DAMAGE)
async def test_a_rename_of_a_damaged_session_keeps_every_byte_that_somebody_could_want(
    writer: Wire, root: Path, session: str
) -> None:
    folder = root / "written" / "sessions" / session
    path = folder / ("session.jsonl.tmp" if session == "260408-tmp-only" else "session.jsonl")
    before = path.read_bytes()
    messages = (await writer.call("messages/list", {"session": session}))["items"]
    params = {"id": session, "patch": {"set": {"name": "Renamed"}}}
    if session in UNREADABLE:
        with pytest.raises(Failed) as failed:
            await writer.call("sessions/update", params)
        assert failed.value.name == "Corrupt"
        with pytest.raises(Failed) as failed:
            await writer.call("messages/append", {"session": session, "messages": [{"type": "user", "content": "x"}]})
        assert failed.value.name == "Corrupt"
        assert path.read_bytes() == before
        return
    assert (await writer.call("sessions/update", params))["item"]["value"]["name"] == "Renamed"
    after = (folder / "session.jsonl").read_bytes()
    first, *rest = after.removesuffix(b"\n").split(b"\n")
    assert json.loads(first)["name"] == "Renamed"
    assert json.loads(first)["id"] == session
    lines = [line.rstrip(b"\r") for line in before.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    kept = [line for line in lines if line.strip()][1:]
    assert [line.rstrip(b"\r") for line in rest if line.strip()] == kept
    again = (await writer.call("messages/list", {"session": session}))["items"]
    assert [item["value"] for item in again] == [item["value"] for item in messages]


MENDED: dict[str, list[str]] = {
    "260401-torn-tail": ["line-unreadable"],
    "260404-header-only": [],
    "260408-tmp-only": [],
    "260409-blank-first": [],
    "260415-wrong-id": [],
}
"""Damaged session -> what is still reported when line 1 and a message were written; all others: the same as before."""


@pytest.mark.parametrize("session", sorted(set(DAMAGE) - UNREADABLE))
async def test_whoever_follows_is_told_what_a_change_has_mended(
    daemon: Daemon, root: Path, connect: Connect, session: str
) -> None:
    client = await connect(daemon, "mended")
    await client.call("events/subscribe", {"workspace": "mended"})
    await client.call("sessions/update", {"id": session, "patch": {"set": {"name": "Renamed"}}})
    await client.call("messages/append", {"session": session, "messages": [{"type": "user", "content": "x"}]})
    codes = [code for code, _ in DAMAGE[session]]
    left = MENDED.get(session, ["line-unreadable" if code == "torn-tail" else code for code in codes])
    listed = (await client.call("issues/list", {"workspace": "mended"}))["items"]
    issues = [issue for issue in listed if issue.get("id") == session]
    assert [issue["code"] for issue in issues] == left
    told = client.notifications("issues/didChange")
    assert [one["path"] for one in told] == [f"sessions/{session}/session.jsonl"] * len(told)
    if left != codes:
        assert told[-1]["issues"] == issues
    else:
        assert not told
    info = (await client.call("sessions/get", {"id": session}))["item"].get("info", {})
    assert [damage["code"] for damage in info.get("damage", [])] == left


WORKSPACES = {
    name.replace("/", "-"): GOLDEN / name
    for name in (
        "sessions/workspace",
        "projects/workspace",
        "projects/edge",
        "sources/workspace",
        "sources/lenient",
        "sources/invalid",
        "skills/valid",
        "skills/invalid",
        "skills/tiers/workspace",
        "workspace/home/workspaces/aurora-lab",
        "workspace/home/outside/field-notes",
    )
}
NOUNS = ("sessions", "projects", "sources", "skills", "statuses", "labels")


async def test_every_recorded_workspace_survives_changes_that_change_nothing(
    make_daemon: Callable[..., Daemon], connect: Connect
) -> None:
    daemon = make_daemon(home=golden.HOME)
    roots = {name: daemon.base / name for name in WORKSPACES}
    for name, root in roots.items():
        shutil.copytree(WORKSPACES[name], root)
    before = {name: snapshot(root) for name, root in roots.items()}
    daemon.register(**roots)
    daemon.start()
    client = await connect(daemon)
    tried = dict.fromkeys(NOUNS, 0)
    for name in roots:
        await client.call("events/subscribe", {"workspace": name, "topics": "*"})
        for noun in NOUNS:
            page = await client.call(f"{noun}/list", {"workspace": name, "limit": 500, "fields": ["*"]})
            for item in page["items"]:
                for patch in ({}, {"set": item["value"]}, {"unset": ["/no such member"]}):
                    params = {"workspace": name, "id": item["id"], "patch": patch}
                    try:
                        answer = await client.call(f"{noun}/update", params)
                    except Failed as failed:
                        if failed.name in ("Corrupt", "Forbidden", "ValidationFailed"):
                            continue  # nothing is written over what is damaged or elsewhere, not even the same again
                        raise
                    assert answer["changed"] is False, (name, noun, patch)
                    assert answer["item"]["version"] == item["version"]
                    tried[noun] += 1
    assert all(tried.values())
    assert [m for m in client.received if "revision" in m.get("params", {})] == []
    await client.close()
    assert daemon.stop() == 0
    for name, root in roots.items():
        assert snapshot(root) == before[name], name
