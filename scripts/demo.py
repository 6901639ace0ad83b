"""Fill the demo workspace through the running daemon, and keep one of its sessions going until the daemon ends."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from pathlib import Path
from typing import Any

from craftd.client import Client, ConnectionLost, NotReached, connect

PAUSE = 5.0
"""Seconds between two messages of the session that goes on."""

SESSIONS: tuple[tuple[dict[str, Any], tuple[tuple[str, str], ...]], ...] = (
    (
        {"name": "Plan the move", "sessionStatus": "todo", "isFlagged": True},
        (
            ("user", "We move on the 28th. What has to be done first?"),
            ("assistant", "Give notice, measure the new rooms, order boxes. Shall I write the letter to the landlord?"),
            ("user", "Yes, and make a list of what does not come along."),
        ),
    ),
    (
        {"name": "Find the slow query", "sessionStatus": "needs-review"},
        (
            ("user", "The report page takes nine seconds since Tuesday."),
            (
                "assistant",
                "The plan shows a full scan of `orders`: the index on `placed_at` is gone. I can add it again.",
            ),
        ),
    ),
    (
        {"name": "Recipe for forty guests", "sessionStatus": "done"},
        (
            ("user", "Scale the lentil stew to forty people."),
            ("assistant", "4 kg lentils, 3 kg carrots, 12 onions, 400 ml oil, 16 l stock. It needs two pots."),
        ),
    ),
)
ONGOING = (
    "Reading the next chapter.",
    "Two passages contradict each other; noting both.",
    "Checked the dates against the letters.",
    "Summary so far: eleven pages, three open questions.",
)


async def main(folder: str, *, lively: bool) -> None:
    async with connect(name="demo", start=False, reconnect=False) as client:
        workspace = await find_or_make(client, folder)
        listed = (await client.sessions.list(workspace=workspace))["items"]
        if not listed:
            for value, messages in SESSIONS:
                await append(client, workspace, await create(client, workspace, value), messages)
        if not lively:
            return
        name = "Read through the archive"
        ongoing = next((item["id"] for item in listed if item["value"].get("name") == name), None)
        if ongoing is None:
            ongoing = await create(client, workspace, {"name": name})
        for text in itertools.cycle(ONGOING):
            await append(client, workspace, ongoing, [("assistant", text)])
            await asyncio.sleep(PAUSE)


async def find_or_make(client: Client, folder: str) -> str:
    """Id of the workspace in *folder*."""
    path = str(Path(folder).resolve())
    async for item in client.workspaces.iterate():
        if item["value"].get("path") == path:
            return item["id"]
    created = await client.workspaces.create(value={"name": "Demo", "path": path})
    return created["item"]["id"]


async def create(client: Client, workspace: str, value: dict[str, Any]) -> str:
    return (await client.sessions.create(workspace=workspace, value=value))["item"]["id"]


async def append(client: Client, workspace: str, session: str, messages: Any) -> None:
    now = time.time_ns() // 1_000_000
    records = [
        {"id": f"msg-{now}-{number}", "type": kind, "content": text, "timestamp": now + number}
        for number, (kind, text) in enumerate(messages)
    ]
    await client.messages.append(workspace=workspace, session=session, messages=records)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], lively="--quiet" not in sys.argv[2:]))
    except (ConnectionLost, NotReached):
        pass  # the daemon was stopped
