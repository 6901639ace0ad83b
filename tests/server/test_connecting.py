"""Connecting to what does not answer, and without the library."""

from __future__ import annotations

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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "SECONDS", 0.05)
    outcome = await connecting.connect(program("-c", "import time; time.sleep(600)"), None, tmp_path, print)
    assert (outcome.status, outcome.message) == ("failed", "the server did not answer in 0 seconds")


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
