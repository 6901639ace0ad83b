from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import Corrupt, Forbidden, InvalidParams
from craftd.model.noun import Facts
from craftd.store import disk
from craftd.store.atomic import ForeignWrite
from craftd.store.files import Document
from craftd.store.layout import SHELVES

PROJECTS, SOURCES, SKILLS = SHELVES["projects"], SHELVES["sources"], SHELVES["skills"]
FIELD_BUGS = Path(__file__).parents[1] / "field_bugs"
FACTS = Facts(now=1_790_000_000_000, pick=lambda n: n - 1)
PROJECT = '{\n  "id": "proj_00000001",\n  "slug": "atlas",\n  "name": "Atlas",\n  "workingDirectory": "~/code",\n  "createdAt": 1,\n  "updatedAt": 2,\n  "mine": null\n}'  # noqa: E501
SKILL = "---\nname: Tide\ndescription: d\n---\nBody\n"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "projects/atlas/config.json", PROJECT)
    put(tmp_path, "skills/tide/SKILL.md", SKILL)
    return tmp_path


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(text.encode())


def load(shelf: Any, root: Path, key: str) -> Document:
    document = shelf.load(root, key)
    assert document is not None
    return document


def change(shelf: Any, root: Path, key: str, edit: Callable[[dict[str, Any]], dict[str, Any]]) -> Document:
    document = load(shelf, root, key)
    [(id, value)] = document.records.items()
    saved = shelf.save(root, key, document, {id: edit(dict(value))}, FACTS)
    assert saved == load(shelf, root, key)
    assert isinstance(saved, Document)
    return saved


def files_of(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}


def test_every_visible_folder_is_a_key_and_nothing_else(root: Path) -> None:
    for name in ("Bad_Slug", ".tmp-stage", "x.y"):
        put(root, f"skills/{name}/SKILL.md", SKILL)
    put(root, "skills/file.md", "x")
    (root / "skills" / "empty").mkdir()
    assert SKILLS.keys(root) == ["skills/Bad_Slug", "skills/empty", "skills/tide", "skills/x.y"]
    assert SKILLS.load(root, "skills/empty") is None
    assert SHELVES["sources"].keys(root) == []


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("sources/crane", "sources/crane"), ("sources/crane/config.json", "sources/crane"),
        ("sources/crane/guide.md", "sources/crane"), ("sources/crane/icon.svg", None), ("sources", None),
        ("sources/.tmp-x/config.json", None), ("projects/crane/config.json", None),
    ],
)  # fmt: skip
def test_a_changed_path_leads_to_its_document(path: str, key: str | None) -> None:
    assert SOURCES.key_of(path) == key


@pytest.mark.parametrize("id", ["..", "", "a/b", "Bad_Slug", "-a", ".x", "a\n", "a" * 300])
def test_a_name_that_is_no_slug_never_becomes_a_path(id: str) -> None:
    with pytest.raises(InvalidParams):
        SKILLS.key_for(id, {})
    with pytest.raises(InvalidParams):
        PROJECTS.key_for("proj_1", {"slug": id})


def test_a_project_is_known_by_its_id_and_lies_under_its_slug(root: Path) -> None:
    assert list(load(PROJECTS, root, "projects/atlas").records) == ["proj_00000001"]
    assert PROJECTS.key_for("proj_2", {"slug": "new"}) == "projects/new"


def test_a_change_touches_its_member_and_no_other_byte(root: Path) -> None:
    change(PROJECTS, root, "projects/atlas", lambda value: value | {"name": "Atlas II"})
    assert (root / "projects/atlas/config.json").read_text() == PROJECT.replace('"Atlas"', '"Atlas II"')


def test_paths_are_shown_complete_and_stored_portable(root: Path) -> None:
    assert load(PROJECTS, root, "projects/atlas").records["proj_00000001"]["workingDirectory"] == "/home/ada/code"
    change(PROJECTS, root, "projects/atlas", lambda value: value | {"workingDirectory": "/home/ada/x/../y/"})
    assert json.loads((root / "projects/atlas/config.json").read_text())["workingDirectory"] == "~/y/"


def test_a_path_that_did_not_change_stays_as_somebody_wrote_it(root: Path) -> None:
    put(root, "projects/atlas/config.json", PROJECT.replace("~/code", "${HOME}/x/../code"))
    change(PROJECTS, root, "projects/atlas", lambda value: value | {"name": "n"})
    assert "${HOME}/x/../code" in (root / "projects/atlas/config.json").read_text()


def test_a_relative_path_starts_at_the_workspace(root: Path) -> None:
    put(root, "sources/vault/config.json", '{"local": {"path": "notes"}}')
    assert load(SOURCES, root, "sources/vault").records["vault"]["local"] == {"path": f"{root}/notes"}


def test_a_folder_renamed_by_hand_is_written_where_it_lies(root: Path) -> None:
    (root / "projects/atlas").rename(root / "projects/moved")
    change(PROJECTS, root, "projects/moved", lambda value: value | {"name": "n"})
    assert [path.name for path in (root / "projects").iterdir()] == ["moved"]
    assert [issue.code for issue in load(PROJECTS, root, "projects/moved").issues] == ["slug-mismatch"]


def test_a_new_project_appears_complete(root: Path) -> None:
    value = {"id": "proj_2", "slug": "new", "name": "N", "createdAt": 1, "updatedAt": 1}
    saved = PROJECTS.save(root, "projects/new", None, {"proj_2": value}, FACTS)
    assert saved is not None
    assert saved.records == {"proj_2": value}
    assert (root / "projects/new/assets").is_dir()
    assert (root / "projects/new/config.json").read_text() == json.dumps(value, indent=2)
    assert saved == PROJECTS.load(root, "projects/new")


def test_the_first_record_of_a_noun_makes_its_folder(tmp_path: Path) -> None:
    SOURCES.save(tmp_path, "sources/a", None, {"a": {"slug": "a", "guide": "# A\n"}}, FACTS)
    assert files_of(tmp_path) == {"sources/a/config.json", "sources/a/guide.md"}


def test_a_folder_without_a_main_file_is_filled(root: Path) -> None:
    put(root, "skills/draft/notes.txt", "x")
    SKILLS.save(root, "skills/draft", None, {"draft": {"name": "Tide", "description": "d", "content": "c"}}, FACTS)
    assert (root / "skills/draft/SKILL.md").read_text() == "---\nname: Tide\ndescription: d\n---\nc"


def test_two_who_create_the_same_name_do_not_overwrite_each_other(root: Path) -> None:
    with pytest.raises(ForeignWrite):
        SKILLS.save(root, "skills/tide", None, {"tide": {"content": "c"}}, FACTS)
    assert (root / "skills/tide/SKILL.md").read_text() == SKILL


def test_a_guide_is_a_member_that_is_written_changed_and_removed(root: Path) -> None:
    put(root, "sources/crane/config.json", '{\n  "guide": "a member of their own"\n}')
    key, guide = "sources/crane", root / "sources/crane/guide.md"
    assert load(SOURCES, root, key).records == {"crane": {}}
    change(SOURCES, root, key, lambda value: value | {"guide": "# New\r\n"})
    assert guide.read_bytes() == b"# New\r\n"
    change(SOURCES, root, key, lambda value: {})
    assert not guide.exists()
    assert json.loads((root / "sources/crane/config.json").read_text()) == {"guide": "a member of their own"}


def test_a_guide_that_appears_is_a_change(root: Path) -> None:
    put(root, "sources/crane/config.json", "{}")
    document = load(SOURCES, root, "sources/crane")
    put(root, "sources/crane/guide.md", "theirs")
    with pytest.raises(ForeignWrite):
        SOURCES.save(root, "sources/crane", document, {"crane": {"guide": "ours"}}, FACTS)
    assert (root / "sources/crane/guide.md").read_text() == "theirs"


@pytest.mark.parametrize("new", [{"name": "mine"}, None])
def test_a_foreign_edit_is_never_overwritten_or_thrown_away(root: Path, new: Any) -> None:
    document = load(PROJECTS, root, "projects/atlas")
    put(root, "projects/atlas/config.json", '{"name": "theirs"}')
    with pytest.raises(ForeignWrite):
        PROJECTS.save(root, "projects/atlas", document, {"proj_00000001": new}, FACTS)
    assert (root / "projects/atlas/config.json").read_text() == '{"name": "theirs"}'


def test_a_deleted_folder_lies_whole_in_the_trash(root: Path) -> None:
    put(root, "projects/atlas/assets/plan.md", "x")
    document = load(PROJECTS, root, "projects/atlas")
    assert PROJECTS.save(root, "projects/atlas", document, {"proj_00000001": None}, FACTS) is None
    trash = f".trash/{FACTS.now}-projects-atlas"
    assert files_of(root) == {f"{trash}/config.json", f"{trash}/assets/plan.md", "skills/tide/SKILL.md"}


def test_a_deletion_and_a_new_record_in_its_place_are_two_folders(root: Path) -> None:
    document = load(PROJECTS, root, "projects/atlas")
    value = {"id": "proj_2", "slug": "atlas"}
    saved = PROJECTS.save(root, "projects/atlas", document, {"proj_00000001": None, "proj_2": value}, FACTS)
    assert saved is not None
    assert saved.records == {"proj_2": value}
    assert (root / f".trash/{FACTS.now}-projects-atlas/config.json").read_text() == PROJECT


def test_two_deletions_in_one_millisecond_keep_both(root: Path) -> None:
    for _ in range(2):
        put(root, "skills/tide/SKILL.md", SKILL)
        SKILLS.save(root, "skills/tide", load(SKILLS, root, "skills/tide"), {"tide": None}, FACTS)
    assert len(list((root / ".trash").iterdir())) == 2


def test_a_full_disk_leaves_the_old_record(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(disk, "write", full)
    with pytest.raises(OSError, match="no space"):
        change(PROJECTS, root, "projects/atlas", lambda value: value | {"name": "n"})
    with pytest.raises(OSError, match="no space"):
        SKILLS.save(root, "skills/new", None, {"new": {"content": "c"}}, FACTS)
    assert files_of(root) == {"projects/atlas/config.json", "skills/tide/SKILL.md"}
    assert (root / "projects/atlas/config.json").read_text() == PROJECT


@pytest.mark.parametrize("content", ["{", "null", "[]", "\x00" * 20])
def test_a_damaged_file_is_listed_reported_and_left_alone(root: Path, content: str) -> None:
    put(root, "projects/atlas/config.json", content)
    document = load(PROJECTS, root, "projects/atlas")
    assert (document.sound, document.records) == (False, {"atlas": {}})
    [issue] = document.issues
    assert (issue.path, issue.id, issue.range is not None) == ("projects/atlas/config.json", "atlas", True)
    with pytest.raises(Corrupt):
        PROJECTS.save(root, "projects/atlas", document, {"atlas": {"name": "n"}}, FACTS)
    assert (root / "projects/atlas/config.json").read_text() == content
    PROJECTS.save(root, "projects/atlas", document, {"atlas": None}, FACTS)
    assert PROJECTS.keys(root) == []


def test_a_folder_in_place_of_the_file_is_damage(root: Path) -> None:
    (root / "skills/odd/SKILL.md").mkdir(parents=True)
    document = load(SKILLS, root, "skills/odd")
    assert (document.sound, document.issues[0].code) == (False, "unreadable")


def test_a_value_of_the_wrong_type_is_shown_and_reported_with_its_line(root: Path) -> None:
    put(root, "projects/atlas/config.json", PROJECT.replace('"Atlas"', "7"))
    document = load(PROJECTS, root, "projects/atlas")
    assert document.records["proj_00000001"]["name"] == 7
    [issue] = document.issues
    assert issue.message == "name: must be text"
    assert issue.range == {"start": {"line": 3, "character": 10}, "end": {"line": 3, "character": 11}}


def test_linked_skills_are_read_never_written_and_deleted_as_links(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(FIELD_BUGS / "O16" / "outside", outside)
    (root := tmp_path / "ws" / "skills").mkdir(parents=True)
    root = root.parent
    (root / "skills/shared-skill").symlink_to(outside / "shared-skill")
    (root / "skills/dangling").symlink_to(outside / "nobody")
    (root / "skills/plain-file").symlink_to(outside / "shared-skill/SKILL.md")
    (root / "skills/circle").symlink_to(root / "skills/circle")
    assert SKILLS.keys(root) == ["skills/shared-skill"]
    document = load(SKILLS, root, "skills/shared-skill")
    assert document.linked
    with pytest.raises(Forbidden):
        SKILLS.save(root, "skills/shared-skill", document, {"shared-skill": {"name": "n", "content": ""}}, FACTS)
    before = (outside / "shared-skill/SKILL.md").read_bytes()
    (outside / "shared-skill/SKILL.md").write_bytes(before + b"more\n")
    edited = load(SKILLS, root, "skills/shared-skill")
    assert edited.records["shared-skill"]["content"].endswith("more\n")
    SKILLS.save(root, "skills/shared-skill", edited, {"shared-skill": None}, FACTS)
    assert not os.path.lexists(root / "skills/shared-skill")
    assert (outside / "shared-skill/SKILL.md").read_bytes() == before + b"more\n"


def test_a_linked_room_is_read_and_never_changed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(FIELD_BUGS / "O16" / "outside", outside)
    (root := tmp_path / "ws").mkdir()
    (root / "skills").symlink_to(outside)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    document = load(SKILLS, root, "skills/shared-skill")
    with pytest.raises(Forbidden):
        SKILLS.save(root, "skills/new", None, {"new": {"name": "n", "description": "d", "content": ""}}, FACTS)
    with pytest.raises(Forbidden):
        SKILLS.save(root, "skills/shared-skill", document, {"shared-skill": None}, FACTS)
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before


def test_a_linked_file_outside_is_not_written_and_holds_up_no_change_of_others(tmp_path: Path) -> None:
    put(tmp_path, "guide.md", "shared")
    put(root := tmp_path / "ws", "sources/web/config.json", '{"id": "web_1", "slug": "web", "name": "Web"}')
    (root / "sources/web/guide.md").symlink_to(tmp_path / "guide.md")
    saved = change(SOURCES, root, "sources/web", lambda value: {**value, "name": "Other"})
    assert (saved.records["web"]["name"], saved.records["web"]["guide"]) == ("Other", "shared")
    with pytest.raises(Forbidden, match=r"sources/web/guide\.md"):
        change(SOURCES, root, "sources/web", lambda value: {**value, "name": "Third", "guide": "mine"})
    assert (tmp_path / "guide.md").read_bytes() == b"shared"
    assert load(SOURCES, root, "sources/web") == saved


def test_skills_with_a_colon_are_reported_and_hide_no_neighbour() -> None:
    root = FIELD_BUGS / "O13" / "ws"
    loaded = {key: load(SKILLS, root, key) for key in SKILLS.keys(root)}
    sound = {key for key, document in loaded.items() if not document.issues}
    assert sound == {"skills/colon-url", "skills/quoted-colon"}
    for key in loaded.keys() - sound:
        [issue] = loaded[key].issues
        assert (issue.path, issue.range["start"]["line"]) == (f"{key}/SKILL.md", 2)  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "shown", "issues"),
    [
        ("with-bom", "with-bom", 0), ("with-crlf", "with-crlf", 0), ("bom-and-crlf", "bom-and-crlf", 0),
        ("word-no", "no", 0), ("word-on", "on", 0), ("number-name", "123", 2), ("clock-name", "12:30", 1),
        ("leading-zero", "010", 1), ("date-name", "2026-07-01", 1), ("true-name", "true", 1), ("false-desc", "ok", 1),
        ("zero-name", "0", 1),
    ],
)  # fmt: skip
def test_scalars_that_change_type_are_shown_as_written(name: str, shown: str, issues: int) -> None:
    document = load(SKILLS, FIELD_BUGS / "O14" / "ws", f"skills/{name}")
    value = document.records[name]
    assert (value["name"], len(document.issues)) == (shown, issues)
    assert isinstance(value["description"], str)
    assert "﻿" not in json.dumps(value, ensure_ascii=False)
