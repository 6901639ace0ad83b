"""Rules that label sessions, and what becomes of the labels a session has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model.labels import auto_rule, relabelled, stripped

TABLES = json.loads((Path(__file__).parents[1] / "golden/workspace/expected.json").read_bytes())["tables"]


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
