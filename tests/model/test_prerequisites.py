"""What must be read first, compared with all recorded sequences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model.prerequisites import Guides, Prerequisites

RECORDED = json.loads((Path(__file__).parents[1] / "golden/skills/prerequisites.json").read_bytes())["cases"]
HOME, WORKSPACE = "/home/x", "/home/x/w"
BROWSER = f"{HOME}/.craft-agent/docs/browser-tools.md"
SLUGS = ("linear", "tide", "my__odd", "session", "craft-agents-docs", "sources")
GUIDES = Guides(guides={slug: f"{WORKSPACE}/sources/{slug}/guide.md" for slug in SLUGS}, home=HOME, browser=BROWSER)
SKILL, OTHER = f"{WORKSPACE}/skills/a/SKILL.md", f"{WORKSPACE}/skills/b/SKILL.md"

ANOTHER_ANSWER = {
    "double underscore in folder name": "the guide of the source whose name it is, is asked for",
    "bash that only names the path clears too": "`rm` reads nothing",
    "bash with a home-relative path does not clear": "a path in the home is the same path",
    "refusal count survives a second mention": "who mentions it again wants it to be read",
    "partial read starts a new count": "each skill is asked for once",
}
"""Cases that end otherwise here, and why."""


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_a_sequence_goes_as_in_the_app(case: dict[str, Any]) -> None:
    now = Prerequisites()
    same = []
    for step in json.loads(json.dumps(case["steps"]).replace("${WORKSPACE}", WORKSPACE).replace("${HOME}", HOME)):
        if "call" in step:
            verdict = now.check(step["call"], GUIDES)
            same.append((verdict.allowed, list(verdict.needs)) == (step["allowed"], step.get("needs", [])))
        elif "read" in step:
            now.has_read(step["read"].get("file_path") or step["read"].get("path") or "", HOME)
        elif "bash" in step:
            same.append(now.has_run(step["bash"], HOME) == step["matched"])
        elif "skills" in step:
            now.mention(step["skills"])
        else:
            now.reset()
        now = Prerequisites.of_json(json.loads(json.dumps(now.as_json())))
    assert all(same) == (case["name"] not in ANOTHER_ANSWER), case


@pytest.mark.parametrize(
    ("command", "read"),
    [
        (f"cat {SKILL}", True), (f"cd / && bat '{SKILL}' | head", True), ("cat ~/w/skills/a/SKILL.md", True),
        (f"cat {WORKSPACE}/skills/x/../a/SKILL.md", True), (f"rm {SKILL}", False), (f"head -1 {SKILL}", False),
        (f"cat {SKILL}.bak", False), (f"echo {SKILL}", False), ("cat '~/w/skills/a/SKILL.md'", False), ("cat '", False),
    ],
)  # fmt: skip
def test_a_command_that_prints_the_file_has_read_it(command: str, read: bool) -> None:
    now = Prerequisites()
    now.mention([SKILL])
    assert now.has_run(command, HOME) == read
    assert now.check("Grep", GUIDES).allowed == read


def test_a_skill_that_is_mentioned_again_is_asked_for_again() -> None:
    now = Prerequisites()
    for _ in range(2):
        now.mention([SKILL])
        assert now.check("Grep", GUIDES).needs == (SKILL,)
        assert now.check("Grep", GUIDES).allowed
    now.mention([OTHER])
    assert now.check("Grep", GUIDES).needs == (OTHER,)


@pytest.mark.parametrize("state", [{"read": 7}, {"asked": [7]}, {"pending": {}}])
def test_a_state_that_is_none_names_what_is_wrong(state: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(state))):
        Prerequisites.of_json(state)


@given(st.lists(st.sampled_from(["Grep", "Read", "mcp__linear__x", "api_tide", "mcp__", "mcp____", "api_", "mention"])))
def test_nothing_but_the_browser_is_refused_for_ever(tools: list[str]) -> None:
    now = Prerequisites()
    for tool in tools:
        if tool == "mention":
            now.mention([SKILL, OTHER])
            continue
        refused = sum(not now.check(tool, GUIDES).allowed for _ in range(3))
        assert refused <= 2  # once for the skills, once for the guide
        assert now.check(tool, GUIDES).allowed
