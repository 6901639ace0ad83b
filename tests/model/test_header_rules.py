from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model.header_rules import ONCE, created, issues, patched
from craftd.model.json_text import equal
from craftd.model.sessions import PERSISTENT, validate
from tests.strategies import json_values

Value = dict[str, Any]

NOW = 1772323200000
FOLDER = "/ws/sessions/s"


def change(old: Value, mode: str | None = "ask", **patch: Any) -> Value:
    return patched({"id": "s", **old}, patch, FOLDER, NOW, lambda value: mode)


def test_the_time_of_archiving_follows_and_goes_again() -> None:
    archived = change({}, set={"isArchived": True})
    assert archived["archivedAt"] == NOW
    assert patched(archived, {"set": {"isArchived": True}}, FOLDER, NOW + 1, lambda value: None) == archived
    back = change(archived, set={"isArchived": False})
    assert back == {"id": "s", "isArchived": False}
    assert change(archived, unset=["/isArchived"]) == {"id": "s"}
    assert change({}, set={"isArchived": True, "archivedAt": 7})["archivedAt"] == 7
    assert change(archived, set={"name": "N"})["archivedAt"] == NOW
    assert created({"isArchived": True}, NOW) == {"isArchived": True, "archivedAt": NOW}
    assert created({"isArchived": True, "archivedAt": 7}, NOW)["archivedAt"] == 7


def test_a_time_of_archiving_needs_an_archived_session() -> None:
    assert [issue.path for issue in issues({"archivedAt": 7}, None)] == ["archivedAt"]
    assert [issue.path for issue in issues({"archivedAt": 7, "isArchived": False}, {"id": "s"})] == ["archivedAt"]
    assert issues({"archivedAt": 7}, {"archivedAt": 7}) == [], "what the file held already"
    assert issues({"archivedAt": 7, "isArchived": True}, None) == []


@pytest.mark.parametrize(
    ("old", "given", "previous"),
    [
        ({"permissionMode": "safe"}, {"permissionMode": "allow-all"}, "safe"),
        ({}, {"permissionMode": "safe"}, "ask"),
        ({}, {"permissionMode": "ask"}, None),
        ({"permissionMode": "safe"}, {"permissionMode": "safe"}, None),
        ({"permissionMode": "safe"}, {"permissionMode": None}, "safe"),
        ({"permissionMode": "ask", "previousPermissionMode": "safe"}, {"permissionMode": "safe"}, "ask"),
        ({"permissionMode": "ask"}, {"permissionMode": "safe", "previousPermissionMode": "allow-all"}, "allow-all"),
        ({"permissionMode": "ask", "previousPermissionMode": "safe"}, {"name": "N"}, "safe"),
    ],
)
def test_the_mode_before_is_remembered(old: Value, given: Value, previous: str | None) -> None:
    assert change(old, set=given).get("previousPermissionMode") == previous


def test_a_new_session_had_no_mode_before() -> None:
    assert created({"permissionMode": "safe"}, NOW) == {"permissionMode": "safe"}


def test_what_was_read_follows_the_mark() -> None:
    read = {"hasUnread": False, "lastReadMessageId": "a1", "lastFinalMessageId": "a2"}
    unread = change(read, set={"hasUnread": True})
    assert unread == {"id": "s", "hasUnread": True, "lastFinalMessageId": "a2"}
    again = change(unread, set={"hasUnread": False})
    assert again == {"id": "s", **read, "lastReadMessageId": "a2"}
    chosen = change(unread, set={"hasUnread": False, "lastReadMessageId": "a1"})
    assert chosen["lastReadMessageId"] == "a1"
    upto = change({**read, "hasUnread": True}, set={"lastReadMessageId": "a2"})
    assert (upto["hasUnread"], upto["lastReadMessageId"]) == (False, "a2")
    assert change({**read, "hasUnread": True}, set={"lastReadMessageId": "a0"})["hasUnread"] is True
    assert change({"hasUnread": True}, set={"hasUnread": False}) == {"id": "s", "hasUnread": False}


def test_null_takes_a_known_field_away_and_nothing_else() -> None:
    old = {"name": "N", "model": None, "labels": ["bug"], "later": 1}
    assert change(old, set={"name": None, "labels": None}) == {"id": "s", "model": None, "later": 1}
    assert change(old, set={"model": None}) == {"id": "s", "name": "N", "labels": ["bug"], "later": 1}
    assert change(old, set={"later": None})["later"] is None
    assert created({"name": None, "later": None}, NOW) == {"later": None}


def test_some_fields_are_set_once() -> None:
    old = {"id": "s", **dict.fromkeys(ONCE, "x")}
    for name in ONCE:
        without = {key: member for key, member in old.items() if key != name}
        assert [issue.path for issue in issues({**old, name: "y"}, old)] == [name]
        assert [issue.path for issue in issues(without, old)] == [name]
        assert [issue.path for issue in issues(old, without)] == ([] if name == "taskSlug" else [name])
    assert issues(old, old) == issues(old, None) == []


def test_a_connection_is_chosen_before_the_first_message_or_when_there_is_none() -> None:
    old = {"id": "s", "llmConnection": "hub", "messageCount": 0}
    assert issues({**old, "llmConnection": "other"}, old) == []
    begun = {**old, "messageCount": 1}
    for new in ({**begun, "llmConnection": "other"}, {"id": "s", "messageCount": 1}):
        assert [issue.path for issue in issues(new, begun)] == ["llmConnection"]
    assert issues(begun, {"id": "s", "messageCount": 1}) == []


@given(st.dictionaries(st.sampled_from(PERSISTENT), json_values, max_size=6), st.sampled_from(PERSISTENT))
def test_a_change_of_anything_else_brings_nothing_with_it(old: Value, name: str) -> None:
    if name in ("isArchived", "permissionMode", "hasUnread", "lastReadMessageId", "workingDirectory", "id", "sdkCwd"):
        return
    if name == "pendingPlanExecution":
        return  # has rules of its own
    new = patched(old, {"unset": [f"/{name}"], "set": {name: {}}}, FOLDER, NOW, lambda value: "ask")
    assert equal(new, {**old, name: {}})


@given(st.dictionaries(st.sampled_from(PERSISTENT), json_values, max_size=6))
def test_odd_headers_never_fail(old: Value) -> None:
    for name in ("isArchived", "permissionMode", "hasUnread", "workingDirectory"):
        for wanted in (True, False, None, "safe", "/x"):
            new = patched(old, {"set": {name: wanted}}, FOLDER, NOW, lambda value: None)
            issues(new, old), validate(new, old)
