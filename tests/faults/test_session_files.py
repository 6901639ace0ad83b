"""Every disk call of a change of plans, notes, attachments and drafts fails in turn, in the whole daemon."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model.records import Record
from tests.faults.harness import Breaker
from tests.faults.served import Served, scoped
from tests.faults.test_disk_errors import REMOVING, SESSION, Change, attempt, failures


class WithFiles(Served):
    """What its sessions have beside their messages counts as their state too."""

    def _files(self) -> Record:
        found = super()._files()
        for pattern in ("plans/*", "notes.md", "attachments/*"):
            for path in self.root.glob(f"sessions/*/{pattern}"):
                found[str(path.relative_to(self.root))] = path.read_text()
        drafts = self.config / "drafts.json"
        found["drafts"] = json.loads(drafts.read_bytes())["drafts"] if drafts.exists() else {}
        return found


def of_plan(n: int, **more: Any) -> Record:
    return {"session": f"s{n}", "id": "a.md", **more}


ID = "96573f6c-46ea-4191-a3d2-ea5d9db4cf31"
PLAN = [*SESSION, ("plans/create", lambda n: of_plan(n, value={"text": "# Old\n"}))]
NOTES = [*SESSION, ("notes/update", lambda n: {"session": f"s{n}", "text": "Old"})]
DRAFT = [*SESSION, ("drafts/update", lambda n: {"session": f"s{n}", "text": "Old"})]
ATTACHMENT = [
    *SESSION,
    *(
        (
            "files/write",
            lambda n, name=name: {"session": f"s{n}", "path": f"attachments/{ID}_{name}", "content": {"text": "x"}},
        )
        for name in ("a.docx", "a.docx.md", "thumb.png")
    ),
]

CHANGES = {
    "a new plan": Change("plans/create", lambda _, n: {"session": f"s{n}", "value": {"title": "New"}}, SESSION),
    "a plan of a chosen name": Change("plans/create", lambda _, n: of_plan(n, value={"text": "New"}), SESSION),
    "a changed plan": Change("plans/update", lambda _, n: of_plan(n, patch={"set": {"title": "New"}}), PLAN),
    "a deleted plan": Change("plans/delete", lambda _, n: of_plan(n), PLAN),
    "first notes": Change("notes/update", lambda _, n: {"session": f"s{n}", "text": "New"}, SESSION),
    "other notes": Change("notes/update", lambda _, n: {"session": f"s{n}", "text": "New"}, NOTES),
    "an attachment": Change(
        "attachments/create",
        lambda _, n: {"session": f"s{n}", "value": {"name": "a.txt"}, "content": {"text": "x" * 1000}},
        SESSION,
    ),
    "a first draft": Change("drafts/update", lambda _, n: {"session": f"s{n}", "text": "New"}, SESSION),
    "another draft": Change("drafts/update", lambda _, n: {"session": f"s{n}", "text": "New"}, DRAFT),
    "a forgotten draft": Change("drafts/delete", lambda _, n: {"session": f"s{n}"}, DRAFT),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.usefixtures("run_time", "quick")
async def test_a_full_disk_at_any_moment_is_answered_truly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    breaker = Breaker(monkeypatch)
    async with WithFiles.start(tmp_path) as served:
        assert await failures(served, breaker, change, errno.ENOSPC, torn=True) == []


@pytest.mark.usefixtures("run_time", "quick")
async def test_no_session_waits_for_a_plan_that_is_gone_whichever_call_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaker = Breaker(monkeypatch)
    async with WithFiles.start(tmp_path) as served:
        for step in range(100):
            for method, params in PLAN:
                await served.call(method, **params(step))
            plan = served.root / f"sessions/s{step}/plans/a.md"
            await served.call(
                "sessions/update", id=f"s{step}", patch={"set": {"pendingPlanExecution": {"planPath": str(plan)}}}
            )
            await served.wire.call("daemon/release")
            breaker.arm(step, errno.ENOSPC, torn=True)
            answer = await attempt(served, "plans/delete", scoped("plans/delete", of_plan(step)))
            reached = breaker.calls[step] if len(breaker.calls) > step else None
            breaker.disarm()
            line = json.loads((served.root / f"sessions/s{step}/session.jsonl").read_bytes().splitlines()[0])
            assert plan.exists() or "pendingPlanExecution" not in line, (step, reached)
            state, problems = await served.check(litter_allowed=reached in REMOVING)
            assert problems == [], (step, reached)
            assert ("pendingPlanExecution" in state["sessions"][f"s{step}"][1]) == ("pendingPlanExecution" in line)
            if answer == "failed":
                assert await attempt(served, "plans/delete", scoped("plans/delete", of_plan(step))) == "done"
            assert not plan.exists(), (step, reached, answer)
            if reached is None:
                break
        assert step > 5


@pytest.mark.usefixtures("run_time", "quick")
async def test_an_attachment_is_whole_as_long_as_it_is_listed_whichever_call_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaker = Breaker(monkeypatch)
    async with WithFiles.start(tmp_path) as served:
        for step in range(100):
            for method, params in ATTACHMENT:
                await served.call(method, **params(step))
            await served.wire.call("daemon/release")
            asked = scoped("attachments/delete", {"session": f"s{step}", "id": ID})
            breaker.arm(step, errno.ENOSPC, torn=True)
            answer = await attempt(served, "attachments/delete", asked)
            reached = breaker.calls[step] if len(breaker.calls) > step else None
            breaker.disarm()
            listed = (await served.call("attachments/list", session=f"s{step}"))["items"]
            there = sorted(path.name for path in (served.root / f"sessions/s{step}/attachments").iterdir())
            assert [item["id"] for item in listed] == ([ID] if there else []), (step, reached)
            assert not there or f"{ID}_a.docx" in there, (step, reached)
            assert (answer == "failed") == bool(there), (step, reached, answer)
            if there:
                assert await attempt(served, "attachments/delete", asked) == "done", (step, reached)
            assert (await served.check(litter_allowed=reached in REMOVING))[1] == [], (step, reached)
            if reached is None:
                break
        assert step > 5
