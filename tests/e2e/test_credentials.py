"""Credentials over the wire: two clients, the app's file, other programs that write it, and who may know what."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.daemon import Daemon, snapshot
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
Entries = dict[str, Any]

GOLDEN = Path(__file__).parents[1] / "golden" / "credentials"
FILE = "credentials.enc"
X = "source_bearer::notes::x"
"""As the app calls it; `a` is the registry id of the workspace in the folder `notes`."""
OURS = "source_bearer::a::x"


# The app, as its file format is described: written down a second time, and with one key only


def app_secret(daemon: Daemon, label: str = "craft-agent-v2") -> bytes:
    user = pwd.getpwuid(os.getuid()).pw_name
    files = [Path("/var/lib/dbus/machine-id"), Path("/etc/machine-id")]
    ids = [path.read_text().strip() for path in files if path.exists()]
    machine = ids[0] if ids else f"{user}:{daemon.home}"
    if label == "craft-agent-v1":
        machine = f"{socket.gethostname()}{user}{daemon.home}"
    return hashlib.sha256((machine + label).encode()).digest()


def app_key(daemon: Daemon, salt: bytes, label: str = "craft-agent-v2") -> bytes:
    return hashlib.pbkdf2_hmac("sha256", app_secret(daemon, label), salt, 100_000, 32)


def app_reads(daemon: Daemon) -> Any:
    data = (daemon.config / FILE).read_bytes()
    assert data[:8] == b"CRAFT01\0"
    key = app_key(daemon, data[12:44])
    return json.loads(AESGCM(key).decrypt(data[64:76], data[92:] + data[76:92], None))


def app_writes(daemon: Daemon, entries: Entries, label: str = "craft-agent-v2", **more: Any) -> bytes:
    """As the app does it: in place, with the salt that is there."""
    path = daemon.config / FILE
    salt = path.read_bytes()[12:44] if path.exists() else os.urandom(32)
    payload = {"version": 1, "credentials": entries, "metadata": {"createdAt": 1, "updatedAt": 2}, **more}
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()
    nonce = os.urandom(12)
    sealed = AESGCM(app_key(daemon, salt, label)).encrypt(nonce, text, None)
    head = b"CRAFT01\0" + bytes(4) + salt + bytes(20)
    path.write_bytes(head + nonce + sealed[-16:] + sealed[:-16])
    path.chmod(0o600)
    return path.read_bytes()


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    """Not started; knows the workspaces `a` in a folder `notes`, and `c` in a folder `other`."""
    daemon = make_daemon()
    (daemon.base / "home").mkdir()
    daemon.register(a=folder(daemon, "one/notes", 1), c=folder(daemon, "other", 3))
    return daemon


def folder(daemon: Daemon, where: str, number: int) -> Path:
    root = daemon.base / where
    root.mkdir(parents=True)
    (root / "config.json").write_text(json.dumps({"id": f"ws_0000000{number}", "name": where, "slug": "s"}))
    return root


async def listed(client: Wire, **params: Any) -> dict[str, Any]:
    items = (await client.call("credentials/list", params))["items"]
    return {item["id"]: item for item in items}


async def refused(client: Wire, method: str, **params: Any) -> str:
    with pytest.raises(Failed) as failure:
        await client.call(method, params)
    return failure.value.name


async def store(client: Wire, id: str, value: str = "hush", **more: Any) -> Any:
    return await client.call("credentials/set", {"id": id, "value": {"value": value, **more}})


async def secret(client: Wire, id: str) -> Any:
    return (await client.call("credentials/reveal", {"id": id}))["value"]


async def test_two_clients_see_whose_it_is_and_only_reveal_tells_the_secret(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    one, other = await connect(daemon, "a"), await connect(daemon, "a")
    for client in (one, other):
        await client.call("events/subscribe", {"topics": ["credentials"]})
    made = await store(one, OURS, "hush-1", refreshToken="hush-r", expiresAt=1)
    changed = await store(one, OURS, "hush-2", refreshToken="hush-r", expiresAt=1)
    same = await store(one, OURS, "hush-2", refreshToken="hush-r", expiresAt=1)
    assert (made["changed"], changed["changed"], same["changed"]) == (True, True, False)
    value = {"type": "source_bearer", "workspace": "a", "source": "x", "expiresAt": 1, "refreshable": True}
    assert (await listed(other))[OURS]["value"] == value
    assert (await listed(other))[OURS]["info"] == {"status": "expired"}
    assert (await other.notified("credentials/didCreate"))["item"]["value"] == value
    told = await other.notified("credentials/didChange")
    assert (told["changes"], told["patch"]) == ([{"id": OURS, "version": changed["item"]["version"]}], {})
    assert made["item"]["version"] != changed["item"]["version"]
    assert await secret(other, OURS) == {"value": "hush-2", "refreshToken": "hush-r", "expiresAt": 1}
    await one.call("credentials/delete", {"id": OURS})
    assert (await other.notified("credentials/didDelete"))["id"] == OURS
    assert await refused(other, "credentials/reveal", id=OURS) == "NotFound"
    said = b"".join(other.bodies)
    assert said.count(b"hush") == 2  # what was revealed
    assert b"hush" not in b"".join(one.bodies)


async def test_the_event_comes_before_the_answer(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    client = await connect(daemon, "a")
    await client.call("events/subscribe", {})
    id = client.ask("credentials/set", {"id": OURS, "value": {"value": "hush"}})
    await client.answer(id)
    assert client.order[-2:] == ["credentials/didCreate", id]


async def test_the_app_reads_what_we_write_and_finds_it_where_it_looks(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    client = await connect(daemon, "a")
    await store(client, OURS, "pä55 ☂")
    await store(client, "llm_iam::bedrock", "s", awsAccessKeyId="k", awsRegion="eu")
    found = app_reads(daemon)
    assert list(found) == ["version", "credentials", "metadata"]
    assert found["credentials"][X]["value"] == "pä55 ☂"
    assert found["credentials"]["llm_iam::bedrock"] == {"value": "s", "awsAccessKeyId": "k", "awsRegion": "eu"}
    assert (daemon.config / FILE).stat().st_mode & 0o777 == 0o600


async def test_what_the_app_wrote_is_merged_with_what_we_write(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    client = await connect(daemon, "a")
    await client.call("events/subscribe", {})
    await store(client, OURS, "one")
    await store(client, "llm_api_key::k", "two")
    salt = (daemon.config / FILE).read_bytes()[12:44]
    theirs = app_reads(daemon)["credentials"]
    theirs[X] = {"value": "other", "x": {"kept": [1]}}
    del theirs["llm_api_key::k"]
    app_writes(daemon, {**theirs, "craft_oauth::global": {"value": "old"}}, future=[True])
    await store(client, "llm_oauth::m", "three")
    found = app_reads(daemon)
    assert found["credentials"] == {
        X: {"value": "other", "x": {"kept": [1]}}, "craft_oauth::global": {"value": "old"},
        "llm_oauth::m": {"value": "three"},
    }  # fmt: skip
    assert (found["future"], found["metadata"]["createdAt"]) == ([True], 1)
    assert (daemon.config / FILE).read_bytes()[12:44] == salt
    disk = [m["method"] for m in client.received if m.get("params", {}).get("origin", {}).get("kind") == "disk"]
    assert sorted(disk) == ["credentials/didChange", "credentials/didCreate", "credentials/didDelete"]
    assert await secret(client, OURS) == {"value": "other", "x": {"kept": [1]}}


async def test_somebody_elses_writing_is_announced(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    client = await connect(daemon, "a")
    await client.call("events/subscribe", {})
    await listed(client)
    app_writes(daemon, {X: {"value": "one", "expiresAt": 5}})
    await client.call("daemon/sync", {})
    assert client.notifications("credentials/didCreate")[0]["item"]["id"] == OURS
    app_writes(daemon, {X: {"value": "one", "expiresAt": 6}})
    await client.call("daemon/sync", {})
    assert client.notifications("credentials/didChange")[0]["patch"] == {"set": {"expiresAt": 6}}
    (daemon.config / FILE).unlink()
    await client.call("daemon/sync", {})
    assert client.notifications("credentials/didDelete")[0]["id"] == OURS


async def test_workspaces_whose_folders_have_one_name_never_share(daemon: Daemon, connect: Connect) -> None:
    app_writes(daemon, {X: {"value": "whose?"}})
    daemon.start()
    client = await connect(daemon, "a")
    assert list(await listed(client)) == [OURS]
    two = folder(daemon, "two/notes", 2)
    await client.call("workspaces/create", {"value": {"path": str(two)}, "id": "b"})
    theirs = "source_bearer::b::x"
    assert {id: item["info"]["problem"] for id, item in (await listed(client)).items()} == {X: "ambiguous"}
    for id in (OURS, theirs):
        assert await refused(client, "credentials/reveal", id=id) == "NotFound"
    issues = (await client.call("issues/list", {}))["items"]
    assert [issue["code"] for issue in issues if issue["path"] == FILE] == ["owner-ambiguous"]
    await store(client, OURS, "a's")
    await store(client, theirs, "b's")
    assert [await secret(client, id) for id in (OURS, theirs)] == [{"value": "a's"}, {"value": "b's"}]
    await client.call("credentials/delete", {"id": X})
    await client.call("workspaces/delete", {"id": "a"})
    assert await secret(client, theirs) == {"value": "b's"}
    assert (await listed(client))[OURS]["info"]["problem"] == "unregistered"


async def test_a_secret_follows_its_workspace_and_not_the_name_of_the_folder(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    client = await connect(daemon)
    await store(client, OURS, "mine")
    assert list(app_reads(daemon)["credentials"]) == [X]
    (daemon.base / "one" / "notes").rename(daemon.base / "one" / "renamed")
    daemon.register(a=daemon.base / "one" / "renamed", c=daemon.base / "other", d=folder(daemon, "three/notes", 4))
    await client.call("daemon/sync", {})
    assert await secret(client, OURS) == {"value": "mine"}
    assert await refused(client, "credentials/reveal", id="source_bearer::d::x") == "NotFound"
    await store(client, OURS, "mine")
    assert list(app_reads(daemon)["credentials"]) == ["source_bearer::renamed::x"]


@pytest.mark.parametrize("name", ["v2-linux.enc", "bad-magic.enc", "truncated-91.enc", "zero-length.enc"])
async def test_a_file_that_does_not_open_is_reported_and_kept(daemon: Daemon, connect: Connect, name: str) -> None:
    path = daemon.config / FILE
    path.write_bytes(before := (GOLDEN / name).read_bytes())
    path.chmod(0o644)
    daemon.start()
    client = await connect(daemon, "a")
    foreign = name == "v2-linux.enc"
    error, state = ("Undecryptable", "undecryptable") if foreign else ("Corrupt", "corrupt")
    assert await refused(client, "credentials/list") == error
    assert await refused(client, "credentials/reveal", id=OURS) == error
    assert await refused(client, "credentials/delete", id=OURS, missingOk=True) == error
    assert (await client.call("credentials/status", {}))["file"]["state"] == state
    issues = [one for one in (await client.call("issues/list", {}))["items"] if one["path"] == FILE]
    assert [one["code"] for one in issues] == ["decryption_failed" if foreign else "file_corrupted", "mode-wide"]
    assert path.read_bytes() == before
    await client.call("events/subscribe", {})
    await store(client, OURS)
    status = await client.call("credentials/status", {})
    assert status["file"]["state"] == "ready"
    [kept] = status["file"]["setAside"]
    assert (daemon.config / kept).read_bytes() == before
    assert (daemon.config / kept).stat().st_mode & 0o777 == 0o600
    assert path.stat().st_mode & 0o777 == 0o600
    assert app_reads(daemon)["credentials"][X]["value"] == "hush"
    told = await client.notified("issues/didChange")
    assert (told["path"], told["issues"]) == (FILE, [])


async def test_a_file_of_an_old_version_is_sealed_anew(daemon: Daemon, connect: Connect) -> None:
    entries = {X: {"value": "old"}, "craft_oauth::global": {"value": "retired"}}
    before = app_writes(daemon, entries, "craft-agent-v1")
    with pytest.raises(InvalidTag):
        app_reads(daemon)
    daemon.start()
    client = await connect(daemon, "a")
    assert sorted(await listed(client)) == ["craft_oauth::global", OURS]
    found = app_reads(daemon)
    assert (found["credentials"], found["metadata"]) == (entries, {"createdAt": 1, "updatedAt": 2})
    after = (daemon.config / FILE).read_bytes()
    assert (after[:64], len(after)) == (before[:64], len(before))


@pytest.fixture
def app(daemon: Daemon) -> Iterator[None]:
    """A living program that is not craftd holds the app's lock."""
    process = subprocess.Popen(["sleep", "600"])
    lock = {"pid": process.pid, "startedAt": time.time_ns() // 1_000_000}
    (daemon.config / ".server.lock").write_text(json.dumps(lock))
    yield
    process.kill()
    process.wait()


@pytest.mark.usefixtures("app")
async def test_while_the_app_runs_credentials_are_read_only(daemon: Daemon, connect: Connect) -> None:
    app_writes(daemon, {X: {"value": "old"}}, "craft-agent-v1")
    daemon.start()
    before = snapshot(daemon.config)[FILE]
    client = await connect(daemon, "a")
    assert await secret(client, OURS) == {"value": "old"}
    assert await refused(client, "credentials/set", id=OURS, value={"value": "new"}) == "ReadOnly"
    assert await refused(client, "credentials/delete", id=OURS) == "ReadOnly"
    assert list(await listed(client)) == [OURS]
    assert snapshot(daemon.config)[FILE] == before


async def test_a_refreshed_token_keeps_what_belongs_to_it(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    client = await connect(daemon, "a")
    id = "source_oauth::a::mail"
    await store(client, id, "old", refreshToken="r", clientId="c", expiresAt=5)
    params = {"id": id, "value": {"value": "new"}, "refreshed": True}
    await client.call("credentials/set", params)
    assert await secret(client, id) == {"value": "new", "refreshToken": "r", "clientId": "c"}
    assert await refused(client, "credentials/set", **{**params, "id": "source_oauth::a::other"}) == "NotFound"


async def test_a_credential_is_set_only_where_it_is_what_was_believed(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    client = await connect(daemon, "a")
    new = {"id": OURS, "value": {"value": "one"}, "expectedVersion": ""}
    version = (await client.call("credentials/set", new))["item"]["version"]
    assert await refused(client, "credentials/set", **{**new, "value": {"value": "two"}}) == "VersionConflict"
    await client.call("credentials/set", {**new, "value": {"value": "two"}, "expectedVersion": version})
    assert await refused(client, "credentials/delete", id=OURS, expectedVersion=version) == "VersionConflict"
    daemon.restart()
    client = await connect(daemon, "a")
    again = await store(client, OURS, "one")
    assert again["item"]["version"] == version


@pytest.mark.parametrize(
    ("id", "value", "error"),
    [
        (OURS, {}, "ValidationFailed"), (OURS, {"value": 5}, "ValidationFailed"),
        (OURS, {"value": "x", "expiresAt": "soon"}, "ValidationFailed"), ("nonsense", {"value": "x"}, "InvalidParams"),
        ("craft_oauth::global", {"value": "x"}, "InvalidParams"), ("source_bearer::a", {"value": "x"}, "InvalidParams"),
        pytest.param("x" * 2001, {"value": "x"}, "InvalidParams", id="long"),
        ("source_bearer::a::b::c", {"value": "x"}, "InvalidParams"),
        ("source_bearer::nowhere::x", {"value": "x"}, "NotFound"), (X, {"value": "x"}, "NotFound"),
    ],
)  # fmt: skip
async def test_what_could_not_be_found_again_is_refused(
    daemon: Daemon, connect: Connect, id: str, value: Entries, error: str
) -> None:
    daemon.start()
    client = await connect(daemon, "a")
    assert await refused(client, "credentials/set", id=id, value=value) == error
    assert not (daemon.config / FILE).exists()


async def test_lists_are_filtered_by_whose_it_is_and_how_it_is(daemon: Daemon, connect: Connect) -> None:
    daemon.start()
    client = await connect(daemon, "a")
    all = [
        "source_bearer::a::s1", "source_oauth::a::s2", "source_bearer::c::s1", "messaging_bearer::a::telegram",
        "llm_api_key::c", "workspace_oauth::a",
    ]  # fmt: skip
    for id in all:
        await store(client, id)
    await store(client, "llm_oauth::late", expiresAt=1)
    for filter, found in [
        ({"workspace": "a"}, {all[0], all[1], all[3], all[5]}),
        ({"type": "source_bearer", "workspace": "a"}, {all[0]}),
        ({"platform": "telegram"}, {all[3]}),
        ({"workspace": "zz"}, set()),
        ({"source": "s1"}, {all[0], all[2]}),  # the app ignores these two
        ({"connection": "c"}, {all[4]}),
        ({"status": "expired"}, {"llm_oauth::late"}),
        ({"status": ["ready", "expired"], "source": "s2"}, {all[1]}),
    ]:
        assert set(await listed(client, filter=filter)) == found


async def test_a_token_reveals_only_with_its_right_and_only_what_is_of_its_workspaces(
    daemon: Daemon, connect: Connect
) -> None:
    daemon.start("--tcp", "127.0.0.1:0")
    local = await connect(daemon, "a")
    others = "source_bearer::c::x"
    for id in (OURS, others, "llm_api_key::k"):
        await store(local, id)
    [address] = [one["address"] for one in (await local.call("daemon/status"))["listeners"] if one["kind"] == "tcp"]

    async def dial(**token: Any) -> Wire:
        shown = (await local.call("tokens/create", token))["secret"]
        wire = await Wire.connect(f"tcp://{address}")
        await wire.initialize({"token": shown})
        return wire

    reader = await dial(rights=["read", "write"])
    assert sorted(await listed(reader)) == ["llm_api_key::k", OURS, others]
    assert await refused(reader, "credentials/reveal", id=OURS) == "Forbidden"
    limited = await dial(rights=["read", "write", "secrets"], workspaces=["a"])
    assert list(await listed(limited)) == [OURS]
    assert await secret(limited, OURS) == {"value": "hush"}
    for id in (others, "llm_api_key::k", "source_bearer::other::x"):
        assert await refused(limited, "credentials/reveal", id=id) == "NotFound"
        assert await refused(limited, "credentials/delete", id=id) == "NotFound"
        assert await refused(limited, "credentials/status", id=id) == "NotFound"
        assert await refused(limited, "credentials/set", id=id, value={"value": "x"}) == "NotFound"
    for wire in (reader, limited):
        await wire.close()
