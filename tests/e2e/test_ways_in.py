"""One daemon, every way in: who may come, what they may do, and that all of them see the same."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from craftd.model import json_text
from craftd.protocol.framing import Decoder, encode
from tests.daemon import CRAFTD, Daemon
from tests.wire import PATIENCE, Failed, Wire

WAYS = ("unix", "tcp", "ws")
HOME, WORK = "ws_home", "ws_work"
Connect = Callable[..., Awaitable[Wire]]


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    """With two workspaces, on all ways in."""
    daemon = make_daemon()
    roots = {}
    for id in (HOME, WORK):
        roots[id] = root = daemon.base / id
        (root / "sessions").mkdir(parents=True)
        config = {"id": id, "name": id, "slug": id, "createdAt": 1, "updatedAt": 1}
        (root / "config.json").write_text(json.dumps(config))
    daemon.register(**roots)
    daemon.start("--tcp", "127.0.0.1:0", "--ws", "127.0.0.1:0")
    return daemon


@pytest.fixture
async def owner(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, HOME)


@pytest.fixture
async def made(daemon: Daemon, owner: Wire) -> AsyncIterator[Callable[..., Awaitable[str]]]:
    """Makes tokens, which are gone after the test."""
    ids: list[str] = []

    async def make(*rights: str, **more: Any) -> str:
        made = await owner.call("tokens/create", {"rights": list(rights), **more})
        ids.append(made["token"]["id"])
        return str(made["secret"])

    yield make
    for one in (await owner.call("tokens/list"))["tokens"]:
        if one["id"] in ids:
            await owner.call("tokens/revoke", {"id": one["id"]})


async def refused(wire: Wire, method: str, params: Any = None) -> tuple[str, Any]:
    with pytest.raises(Failed) as failed:
        await wire.call(method, params)
    return failed.value.name, failed.value.error["data"].get("scope")


class Bridge:
    """An editor's end of `craftd stdio`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.received: list[dict[str, Any]] = []
        self._decoder = Decoder()

    @classmethod
    async def start(cls, daemon: Daemon) -> Bridge:
        return cls(
            await asyncio.create_subprocess_exec(
                *CRAFTD, "stdio", env=daemon.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        )

    def send(self, id_: Any, method: str, params: Any) -> None:
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
        self.process.stdin.write(encode(json_text.dumps(message)))

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while not (found := [message for message in self.received if wanted(message)]):
                data = await self.process.stdout.read(1 << 16)
                assert data
                self.received += map(json_text.loads, self._decoder.feed(data))
        return found[0]

    async def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        await asyncio.wait_for(self.process.wait(), PATIENCE)


def names_created(messages: list[dict[str, Any]]) -> list[str]:
    return [m["params"]["item"]["value"]["name"] for m in messages if m.get("method") == "sessions/didCreate"]


async def test_clients_of_all_ways_meet_with_equal_ids_and_see_one_order(daemon: Daemon, connect: Connect) -> None:
    wires = [await connect(daemon, WORK, over=way) for way in WAYS for _ in range(2)]
    bridge = await Bridge.start(daemon)
    bridge.send(
        1, "initialize", {"capabilities": {}, "initializationOptions": {"craft": {"workspaces": [{"id": WORK}]}}}
    )
    await bridge.until(lambda message: message.get("id") == 1)
    bridge.send("s", "events/subscribe", {"workspace": WORK, "topics": ["sessions"]})
    await bridge.until(lambda message: message.get("id") == "s")
    for wire in wires:
        await wire.call("events/subscribe", {"workspace": WORK, "topics": ["sessions"]})
    rounds = 20
    for number in range(rounds):  # every client asks with the same ids
        for who, wire in enumerate(wires):
            wire.send("sessions/create", {"value": {"name": f"{who} {number}"}}, id=1000 + number)
        bridge.send(1000 + number, "sessions/create", {"value": {"name": f"bridge {number}"}})
    total = rounds * (len(wires) + 1)
    for who, wire in enumerate(wires):
        for number in range(rounds):
            answer = await wire.answer(1000 + number)
            assert answer["item"]["value"]["name"] == f"{who} {number}"
        await wire.notified("sessions/didCreate", total)
        assert len([message for message in wire.received if message.get("id") == 1000]) == 1
    for number in range(rounds):
        id_ = 1000 + number
        answer = await bridge.until(lambda message, id_=id_: message.get("id") == id_)  # type: ignore[misc]
        assert answer["result"]["item"]["value"]["name"] == f"bridge {number}"
    await bridge.until(lambda message: len(names_created(bridge.received)) == total)
    order = names_created(wires[0].received)
    assert len(set(order)) == total
    assert all(names_created(client.received) == order for client in (*wires, bridge))
    events = [[body for body in wire.bodies if b'"method":"sessions/didCreate"' in body] for wire in wires]
    assert all(one == events[0] for one in events)
    await bridge.stop()


@pytest.mark.parametrize("way", WAYS)
async def test_the_daemon_says_where_it_listens(daemon: Daemon, connect: Connect, way: str) -> None:
    status = await (await connect(daemon, over=way)).call("daemon/status")
    assert [one["kind"] for one in status["listeners"]] == ["unix", "tcp", "ws"]
    assert f"{way}:" in daemon.url(way)
    assert {"kind": way, "address": daemon.url(way).partition(":")[2].removeprefix("//"), "tls": False} in status[
        "listeners"
    ]
    assert daemon.token not in json.dumps(status)
    assert daemon.token not in daemon.log


async def test_hello_shows_a_token_too(daemon: Daemon) -> None:
    for way in ("tcp", "ws"):
        wire = await daemon.dial(way, token=None)
        assert (await wire.call("daemon/hello", {"token": daemon.token}))["protocol"] == "1.0"
        await wire.initialize()
        assert (await wire.call("daemon/sync"))["revision"] >= 0
        await wire.close()


@pytest.mark.parametrize("way", ["tcp", "ws"])
@pytest.mark.parametrize("params", [{}, {"token": "wrong"}])
async def test_hello_without_a_token_learns_nothing(daemon: Daemon, way: str, params: Any) -> None:
    wire = await daemon.dial(way, token=None)
    with pytest.raises(Failed) as failed:
        await wire.call("daemon/hello", params)
    assert failed.value.name == "Unauthenticated"
    assert str(daemon.config) not in str(failed.value.error)
    await wire.closed()


async def test_a_connection_stays_with_its_token(daemon: Daemon, made: Any) -> None:
    wire = await daemon.dial("ws", token=await made("read"))
    with pytest.raises(Failed) as failed:
        await wire.initialize({"token": await made("read", "write")})
    assert failed.value.name == "InvalidRequest"
    await wire.close()


@pytest.mark.parametrize("way", ["tcp", "ws"])
async def test_every_right_opens_what_it_is_for_and_no_more(daemon: Daemon, owner: Wire, made: Any, way: str) -> None:
    create = ("sessions/create", {"workspace": HOME, "value": {"name": "x"}})
    asked = {
        "read": ("sessions/list", {"workspace": HOME}),
        "write": create,
        "admin": ("tokens/list", {}),
    }
    for right in ("read", "write", "execute", "secrets", "admin"):
        wire = await daemon.dial(way, token=await made(right))
        assert (await wire.initialize())["rights"] == [right]
        for needed, (method, params) in asked.items():
            if needed == right:
                await wire.call(method, params)
            else:
                assert await refused(wire, method, params) == ("Forbidden", needed)
        if right != "read":
            assert await refused(wire, "events/subscribe", {"workspace": HOME}) == ("Forbidden", "read")
        if right != "write":
            inside = {"command": "craft.call", "arguments": list(create)}
            assert await refused(wire, "workspace/executeCommand", inside) == ("Forbidden", "write")
        if right != "admin":
            assert await refused(wire, "daemon/stop") == ("Forbidden", "admin")
        await wire.close()


async def test_reading_registers_no_workspace(daemon: Daemon, made: Any) -> None:
    root = daemon.base / "unknown"
    root.mkdir(exist_ok=True)
    (root / "config.json").write_text('{"id": "ws_u", "name": "u", "slug": "u", "createdAt": 1, "updatedAt": 1}')
    before = (daemon.config / "config.json").read_bytes()
    for wishes in ({"workspaces": [{"path": str(root)}]}, {}):
        wire = await daemon.dial("tcp", token=await made("read"))
        params = {"workspaceFolders": [{"uri": root.as_uri(), "name": "u"}]}
        with ExitStack() as failing:
            if wishes:
                failing.enter_context(pytest.raises(Failed, match="NotFound"))
            assert (await wire.initialize({"open": "register", **wishes}, **params))["workspaces"] == []
        await wire.close()
    assert (daemon.config / "config.json").read_bytes() == before


async def test_a_token_for_one_workspace_reaches_that_one_only(
    daemon: Daemon, owner: Wire, made: Any, connect: Connect
) -> None:
    session = (await owner.call("sessions/create", {"value": {"name": "private"}}))["item"]["id"]
    token = await made("read", "write", workspaces=[str(daemon.base / WORK)])
    wire = await daemon.dial("ws", token=token)
    folders = [{"uri": daemon.base.as_uri(), "name": "all"}]
    welcome = await wire.initialize(workspaceFolders=folders)
    assert [one["id"] for one in welcome["workspaces"]] == [WORK]
    assert (await wire.call("sessions/create", {"value": {"name": "w"}}))["item"]
    page = await wire.call("workspaces/list")
    assert ([item["id"] for item in page["items"]], page["total"]) == ([WORK], 1)
    assert (await wire.call("workspaces/get", {"id": WORK}))["item"]["id"] == WORK
    for name in (HOME, str(daemon.base / HOME), "nothing-at-all"):
        for method, params in (
            ("sessions/list", {"workspace": name}),
            ("sessions/get", {"workspace": name, "id": session}),
            ("sessions/update", {"workspace": name, "id": session, "patch": {"set": {"name": "mine"}}}),
            ("messages/list", {"workspace": name, "session": session}),
            ("events/subscribe", {"workspace": name}),
            ("workspaces/get", {"id": name}),
            ("workspaces/update", {"id": name, "patch": {"set": {"name": "mine"}}}),
        ):
            assert (await refused(wire, method, params))[0] == "NotFound", method
    for method, params in (
        ("events/subscribe", {}),
        ("events/read", {"since": {"epoch": "e", "revision": 0}}),
        ("issues/list", {}),
        ("workspaces/create", {"value": {"name": "another"}}),
        ("workspaces/delete", {"id": WORK}),
        ("tokens/create", {"rights": ["read"]}),
        ("daemon/stop", {}),
    ):
        assert (await refused(wire, method, params))[0] == "Forbidden", method
    status = await wire.call("daemon/status")
    assert [one["id"] for one in status["workspaces"]] == [WORK]
    assert not {"clients", "environment", "configDir"} & status.keys()
    await wire.call("events/subscribe", {"workspace": WORK, "topics": "*"})
    await owner.call("sessions/update", {"id": session, "patch": {"set": {"name": "still private"}}})
    await wire.call("daemon/sync")
    assert "private" not in json.dumps(wire.received)
    other = await daemon.dial("tcp", token=token)
    with pytest.raises(Failed, match="NotFound"):
        await other.initialize({"workspaces": [{"id": HOME}]})
    await other.close()


async def test_a_name_of_several_others_is_no_name_for_a_token_of_one(make_daemon: Callable[..., Daemon]) -> None:
    daemon = make_daemon()
    roots = {id: daemon.base / id / "notes" for id in ("one", "two")} | {"mine": daemon.base / "mine"}
    for root in roots.values():
        root.mkdir(parents=True)
    daemon.register(**roots)
    daemon.start("--tcp", "127.0.0.1:0")
    owner = await daemon.connect()
    token = (await owner.call("tokens/create", {"rights": ["read"], "workspaces": ["mine"]}))["secret"]
    wire = await daemon.dial("tcp", token=token)
    with pytest.raises(Failed, match="NotFound"):
        await wire.initialize({"workspaces": [{"id": "notes"}]})


async def test_nobody_gives_away_more_than_they_have(daemon: Daemon, owner: Wire, made: Any) -> None:
    wire = await daemon.dial("tcp", token=await made("admin", "read"))
    await wire.initialize()
    assert await refused(wire, "tokens/create", {"rights": ["read", "secrets"]}) == ("Forbidden", "secrets")
    for params, member in (
        ({"rights": []}, "rights"),
        ({"rights": ["everything"]}, "rights[0]"),
        ({"rights": ["read"], "workspaces": []}, "workspaces"),
        ({"rights": ["read", "admin"], "workspaces": [HOME]}, "rights"),
    ):
        with pytest.raises(Failed) as failed:
            await owner.call("tokens/create", params)
        assert member.partition("[")[0] in failed.value.error["data"]["issues"][0]["path"]
    assert (await refused(owner, "tokens/create", {"rights": ["read"], "workspaces": ["nowhere"]}))[0] == "NotFound"
    await wire.close()


async def test_no_workspace_is_made_of_the_folder_where_tokens_lie(daemon: Daemon, owner: Wire) -> None:
    link = daemon.base / "link"
    link.symlink_to(daemon.config)
    for path in (daemon.config, daemon.base, link, daemon.config / "craftd", daemon.config / "craftd" / "new"):
        for params in ({"adopt": True}, {"dryRun": True}):
            assert (await refused(owner, "workspaces/create", {"value": {"path": str(path)}, **params}))[
                0
            ] == "Forbidden"
    wire = await daemon.dial()
    folder = {"workspaceFolders": [{"uri": daemon.config.as_uri(), "name": "c"}]}
    with pytest.raises(Failed, match="Forbidden"):
        await wire.initialize({"open": "register"}, **folder)
    await wire.close()


@pytest.mark.parametrize("way", ["tcp", "ws"])
async def test_revoking_a_token_ends_its_connections_with_the_reason_and_no_other(
    daemon: Daemon, owner: Wire, made: Any, way: str
) -> None:
    token, other_token = await made("read", "write"), await made("read")
    wire, other = await daemon.dial(way, token=token), await daemon.dial(way, token=other_token)
    for one in (wire, other):
        await one.initialize({"workspaces": [{"id": HOME}]})
        await one.call("events/subscribe", {})
    position = await wire.call("daemon/sync", {"workspace": HOME})
    since = {name: position[name] for name in ("epoch", "revision")}
    waiting = wire.ask("events/read", {"workspace": HOME, "since": since, "waitMs": 60_000})
    await wire.call("daemon/sync", {"workspace": HOME})
    id = (await owner.call("tokens/list"))["tokens"][-2]["id"]
    await owner.call("tokens/revoke", {"id": id})
    with pytest.raises(Failed, match="Cancelled"):
        await wire.answer(waiting)
    end = await wire.closed()
    assert end.get("code") == (4401 if way == "ws" else None)
    (said,) = [message["error"] for message in wire.received if message.get("id", 0) is None]
    assert said["message"] == "the token was revoked"
    with pytest.raises(Failed, match="Unauthenticated"):
        await (await daemon.dial("tcp", token=token)).initialize()
    await other.call("daemon/sync")
    await other.close()


async def test_who_revokes_its_own_token_is_answered_first(daemon: Daemon, made: Any) -> None:
    wire = await daemon.dial("ws", token=await made("admin"))
    await wire.initialize()
    (id,) = [one["id"] for one in (await wire.call("tokens/list"))["tokens"] if one["rights"] == ["admin"]]
    assert await wire.call("tokens/revoke", {"id": id}) is None
    assert (await wire.closed())["code"] == 4401


async def test_who_cancels_the_revocation_of_its_own_token_is_gone_too(daemon: Daemon, owner: Wire, made: Any) -> None:
    wire = await daemon.dial("ws", token=await made("admin"))
    await wire.initialize()
    (id,) = [one["id"] for one in (await wire.call("tokens/list"))["tokens"] if one["rights"] == ["admin"]]
    before = [wire.ask("tokens/create", {"rights": ["admin"], "name": "before"}) for _ in range(20)]
    revoking = wire.ask("tokens/revoke", {"id": id})
    await wire.answer(before[0])  # the revocation has begun, and waits for the others
    wire.send("$/cancelRequest", {"id": revoking})
    assert (await wire.closed())["code"] == 4401
    for one in (await owner.call("tokens/list"))["tokens"]:
        if one["name"] == "before":
            await owner.call("tokens/revoke", {"id": one["id"]})


async def test_a_key_belongs_to_its_token(daemon: Daemon, made: Any) -> None:
    key = "one-key-for-two-strangers"
    made_by = []
    for token in (await made("read", "write"), await made("read", "write")):
        wire = await daemon.dial("tcp", token=token)
        await wire.initialize({"workspaces": [{"id": HOME}]})
        for _ in range(2):
            created = await wire.call("sessions/create", {"key": key, "value": {"name": "k"}})
            made_by.append(created["item"]["id"])
        await wire.close()
    assert made_by[0] == made_by[1] != made_by[2] == made_by[3]


async def test_a_slow_websocket_lapses_recovers_and_keeps_nobody_waiting(
    daemon: Daemon, owner: Wire, connect: Connect
) -> None:
    slow = await daemon.dial("ws", reading=False)
    slow.send(
        "initialize", {"capabilities": {}, "initializationOptions": {"craft": {"workspaces": [{"id": WORK}]}}}, id="i"
    )
    slow.send("events/subscribe", {"workspace": WORK, "topics": "*"}, id="s")
    writer = await connect(daemon, WORK, over="tcp")
    session = (await writer.call("sessions/create", {"value": {"name": "long"}}))["item"]["id"]
    text = "x" * 200_000
    for number in range(120):  # 24 MB: beyond the queue of 8 MiB and what the system takes
        messages = [{"id": f"m{number}", "type": "user", "content": text, "timestamp": 1783000000000 + number}]
        appended = await writer.call("messages/append", {"session": session, "messages": messages})
        assert await owner.call("sessions/list", {"limit": 1})
    slow.start_reading()
    lapsed = await slow.notified("events/didLapse")
    assert (lapsed["workspace"], lapsed["reason"]) == (WORK, "overflow")
    heard = [event["revision"] for event in slow.notifications("messages/didAppend")]
    assert heard == sorted(heard)
    assert len(heard) < 120
    assert lapsed["revision"] <= appended["revision"]
    listed = await slow.call("messages/list", {"session": session, "direction": "backward", "limit": 1})
    assert listed["items"][0]["id"] == "m119"
    await writer.call("sessions/update", {"id": session, "patch": {"set": {"name": "longer"}}})
    await slow.wait(lambda m: m.get("params", {}).get("patch", {}).get("set", {}).get("name") == "longer")


async def test_http_on_every_port_runs_nothing(daemon: Daemon, owner: Wire) -> None:
    before = await owner.call("daemon/sync")
    body = b'{"jsonrpc":"2.0","id":1,"method":"daemon/stop"}'
    request = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b"
    for way in ("tcp", "ws"):
        host, _, port = daemon.url(way).partition("://")[2].rpartition(":")
        for sent in (request % (len(body), body), request % (len(encode(body)), encode(body))):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(sent)
            answer = await asyncio.wait_for(reader.read(), PATIENCE)
            assert answer.startswith(b"HTTP/1.1 4")
            writer.close()
    assert await owner.call("daemon/sync") == before


def craftd(daemon: Daemon, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CRAFTD, *arguments], env=daemon.environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


async def test_the_command_line_makes_lists_and_revokes_tokens(daemon: Daemon) -> None:
    printed = await asyncio.to_thread(
        craftd, daemon, "token", "create", "--name", "my board", "--read", "-w", str(daemon.base / HOME)
    )
    secret = printed.stdout.strip()
    wire = await daemon.dial("ws", token=secret)
    assert (await wire.initialize())["rights"] == ["read"]
    listed = await asyncio.to_thread(craftd, daemon, "token", "list", "--json")
    (mine,) = [one for one in map(json.loads, listed.stdout.splitlines()) if one["name"] == "my board"]
    assert mine["workspaces"] == [HOME]
    plain = await asyncio.to_thread(craftd, daemon, "token", "list")
    assert secret not in listed.stdout + plain.stdout + daemon.log
    revoked = await asyncio.to_thread(craftd, daemon, "token", "revoke", mine["id"])
    assert (revoked.returncode, revoked.stdout) == (0, f"revoked {mine['id']}\n")
    assert (await wire.closed())["code"] == 4401
    again = await asyncio.to_thread(craftd, daemon, "token", "revoke", mine["id"])
    assert again.returncode == 1
    assert "NotFound (1001)" in again.stderr
    nothing = await asyncio.to_thread(craftd, daemon, "token", "create")
    assert nothing.returncode == 2
    assert "--read, --write, --execute, --secrets, --admin" in nothing.stderr


async def test_a_daemon_on_the_network_is_not_replaced_by_one_that_is_not(daemon: Daemon) -> None:
    printed = await asyncio.to_thread(craftd, daemon, "restart")
    assert printed.returncode == 1
    assert daemon.url("tcp").removeprefix("tcp://") in printed.stderr
    wire = await daemon.dial()
    with pytest.raises(Failed, match="InvalidState"):
        await wire.call("daemon/stop", {"reason": "upgrade"})
    await wire.close()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--tcp", "0.0.0.0:0"), 1, "--tls-cert and --tls-key, or say --allow-insecure-bind"),
        (("--ws", "[::]:0"), 1, "--tls-cert and --tls-key, or say --allow-insecure-bind"),
        (("--tcp", "127.0.0.1"), 2, "is not HOST:PORT"),
        (("--tcp", "::1:80"), 2, "is not HOST:PORT"),
        (("--tcp", "127.0.0.1:99999"), 2, "is not HOST:PORT"),
        (("--ws", "127.0.0.1:0", "--allow-origin", "null"), 2, "is no origin"),
        (("--ws", "127.0.0.1:0", "--allow-origin", "*"), 2, "is no origin"),
        (("--ws", "127.0.0.1:0", "--tls-cert", "x"), 2, "belong together"),
        (("--ws", "127.0.0.1:0", "--tls-cert", "/x", "--tls-key", "/x"), 1, "--tls-cert /x, --tls-key /x: "),
        (("--allow-origin", "http://a.example"), 2, "without --tcp or --ws"),
        (("--ws", "no-such-host.invalid:0"), 1, "--ws no-such-host.invalid:0: "),
    ],
)
def test_a_daemon_that_may_not_listen_says_why_and_does_not_start(
    make_daemon: Callable[..., Daemon], arguments: tuple[str, ...], code: int, says: str
) -> None:
    daemon = make_daemon()
    ended = craftd(daemon, "serve", *arguments)
    assert ended.returncode == code, ended.stderr
    assert says in " ".join(ended.stderr.split())
    assert not Path(daemon.places.card).exists()


def test_a_weak_local_token_is_a_reason_not_to_start(make_daemon: Callable[..., Daemon]) -> None:
    daemon = make_daemon()
    Path(daemon.places.folder).mkdir()
    Path(daemon.places.token).write_text("password\n")
    Path(daemon.places.token).chmod(0o600)
    ended = craftd(daemon, "serve", "--ws", "127.0.0.1:0")
    assert ended.returncode == 1
    assert "too easy to guess" in ended.stderr
    assert "password" not in ended.stderr + daemon.log


async def test_without_a_port_there_is_no_token(make_daemon: Callable[..., Daemon]) -> None:
    daemon = make_daemon()
    daemon.start()
    wire = await daemon.connect()
    assert [one["kind"] for one in (await wire.call("daemon/status"))["listeners"]] == ["unix"]
    assert not Path(daemon.places.token).exists()


async def test_the_daemons_end_is_told_on_every_way(make_daemon: Callable[..., Daemon]) -> None:
    daemon = make_daemon()
    daemon.start("--tcp", "127.0.0.1:0", "--ws", "127.0.0.1:0", "--max-connections", "7")
    wires = [await daemon.connect(over=way) for way in WAYS]
    for wire in wires:
        await wire.call("events/subscribe")
    await wires[0].call("daemon/stop")
    for wire in wires:
        assert (await wire.notified("daemon/willStop"))["reason"] == "stop"
        end = await wire.closed()
        assert end.get("code", 1001) == 1001
    assert daemon.process is not None
    assert await asyncio.to_thread(daemon.process.wait, PATIENCE) == 0
    daemon.process = None
    assert not Path(daemon.places.card).exists()
