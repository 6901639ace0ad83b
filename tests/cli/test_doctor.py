"""`craftd doctor`: with a daemon and without one the same is found, and mended."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.cli import commands
from craftd.protocol.rendezvous import Places
from craftd.store.locks import DaemonLock
from tests.daemon import snapshot
from tests.model import golden
from tests.strict_reader import STANDARD, Reader

Capture = pytest.CaptureFixture[str]
Behave = Callable[..., None]

DAMAGED = [folder for folder in golden.FOLDERS.iterdir() if "2604" < folder.name < "260499"]
UNDAMAGED = ("260405-crlf-lines", "260406-with-bom", "260407-left-tmp")
"""Not written as the format says, and read by everybody."""
AT = {"epoch": "k3f9", "revision": 10}


@pytest.fixture
def root(tmp_path: Path, places: Places, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registered workspace with every recorded damage, a sound session, and an error that is no session's."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "ws"
    shutil.copytree(golden.SESSIONS / "workspace" / "statuses", root / "statuses")
    for folder in (*DAMAGED, golden.FOLDERS / "260302-calm-cedar"):
        shutil.copytree(folder, root / "sessions" / folder.name)
        for room in STANDARD:
            (root / "sessions" / folder.name / room).mkdir(exist_ok=True)
    (root / "config.json").write_text(
        json.dumps({"id": "ws_1", "name": "One", "slug": "one", "createdAt": 1, "updatedAt": 1})
    )
    (root / "views.json").write_text('{"views": [{"id": "v", "name": "V", "expression": "nothing == 1"}]}')
    entry = {"id": "one", "name": "One", "slug": "one", "rootPath": str(root), "createdAt": 1}
    (Path(places.config) / "config.json").write_text(
        json.dumps({"workspaces": [entry], "activeWorkspaceId": "one", "activeSessionId": None})
    )
    return root


@pytest.fixture(params=["alone", "served"])
def way(request: pytest.FixtureRequest, root: Path, places: Places) -> Iterator[str]:
    """Whether a daemon runs."""
    if request.param == "served":
        assert commands.run(["workspaces"]) == 0
    yield request.param
    assert Path(places.card).exists() == (request.param == "served")


def run(way: str, capsys: Capture, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    notice(way, capsys)
    code = commands.run(["doctor", "--json", *arguments])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def notice(way: str, capsys: Capture) -> None:
    """What was done to files is known to the daemon, if there is one."""
    assert way == "alone" or commands.run(["call", "daemon/sync", '{"workspace": "one"}']) == 0
    capsys.readouterr()


def test_everything_is_found_and_nothing_changed(root: Path, way: str, capsys: Capture, places: Places) -> None:
    before = snapshot(root)
    made = None if way == "served" else snapshot(Path(places.config))
    code, found = run(way, capsys)
    assert code == 1
    assert snapshot(root) == before
    assert made is None or snapshot(Path(places.config)) == made
    sessions = [one for one in found if one.get("noun") == "sessions"]
    assert {one["id"] for one in sessions} == {folder.name for folder in DAMAGED if folder.name not in UNDAMAGED}
    assert all(one["workspace"] == "one" and one["remedy"] for one in sessions)
    assert [one["path"] for one in found if "remedy" not in one] == ["views.json"]


def test_what_can_be_mended_is_and_what_it_was_stays_beside(root: Path, way: str, capsys: Capture) -> None:
    before = {folder.name: next(folder.glob("session.jsonl*")).read_bytes() for folder in (root / "sessions").iterdir()}
    code, found = run(way, capsys, "--fix")
    assert code == 1  # views.json
    mended = {one["id"]: one["kept"] for one in found if one.get("mended")}
    assert len(mended) == len(DAMAGED) - 3
    for session, kept in mended.items():
        assert (root / "sessions" / session / kept).read_bytes() == before[session]
    (root / "views.json").unlink()
    for session in (*UNDAMAGED, "260302-calm-cedar"):
        shutil.rmtree(root / "sessions" / session)
    reader = Reader(root, Path.home())
    reader.read()
    # Blank lines between messages are read by everybody.
    assert [one for one in reader.deviations if not one.startswith("260410-null-lines line")] == []
    there = snapshot(root)
    assert run(way, capsys, "--fix") == (0, [])
    assert snapshot(root) == there


def test_people_read_what_would_be_done_and_what_was(root: Path, way: str, capsys: Capture) -> None:
    shutil.rmtree(root / "sessions")
    shutil.copytree(golden.FOLDERS / "260402-bad-middle", root / "sessions" / "260402-bad-middle")
    (root / "views.json").unlink()
    place = f"error: {root}: sessions/260402-bad-middle/session.jsonl:3: not JSON: "
    notice(way, capsys)
    assert commands.run(["doctor"]) == 1
    first, summary = capsys.readouterr().out.splitlines()
    assert first.startswith(place)
    assert first.endswith("[line-unreadable]; --fix: is taken out")
    assert summary == "1 finding, 1 error"
    assert commands.run(["doctor", "--fix", "-w", str(root)]) == 0
    first, summary = capsys.readouterr().out.splitlines()
    [kept] = (root / "sessions" / "260402-bad-middle").glob(".damaged-*")
    assert first.endswith(f"[line-unreadable]; mended: is taken out (what it was: {kept.name})")
    assert summary == "1 finding, 1 mended, 0 errors"
    assert commands.run(["doctor"]) == 0
    assert capsys.readouterr().out == "nothing is wrong\n"


def test_what_cannot_be_written_is_said_and_counts(root: Path, capsys: Capture, tmp_path: Path) -> None:
    shutil.rmtree(root / "sessions")
    session = root / "sessions" / "260402-bad-middle"
    shutil.copytree(golden.FOLDERS / session.name, session)
    shutil.move(session / "session.jsonl", tmp_path / "elsewhere.jsonl")
    (session / "session.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    before = snapshot(root)
    assert commands.run(["doctor", "--fix"]) == 1
    said = capsys.readouterr()
    assert "could not be mended: Forbidden (1007)" in said.err
    assert "0 mended" in said.out
    assert snapshot(root) == before


def test_nobody_mends_beside_a_daemon_that_is_about_to_serve(root: Path, places: Places, capsys: Capture) -> None:
    lock = DaemonLock(Path(places.config))
    assert lock.take() is None
    before = snapshot(root)
    try:
        assert commands.run(["doctor", "--fix"]) == 1
    finally:
        lock.give_back()
    assert snapshot(root) == before


def test_a_name_that_nobody_has_is_an_error(root: Path, way: str, capsys: Capture) -> None:
    assert commands.run(["doctor", "-w", "nobody"]) == 1
    assert "NotFound (1001)" in capsys.readouterr().err


@pytest.mark.parametrize(("severity", "code"), [("error", 1), ("warning", 0)])
def test_only_errors_fail(fake: Behave, capsys: Capture, severity: str, code: int) -> None:
    issue = {"path": "views.json", "severity": severity, "code": "unknown-key", "message": "a word",
             "range": {"start": {"line": 3, "character": 0}, "end": {"line": 3, "character": 9}}}  # fmt: skip
    workspaces = {"items": [{"id": "ws_1", "value": {"name": "Notes", "path": "/home/ann/notes"}}]}
    fake(answers={"workspaces/list": workspaces, "issues/list": {"items": [issue], **AT}})
    assert commands.run(["workspaces"]) == 0
    capsys.readouterr()
    assert commands.run(["doctor"]) == code
    assert capsys.readouterr().out.splitlines() == [
        f"{severity}: configuration: views.json:4: a word [unknown-key]",
        f"{severity}: /home/ann/notes: views.json:4: a word [unknown-key]",
        f"2 findings, {'2 errors' if code else '0 errors'}",
    ]
