"""Skills on three levels: the recorded home, workspace and project."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from craftd.model.skill_levels import Found, qualified, that_counts
from craftd.workspace import skill_levels
from craftd.workspace.skill_levels import Levels

TIERS = Path(__file__).parents[1] / "golden" / "skills" / "tiers"
RECORDED = json.loads((TIERS.parent / "expected.json").read_bytes())["tiers"]


def recorded(project: bool) -> Levels:
    return skill_levels.read(TIERS / "workspace", str(TIERS / "home"), str(TIERS / "project") if project else None)


def as_recorded(slug: str, one: Found) -> dict[str, Any]:
    path = one.path.removesuffix("/SKILL.md")
    path = path.replace(str(TIERS / "home"), "${HOME}").replace(str(TIERS), "${ROOT}/tiers")
    return {"slug": slug, "source": one.level, "name": one.value["name"], "path": path}


@pytest.mark.parametrize(("project", "name"), [(True, "all"), (False, "noProject")])
def test_the_highest_level_that_loads_counts(project: bool, name: str) -> None:
    skills = recorded(project).skills
    listed = [as_recorded(slug, one) for slug, found in skills.items() if (one := that_counts(found)) is not None]
    assert listed == RECORDED[name]


@pytest.mark.parametrize("slug", RECORDED["bySlug"])
def test_a_name_leads_to_the_one_that_counts(slug: str) -> None:
    one = that_counts(recorded(True).skills.get(slug, []))
    assert (one and as_recorded(slug, one)) == RECORDED["bySlug"][slug]


@pytest.mark.parametrize("case", RECORDED["qualified"], ids=lambda case: case["given"])
def test_the_toolkit_knows_skills_by_their_level(case: dict[str, Any]) -> None:
    levels = recorded(True)
    slug = case["given"].rpartition(":")[2]
    one = that_counts(levels.skills.get(slug, []))
    assert qualified(slug, one and one.level, levels.plugin) == case["tool"]["input"]["skill"]


@pytest.mark.parametrize(
    "case", RECORDED["skillValidate"], ids=lambda case: f"{case['slug']}-{case['workingDirectory']}"
)
def test_the_highest_that_is_there_is_named_first_with_what_is_wrong(case: dict[str, Any]) -> None:
    found = recorded(case["workingDirectory"]).skills.get(case["slug"], [])
    assert (found[0].level if found else None) == case["tier"]
    assert (not found or bool(found[0].issues)) == case["isError"]


def test_a_link_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    shutil.copytree(TIERS / "project" / ".agents", tmp_path / "p" / ".agents")
    secret = tmp_path / "secret"
    secret.write_text("---\nname: secret\ndescription: secret\n---\nsecret\n")
    skills = tmp_path / "p" / ".agents" / "skills"
    (skills / "all-three" / "SKILL.md").unlink()
    (skills / "all-three" / "SKILL.md").symlink_to(secret)
    (skills / "linked").symlink_to(skills / "only-project")
    found = skill_levels.read(TIERS / "workspace", str(TIERS / "home"), str(tmp_path / "p")).skills
    [broken, *_] = found["all-three"]
    assert (broken.value, broken.loads, broken.issues[0].code) == ({}, False, "link-outside")
    assert that_counts(found["all-three"]) == found["all-three"][1]
    assert [one.loads for one in found["linked"]] == [True]
    (tmp_path / "config.json").write_text('{"name": "Fresh & New!"}')
    assert skill_levels.read(tmp_path, str(tmp_path), None).plugin == "craft-workspace-fresh-new-"
    assert not skill_levels.read(TIERS / "absent", str(tmp_path), str(tmp_path / "absent")).skills
