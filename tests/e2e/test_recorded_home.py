"""The recorded home and all recorded workspaces open, everything lists, a change of nothing leaves every byte."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.protocol import methods as _complete_registry  # noqa: F401
from craftd.protocol.registry import METHODS
from tests.daemon import Daemon, snapshot
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

GOLDEN = Path(__file__).parents[1] / "golden"
MORE = {
    "projects": "projects/workspace", "sessions": "sessions/workspace", "sources": "sources/workspace",
    "lenient": "sources/lenient", "invalid": "sources/invalid", "skills": "skills/valid", "broken": "skills/invalid",
}  # fmt: skip
"""Recorded workspaces beside those of the home."""

OF_RECORDS = {"messages", "memory", "assets", "plans", "attachments"}
"""Listed for one record at a time."""

REFUSING = {"Corrupt", "ValidationFailed", "Forbidden", "InvalidParams", "InvalidState"}
"""What a change of a record that is not sound, or has no id that a client may use, may answer."""


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    daemon.home = daemon.environment["HOME"] = str(daemon.base)
    shutil.copytree(GOLDEN / "workspace/home", daemon.config, dirs_exist_ok=True)
    for path in json.loads((GOLDEN / "workspace/expected.json").read_bytes())["tree"]["emptyDirs"]:
        (daemon.config / path).mkdir(parents=True, exist_ok=True)
    config = json.loads((daemon.config / "config.json").read_bytes())
    for entry in config["workspaces"]:
        entry["rootPath"] = entry["rootPath"].replace("~/home/", "~/cfg/")
    for name, path in MORE.items():
        shutil.copytree(GOLDEN / path, daemon.base / name, symlinks=True)
        config["workspaces"].append({"id": name, "name": name, "slug": name, "rootPath": f"~/{name}", "createdAt": 1})
    (daemon.config / "config.json").write_text(json.dumps(config, indent=2))
    daemon.start()
    yield daemon
    daemon.end()


def bytes_of(daemon: Daemon) -> dict[str, Any]:
    """Everything but what is craftd's own."""
    found = {}
    for name in ("cfg", *MORE):
        for path, content in snapshot(daemon.base / name).items():
            if not str(path).startswith("craftd/") and not str(path).endswith(".server.lock"):
                found[f"{name}/{path}"] = content
    return found


async def pages(client: Wire, method: str, **params: Any) -> list[Any]:
    items: list[Any] = []
    while True:
        page = await client.call(method, {**params, "limit": 500})
        items += page["items"]
        if "nextCursor" not in page:
            return items
        params["cursor"] = page["nextCursor"]


async def answer_of(client: Wire, method: str, params: dict[str, Any]) -> str:
    try:
        answer = await client.call(method, params)
    except Failed as failure:
        return failure.name
    return "changed" if answer["changed"] else "unchanged"


async def test_a_change_of_nothing_leaves_every_byte(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon)
    workspaces = [item["id"] for item in await pages(client, "workspaces/list")]
    assert len(workspaces) == 2 + len(MORE)
    for workspace in workspaces:
        await client.call("daemon/sync", {"workspace": workspace})
    before = bytes_of(daemon)

    lists = {name for name, row in METHODS.items() if name.endswith("/list") and "limit" in _members(row)}
    nouns = sorted({name.split("/")[0] for name in lists} - OF_RECORDS)
    changed = set()
    for noun in nouns:
        row = METHODS[f"{noun}/list"]
        scopes = (
            [{"workspace": id} for id in workspaces] if row.scope != "global" and "workspace" in _members(row) else [{}]
        )
        for scope in scopes:
            listed = await pages(client, f"{noun}/list", **scope)
            if f"{noun}/update" not in METHODS:
                continue
            for item in listed:
                params = {**scope, "id": item["id"], "patch": {}}
                if noun == "drafts":
                    params = {**scope, "session": item["id"], "text": item["value"]["text"]}
                told = await answer_of(client, f"{noun}/update", params)
                if told in REFUSING:
                    continue
                assert told == "unchanged", (noun, item["id"])
                changed.add(noun)
                if noun == "sessions":
                    await _messages(client, scope, item["id"])
                    await _plans(client, scope, item["id"])
    assert {"sessions", "projects", "sources", "skills", "statuses", "labels", "views", "permissions"} <= changed
    assert {"workspaces", "connections"} <= changed
    for params in ({}, *({"workspace": id} for id in workspaces)):
        assert await answer_of(client, "settings/update", {**params, "patch": {}}) == "unchanged"
    assert await answer_of(client, "preferences/update", {"patch": {}}) == "unchanged"
    for workspace in workspaces:
        await client.call("daemon/sync", {"workspace": workspace})
    after = bytes_of(daemon)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()


async def _plans(client: Wire, scope: dict[str, str], session: str) -> None:
    for plan in await pages(client, "plans/list", session=session, **scope):
        params = {**scope, "session": session, "id": plan["id"], "patch": {"set": {}}}
        assert await answer_of(client, "plans/update", params) == "unchanged"
    await pages(client, "attachments/list", session=session, **scope)


def _members(row: Any) -> set[str]:
    return {member.name for member in row.params.__attrs_attrs__}


async def _messages(client: Wire, scope: dict[str, str], session: str) -> None:
    for item in await pages(client, "messages/list", **scope, session=session):
        if item["value"]:
            update = {**scope, "session": session, "id": item["id"], "patch": {}}
            assert (await client.call("messages/update", update))["changed"] is False


async def test_no_file_is_made_outside_of_the_configuration_and_the_workspaces(
    daemon: Daemon, connect: Connect
) -> None:
    client = await connect(daemon)
    made = (await client.call("workspaces/create", {"value": {"name": "Fresh"}}))["item"]
    await client.call("sessions/create", {"workspace": made["id"], "value": {"name": "S"}})
    assert {path.name for path in daemon.base.iterdir()} == {"cfg", "run", "stderr", *MORE}
    assert {path.name for path in (daemon.base / "run").rglob("*") if path.is_file()} == set()
