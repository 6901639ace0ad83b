"""Mentions, compared with all recorded texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model.json_text import utf16_length
from craftd.model.mentions import Mention, find, message, near_misses, resolved, stripped

RECORDED = json.loads((Path(__file__).parents[1] / "golden/skills/mentions.json").read_bytes())


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: case["text"][:40])
def test_a_text_is_read_as_in_the_app(case: dict[str, Any]) -> None:
    text = case["text"]
    names: dict[str, list[str]] = {"skill": [], "source": [], "file": [], "folder": []}
    for mention in find(text):
        if mention.name not in names[mention.kind]:
            names[mention.kind].append(mention.name)
    known, there = RECORDED["availableSkills"], RECORDED["availableSources"]
    assert {
        "skills": [slug for slug in names["skill"] if slug in known],
        "invalidSkills": [slug for slug in names["skill"] if slug not in known],
        "sources": [slug for slug in names["source"] if slug in there],
        "files": names["file"],
        "folders": names["folder"],
    } == case["parsed"]
    assert stripped(text) == case["stripped"]
    assert message(text, RECORDED["skillNames"], RECORDED["workingDirectory"]) == case["message"]


@pytest.mark.parametrize("case", RECORDED["otherDirectories"], ids=lambda case: case["text"])
def test_a_path_stands_behind_the_directory(case: dict[str, Any]) -> None:
    assert resolved(case["text"], {}, case["workingDirectory"]) == case["filesResolved"]


def test_places_are_utf16_units() -> None:
    text = "\U0001f600 [skill:a] é [file:\U0001f600]"
    assert find(text) == [
        Mention(kind="skill", name="a", start=3, end=12),
        Mention(kind="file", name="\U0001f600", start=15, end=24),
    ]


def test_what_a_name_says_is_not_read_again() -> None:
    said = message("[skill:x]", {"x": "[source:secret]"}, "/w")
    assert said == "[Mentioned skill: [source:secret] (slug: x)]"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("[skill: commit]", [(0, 15)]),
        ("see [Skill:commit] and [skill:commit]", [(4, 18)]),
        ("[skill:a:b:c]", [(0, 13)]),
        ("[source:ws:linear]", [(0, 18)]),
        ("[source:linear] [mention:x] [a:b]", []),
    ],
)
def test_what_nearly_is_a_mention_is_pointed_out(text: str, places: list[tuple[int, int]]) -> None:
    assert near_misses(text) == places


@given(st.text(alphabet="[]:skiloureflder ab\n\U0001f600", max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    units = text.encode("utf-16-le")
    for mention in find(text):
        there = units[2 * mention.start : 2 * mention.end].decode("utf-16-le")
        assert there.startswith(f"[{mention.kind}:")
        assert there.endswith(f"{mention.name}]")
    assert all(0 <= start < end <= utf16_length(text) for start, end in near_misses(text))
    message(text, {}, "/w")
    stripped(text)
