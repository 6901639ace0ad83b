"""Connecting to what does not answer, and without the library."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import Unsupported
from craftd.server import connecting

HANGS = str(Path(__file__).parents[1] / "mcp_server.py")


def program(*args: str, **env: str) -> dict[str, Any]:
    return {"type": "mcp", "mcp": {"transport": "stdio", "command": sys.executable, "args": [*args], "env": env}}


async def test_a_server_that_shakes_no_hands_is_ended_when_its_time_is_up(
    tmp_path: Path,
) -> None:
    outcome = await connecting.connect(program("-c", "import time; time.sleep(600)"), None, tmp_path, print, 0.05)
    assert (outcome.status, outcome.message) == ("failed", "there was no answer in 0.05 seconds")
    assert outcome.late


TALKATIVE = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        server = {"name": "hush", "version": "1"}
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    elif asked["method"] == "tools/list":
        names = ["hush", *("n" * 9 for _ in range(1500))]
        answer = {"tools": [{"name": name, "description": "hush " * 900, "inputSchema": {}} for name in names]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""


async def test_what_a_server_lists_is_bounded_and_has_nothing_of_the_secret(tmp_path: Path) -> None:
    told: list[str] = []
    config = {**program("-c", TALKATIVE), "api": {}}
    outcome = await connecting.connect(config, "hush", tmp_path, told.append)
    assert outcome.status == "connected"
    assert (outcome.found["server"]["name"], outcome.found["tools"][0]["name"], told[0]) == (
        "***",
        "***",
        "*** answers",
    )
    assert len(outcome.found["tools"]) == 1000
    assert {len(tool["description"]) for tool in outcome.found["tools"]} <= set(range(4097))
    assert "hush" not in str(outcome)


async def test_how_a_program_ended_is_said(tmp_path: Path) -> None:
    outcome = await connecting.connect(program("-c", "raise SystemExit(3)"), None, tmp_path, print)
    assert (outcome.status, outcome.message) == ("failed", "the program ended by itself (3)")
    (tmp_path / "text").touch()
    config = {"type": "mcp", "mcp": {"transport": "stdio", "command": str(tmp_path / "text")}}
    outcome = await connecting.connect(config, None, tmp_path, print)
    assert outcome.message == "its command cannot be run: Permission denied"


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("status", [302, 404, 500])
async def test_what_a_server_answers_is_said_without_its_address(transport: str, status: int, tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} No\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/?key=hush"
        config = {"type": "mcp", "mcp": {"transport": transport, "url": url, "authType": "none"}}
        outcome = await connecting.connect(config, None, tmp_path, print)
    assert (outcome.status, outcome.message) == ("failed", f"the server answers {status}")


async def test_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    config = {"type": "local", "local": {"path": "pipe"}}
    assert (await connecting.connect(config, None, tmp_path, print)).status == "connected"


async def test_what_a_server_says_of_the_secret_is_not_repeated(tmp_path: Path) -> None:
    answer = '{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"no: hush"}}'
    outcome = await connecting.connect(program("-c", f"input(); print('{answer}')"), "hush", tmp_path, print)
    assert (outcome.status, outcome.message) == ("failed", "no: ***")


@pytest.mark.parametrize(("kind", "library"), [("mcp", "mcp"), ("api", "httpx")])
async def test_without_the_library_it_is_said_how_to_install_it(
    kind: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    config = {**program("-c", ""), "type": kind, "api": {"baseUrl": "http://127.0.0.1:9", "authType": "none"}}
    with pytest.raises(Unsupported, match=r"pip install 'craftd\[mcp\]'"):
        await connecting.connect(config, None, tmp_path, print)


async def test_a_file_that_may_not_be_read_has_failed(tmp_path: Path) -> None:
    config = {"type": "local", "local": {"path": "file"}}
    (tmp_path / "file").write_bytes(b"tide")
    assert (await connecting.connect(config, None, tmp_path, print)).found == {"bytes": 4}
    os.remove(tmp_path / "file")
    (tmp_path / "file").symlink_to("file")
    assert (await connecting.connect(config, None, tmp_path, print)).status == "failed"
