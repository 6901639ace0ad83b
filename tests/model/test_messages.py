from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model import patch as patches
from craftd.model.json_text import equal, utf16_length
from craftd.model.messages import (
    MESSAGE_TYPES,
    Counters,
    is_message,
    normalise,
    patched,
    preview,
    validate,
    validate_change,
)
from craftd.model.portable import parse_line
from tests.model import golden
from tests.strategies import message_records, records, texts

VECTORS = golden.load("vectors.json")
HERE = "/home/ada/ws/sessions/260301-a-b"


@pytest.mark.parametrize(("content", "expected"), VECTORS["preview"])
def test_a_preview_reads_as_the_apps(content: str, expected: str | None) -> None:
    if expected is not None and expected.endswith("\ud83d"):
        expected = expected[:-1]  # we cut between characters
    assert preview(content) == expected


@pytest.mark.parametrize("vector", VECTORS["headerComputed"])
def test_counters_follow_from_the_messages_as_in_the_app(vector: dict[str, Any]) -> None:
    fields = Counters().extend(vector["messages"]).header_fields()
    names = ("messageCount", "lastMessageRole", "preview", "lastFinalMessageId")
    assert {name: fields.get(name) for name in names} == {name: vector[name] for name in names}
    assert None not in fields.values()


@given(st.lists(message_records, max_size=6), st.integers(0, 6))
def test_counters_are_the_same_however_the_messages_arrive(messages: list[dict[str, Any]], split: int) -> None:
    one_by_one = Counters()
    for message in messages:
        one_by_one = one_by_one.add(message)
    assert Counters().extend(messages) == one_by_one
    assert Counters().extend(messages[:split]).extend(messages[split:]) == one_by_one


@given(st.lists(records, max_size=4))
def test_counters_of_odd_records_never_fail(odd: list[dict[str, Any]]) -> None:
    assert Counters().extend(odd).header_fields()["messageCount"] == len(odd)


def test_counters_remember_the_last_timestamp_and_id() -> None:
    told = {"id": "a", "type": "user", "content": "x", "timestamp": 5}
    untold = {"id": "b", "type": "info", "content": "", "timestamp": "soon"}
    counters = Counters().extend([told, untold, {"timestamp": True}])
    assert (counters.last_timestamp, counters.last_id, counters.count) == (5, None, 3)


@given(texts)
def test_a_preview_has_at_most_150_units(content: str) -> None:
    shown = preview(content * 60)
    assert shown is None or 0 < utf16_length(shown) <= 150


@pytest.mark.parametrize("before", range(128, 152))
def test_a_preview_never_ends_inside_a_path_below_the_session(before: int) -> None:
    shown = preview("x" * before + f" {HERE}/plans/p.md", HERE)
    assert shown is not None
    start = "x" * before + " "
    if before + 1 + len("{{SESSION_PATH}}") <= 150:
        # On disk the path is its token, so that much of the rest fits.
        assert shown == start + HERE + "/plans/p.md"[: 150 - before - 1 - len("{{SESSION_PATH}}")]
    else:
        assert shown == start[:150]


def test_a_path_behind_the_end_of_a_preview_changes_nothing() -> None:
    assert preview("x" * 200 + HERE, HERE) == "x" * 150
    assert preview(f"{HERE}/a {'y' * 200} {HERE}", HERE) == f"{HERE}/a {'y' * 131}"


@pytest.mark.parametrize("hostile", ["<", "<edit_request>", "[file:", "[skill:a", "[source:b", "<a [folder:"])
def test_a_preview_of_hostile_text_takes_linear_time(hostile: str) -> None:
    assert preview(hostile * 200_000 + " end") is not None  # quadratic time would be minutes


def test_a_new_message_is_stored_without_its_live_state_and_with_type_last() -> None:
    live = {"id": "m", "role": "user", "isStreaming": True, "content": "x", "isPending": False, "odd": None}
    assert list(normalise(live).items()) == [("id", "m"), ("content", "x"), ("odd", None), ("type", "user")]
    assert list(normalise({"type": "tool", "role": "user", "id": "m"}).items()) == [("id", "m"), ("type", "tool")]


@given(message_records)
def test_normalising_twice_changes_nothing(message: dict[str, Any]) -> None:
    once = normalise(message)
    assert list(normalise(once).items()) == list(once.items())


@pytest.mark.parametrize("session", golden.SOUND)
def test_recorded_messages_are_messages_without_fault_and_headers_are_not(session: str) -> None:
    header, *messages = (parse_line(line, HERE) for line in golden.lines(session))
    assert not is_message(header)
    for message in messages:
        assert is_message(message)
        assert validate(message) == []
        assert list(normalise(message)) == list(message)


def test_every_known_type_is_recorded() -> None:
    recorded = {parse_line(line, HERE).get("type") for line in golden.lines("260302-calm-cedar")[1:]}
    assert recorded == MESSAGE_TYPES


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"id": ""}, "id"),
        ({"id": 5}, "id"),
        ({"id": "x" * 201}, "id"),
        ({"id": "#4"}, "id"),
        ({"id": "~120"}, "id"),
        ({"type": None}, "type"),
        ({"content": None}, "content"),
        ({"timestamp": 1.5}, "timestamp"),
        ({"timestamp": True}, "timestamp"),
        ({"isIntermediate": "yes"}, "isIntermediate"),
        ({"toolInput": []}, "toolInput"),
        ({"annotations": {}}, "annotations"),
        ({"annotations": [{}, 1]}, "annotations.1"),
    ],
)
def test_a_message_of_wrong_shape_is_refused_by_name(change: dict[str, Any], path: str) -> None:
    sound = {"id": "m", "type": "user", "content": "x", "timestamp": 1, "annotations": [{}], "odd": object()}
    assert validate(sound) == []
    assert [issue.path for issue in validate({**sound, **change})] == [path]


def test_a_message_of_a_type_from_the_future_is_fine() -> None:
    assert validate({"id": "m", "type": "hologram", "content": ""}) == []


def test_a_type_that_is_no_text_makes_no_message() -> None:
    assert not is_message({"type": ["user"], "content": ""})


# Changes of stored messages


def test_a_patch_leaves_members_where_they_stood_and_puts_new_ones_before_the_type() -> None:
    stored = {"id": "m", "content": "old", "odd": None, "timestamp": 5, "type": "tool"}
    new = patched(stored, {"set": {"content": "new", "toolResult": "r"}, "unset": ["/odd"]})
    assert list(new.items()) == [
        ("id", "m"), ("content", "new"), ("timestamp", 5), ("toolResult", "r"), ("type", "tool"),
    ]  # fmt: skip
    elsewhere = {"type": "user", "id": "m", "content": "c"}
    assert list(patched(elsewhere, {"set": {"hidden": True}})) == ["type", "id", "content", "hidden"]


def test_a_patch_stores_no_live_state_and_leaves_what_is_stored_of_it() -> None:
    stored = {"id": "m", "content": "c", "isPending": False, "type": "user"}
    patch = {"set": {"isStreaming": True, "role": "user", "isPending": True}}
    assert patched(stored, patch) == {**stored, "isPending": True}


@given(message_records, records)
def test_a_patched_message_is_what_the_patch_says(record: dict[str, Any], members: dict[str, Any]) -> None:
    set = {name: value for name, value in members.items() if name not in ("isStreaming", "isPending", "role")}
    assert equal(patched(record, {"set": set}), patches.apply(record, {"set": set}))


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        ({"toolName": "t"}, []),
        ({"id": "n"}, ["id"]),
        ({"type": ""}, ["type"]),
        ({"content": None}, ["content"]),
        ({"badges": [1]}, ["badges.0"]),
        ({"n": [float("inf")]}, [""]),
    ],
)
def test_only_what_a_change_makes_wrong_is_wrong(change: dict[str, Any], paths: list[str]) -> None:
    old = {"id": "m", "content": "c", "timestamp": "then", "type": "user"}
    assert [issue.path for issue in validate_change(old, {**old, **change})] == paths
