from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model import labels
from craftd.model.noun import Facts
from craftd.model.nouns import NOUNS
from craftd.model.records import Record

GOLDEN = Path(__file__).parents[1] / "golden"


SMALL_FILES = [NOUNS[name] for name in ("projects", "sources", "skills", "statuses", "labels")]


def load(name: str) -> Any:
    return json.loads((GOLDEN / name).read_bytes())


def made(noun: str, value: Record, **more: Any) -> tuple[str, Record]:
    new = NOUNS[noun].new
    assert new is not None
    return new(value, Facts(now=7, pick=lambda n: 10, **more))


def shortened(slug: str) -> str:
    """The app cuts at 50 characters and may leave a hyphen there; no slug of ours ends so."""
    return slug.rstrip("-")


@pytest.mark.parametrize("case", load("projects/cases.json")["slug"], ids=lambda case: repr(case["name"]))
def test_project_slugs_are_the_apps(case: dict[str, Any]) -> None:
    _, value = made("projects", {"name": case["name"]} if case["name"] else {"name": "*"}, taken=case["existing"])
    assert value["slug"] == shortened(case["slug"])


@pytest.mark.parametrize("case", load("sources/slugs.json")["cases"], ids=lambda case: repr(case["name"]))
def test_source_slugs_are_the_apps(case: dict[str, Any]) -> None:
    id, value = made("sources", {"name": case["name"]}, taken=load("sources/slugs.json")["existingFolders"])
    assert (id, value["slug"]) == (shortened(case["slug"]),) * 2


CREATED_PROJECTS = [step for step in load("projects/operations.json")["steps"] if step["op"] == "create"]


@pytest.mark.parametrize("step", CREATED_PROJECTS, ids=lambda step: step["args"]["name"])
def test_a_new_project_has_the_keys_of_the_app_in_its_order_and_keeps_its_colour(step: dict[str, Any]) -> None:
    taken = {"release-notes"} if step["args"]["name"] == "Release notes!" else set()
    id, value = made("projects", step["args"], taken=taken)
    colour = {"color": step["args"]["color"]} if "color" in step["args"] else {}
    recorded = {**step["result"], "id": "proj_aaaaaaaa", "createdAt": 7, "updatedAt": 7, **colour}
    assert (id, list(value.items())) == ("proj_aaaaaaaa", list(recorded.items()))


def test_a_folder_is_never_shared_by_two_projects() -> None:
    among = NOUNS["projects"].among
    assert [issue.path for issue in among("proj_2", {"slug": "a"}, {"proj_1": {}, "proj_2": {}})] == ["slug"]
    assert among("proj_1", {"slug": "a"}, {"proj_1": {}}) == []


def test_a_project_without_a_name_gets_the_apps() -> None:
    assert made("projects", {"name": "  "})[1]["name"] == made("projects", {})[1]["name"] == "New Project"


def test_a_wrong_type_is_never_talked_over_by_a_default() -> None:
    for noun, member in (("projects", "name"), ("sources", "name"), ("sources", "enabled"), ("labels", "name")):
        _, value = made(noun, {member: 7})
        assert member in {issue.path for issue in NOUNS[noun].validate(value, None)}


def test_a_new_source_is_what_the_app_fills_in_and_still_needs_its_block() -> None:
    id, value = made("sources", {"name": "Crane API", "mcp": {"url": "https://a"}})
    assert id == "crane-api"
    assert value == {
        "id": "crane-api_aaaaaaaa", "name": "Crane API", "slug": "crane-api", "enabled": True, "provider": "custom",
        "type": "mcp", "mcp": {"url": "https://a"}, "createdAt": 7, "updatedAt": 7,
    }  # fmt: skip
    assert [issue.path for issue in NOUNS["sources"].validate(value, None)] == ["mcp"]
    assert [issue.path for issue in NOUNS["sources"].validate({**value, "type": "api"}, None)] == ["type"]


def test_an_id_a_client_asked_for_is_the_folder() -> None:
    assert made("sources", {"name": "x", "slug": "other"}, id="mine")[1]["slug"] == "mine"
    assert made("skills", {"name": "x"}, id="mine")[0] == "mine"


@pytest.mark.parametrize("noun", ["projects", "sources"])
def test_an_update_moves_its_time_and_keeps_the_version(noun: str) -> None:
    touch = NOUNS[noun].touch
    assert touch is not None
    assert touch({"a": 1, "updatedAt": 1}, Facts(now=7, pick=lambda n: 0)) == {"a": 1, "updatedAt": 7}
    assert "updatedAt" in NOUNS[noun].volatile


CREATED_STATUSES = [
    step["ok"] for step in load("workspace/expected.json")["operations"]["status"] if step["op"].startswith("create")
]


def test_new_statuses_are_the_apps_save_that_none_is_nameless() -> None:
    records = {value["id"]: value for value in NOUNS["statuses"].defaults}
    for recorded in CREATED_STATUSES:
        given = {key: recorded[key] for key in ("label", "color", "icon", "category") if key in recorded}
        id, value = made("statuses", given, taken=records, beside=records)
        assert value == {**recorded, "id": recorded["id"] or "status"}
        assert NOUNS["statuses"].validate(value, None) == []
        records[id] = value


def test_nobody_makes_a_status_fixed_or_default() -> None:
    _, value = made("statuses", {"label": "x", "isFixed": True, "isDefault": True})
    assert (value["isFixed"], value["isDefault"]) == (False, False)


def test_a_fixed_status_keeps_its_category_and_may_change_its_label() -> None:
    records = {value["id"]: value for value in NOUNS["statuses"].defaults}
    among = NOUNS["statuses"].among
    assert [issue.code for issue in among("todo", {**records["todo"], "category": "closed"}, records)] == [
        "fixed-category"
    ]
    assert among("todo", {**records["todo"], "label": "To do"}, records) == []
    assert among("backlog", {**records["backlog"], "category": "closed"}, records) == []


@pytest.mark.parametrize(
    ("name", "taken", "id"),
    [
        ("Brand New", (), "brand-new"), ("Network", {"network"}, "network-2"), ("###", (), "label"),
        ("###", {"label"}, "label-2"), ("a" * 29 + " b", (), "a" * 29),
        ("Waiting for the external laboratory results", (), "waiting-for-the-external-labor"),
    ],
)  # fmt: skip
def test_a_label_id_is_made_from_the_name(name: str, taken: Any, id: str) -> None:
    assert made("labels", {"name": name}, taken=taken) == (id, {"id": id, "name": name})


TREE: dict[str, Record] = {
    "a": {}, "b": {"parent": "a"}, "c": {"parent": "b"}, "d": {}, "e": {"parent": "d"}, "f": {"parent": "e"},
}  # fmt: skip


def test_ancestors_and_descendants() -> None:
    assert list(labels.ancestors("c", TREE)) == ["b", "a"]
    assert labels.descendants("a", TREE) == ("b", "c")
    assert labels.descendants("c", TREE) == ()


def test_a_circle_of_parents_ends() -> None:
    circle: dict[str, Record] = {"a": {"parent": "b"}, "b": {"parent": "a"}}
    assert list(labels.ancestors("a", circle)) == ["b"]
    assert labels.descendants("a", circle) == ("b",)


@pytest.mark.parametrize(
    ("id", "parent", "code"),
    [
        ("a", "f", "label-depth"), ("b", "f", None), ("a", "c", "cycle"), ("a", "a", "parent-unknown"),
        ("a", "nobody", "parent-unknown"), ("c", "d", None), ("new", "c", None),
    ],
)  # fmt: skip
def test_where_a_label_may_go(id: str, parent: str, code: str | None) -> None:
    found = [issue.code for issue in labels.among(id, {"parent": parent}, TREE)]
    assert found == ([] if code is None else [code])


@pytest.mark.parametrize("noun", SMALL_FILES, ids=lambda noun: noun.name)
def test_every_noun_accepts_its_own_defaults_and_knows_its_members(noun: Any) -> None:
    for value in noun.defaults:
        assert noun.validate(value, None) == []
        assert value.keys() <= set(noun.fields)
        assert noun.id_pattern.fullmatch(value["id"])
    assert set(noun.light or ()) <= set(noun.fields)


@pytest.mark.parametrize("noun", SMALL_FILES, ids=lambda noun: noun.name)
@pytest.mark.parametrize("id", ["", "..", ".", "a/b", "a\\b", "a\n", "Ä", "a\x00", "/a", "a" * 300])
def test_no_id_pattern_lets_a_path_through(noun: Any, id: str) -> None:
    assert noun.id_pattern.fullmatch(id) is None
