"""Modes and rules files, beside what the app answered (tests/golden/workspace, tests/golden/sources)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from craftd.model import permissions, rules
from craftd.model.permission_defaults import DEFAULTS
from craftd.model.permissions import MODES, SHOWN, Mode, check, next_mode, parse_mode

GOLDEN = Path(__file__).parents[1] / "golden"
HOME = GOLDEN / "workspace" / "home"


@cache
def tables() -> Any:
    return json.loads((GOLDEN / "workspace" / "expected.json").read_bytes())["tables"]


@cache
def sources() -> Any:
    return json.loads((GOLDEN / "sources" / "permissions.json").read_bytes())


def errors(value: Any) -> list[str]:
    return [issue.path for issue in check(value, "") if issue.severity == "error"]


@pytest.mark.parametrize(("word", "mode"), tables()["parsePermissionMode"])
def test_every_spelling_of_a_mode_is_known(word: str, mode: str | None) -> None:
    assert parse_mode(word) == mode


def test_people_see_other_words_for_two_modes() -> None:
    assert [[mode, SHOWN[mode]] for mode in MODES] == tables()["canonicalMode"]


@pytest.mark.parametrize(("order", "answers"), tables()["cyclePermissionMode"])
def test_modes_go_round_in_the_order_of_the_workspace(order: Any, answers: list[str]) -> None:
    mode: Mode = "ask"
    assert [mode := next_mode(mode, order) for _ in answers] == answers


@pytest.mark.parametrize("case", sources()["verdicts"], ids=lambda case: case["text"])
def test_a_rules_file_is_judged_as_the_app_judges_it(case: Any) -> None:
    try:
        value = json.loads(case["text"])
    except ValueError:
        assert not case["valid"]  # the reader of the file says so
        return
    wanted = [path.replace("[", ".").replace("]", "").replace("root", "") for path in case["paths"]]
    assert errors(value) == wanted
    assert case["valid"] == (not wanted)


@pytest.mark.parametrize("name", ["bad-method", "bad-regex", "unknown-key", "wrong-types"])
def test_a_broken_file_has_its_errors_where_the_app_has_them(name: str) -> None:
    recorded = json.loads((GOLDEN / "workspace" / "expected.json").read_bytes())["invalid"]
    wanted = recorded[f"permissions-{name}.json"]["verdict"]["errors"]
    value = json.loads((GOLDEN / "workspace" / "invalid" / f"permissions-{name}.json").read_bytes())
    assert errors(value) == [issue["path"].replace("[", ".").replace("]", "") for issue in wanted]


def test_a_key_that_is_unknown_is_named_with_the_one_that_was_meant() -> None:
    [issue] = check({"allowedbashpatterns": ["^ls"]}, "")
    assert (issue.severity, issue.code, issue.suggestion) == ("warning", "unknown-key", "allowedBashPatterns")


@pytest.mark.parametrize(
    ("level", "value"),
    [
        ("source:tracker", {"allowedMcpPatterns": ["^list"]}),
        ("workspace", {"allowedMcpPatterns": ["^list"]}),
        ("workspace", {"allowedBashPatterns": [".*"]}),
        ("workspace", {"allowedBashPatterns": [""]}),
        ("workspace", {"allowedBashPatterns": ["^sudo\\b"]}),
        ("workspace", {"allowedWritePaths": ["notes/**"]}),
    ],
)
def test_a_rule_that_can_never_match_is_a_warning(level: str, value: Any) -> None:
    [issue] = check(value, "", level)
    assert (issue.severity, issue.code) == ("warning", "never-matches")


@pytest.mark.parametrize(
    "path",
    [
        "permissions/default.json",
        "workspaces/aurora-lab/permissions.json",
        "workspaces/aurora-lab/sources/tracker/permissions.json",
    ],
)
def test_recorded_files_have_no_issue(path: str) -> None:
    level = "source:tracker" if "sources" in path else "workspace"
    assert list(check(json.loads((HOME / path).read_bytes()), "", level)) == []


def test_our_own_rules_have_no_issue() -> None:
    assert list(check(DEFAULTS, "", "default")) == []


def files(*levels: str) -> list[tuple[str, Any]]:
    places = {
        "default": HOME / "permissions/default.json",
        "workspace": HOME / "workspaces/aurora-lab/permissions.json",
        "source:tracker": HOME / "workspaces/aurora-lab/sources/tracker/permissions.json",
    }
    return [(level, json.loads(places[level].read_bytes())) for level in levels]


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("mergedNoSource", ("default", "workspace")),
        ("mergedWithTracker", ("default", "workspace", "source:tracker")),
    ],
)
def test_levels_add_up_as_in_the_app(name: str, levels: tuple[str, ...]) -> None:
    recorded = json.loads((GOLDEN / "workspace" / "expected.json").read_bytes())
    wanted = recorded["workspaces"]["aurora-lab"]["permissions"][name]
    merged = rules.merge(files(*levels))
    assert [rule.pattern for rule in merged.bash] == wanted["bash"]
    assert [f"mcp__{r.source}__.*{r.pattern}" if r.source else r.pattern for r in merged.mcp] == wanted["mcp"]
    assert [{"method": rule.method, "path": rule.pattern.replace("/", "\\/")} for rule in merged.api] == wanted["api"]
    assert [rule.pattern for rule in merged.write] == wanted["writePaths"]
    assert [hint.command for hint in merged.hints] == wanted["hints"]


@pytest.mark.parametrize("case", sources()["merged"], ids=lambda case: "+".join(case["activeSources"]) or "none")
def test_active_sources_add_what_they_add_in_the_app(case: Any) -> None:
    root = GOLDEN / "sources" / "workspace" / "sources"
    found = [(slug, root / slug / "permissions.json") for slug in sorted(case["activeSources"])]
    merged = rules.merge((f"source:{slug}", json.loads(path.read_bytes())) for slug, path in found if path.exists())
    added = case["added"]
    assert [f"mcp__{rule.source}__.*{rule.pattern}" for rule in merged.mcp] == added["mcp"]
    assert [rule.pattern for rule in merged.bash] == added["bash"]
    assert [{"method": rule.method, "path": rule.pattern.replace("/", "\\/")} for rule in merged.api] == added["api"]
    assert [rule.pattern for rule in merged.write] == added["write"]
    assert [hint.command for hint in merged.hints] == [hint["command"] for hint in added["hints"]]


def test_a_file_with_an_error_of_shape_counts_as_empty_and_a_bad_pattern_as_not_there() -> None:
    broken = {"allowedBashPatterns": ["^ls\\b"], "allowedWritePaths": [1]}
    assert rules.merge([("workspace", broken)]) == rules.Rules()
    one_bad = {"allowedBashPatterns": ["^ls\\b", "("]}
    assert [rule.pattern for rule in rules.merge([("workspace", one_bad)]).bash] == ["^ls\\b"]


def test_an_id_is_a_level() -> None:
    pattern = permissions.PERMISSIONS.id_pattern
    assert all(pattern.fullmatch(id) for id in ("default", "workspace", "source:harbor-mcp"))
    assert not any(pattern.fullmatch(id) for id in ("", "source:", "source:../x", "source:.", "other"))
