"""Files in the folder of a record: what somebody else does to them at the wrong moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from craftd.errors import NotFound, VersionConflict
from craftd.store import disk
from craftd.store.atomic import of_stat
from craftd.workspace import kept_out, session_files
from craftd.workspace.attachments import WriteBeside
from craftd.workspace.commit import Planned
from craftd.workspace.files import DeleteFile, Given, version_of
from craftd.workspace.record_files import EditText
from craftd.workspace.session_files import ForgetPlan
from craftd.workspace.sessions import SessionUnit
from tests.workspace.house import CLIENT, SESSION, House, rename_over


async def test_a_text_that_is_saved_while_it_is_edited_is_edited_anew(house: House) -> None:
    plan = house.root / "sessions" / SESSION / "plans" / "a.md"
    plan.parent.mkdir(exist_ok=True)
    plan.write_text("old")
    seen = []

    def edit(text: str) -> str:
        seen.append(text)
        if text == "old":
            rename_over(plan, b"theirs")
        return f"{text} and mine"

    parts = ("sessions", SESSION, "plans", "a.md")
    done = await house.workspace.commit(EditText(origin=CLIENT, parts=parts, edit=edit, what="the plan", existing=True))
    assert (seen, plan.read_text()) == (["old", "theirs"], "theirs and mine")
    assert done.answer.text == "theirs and mine"


def test_a_folder_that_somebody_else_made_is_made_safe_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its maker need not have flushed its name."""
    (tmp_path / "long_responses").mkdir()
    flushed: list[Path] = []
    monkeypatch.setattr(disk, "flush_directory", flushed.append)
    kept_out.write(tmp_path, {"long_responses/a.txt": b"x"})
    assert set(flushed) == {tmp_path, tmp_path / "long_responses"}


async def test_a_plan_that_is_changed_while_it_is_deleted_is_still_waited_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = house.root / "sessions" / SESSION / "plans" / "a.md"
    plan.parent.mkdir(exist_ok=True)
    plan.write_text("old")
    waits = {"planPath": str(plan), "awaitingCompaction": False, "executionDispatched": False}
    await house.update("sessions", SESSION, pendingPlanExecution=waits)
    forget = ForgetPlan.plan

    def changed_meanwhile(commit: ForgetPlan, unit: SessionUnit, now: int) -> Planned:
        rename_over(plan, b"theirs")
        return forget(commit, unit, now)

    monkeypatch.setattr(ForgetPlan, "plan", changed_meanwhile)
    parts = ("sessions", SESSION, "plans", "a.md")
    with house.workspace.ground().found(parts) as spot:
        assert spot.status is not None
        version = version_of(of_stat(spot.status))
    before = house.value("sessions", SESSION)["pendingPlanExecution"]
    with pytest.raises(VersionConflict):
        await session_files.delete(house.workspace, DeleteFile(origin=CLIENT, parts=parts, expected=version))
    assert plan.read_text() == "theirs"
    assert house.value("sessions", SESSION)["pendingPlanExecution"] == before


async def test_nothing_is_written_beside_a_file_that_has_gone(house: House) -> None:
    folder = ("sessions", SESSION, "attachments")
    commit = WriteBeside(
        origin=CLIENT,
        parts=(*folder, "x_thumb.png"),
        beside=(*folder, "x_a.png"),
        expected="",
        source=Given(b"x"),
    )
    with pytest.raises(NotFound):
        await house.workspace.commit(commit)
    assert not house.root.joinpath(*folder, "x_thumb.png").exists()
