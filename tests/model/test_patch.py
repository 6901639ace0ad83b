from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from craftd.errors import InvalidParams
from craftd.model.json_text import MAX_DEPTH, canonical, equal, loads
from craftd.model.patch import apply, check, diff, format_pointer, merge, parse_pointer
from tests.strategies import keys, records

VECTORS = loads((Path(__file__).parents[1] / "vectors" / "patches.json").read_bytes())
"""What clients in any language must make of a patch: `{name, record, patch, result}`."""

few_keys = st.sampled_from(["a", "b", "c/d"])
few_values: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, 1, 1.0, "x", "y"]),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(few_keys, inner, max_size=3)),
    max_leaves=8,
)
near_records = st.dictionaries(few_keys, few_values, max_size=3)
"""Records over few keys and values, so that two of them have much in common."""

pointers = st.lists(few_keys, min_size=1, max_size=3).map(format_pointer)
set_changes = st.dictionaries(pointers, st.lists(st.sampled_from([1, 1.0, True, "x", "y"]), max_size=3), max_size=2)
patches: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "unset": st.lists(pointers, max_size=2),
        "set": near_records,
        "remove": set_changes,
        "add": set_changes,
    },
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_patch_does_what_the_vectors_say(vector: dict[str, Any]) -> None:
    assert check(vector["patch"]) == []
    assert canonical(apply(vector["record"], vector["patch"])) == canonical(vector["result"])


@given(records, records)
def test_a_mirror_that_applies_the_diff_equals_the_record(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = diff(old, new)
    assert check(patch) == []
    assert canonical(apply(old, patch)) == canonical(new)


@given(near_records, near_records)
def test_the_diff_of_similar_records_leads_from_one_to_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = diff(old, new)
    assert canonical(apply(old, patch)) == canonical(new)
    assert (patch == {}) == equal(old, new)


@given(records)
def test_a_record_does_not_differ_from_itself(record: dict[str, Any]) -> None:
    assert diff(record, copy.deepcopy(record)) == {}
    assert diff(record, dict(reversed(record.items()))) == {}


@given(near_records, patches)
def test_applying_leaves_the_record_and_the_patch_alone(record: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copy.deepcopy((record, patch))
    try:
        apply(record, patch)
    except InvalidParams:
        pass
    assert repr((record, patch)) == repr(before)


@given(near_records, patches)
def test_what_was_patched_differs_by_the_patch_or_less(record: dict[str, Any], patch: dict[str, Any]) -> None:
    try:
        after = apply(record, patch)
    except InvalidParams:
        assume(False)
    assert equal(apply(record, diff(record, after)), after)


def test_true_is_not_one_but_one_point_zero_is() -> None:
    assert diff({"a": 1}, {"a": True}) == {"set": {"a": True}}
    assert diff({"a": 1}, {"a": 1.0}) == {}
    assert diff({"a": None}, {}) == {"unset": ["/a"]}
    assert diff({}, {"a": None}) == {"set": {"a": None}}


def test_a_diff_names_only_what_changed() -> None:
    old = {"name": "A", "triggeredBy": {"event": "x", "timestamp": 1}, "labels": ["a", "b", "c"], "hidden": True}
    new = {"name": "B", "triggeredBy": {"event": "x", "timestamp": 2}, "labels": ["a", "c", "d"]}
    assert diff(old, new) == {
        "unset": ["/hidden"],
        "set": {"name": "B", "triggeredBy": {"timestamp": 2}},
        "remove": {"/labels": ["b"]},
        "add": {"/labels": ["d"]},
    }


@pytest.mark.parametrize("new", [["b", "a"], ["a", "b", "b"], ["c", "a", "b"], []])
def test_an_array_that_is_no_set_operation_away_is_replaced(new: list[str]) -> None:
    assert diff({"labels": ["a", "b"]}, {"labels": new}) == {"set": {"labels": new}}


def test_the_parts_apply_in_order() -> None:
    patch = {
        "add": {"/labels": ["new", "kept"]},
        "remove": {"/labels": ["old"]},
        "set": {"labels": ["old", "kept"], "deep": {"b": 2}},
        "unset": ["/deep", "/missing/far"],
    }
    record = {"labels": ["gone"], "deep": {"a": 1}, "odd": None}
    assert apply(record, patch) == {"labels": ["kept", "new"], "deep": {"b": 2}, "odd": None}


def test_set_merges_objects_and_replaces_everything_else() -> None:
    record = {"o": {"a": 1, "p": {"x": 1}}, "s": "text", "l": [1]}
    patch = {"set": {"o": {"p": {"y": 2}}, "s": {"now": "object"}, "l": [2], "n": None}}
    assert apply(record, patch) == {
        "o": {"a": 1, "p": {"x": 1, "y": 2}}, "s": {"now": "object"}, "l": [2], "n": None,
    }  # fmt: skip


def test_add_makes_what_is_missing_and_remove_does_not() -> None:
    assert apply({}, {"add": {"/a/b": [1, 1]}}) == {"a": {"b": [1]}}
    assert apply({}, {"remove": {"/a/b": [1]}}) == {}
    assert apply({"a": [1, True, 1.0]}, {"remove": {"/a": [1]}}) == {"a": [True]}


@pytest.mark.parametrize("member", ["add", "remove"])
@pytest.mark.parametrize("pointer", ["/name", "/name/first", "/labels/0", "/usage"])
def test_set_operations_through_no_object_or_on_no_array_are_refused(member: str, pointer: str) -> None:
    record = {"name": "A", "labels": ["x"], "usage": {}}
    with pytest.raises(InvalidParams) as refused:
        apply(record, {member: {pointer: ["y"]}})
    assert refused.value.issues[0].path == f"patch.{member}.{pointer}"


@pytest.mark.parametrize(
    ("patch", "path"),
    [
        ([], "patch"),
        ({"Set": {}}, "patch.Set"),
        ({"set": []}, "patch.set"),
        ({"unset": "/a"}, "patch.unset"),
        ({"unset": ["a"]}, "patch.unset.0"),
        ({"unset": ["/a", ""]}, "patch.unset.1"),
        ({"unset": ["/a~2"]}, "patch.unset.0"),
        ({"unset": [["/a"]]}, "patch.unset.0"),
        ({"add": ["/a"]}, "patch.add"),
        ({"add": {"a": []}}, "patch.add.a"),
        ({"remove": {"/a": "x"}}, "patch.remove./a"),
    ],
)
def test_a_patch_of_wrong_shape_is_refused_by_name(patch: object, path: str) -> None:
    assert [issue.path for issue in check(patch)] == [path]


def test_a_patch_cannot_build_what_could_not_be_read_again() -> None:
    assert check({"add": {"/a" * (MAX_DEPTH - 1): [1]}}) == []
    assert check({"add": {"/a" * MAX_DEPTH: [1]}}) != []


@given(st.lists(keys, min_size=1, max_size=4))
def test_any_keys_make_a_pointer_and_come_back(tokens: list[str]) -> None:
    pointer = format_pointer(tokens)
    assert parse_pointer(pointer) == tuple(tokens)
    assert check({"unset": [pointer]}) == []


@given(near_records, near_records)
def test_a_merge_takes_the_only_change_there_is(base: dict[str, Any], changed: dict[str, Any]) -> None:
    assert equal(merge(base, base, changed), changed)
    assert equal(merge(base, changed, base), changed)
    assert equal(merge(base, changed, changed), changed)


@given(near_records, st.dictionaries(st.sampled_from(["p", "q"]), few_values), st.dictionaries(few_keys, few_values))
def test_changes_of_different_fields_both_survive(
    base: dict[str, Any], mine: dict[str, Any], theirs: dict[str, Any]
) -> None:
    assert equal(merge(base, base | mine, theirs), theirs | mine)
    assert equal(merge(base, theirs, base | mine), theirs | mine)


@given(records, records, records)
def test_a_merge_invents_no_key_and_drops_none_that_both_have(
    base: dict[str, Any], mine: dict[str, Any], theirs: dict[str, Any]
) -> None:
    merged = merge(base, mine, theirs)
    assert merged.keys() <= mine.keys() | theirs.keys()
    assert merged.keys() >= mine.keys() & theirs.keys()


def test_a_merge_works_field_by_field_at_any_depth() -> None:
    base = {"name": "A", "plan": {"path": "p", "awaiting": True}, "flag": True, "gone": 1}
    mine = {"name": "MEM", "plan": {"path": "p", "awaiting": False}, "flag": True, "new": 1}
    theirs = {"plan": {"path": "q", "awaiting": True}, "flag": False, "gone": 1, "name": "DISK"}
    merged = merge(base, mine, theirs)
    expected = {"plan": {"path": "q", "awaiting": False}, "flag": False, "name": "DISK", "new": 1}
    assert list(merged.items()) == list(expected.items())


def test_labels_changed_on_both_sides_merge_as_sets() -> None:
    base, mine, theirs = ["a", "b", "c"], ["a", "c", "mine"], ["theirs", "a", "b", "c"]
    assert merge({"l": base}, {"l": mine}, {"l": theirs}) == {"l": ["theirs", "a", "c", "mine"]}
    assert merge({}, {"l": ["x"]}, {"l": ["y"]}) == {"l": ["y", "x"]}
    assert merge({"l": [1]}, {"l": [2]}, {"l": [3]}) == {"l": [3]}


def test_where_one_side_deleted_and_one_changed_theirs_stays() -> None:
    assert merge({"a": 1}, {}, {"a": 2}) == {"a": 2}
    assert merge({"a": 1}, {"a": 2}, {}) == {}
