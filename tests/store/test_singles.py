"""Rules files: one record per file, which may be missing (tests/golden/workspace, tests/golden/sources)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import Corrupt, Forbidden, NotFound
from craftd.model.noun import Facts
from craftd.model.permission_defaults import DEFAULTS
from craftd.store.atomic import ForeignWrite
from craftd.store.files import Document
from craftd.store.layout import DEFAULT_RULES, SHELVES

RULES = SHELVES["permissions"]
GOLDEN = Path(__file__).parents[1] / "golden"
FACTS = Facts(now=1, pick=lambda n: 0)


def load(root: Path, key: str, shelf: Any = RULES) -> Document:
    document = shelf.load(root, key)
    assert document is not None
    return document


def save(root: Path, key: str, new: Any, shelf: Any = RULES) -> Document:
    document = load(root, key, shelf)
    [id] = document.records
    saved = shelf.save(root, key, document, {id: new}, FACTS)
    assert saved == load(root, key, shelf)
    return saved


def test_every_source_has_a_record_with_or_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "sources" / "a").mkdir(parents=True)
    (tmp_path / "sources" / ".hidden").mkdir()
    assert RULES.keys(tmp_path) == ["permissions.json", "sources/a/permissions.json"]
    assert load(tmp_path, "permissions.json").records == {"workspace": {}}
    assert load(tmp_path, "sources/a/permissions.json").records == {"source:a": {}}
    assert RULES.load(tmp_path, "sources/b/permissions.json") is None


def test_a_path_belongs_to_the_record_whose_file_it_is() -> None:
    assert RULES.key_of("permissions.json") == "permissions.json"
    assert RULES.key_of("sources/a") == RULES.key_of("sources/a/permissions.json") == "sources/a/permissions.json"
    for path in ("sources", "sources/a/config.json", "sources/a/x/permissions.json", "sources/.a", "other/a"):
        assert RULES.key_of(path) is None
    assert RULES.key_for("source:a", {}) == "sources/a/permissions.json"
    with pytest.raises(NotFound):
        RULES.key_for("default", {})


def test_a_change_keeps_unknown_keys_their_order_and_comments(tmp_path: Path) -> None:
    text = (GOLDEN / "workspace/home/workspaces/aurora-lab/permissions.json").read_text()
    value = {"mine": [None], **json.loads(text), "zeta": 1.5}
    (tmp_path / "permissions.json").write_text(json.dumps(value, indent=2) + "\n")
    new = {**value, "allowedMcpPatterns": ["^mcp__tracker__look"]}
    save(tmp_path, "permissions.json", new)
    written = (tmp_path / "permissions.json").read_text()
    assert written == json.dumps(new, indent=2) + "\n"


@pytest.mark.parametrize("name", ["harbor-mcp", "crane-api", "charts-folder"])
def test_writing_what_is_there_leaves_every_byte(tmp_path: Path, name: str) -> None:
    file = GOLDEN / "sources/workspace/sources" / name / "permissions.json"
    (tmp_path / "sources" / name).mkdir(parents=True)
    shutil.copy(file, tmp_path / "sources" / name)
    key = f"sources/{name}/permissions.json"
    save(tmp_path, key, load(tmp_path, key).records[f"source:{name}"])
    assert (tmp_path / key).read_bytes() == file.read_bytes()


def test_the_first_change_of_the_built_in_rules_writes_them_down(tmp_path: Path) -> None:
    key = "permissions/default.json"
    assert load(tmp_path, key, DEFAULT_RULES).records == {"default": DEFAULTS}
    save(tmp_path, key, {**DEFAULTS, "allowedMcpPatterns": []}, DEFAULT_RULES)
    assert json.loads((tmp_path / key).read_bytes()) == {**DEFAULTS, "allowedMcpPatterns": []}
    assert (tmp_path / key).read_bytes().endswith(b"}\n")


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("bad-method", [(4, "schema")]),
        ("bad-regex", [(4, "bad-regex"), (7, "bad-regex"), (14, "bad-regex"), (21, "bad-regex")]),
        ("not-json", [(1, "not-json")]),
        ("unknown-key", [(2, "unknown-key")]),
        ("wrong-types", [(2, "schema"), (4, "schema")]),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(tmp_path: Path, name: str, lines: list[Any]) -> None:
    shutil.copy(GOLDEN / "workspace/invalid" / f"permissions-{name}.json", tmp_path / "permissions.json")
    document = load(tmp_path, "permissions.json")
    found = [(issue.range and issue.range["start"]["line"] + 1, issue.code) for issue in document.issues]
    assert found == lines
    assert {issue.path for issue in document.issues} == {"permissions.json"}
    assert document.sound == (name != "not-json")


def test_nothing_is_written_over_what_cannot_be_read_or_was_changed(tmp_path: Path) -> None:
    (tmp_path / "permissions.json").write_text("{]")
    with pytest.raises(Corrupt):
        save(tmp_path, "permissions.json", {"version": "x"})
    (tmp_path / "permissions.json").write_text("{}")
    document = load(tmp_path, "permissions.json")
    (tmp_path / "permissions.json").write_text('{"version": "theirs"}')
    with pytest.raises(ForeignWrite):
        RULES.save(tmp_path, "permissions.json", document, {"workspace": {"version": "x"}}, FACTS)
    assert "theirs" in (tmp_path / "permissions.json").read_text()


def test_a_link_out_of_the_workspace_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "outside.json").write_text("{}")
    (tmp_path / "ws" / "permissions.json").symlink_to(tmp_path / "outside.json")
    with pytest.raises(Forbidden):
        save(tmp_path / "ws", "permissions.json", {"version": "x"})
    assert (tmp_path / "outside.json").read_text() == "{}"
