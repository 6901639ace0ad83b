"""Signing in, with a real daemon and a real authorisation server: what is stored, and what must not work."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.authorisation_server import AuthorisationServer, serving
from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
PORT = 6477


@pytest.fixture(scope="module")
def server() -> Iterator[AuthorisationServer]:
    with serving() as server:
        yield server


@pytest.fixture(autouse=True)
def tidy(server: AuthorisationServer) -> Iterator[None]:
    yield
    server.answer.clear()
    server.hold.set()


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon], server: AuthorisationServer) -> Iterator[Daemon]:
    daemon = make_daemon()
    root = set_up(daemon)
    declared = {"authorizationUrl": f"{server.url}/authorize", "tokenUrl": f"{server.url}/token", "clientId": "known"}
    write(root, "harbor", type="mcp", mcp={"transport": "http", "url": f"{server.url}/mcp", "authType": "oauth"})
    write(root, "pilot", type="api", api={"baseUrl": server.url, "authType": "oauth", "oauth": declared})
    write(root, "plain", type="api", api={"baseUrl": server.url, "authType": "none"})
    write(root, "nowhere", type="mcp", mcp={"transport": "http", "url": "http://127.0.0.1:9/mcp", "authType": "oauth"})
    daemon.start()
    yield daemon
    token = [secret for secret in server.tokens if secret in daemon.log]
    assert token == []
    daemon.end()


def write(root: Any, slug: str, **config: Any) -> None:
    folder = root / "sources" / slug
    folder.mkdir(parents=True)
    whole = {"id": f"{slug}_1", "name": slug, "slug": slug, "enabled": True, "provider": slug, **config}
    (folder / "config.json").write_text(json.dumps(whole))
    (folder / "guide.md").write_text(f"# {slug}\n")


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, WORKSPACE)


async def agree(url: str) -> dict[str, str]:
    """What the browser brings back when the person agreed."""

    def visit() -> str:
        parts = urlsplit(url)
        browser = http.client.HTTPConnection(parts.netloc, timeout=30)
        browser.request("GET", f"{parts.path}?{parts.query}")
        answer = browser.getresponse()
        assert answer.status == 302, answer.read()
        return answer.headers["Location"]

    back = await asyncio.to_thread(visit)
    assert back.startswith(f"http://localhost:{PORT}/")
    return dict(parse_qsl(urlsplit(back).query))


async def start(client: Wire, source: str, **params: Any) -> Any:
    return await client.call("oauth/start", {"source": source, "callbackPort": PORT, **params})


async def refused(client: Wire, method: str, **params: Any) -> str:
    with pytest.raises(Failed) as failed:
        await client.call(method, params)
    return failed.value.name


@pytest.mark.parametrize("source", ["harbor", "pilot"])
async def test_a_person_signs_in_and_out(
    client: Wire, connect: Connect, daemon: Daemon, server: AuthorisationServer, source: str
) -> None:
    other = await connect(daemon, WORKSPACE)
    await other.call("events/subscribe", {})
    await other.call("events/subscribe", {"workspace": WORKSPACE})
    begun = await start(client, source)
    brought = await agree(begun["authUrl"])
    assert brought["state"] == begun["state"]
    done = await client.call("oauth/complete", {"flow": begun["flow"], **brought})
    assert done["id"] == f"source_oauth::{WORKSPACE}::{source}"
    secret = (await client.call("credentials/reveal", {"id": done["id"]}))["value"]
    assert (secret["value"], secret["refreshToken"]) == (server.tokens[-1], "refresh-s3cret")
    assert secret["clientId"] in server.clients
    item = (await client.call("credentials/status", {"id": done["id"]}))["items"][0]
    assert (item["status"], item["refreshable"]) == ("ready", True)
    value = (await client.call("sources/get", {"id": source}))["item"]["value"]
    assert (value["isAuthenticated"], value["connectionStatus"]) == (True, "connected")
    await other.call("daemon/sync", {"workspace": WORKSPACE})
    assert (await other.notified("credentials/didCreate"))["item"]["id"] == done["id"]
    heard = b"".join(other.bodies)
    assert server.tokens[-1].encode() not in heard
    assert b"refresh-s3cret" not in heard

    assert await refused(client, "oauth/complete", flow=begun["flow"], **brought) == "NotFound"
    await client.call("oauth/revoke", {"source": source})
    assert await refused(client, "credentials/reveal", id=done["id"]) == "NotFound"
    value = (await client.call("sources/get", {"id": source}))["item"]["value"]
    assert (value["isAuthenticated"], value["connectionStatus"]) == (False, "needs_auth")
    await client.call("oauth/revoke", {"source": source})


async def test_a_code_without_its_verifier_is_worth_nothing(client: Wire, server: AuthorisationServer) -> None:
    """Somebody who saw the code begins a flow of their own: the server wants the verifier that belongs to it."""
    first, second = await start(client, "pilot"), await start(client, "pilot")
    seen = await agree(first["authUrl"])
    with pytest.raises(Failed, match="invalid_grant") as failed:
        await client.call("oauth/complete", {"flow": second["flow"], "code": seen["code"], "state": second["state"]})
    assert failed.value.name == "InvalidState"
    assert seen["code"] not in str(failed.value.error)


async def test_another_state_ends_nothing(client: Wire) -> None:
    begun = await start(client, "pilot")
    brought = await agree(begun["authUrl"])
    assert (
        await refused(client, "oauth/complete", flow=begun["flow"], code=brought["code"], state="x") == "InvalidParams"
    )
    await client.call("oauth/complete", {"flow": begun["flow"], **brought})


async def test_a_flow_is_known_to_its_connection_alone(client: Wire, connect: Connect, daemon: Daemon) -> None:
    begun = await start(client, "pilot")
    brought = await agree(begun["authUrl"])
    other = await connect(daemon, WORKSPACE)
    assert await refused(other, "oauth/complete", flow=begun["flow"], **brought) == "NotFound"
    assert await refused(other, "oauth/cancel", flow=begun["flow"]) == "NotFound"
    await client.call("oauth/cancel", {"flow": begun["flow"]})
    assert await refused(client, "oauth/complete", flow=begun["flow"], **brought) == "NotFound"


async def test_only_so_many_flows_are_begun(connect: Connect, daemon: Daemon) -> None:
    crowd = await connect(daemon, WORKSPACE)
    for _ in range(16):
        last = await start(crowd, "pilot")
    assert await refused(crowd, "oauth/start", source="pilot", callbackPort=PORT) == "Busy"
    await crowd.call("oauth/cancel", {"flow": last["flow"]})
    await start(crowd, "pilot")


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"source": "nope", "callbackPort": PORT}, "NotFound"),
        ({"source": "../pilot", "callbackPort": PORT}, "InvalidParams"),
        ({"source": "plain", "callbackPort": PORT}, "InvalidState"),
        ({"source": "nowhere", "callbackPort": PORT}, "Unavailable"),
        ({"source": "pilot"}, "InvalidParams"),
        ({"source": "pilot", "callbackPort": 0}, "InvalidParams"),
        ({"source": "pilot", "callbackUrl": "http://evil.example/"}, "InvalidParams"),
        ({"source": "pilot", "callbackPort": PORT, "callbackUrl": "https://my.example/cb"}, "InvalidParams"),
    ],
)
async def test_what_cannot_begin_says_why(client: Wire, params: dict[str, Any], name: str) -> None:
    assert await refused(client, "oauth/start", **params) == name


@pytest.mark.parametrize(
    "answer",
    [(500, b""), (200, b"{}"), (200, b"not json"), (200, b"x" * 300_000), (302, b""), (200, b'{"access_token": 7}')],
)
async def test_a_server_that_answers_wrongly_leaves_nothing_behind(
    client: Wire, server: AuthorisationServer, answer: tuple[int, bytes]
) -> None:
    begun = await start(client, "harbor")
    brought = await agree(begun["authUrl"])
    server.answer["/token"] = answer
    assert await refused(client, "oauth/complete", flow=begun["flow"], **brought) == "InvalidState"
    assert await refused(client, "credentials/reveal", id=f"source_oauth::{WORKSPACE}::harbor") == "NotFound"


async def test_a_start_is_taken_back_while_a_server_thinks(client: Wire, server: AuthorisationServer) -> None:
    server.hold.clear()
    server.arrived.clear()
    asked = client.ask("oauth/start", {"source": "harbor", "callbackPort": PORT})
    assert await asyncio.to_thread(server.arrived.wait, 30)
    client.send("$/cancelRequest", {"id": asked})
    with pytest.raises(Failed, match="Cancelled"):
        await client.answer(asked)
