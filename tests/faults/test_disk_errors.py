"""Every disk call of every change fails in turn, in the whole daemon: one answer, which is true; what is served, told
to clients and on disk stays one and the same; and the next try works.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen

from craftd.model.records import Record
from craftd.store import disk
from craftd.workspace import reshaping
from craftd.workspace import workspace as workspaces
from craftd.workspace.messages import AppendMessages
from craftd.workspace.sessions import SessionUnit
from tests.faults.harness import Breaker
from tests.faults.scopes import ORIGIN
from tests.faults.served import Served, differences, scoped
from tests.wire import Failed


@frozen
class Change:
    """One request. params: for the *n*-th try, on a record of its own that `ready` has made."""

    method: str
    params: Callable[[Served, int], Record]
    ready: list[tuple[str, Callable[[int], Record]]] = field(factory=list)


SESSION = [("sessions/create", lambda n: {"id": f"s{n}", "value": {"name": "Old"}})]
WITH_MESSAGE = [*SESSION, ("messages/append", lambda n: {"session": f"s{n}", "messages": messages("m1")})]
DELETED = [*WITH_MESSAGE, ("sessions/delete", lambda n: {"id": f"s{n}"})]
ARCHIVED = [("sessions/create", lambda n: {"id": f"s{n}", "value": {"isArchived": True, "archivedAt": 10**12}})]
WITH_FILE = [
    *WITH_MESSAGE,
    ("files/write", lambda n: {"path": f"sessions/s{n}/data/a.txt", "content": {"text": "x" * 1000}}),
]
UNREAD = [("sessions/create", lambda n: {"id": f"s{n}", "value": {"name": "Old", "hasUnread": True}})]
LABEL = [("labels/create", lambda n: {"id": f"r{n}", "value": {"name": "Old"}})]
STATUS = [("statuses/create", lambda n: {"id": f"r{n}", "value": {"label": "Old"}})]
PROJECT = [("projects/create", lambda n: {"id": f"proj_{n}", "value": {"name": f"P {n}", "description": "Old"}})]
SOURCE_VALUE = {"name": "S", "type": "local", "local": {"path": "/tmp"}, "tagline": "Old", "guide": "Old"}
SOURCE = [("sources/create", lambda n: {"id": f"r{n}", "value": SOURCE_VALUE})]
SKILL = [("skills/create", lambda n: {"id": f"r{n}", "value": {"name": "K", "description": "Old", "content": "Old"}})]
WORKSPACE = [("workspaces/create", lambda n: {"id": f"w{n}", "value": {"name": f"W {n}"}})]


def messages(*ids: str, times: int = 1000) -> list[Record]:
    return [{"id": id, "content": "x" * times, "type": "user", "timestamp": 5} for id in ids]


def long_result(n: int, text: str = "ab " * 20_000) -> Record:
    return {"id": "t1", "content": "", "timestamp": 5, "toolName": "Read", "toolResult": text, "type": "tool"}


QUOTE = {"type": "text-quote", "exact": "x"}


def file(n: int, text: str) -> Record:
    return {"path": f"sessions/first/data/{n}/a.txt", "content": {"text": text}}


FILE = [("files/write", lambda n: file(n, "Old"))]


def setting(prefix: str, **members: Any) -> Callable[[Served, int], Record]:
    return lambda _, n: {"id": f"{prefix}{n}", "patch": {"set": members}}


def at_an_empty_folder(served: Served, n: int) -> Record:
    (path := served.base / f"empty-{n}").mkdir(exist_ok=True)
    return {"id": f"w{n}", "value": {"path": str(path)}}


def bundle(n: int, text: str) -> Record:
    """With one source, as content."""
    config = {**SOURCE_VALUE, "id": "s", "slug": f"r{n}", "enabled": True, "provider": "p", "tagline": text}
    files = [
        {"relativePath": path, "contentBase64": base64.b64encode(text.encode()).decode(), "size": len(text)}
        for path in ("guide.md", "docs/deep/a.txt")
    ]
    del config["guide"]
    source = {"slug": f"r{n}", "config": config, "files": files}
    return {"text": json.dumps({"version": 1, "exportedAt": 1, "resources": {"sources": [source]}})}


def session_bundle(n: int, text: str) -> Record:
    """With one session, as content."""
    data = base64.b64encode(text.encode()).decode()
    header = {"id": f"s{n}", "workspaceRootPath": "/gone", "createdAt": 1, "name": text}
    session = {"header": header, "messages": messages("m1", "m9")}
    files = [{"relativePath": "plans/a.md", "contentBase64": data, "size": len(text)}]
    return {"text": json.dumps({"version": 1, "session": session, "files": files})}


def automations(n: int) -> Record:
    matcher = {"actions": [{"type": "prompt", "prompt": "go"}]}
    one = {"id": f"a{n}", "event": "FlagChange", "matcher": matcher}
    return {"text": json.dumps({"version": 1, "exportedAt": 1, "resources": {"automations": [one]}})}


CHANGES = {
    "a new session": Change("sessions/create", lambda _, n: {"id": f"s{n}", "value": {"name": "New"}}),
    "an append": Change("messages/append", lambda _, n: {"session": f"s{n}", "messages": messages("m2")}, WITH_MESSAGE),
    "an append that sets": Change(
        "messages/append",
        lambda _, n: {"session": f"s{n}", "messages": messages("m2", "m3"), "set": {"name": "New"}},
        WITH_MESSAGE,
    ),
    "an append with a long result": Change(
        "messages/append", lambda _, n: {"session": f"s{n}", "messages": [long_result(n)]}, WITH_MESSAGE
    ),
    "a message that gets a long result": Change(
        "messages/update",
        lambda _, n: {"session": f"s{n}", "id": "t1", "patch": {"set": {"toolResult": long_result(n)["toolResult"]}}},
        [*SESSION, ("messages/append", lambda n: {"session": f"s{n}", "messages": [long_result(n, "x")]})],
    ),
    "an annotated message": Change(
        "annotations/create",
        lambda _, n: {"session": f"s{n}", "message": "m1", "id": "a1", "value": {"target": {"selectors": [QUOTE]}}},
        WITH_MESSAGE,
    ),
    "a renamed session": Change("sessions/update", setting("s", name="New"), WITH_MESSAGE),
    "an edited message": Change(
        "messages/update",
        lambda _, n: {"session": f"s{n}", "id": "m1", "patch": {"set": {"content": "New"}}},
        WITH_MESSAGE,
    ),
    "a deleted message": Change("messages/delete", lambda _, n: {"session": f"s{n}", "id": "m1"}, WITH_MESSAGE),
    "a session cut short": Change("messages/truncate", lambda _, n: {"session": f"s{n}", "keep": 0}, WITH_MESSAGE),
    "a session marked as read": Change("sessions/markRead", lambda _, n: {"sessions": [f"s{n}"]}, UNREAD),
    "a session in the trash": Change("sessions/delete", lambda _, n: {"id": f"s{n}"}, WITH_MESSAGE),
    "a restored session": Change("sessions/restore", lambda _, n: {"id": f"s{n}"}, DELETED),
    "an emptied trash": Change("sessions/emptyTrash", lambda _, n: {}, DELETED),
    "a purged session": Change("sessions/purge", lambda _, n: {"olderThanDays": 1}, ARCHIVED),
    "a branch": Change(
        "sessions/create",
        lambda _, n: {"id": f"b{n}", "value": {}, "from": {"session": f"s{n}", "message": "m1"}},
        WITH_MESSAGE,
    ),
    "a copy": Change("sessions/duplicate", lambda _, n: {"id": f"b{n}", "session": f"s{n}"}, WITH_FILE),
    "a removed session": Change("sessions/delete", lambda _, n: {"id": f"s{n}", "permanent": True}, WITH_MESSAGE),
    "a new label": Change("labels/create", lambda _, n: {"id": f"r{n}", "value": {"name": "New"}}),
    "a renamed label": Change("labels/update", setting("r", name="New"), LABEL),
    "a deleted label": Change("labels/delete", lambda _, n: {"id": f"r{n}"}, LABEL),
    "a renamed status": Change("statuses/update", setting("r", label="New"), STATUS),
    "a new project": Change("projects/create", lambda _, n: {"id": f"proj_{n}", "value": {"name": f"P {n}"}}),
    "a changed project": Change("projects/update", setting("proj_", description="New"), PROJECT),
    "a deleted project": Change("projects/delete", lambda _, n: {"id": f"proj_{n}"}, PROJECT),
    "a new source": Change("sources/create", lambda _, n: {"id": f"r{n}", "value": SOURCE_VALUE}),
    "a source with another guide": Change("sources/update", setting("r", tagline="New", guide="New"), SOURCE),
    "a source without its guide": Change(
        "sources/update",
        lambda _, n: {"id": f"r{n}", "patch": {"unset": ["/guide"], "set": {"tagline": "New"}}},
        SOURCE,
    ),
    "an imported source": Change("bundles/import", lambda _, n: {"content": bundle(n, "New")}),
    "an imported source in the place of another": Change(
        "bundles/import", lambda _, n: {"content": bundle(n, "New"), "onConflict": "overwrite"}, SOURCE
    ),
    "an imported session": Change("bundles/import", lambda _, n: {"content": session_bundle(n, "New")}),
    "a session that an import replaces": Change(
        "bundles/import",
        lambda _, n: {"content": session_bundle(n, "New"), "onConflict": "overwrite"},
        WITH_MESSAGE,
    ),
    "imported automations": Change("bundles/import", lambda _, n: {"content": automations(n)}),
    "a changed skill": Change("skills/update", setting("r", description="New", content="New"), SKILL),
    "other rules": Change(
        "permissions/update", lambda _, n: {"id": "workspace", "patch": {"set": {"version": f"{n}"}}}
    ),
    "a new file": Change("files/write", lambda _, n: file(n, "New")),
    "a changed file": Change("files/write", lambda _, n: file(n, "New"), FILE),
    "a changed file, by way of the pool": Change("files/write", lambda _, n: file(n, "x" * 300_000), FILE),
    "a deleted file": Change("files/delete", lambda _, n: {"path": file(n, "")["path"]}, FILE),
    "a new workspace": Change("workspaces/create", lambda _, n: {"id": f"w{n}", "value": {"name": f"W {n}"}}),
    "a workspace in an empty folder": Change("workspaces/create", at_an_empty_folder),
    "a renamed workspace": Change("workspaces/update", setting("w", name="New"), WORKSPACE),
    "a workspace taken out": Change("workspaces/delete", lambda _, n: {"id": f"w{n}"}, WORKSPACE),
}

DONE_ALREADY = {"AlreadyExists", "NotFound"}
"""What a change that was written answers when it is tried again."""

REMOVING = {"remove", "remove_tree", "remove_directory"}


async def failures(served: Served, breaker: Breaker, change: Change, number: int, *, torn: bool) -> list[str]:
    """Make each disk call of *change* fail, then try again on a sound disk; what went wrong, in words."""
    problems: list[str] = []
    for step in range(200):
        shutil.rmtree(served.root / ".trash", ignore_errors=True)
        for method, params in change.ready:
            await served.call(method, **params(step))
        await served.wire.call("daemon/release")  # so that the change begins with the app's lock
        await served.call("daemon/sync", workspace=served.workspace.id)
        before = await served.state()
        served.follow()
        params = scoped(change.method, change.params(served, step))
        breaker.arm(step, number, torn=torn)
        answer = await attempt(served, change.method, params)
        reached = breaker.calls[step] if len(breaker.calls) > step else None
        breaker.disarm()
        after, wrong = await served.check(litter_allowed=reached in REMOVING)
        written = answer in ("done", "written")
        if answer not in ("done", "written", "failed"):
            wrong.append(f"the answer is {answer}")
        if (after != before) != written:
            wrong.append(f"the answer is {answer}, but the change is {'not ' if written else ''}there")
        again = await attempt(served, change.method, params)
        if again != "done" and not (written and again in DONE_ALREADY):
            wrong.append(f"the next try is {again}")
        last, more = await served.check(litter_allowed=reached in REMOVING)
        wrong += [f"after the next try: {problem}" for problem in more]
        if last == before:
            wrong.append("the next try changed nothing")
        problems += [f"call {step} ({reached}): {problem}" for problem in wrong]
        if reached is None:
            return problems
    raise AssertionError("the change never came to its end")


async def attempt(served: Served, method: str, params: Record) -> str:
    """`done`; `failed` and `written` when the disk refused; else the error's name."""
    id = served.wire.ask(method, params)
    try:
        await served.wire.answer(id)
        answer = "done"
    except Failed as error:
        refused = error.name == "IoError"
        answer = error.name if not refused else "written" if error.error["data"].get("written") else "failed"
    await served.wire.call("daemon/sync", {})
    assert sum(message.get("id") == id for message in served.wire.received) == 1, "not exactly one answer"
    return answer


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.usefixtures("run_time", "quick")
async def test_a_full_disk_at_any_moment_is_answered_truly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    breaker = Breaker(monkeypatch)
    async with Served.start(tmp_path) as served:
        assert await failures(served, breaker, change, errno.ENOSPC, torn=True) == []


@pytest.mark.parametrize("change", ["an append", "an append that sets", "a source with another guide"])
@pytest.mark.usefixtures("run_time", "quick")
async def test_a_broken_disk_at_any_moment_is_answered_truly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    breaker = Breaker(monkeypatch)
    async with Served.start(tmp_path) as served:
        assert await failures(served, breaker, CHANGES[change], errno.EIO, torn=False) == []


@pytest.mark.parametrize(
    "change",
    [
        "an append that sets",
        "a message that gets a long result",
        "an annotated message",
        "a renamed session",
        "an edited message",
        "a deleted message",
    ],
)
@pytest.mark.usefixtures("run_time", "quick")
async def test_a_prepared_rewrite_may_fail_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(workspaces, "PREPARE_ABOVE", 0)
    breaker = Breaker(monkeypatch)
    async with Served.start(tmp_path) as served:
        assert await failures(served, breaker, CHANGES[change], errno.ENOSPC, torn=True) == []


OF_MANY: dict[str, tuple[str, Callable[[int], Record], Record]] = {
    "labels/delete": ("labels", lambda n: {"id": f"r{n}"}, {"labels": None}),
    "labels/rename": ("labels", lambda n: {"id": f"r{n}", "newId": f"new-{n}"}, {"labels": ["new-{n}"]}),
    "projects/delete": ("projects", lambda n: {"id": f"proj_{n}"}, {"projectId": None}),
}
"""Changes of a definition that reach into sessions: the noun, the params, what the session has at the end."""


@pytest.mark.parametrize("method", OF_MANY)
@pytest.mark.usefixtures("run_time", "quick")
async def test_a_full_disk_in_a_change_of_many_is_answered_truly_and_the_next_try_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(reshaping, "AGAIN_SECONDS", 0)
    noun, asked, end = OF_MANY[method]
    breaker = Breaker(monkeypatch)
    failed = 0
    async with Served.start(tmp_path) as served:
        for step in range(200):
            for made, params in LABEL if noun == "labels" else PROJECT:
                await served.call(made, **params(step))
            bound = {"labels": [f"r{step}"]} if noun == "labels" else {"projectId": f"proj_{step}"}
            await served.call("sessions/create", id=f"s{step}", value={"name": "Bound", **bound})
            await served.wire.call("daemon/release")
            await served.call("daemon/sync", workspace=served.workspace.id)
            served.follow()
            breaker.arm(step, errno.ENOSPC, torn=True)
            answer = await attempt(served, method, scoped(method, asked(step)))
            reached = breaker.calls[step] if len(breaker.calls) > step else None
            breaker.disarm()
            failed += answer != "done"
            state, problems = await served.check(litter_allowed=reached in REMOVING)
            assert problems == [], (step, reached)
            if answer != "done":
                again = await attempt(served, method, scoped(method, asked(step)))
                assert again in ("done", "NotFound"), (step, reached, answer)
                while again == "NotFound" and list((served.base / "cfg/craftd/intents").glob("*")):
                    await served.call("daemon/sync", workspace=served.workspace.id)  # it finishes by itself
                state, problems = await served.check(litter_allowed=reached in REMOVING)
                assert problems == [], (step, reached)
            value = state["sessions"][f"s{step}"][1]
            [(name, left)] = end.items()
            wanted = left and [entry.format(n=step) for entry in left]
            assert (value.get(name) or None) == wanted, (step, reached, answer)
            assert asked(step)["id"] not in state[noun], (step, reached, answer)
            if reached is None:
                break
    assert failed > 10


@pytest.mark.usefixtures("run_time", "quick")
async def test_a_full_disk_while_bytes_are_staged_leaves_a_blob_that_can_be_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaker = Breaker(monkeypatch)
    async with Served.start(tmp_path) as served:
        for step in range(10):
            blob = (await served.wire.call("blobs/create", {"size": 6}))["blob"]
            piece = {"blob": blob, "offset": 0, "data": "YWJjZGVm"}
            breaker.arm(step, errno.ENOSPC, torn=True)
            answer = await attempt(served, "blobs/write", piece)
            reached = breaker.calls[step] if len(breaker.calls) > step else None
            breaker.disarm()
            assert (answer == "failed") == (reached is not None)
            if answer == "failed":
                with pytest.raises(Failed, match="ValidationFailed"):
                    await served.call("files/write", path="a.txt", content={"blob": blob})
                assert await attempt(served, "blobs/write", piece) == "done"
            await served.call("files/write", path="a.txt", content={"blob": blob})
            assert (served.root / "a.txt").read_text() == "abcdef"
            if reached is None:
                break
        assert step in range(1, 9)  # something failed, and then nothing


@pytest.mark.usefixtures("run_time", "quick")
async def test_errors_that_are_swallowed_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that logs its disk errors and goes on."""
    breaker = Breaker(monkeypatch)
    honest = SessionUnit.write

    def careless(unit: SessionUnit) -> None:
        with suppress(OSError):
            honest(unit)

    monkeypatch.setattr(SessionUnit, "write", careless)
    async with Served.start(tmp_path) as served:
        found = await failures(served, breaker, CHANGES["an append"], errno.ENOSPC, torn=True)
    assert any("the answer is done, but the change is" in problem for problem in found)


@pytest.mark.usefixtures("run_time", "quick")
async def test_a_damaged_line_is_never_gone_before_its_bytes_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaker = Breaker(monkeypatch)
    async with Served.start(tmp_path) as served:
        path = served.root / "sessions" / "first" / "session.jsonl"
        for step in range(100):
            broken = b"broken %d" % step
            with path.open("ab") as file:
                file.write(broken + b"\n")
            await served.call("daemon/sync")
            await served.wire.call("daemon/release")
            damaged = {"session": "first", "id": f"~{path.read_bytes().index(broken)}"}
            breaker.arm(step, errno.ENOSPC, torn=True, within=served.root / "sessions")
            answer = await attempt(served, "messages/delete", scoped("messages/delete", damaged))
            reached = breaker.calls[step] if len(breaker.calls) > step else None
            breaker.disarm()
            kept = path.with_name(".unreadable.jsonl")
            assert (broken in path.read_bytes()) == (answer == "failed"), f"{step} {reached}"
            assert answer == "failed" or broken in kept.read_bytes().split(b"\n"), f"{step} {reached}"
            if answer == "failed":
                damaged["id"] = f"~{path.read_bytes().index(broken)}"
                assert await attempt(served, "messages/delete", scoped("messages/delete", damaged)) == "done"
                assert broken in kept.read_bytes().split(b"\n")
            assert (await served.check(litter_allowed=reached in REMOVING))[1] == []
            if reached is None:
                break
        assert step > 5


@pytest.mark.usefixtures("run_time", "quick")
async def test_bringing_line_1_up_to_date_may_fail_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    breaker = Breaker(monkeypatch)
    async with Served.start(tmp_path) as served:
        await served.call("messages/append", session="first", messages=messages("long", times=50_000))
        await served.wire.call("daemon/release")
        for step in range(100):
            await served.call("messages/append", session="first", messages=messages(f"m-{step}", times=1))
            before = await served.state()
            breaker.arm(step, errno.ENOSPC, torn=True)
            assert await attempt(served, "daemon/release", {}) in ("done", "failed")
            reached = breaker.calls[step] if len(breaker.calls) > step else None
            breaker.disarm()
            assert await served.check(litter_allowed=reached in REMOVING) == (before, []), f"{step} {reached}"
            if reached is None:
                break
        assert step > 10
        assert header(served, "first")["messageCount"] == step + 3


@pytest.mark.usefixtures("run_time", "quick")
async def test_stopping_may_fail_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    breaker = Breaker(monkeypatch)
    for step in range(100):
        async with Served.start(tmp_path / str(step)) as served:
            await served.call("messages/append", session="first", messages=messages("long", times=50_000))
            await served.wire.call("daemon/release")
            await served.call("messages/append", session="first", messages=messages("m2", times=1))
            before = await served.state()
            breaker.arm(step, errno.EIO)
        reached = breaker.calls[step] if len(breaker.calls) > step else None
        breaker.disarm()
        assert differences(before, await served.state_on_disk()) == [], f"{step} {reached}"
        if reached is None:
            break
    assert step > 10


@pytest.mark.usefixtures("run_time", "quick")
async def test_a_session_that_cannot_be_written_stops_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaker = Breaker(monkeypatch)
    async with Served.start(tmp_path) as served:
        for n in (1, 2):
            for method, params in WITH_MESSAGE:
                await served.call(method, **params(n))
        breaker.arm(0, errno.ENOSPC, torn=True, forever=True, within=served.root / "sessions" / "s1")
        asked = []
        for at in range(20):
            for session in ("s1", "s2"):
                params: Record = {"session": session, "messages": messages(f"n-{at}")}
                if at % 5 == 0:
                    params["set"] = {"name": f"name {at}"}
                asked.append((session, served.wire.ask("messages/append", scoped("messages/append", params))))
        for session, id in asked:
            if session == "s1":
                with pytest.raises(Failed, match="IoError"):
                    await served.wire.answer(id)
            else:
                await served.wire.answer(id)
        await served.call("labels/create", id="r1", value={"name": "One"})
        breaker.disarm()
        await served.call("messages/append", session="s1", messages=messages("m2"))
        state, problems = await served.check()
        assert problems == []
        assert [one["id"] for one in state["messages"]["s1"]] == ["m1", "m2"]
        assert [one["id"] for one in state["messages"]["s2"]] == ["m1", *(f"n-{at}" for at in range(20))]


@pytest.mark.usefixtures("run_time", "quick")
async def test_commits_of_one_round_get_each_its_own_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = limit_writes(monkeypatch)
    async with Served.start(tmp_path) as served:
        rooms.append(3000)
        commits = [
            AppendMessages(origin=ORIGIN, labels=dict, id="first", messages=messages(f"m-{at}", times=times), set=set)
            for at, (times, set) in enumerate(
                ((100, None), (5000, None), (100, {"name": "New"}), (5000, {"name": "No"}))
            )
        ]
        verdicts = await asyncio.gather(*map(served.workspace.commit, commits), return_exceptions=True)
        assert [getattr(verdict, "errno", "done") for verdict in verdicts] == ["done", "ENOSPC", "done", "ENOSPC"]
        rooms.clear()
        state, problems = await served.check()
        assert problems == []
        assert [one["id"] for one in state["messages"]["first"]] == ["m1", "m-0", "m-2"]
        assert state["sessions"]["first"][1]["name"] == "New"


@pytest.mark.usefixtures("run_time", "quick")
async def test_labels_of_one_round_get_each_their_own_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = limit_writes(monkeypatch)
    async with Served.start(tmp_path) as served:
        rooms.append(6000)
        names = ["One", "Two " * 2000, "Three"]
        verdicts = await asyncio.gather(
            *(
                served.workspace.verbs.create("labels", {"name": name}, f"r{at}", ORIGIN, None)
                for at, name in enumerate(names)
            ),
            return_exceptions=True,
        )
        assert [getattr(verdict, "errno", "done") for verdict in verdicts] == ["done", "ENOSPC", "done"]
        rooms.clear()
        state, problems = await served.check()
        assert problems == []
        assert {"r0", "r2"} <= state["labels"].keys()
        assert "r1" not in state["labels"]


@pytest.mark.parametrize(
    ("change", "again"),
    [("a renamed session", "done"), ("a renamed label", "done"), ("a new session", "AlreadyExists"),
     ("a session in the trash", "NotFound"), ("a new workspace", "AlreadyExists")],
)  # fmt: skip
@pytest.mark.usefixtures("run_time", "quick")
async def test_a_repeat_of_what_is_written_but_not_safe_waits_until_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, again: str
) -> None:
    async with Served.start(tmp_path) as served:
        for method, params in CHANGES[change].ready:
            await served.call(method, **params(0))
        await served.wire.call("daemon/release")
        with monkeypatch.context() as patched:
            fail_flushing_of_folders(patched, after="exchange" if change.startswith("a renamed") else "rename_new")
            what = CHANGES[change].method, scoped(CHANGES[change].method, CHANGES[change].params(served, 0))
            if change == "a new workspace":  # its folder can be made, the list of workspaces not be made safe
                patched.undo()
                fail_flushing_of_folders(patched, after="exchange")
            assert await attempt(served, *what) == "written"
            assert await attempt(served, *what) == "failed"
        assert await attempt(served, *what) == again
        assert (await served.check())[1] == []


@pytest.mark.usefixtures("run_time", "quick")
async def test_after_a_failed_flush_a_session_waits_for_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaker = Breaker(monkeypatch)
    async with Served.start(tmp_path) as served:
        await served.call("messages/append", session="first", messages=messages("m2"))
        before, problems = await served.check()
        assert problems == []
        params = scoped("messages/append", {"session": "first", "messages": messages("m3")})
        breaker.arm(1, errno.EIO, within=served.root / "sessions")
        assert await attempt(served, "messages/append", params) == "failed"
        assert breaker.calls[:2] == ["write", "flush"]
        assert await served.check() == (before, [])
        for step in range(3):  # flushing would work again, but nobody asks the old file
            breaker.arm(step, errno.ENOSPC, forever=True, within=served.root / "sessions")
            assert await attempt(served, "messages/append", params) == "failed"
            assert "flush" not in breaker.calls
            assert (await served.check(litter_allowed=True))[0] == before
        breaker.disarm()
        assert await attempt(served, "messages/append", params) == "done"
        assert "exchange" in breaker.calls
        await served.wire.call("daemon/release")
        breaker.arm(-1, 0, within=served.root / "sessions")
        await served.call("messages/append", session="first", messages=messages("m4", times=1))
        assert breaker.calls == ["write", "flush"]
        state, problems = await served.check()
        assert problems == []
        assert [one["id"] for one in state["messages"]["first"]] == ["m1", "m2", "m3", "m4"]


def limit_writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The last number in the list: more bytes than that at once do not fit on the disk any more."""
    rooms: list[int] = []
    write = disk.write

    def limited(fd: int, data: bytes) -> None:
        if rooms and len(data) > rooms[-1]:
            raise OSError(errno.ENOSPC, "ENOSPC")
        write(fd, data)

    monkeypatch.setattr(disk, "write", limited)
    return rooms


def fail_flushing_of_folders(monkeypatch: pytest.MonkeyPatch, *, after: str) -> None:
    """From the first call of the disk function *after* on."""
    broken = False
    flush, real = disk.flush_directory, getattr(disk, after)

    def flush_directory(path: Path) -> None:
        if broken:
            raise OSError(errno.EIO, "EIO")
        flush(path)

    def then(source: Path, target: Path) -> Any:
        nonlocal broken
        broken = broken or ".server.lock" not in target.name
        return real(source, target)

    monkeypatch.setattr(disk, "flush_directory", flush_directory)
    monkeypatch.setattr(disk, after, then)


def header(served: Served, session: str) -> Any:
    return json.loads((served.root / "sessions" / session / "session.jsonl").read_bytes().split(b"\n")[0])
