"""Skills on three levels: the recorded home, workspace and project."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from craftd.model.skill_levels import Found, item, qualified, that_counts
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


def a_skill(home: Path, slug: str, text: bytes) -> Path:
    file = home / ".agents" / "skills" / slug / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_bytes(text)
    return file


def matter(size: int) -> bytes:
    return b"---\nname: n\ndescription: d\nx: " + b"x" * size + b"\n---\nGo.\n"


def test_a_hostile_folder_is_looked_at_so_far_and_what_is_left_out_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = a_skill(tmp_path, "a", matter(1)).read_bytes()
    a_skill(tmp_path, "b-large", sound + b"x" * skill_levels.LARGEST)
    a_skill(tmp_path, "c-matter", matter(skill_levels.MATTER))
    os.mkfifo(a_skill(tmp_path, "d-pipe", b"").with_name("pipe"))
    pipe = tmp_path / ".agents/skills/d-pipe"
    (pipe / "pipe").replace(pipe / "SKILL.md")
    a_skill(tmp_path, "e-many", b"---\nname: n\ndescription: d\nglobs: [" + b"1," * 500 + b"]\n---\nGo.\n")
    (a_skill(tmp_path, "f-none", sound)).rename(tmp_path / ".agents/skills/f-none/skill.txt")
    (tmp_path / ".agents/skills/loop").symlink_to("loop")
    a_skill(tmp_path, "z", sound)
    levels = skill_levels.read(tmp_path / "ws", str(tmp_path), None)
    one_of = {slug: found for slug, [found] in levels.skills.items()}
    assert {slug: found.loads for slug, found in one_of.items()} == {
        "a": True, "b-large": False, "c-matter": False, "d-pipe": False, "e-many": True, "z": True,
    }  # fmt: skip
    assert [one_of[slug].issues[0].code for slug in ("b-large", "c-matter", "d-pipe")] == [
        "too-large", "too-large", "unreadable",
    ]  # fmt: skip
    assert len(one_of["e-many"].issues) == skill_levels.ISSUES
    assert levels.issues == ()

    monkeypatch.setattr(skill_levels, "MOST", 2)
    levels = skill_levels.read(tmp_path / "ws", str(tmp_path), str(tmp_path))
    assert [(at.code, at.path) for at in levels.issues] == [("too-many", str(tmp_path / ".agents/skills"))] * 2
    assert [len(found) for found in levels.skills.values()] == [2, 2]


@pytest.mark.parametrize(
    ("text", "fits"), [(matter(16_000), 8), (b"---\nname: n\ndescription: d\n---\n" + b"x" * 250_000, 16)]
)
def test_all_skills_of_a_level_together_are_bounded(tmp_path: Path, text: bytes, fits: int) -> None:
    for at in range(fits + 2):
        a_skill(tmp_path, f"s{at:02}", text)
    found = skill_levels.read(tmp_path / "ws", str(tmp_path), None).skills
    assert [one.loads for [one] in found.values()] == [True] * fits + [False] * 2
    assert {issue.code for [one] in found.values() for issue in one.issues} == {"too-large"}


def test_a_skill_says_what_it_takes_the_place_of() -> None:
    levels = recorded(True)
    told = {
        (slug, one.level): (at.info["shadows"], at.info.get("shadowedBy"))
        for slug in ("all-three", "broken-on-top")
        for one in levels.skills[slug]
        for at in [item(slug, levels.skills[slug], one, levels.plugin)]
    }
    assert told == {
        ("all-three", "project"): (["workspace", "global"], None),
        ("all-three", "workspace"): ([], "project"),
        ("all-three", "global"): ([], "project"),
        ("broken-on-top", "project"): ([], None),
        ("broken-on-top", "global"): ([], None),
    }


@pytest.mark.parametrize("directory", ["", "tiers/project", "/a\0b", "/\ud800", "/" + "x" * 5000])
def test_what_is_no_folder_at_all_has_no_skills(
    directory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TIERS.parent)
    assert skill_levels.read(tmp_path, str(tmp_path), directory).skills == {}
