"""The recorded projects, sources and skills: loaded as the app loads them, and changed without harm."""

from __future__ import annotations

import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from craftd.model.noun import Facts
from craftd.store.files import BOM, Document
from craftd.store.layout import SHELVES, SKILL_FOLDERS

GOLDEN = Path(__file__).parents[1] / "golden"
HOME = "/home/ada"
FACTS = Facts(now=1, pick=lambda n: 0)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", HOME)


@cache
def expected(name: str) -> Any:
    return json.loads((GOLDEN / name).read_bytes())


def load(noun: str, root: Path, folder: str) -> Document:
    document = SHELVES[noun].load(root, f"{noun}/{folder}")
    assert document is not None
    return document


def only(document: Document) -> dict[str, Any]:
    [value] = document.records.values()
    return value


def filled(value: Any, **names: str) -> Any:
    text = json.dumps(value)
    for name, path in names.items():
        text = text.replace(f"${{{name}}}", path)
    return json.loads(text)


def change_and_back(noun: str, root: Path, folder: str, member: str, other: Any) -> None:
    """Change one member, look at the file, change it back: the file must be what it was, byte for byte."""
    shelf, key = SHELVES[noun], f"{noun}/{folder}"
    for value in (only(load(noun, root, folder)) | {member: other}, only(load(noun, root, folder))):
        document = load(noun, root, folder)
        [id] = document.records
        saved = shelf.save(root, key, document, {id: value}, FACTS)
        assert saved is not None
        assert only(saved) == value
        assert saved == load(noun, root, folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# -- projects --

PROJECTS = expected("projects/expected.json")["projects"]


@pytest.mark.parametrize("slug", PROJECTS)
def test_a_recorded_project_is_loaded_and_survives_a_change_and_back(tmp_path: Path, slug: str) -> None:
    root = tmp_path / "workspace"
    shutil.copytree(GOLDEN / "projects/workspace", root)
    document = load("projects", root, slug)
    assert only(document) == filled(PROJECTS[slug]["load"]["config"], HOME_DIR=HOME)
    assert (document.issues, document.sound) == ((), True)
    before = (root / "projects" / slug / "config.json").read_bytes()
    change_and_back("projects", root, slug, "name", "Other")
    assert (root / "projects" / slug / "config.json").read_bytes() == before


def test_the_recorded_projects_are_listed_and_the_plain_file_is_not() -> None:
    folders = [key.rpartition("/")[2] for key in SHELVES["projects"].keys(GOLDEN / "projects/workspace")]
    assert folders == sorted(PROJECTS)


@pytest.mark.parametrize("folder", ["bom", "moved", "extra", "minimal"])
def test_odd_projects_are_loaded_as_in_the_app(folder: str) -> None:
    recorded = expected("projects/edge-expected.json")["loadProjectConfig"][folder]
    assert only(load("projects", GOLDEN / "projects/edge", folder)) == filled(recorded, HOME_DIR=HOME)


@pytest.mark.parametrize("folder", ["broken", "array", "null"])
def test_damaged_projects_are_reported_with_file_and_line(folder: str) -> None:
    document = load("projects", GOLDEN / "projects/edge", folder)
    [issue] = document.issues
    assert (document.sound, issue.path) == (False, f"projects/{folder}/config.json")
    assert issue.range is not None


# -- sources --

SOURCES = [
    pytest.param(tree, case, id=f"{tree}-{case['folder']}")
    for tree, cases in expected("sources/expected.json")["groups"].items()
    for case in cases
    if case["folder"] != "no-config"
]


@pytest.mark.parametrize(("tree", "case"), SOURCES)
def test_every_recorded_source_gets_the_apps_value_and_verdict(tree: str, case: dict[str, Any]) -> None:
    root, folder = GOLDEN / "sources" / tree, case["folder"]
    document = load("sources", root, folder)
    errors = {error["path"] for error in case["folderCheck"]["errors"]}
    if case["load"] is None or (errors == {"root"} and not document.sound):
        assert (document.sound, only(document), bool(document.issues)) == (False, {}, True)
        return
    config = case["load"]["config"]
    if config == "as in file":
        config = json.loads((root / "sources" / folder / "config.json").read_bytes().removeprefix(BOM))
    value = only(document)
    guide = value.pop("guide", None)
    assert value == filled(config, HOME=HOME, CWD=str(root))
    assert (guide is None) == (case["load"]["guide"] is None)
    # The app names the whole object when the block that the type asks for is missing.
    found = {
        "root" if issue.message.startswith("type: says") else issue.message.partition(":")[0]
        for issue in document.issues
        if issue.severity == "error"
        and (issue.code not in ("slug-mismatch", "bad-slug") or issue.message.startswith("slug: "))
    }
    assert found == errors
    if tree == "workspace":
        assert document.issues == ()
    if tree == "lenient" and folder != "duplicate-keys":  # the last counts, as in every JSON file
        assert document.issues != ()
    assert all(issue.range is not None for issue in document.issues if issue.code != "bad-slug")


@pytest.mark.parametrize("folder", sorted(path.name for path in (GOLDEN / "sources/workspace/sources").iterdir()))
def test_a_recorded_source_survives_a_change_and_back(tmp_path: Path, folder: str) -> None:
    shutil.copytree(GOLDEN / "sources/workspace", tmp_path / "w")
    config = tmp_path / "w/sources" / folder / "config.json"
    before = contents(config.parent)
    change_and_back("sources", tmp_path / "w", folder, "enabled", "other")
    text = json.dumps(json.loads(before["config.json"].removeprefix(BOM)), indent=2, ensure_ascii=False).encode()
    newline = b"\n" if before["config.json"].endswith(b"\n") else b""
    assert contents(config.parent) == {
        **before,
        "config.json": text + newline,
    }


def test_staging_folders_are_no_sources() -> None:
    keys = SHELVES["sources"].keys(GOLDEN / "sources/lenient")
    assert not any(".tmp" in key for key in keys)
    assert len(keys) == 12


# -- skills --

SKILLS = {
    tree: {case["slug"]: case for case in expected("skills/expected.json")["groups"][tree]}
    for tree in ("valid", "invalid")
}
WRITTEN = {
    "bool-description": {"description": "true"}, "date-name": {"name": "2026-07-01"}, "number-name": {"name": "42"},
    "sexagesimal-name": {"name": "1:30", "description": "0x1F"}, "yaml-binary": {"name": "aGk="},
    "zero-name": {"name": "0"},
}  # fmt: skip
"""Names and descriptions that YAML takes for something else: ours is the text that was written."""
LENIENT = {"required-sources-map", "required-sources-mixed", "required-sources-number", "bad-utf8"}
"""What the app's full validator does not look at."""
NO_FILE = ("no-file", "lower-case-file")


@pytest.mark.parametrize("slug", SKILLS["valid"])
def test_a_valid_skill_is_loaded_and_survives_changes_and_back(tmp_path: Path, slug: str) -> None:
    case, root = SKILLS["valid"][slug], tmp_path / "w"
    shutil.copytree(GOLDEN / "skills/valid", root)
    document = load("skills", root, slug)
    assert only(document) == {**case["frontmatter"], "content": case["load"]["content"]}
    assert (document.issues, document.sound) == ((), True)
    file = root / "skills" / slug / "SKILL.md"
    before = file.read_bytes()
    change_and_back("skills", root, slug, "content", "other")
    # Text directly behind the closing dashes is body to the app; a new body begins on a line of its own.
    assert file.read_bytes() == before.replace(b"\n---tail", b"\n---\ntail").replace(b"\n--- \nb", b"\n---\n \nb")
    if slug != "json-frontmatter":
        file.write_bytes(before)
        change_and_back("skills", root, slug, "x-new", ["a", {"b": None}])
        assert file.read_bytes() == before


@pytest.mark.parametrize("slug", [slug for slug in SKILLS["invalid"] if slug not in NO_FILE])
def test_an_invalid_skill_is_shown_as_far_as_it_can_be_read_and_reported(slug: str) -> None:
    case = SKILLS["invalid"][slug]
    document = load("skills", GOLDEN / "skills/invalid", slug)
    value = only(document)
    content = value.pop("content")
    recorded = case["frontmatter"]
    readable = isinstance(recorded, dict) and "notAMap" not in recorded and slug != "js-frontmatter"
    assert value == ({**recorded, **WRITTEN.get(slug, {})} if readable else {})
    assert document.sound == (readable and slug != "bad-utf8")
    if "body" in case:
        assert content.startswith(case["body"]["start"])
    valid = case["folderCheck"]["valid"] and slug not in LENIENT | {"js-frontmatter"}
    assert bool(document.issues) == (not valid)


OWN_VERDICTS: dict[str, set[str]] = {
    # More than the app finds: it runs code, takes substitutes for bytes, an open end, and lists of anything.
    "js-frontmatter": {"front matter"}, "bad-utf8": {"not UTF-8"}, "unterminated": {"front matter", "content"},
    "required-sources-map": {"requiredSources"}, "required-sources-number": {"requiredSources"},
    "required-sources-mixed": {"requiredSources.1", "requiredSources.2", "requiredSources.5"},
}  # fmt: skip
"""Members, or beginnings of messages, of the issues of texts that the app judges otherwise."""
LINES = {
    "always-allow-string": [4], "bad-utf8": [2], "bad-yaml-colon": [2], "bad-yaml-flow": [3], "blank-body": [5],
    "bool-description": [3], "comment-after-fence": [1], "cr-only": [1, 1, 1], "date-name": [2], "duplicate-key": [3],
    "empty-body": [5], "empty-file": [1, 1, 1], "empty-name": [2], "four-dashes": [1, 1], "globs-numbers": [4],
    "globs-string": [4], "indented-close": [6, 1], "js-frontmatter": [1], "leading-newline": [1, 1],
    "leading-space": [1, 1], "list-name": [2], "list-root": [2], "missing-description": [1], "missing-name": [1],
    "no-frontmatter": [1, 1], "null-description": [3], "null-word-name": [2], "number-name": [2],
    "only-bom": [1, 1, 1], "only-comments": [1, 1], "required-sources-map": [4], "required-sources-mixed": [4, 4, 4],
    "required-sources-number": [4], "scalar-root": [2], "sexagesimal-name": [2, 3], "toml-lang": [1],
    "unterminated": [1, 4], "utf16": [1, 1], "yaml-binary": [2], "yaml-js-type": [2], "yaml-two-docs": [5],
    "zero-name": [2],
}  # fmt: skip
"""Of the errors; what is missing is missing in line 1."""


@pytest.mark.parametrize("slug", [slug for slug in SKILLS["invalid"] if slug not in NO_FILE])
def test_a_recorded_skill_gets_the_apps_verdict_member_by_member_and_the_line(slug: str) -> None:
    file = GOLDEN / "skills/invalid/skills" / slug / "SKILL.md"
    issues = SKILL_FOLDERS.check(file.read_bytes(), slug)
    recorded = {error["path"] for error in SKILLS["invalid"][slug]["folderCheck"]["errors"]}
    if slug in OWN_VERDICTS:
        wanted = OWN_VERDICTS[slug]
        assert {start for start in wanted for issue in issues if issue.message.startswith(start)} == wanted
    elif recorded & {"frontmatter", "root"}:
        assert {issue.code for issue in issues} <= {"not-yaml", "not-closed", "schema"}
        assert [issue for issue in issues if issue.severity == "error"]
    else:
        members = {re.split(r"[: ]", issue.message)[0] for issue in issues if issue.code != "bad-slug"}
        assert members == recorded - {"slug"}
        assert any(issue.code == "bad-slug" for issue in issues) == ("slug" in recorded)
    errors = [issue for issue in issues if issue.severity == "error"]
    assert [issue.range and issue.range["start"]["line"] + 1 for issue in errors] == LINES.get(slug, [])
    assert {issue.path for issue in issues} <= {f"skills/{slug}/SKILL.md"}


@pytest.mark.parametrize("tree", SKILLS)
def test_a_text_is_judged_as_its_file_is_in_any_folder_or_none(tree: str) -> None:
    for slug in SKILLS[tree]:
        if slug in NO_FILE:
            continue
        data = (GOLDEN / "skills" / tree / "skills" / slug / "SKILL.md").read_bytes()
        assert tuple(SKILL_FOLDERS.check(data, slug)) == load("skills", GOLDEN / "skills" / tree, slug).issues
        loose = SKILL_FOLDERS.check(data, None)
        assert {(issue.path, issue.id) for issue in loose} <= {("SKILL.md", None)}
        inside = [issue for issue in SKILL_FOLDERS.check(data, slug) if issue.code != "bad-slug"]
        assert [(i.message, i.code, i.range) for i in loose] == [(i.message, i.code, i.range) for i in inside]


@pytest.mark.parametrize("slug", NO_FILE)
def test_a_folder_without_the_exact_file_is_no_skill(slug: str) -> None:
    assert SHELVES["skills"].load(GOLDEN / "skills/invalid", f"skills/{slug}") is None
