"""Labels for what is said: the recorded cases, and rules that misbehave."""

from __future__ import annotations

from typing import Any

import pytest

from craftd.model import javascript
from craftd.model.auto_labels import MOST, found_in, normalised, rules_of
from tests.model.test_label_entries import TABLES, tree

SLOW = r"^(?:a|aa|aaa|aaaa)+$"


@pytest.mark.parametrize(("text", "entries"), TABLES["autoLabels"])
def test_a_message_gives_the_labels_it_gives_in_the_app(text: str, entries: list[str]) -> None:
    bare = [entry.partition("::")[0] if entry.startswith("network::") else entry for entry in entries]  # takes no value
    assert found_in(text, rules_of(tree())) == bare


@pytest.mark.parametrize(("raw", "type", "expected"), TABLES["normalizeValue"])
def test_a_value_is_written_as_in_the_app(raw: str, type: str | None, expected: str) -> None:
    assert normalised(raw, type) == expected


def labels(*rules: Any, type: str | None = None) -> dict[str, Any]:
    return {"a": {"id": "a", "autoRules": list(rules), **({} if type is None else {"valueType": type})}}


@pytest.mark.parametrize(
    ("rule", "type", "said", "entries"),
    [
        ({"pattern": r"(\w+)=(\w+)", "valueTemplate": "$2-$1-$3$0"}, "string", "k=v", ["a::v-k-k=v"]),
        ({"pattern": r"T-(\d+)"}, "string", "t-1 T-1 T-2", ["a::1", "a::2"]),
        ({"pattern": "T", "flags": ""}, None, "t", []),
        ({"pattern": "x(y)?"}, "string", "x", ["a::x"]),
        ({"pattern": r"\d+-\d+-\d+"}, "date", "2026-02-29 and 2026-02-28", ["a::2026-02-28"]),
        ({"pattern": "many"}, "number", "many", []),
        ({"pattern": ""}, None, "anything", []),
        ({"pattern": "("}, None, "(", []),
        ({"pattern": 7}, None, "7", []),
        ("pattern", None, "pattern", []),
    ],
)
def test_a_rule_says_what_to_take(rule: Any, type: str | None, said: str, entries: list[str]) -> None:
    assert found_in(said, rules_of(labels(rule, type=type))) == entries


@pytest.mark.parametrize("odd", [None, 7, "x", {}, {"pattern": "x"}])
def test_rules_that_are_no_list_are_none(odd: Any) -> None:
    assert rules_of({"a": {"id": "a", "autoRules": odd}}) == []


def test_the_most_entries_count_over_all_rules() -> None:
    rules = rules_of(labels({"pattern": r"x(\d+)"}, {"pattern": r"y(\d+)"}, type="string"))
    said = " ".join(f"x{number}" for number in range(7)) + " " + " ".join(f"y{number}" for number in range(10, 17))
    assert len(found_in(said, rules)) == MOST


def test_a_rule_that_takes_too_long_finds_nothing_and_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(javascript, "SECONDS", 0.01)
    said = "a" * 60 + "!"
    slow, quick = {"pattern": SLOW}, {"pattern": "a!"}
    assert found_in(said, rules_of(labels(slow, slow, quick))) == ["a"]
    assert found_in(said, rules_of(labels(slow, slow, slow, quick))) == []
