"""Fill the demo workspace through the running daemon, and keep one of its sessions going until the daemon ends."""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import Any

from craftd.client import launch
from craftd.client.client import Client, ConnectionLost
from craftd.protocol import rendezvous

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


def main(folder: str, *, lively: bool) -> None:
    link = launch.greet(rendezvous.find(), "demo")
    if link is None:
        return
    with Client(link, "demo") as client:
        workspace = find_or_make(client, folder)
        names = {"workspace": workspace}
        listed = client.call("sessions/list", names)["items"]
        if not listed:
            for value, messages in SESSIONS:
                append(
                    client, workspace, client.call("sessions/create", {**names, "value": value})["item"]["id"], messages
                )
        if not lively:
            return
        name = "Read through the archive"
        ongoing = next((item["id"] for item in listed if item["value"].get("name") == name), None)
        if ongoing is None:
            ongoing = client.call("sessions/create", {**names, "value": {"name": name}})["item"]["id"]
        for text in itertools.cycle(ONGOING):
            append(client, workspace, ongoing, [("assistant", text)])
            time.sleep(PAUSE)


def find_or_make(client: Client, folder: str) -> str:
    """Id of the workspace in *folder*."""
    path = str(Path(folder).resolve())
    for item in client.pages("workspaces/list", {}):
        if item["value"].get("path") == path:
            return str(item["id"])
    created = client.call("workspaces/create", {"value": {"name": "Demo", "path": path}})
    return str(created["item"]["id"])


def append(client: Client, workspace: str, session: str, messages: Any) -> None:
    now = time.time_ns() // 1_000_000
    records = [
        {"id": f"msg-{now}-{number}", "type": kind, "content": text, "timestamp": now + number}
        for number, (kind, text) in enumerate(messages)
    ]
    client.call("messages/append", {"workspace": workspace, "session": session, "messages": records})


if __name__ == "__main__":
    try:
        main(sys.argv[1], lively="--quiet" not in sys.argv[2:])
    except ConnectionLost:
        pass  # the daemon was stopped
