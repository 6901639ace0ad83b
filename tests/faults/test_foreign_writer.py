"""Somebody else saves a session between any two system calls of a change, while two clients are at work: what either
of the three was told is stored is there, and both clients saw one order.

Four moments of each change; CRAFTD_MOMENTS=all takes each of them in each way.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from craftd.model import json_text
from craftd.store import atomic, disk
from craftd.store.atomic import Fingerprint
from tests.faults.moments import Moments
from tests.faults.outsider import MARK, Outsider
from tests.faults.served import WORK, Served, scoped
from tests.faults.test_disk_errors import CHANGES, Change
from tests.faults.work import Facts
from tests.wire import Failed, Wire

NOUNS = ("sessions", "messages", "annotations", "plans", "notes", "attachments", "trash")

OF_SESSIONS = {
    name: change
    for name, change in CHANGES.items()
    if change.method.split("/")[0] in NOUNS or (change.method == "bundles/import" and "session" in name)
}

WAYS = {
    "the app": (("write", "unlink", "rename"),),
    "the app, interrupted between its calls": (("write", "unlink"), ("rename",)),
    "a program that renames over": (("load", "write", "rename"),),
    "a program that renames over, late": (("load", "write"), ("rename",)),
}
"""Steps of a save, one group for each moment; see `Keeper`."""

FOLLOWING = {
    "id", "workspaceRootPath", "createdAt", "lastUsedAt", "lastMessageAt", "messageCount", "lastMessageRole", "preview",
    "lastFinalMessageId", "tokenUsage",
}  # fmt: skip
"""Members of line 1 that follow from others."""


@pytest.fixture(scope="module")
def outsider() -> Iterator[Outsider]:
    one = Outsider.start()
    yield one
    one.end()


@define(eq=False)
class Trials:
    """served: with the client that makes the changes; other: a second client, who appends at the same time."""

    served: Served
    other: Wire
    outsider: Outsider
    moments: Moments
    number: int = 0
    calls: int = 0
    expected: Facts | None = None

    @classmethod
    @asynccontextmanager
    async def start(cls, base: Path, outsider: Outsider, moments: Moments) -> AsyncIterator[Trials]:
        async with Served.start(base) as served:
            assert served.daemon.socket is not None
            other = await Wire.connect(served.daemon.socket)
            await other.initialize({"workspaces": [{"id": WORK}]})
            await other.call("events/subscribe", {"workspace": WORK})
            yield cls(served, other, outsider, moments)
            await other.close()

    async def prepare(self, change: Change) -> None:
        """Find out what is true after *change*, and how many system calls it takes, while nobody disturbs it."""
        assert await self.run(change, ()) == []

    async def run(self, change: Change, steps: tuple[tuple[str, ...], ...], at: int = 0) -> list[str]:
        """Make *change* on a session of its own, with a foreign save that begins before system call *at*."""
        number, self.number = self.number, self.number + 1
        served, other, outsider = self.served, self.other, self.outsider
        for method, params in change.ready:
            await served.call(method, **params(number))
        await served.call("daemon/sync", workspace=WORK)
        path = served.root / "sessions" / f"s{number}" / "session.jsonl"
        there = path.exists()
        wires = {"one": served.wire, "other": other}
        for wire in wires.values():
            wire.received.clear()
        change_params = scoped(change.method, change.params(served, number))
        sure = change.method != "messages/truncate" and not change_params.get("permanent")
        outsider("begin", path, {} if self.expected is None else self.expected, sure)
        session = f"s{number}" if there else "first"
        said = {"id": f"b{number}", "content": "other", "type": "user", "timestamp": 6}
        append = {"workspace": WORK, "session": session, "messages": [said], "set": {"x-other": number}}
        facts = {f"message b{number}": said, "header x-other": number} if there else {}
        guests = {at + place: (lambda some=some: outsider("act", *some)) for place, some in enumerate(steps)}
        self.moments.watch(f"s{number}", guests)
        asked = {"one": served.wire.ask(change.method, change_params), "other": other.ask("messages/append", append)}
        answers = {name: await _answer(wire, asked[name]) for name, wire in wires.items()}
        self.calls = self.moments.end()
        await served.call("daemon/sync", workspace=WORK)
        if answers["one"] == "NotFound":  # a branch whose session was replaced while it was read: nothing was made
            answers["one"] = await _answer(served.wire, served.wire.ask(change.method, change_params))
        for name in wires:
            outsider("note", name, "asked", str(asked[name]))
        for name, wire in wires.items():
            for message in wire.received:
                if message.get("method", "").split("/")[-1].startswith("did") and "revision" in message["params"]:
                    text = json_text.canonical(message["params"])
                    outsider("note", name, "event", text, message["params"]["revision"])
                elif message.get("id") == asked[name] and "result" in message:
                    revision = (message["result"] or {}).get("revision", 0)
                    outsider("note", name, "answered", str(asked[name]), revision)
        found = collected(served.root, number)
        if self.expected is None:
            self.expected = {name: fact for name, fact in found.items() if name not in facts}
            return [] if answers["one"] == "done" else [f"the answer is {answers['one']}"]
        # What was said last in a session that goes to the trash, replaced, may be missing there.
        sure = sure and change.method != "bundles/import"
        outsider("acknowledge" if answers["other"] == "done" and sure else "ask", facts)
        problems = outsider("judge", found)
        if answers["one"] != "done":
            problems.append(f"the answer is {answers['one']}")
        return [f"s{number}, call {at} of {self.calls}: {problem}" for problem in problems]


async def _answer(wire: Wire, id: int) -> str:
    try:
        await wire.answer(id)
    except Failed as error:
        return error.name
    return "done"


def collected(root: Path, number: int) -> Facts:
    """What is stored of a session, as somebody finds it who knows nothing but the format; or of it in the trash."""
    facts: Facts = {}
    folder = root / "sessions" / f"s{number}"
    trash = [one for one in (root / ".trash").glob("*") if one.name.endswith(f"-s{number}")]
    for place in (*trash, folder):
        if place.is_dir():
            facts |= _of_folder(place)
            facts["session"] = "in the trash" if place in trash else "there"
    text = json.dumps(facts)
    text = re.sub(rf"(?<![\w-])s{number}(?![\w-])", "s#", text)
    text = re.sub(r"\b1[67]\d{11}\b", "1600000000000", text)
    return json.loads(text)  # type: ignore[no-any-return]


def _of_folder(folder: Path) -> Facts:
    transcript = folder / "session.jsonl"
    if not transcript.exists():
        transcript = folder / "session.jsonl.tmp"
    header, *messages = map(json.loads, transcript.read_bytes().splitlines())
    facts: Facts = {f"header {name}": value for name, value in header.items() if name not in FOLLOWING}
    for message in messages:
        name = f"message {message['id']}"
        facts[name] = [facts[name], message] if name in facts else message
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and path.name not in ("session.jsonl", "session.jsonl.tmp"):
            facts[f"file {name}"] = path.read_text(errors="replace")[:100]
    return facts


def moments_of(calls: int, change: str) -> Iterator[tuple[int, str]]:
    """Which of *calls* moments are tried in which way: each way once, or all everywhere."""
    ways, turn = list(WAYS), list(OF_SESSIONS).index(change)
    if os.environ.get("CRAFTD_MOMENTS") == "all":
        yield from ((at, way) for way in ways for at in range(calls + 1))
        return
    for place in range(len(ways)):
        yield place * calls // (len(ways) - 1), ways[(place + turn) % len(ways)]


@pytest.mark.parametrize("change", OF_SESSIONS)
@pytest.mark.usefixtures("run_time", "quick")
async def test_nothing_acknowledged_is_lost_and_all_see_one_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outsider: Outsider, change: str
) -> None:
    problems: list[str] = []
    async with Trials.start(tmp_path, outsider, Moments(monkeypatch)) as trials:
        await trials.prepare(OF_SESSIONS[change])
        for at, way in moments_of(trials.calls, change):
            problems += [f"{way}, {problem}" for problem in await trials.run(OF_SESSIONS[change], WAYS[way], at)]
    assert "\n".join(problems) == ""


def unlink_then_rename(temporary: Path, target: Path, expect: Fingerprint, new: Fingerprint) -> None:
    """How the app gives a new file its name."""
    disk.remove(target)
    disk.rename(temporary, target)


@pytest.mark.usefixtures("run_time", "quick")
async def test_a_writer_that_removes_and_renames_is_seen_to_lose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outsider: Outsider
) -> None:
    monkeypatch.setattr(atomic, "swap_in", unlink_then_rename)
    change = OF_SESSIONS["a renamed session"]
    async with Trials.start(tmp_path, outsider, Moments(monkeypatch)) as trials:
        await trials.prepare(change)
        for at in range(trials.calls, 0, -1):
            problems: list[Any] = await trials.run(change, WAYS["a program that renames over"], at)
            if any(MARK in problem and "acknowledged was" in problem for problem in problems):
                return
    pytest.fail("no loss was seen")
