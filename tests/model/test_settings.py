"""What holds for a session, compared with what the app resolved, and where craftd goes on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model.settings import NAMES, Above, Levels, explicit_issues, resolve, thinking_level, with_directory

GOLDEN = Path(__file__).parents[1] / "golden/workspace"
TABLES = json.loads((GOLDEN / "expected.json").read_bytes())["tables"]
SHARED = json.loads((GOLDEN / "home/config.json").read_bytes())
DEFAULTS = json.loads((GOLDEN / "home/config-defaults.json").read_bytes())
CODE = "claude-opus-4-8"


def levels(
    session: Any = None, workspace: Any = None, shared: Any = SHARED, *, defaults: Any = None, **more: Any
) -> Levels:
    above = Above(
        workspace={"defaults": workspace or {}}, shared=shared, defaults={"workspaceDefaults": defaults or {}}
    )
    return Levels(root="/ws", home="/home/ada", above=above, session=session or {}, **more)


def found(name: str, *args: Any, **more: Any) -> tuple[Any, str]:
    effective = resolve(levels(*args, **more))[name]
    return effective.value, effective.level


@pytest.mark.parametrize(("session", "workspace", "answer"), TABLES["resolveConnection"])
def test_a_connection_is_found_where_the_app_found_it(session: Any, workspace: Any, answer: str) -> None:
    value, level = found("llmConnection", {"llmConnection": session}, {"defaultLlmConnection": workspace})
    assert value == answer
    assert level == ("session" if answer == session else "workspace" if answer == workspace else "global")


@pytest.mark.parametrize(("provider", "model", "connection", "answer"), TABLES["resolveModel"])
def test_a_model_is_what_the_app_made_of_it(provider: str, model: Any, connection: str, answer: str) -> None:
    known = {entry["slug"]: entry for entry in SHARED["llmConnections"]}
    entry = known.get(connection, {"slug": connection, "providerType": provider})
    assert entry["providerType"] == provider
    value, level = found("model", {"model": model, "llmConnection": connection}, None, {"llmConnections": [entry]})
    assert (value or "") == answer
    given_by = "connection" if "defaultModel" in entry else "built-in"
    assert level == ("session" if model and answer in (model, CODE) else given_by)


@pytest.mark.parametrize(("raw", "answer"), TABLES["normalizeThinkingLevel"])
def test_a_thinking_level_is_read_as_the_app_reads_it(raw: Any, answer: Any) -> None:
    assert thinking_level(raw) == answer


def test_the_recorded_home_says_how_much_is_thought() -> None:
    more = DEFAULTS["workspaceDefaults"]
    assert found("thinkingLevel", defaults=more) == ("high", "global")
    assert found("thinkingLevel", shared={}, defaults=more) == ("medium", "built-in")
    assert found("thinkingLevel", shared={}, defaults={"thinkingLevel": "low"}) == ("low", "built-in")


PER_LEVEL: list[tuple[str, Any, list[tuple[str, Any]], Any]] = [
    (
        "thinkingLevel",
        {},
        [("explicit", "max"), ("session", "off"), ("workspace", "low"), ("global", "xhigh")],
        "medium",
    ),
    ("permissionMode", {}, [("explicit", "safe"), ("session", "allow-all"), ("workspace", "safe")], "ask"),
    ("model", {}, [("explicit", "a"), ("session", "b"), ("workspace", "c")], CODE),
    ("enabledSourceSlugs", {}, [("explicit", ["a"]), ("session", []), ("workspace", ["c"])], []),
    (
        "workingDirectory",
        {},
        [("explicit", "/e"), ("session", "/s"), ("project", "/p"), ("workspace", "/w")],
        "/ws",
    ),
    (
        "llmConnection",
        {"llmConnections": [{"slug": slug} for slug in ("first", "e", "s", "w", "g")]},
        [("explicit", "e"), ("session", "s"), ("workspace", "w"), ("global", "g")],
        "first",
    ),
]


@pytest.mark.parametrize(("name", "shared", "said", "built_in"), PER_LEVEL)
def test_a_level_goes_before_those_below_it(name: str, shared: Any, said: list[tuple[str, Any]], built_in: Any) -> None:
    below = {"llmConnection": "defaultLlmConnection", "thinkingLevel": "defaultThinkingLevel"}
    in_workspace = "defaultLlmConnection" if name == "llmConnection" else name
    for start, expected in enumerate([*said, ("global" if name == "llmConnection" else "built-in", built_in)]):
        rest = dict(said[start:])
        records: dict[str, Any] = {
            level: {name: rest[level]} for level in ("explicit", "session", "project") if level in rest
        }
        workspace = {in_workspace: rest["workspace"]} if "workspace" in rest else {}
        above = {**shared, below[name]: rest["global"]} if "global" in rest else shared
        assert found(name, workspace=workspace, shared=above, **records) == expected[::-1]


def test_a_locked_connection_that_is_gone_is_missing_and_not_another() -> None:
    locked = {"llmConnection": "ghost", "connectionLocked": True}
    effective = resolve(levels(locked, explicit={"llmConnection": "hub"}))
    assert effective["llmConnection"].as_json() == {"value": "ghost", "level": "session", "missing": True}
    assert effective["model"].value is None
    there = resolve(levels({**locked, "llmConnection": "hub"}, explicit={"llmConnection": "north-api"}))
    assert there["llmConnection"].as_json() == {"value": "hub", "level": "session"}


def test_what_an_automation_started_is_safe_unless_it_says_more() -> None:
    workspace = {"permissionMode": "allow-all"}
    assert found("permissionMode", {"triggeredBy": {"automationName": "n"}}, workspace) == ("safe", "built-in")
    assert found("permissionMode", {"triggeredBy": {}, "permissionMode": "ask"}, workspace) == ("ask", "session")


def test_a_tier_is_resolved_by_the_connection() -> None:
    assert found("model", {"llmConnection": "hub", "model": "default"}) == ("pi/best", "session")
    assert found("model", {"llmConnection": "hub"}, {"model": "fast"}) == ("pi/mini", "workspace")


def test_spellings_of_old_are_understood_on_every_level() -> None:
    assert found("permissionMode", {}, {"permissionMode": " Execute "}) == ("allow-all", "workspace")
    assert found("thinkingLevel", {}, {"thinkingLevel": "think"}) == ("medium", "workspace")
    assert found("workingDirectory", {}, {"workingDirectory": "~/code"}) == ("/home/ada/code", "workspace")
    assert found("workingDirectory", {}, {"workingDirectory": "code"}) == ("/ws", "built-in")


def test_no_directory_for_once_is_the_workspace_and_the_default_one_passes_the_session_over() -> None:
    session, project = {"workingDirectory": "/s"}, {"workingDirectory": "/p"}
    more = {"session": session, "project": project}
    assert found("workingDirectory", **more, explicit={"workingDirectory": "none"}) == ("/ws", "explicit")
    assert found("workingDirectory", **more, explicit={"workingDirectory": "user_default"}) == ("/p", "project")


def test_a_session_is_born_where_its_project_works_unless_it_says_where() -> None:
    project, workspace = {"workingDirectory": "/p"}, {"workingDirectory": "~/w"}
    cases: list[tuple[Any, Any, Any]] = [
        ({}, project, "/p"),
        ({"workingDirectory": "user_default"}, project, "/p"),
        ({}, {}, "/home/ada/w"),
        ({"workingDirectory": "none"}, project, None),
        ({"workingDirectory": "/mine"}, project, "/mine"),
    ]
    for value, of_project, expected in cases:
        placed = with_directory({"name": "N", **value}, levels(workspace=workspace, project=of_project))
        assert placed == {"name": "N", **({} if expected is None else {"workingDirectory": expected})}


def test_what_is_wanted_for_once_is_judged_like_a_session() -> None:
    assert explicit_issues({"workingDirectory": "none", "model": "m", "thinkingLevel": "max"}) == []
    assert [issue.path for issue in explicit_issues({"name": "N"})] == ["name"]
    assert [issue.path for issue in explicit_issues({"thinkingLevel": "much", "workingDirectory": "x"})] == [
        "thinkingLevel",
        "workingDirectory",
    ]


ODD = st.sampled_from([None, True, 3, "", "x", "~/x", "think", [], ["a"], [None], {}, {"slug": "x"}, {"id": 1}])
MEMBERS = st.dictionaries(st.sampled_from([*NAMES, "defaultLlmConnection", "defaultThinkingLevel"]), ODD)
ODD_RECORD = st.builds(
    lambda members, inner, connections: {
        **members, "defaults": inner, "workspaceDefaults": inner, "llmConnections": connections,
    },
    MEMBERS,
    MEMBERS | ODD,
    st.lists(st.dictionaries(st.sampled_from(["slug", "models", "defaultModel", "providerType"]), ODD)) | ODD,
)  # fmt: skip


@given(ODD_RECORD, ODD_RECORD, ODD_RECORD, ODD_RECORD, ODD_RECORD)
def test_whatever_the_files_hold_something_holds(
    session: Any, project: Any, workspace: Any, shared: Any, more: Any
) -> None:
    above = Above(workspace=workspace, shared=shared, defaults=more)
    effective = resolve(Levels(root="/ws", home="/h", above=above, session=session, project=project))
    assert tuple(effective) == NAMES
    assert effective["permissionMode"].value in ("safe", "ask", "allow-all")
    assert effective["workingDirectory"].value.startswith("/")
    assert thinking_level(effective["thinkingLevel"].value) is not None
