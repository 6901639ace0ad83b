"""Long transcripts over the wire: what a request costs follows from what it returns."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Wire

Connect = Callable[..., Awaitable[Wire]]

SESSION = "260301-long-road"
COUNT = 24_000

pytestmark = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="nobody counts what a process reads")


@pytest.fixture(scope="module")
def shared(make_daemon: Callable[..., Daemon]) -> Daemon:
    """A daemon that has read a session of about 12 MB in the background and not opened it."""
    daemon = make_daemon()
    root = set_up(daemon)
    path = root / "sessions" / SESSION / "session.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("w") as file:
        file.write(json.dumps({"id": SESSION, "createdAt": 1, "name": "Long", "messageCount": COUNT}) + "\n")
        for number in range(COUNT):
            file.write(f'{{"id":"m{number}","content":"{"x" * 440}","timestamp":{number},"type":"assistant"}}\n')
    os.utime(path, (1_772_000_000, 1_772_000_000))
    daemon.start()
    return daemon


def read_by(daemon: Daemon) -> int:
    """Bytes that the daemon has read so far."""
    assert daemon.process is not None
    return int(Path(f"/proc/{daemon.process.pid}/io").read_text().split()[1])


async def test_the_end_of_a_long_session_that_is_not_open_costs_what_it_says(shared: Daemon, connect: Connect) -> None:
    client = await connect(shared, WORKSPACE)
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    before = read_by(shared)
    found = await client.call("sessions/get", {"id": SESSION, "messages": 20})
    assert [item["id"] for item in found["messages"]] == [f"m{number}" for number in range(COUNT - 20, COUNT)]
    cursor = None
    for page in range(5):
        listed = await client.call(
            "messages/list", {"session": SESSION, "direction": "backward", "limit": 200, "cursor": cursor}
        )
        last = COUNT - page * 200
        assert [item["id"] for item in listed["items"]] == [f"m{number}" for number in range(last - 200, last)]
        assert listed["total"] == COUNT
        cursor = listed["nextCursor"]
    assert read_by(shared) - before < 2_000_000
    [oldest] = (await client.call("messages/list", {"session": SESSION, "limit": 1}))["items"]
    assert oldest["id"] == "m0"


async def test_who_follows_a_session_that_is_written_anew_by_another_program_is_told_to_list_again(
    shared: Daemon, connect: Connect
) -> None:
    client, other = await connect(shared, WORKSPACE), await connect(shared, WORKSPACE)
    for one, sessions in ((client, [SESSION]), (other, ["260101-another"])):
        await one.call("events/subscribe", {"workspace": WORKSPACE, "sessions": sessions})
    since = await client.call("daemon/sync", {"workspace": WORKSPACE})
    path = shared.base / "ws" / "sessions" / SESSION / "session.jsonl"
    path.write_bytes(path.read_bytes().replace(b"xxxx", b"yyyy"))
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    await other.call("daemon/sync", {"workspace": WORKSPACE})
    [lapsed] = client.notifications("events/didLapse")
    assert lapsed["reason"] == "overflow"
    assert not client.notifications("messages/didAppend")
    assert not other.notifications("events/didLapse")
    again = await client.call(
        "events/read", {"workspace": WORKSPACE, "since": {"epoch": since["epoch"], "revision": since["revision"]}}
    )
    assert again["status"] == "stale"
    [last] = (await client.call("messages/list", {"session": SESSION, "direction": "backward", "limit": 1}))["items"]
    assert last["value"]["content"] == "y" * 440
