"""Rules that label sessions, and what becomes of the labels a session has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model.labels import auto_rule, base_of, descendants, relabelled, stripped
from craftd.store.layout import SHELVES

GOLDEN = Path(__file__).parents[1] / "golden/workspace"
TABLES = json.loads((GOLDEN / "expected.json").read_bytes())["tables"]


def recorded() -> dict[str, Any]:
    document = SHELVES["labels"].load(GOLDEN / "home/workspaces/aurora-lab", "labels/config.json")
    assert document is not None
    return dict(document.records)


@pytest.mark.parametrize(("id", "below"), TABLES["descendants"])
def test_what_is_below_a_label(id: str, below: list[str]) -> None:
    assert list(descendants(id, recorded())) == below


@pytest.mark.parametrize(
    ("session", "asked", "found"), [row for row in TABLES["labelFilter"] if row[1]["labelId"] != "__all__"]
)
def test_a_label_stands_for_those_below_it(session: dict[str, Any], asked: dict[str, Any], found: bool) -> None:
    """The filters of `sessions/list` are all to match, so the project of a row is one of its own."""
    ids = {asked["labelId"], *descendants(asked["labelId"], recorded())}
    same_project = asked.get("projectId") in (None, session.get("projectId"))
    assert (same_project and any(base_of(entry) in ids for entry in session["labels"])) == found


@pytest.mark.parametrize(("pattern", "flags", "verdict"), TABLES["validateAutoLabelRule"])
def test_a_rule_is_judged_as_the_app_judges_it(pattern: str, flags: str | None, verdict: Any) -> None:
    rule = {"pattern": pattern, **({} if flags is None else {"flags": flags})}
    assert [issue.code for issue in auto_rule(rule, "")] == verdict["errors"]


def test_labels_go_with_their_values_and_others_stay() -> None:
    session = {"labels": ["one", "one::2", "one-more", 7]}
    assert stripped(session, {"one"}) == {"labels": ["one-more", 7]}
    assert stripped(session, {"two"}) is session


def test_a_label_with_another_id_keeps_its_values_and_stands_there_once() -> None:
    session = {"labels": ["uno", "one", "one::2", "one-more"]}
    assert relabelled(session, "one", "uno") == {"labels": ["uno", "uno::2", "one-more"]}
    assert relabelled(session, "two", "uno") is session
