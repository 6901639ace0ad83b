"""Connections and settings: what the recorded tables say, and what becomes of the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model.app_config import pair
from craftd.model.app_records import CONNECTIONS, connection_slug, default_connection, new_connection, with_connection
from craftd.model.noun import Facts

TABLES = json.loads((Path(__file__).parents[1] / "golden/workspace/expected.json").read_bytes())["tables"]
FACTS = Facts(now=7, pick=lambda n: 0)
ONE, TWO = {"slug": "one", "name": "One"}, {"slug": "two", "name": "Two"}


@pytest.mark.parametrize(("name", "slug"), TABLES["connectionSlug"])
def test_a_slug_is_made_as_in_the_app(name: str, slug: str) -> None:
    assert connection_slug(name) == slug
    assert new_connection({"name": name}, FACTS)[0] == (slug or "connection")
    assert CONNECTIONS.id_pattern.fullmatch(new_connection({"name": name}, FACTS)[0])


@pytest.mark.parametrize(("slug", "valid"), [row for row in TABLES["isValidConnectionSlug"] if row[0] != "A"])
def test_a_slug_is_judged_as_in_the_app(slug: str, valid: bool) -> None:
    assert (CONNECTIONS.id_pattern.fullmatch(slug) is not None) == valid


@pytest.mark.parametrize(("provider", "known"), TABLES["providerAuth"])
def test_a_provider_knows_the_ways_to_sign_in_that_it_knows_in_the_app(provider: str, known: list[str]) -> None:
    ways = ("api_key", "oauth", "iam_credentials", "environment", "none", "api_key_with_endpoint", "bearer_token")
    if known:
        assert [way for way in ways if not list(pair({"providerType": provider, "authType": way}, ""))] == [
            way for way in ways if way in known
        ]


def test_a_name_that_is_taken_gets_a_number() -> None:
    taken = Facts(now=7, pick=lambda n: 0, taken={"one", "one-2"})
    slug, value = new_connection({"name": "One", "later": 1}, taken)
    assert (slug, value) == ("one-3", {"slug": "one-3", "name": "One", "later": 1, "createdAt": 7})


def test_the_default_is_the_one_chosen_else_the_first() -> None:
    config: dict[str, Any] = {"llmConnections": [ONE, 7, TWO]}
    assert default_connection(config) == "one"
    assert default_connection({**config, "defaultLlmConnection": "two"}) == "two"
    assert default_connection({**config, "defaultLlmConnection": "gone"}) == "one"
    assert default_connection({}) is None


def test_what_is_no_connection_stays_where_it_is() -> None:
    config: dict[str, Any] = {
        "a": 1,
        "llmConnections": [7, ONE, {"name": "no slug"}, TWO],
        "defaultLlmConnection": "one",
    }
    changed = with_connection(config, "one", {**ONE, "name": "1"})
    assert changed == {**config, "llmConnections": [7, {**ONE, "name": "1"}, {"name": "no slug"}, TWO]}
    assert with_connection(config, "one", None) == {
        "a": 1, "llmConnections": [7, {"name": "no slug"}, TWO], "defaultLlmConnection": "two",
    }  # fmt: skip
    assert "defaultLlmConnection" not in with_connection(with_connection(config, "one", None), "two", None)
    assert with_connection({}, "one", ONE) == {"llmConnections": [ONE], "defaultLlmConnection": "one"}
