from __future__ import annotations

import datetime
import random
import re
from collections import Counter
from typing import Any

import pytest

from craftd.model.ids import ADJECTIVES, NOUNS, choose_slug, is_session_id, new_message_id, new_session_id
from tests.model import golden

TODAY = datetime.date(2026, 1, 5)


def first(_: int) -> int:
    return 0


@pytest.mark.parametrize("vector", golden.load("vectors.json")["ids"], ids=lambda vector: repr(vector["id"]))
def test_an_id_is_what_the_app_takes_for_one(vector: dict[str, Any]) -> None:
    assert is_session_id(vector["id"]) == vector["valid"]


@pytest.mark.parametrize("odd", [None, 5, ["a"], "a" * 121, "a\n", "٣"])
def test_nothing_else_is_an_id(odd: object) -> None:
    assert not is_session_id(odd)


def test_a_new_id_has_the_local_day_and_two_words() -> None:
    name = new_session_id(TODAY, random.Random(1).randrange, ())
    assert re.fullmatch(r"260105-[a-z]+-[a-z]+", name)
    assert is_session_id(name)


def test_a_taken_name_gets_the_first_free_number() -> None:
    base = f"260105-{ADJECTIVES[0]}-{NOUNS[0]}"
    taken = {base}
    assert new_session_id(TODAY, first, taken) == f"{base}-2"
    taken |= {f"{base}-{number}" for number in range(2, 99)}
    assert new_session_id(TODAY, first, taken) == f"{base}-99"


def test_a_name_is_found_even_when_every_number_is_taken() -> None:
    base = f"260105-{ADJECTIVES[0]}-{NOUNS[0]}"
    taken = {base} | {f"{base}-{number}" for number in range(2, 100)}
    name = new_session_id(TODAY, first, taken)
    assert name not in taken
    assert is_session_id(name)


def test_words_are_many_plain_and_different() -> None:
    assert len(set(ADJECTIVES)) == len(ADJECTIVES) >= 90
    assert len(set(NOUNS)) == len(NOUNS) >= 200
    assert not set(ADJECTIVES) & set(NOUNS)
    assert all(re.fullmatch("[a-z]{3,9}", word) for word in ADJECTIVES + NOUNS)


def test_message_ids_are_the_apps_form_and_differ() -> None:
    pick = random.Random(2).randrange
    made = Counter(new_message_id(1772787601000, pick) for _ in range(100))
    assert max(made.values()) == 1
    assert all(re.fullmatch(r"msg-1772787601000-[0-9a-z]{6}", name) for name in made)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Plan the Move", "plan-the-move"),
        ("  --Ünï código!! ", "n-c-digo"),
        ("日本", "project"),
        ("", "project"),
        ("x" * 60, "x" * 50),
        ("x" * 49 + " y", "x" * 49),
    ],
)
def test_a_slug_is_plain_ascii_of_at_most_50_characters(name: str, slug: str) -> None:
    assert choose_slug(name, (), "project") == slug


def test_a_taken_slug_gets_the_first_free_number() -> None:
    assert choose_slug("Plan", {"plan", "plan-2"}, "project") == "plan-3"
