"""Files in the folder of a record: what somebody else does to them at the wrong moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from craftd.store import disk
from craftd.workspace import kept_out
from craftd.workspace.record_files import EditText
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
