"""Sources over the wire: what is refused, what is told of them, and connecting to real servers of each kind."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from tests.daemon import Daemon
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
WORKSPACE = "ws_sources"
SERVER = str(Path(__file__).parents[1] / "mcp_server.py")
TOKEN = "s3cret-token-of-the-harbour"


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    root = daemon.base / "ws"
    root.mkdir()
    (root / "config.json").write_text(json.dumps({"id": WORKSPACE, "name": "w", "slug": "w", "createdAt": 1}))
    write(root, "by-hand", "mcp", {"transport": "stdio", "command": "x", "env": {"API_KEY": "by-hand-0123"}})
    daemon.register(**{WORKSPACE: root})
    daemon.environment["GITHUB_TOKEN"] = "not-for-programs"
    daemon.start("--tcp", "127.0.0.1:0")
    return daemon


def write(root: Any, slug: str, kind: str, block: Any) -> None:
    (root / "sources" / slug).mkdir(parents=True)
    whole = {"id": slug, "name": slug, "slug": slug, "enabled": True, "provider": slug, "type": kind, kind: block}
    (root / "sources" / slug / "config.json").write_text(json.dumps(whole))


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, WORKSPACE)


async def make(client: Wire, slug: str, kind: str, block: Any, **more: Any) -> Any:
    value = {"name": slug, "provider": slug, "type": kind, kind: block, **more}
    return (await client.call("sources/create", {"value": value, "id": slug}))["item"]


async def refused(client: Wire, method: str, **params: Any) -> Any:
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    return failed.value.error


async def test_a_secret_is_refused_and_never_repeated(client: Wire, daemon: Daemon) -> None:
    block = {"url": "https://a.example/mcp", "authType": "bearer", "headers": {"Authorization": "Bearer hush-hush"}}
    value = {"name": "s", "type": "mcp", "provider": "p", "mcp": block}
    error = await refused(client, "sources/create", value=value, id="secretive")
    [issue] = error["data"]["issues"]
    assert (issue["path"], issue["code"]) == ("mcp.headers.Authorization", "secret-in-config")
    assert "credentials/set" in issue["suggestion"]
    assert "hush-hush" not in json.dumps(error)
    block["headers"]["Authorization"] = "Bearer ${TOKEN}"
    await client.call("sources/create", {"value": value, "id": "secretive"})
    assert "hush-hush" not in daemon.log


async def test_a_secret_written_by_hand_is_a_warning_and_stops_no_other_change(client: Wire) -> None:
    issues = (await client.call("issues/list", {"workspace": WORKSPACE, "path": "sources/by-hand/config.json"}))[
        "items"
    ]
    assert [(issue["code"], issue["severity"]) for issue in issues] == [("secret-in-config", "warning")]
    assert issues[0]["range"]["start"]["line"] == 0
    await client.call("sources/update", {"id": "by-hand", "patch": {"set": {"mcp": {"command": "y"}, "name": "n"}}})
    another = {"set": {"mcp": {"env": {"API_KEY": "another-0123"}}}}
    assert (await refused(client, "sources/update", id="by-hand", patch=another))["data"]["code"] == "ValidationFailed"


async def test_what_a_source_needs_and_what_its_guide_says_is_told(client: Wire) -> None:
    block = {"baseUrl": "https://a.example", "authType": "header"}
    made = await make(client, "needy", "api", block, guide="# T\n\n## Scope\nTides.\n")
    assert made["info"] == {
        "usable": False,
        "needsAuthentication": True,
        "credentials": ["source_apikey"],
        "guide": {"scope": "Tides."},
    }
    changed = {"set": {"isAuthenticated": True, "guide": "## Scope\nZones of tides.\n"}}
    item = (await client.call("sources/update", {"id": "needy", "patch": changed}))["item"]
    assert (item["info"]["usable"], item["info"]["guide"]) == (True, {"scope": "Zones of tides."})
    assert item == (await client.call("sources/get", {"id": "needy"}))["item"]


async def test_storing_one_credential_of_a_server_takes_the_other_away(client: Wire) -> None:
    await make(client, "pair", "mcp", {"url": "https://a.example/mcp", "authType": "bearer"})
    await make(client, "lone", "api", {"baseUrl": "https://a.example", "authType": "bearer"})

    async def stored(source: str) -> list[str]:
        items = (await client.call("credentials/list", {"filter": {"source": source}}))["items"]
        return [item["id"].partition("::")[0] for item in items]

    for source, last in (("pair", ["source_bearer"]), ("lone", ["source_bearer", "source_oauth"])):
        for type in ("source_oauth", "source_bearer"):
            await client.call("credentials/set", {"id": f"{type}::{WORKSPACE}::{source}", "value": {"value": "v"}})
        assert sorted(await stored(source)) == last


# -- sources/test --


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, int]]:
    """Ports of real MCP servers that want the token."""
    ports = {"http": free_port(), "sse": free_port()}
    running = [
        subprocess.Popen([sys.executable, SERVER, kind, str(port)], env={**os.environ, "WANTED": TOKEN})
        for kind, port in ports.items()
    ]
    deadline = time.monotonic() + 60
    for port in ports.values():
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)  # until a process listens, of which nothing tells
    yield ports
    for process in running:
        process.kill()
        process.wait()


class Api(BaseHTTPRequestHandler):
    seen: ClassVar[list[tuple[str, str, Any]]] = []

    def do_GET(self) -> None:
        Api.seen.append((self.command, self.path, self.headers.get("X-Key")))
        status = 405 if self.command == "HEAD" else 200 if self.headers.get("X-Key") in (None, TOKEN) else 401
        self.send_response(status if self.path != "/v1/moved" else 302)
        self.send_header("Location", "http://127.0.0.1:9/")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def api() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/"
        server.shutdown()


async def value_of(client: Wire, slug: str) -> Any:
    return (await client.call("sources/get", {"id": slug}))["item"]["value"]


def nothing_told(client: Wire, daemon: Daemon) -> None:
    assert TOKEN.encode() not in b"".join(client.bodies)
    assert TOKEN not in daemon.log


async def test_a_program_is_started_and_says_what_it_has(client: Wire, daemon: Daemon, tmp_path: Path) -> None:
    env = {"TELL": str(tmp_path / "told"), "LOGBOOK": "/srv"}
    block = {"transport": "stdio", "command": sys.executable, "args": [SERVER, "stdio"], "env": env}
    await make(client, "program", "mcp", block, enabled=False, connectionError="old")
    tested = await client.call("sources/test", {"id": "program", "workDoneToken": 7})
    assert (tested["status"], tested["written"], "message" in tested) == ("connected", True, False)
    found = tested["found"]
    assert found["server"]["name"] == "harbour"
    assert [tool["name"] for tool in found["tools"]] == ["berths"]
    assert [one["uri"] for one in found["resources"]] == ["harbour://tides"]
    assert [one["name"] for one in found["prompts"]] == ["greet"]
    assert tested["searchPath"]
    assert (tmp_path / "told").read_text() == f"None /srv {daemon.base / 'ws'}"
    value = await value_of(client, "program")
    assert (value["connectionStatus"], value["enabled"], "connectionError" in value) == ("connected", True, False)
    assert value["lastTestedAt"] > 0
    kinds = [one["value"]["kind"] for one in client.notifications("$/progress")]
    assert (kinds[0], kinds[-1], "report" in kinds) == ("begin", "end", True)


@pytest.mark.parametrize(("kind", "path"), [("http", "mcp"), ("sse", "sse")])
async def test_a_server_is_connected_to_with_the_stored_token(
    client: Wire, daemon: Daemon, servers: dict[str, int], kind: str, path: str
) -> None:
    block = {"transport": kind, "url": f"http://127.0.0.1:{servers[kind]}/{path}", "authType": "bearer"}
    await make(client, kind, "mcp", block, enabled=False)
    tested = await client.call("sources/test", {"id": kind})
    assert tested["status"] == "needs_auth"
    assert (await value_of(client, kind))["enabled"] is False
    id = f"source_bearer::{WORKSPACE}::{kind}"
    await client.call("credentials/set", {"id": id, "value": {"value": TOKEN}})
    tested = await client.call("sources/test", {"id": kind, "autoEnable": False})
    assert (tested["status"], tested.get("message")) == ("connected", None)
    assert [tool["name"] for tool in tested["found"]["tools"]] == ["berths"]
    value = await value_of(client, kind)
    assert (value["connectionStatus"], value["enabled"]) == ("connected", False)
    nothing_told(client, daemon)


async def test_an_api_is_asked_with_its_credential(client: Wire, daemon: Daemon, api: str) -> None:
    block = {
        "baseUrl": api,
        "authType": "header",
        "headerName": "X-Key",
        "testEndpoint": {"method": "GET", "path": "/me"},
    }
    await make(client, "api", "api", block)
    id = f"source_apikey::{WORKSPACE}::api"
    for secret, status in (("wrong-" + TOKEN, "failed"), (TOKEN, "connected")):
        await client.call("credentials/set", {"id": id, "value": {"value": secret}})
        tested = await client.call("sources/test", {"id": "api"})
        assert tested["status"] == status
        assert Api.seen[-1] == ("GET", "/v1/me", secret)
        assert ("connectionError" in await value_of(client, "api")) == (status == "failed")
    await make(client, "open", "api", {"baseUrl": api, "authType": "none"})
    assert (await client.call("sources/test", {"id": "open"}))["status"] == "connected"
    assert [method for method, *_ in Api.seen[-2:]] == ["HEAD", "GET"]
    await make(
        client, "moved", "api", {**block, "testEndpoint": {"method": "GET", "path": "moved"}, "authType": "none"}
    )
    assert (await client.call("sources/test", {"id": "moved"}))["status"] == "failed"
    nothing_told(client, daemon)


async def test_a_folder_is_read(client: Wire, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    await make(client, "folder", "local", {"path": str(tmp_path)})
    assert (await client.call("sources/test", {"id": "folder"}))["found"] == {"entries": 1}
    await make(client, "gone", "local", {"path": str(tmp_path / "gone")})
    tested = await client.call("sources/test", {"id": "gone"})
    assert tested["status"] == "failed"
    assert (await value_of(client, "gone"))["connectionError"] == tested["message"]


async def test_what_cannot_be_started_or_reached_has_failed(client: Wire) -> None:
    await make(client, "absent", "mcp", {"transport": "stdio", "command": "there-is-no-such-program"})
    tested = await client.call("sources/test", {"id": "absent"})
    assert (tested["status"], tested["message"]) == ("failed", "its command is not found")
    await make(client, "silent", "mcp", {"transport": "stdio", "command": "true"})
    assert (await client.call("sources/test", {"id": "silent"}))["status"] == "failed"
    await make(client, "deaf", "mcp", {"url": f"http://127.0.0.1:{free_port()}/mcp", "authType": "none"})
    assert (await client.call("sources/test", {"id": "deaf"}))["status"] == "failed"


async def test_who_tests_says_how_long_it_may_take(client: Wire) -> None:
    block = {"transport": "stdio", "command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}
    await make(client, "slow", "mcp", block)
    error = await refused(client, "sources/test", id="slow", timeoutMs=50)
    assert (error["data"]["code"], error["data"]["retryable"]) == ("Timeout", True)
    value = await value_of(client, "slow")
    assert (value["connectionStatus"], value["connectionError"]) == ("failed", "there was no answer in 0.05 seconds")
    assert (await refused(client, "sources/test", id="slow", timeoutMs=0))["data"]["code"] == "InvalidParams"


async def test_cancelling_ends_the_program_and_what_it_started(client: Wire, tmp_path: Path) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    block = {"transport": "stdio", "command": sys.executable, "args": [SERVER, "hang"], "env": {"TELL": str(told)}}
    await make(client, "hanging", "mcp", block)
    asked = client.ask("sources/test", {"id": "hanging"})
    pids = (await asyncio.to_thread(told.read_text)).split()
    client.send("$/cancelRequest", {"id": asked})
    with pytest.raises(Failed) as failed:
        await client.answer(asked)
    assert failed.value.error["code"] == -32800
    for pid in pids:
        assert await asyncio.to_thread(ended, int(pid))
    assert "connectionStatus" not in await value_of(client, "hanging")


def ended(pid: int) -> bool:
    """Whether a process has ended, or is about to be reaped; it was killed before."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)  # until the kernel has taken it away
    return False


async def test_what_is_not_valid_is_not_tried(client: Wire, daemon: Daemon) -> None:
    write(daemon.base / "ws", "odd", "mcp", {"transport": "stdio"})
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    assert (await refused(client, "sources/test", id="odd"))["data"]["code"] == "ValidationFailed"
    assert (await refused(client, "sources/test", id="nowhere"))["data"]["code"] == "NotFound"


async def test_without_the_right_nothing_is_started(client: Wire, daemon: Daemon, tmp_path: Path) -> None:
    env = {"TELL": str(tmp_path / "told")}
    block = {"transport": "stdio", "command": sys.executable, "args": [SERVER, "stdio"], "env": env}
    await make(client, "forbidden", "mcp", block)
    token = (await client.call("tokens/create", {"rights": ["read", "write", "secrets"]}))["secret"]
    wire = await daemon.dial("tcp", token=token)
    await wire.initialize({"token": token})
    error = await refused(wire, "sources/test", workspace=WORKSPACE, id="forbidden")
    assert error["data"]["code"] == "Forbidden"
    assert not (tmp_path / "told").exists()
    assert "connectionStatus" not in await value_of(client, "forbidden")


async def test_a_workspace_may_forbid_programs(client: Wire, daemon: Daemon, tmp_path: Path) -> None:
    env = {"TELL": str(tmp_path / "told")}
    block = {"transport": "stdio", "command": sys.executable, "args": [SERVER, "stdio"], "env": env}
    await make(client, "local-off", "mcp", block)
    config = daemon.base / "ws" / "config.json"
    before = config.read_text()
    config.write_text(json.dumps({**json.loads(before), "localMcpServers": {"enabled": False}}))
    await client.call("daemon/sync", {})
    assert (await refused(client, "sources/test", id="local-off"))["data"]["state"] == "switched-off"
    config.write_text(before)
    await client.call("daemon/sync", {})
    assert not (tmp_path / "told").exists()
