"""`craftd check`: like a compiler, and without a daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from craftd.cli import commands
from craftd.protocol.rendezvous import Places
from tests.daemon import snapshot

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path, places: Places) -> Path:
    """A workspace that nobody has registered, with an error and a warning; the configuration folder is empty."""
    root = tmp_path / "ws"
    for room in ("sessions", "labels"):
        (root / room).mkdir(parents=True)
    (root / "config.json").write_text('{"id": "ws_1", "name": "One"}')
    (root / "views.json").write_text('{"views": [\n  {"id": "v", "name": "ö", "expression": "nothing == 1"}]}')
    (root / "permissions.json").write_text('{"allowedbashpatterns": []}')
    return root


def test_findings_are_said_as_compilers_say_them(root: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    assert commands.run(["check", "ws"]) == 1
    said = capsys.readouterr()
    first, second = said.out.splitlines()
    assert first.startswith("ws/permissions.json:1:2: warning: allowedbashpatterns: is unknown")
    assert first.endswith("[unknown-key]")
    assert second.startswith("ws/views.json:2:42: error: views.0.expression: ")
    assert said.err == "craftd: 2 findings, 1 error\n"


def test_nothing_is_started_written_or_made(root: Path, places: Places, capsys: Capture) -> None:
    before = snapshot(root.parent)
    assert commands.run(["check", str(root)]) == 1
    assert snapshot(root.parent) == before
    assert list(Path(places.config).iterdir()) == []


def test_json_has_an_object_a_line_with_the_folder(root: Path, capsys: Capture) -> None:
    assert commands.run(["check", "--json", str(root / "views.json")]) == 1
    [line] = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert (found["folder"], found["path"], found["severity"]) == (str(root), "views.json", "error")
    assert found["range"]["start"] == {"line": 1, "character": 41}


@pytest.mark.parametrize(("inside", "findings"), [("permissions.json", 1), ("labels", 0), ("", 2)])
def test_a_file_or_folder_in_a_workspace_is_checked_alone(
    root: Path, capsys: Capture, inside: str, findings: int
) -> None:
    assert commands.run(["check", str(root / inside)]) == (1 if findings == 2 else 0)
    assert len(capsys.readouterr().out.splitlines()) == findings


def test_warnings_count_when_told_to(root: Path) -> None:
    assert commands.run(["check", str(root / "permissions.json")]) == 0
    assert commands.run(["check", "--strict", str(root / "permissions.json")]) == 1


def test_the_default_is_where_one_stands_else_the_configuration(
    root: Path, places: Places, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Path(places.config)
    (config / "preferences.json").write_text('{"uiLanguage": "tlh"}')
    monkeypatch.chdir(root / "labels")
    assert commands.run(["check"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 2
    monkeypatch.chdir(root.parent)
    entry = {"id": "one", "name": "One", "rootPath": str(root), "createdAt": 1}
    gone = {**entry, "id": "two", "rootPath": str(root / "gone")}
    registry = {"workspaces": [entry, gone], "activeWorkspaceId": None, "activeSessionId": None}
    (config / "config.json").write_text(json.dumps(registry))
    assert commands.run(["check"]) == 1
    places_said = [line.partition(": ")[0] for line in capsys.readouterr().out.splitlines()]
    assert places_said == [
        "ws/gone", f"{config}/preferences.json:1:16", "ws/permissions.json:1:2", "ws/views.json:2:42",
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["nowhere", "plain", "/"])
def test_what_is_no_folder_of_ours_is_an_error_of_use(
    root: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(root.parent)
    (root.parent / "plain").mkdir()
    assert commands.run(["check", path]) == 2
    assert capsys.readouterr().out == ""


def test_a_name_in_a_file_steers_no_terminal_and_stays_on_its_line(root: Path, capsys: Capture) -> None:
    (root / "permissions.json").write_text(json.dumps({"allowedApi\x1b[2J\n: error": 1}))
    commands.run(["check", str(root / "permissions.json")])
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert len(said.splitlines()) == 1
