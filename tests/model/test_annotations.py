from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from craftd.model import annotations as marks
from craftd.model import messages
from craftd.model.json_text import equal
from tests.model import golden
from tests.strategies import json_values, records

Value = dict[str, Any]

NOW = 1772323200000
QUOTE = {"type": "text-quote", "exact": "forty-two"}
TARGET = {"selectors": [QUOTE]}


def recorded() -> Value:
    lines = [json.loads(line) for line in golden.lines("260302-calm-cedar")[1:]]
    [message] = [line for line in lines if "annotations" in line]
    [annotation] = message["annotations"]
    assert isinstance(annotation, dict)
    return annotation


def made(**value: Any) -> Value:
    return marks.created({"target": TARGET, **value}, "s", "m1", NOW, lambda n: 0)


def paths(value: Value, old: Value | None = None) -> list[str]:
    return [issue.path for issue in marks.validate(value, old, "m1")]


def test_an_annotation_of_the_app_is_without_fault() -> None:
    annotation = recorded()
    assert marks.validate(annotation, None, "msg-answer") == []
    assert marks.validate(annotation, annotation, "msg-answer") == []
    assert [issue.path for issue in marks.validate(annotation, None, "another")] == ["target.source.messageId"]


def test_a_new_one_gets_what_a_client_leaves_out() -> None:
    assert made() == {
        "id": f"ann-{NOW}-000000",
        "schemaVersion": 1,
        "createdAt": NOW,
        "body": [],
        "target": {"selectors": [QUOTE], "source": {"sessionId": "s", "messageId": "m1"}},
    }
    given_ = made(id="a1", schemaVersion=7, createdAt=5, body=[{"type": "highlight"}], later={"x": None})
    assert given_["id"] == "a1"
    assert (given_["schemaVersion"], given_["createdAt"], given_["later"]) == (1, 5, {"x": None})
    elsewhere = made(target={**TARGET, "source": {"sessionId": "other", "messageId": "m1", "part": 2}})
    assert elsewhere["target"]["source"] == {"sessionId": "s", "messageId": "m1", "part": 2}
    assert paths(elsewhere) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"id": ""}, "id"),
        ({"id": "a\n"}, "id"),
        ({"id": 5}, "id"),
        ({"target": None}, "target"),
        ({"target": {"selectors": []}}, "target.selectors"),
        ({"target": {}}, "target.selectors"),
        ({"target": {"selectors": [{}]}}, "target.selectors.0.type"),
        ({"target": {"selectors": [{"type": "text-quote"}]}}, "target.selectors.0.exact"),
        (
            {"target": {"selectors": [QUOTE, {"type": "text-position", "start": -1, "end": 3}]}},
            "target.selectors.1.start",
        ),
        ({"target": {"selectors": [{"type": "block", "blockType": "code"}]}}, "target.selectors.0.path"),
        (
            {"target": {"selectors": [{"type": "xywh", "unit": "px", "x": "1", "y": 1, "w": 1, "h": 1}]}},
            "target.selectors.0.x",
        ),
        ({"target": {"selectors": [{"type": "table-cell", "rowKey": 1}]}}, "target.selectors.0.columnKey"),
        ({"target": {**TARGET, "source": {"messageId": "m2"}}}, "target.source.messageId"),
        ({"body": {}}, "body"),
        ({"body": [{"type": "note"}]}, "body.0.text"),
        ({"body": [{"type": "tag", "value": 1}]}, "body.0.value"),
        ({"createdAt": "now"}, "createdAt"),
        ({"intent": 1}, "intent"),
        ({"style": {"opacity": True}}, "style.opacity"),
        ({"meta": []}, "meta"),
    ],
)
def test_a_wrong_member_is_named(change: Value, path: str) -> None:
    if "target" not in change:
        change = {"target": TARGET, **change}
    value = marks.created(change, "s", "m1", NOW, lambda n: 0)
    if change.get("id") == "":
        value["id"] = ""
    assert paths(value) == [path]


def test_what_nobody_knows_yet_is_fine() -> None:
    target = {"selectors": [{"type": "svg", "shape": 1}]}
    assert paths(made(target=target, intent="poem", status="later", body=[{"type": "emoji"}], more=None)) == []


def test_a_change_moves_its_time_and_not_its_place() -> None:
    old = made(id="a1")
    assert marks.patched(old, {"set": {"body": []}}, NOW + 1) is old
    new = marks.patched(old, {"set": {"status": "resolved"}}, NOW + 1)
    assert (new["updatedAt"], new["status"]) == (NOW + 1, "resolved")
    for member, wanted in (("id", "a2"), ("schemaVersion", 2)):
        assert paths({**old, member: wanted}, old) == [member]
    moved = {**old, "target": {**old["target"], "source": {"sessionId": "s", "messageId": "m9"}}}
    assert paths(moved, old) == ["target.source"]
    assert paths({**old, "target": {**old["target"], "selectors": []}}, old) == ["target.selectors"]
    odd = {**old, "style": 5}
    assert paths({**odd, "status": "open"}, odd) == [], "what was there is nobody's fault now"


def test_a_message_keeps_its_order() -> None:
    message = {"id": "m1", "content": "", "type": "user"}
    assert list(marks.with_annotations(message, [])) == ["id", "content", "annotations", "type"]
    assert list(marks.with_annotations({"annotations": [], **message}, [1])) == ["annotations", "id", "content", "type"]
    assert list(marks.with_annotations({"type": "user", "id": "m1"}, [])) == ["type", "id", "annotations"]


def test_what_two_programs_annotate_is_merged_one_by_one() -> None:
    base = {"id": "m1", "content": "x", "annotations": [{"id": "a1"}, {"id": "a2"}, {"id": "a3"}], "type": "user"}
    mine = {**base, "annotations": [{"id": "a1", "status": "open"}, {"id": "a3"}, {"id": "b1"}]}
    theirs = {**base, "content": "y", "annotations": [{"id": "a1", "intent": "question"}, {"id": "a2"}, {"id": "c1"}]}
    both = messages.merged(base, mine, theirs)
    first = {"id": "a1", "intent": "question", "status": "open"}
    assert both == {**base, "content": "y", "annotations": [first, {"id": "c1"}, {"id": "b1"}]}
    fresh = {"id": "m1", "content": "x", "type": "user"}
    both = messages.merged(fresh, {**fresh, "annotations": [{"id": "b1"}]}, {"annotations": [{"id": "c1"}], **fresh})
    assert both["annotations"] == [{"id": "c1"}, {"id": "b1"}]
    twice = [{"id": "a1"}, {"id": "a1"}]
    assert marks.merged([], [{"id": "b1"}], twice) == twice, "they cannot be told from each other"


def test_a_message_is_held_to_the_limits_too() -> None:
    message = {"id": "m1", "content": "", "type": "user"}
    many = {**message, "annotations": [{"id": f"a{n}"} for n in range(marks.MOST + 1)]}
    assert [issue.path for issue in messages.validate(many)] == ["annotations"]
    assert messages.validate_change(many, {**many, "content": "x"}) == [], "it was so before"
    long = {**message, "annotations": [{"id": "a1"}, {"id": "a2", "body": "x" * marks.MOST_BYTES}]}
    assert [issue.path for issue in messages.validate(long)] == ["annotations.1"]


@given(records, json_values)
def test_odd_annotations_never_fail(value: Value, target: Any) -> None:
    new = marks.created({**value, "target": target}, "s", "m1", NOW, lambda n: 0)
    marks.validate(new, None, "m1")
    marks.validate(new, value, "m1")
    assert marks.place_of([None, 5, value], "a") in (None, 2)
    assert marks.merged([value], [target], [value, target]) in ([value], [value, target], [target])


@given(records)
def test_of_what_is_no_list_there_is_none(message: Value) -> None:
    assert equal(marks.of(message), message["annotations"] if isinstance(message.get("annotations"), list) else [])
