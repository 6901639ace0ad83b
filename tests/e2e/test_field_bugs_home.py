"""Faults that others met around the configuration folder (tests/field_bugs/README.md says what is right)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import CRAFTD, Daemon
from tests.e2e.test_field_bugs import CASES, set_up
from tests.wire import PATIENCE, Wire

Connect = Callable[..., Awaitable[Wire]]


def craftd(daemon: Daemon, *arguments: str) -> Any:
    """What a command answers, run in the folder above everything."""
    done = subprocess.run(
        [*CRAFTD, *arguments],
        env=daemon.environment,
        cwd=daemon.base,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout) if done.stdout[:1] == b"{" else done.stdout


@pytest.mark.parametrize("named", ["made/for/it", "~/elsewhere", "{base}/absolute"])
def test_o08_everything_is_below_the_folder_that_was_named(make_daemon: Callable[..., Daemon], named: str) -> None:
    daemon = make_daemon()
    home = Path(daemon.home)
    home.mkdir()
    named = named.format(base=daemon.base)
    config = Path(os.path.normpath(daemon.base / named.replace("~", daemon.home)))
    daemon.environment["CRAFT_CONFIG_DIR"] = named
    try:
        workspace = craftd(daemon, "call", "workspaces/create", json.dumps({"value": {"name": "Here"}}))["item"]
        session = {"workspace": workspace["id"], "value": {"name": "First"}}
        created = craftd(daemon, "call", "sessions/create", json.dumps(session))["item"]["id"]
        secret = {"id": f"source_bearer::{workspace['id']}::x", "value": {"value": "s3cret"}}
        craftd(daemon, "call", "credentials/set", json.dumps(secret))
    finally:
        craftd(daemon, "stop")
    assert workspace["value"]["path"] == str(config / "workspaces" / "here")
    assert (config / "workspaces/here/sessions" / created / "session.jsonl").exists()
    assert (config / "credentials.enc").exists()
    assert not (home / ".craft-agent").exists()
    assert [path.name for path in home.iterdir()] == (["elsewhere"] if named.startswith("~") else [])
    made = {path.name for path in daemon.base.iterdir()} - {"run", "cfg", "home"}
    assert made == set() if named.startswith("~") else {config.relative_to(daemon.base).parts[0]}


async def test_o09_an_active_workspace_that_is_not_there_and_names_without_latin_letters(
    make_daemon: Callable[..., Daemon], connect: Connect
) -> None:
    daemon = make_daemon()
    set_up(daemon)
    config = daemon.config / "config.json"
    stored = json.loads(config.read_bytes()) | {"activeWorkspaceId": "ws_nowhere"}
    config.write_text(json.dumps(stored, indent=2))
    before = config.read_bytes()
    daemon.start()
    client = await connect(daemon)
    await client.call("workspaces/list")
    assert config.read_bytes() == before

    made = [(await client.call("workspaces/create", {"value": {"name": "港口"}}))["item"] for _ in range(2)]
    assert [item["value"]["name"] for item in made] == ["港口", "港口"]
    assert [item["value"]["slug"] for item in made] == ["workspace", "workspace"]
    assert len({item["id"] for item in made}) == 2

    first, second = (item["id"] for item in made)
    folders = [Path(item["value"]["path"]) for item in made]
    assert [folder.name for folder in folders] == ["workspace", "workspace-2"]
    asked = {"workspace": first, "value": {"name": "S", "workingDirectory": "~/proj"}, "id": "260101-a-b"}
    value = (await client.call("sessions/create", asked))["item"]["value"]
    assert value["workingDirectory"] == f"{daemon.home}/proj"
    line = json.loads((folders[0] / "sessions/260101-a-b/session.jsonl").read_bytes().split(b"\n")[0])
    assert line["workingDirectory"] == "~/proj"

    source = {"name": "Mine", "type": "local", "provider": "files", "local": {"path": "/srv"}}
    await client.call("sources/create", {"workspace": first, "value": source})
    assert len((await client.call("sources/list", {"workspace": first}))["items"]) == 1
    assert (await client.call("sources/list", {"workspace": second}))["items"] == []
    assert json.loads(config.read_bytes())["activeWorkspaceId"] == "ws_nowhere"


@pytest.mark.parametrize(
    ("case", "state"),
    [("cfg_wrong_key", "undecryptable"), ("cfg_truncated", "corrupt"), ("cfg_other_magic", "corrupt")],
)
async def test_o12_secrets_that_cannot_be_read_are_never_lost(
    make_daemon: Callable[..., Daemon], connect: Connect, case: str, state: str
) -> None:
    daemon = make_daemon()
    set_up(daemon)
    file = daemon.config / "credentials.enc"
    shutil.copy(CASES / "O12" / case / "credentials.enc", file)
    original = file.read_bytes()
    daemon.start()
    client = await connect(daemon, "ws_0a1b2c3d")
    status = await client.call("credentials/status")
    assert (status["file"]["state"], status["items"]) == (state, [])
    assert status["file"]["message"]
    assert file.read_bytes() == original
    await client.call("sessions/create", {"value": {"name": "The workspace works"}})
    id = "source_bearer::ws_0a1b2c3d::x"
    await client.call("credentials/set", {"id": id, "value": {"value": "s3cret"}})
    (aside,) = (path for path in daemon.config.iterdir() if path.name.startswith("credentials.enc") and path != file)
    assert aside.read_bytes() == original
    assert (aside.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o600, 0o600)
    daemon.restart()
    again = await connect(daemon, "ws_0a1b2c3d")
    assert (await again.call("credentials/reveal", {"id": id}))["value"]["value"] == "s3cret"
    assert aside.read_bytes() == original
