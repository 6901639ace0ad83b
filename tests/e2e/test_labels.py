"""Labels of sessions over the wire: checked where they are added, and found in what users say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

RECORDED = Path(__file__).parents[1] / "golden/workspace/home/workspaces/aurora-lab/labels/config.json"

GIVEN = [
    "bug", "Bug", "owner::TASK-9", "priority::3", "Priority::4", "priority::high", "priority::1e3", "bug::1",
    "due::2026-02-29", "due::2026-02-28", "due::2026-02-28T09:30", "owner::a::b", "owner::", "nope",
]  # fmt: skip
"""Field bug O23."""

TAKEN = {
    "bug": "bug", "Bug": "bug", "owner::TASK-9": "owner::TASK-9", "priority::3": "priority::3",
    "Priority::4": "priority::4", "due::2026-02-28": "due::2026-02-28",
    "due::2026-02-28T09:30": "due::2026-02-28T09:30", "owner::a::b": "owner::a::b", "owner::": "owner::",
}  # fmt: skip

REASONS = {
    "priority::high": "the value of 'priority' must be a number", "priority::1e3": "must be a number",
    "bug::1": "'bug' takes no value", "due::2026-02-29": "must be a day that exists", "nope": "no label 'nope'",
}  # fmt: skip


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    root = set_up(daemon)
    (root / "labels").mkdir(exist_ok=True)
    shutil.copy(RECORDED, root / "labels" / "config.json")
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, WORKSPACE)


async def new_session(client: Wire, **value: Any) -> str:
    id: str = (await client.call("sessions/create", {"value": value}))["item"]["id"]
    return id


async def labels_of(client: Wire, session: str) -> Any:
    return (await client.call("sessions/get", {"id": session}))["item"]["value"].get("labels")


async def say(client: Wire, session: str, *contents: str, **params: Any) -> Any:
    messages = [{"type": "user", "content": content} for content in contents]
    return await client.call("messages/append", {"session": session, "messages": messages, **params})


@pytest.mark.parametrize("entry", GIVEN)
async def test_an_entry_is_taken_or_refused_for_its_own_reason(client: Wire, daemon: Daemon, entry: str) -> None:
    session = await new_session(client)
    changes: list[tuple[str, dict[str, Any]]] = [
        ("sessions/update", {"id": session, "patch": {"add": {"/labels": [entry]}}}),
        ("sessions/update", {"id": session, "patch": {"set": {"labels": [entry]}}}),
        ("sessions/create", {"value": {"labels": [entry]}}),
        ("messages/append", {"session": session, "messages": [], "set": {"labels": [entry]}}),
    ]
    if entry in TAKEN:
        for method, params in changes:
            answer = await client.call(method, params)
            told = answer["item"]["value"]["labels"] if "item" in answer else await labels_of(client, session)
            assert told == [TAKEN[entry]], method
        return
    for method, params in changes:
        with pytest.raises(Failed, match=r"ValidationFailed|InvalidParams") as failed:
            await client.call(method, params)
        (issue,) = failed.value.error["data"]["issues"]
        assert issue["path"].endswith("labels.0")
        assert REASONS[entry] in issue["message"]
    assert await labels_of(client, session) is None
    assert b"labels" not in (daemon.base / "ws/sessions" / session / "session.jsonl").read_bytes()


async def test_a_label_made_in_the_same_breath_can_be_given(client: Wire) -> None:
    session = await new_session(client)
    made = client.ask("labels/create", {"id": "breath", "value": {"name": "Breath", "valueType": "number"}})
    given = client.ask("sessions/update", {"id": session, "patch": {"add": {"/labels": ["Breath::1"]}}})
    created = client.ask("sessions/create", {"value": {"labels": ["breath"]}})
    await client.answer(made)
    assert (await client.answer(given))["item"]["value"]["labels"] == ["breath::1"]
    assert (await client.answer(created))["item"]["value"]["labels"] == ["breath"]


async def test_what_users_say_gives_labels_in_the_same_change(client: Wire, daemon: Daemon, connect: Connect) -> None:
    other = await connect(daemon, WORKSPACE)
    session = await new_session(client, labels=["bug"])
    await other.call("events/subscribe", {"workspace": WORKSPACE, "topics": ["sessions", "messages"]})
    await say(client, session, "sev 2 since 2026-11-30, packet loss seen", "and `sev 9` in code")
    appended = await other.notified("messages/didAppend")
    changed = await other.notified("sessions/didChange")
    assert appended["batch"] == {"index": 0, "size": 2}
    found = ["bug", "network", "severity::2", "due::2026-11-30"]
    assert changed["patch"]["add"] == {"/labels": found[1:]}
    assert await labels_of(client, session) == found
    first = (daemon.base / "ws/sessions" / session / "session.jsonl").read_bytes().split(b"\n")[0]
    assert json.loads(first)["labels"] == found


async def test_what_others_say_gives_none_and_a_repeat_gives_none_again(client: Wire) -> None:
    session = await new_session(client)
    said = [{"type": "assistant", "content": "sev 1"}, {"type": "user", "content": "sev 3", "id": "m1"}]
    await client.call("messages/append", {"session": session, "messages": said})
    assert await labels_of(client, session) == ["severity::3"]
    await client.call("sessions/update", {"id": session, "patch": {"unset": ["/labels"]}})
    await client.call("messages/append", {"session": session, "messages": said[1:]})
    assert await labels_of(client, session) is None


async def test_labels_found_and_labels_set_come_together(client: Wire) -> None:
    session = await new_session(client)
    await say(client, session, "sev 4", set={"labels": ["Bug"], "name": "Both"})
    assert await labels_of(client, session) == ["bug", "severity::4"]


async def test_a_long_transcript_gets_its_labels_too(client: Wire, daemon: Daemon) -> None:
    session = await new_session(client)
    for _ in range(3):
        await say(client, session, *["x" * 100_000] * 8)
    await say(client, session, "sev 5", "x")
    assert await labels_of(client, session) == ["severity::5"]
    lines = (daemon.base / "ws/sessions" / session / "session.jsonl").read_bytes().split(b"\n")
    assert (json.loads(lines[0])["labels"], json.loads(lines[0])["messageCount"]) == (["severity::5"], 26)
