"""Names of conflict copies, as each program writes them, and names that only look a little like them."""

from __future__ import annotations

import pytest

from craftd.model.conflict_copies import could_be, recognise

SESSION = "260102-amber-kite"


@pytest.mark.parametrize(
    ("name", "original", "program"),
    [
        ("session.sync-conflict-20260102-101112-ABCDEF2.jsonl", "session.jsonl", "Syncthing"),
        (f"{SESSION}.sync-conflict-20260102-101112-ABCDEF2", SESSION, "Syncthing"),
        ("config (Ada's conflicted copy 2026-01-02).json", "config.json", "Dropbox"),
        ("config (conflicted copy 2026-01-02 (1)).json", None, None),
        (f"{SESSION} (Ada’s conflicted copy)", SESSION, "Dropbox"),
        ("notes (Case Conflict).md", "notes.md", "Dropbox"),
        ("notes (Selective Sync Conflict 1).md", "notes.md", "Dropbox"),
        ("notes (conflicted copy 2026-01-02 101112).md", "notes.md", "Nextcloud"),
        ("notes (Ada's conflicted copy 2026-01-02 101112).md", "notes.md", "Nextcloud"),
        ("notes_conflict-20260102-101112.md", "notes.md", "Nextcloud"),
        (f"{SESSION}_conflict-20260102-101112", SESSION, "Nextcloud"),
        ("notes (case clash from ada).md", "notes.md", "Nextcloud"),
        ("notes_DiskStation_Jan-02-1011-2026_Conflict.md", "notes.md", "Synology Drive"),
        (f"{SESSION}_nas_Jan-02-101112-2026_Conflict", SESSION, "Synology Drive"),
        ("notes (SFConflict ada@example.org 2026-01-02-10-11-12).md", "notes.md", "Seafile"),
        ("notes [conflicted].md", "notes.md", "pCloud"),
        ("notes [Conflict].md", "notes.md", "Google Drive"),
        ("session.jsonl", None, None),
        (SESSION, None, None),
        (f"{SESSION}-2", None, None),
        ("conflicted copy.md", None, None),
    ],
)
def test_a_name_that_nobody_would_choose_is_a_copy_wherever_it_stands(
    name: str, original: str | None, program: str | None
) -> None:
    copy = recognise(name, lambda original: False)
    assert (copy and copy.original, copy and copy.program) == (original, program)


@pytest.mark.parametrize(
    ("name", "original", "program"),
    [
        ("session-LAPTOP.jsonl", "session.jsonl", "OneDrive"),
        ("config-DESKTOP-AB12CD3-2.json", "config.json", "OneDrive"),
        ("session (1).jsonl", "session.jsonl", "Google Drive"),
        (f"{SESSION} (2)", SESSION, "Google Drive"),
        ("session 2.jsonl", "session.jsonl", "iCloud Drive"),
        (f"{SESSION} 2", SESSION, "iCloud Drive"),
        ("notes (In Konflikt stehende Kopie von Ada 2026-01-02).md", "notes.md", "Dropbox"),
        (f"{SESSION}-DESKTOP-AB12CD3", SESSION, "OneDrive"),
    ],
)
def test_a_name_that_a_person_could_choose_is_a_copy_only_beside_the_original(
    name: str, original: str, program: str
) -> None:
    copy = recognise(name, {original}.__contains__)
    assert copy is not None
    assert (copy.original, copy.program) == (original, program)
    assert recognise(name, lambda original: False) is None
    assert could_be(name)


@pytest.mark.parametrize("name", [f"{SESSION}-2", f"{SESSION}-COPY", "Mine-OLD", "a-B", "3f2a-DESKTOP"])
def test_a_session_may_be_called_almost_anything_beside_another_one(name: str) -> None:
    assert recognise(name, lambda original: True) is None
