"""Automations and their schedules, judged as the app judges them."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.errors import Issue
from craftd.model import cron
from craftd.model.automations import EVENTS, Around, check
from tests.strategies import json_values, texts

HERE = Path(__file__).parents[1]
GOLDEN = HERE / "golden/workspace"
EXPECTED = json.loads((GOLDEN / "expected.json").read_bytes())
KNOWN = Around(zones=available_timezones(), labels={"owner", "network"}, connections={"north-api"})
OURS = {"unknown-event", "duplicate-id", "no-prompt", "bad-url", "bad-method", "unknown-action", "no-automations"}
"""Warnings that the app does not give: the table in ARCHITECTURE.md."""
UNREADABLE = {"automations-not-json.json", "automations-with-bom.json"}
RECORDED = {name for name in EXPECTED["invalid"] if name.startswith("automations-")} - UNREADABLE


def dotted(path: str) -> str:
    return re.sub(r"\[(\d+)\]", r".\1", path).replace("root", "")


def of_the_app(verdict: Any) -> list[tuple[str, str, str]]:
    issues = [*verdict["errors"], *verdict["warnings"]]
    return sorted((issue["severity"], dotted(issue["path"]), issue["rule"]) for issue in issues)


def of_ours(issues: list[Issue]) -> list[tuple[str, str, str]]:
    return sorted((one.severity, one.path, str(one.code)) for one in issues if one.code not in OURS)


def matchers(event: str, *them: Any) -> list[Issue]:
    return check({"automations": {event: list(them)}}, KNOWN)


def acting(**members: Any) -> dict[str, Any]:
    return {"actions": [{"type": "prompt", "prompt": "go"}], **members}


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_recorded_file_gets_the_verdict_of_the_app(name: str) -> None:
    value = json.loads((GOLDEN / "invalid" / name).read_bytes())
    assert of_ours(check(value, KNOWN)) == of_the_app(EXPECTED["invalid"][name]["verdict"])


def test_the_automations_of_a_full_workspace_get_the_verdict_of_the_app() -> None:
    value = json.loads((GOLDEN / "home/workspaces/aurora-lab/automations.json").read_bytes())
    assert of_ours(check(value, KNOWN)) == of_the_app(EXPECTED["workspaces"]["aurora-lab"]["validateAutomations"])
    assert check(value, Around()) == [one for one in check(value, KNOWN) if one.code == "allow-all-mode"]


def test_a_schedule_in_a_time_zone_of_its_own_is_nothing_wrong() -> None:
    assert check(json.loads((HERE / "field_bugs/O25/automations.json").read_bytes()), KNOWN) == []


@pytest.mark.parametrize(("text", "is_schedule"), EXPECTED["tables"]["cronValid"])
def test_a_schedule_is_one_to_us_where_it_is_one_to_the_app(text: str, is_schedule: bool) -> None:
    if is_schedule:
        cron.check(text)
    else:
        with pytest.raises(cron.BadSchedule):
            cron.check(text)


@pytest.mark.parametrize("text", ["2026-02-30T09:00:00", "*/61 * * * *", "* * * * 5#6", "* * 32W * *", "9" * 2000])
def test_what_can_never_come_is_no_schedule(text: str) -> None:
    with pytest.raises(cron.BadSchedule):
        cron.check(text)


@pytest.mark.parametrize(
    ("name", "place", "code"),
    [
        ("automations-unknown-event.json", "automations.LabelMoved", "unknown-event"),
        ("automations-duplicate-ids.json", "automations.FlagChange.1.id", "duplicate-id"),
        ("automations-empty-prompt.json", "automations.FlagChange.0.actions.0.prompt", "no-prompt"),
        ("automations-webhook-ftp.json", "automations.FlagChange.0.actions.0.url", "bad-url"),
        ("automations-webhook-ftp.json", "automations.FlagChange.0.actions.0.method", "bad-method"),
        ("automations-legacy-command.json", "automations.FlagChange.0.actions.0.type", "unknown-action"),
    ],
)
def test_what_the_app_lets_pass_and_never_does_is_warned_of(name: str, place: str, code: str) -> None:
    issues = check(json.loads((GOLDEN / "invalid" / name).read_bytes()), KNOWN)
    assert (place, code, "warning") in [(one.path, one.code, one.severity) for one in issues]


def test_a_matcher_of_the_wrong_shape_hides_nothing_about_the_next() -> None:
    issues = matchers("LabelAdd", acting(enabled="yes"), acting(matcher="("))
    assert [(one.path, one.code) for one in issues] == [
        ("automations.LabelAdd.0.enabled", "schema"),
        ("automations.LabelAdd.1.matcher", "bad-regex"),
    ]


def test_names_that_are_not_there_are_told_where_it_is_known_what_is() -> None:
    action = {"type": "prompt", "prompt": "go", "llmConnection": "south"}
    value = {"automations": {"FlagChange": [{"labels": ["gone::1", "$CRAFT_LABEL"], "actions": [action]}]}}
    assert [one.code for one in check(value, KNOWN)] == ["label-unknown", "connection-unknown"]
    assert check(value, Around()) == []


members = st.sampled_from(
    ["id", "cron", "timezone", "matcher", "conditions", "condition", "field", "weekday", "labels", "actions", "type"]
)
shaped = st.recursive(
    st.one_of(json_values, texts, st.sampled_from(["prompt", "webhook", "and", "time", "state", "(a+)+", "* * * * *"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(members, inner, max_size=4)),
    max_leaves=20,
)


@given(st.dictionaries(st.one_of(st.sampled_from(sorted(EVENTS)), texts), st.one_of(shaped, st.lists(shaped))))
def test_no_value_makes_the_check_fail(automations: Any) -> None:
    for issue in check({"version": 2, "automations": automations}, KNOWN):
        assert issue.path.startswith("automations")


@given(texts)
def test_no_text_makes_the_check_of_a_schedule_fail(text: str) -> None:
    with suppress(cron.BadSchedule):
        cron.check(text)


def test_conditions_as_deep_as_json_goes_are_too_deep_and_nothing_worse() -> None:
    condition: Any = {"condition": "state", "field": "a", "value": 1}
    for _ in range(800):
        condition = {"condition": "not", "conditions": [condition]}
    issues = matchers("LabelAdd", acting(conditions=[condition]))
    assert [one.code for one in issues if one.severity == "error"] == ["condition-too-deep"]
