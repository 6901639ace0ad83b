"""A real Neovim, attached through `craftd stdio`, and another client: each sees the other's changes."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.daemon import Daemon
from tests.wire import PATIENCE

SCRIPT = """
local out = assert(io.open(vim.env.SEEN, 'a'))
local function tell(what) out:write(vim.json.encode(what) .. '\\n') out:flush() end
local client
local handlers = {
  ['sessions/didCreate'] = function(_, params)
    tell({event = 'didCreate', name = params.item.value.name, kind = params.origin.kind})
    if params.item.value.name == 'From the script' then
      local value = {name = 'From Neovim'}
      vim.lsp.get_client_by_id(client).request('sessions/create', {value = value}, function(err, result)
        tell({answer = result and result.item.value.name or err})
      end)
    end
  end,
}
client = vim.lsp.start_client({
  name = 'craftd', cmd = vim.json.decode(vim.env.COMMAND), root_dir = vim.env.ROOT, handlers = handlers,
  on_init = function(c)
    c.request('daemon/status', {}, function(err, result) tell({pid = result and result.pid or err}) end)
    c.request('events/subscribe', {workspace = 'notes'}, function(err, result)
      tell({subscribed = result and result.replay or err})
    end)
  end,
})
"""


@pytest.mark.skipif(shutil.which("nvim") is None, reason="there is no Neovim")
async def test_neovim_and_a_script_see_each_other(make_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    daemon = make_daemon()
    root = daemon.base / "notes"
    (root / "sessions").mkdir(parents=True)
    daemon.register(notes=root)
    daemon.start()
    script, seen = tmp_path / "attach.lua", tmp_path / "seen"
    script.write_text(SCRIPT)
    seen.touch()
    environment = {
        **daemon.environment,
        "SEEN": str(seen),
        "ROOT": str(root),
        "COMMAND": json.dumps([sys.executable, "-m", "craftd", "stdio"]),
    }
    nvim = await asyncio.create_subprocess_exec(
        "nvim", "--headless", "-u", "NONE", "-i", "NONE", "--cmd", f"luafile {script}", env=environment
    )
    try:
        await until(lambda: {"subscribed": "none"} in lines(seen))
        assert "error" not in seen.read_text()  # an empty Lua table is an empty list in JSON
        other = await daemon.connect("notes")
        await other.call("events/subscribe", {"workspace": "notes"})
        await other.call("sessions/create", {"value": {"name": "From the script"}})
        await until(lambda: {"answer": "From Neovim"} in lines(seen))
        theirs = await other.notified("sessions/didCreate", 2)
        assert theirs["item"]["value"]["name"] == "From Neovim"
        assert [line for line in lines(seen) if "event" in line] == [
            {"event": "didCreate", "name": "From the script", "kind": "client"},
            {"event": "didCreate", "name": "From Neovim", "kind": "client"},
        ]
        await other.close()
    finally:
        nvim.kill()
        await nvim.wait()


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(2 * PATIENCE):
        while not true():  # noqa: ASYNC110 (another program writes what is waited for)
            await asyncio.sleep(0.02)
