"""What sessions say of labels: taken apart, judged, resolved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import Issue
from craftd.model.label_entries import Entry, is_value, resolve, settle, with_entries

GOLDEN = Path(__file__).parents[1] / "golden/workspace"
TABLES = json.loads((GOLDEN / "expected.json").read_bytes())["tables"]
RESOLVED = TABLES["resolveSessionLabels"]
REASONS = {"unknown": "label-unknown", "unknown-with-value": "label-unknown", "takes-no-value": "value-unexpected",
           "bad-value": "value-wrong"}  # fmt: skip


def tree() -> dict[str, Any]:
    """The labels of the recorded workspace."""
    return walk(json.loads((GOLDEN / "home/workspaces/aurora-lab/labels/config.json").read_bytes())["labels"])


def walk(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in nodes:
        found |= {node["id"]: node, **walk(node.get("children", []))}
    return found


BASE = {
    "bug": {"id": "bug", "name": "Bug"},
    "parent-task": {"id": "parent-task", "name": "Parent task", "valueType": "string"},
    "priority": {"id": "priority", "name": "Priority", "valueType": "number"},
    "due": {"id": "due", "name": "Due", "valueType": "date"},
}


@pytest.mark.parametrize(("text", "verdict"), TABLES["parseLabelEntry"])
def test_an_entry_is_taken_apart_as_in_the_app(text: str, verdict: dict[str, Any]) -> None:
    entry = Entry.parse(text)
    assert str(entry) == text
    if "ok" in verdict:
        assert (entry.id, entry.value) == (verdict["ok"]["id"], verdict["ok"].get("rawValue"))


@pytest.mark.parametrize(("raw", "type", "verdict"), TABLES["validateLabelValue"])
def test_a_value_is_judged_as_in_the_app(raw: str, type: str, verdict: bool) -> None:
    assert is_value(raw, type) == (verdict and raw != "2026-02-29T10:00")  # there is no such day


@pytest.mark.parametrize(
    "raw", ["2026-13-01", "2026-01-30T25:00", "2026-01-30T24:00", "٢٠٢٦-01-30", "2026-01-30\n", "3\n", "٣"]
)
def test_what_only_looks_like_a_value_is_none(raw: str) -> None:
    assert not is_value(raw, "date")
    assert not is_value(raw, "number")


@pytest.mark.parametrize("text", RESOLVED["resolved"])
def test_what_the_app_resolves_stays(text: str) -> None:
    assert resolve(text, tree()) == text


@pytest.mark.parametrize("text", RESOLVED["unknown"])
def test_what_the_app_refuses_is_refused_for_its_reason(text: str) -> None:
    issue = resolve(text, tree())
    assert isinstance(issue, Issue)
    assert issue.code == REASONS[RESOLVED["reasons"][text]]


def test_a_label_is_found_by_its_name_too_the_first_of_equal_ones() -> None:
    assert resolve("NETWORK", tree()) == "network-2"  # it stands before the other one
    assert resolve("owner name::kim", tree()) == "owner::kim"
    assert resolve("priority::3", BASE) == resolve("Priority::3", BASE) == "priority::3"


def test_only_new_entries_are_judged_and_each_stands_there_once() -> None:
    old = {"labels": ["gone", "bug::1", "bug", "bug"]}
    assert settle({"labels": ["gone", "bug::1", "bug", "bug"]}, old, BASE) == (old, [])
    new, issues = settle({"labels": ["bug::1", "Bug", "bug", "Due::2026-02-28", "due::2026-02-28"]}, old, BASE)
    assert (new["labels"], issues) == (["bug::1", "bug", "due::2026-02-28"], [])
    _, issues = settle({"labels": ["gone", "nope", "due::2026-02-29"]}, old, BASE)
    assert [(issue.path, issue.code) for issue in issues] == [
        ("labels.1", "label-unknown"),
        ("labels.2", "value-wrong"),
    ]


@pytest.mark.parametrize("odd", [None, "bug", 7, {"a": 1}, [7], [None, {}]])
def test_what_is_no_list_of_texts_is_for_others_to_judge(odd: Any) -> None:
    assert settle({"labels": odd}, None, BASE) == ({"labels": odd}, [])
    assert with_entries({"labels": odd}, ()) == {"labels": odd}


def test_labels_of_odd_values_are_found_by_their_ids() -> None:
    odd = {"a": {"name": 7}, "b": {"name": None, "valueType": 7}, "c": {"valueType": "later"}}
    assert resolve("a", odd) == "a"
    assert isinstance(resolve("b::1", odd), Issue)
    assert resolve("c::1", odd) == "c::1"


def test_labels_found_are_added_behind() -> None:
    value = {"labels": ["bug"]}
    assert with_entries(value, ["bug"]) is value
    assert with_entries(value, ["due", "bug"]) == {"labels": ["bug", "due"]}
    assert with_entries({}, ["due"]) == {"labels": ["due"]}


def test_the_recorded_labels_are_those_the_app_resolved_with() -> None:
    assert list(tree()) == RESOLVED["available"]
