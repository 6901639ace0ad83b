"""A daemon that is killed while it imports leaves every session as it was or as the bundle has it, and no more."""

from __future__ import annotations

import base64
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon import Daemon
from tests.faults.harness import number_of_kills
from tests.faults.work import litter

IDS = tuple(f"260101-one-{number}" for number in range(5))
MESSAGES = 400


@pytest.fixture
def base() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="craftd-", dir="/tmp") as folder:
        yield Path(folder)


def note(version: int) -> bytes:
    return f"{version}\n".encode() * 30_000


def bundle(version: int) -> str:
    sessions = []
    for id in IDS:
        header = {"id": id, "workspaceRootPath": "/gone", "createdAt": 1, "name": f"{version}"}
        messages = [
            {"id": f"m{number}", "content": f"{version}" + "x" * 200, "type": "user"} for number in range(MESSAGES)
        ]
        file = {
            "relativePath": "data/a/note.txt",
            "contentBase64": base64.b64encode(note(version)).decode(),
            "size": len(note(version)),
        }
        sessions.append({"version": 1, "session": {"header": header, "messages": messages}, "files": [file]})
    return json.dumps({"version": 1, "exportedAt": 1, "resources": {"sessions": sessions}})


def versions(root: Path) -> dict[str, int | None]:
    """What each session is: whole, of one version."""
    found: dict[str, int | None] = {}
    for id in IDS:
        if not (folder := root / "sessions" / id).exists():
            found[id] = None
            continue
        header, *messages = map(json.loads, (folder / "session.jsonl").read_bytes().splitlines())
        version = int(header["name"])
        assert header["messageCount"] == len(messages) == MESSAGES
        assert {message["content"].rstrip("x") for message in messages} == {f"{version}"}
        assert (folder / "data/a/note.txt").read_bytes() == note(version)
        found[id] = version
    return found


async def test_a_kill_leaves_every_session_old_or_new(base: Path) -> None:
    chance = random.Random(5)
    daemon, root = Daemon(base), base / "ws"
    root.mkdir()
    (root / "config.json").write_text('{"id": "ws_1", "name": "Work", "slug": "ws", "createdAt": 1}')
    daemon.register(work=root)
    before: dict[str, int | None] = dict.fromkeys(IDS)
    ends: set[int] = set()
    for version in range(number_of_kills(4)):
        daemon.start()
        wire = await daemon.connect("work")
        params = {"content": {"text": bundle(version)}, "onConflict": "overwrite", "workDoneToken": "w"}
        wire.ask("bundles/import", {"workspace": "work", **params})
        heard = chance.randint(1, len(IDS))
        await wire.notified("$/progress", heard + 1)
        daemon.kill()
        await wire.close()
        after = versions(root)
        new = [id for id in IDS if after[id] == version]
        assert new == list(IDS[: len(new)])  # one after the other
        assert len(new) >= heard - 1
        assert all(after[id] == before[id] for id in IDS[len(new) :])
        ends.add(len(new))
        before = after
    daemon.start()
    wire = await daemon.connect("work")
    await wire.call("daemon/sync", {"workspace": "work"})
    assert litter(daemon.config, root) == []
    listed = await wire.call("sessions/list", {"workspace": "work"})
    assert {item["id"] for item in listed["items"]} == {id for id in IDS if before[id] is not None}
    await wire.close()
    daemon.end()
    assert len(ends) > 1
