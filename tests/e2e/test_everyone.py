"""A page in a browser, a Node script, a Python script, an editor and `craftd listen` work on one session at once."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import CRAFTD, Daemon
from tests.wire import PATIENCE

HERE = Path(__file__).parent / "everyone"
CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
CHROMIUM = shutil.which("chromium")
OWN = 30
"""Messages that each of the four writes."""
WRITERS = ("python", "node", "page", "neovim")

missing = [
    name
    for name, there in {
        "Chromium": CHROMIUM,
        "Neovim": shutil.which("nvim"),
        "Node": shutil.which("node"),
        "the built TypeScript client": (CLIENT / "dist").exists(),
    }.items()
    if not there
]


@pytest.mark.skipif(bool(missing), reason=f"without {', '.join(missing)}")
async def test_everyone_writes_at_once_and_ends_with_the_same(make_daemon: Callable[..., Daemon]) -> None:
    daemon = make_daemon()
    root = daemon.base / "notes"
    (root / "sessions").mkdir(parents=True)
    daemon.register(notes=root)
    port = free_port()
    daemon.start("--ws", "127.0.0.1:0", "--allow-origin", f"http://127.0.0.1:{port}")
    wire = await daemon.connect("notes")
    session = (await wire.call("sessions/create", {"value": {"name": "Everyone"}}))["item"]["id"]

    environment = {
        **daemon.environment,
        "CLIENT": str(CLIENT),
        "CHROMIUM": CHROMIUM or "",
        "SESSION": session,
        "OWN": str(OWN),
        "ROOT": str(root),
        "COMMAND": json.dumps([*CRAFTD, "stdio"]),
    }
    everybody = str(OWN * len(WRITERS))
    numbers = (str(OWN), everybody)
    commands: dict[str, tuple[str, ...]] = {
        "python": (sys.executable, str(HERE / "script.py"), session, *numbers),
        "node": ("node", str(HERE / "script.mjs"), session, *numbers),
        "page": ("node", str(HERE / "page.mjs"), str(port), daemon.url("ws"), daemon.token, *numbers),
        "neovim": ("nvim", "--headless", "-u", "NONE", "-i", "NONE", "--cmd", f"luafile {HERE / 'editor.lua'}"),
        "listen": (*CRAFTD, "listen", "-w", "notes"),
    }
    programs: dict[str, Process] = {}
    try:
        async with asyncio.timeout(3 * PATIENCE):
            for name, command in commands.items():
                programs[name] = await asyncio.create_subprocess_exec(
                    *command, env=environment, stdout=PIPE, limit=1 << 24
                )
            for name in WRITERS:
                assert await line_of(programs[name]) == "ready", name
            first = asyncio.create_task(line_of(programs["listen"]))
            for n in count():  # it says nothing before something happens
                await wire.call("sessions/update", {"id": session, "patch": {"set": {"name": f"Ready {n}"}}})
                if (await asyncio.wait([first], timeout=0.1))[0]:
                    break
            await wire.call("sessions/update", {"id": session, "patch": {"set": {"name": "Go"}}})
            saw = {name: json.loads(await line_of(programs[name])) for name in ("python", "node", "page")}
            saw["neovim"] = [(json.loads(await line_of(programs["neovim"])))["content"] for _ in range(int(everybody))]
            saw["listen"] = await listened(programs["listen"], int(everybody))
    finally:
        for program in programs.values():
            if program.returncode is None:
                program.kill()
            await program.wait()

    lines = (root / "sessions" / session / "session.jsonl").read_text().split("\n")[1:-1]
    written = [json.loads(line)["content"] for line in lines]
    assert Counter(content.partition(" ")[0] for content in written) == dict.fromkeys(WRITERS, OWN)
    for writer in WRITERS:
        own = [content for content in written if content.startswith(writer)]
        assert own == [f"{writer} {n}" for n in range(OWN)]
    for name, seen in saw.items():
        assert seen == written, name
    item = (await wire.call("sessions/get", {"id": session}))["item"]["value"]
    assert (item["name"], item["messageCount"]) == ("Go", len(written))
    await wire.close()


async def line_of(program: Process) -> str:
    assert program.stdout is not None
    line = await program.stdout.readline()
    assert line, "it ended"
    text = line.decode().strip()
    return str(json.loads(text)) if text.startswith('"') else text


async def listened(program: Process, number: int) -> list[str]:
    """Contents of the first messages that were told."""
    found: list[str] = []
    while len(found) < number:
        event: dict[str, Any] = json.loads(await line_of(program))
        if event["method"] == "messages/didAppend":
            found += [message["content"] for message in event["params"]["messages"]]
    return found


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port: int = chosen.getsockname()[1]
        return port
