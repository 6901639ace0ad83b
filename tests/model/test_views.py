"""What a saved view is, and what sessions show to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model.expressions import ExpressionError, parse
from craftd.model.noun import Facts
from craftd.model.views import NAMES, SAMPLES, VIEWS, context_of

GOLDEN = Path(__file__).parents[1] / "golden/workspace"
RECORDED = json.loads((GOLDEN / "expected.json").read_bytes())
NOW = 1_783_936_800_000


def matching(expression: str) -> list[str]:
    """Names of the recorded sessions that match."""
    try:
        parsed = parse(expression)
    except ExpressionError:
        return []
    found = []
    for name, session in RECORDED["viewContexts"].items():
        try:
            if parsed.matches(context_of(session, processing=session.get("isProcessing", False)), NOW):
                found.append(name)
        except ExpressionError:
            pass
    return found


@pytest.mark.parametrize("workspace", ["aurora-lab", "field-notes"])
def test_recorded_views_match_the_sessions_they_matched_in_the_app(workspace: str) -> None:
    recorded = RECORDED["workspaces"][workspace]
    views = recorded["loadViewsConfig"]["views"]
    shown = {name: [view["id"] for view in views if name in matching(view["expression"])] for name in matching("true")}
    wanted = {name: [id for id in ids if id != "view-typo"] for name, ids in recorded["viewMatches"].items()}
    assert shown == wanted  # the app matches every session where a function is misspelt


def test_recorded_views_that_cannot_work_have_an_issue() -> None:
    views = json.loads((GOLDEN / "home/workspaces/aurora-lab/views.json").read_bytes())["views"]
    found = {view["id"]: [issue.code for issue in VIEWS.validate(view, None)] for view in views}
    assert {id: codes for id, codes in found.items() if codes} == {
        "view-typo": ["expression-unknown-function"],
        "view-broken": ["expression-syntax"],
    }


@pytest.mark.parametrize("view", json.loads((GOLDEN / "invalid/views-bad-expression.json").read_bytes())["views"])
def test_expressions_that_the_app_cannot_evaluate_are_refused(view: Any) -> None:
    [issue] = VIEWS.validate(view, None)
    assert (issue.path, issue.severity) == ("expression", "error")


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("isFlaged", "unknown-name"),
        ("hasUnread and messageCount", "type"),
        ("messageCount > 0 and name", "type"),
        ("tokenUsage.costs > 1", "unknown-name"),
        ("name ~= '('", "unknown-name"),
    ],
)
def test_what_never_does_what_was_meant_is_found_without_a_session(expression: str, code: str) -> None:
    assert code in [doubt.code for doubt in parse(expression).doubts(NAMES, SAMPLES)]


def test_a_new_view_gets_an_id_as_the_app_makes_them() -> None:
    assert VIEWS.new is not None
    facts = Facts(now=0, pick=lambda n: 0, taken={"view-costly"})
    made = VIEWS.new({"expression": "true", "name": "Costly"}, facts)
    assert made == ("view-costly-2", {"id": "view-costly-2", "expression": "true", "name": "Costly"})
    assert VIEWS.new({"name": "***"}, facts)[0] == "view"


@pytest.mark.parametrize("odd", [None, 7, [], {}, True, "1"])
def test_members_of_another_kind_count_as_missing(odd: Any) -> None:
    strange = dict.fromkeys(("labels", "tokenUsage", "hasUnread", "lastMessageAt", "createdAt"), odd)
    shown = context_of(strange)
    assert shown == {
        **context_of({}),
        **({"labels": []} if odd == [] else {}),
        **({"lastUsedAt": 7, "createdAt": 7} if odd == 7 else {}),
        **({"hasUnread": True} if odd is True else {}),
    }
