"""A session never holds less after a repair than before: full disks, power cuts, kills, other programs' saves."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import Busy
from craftd.model import sessions
from craftd.model.repair import Finding
from craftd.store import disk, repair
from craftd.store.transcript import Transcript
from craftd.workspace.draft import Draft
from craftd.workspace.repair import RepairSession
from tests.faults.harness import CHANGING, Breaker, Recorder
from tests.faults.served import Served, scoped
from tests.faults.test_disk_errors import REMOVING, attempt
from tests.faults.transcripts import line, message, new_session, opened
from tests.workspace.house import CLIENT, House

TAIL = b'{"id":"m3","content":"ha'


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"null\n" + line(message("m2")) + b"\n" + TAIL)


def without_header(path: Path) -> None:
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(first[:30] + b"\n" + rest + b"\0" * 20 + line(message("m2")) + b"\n")


def only_the_tmp(path: Path) -> None:
    torn(path)
    path.rename(path.with_name("session.jsonl.tmp"))
    os.utime(path.with_name("session.jsonl.tmp"), ns=(1, 1))


STATES = (torn, without_header, only_the_tmp)
State = Callable[[Path], None]


def mend(path: Path) -> tuple[Finding, ...]:
    """What the commit does, without a workspace."""
    transcript = opened(path)
    plan = repair.plan(transcript, None)
    if plan.mends:
        assert plan.header is not None
        draft = Draft(transcript, transcript.directory)
        draft.mend(plan.lines)
        header = sessions.after_edit(plan.header, draft.counters, ())
        with repair.original_kept(transcript, ".damaged-1.jsonl"):
            transcript.rewrite(header, replaced=draft.replaced)
    return plan.found


def damaged(base: Path, state: State) -> tuple[Path, bytes]:
    path = new_session(base, "m1")
    state(path)
    return path, there(path)


def there(path: Path) -> bytes:
    """The session's bytes under either name."""
    tmp = path.with_name("session.jsonl.tmp")
    return (path if path.exists() else tmp).read_bytes()


def wrong(path: Path, before: bytes, *, done: bool) -> list[str]:
    """What is there less than before."""
    now = there(path)
    kept = [beside.read_bytes() for beside in path.parent.glob(".damaged-*")]
    if now == before:
        return ["it was answered, and nothing is mended"] if done else []
    if before not in kept:
        return ["the file is another, and what it was is not kept"]
    fresh = opened(path)
    ids = [segment.record and segment.record["id"] for segment in fresh.read(0, len(fresh))]
    return [] if (fresh.damage, ids) == ((), ["m1", "m2"]) else [f"mended it is {ids}, {fresh.damage}"]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
@pytest.mark.parametrize(("number", "half"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_whichever_disk_call_fails_the_file_is_as_it_was_or_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State, number: int, half: bool
) -> None:
    breaker = Breaker(monkeypatch)
    for step in range(100):
        path, before = damaged(tmp_path / str(step), state)
        breaker.arm(step, number, torn=half)
        failed = False
        try:
            mend(path)
        except OSError:
            failed = True
        reached = breaker.calls[step] if len(breaker.calls) > step else None
        breaker.disarm()
        assert wrong(path, before, done=not failed) == [], f"{step} {reached}"
        if there(path) == before and reached != "remove":
            assert {entry.name for entry in path.parent.iterdir()} <= {"session.jsonl", "session.jsonl.tmp"}, reached
        mend(path)
        assert opened(path).damage == ()
        assert before in [beside.read_bytes() for beside in path.parent.glob(".damaged-*")]
        if reached is None:
            break
    assert step > 8


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_killed_at_any_disk_call_it_left_as_much_as_there_was(tmp_path: Path, state: State) -> None:
    for step in range(100):
        path, before = damaged(tmp_path / str(step), state)
        pid = os.fork()
        if pid == 0:
            _die_at(step)
            mend(path)
            os._exit(0)
        killed = os.waitpid(pid, 0)[1] == signal.SIGKILL
        assert wrong(path, before, done=not killed) == [], step
        for beside in path.parent.glob(".damaged-*"):
            beside.unlink() if there(path) == before else None  # half a copy is litter
        mend(path)
        assert opened(path).damage == ()
        if not killed:
            break
    assert step > 8


def _die_at(step: int) -> None:
    """Kill this process instead of its disk call number *step*."""
    calls = 0

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            if calls == step:
                os.kill(os.getpid(), signal.SIGKILL)
            calls += 1
            return function(*args, **kwargs)

        return call

    for name in CHANGING:
        setattr(disk, name, wrapped(getattr(disk, name)))


def outages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State, *, honest: bool) -> list[str]:
    base = tmp_path / "base"
    path, before = damaged(base, state)
    with monkeypatch.context() as patched:
        recorder = Recorder(patched, base)
        mend(path)
        recorder.mark("done")
    problems: list[str] = []
    for number, outage in enumerate(recorder.outages(honest=honest)):
        outage.restore(place := tmp_path / str(number))
        try:
            problems += wrong(place / path.relative_to(base), before, done="done" in outage.marks)
        except OSError as error:
            problems.append(f"nothing is there: {error}")
    return problems


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
@pytest.mark.usefixtures("quick")
def test_a_power_cut_at_any_moment_leaves_as_much_as_there_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State
) -> None:
    assert outages(tmp_path, monkeypatch, state, honest=True) == []


@pytest.mark.usefixtures("quick")
def test_without_flushing_the_same_cuts_do_lose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outages(tmp_path, monkeypatch, torn, honest=False) != []


@pytest.mark.usefixtures("run_time", "quick")
async def test_the_answer_of_a_daemon_whose_disk_fails_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    breaker = Breaker(monkeypatch)
    async with Served.start(tmp_path) as served:
        path = served.root / "sessions" / "first" / "session.jsonl"
        for step in range(100):
            with path.open("ab") as file:
                file.write(b"null\n" + line(message(f"n{step}")) + b"\nbroken\n")
            await served.call("daemon/sync", workspace=served.workspace.id)
            await served.wire.call("daemon/release")
            before = path.read_bytes()
            breaker.arm(step, errno.ENOSPC, torn=True, within=served.root / "sessions")
            answer = await attempt(served, "sessions/repair", scoped("sessions/repair", {"id": "first"}))
            reached = breaker.calls[step] if len(breaker.calls) > step else None
            breaker.disarm()
            kept = [beside.read_bytes() for beside in path.parent.glob(".damaged-*")]
            assert (path.read_bytes() == before) == (answer == "failed"), f"{step} {reached}"
            assert answer == "failed" or before in kept, f"{step} {reached}"
            item = (await served.call("sessions/get", id="first"))["item"]
            assert ("damage" in item["info"]) == (answer == "failed")
            if answer == "failed":
                assert await attempt(served, "sessions/repair", scoped("sessions/repair", {"id": "first"})) == "done"
            state, problems = await served.check(litter_allowed=reached in REMOVING)
            assert problems == [], f"{step} {reached}"
            assert [one["id"] for one in state["messages"]["first"]] == ["m1", *(f"n{at}" for at in range(step + 1))]
            if reached is None:
                break
        assert step > 8


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
@pytest.mark.usefixtures("quick")
async def test_a_save_of_another_program_between_any_two_calls_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State
) -> None:
    for step in range(100):
        house = House.make(tmp_path / str(step))
        path, _ = damaged(house.root / "sessions", state)
        with monkeypatch.context() as patched:
            saved = _save_at(patched, step, path)
            await house.open()
            saved.armed = True
            with suppress(Busy):  # it was away for a moment
                await house.workspace.commit(RepairSession(origin=CLIENT, id=path.parent.name))
            saved.armed = False
            await house.sync()
            ids = await house.ids(path.parent.name)
            assert set(ids) >= ({"m1", "m2", "theirs"} if saved.done else {"m1", "m2"}), (step, ids)
            assert ids == [segment.record["id"] for segment in _messages(opened(path))]
            await house.close()
        if not saved.done:
            break
    assert step > 8


def _messages(transcript: Transcript) -> list[Any]:
    return [segment for segment in transcript.read(0, len(transcript)) if segment.record is not None]


class _Save:
    """Another program saves the file as the app does, before disk call number *step*: what is there and one more."""

    armed = False
    done = False

    def __init__(self, step: int, path: Path) -> None:
        self.step, self.path, self.calls = step, path, 0

    def before(self) -> None:
        if not self.armed or self.done:
            return
        if self.calls == self.step:
            self.done = True
            data = there(self.path)
            data += b"" if data.endswith(b"\n") else b"\n"
            beside = self.path.with_name("theirs.new")
            beside.write_bytes(data + line(message("theirs")) + b"\n")
            self.path.unlink(missing_ok=True)
            self.path.with_name("session.jsonl.tmp").unlink(missing_ok=True)
            beside.rename(self.path)
        self.calls += 1


def _save_at(monkeypatch: pytest.MonkeyPatch, step: int, path: Path) -> _Save:
    save = _Save(step, path)

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            save.before()
            return function(*args, **kwargs)

        return call

    for name in CHANGING:
        monkeypatch.setattr(disk, name, wrapped(getattr(disk, name)))
    return save
