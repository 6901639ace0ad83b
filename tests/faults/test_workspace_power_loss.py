"""A power cut at any moment of changes of every kind: what was acknowledged is there, and everything can be read.

CRAFTD_CUTS: how many states of the disk are tried at each moment (6).
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import IoError
from craftd.model.records import Record
from craftd.store import atomic, disk
from craftd.workspace import files
from craftd.workspace import workspace as workspaces
from tests.faults.harness import Outage, Recorder
from tests.faults.scopes import Scopes
from tests.faults.work import Facts, Ledger, facts_of, litter, shown
from tests.workspace.house import line, message

WORK = "work"
SAMPLE = int(os.environ.get("CRAFTD_CUTS", 6))
CHANGE_EVERY = 9
"""Cuts after which not only everything is read, but something changed as well: every so many."""

TORN = frozenset({"torn-tail", "line-unreadable", "nul-bytes"})
"""Damage that a cut may leave where an append that nobody was told of had begun."""

FIRST = message("m1", "x" * 3000)
"""Longer than what is appended, so that line 1 waits until the end."""


class Teller:
    """Makes changes and says which facts became true with each."""

    def __init__(self, scopes: Scopes, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scopes, self.recorder, self.monkeypatch = scopes, recorder, monkeypatch
        self.numbers = count()

    async def change(self, method: str, params: Record, facts: Facts) -> None:
        number = next(self.numbers)
        self.recorder.mark(("asked", number, facts))
        await self.scopes.call(method, params if method.startswith("workspaces/") else {"workspace": WORK, **params})
        self.recorder.mark(("acknowledged", number, facts))

    async def append(self, session: str, *ids: str, **set: Any) -> None:
        facts: Facts = {f"message {session} {id}": len(message(id)["content"]) for id in ids}
        params: Record = {"session": session, "messages": [message(id) for id in ids]}
        if set:
            params["set"] = set
            facts |= {f"session {session}": set["name"]} if "name" in set else {}
        await self.change("messages/append", params, facts)

    async def rename(self, session: str, name: str) -> None:
        params = {"id": session, "patch": {"set": {"name": name}}}
        await self.change("sessions/update", params, {f"session {session}": name})


async def sessions(tell: Teller) -> None:
    await tell.change("sessions/create", {"id": "s-1", "value": {"name": "New"}}, {"session s-1": "New"})
    await tell.append("s-1", "m1")
    await tell.append("s-1", "m2", "m3", name="Other")
    await tell.rename("s-1", "Third")
    gone = {f"message s-1 m{n}": None for n in (1, 2, 3)} | {"session s-1": None, "trash s-1": True}
    await tell.change("sessions/delete", {"id": "s-1"}, gone)


async def a_removed_session(tell: Teller) -> None:
    gone = {"session first": None, "message first m1": None}
    await tell.change("sessions/delete", {"id": "first", "permanent": True}, gone)
    await tell.change("sessions/create", {"id": "first", "value": {"name": "Again"}}, {"session first": "Again"})


async def long_results(tell: Teller) -> None:
    """Whoever reads a line finds the file it speaks of."""

    async def tool(method: str, message: str, text: str, **params: Any) -> None:
        facts: Facts = {f"message first {message}": 0, f"result first {message}": shown(text)}
        await tell.change(method, {"session": "first", **params}, facts)

    texts = [f"{n} {'ab ' * 20_000}" for n in range(3)]
    result: Record = {"content": "", "toolName": "Read", "timestamp": 5, "type": "tool"}
    await tool("messages/append", "t1", texts[0], messages=[{"id": "t1", **result, "toolResult": texts[0]}])
    patch = {"set": {"toolResult": texts[1]}}
    await tool("messages/update", "t1", texts[1], id="t1", patch=patch)
    gone: Facts = {"message first t1": None, "result first t1": None}
    await tell.change("messages/delete", {"session": "first", "id": "t1"}, gone)
    await tool("messages/append", "t2", texts[2], messages=[{"id": "t2", **result, "toolResult": texts[2]}])


async def prepared_rewrites(tell: Teller) -> None:
    tell.monkeypatch.setattr(workspaces, "PREPARE_ABOVE", 0)
    await tell.rename("first", "New")
    await tell.append("first", "m2")
    await asyncio.gather(tell.append("first", "m3", name="Other"), tell.append("first", "m4"))


async def appends_and_the_fold_at_the_end(tell: Teller) -> None:
    for n in range(2, 5):
        await tell.append("first", f"m{n}")


async def edits_of_messages(tell: Teller) -> None:
    await tell.append("first", "m2", "m3", "m4")
    for _ in range(2):  # the second time from copies that were made beside
        edit = {"session": "first", "id": "m2", "patch": {"set": {"content": "x" * 9}}}
        await tell.change("messages/update", edit, {"message first m2": 9})
        await tell.change("messages/delete", {"session": "first", "id": "m3"}, {"message first m3": None})
        cut = {"session": "first", "afterMessage": "m2"}
        await tell.change("messages/truncate", cut, {f"message first m{n}": None for n in (3, 4, 5)})
        await tell.append("first", "m3", "m5")
        edit = {"session": "first", "id": "m2", "patch": {"set": {"content": "x" * 99}}}
        await tell.change("messages/update", edit, {"message first m2": 99})
        tell.monkeypatch.setattr(workspaces, "PREPARE_ABOVE", 0)


async def annotations_and_notes(tell: Teller) -> None:
    value = {"target": {"selectors": [{"type": "text-quote", "exact": "x"}]}}
    for ids in (["n1"], ["n1", "n2"]):
        params = {"session": "first", "message": "m1", "id": ids[-1], "value": value}
        await tell.change("annotations/create", params, {"annotation first m1": ids})
    await tell.append("first", "m2", name="Other")
    for text in ("first", "second"):
        await tell.change("notes/update", {"session": "first", "text": text}, {"notes first": shown(text)})
    gone: Facts = dict.fromkeys(("annotation first m1", "message first m1"))
    await tell.change("messages/delete", {"session": "first", "id": "m1"}, gone)


async def a_session_that_comes_back(tell: Teller) -> None:
    await tell.append("first", "m2")
    there: Facts = {
        "session first": "Old",
        "message first m1": len(FIRST["content"]),
        "message first m2": len(message("m2")["content"]),
    }
    await tell.change("sessions/delete", {"id": "first"}, dict.fromkeys(there))
    await tell.change("sessions/restore", {"id": "first"}, there)
    await tell.append("first", "m3", name="Other")


async def branches_and_copies(tell: Teller) -> None:
    """Whole or not there; and what leaves the trash takes nothing with it."""
    length, text = len(FIRST["content"]), "x" * 5000
    path = "data/one.txt"
    params: Record = {"path": f"sessions/first/{path}", "content": {"text": text}}
    await tell.change("files/write", params, {f"file sessions/first/{path}": shown(text)})
    whole: Facts = {"session s-b": "Old", "message s-b m1": length, f"file sessions/s-b/{path}": shown(text)}
    await tell.change("sessions/duplicate", {"session": "first", "id": "s-b"}, whole)
    await tell.append("first", "m2")
    branch: Record = {"id": "s-c", "value": {"name": "Branch"}, "from": {"session": "first", "message": "m1"}}
    await tell.change("sessions/create", branch, {"session s-c": "Branch", "message s-c m1": length})
    await tell.append("s-c", "m3")
    gone: Facts = {**dict.fromkeys(whole), "trash s-b": True}
    await tell.change("sessions/delete", {"id": "s-b"}, gone)
    await tell.change("sessions/emptyTrash", {}, {"trash s-b": None})


async def entries(tell: Teller) -> None:
    await tell.change("labels/create", {"id": "r-1", "value": {"name": "One"}}, {"labels r-1 name": "One"})
    await tell.change("labels/update", {"id": "r-1", "patch": {"set": {"name": "Two"}}}, {"labels r-1 name": "Two"})
    await tell.change("statuses/create", {"id": "r-1", "value": {"label": "One"}}, {"statuses r-1 label": "One"})
    await tell.change("labels/delete", {"id": "r-1"}, {"labels r-1 name": None})


async def folders(tell: Teller) -> None:
    value = {"name": "S", "type": "local", "local": {"path": "/tmp"}, "tagline": "One", "guide": "One"}
    one = {"sources r-1 tagline": "One", "sources r-1 guide": "One"}
    await tell.change("sources/create", {"id": "r-1", "value": value}, one)
    # Two files: a cut may leave the new guide beside the old tagline, but loses neither once both are acknowledged.
    both = {"tagline": "Two", "guide": "Two"}
    two = {"sources r-1 tagline": "Two", "sources r-1 guide": "Two"}
    await tell.change("sources/update", {"id": "r-1", "patch": {"set": both}}, two)
    await tell.change("sources/delete", {"id": "r-1"}, dict.fromkeys(one))


async def skills_and_projects(tell: Teller) -> None:
    skill = {"name": "K", "description": "One", "content": "One"}
    facts = {"skills r-1 description": "One", "skills r-1 content": "One"}
    await tell.change("skills/create", {"id": "r-1", "value": skill}, facts)
    patch = {"set": {"content": "Two"}}
    await tell.change("skills/update", {"id": "r-1", "patch": patch}, {"skills r-1 content": "Two"})
    project = {"name": "P", "description": "One"}
    await tell.change("projects/create", {"id": "proj_1", "value": project}, {"projects proj_1 description": "One"})
    patch = {"set": {"description": "Two"}}
    await tell.change("projects/update", {"id": "proj_1", "patch": patch}, {"projects proj_1 description": "Two"})


async def the_registry(tell: Teller) -> None:
    await tell.change("workspaces/create", {"id": "w-1", "value": {"name": "One"}}, {"workspace w-1": "One"})
    patch = {"set": {"name": "Two"}}
    await tell.change("workspaces/update", {"id": "w-1", "patch": patch}, {"workspace w-1": "Two"})
    await tell.change("workspaces/delete", {"id": "w-1"}, {"workspace w-1": None})


async def files_in_a_session(tell: Teller) -> None:
    """Some are written outside the queue, and their folders are made with the first of them."""

    async def write(name: str, text: str) -> None:
        path = f"sessions/first/data/{name}"
        await tell.change("files/write", {"path": path, "content": {"text": text}}, {f"file {path}": shown(text)})

    await write("deep/one.txt", "first")
    await write("deep/one.txt", "second")
    await write("two.txt", "x" * 5000)
    tell.monkeypatch.setattr(files, "HEAVY", 0)
    await write("deep/one.txt", "third")
    await asyncio.gather(write("two.txt", "y"), write("three.txt", "z"))
    gone = "sessions/first/data/deep/one.txt"
    await tell.change("files/delete", {"path": gone}, {f"file {gone}": None})


async def a_failed_flush(tell: Teller) -> None:
    """What it should have written is lost for good, although every later flush succeeds."""
    await tell.append("first", "m2")
    with failing_once(os, "fdatasync"), pytest.raises(IoError):
        await tell.append("first", "m3")
    await tell.append("first", "m3")
    await tell.append("first", "m4")


async def a_repeat_of_what_was_not_safe(tell: Teller) -> None:
    patch = {"id": "r-1", "patch": {"set": {"name": "Two"}}}
    await tell.change("labels/create", {"id": "r-1", "value": {"name": "One"}}, {"labels r-1 name": "One"})
    with failing_once(disk, "flush_directory"), pytest.raises(IoError):
        await tell.change("labels/update", patch, {"labels r-1 name": "Two"})
    await tell.change("labels/update", patch, {"labels r-1 name": "Two"})


async def what_somebody_else_wrote(tell: Teller) -> None:
    """Its name is not safe yet; who asks for the same is told that it is stored, and it is."""
    root = tell.scopes.home.known[WORK].entry.root
    await tell.change("labels/create", {"id": "r-1", "value": {"name": "One"}}, {"labels r-1 name": "One"})

    async def theirs(path: Path, old: bytes, new: bytes, method: str, params: Record, facts: Facts) -> None:
        tell.recorder.mark(("asked", number := next(tell.numbers), facts))
        fd = disk.create(beside := path.with_name("theirs.tmp"))
        assert old in path.read_bytes()
        disk.write(fd, path.read_bytes().replace(old, new))
        disk.flush_full(fd)
        disk.close(fd)
        disk.rename(beside, path)
        await tell.change(method, params, facts)
        tell.recorder.mark(("acknowledged", number, facts))

    patch = {"set": {"name": "Two"}}
    label = {"id": "r-1", "patch": patch}
    await theirs(root / "labels/config.json", b"One", b"Two", "labels/update", label, {"labels r-1 name": "Two"})
    session = {"id": "first", "patch": patch}
    file = root / "sessions/first/session.jsonl"
    await theirs(file, b'"name":"Old"', b'"name":"Two"', "sessions/update", session, {"session first": "Two"})
    settings = {"id": WORK, "patch": patch}
    file = root / "config.json"
    await theirs(file, b'"Work"', b'"Two"', "workspaces/update", settings, {f"workspace {WORK}": "Two"})
    gone: Facts = {"labels r-1 name": None}
    tell.recorder.mark(("asked", number := next(tell.numbers), gone))
    disk.remove(root / "labels/config.json")
    await tell.change("labels/delete", {"id": "r-1", "missingOk": True}, gone)
    tell.recorder.mark(("acknowledged", number, gone))


Story = Callable[[Teller], Awaitable[None]]
STORIES: tuple[Story, ...] = (
    sessions, a_removed_session, a_session_that_comes_back, branches_and_copies, annotations_and_notes, long_results,
    prepared_rewrites,
    edits_of_messages, appends_and_the_fold_at_the_end, entries, folders, skills_and_projects, the_registry,
    files_in_a_session, a_failed_flush, a_repeat_of_what_was_not_safe, what_somebody_else_wrote,
)  # fmt: skip


@contextmanager
def failing_once(where: Any, name: str) -> Iterator[None]:
    real = getattr(where, name)

    def fail(*_: Any) -> None:
        setattr(where, name, real)
        raise OSError(errno.EIO, "EIO")

    setattr(where, name, fail)
    try:
        yield
    finally:
        setattr(where, name, real)


def new_configuration(base: Path) -> Facts:
    """A configuration folder that knows one workspace with one session; what is true of it."""
    root, config = base / "ws", base / "cfg"
    (config / "craftd").mkdir(parents=True)
    (root / "sessions" / "first").mkdir(parents=True)
    header = {"id": "first", "createdAt": 1, "name": "Old", "messageCount": 1}
    (root / "sessions" / "first" / "session.jsonl").write_bytes(line(header) + line(FIRST))
    (root / "config.json").write_text(json.dumps({"id": "ws_1", "name": "Work", "slug": "ws", "createdAt": 1}))
    entry = {"id": WORK, "name": "Work", "slug": "ws", "rootPath": str(root), "createdAt": 1}
    registry = {"workspaces": [entry], "activeWorkspaceId": WORK, "activeSessionId": None}
    (config / "config.json").write_text(json.dumps(registry))
    return {"session first": "Old", "message first m1": len(FIRST["content"]), f"workspace {WORK}": "Work"}


async def record(story: Story, base: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    with monkeypatch.context() as patched:
        recorder = Recorder(patched, base)
        async with Scopes.open(base / "cfg") as scopes:
            await scopes.workspace(WORK)
            await story(Teller(scopes, recorder, patched))
    return recorder


async def losses(outage: Outage, number: int, base: Path, initial: Facts) -> list[str]:
    """What is wrong when a daemon starts after the power came back."""
    ledger = Ledger(dict(initial))
    for what, ask, facts in outage.marks:
        if what == "asked":
            ledger.ask(ask, facts)
        else:
            ledger.acknowledge(ask)
    shutil.rmtree(base)
    outage.restore(base)
    async with Scopes.open(base / "cfg") as scopes:
        if scopes.home.find(WORK) is None:
            return ledger.judge({})
        await scopes.call("daemon/sync", {"workspace": WORK})
        left = [f"left behind: {path}" for path in litter(base)]
        found, problems = await facts_of(scopes.call, WORK, base / "ws", allowed=TORN)
        problems += left + ledger.judge(found)
        if not problems and number % CHANGE_EVERY == 0:
            for id in [name.split()[1] for name in found if name.startswith("session ")]:
                params = {"workspace": WORK, "session": id, "messages": [message("new")], "set": {"name": "New"}}
                await scopes.call("messages/append", params)
            await scopes.call("labels/create", {"workspace": WORK, "id": "new", "value": {"name": "New"}})
    return [f"step {outage.moment}: {problem}" for problem in problems]


async def play(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, honest: bool = True, sample: int = SAMPLE
) -> list[str]:
    """All problems of all cuts; of a dishonest disk until something is lost."""
    base = tmp_path / "base"
    initial = new_configuration(base)
    recorder = await record(story, base, monkeypatch)
    monkeypatch.setattr(atomic, "_LIFE", "dead")  # from here on another process
    problems: list[str] = []
    for number, outage in enumerate(recorder.outages(honest=honest, sample=sample)):
        problems += await losses(outage, number, base, initial)
        if not honest and lost(problems):
            break
    return problems


def lost(problems: list[str]) -> bool:
    return any("acknowledged was" in problem for problem in problems)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
@pytest.mark.usefixtures("quick")
async def test_a_power_cut_loses_nothing_acknowledged(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\n".join(await play(story, tmp_path, monkeypatch)) == ""


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
@pytest.mark.usefixtures("quick")
async def test_without_flushing_the_same_cuts_do_lose(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lost(await play(story, tmp_path, monkeypatch, honest=False))
