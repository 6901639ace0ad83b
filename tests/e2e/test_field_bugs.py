"""Faults that others met, made again here (tests/field_bugs/README.md says what is right)."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from craftd.protocol import rendezvous
from craftd.protocol.framing import encode
from tests.daemon import CRAFTD, Daemon
from tests.wire import PATIENCE, Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
CASES = Path(__file__).parents[1] / "field_bugs"
WORKSPACE = "ws_0a1b2c3d"
FRAMES = json.loads((CASES / "O17_O18_O19" / "frames.json").read_bytes())


def set_up(daemon: Daemon, *cases: str) -> Path:
    """The base workspace and configuration with what *cases* lay over it, as the README says; the workspace folder."""
    workspace = daemon.base / "ws"
    shutil.copytree(CASES / "_base" / "cfg", daemon.config, dirs_exist_ok=True)
    for source in (CASES / "_base" / "ws", *(CASES / case / "ws" for case in cases)):
        shutil.copytree(source, workspace, dirs_exist_ok=True)
    for path in (*workspace.rglob("*.json*"), *daemon.config.glob("*.json")):
        path.write_bytes(path.read_bytes().replace(b"@WS@", str(workspace).encode()))
    return workspace


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    set_up(daemon, "O01", "O02", "O03", "O04", "O05", "O07")
    daemon.start()
    return daemon


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, WORKSPACE)


def transcript(daemon: Daemon, session: str) -> Path:
    return daemon.base / "ws" / "sessions" / session / "session.jsonl"


async def contents(client: Wire, session: str) -> list[Any]:
    """What the readable messages say."""
    items = (await client.call("messages/list", {"session": session}))["items"]
    return [item["value"]["content"] for item in items if item["value"]]


async def codes(client: Wire, session: str) -> list[str]:
    """Kinds of damage that the list tells."""
    items = (await client.call("sessions/list", {"filter": {"id": session}}))["items"]
    return [damage["code"] for damage in items[0].get("info", {}).get("damage", [])]


async def rename(client: Wire, session: str, name: str = "Renamed") -> Any:
    return await client.call("sessions/update", {"id": session, "patch": {"set": {"name": name}}})


async def test_o01_only_a_line_feed_ends_a_record(daemon: Daemon, client: Wire, connect: Connect) -> None:
    session = "260102-amber-kite"
    pasted = "pasted\u2028from a\u2029slide deck\u0085and a terminal here"
    assert await codes(client, session) == []
    assert await contents(client, session) == ["before", pasted, "after"]
    await rename(client, session)
    assert await contents(client, session) == ["before", pasted, "after"]
    data = transcript(daemon, session).read_bytes()
    assert data.count(b"\n") == 4
    assert data.endswith(b"\n")
    daemon.restart()
    again = await connect(daemon, WORKSPACE)
    assert await contents(again, session) == ["before", pasted, "after"]
    assert await codes(again, session) == []


async def test_o02_runs_of_nul_bytes_hide_nothing(daemon: Daemon, client: Wire) -> None:
    session = "260102-brisk-otter"
    assert set(await codes(client, session)) == {"nul-bytes", "count-mismatch"}
    assert await contents(client, session) == ["one", "two", "three"]
    before = transcript(daemon, session).read_bytes()
    await rename(client, session)
    after = transcript(daemon, session).read_bytes()
    assert b"\0" not in after
    good = [line.strip(b"\0") for line in before.split(b"\n") if line.strip(b"\0")]
    assert after.split(b"\n")[1:] == [*good[1:], b""]
    assert await contents(client, session) == ["one", "two", "three"]
    assert await codes(client, session) == []


async def test_o03_nothing_is_glued_to_a_record_that_was_cut_off(
    daemon: Daemon, client: Wire, connect: Connect
) -> None:
    session = "260102-cosy-ferry"
    assert "torn-tail" in await codes(client, session)
    assert await contents(client, session) == ["kept one", "kept two"]
    torn = transcript(daemon, session).read_bytes().split(b"\n")[-1]
    await client.call("messages/append", {"session": session, "messages": [{"type": "user", "content": "fresh"}]})
    assert await contents(client, session) == ["kept one", "kept two", "fresh"]
    daemon.restart()
    again = await connect(daemon, WORKSPACE)
    assert await contents(again, session) == ["kept one", "kept two", "fresh"]
    *lines, end = transcript(daemon, session).read_bytes().split(b"\n")
    assert end == b""
    assert torn in lines
    for line in lines:
        if line != torn:
            json.loads(line)


DAMAGED = {
    "260102-dusty-plum": ["first question about the plum budget", "an answer"],
    "260102-array-head": ["array head"],
    "260102-empty-file": [],
}


async def test_o04_a_bad_first_line_hides_no_session_and_nobody_writes_over_it(
    daemon: Daemon, client: Wire, connect: Connect
) -> None:
    before = {session: transcript(daemon, session).read_bytes() for session in DAMAGED}
    for restarted in (False, True):
        if restarted:
            daemon.restart()
            client = await connect(daemon, WORKSPACE)
        listed = {item["id"]: item for item in (await client.call("sessions/list"))["items"]}
        assert all(listed)
        assert "info" not in listed["260102-early-fox"]
        assert (await contents(client, "260102-early-fox"))[0] == "healthy neighbour"
        for session, said in DAMAGED.items():
            [damage] = listed[session]["info"]["damage"]
            assert damage["code"] in ("header-unreadable", "header-missing")
            assert await contents(client, session) == said
            for method, params in (
                ("sessions/update", {"id": session, "patch": {"set": {"name": "x"}}}),
                ("messages/append", {"session": session, "messages": [{"type": "user", "content": "x"}]}),
            ):
                with pytest.raises(Failed) as failed:
                    await client.call(method, params)
                assert failed.value.name == "Corrupt"
            assert transcript(daemon, session).read_bytes() == before[session]
    await client.call("sessions/delete", {"id": "260102-empty-file"})
    assert not transcript(daemon, "260102-empty-file").parent.exists()


async def test_o05_a_change_of_metadata_leaves_every_message_line_as_it_is(
    daemon: Daemon, client: Wire, connect: Connect
) -> None:
    session = "260102-fuzzy-lamp"
    before = transcript(daemon, session).read_bytes()
    for step in ("read", "label", "restart"):
        if step == "label":
            await client.call("sessions/update", {"id": session, "patch": {"add": {"/labels": ["priority::3"]}}})
        elif step == "restart":
            daemon.restart()
            client = await connect(daemon, WORKSPACE)
        [item, _] = (await client.call("messages/list", {"session": session}))["items"]
        over = item["value"]["toolInput"]
        assert over == {"row": 9007199254740993, "ratio": 1, "over": None, "exp": 100000, "k": 2}
        assert not any(word in body for body in client.bodies for word in (b"NaN", b"Infinity"))
        after = transcript(daemon, session).read_bytes()
        assert after.split(b"\n")[1:] == before.split(b"\n")[1:]
        assert b"NaN" not in after
        assert b"Infinity" not in after
    assert json.loads(after.split(b"\n")[0])["labels"] == ["bug", "priority::3"]


async def test_o07_tokens_are_expanded_and_other_paths_stay_as_they_are(
    daemon: Daemon, client: Wire, connect: Connect
) -> None:
    session = "260102-glad-river"
    folder = str(transcript(daemon, session).parent)
    before = transcript(daemon, session).read_bytes()
    for step in ("read", "rename", "restart"):
        if step == "rename":
            await rename(client, session)
        elif step == "restart":
            daemon.restart()
            client = await connect(daemon, WORKSPACE)
        [first, second] = (await client.call("messages/list", {"session": session}))["items"]
        assert first["value"]["content"] == f"open {folder}/plans/first.md"
        assert first["value"]["attachments"][0]["storedPath"] == f"{folder}/attachments/first.md"
        assert second["value"]["toolInput"] == {
            "command": "ls /srv/data.v2/harbour/logs && cat /srv/data.v2/harbour/readme"
        }
        assert second["value"]["toolResult"] == "/srv/data.v2/harbour/logs/2026-01-01.log"
        assert transcript(daemon, session).read_bytes().split(b"\n")[1:] == before.split(b"\n")[1:]
    # A path of the session that a client sends becomes the token on disk, and a token that it sends stays one.
    sent = {"id": "o07", "type": "user", "content": f"see {folder}/plans/first.md, not {{{{SESSION_PATH}}}}/x"}
    await client.call("messages/append", {"session": session, "messages": [sent]})
    [last] = (await client.call("messages/list", {"session": session, "direction": "backward", "limit": 1}))["items"]
    assert last["value"]["content"] == sent["content"]
    assert folder.encode() not in transcript(daemon, session).read_bytes().split(b"\n")[-2]
    assert not [path for path in daemon.base.rglob("*") if "{{" in path.name]


# Messages of JSON-RPC


async def sent(client: Wire, frame: dict[str, Any], **replaced: Any) -> dict[str, Any]:
    """The answer to a recorded frame, sent as it is but for what is *replaced*."""
    id = client.ask("daemon/status")  # so that its id is not used otherwise
    client.raw(encode(json.dumps({**frame, "id": f"frame-{id}", **replaced}).encode()))
    return await client.wait(lambda message: message.get("id") == f"frame-{id}")


@pytest.mark.parametrize("frame", ["no_params_key", "null_params", "extra_top_level_key"])
async def test_o17_a_request_without_params_is_answered(client: Wire, frame: str) -> None:
    answer = await sent(client, FRAMES[frame], method="sessions/list")
    assert answer["result"]["items"]


async def test_o17_an_unknown_method_without_params_is_unknown(client: Wire) -> None:
    assert (await sent(client, FRAMES["unknown_method_no_params"]))["error"]["code"] == -32601


async def test_o17_notifications_without_params_trouble_nobody(client: Wire) -> None:
    for method in ("initialized", "no/such", "$/setTrace", "workspace/didChangeConfiguration", "sessions/view"):
        client.send(method)
        client.raw(encode(json.dumps({"jsonrpc": "2.0", "method": method, "params": None}).encode()))
    await client.call("daemon/status")
    assert not client.notifications("window/showMessage")
    assert not [message for message in client.received if "error" in message]


async def test_o18_wrong_params_are_answered_once_with_what_is_wrong(client: Wire, daemon: Daemon) -> None:
    answers = [
        await sent(client, FRAMES["wrong_type"], method="sessions/get", params={"id": 12}),
        await sent(client, FRAMES["string_params"], method="sessions/get"),
        await sent(client, {"jsonrpc": "2.0", "method": "textDocument/hover", "params": {"bad": 1}}),
    ]
    named = ["id", "params", "textDocument"]
    for answer, name in zip(answers, named, strict=True):
        assert answer["error"]["code"] == -32602
        assert name in answer["error"]["message"]
        text = json.dumps(answer)
        for leak in ("Traceback", "File ", ".py", str(daemon.base), str(Path(__file__).parents[2])):
            assert leak not in text
        assert client.order.count(answer["id"]) == 1
    assert not client.notifications("window/showMessage")


NESTED = FRAMES["nested_rpc"]["params"]["message"]


async def test_o19_a_message_that_holds_a_message_comes_back_whole(
    daemon: Daemon, client: Wire, connect: Connect
) -> None:
    session = "260102-early-fox"
    watcher = await connect(daemon, WORKSPACE)
    await watcher.call("events/subscribe", {"workspace": WORKSPACE})
    by_command = {**NESTED, "id": "m10"}
    await client.call("messages/append", {"session": session, "messages": [NESTED]})
    params = {"session": session, "messages": [by_command]}
    await client.call("workspace/executeCommand", {"command": "craft.call", "arguments": ["messages/append", params]})

    await watcher.notified("messages/didAppend", 2)
    told = [params["messages"][0] for params in watcher.notifications("messages/didAppend")]
    lines = [json.loads(line) for line in transcript(daemon, session).read_bytes().split(b"\n")[-3:-1]]
    daemon.restart()
    again = await connect(daemon, WORKSPACE)
    for source in (client, again):
        if source is client:
            read = told
        else:
            read = [
                (await source.call("messages/get", {"session": session, "id": id}))["item"]["value"]
                for id in ("m9", "m10")
            ]
        for value, line, given in zip(read, lines, (NESTED, by_command), strict=True):
            assert value == line
            assert {name: value[name] for name in given} == given
            assert list(value["toolInput"]["params"]) == ["X-Api-Key", "class", "1st", "type_name", "count"]


async def test_o19_a_message_inside_a_reply_to_our_own_question_troubles_nobody(daemon: Daemon) -> None:
    client = await daemon.dial()
    capabilities = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
    await client.initialize({"workspaces": [{"id": WORKSPACE}]}, capabilities=capabilities)
    question = await client.wait(lambda message: message.get("method") == "client/registerCapability")
    client.raw(encode(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": NESTED["toolInput"]}).encode()))
    client.raw(encode(json.dumps({"jsonrpc": "2.0", "id": question["id"], "error": NESTED["toolInput"]}).encode()))
    assert (await client.call("daemon/status"))["pid"] > 0
    await client.close()


# Several clients, and clients that die


async def test_o20_two_clients_never_get_each_others_answers(make_daemon: Callable[..., Daemon]) -> None:
    daemon = make_daemon()
    set_up(daemon, "O01", "O03")
    daemon.start()
    a = await daemon.connect(WORKSPACE)
    position = await a.call("events/subscribe", {"workspace": WORKSPACE})
    since = {"epoch": position["epoch"], "revision": position["revision"]}
    slow = a.ask("events/read", {"workspace": WORKSPACE, "since": since, "topics": ["labels"], "waitMs": 60_000})

    b = await daemon.connect(WORKSPACE)
    await b.call("events/subscribe", {"workspace": WORKSPACE})
    for id in range(100, 110):  # the same ids at the same time
        for client, session in ((a, "260102-amber-kite"), (b, "260102-cosy-ferry")):
            patch = {"set": {"name": f"{session} {id}"}}
            client.send("sessions/update", {"id": session, "patch": patch, "fields": ["name"]}, id=id)
    for client, session in ((a, "260102-amber-kite"), (b, "260102-cosy-ferry")):
        for id in range(100, 110):
            answer = await client.answer(id)
            assert answer["item"]["id"] == session
            assert answer["item"]["value"]["name"] == f"{session} {id}"
            assert client.order.count(id) == 1
        await client.notified("sessions/didChange", 20)

    await b.close()
    probe = await daemon.dial()
    await probe.close()
    assert slow not in a.order
    await a.call("labels/create", {"value": {"name": "Later"}})
    assert [event["method"] for event in (await a.answer(slow))["events"]] == ["labels/didCreate"]
    c = await daemon.connect(WORKSPACE)
    assert (await c.call("sessions/list"))["total"] == 2
    assert [client["transport"] for client in (await c.call("daemon/status"))["clients"]] == ["unix", "unix"]
    await a.close()
    await c.close()


class Editor:
    """What an editor holds: `craftd stdio` with pipes."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.wire = Wire(process.stdout, process.stdin)
        self.wire.start_reading()

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


@pytest.fixture
async def edit() -> AsyncIterator[Callable[..., Awaitable[Editor]]]:
    """Starts `craftd stdio` as an editor does; what still runs is killed with the test."""
    editors: list[Editor] = []

    async def start(daemon: Daemon, *arguments: str) -> Editor:
        with (daemon.base / "stderr").open("ab") as errors:
            command = (*CRAFTD, "stdio", *arguments)
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=errors, env=daemon.environment
            )
        editors.append(Editor(process))
        return editors[-1]

    yield start
    for editor in editors:
        if editor.process.returncode is None:
            editor.process.kill()
            await editor.process.wait()
        await editor.wire.close()


def close_both_pipes(editor: Editor) -> None:
    transport: Any = editor.process._transport  # type: ignore[attr-defined]  # the one way to close the reading end
    for pipe in (0, 1):
        transport.get_pipe_transport(pipe).close()


def end_of_input(editor: Editor) -> None:
    editor.wire.writer.close()


def close_the_reading_end(editor: Editor) -> None:
    transport: Any = editor.process._transport  # type: ignore[attr-defined]
    transport.get_pipe_transport(1).close()
    # The next answer finds nobody who reads it.
    editor.wire.send("daemon/status", id="last")


def terminate(editor: Editor) -> None:
    editor.process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize("leave", [close_both_pipes, end_of_input, close_the_reading_end, terminate])
@pytest.mark.parametrize("through", ["bridge", "alone"])
async def test_o21_a_client_that_dies_leaves_its_work_done_and_nothing_running(
    make_daemon: Callable[..., Daemon],
    connect: Connect,
    edit: Callable[..., Awaitable[Editor]],
    through: str,
    leave: Callable[[Editor], None],
) -> None:
    daemon = make_daemon()
    set_up(daemon, "O01")
    if through == "bridge":
        daemon.start()
    editor = await edit(daemon, *(["--no-daemon"] if through == "alone" else []))
    await editor.wire.initialize({"workspaces": [{"id": WORKSPACE}]})
    position = (await editor.wire.call("events/subscribe", {"workspace": WORKSPACE}))["revision"]
    epoch = (await editor.wire.call("daemon/sync", {"workspace": WORKSPACE}))["epoch"]
    renamed = editor.wire.ask("sessions/update", {"id": "260102-amber-kite", "patch": {"set": {"name": "Last words"}}})
    since = {"epoch": epoch, "revision": position}
    for _ in range(3):
        editor.wire.ask("events/read", {"workspace": WORKSPACE, "since": since, "topics": ["labels"], "waitMs": 60_000})
    if leave is terminate:
        await editor.wire.answer(renamed)  # a signal may arrive before what was sent
    leave(editor)
    await editor.ended()

    if through == "bridge":
        other = await connect(daemon, WORKSPACE)
        name = (await other.call("sessions/get", {"id": "260102-amber-kite"}))["item"]["value"]["name"]
        assert name == "Last words"
        assert (await other.call("daemon/release"))["released"]
    else:
        assert not rendezvous.is_held(daemon.places)
    assert not (daemon.config / ".server.lock").exists()
    assert json.loads(transcript(daemon, "260102-amber-kite").read_bytes().split(b"\n")[0])["name"] == "Last words"
    logged = daemon.log + (daemon.base / "stderr").read_text()
    assert len(logged) < 10_000
    assert "Traceback" not in logged


EDITOR = """
import sys
from subprocess import PIPE, Popen
process = Popen([sys.executable, "-m", "craftd", "stdio", *sys.argv[2:]], stdin=PIPE, stdout=PIPE)
process.stdin.write(bytes.fromhex(sys.argv[1]))
process.stdin.flush()
assert process.stdout.read(14) == b"Content-Length"
print(process.pid, flush=True)
process.wait()
"""
"""An editor that says its process id and starts the language server; it ends when it is killed."""


@pytest.mark.parametrize("arguments", [(), ("--no-daemon",)])
async def test_o21_the_language_server_ends_with_the_editor(
    make_daemon: Callable[..., Daemon], arguments: tuple[str, ...]
) -> None:
    daemon = make_daemon()
    set_up(daemon)
    if not arguments:
        daemon.start()
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"processId": os.getpid(), "capabilities": {}},
    }
    frame = encode(json.dumps(hello).encode()).hex()
    editor = await asyncio.create_subprocess_exec(
        sys.executable, "-c", EDITOR, frame, *arguments, stdin=PIPE, stdout=PIPE, env=daemon.environment
    )
    assert editor.stdout is not None
    server = int(await editor.stdout.readline())
    watched = os.pidfd_open(server)
    editor.kill()
    await editor.wait()
    ended = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().add_reader(watched, ended.set_result, None)
    try:
        async with asyncio.timeout(PATIENCE):
            await ended
    finally:
        asyncio.get_running_loop().remove_reader(watched)
        os.close(watched)
    if arguments:
        assert not rendezvous.is_held(daemon.places)
    else:
        assert daemon.process is not None
        assert daemon.process.poll() is None  # the daemon stays
