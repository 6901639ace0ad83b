from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import Corrupt, Forbidden, ValidationFailed
from craftd.model.noun import Facts
from craftd.store.atomic import ForeignWrite
from craftd.store.files import Document
from craftd.store.layout import SHELVES

STATUSES, LABELS = SHELVES["statuses"], SHELVES["labels"]
TESTS = Path(__file__).parents[1]
GOLDEN = json.loads((TESTS / "golden/workspace/expected.json").read_bytes())
FACTS = Facts(now=1, pick=lambda n: 0)

TREE = {
    "version": 1,
    "mine": [None],
    "labels": [
        {
            "id": "a", "name": "A", "x": 1.5,
            "children": [{"id": "b", "name": "B", "children": [{"id": "c", "name": "C"}]}],
        },
        "no entry",
        {"name": "no id"},
        {"id": "d", "name": "D"},
        {"id": "a", "name": "again"},
    ],
}  # fmt: skip


def write(root: Path, path: str, value: Any) -> None:
    (root / path).parent.mkdir(exist_ok=True)
    (root / path).write_text(value if isinstance(value, str) else json.dumps(value, indent=2))


def load(shelf: Any, root: Path) -> Document:
    document = shelf.load(root, shelf.file)
    assert document is not None
    return document


def save(root: Path, changes: dict[str, Any], shelf: Any = LABELS) -> Any:
    """The file's JSON after *changes*."""
    saved = shelf.save(root, shelf.file, load(shelf, root), changes, FACTS)
    assert saved == load(shelf, root)
    return json.loads((root / shelf.file).read_bytes())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "labels/config.json", TREE)
    return tmp_path


def test_a_tree_is_read_depth_first_with_parents(root: Path) -> None:
    assert load(LABELS, root).records == {
        "a": {"id": "a", "name": "A", "x": 1.5},
        "b": {"id": "b", "name": "B", "parent": "a"},
        "c": {"id": "c", "name": "C", "parent": "b"},
        "d": {"id": "d", "name": "D"},
    }


def test_what_is_no_entry_is_reported_and_kept(root: Path) -> None:
    document = load(LABELS, root)
    assert document.sound
    assert [(issue.message.partition(":")[0], issue.code) for issue in document.issues] == [
        ("labels.1", "schema"), ("labels.2.id", "schema"), ("labels.4.id", "duplicate-id"),
    ]  # fmt: skip
    assert all(issue.range is not None for issue in document.issues)
    after = save(root, {"d": {"id": "d", "name": "Dee"}})
    assert after == {**TREE, "labels": [*TREE["labels"][:3], {"id": "d", "name": "Dee"}, TREE["labels"][4]]}  # type: ignore[index]


def test_a_change_touches_no_other_byte(root: Path) -> None:
    before = (root / "labels/config.json").read_text()
    save(root, {"c": {"id": "c", "name": "Sea", "parent": "b"}})
    assert (root / "labels/config.json").read_text() == before.replace('"C"', '"Sea"')


def test_setting_a_parent_moves_the_node_with_its_children(root: Path) -> None:
    after = save(root, {"b": {"id": "b", "name": "B", "parent": "d"}})
    assert after["labels"][0]["children"] == []
    assert after["labels"][3]["children"] == [{"id": "b", "name": "B", "children": [{"id": "c", "name": "C"}]}]


def test_removing_the_parent_moves_a_node_to_the_top(root: Path) -> None:
    assert save(root, {"c": {"id": "c", "name": "C"}})["labels"][-1] == {"id": "c", "name": "C"}


@pytest.mark.parametrize("parent", ["nobody", "b", "c", "a"])
def test_a_node_never_gets_lost_below_itself(root: Path, parent: str) -> None:
    before = (root / "labels/config.json").read_text()
    with pytest.raises(ValidationFailed):
        save(
            root,
            {"b": {"id": "b", "name": "B", "parent": parent}} if parent != "a" else {"a": {"id": "a", "parent": "a"}},
        )
    assert (root / "labels/config.json").read_text() == before


def test_new_nodes_are_appended_where_they_belong(root: Path) -> None:
    after = save(root, {"e": {"id": "e", "name": "E", "parent": "d"}, "f": {"id": "f", "name": "F"}})
    assert after["labels"][3]["children"] == [{"id": "e", "name": "E"}]
    assert after["labels"][-1] == {"id": "f", "name": "F"}


def test_deleting_a_node_deletes_what_is_below_and_every_repetition(root: Path) -> None:
    assert save(root, {"a": None, "b": None, "c": None})["labels"] == TREE["labels"][1:4]  # type: ignore[index]


def test_deleting_the_last_child_leaves_no_empty_list(root: Path) -> None:
    assert save(root, {"b": None})["labels"][0] == {"id": "a", "name": "A", "x": 1.5}


def test_without_a_file_the_apps_defaults_are_served_and_written_by_the_first_change(tmp_path: Path) -> None:
    creation = GOLDEN["creation"]
    assert len(load(LABELS, tmp_path).records) == 10
    assert list(tmp_path.iterdir()) == []
    after = save(tmp_path, {"new": {"id": "new", "name": "New"}})
    assert after == {
        **creation["labelsConfig"],
        "labels": [*creation["labelsConfig"]["labels"], {"id": "new", "name": "New"}],
    }
    assert list(after) == list(creation["labelsConfig"])
    changed = save(tmp_path, {"backlog": None}, STATUSES)
    assert changed == {**creation["statusesConfig"], "statuses": creation["statusesConfig"]["statuses"][1:]}
    assert list(changed) == list(creation["statusesConfig"])
    assert not (tmp_path / "statuses/config.json").read_text().endswith("\n")


def test_a_file_that_appears_while_we_write_the_first_one_wins(tmp_path: Path) -> None:
    document = load(LABELS, tmp_path)
    write(tmp_path, "labels/config.json", TREE)
    with pytest.raises(ForeignWrite):
        LABELS.save(tmp_path, "labels/config.json", document, {"new": {"id": "new"}}, FACTS)
    assert json.loads((tmp_path / "labels/config.json").read_text()) == TREE


@pytest.mark.parametrize(
    ("shelf", "file", "line"),
    [
        (STATUSES, "partial_statuses.json", 4), (LABELS, "trailing_comma_labels.json", 1),
        (STATUSES, "missing_fixed_status.json", 1),
    ],
)  # fmt: skip
def test_a_half_written_file_is_reported_and_never_written_over(
    tmp_path: Path, shelf: Any, file: str, line: int
) -> None:
    text = (TESTS / "field_bugs/O15" / file).read_text()
    write(tmp_path, shelf.file, text)
    document = load(shelf, tmp_path)
    assert not document.sound
    assert document.issues[0].path == shelf.file
    assert document.issues[0].range["start"]["line"] + 1 == line  # type: ignore[index]
    with pytest.raises(Corrupt):
        shelf.save(tmp_path, shelf.file, document, {"blocked": {"id": "blocked"}}, FACTS)
    assert (tmp_path / shelf.file).read_text() == text


@pytest.mark.parametrize(
    ("name", "sound", "codes"),
    [
        ("statuses-not-json", False, {"not-json"}), ("statuses-missing-fixed", False, {"fixed-status-missing"}),
        ("statuses-fixed-flag-off", False, {"fixed-flag-off"}), ("statuses-wrong-types", False, {"schema"}),
        ("statuses-duplicate-id", True, {"duplicate-id"}), ("statuses-id-traversal", True, {"bad-slug"}),
        ("statuses-color-name", True, {"bad-color"}),
        ("statuses-all-closed", True, {"fixed-category", "no-open-status"}),
        ("labels-missing-array", False, {"schema"}), ("labels-duplicate-across-levels", True, {"duplicate-id"}),
        ("labels-child-repeats-parent", True, {"duplicate-id"}), ("labels-six-levels", True, {"label-depth"}),
        ("labels-bad-slug", True, {"bad-slug"}), ("labels-bad-value-type", True, {"schema"}),
        ("labels-empty-auto-rule", True, {"schema"}),
    ],
)  # fmt: skip
def test_recorded_invalid_files_load_as_in_the_app_and_are_reported(
    tmp_path: Path, name: str, sound: bool, codes: set[str]
) -> None:
    shelf: Any = SHELVES[name.partition("-")[0]]
    write(tmp_path, shelf.file, (TESTS / f"golden/workspace/invalid/{name}.json").read_text())
    document = load(shelf, tmp_path)
    assert (document.sound, {issue.code for issue in document.issues}) == (sound, codes)
    assert all(issue.range is not None for issue in document.issues)
    loader = GOLDEN["invalid"][f"{name}.json"]["loader"]
    assert set(loader["ids"]) <= document.records.keys()
    assert shelf is LABELS or list(document.records) == list(dict.fromkeys(loader["ids"]))


@pytest.mark.parametrize("workspace", ["workspaces/aurora-lab", "outside/field-notes"])
def test_recorded_files_load_as_in_the_app_and_survive_a_change_and_back(tmp_path: Path, workspace: str) -> None:
    recorded = GOLDEN["workspaces"][workspace.rpartition("/")[2]]
    for shelf, key in ((STATUSES, "loadStatusConfig"), (LABELS, "loadLabelConfig")):
        file: str = shelf.keys(tmp_path)[0]
        before = (TESTS / "golden/workspace/home" / workspace / file).read_bytes()
        write(tmp_path, file, before.decode())
        records = load(shelf, tmp_path).records
        assert load(shelf, tmp_path).issues == ()
        if shelf is STATUSES:
            assert list(records.values()) == recorded[key]["statuses"]
        else:
            assert list(records) == recorded["flatLabelIds"]
        for id in records:
            value = load(shelf, tmp_path).records[id]
            save(tmp_path, {id: {**value, "color": "info/7"}}, shelf)
            save(tmp_path, {id: value}, shelf)
        assert (tmp_path / file).read_bytes() == before


def test_a_linked_folder_is_read_and_never_written(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/config.json", TREE)
    (root := tmp_path / "ws").mkdir()
    (root / "labels").symlink_to(tmp_path / "elsewhere")
    document = load(LABELS, root)
    assert document.linked
    with pytest.raises(Forbidden):
        LABELS.save(root, "labels/config.json", document, {"a": None}, FACTS)


def test_a_linked_file_is_written_at_its_target_only_in_the_workspace(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere.json", TREE)
    (root := tmp_path / "ws").mkdir()
    write(root, "labels/own.json", TREE)
    link, before = root / "labels/config.json", (root / "labels/own.json").read_bytes()
    link.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(Forbidden, match=r"labels/config\.json"):
        save(root, {"a": None})
    assert (tmp_path / "elsewhere.json").read_bytes() == before
    link.unlink()
    link.symlink_to("own.json")
    save(root, {"a": None})
    assert link.is_symlink()
    assert (root / "labels/own.json").read_bytes() != before


@pytest.mark.parametrize(("path", "known"), [("labels/config.json", True), ("labels", True), ("labels/x", False)])
def test_a_changed_path_leads_to_the_file(path: str, known: bool) -> None:
    assert (LABELS.key_of(path) == "labels/config.json") is known


def test_smart_labels_are_the_views_until_there_are_views(tmp_path: Path) -> None:
    shutil.copytree(TESTS / "golden/workspace/legacy/label-colors-and-smart-labels", tmp_path, dirs_exist_ok=True)
    expected = GOLDEN["legacy"]["label-colors-and-smart-labels"]["loadViewsConfig"]["views"]
    views = SHELVES["views"]
    document = load(views, tmp_path)
    assert list(document.records.values()) == expected
    assert not (tmp_path / "views.json").exists()
    labels = (tmp_path / "labels/config.json").read_bytes()
    more = {"id": "view-more", "name": "More", "expression": "hasUnread"}
    assert save(tmp_path, {"view-more": more}, views)["views"] == [*expected, more]
    assert save(tmp_path, {"view-hot": None}, views)["views"] == [expected[1], more]
    assert (tmp_path / "labels/config.json").read_bytes() == labels


@pytest.mark.parametrize(
    "smart",
    [None, 7, [], [7, {"id": 7}, {"id": "x"}, {"id": "x", "name": "X", "expression": "("}], "x"],
)
def test_smart_labels_that_are_none_leave_the_apps_views(tmp_path: Path, smart: Any) -> None:
    write(tmp_path, "labels/config.json", {"version": 1, "labels": [], "smartLabels": smart})
    assert "view-new" in load(SHELVES["views"], tmp_path).records
    write(tmp_path, "labels/config.json", "{")
    assert "view-new" in load(SHELVES["views"], tmp_path).records
