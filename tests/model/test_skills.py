"""Names of skills, by the recorded rules of the app."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model.skills import SKILLS
from craftd.store.layout import SKILL_FOLDERS

RECORDED = json.loads((Path(__file__).parents[1] / "golden/skills/expected.json").read_bytes())["slugRules"]
NOT_NEW = {"-a", "-"}
"""Fine where they are there; no new skill gets such a name."""


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: repr(case["slug"])[:20])
def test_names_follow_the_rule_of_the_folder(case: dict[str, Any]) -> None:
    slug = case["slug"]
    codes = {issue.code for issue in SKILL_FOLDERS.check(b"---\nname: n\ndescription: d\n---\nGo.\n", slug)}
    assert codes == (set() if case["folderRule"] else {"bad-slug"})
    assert bool(SKILLS.id_pattern.fullmatch(slug)) == (case["folderRule"] and slug not in NOT_NEW)
