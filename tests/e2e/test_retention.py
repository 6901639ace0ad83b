"""Purging that the settings of a workspace ask for, and that nobody gets who does not."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up, start_impatient
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]


@pytest.fixture(scope="module")
def shared(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    root = set_up(daemon)
    for name, archived in (("old", 10**12), ("fresh", 4 * 10**12)):
        (root / "sessions" / name).mkdir()
        header = {"id": name, "createdAt": 1, "isArchived": True, "archivedAt": archived}
        (root / "sessions" / name / "session.jsonl").write_text(json.dumps(header) + "\n")
    for name in ("1000000000000-gone", "9000000000000-kept"):
        (root / ".trash" / name).mkdir(parents=True)
        (root / ".trash" / name / "session.jsonl").write_text('{"id":"gone"}\n')
    start_impatient(daemon, house_every=0.05)
    return daemon


def trash_of(root: Path) -> list[str]:
    return sorted(name for name in os.listdir(root / ".trash") if not name.startswith("."))


async def want(client: Wire, retention: Any) -> None:
    patch = {"set": {"retention": retention}} if retention is not None else {"unset": ["/retention"]}
    await client.call("settings/update", {"workspace": WORKSPACE, "patch": patch})


async def test_nothing_goes_unless_the_settings_say_so(shared: Daemon, connect: Connect) -> None:
    client, root = await connect(shared, WORKSPACE), shared.base / "ws"
    await client.call("events/subscribe", {"workspace": WORKSPACE, "topics": ["sessions", "files"]})
    for wrong in ({"archivedDays": 0}, {"archivedDays": -1}, {"trashDays": "30"}, {"archivedDays": True}, 30):
        with pytest.raises(Failed, match="ValidationFailed"):
            await want(client, wrong)
    await want(client, {})
    await want(client, {"archivedDays": 30})
    gone = await client.notified("sessions/didDelete")
    assert (gone["id"], gone["origin"]) == ("old", {"kind": "daemon"})
    assert (root / "sessions" / "fresh").exists()
    assert [name.partition("-")[2] for name in trash_of(root)] == ["gone", "old", "kept"]
    assert "purging" in shared.log


async def test_the_trash_is_emptied_of_what_is_old(shared: Daemon, connect: Connect) -> None:
    client, root = await connect(shared, WORKSPACE), shared.base / "ws"
    before = trash_of(root)
    await want(client, {"archivedDays": None, "trashDays": 30})
    # The trash comes first, so who hears of the purge knows that it was looked through.
    await client.call("events/subscribe", {"workspace": WORKSPACE, "topics": ["sessions"]})
    await client.call("sessions/create", {"id": "older", "value": {"isArchived": True, "archivedAt": 10**12}})
    await want(client, {"archivedDays": 30, "trashDays": 30})
    await client.notified("sessions/didDelete")
    await want(client, None)
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    assert "1000000000000-gone" in before
    assert "1000000000000-gone" not in trash_of(root)
    assert "9000000000000-kept" in trash_of(root)
