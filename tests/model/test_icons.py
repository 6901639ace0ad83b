"""Icons that are written as text: the recorded verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model import icons
from craftd.model.skills import SKILLS
from craftd.store.folders import APP_FOLDER_NAME

RECORDED = json.loads((Path(__file__).parents[1] / "golden/skills/expected.json").read_bytes())


@pytest.mark.parametrize("case", RECORDED["icons"], ids=lambda case: ascii(case["value"]))
def test_an_icon_is_shown_where_the_app_keeps_it(case: dict[str, Any]) -> None:
    assert icons.shown(case["value"]) == case["kept"]
    assert SKILLS.info({"icon": case["value"]}) == ({} if case["kept"] is None else {"icon": case["kept"]})


def test_the_longest_emoji_is_a_bound_of_the_app() -> None:
    longest = "\u200d".join(["\U0001f468"] * 7)
    assert (len(longest.encode("utf-16-le")) // 2, icons.shown(longest)) == (20, longest)
    assert icons.shown(longest + "\u200d\u2764\ufe0f") is None


@pytest.mark.parametrize("case", RECORDED["slugRules"], ids=lambda case: ascii(case["slug"])[:20])
def test_names_of_folders_go_by_the_rules_of_the_app(case: dict[str, Any]) -> None:
    slug = case["slug"]
    assert (APP_FOLDER_NAME.fullmatch(slug) is not None) == case["folderRule"]
    # A client may also use what ends in a hyphen, and no more than 200 characters.
    mine = SKILLS.id_pattern.fullmatch(slug) is not None
    assert mine == (case["toolRule"] and len(slug) <= 200) or slug == "a-"
