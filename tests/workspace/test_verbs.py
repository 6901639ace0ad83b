"""Records that are created at the same time, or with an id that is taken."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from craftd.errors import AlreadyExists
from tests.workspace.house import House


async def test_projects_created_at_once_with_one_name_get_folders_of_their_own(house: House) -> None:
    made = await asyncio.gather(*(house.create("projects", name="Atlas") for _ in range(3)))
    slugs = {done.answer.value["slug"] for done in made}
    assert slugs == {"atlas", "atlas-2", "atlas-3"}
    assert {path.name for path in (house.root / "projects").iterdir()} == slugs


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_folder_that_was_asked_for_by_name_is_given_once(house: House, at_once: bool) -> None:
    asked = [house.create("projects", name="Atlas", slug="atlas") for _ in range(2)]
    made = await asyncio.gather(*asked) if at_once else [await one for one in asked]
    assert [done.answer.value["slug"] for done in made] == ["atlas", "atlas-2"]


@pytest.mark.parametrize("at_once", [True, False])
async def test_an_id_is_given_to_one_project_only(house: House, at_once: bool) -> None:
    if at_once:
        made = await asyncio.gather(
            *(house.create("projects", "proj_1", name=name) for name in ("One", "Two")), return_exceptions=True
        )
    else:
        made = [await house.create("projects", "proj_1", name="One")]
        with pytest.raises(AlreadyExists) as caught:
            await house.create("projects", "proj_1", name="Two")
        made.append(caught.value)
    assert isinstance(made[1], AlreadyExists)
    assert made[1].current["value"]["name"] == "One"
    assert [path.name for path in (house.root / "projects").iterdir()] == ["one"]


@pytest.mark.parametrize(
    ("noun", "value"),
    [
        ("sessions", {}),
        ("labels", {}),
        ("statuses", {"label": "Same", "category": "open"}),
        ("projects", {}),
        ("skills", {"description": "d", "content": "c"}),
        ("sources", {"type": "local", "provider": "p", "local": {"path": "/tmp"}}),
    ],
)
async def test_records_that_could_have_one_name_are_made_in_the_order_asked_for(
    tmp_path: Path, noun: str, value: dict[str, Any]
) -> None:
    chance = random.Random(1)
    house = await House.make(tmp_path, pick=lambda choices: chance.randrange(min(choices, 3))).open()
    made = await asyncio.gather(*(house.create(noun, **{"name": "Same", **value}) for _ in range(8)))
    revisions = [done.revision for done in made]
    assert revisions == sorted(revisions)
    assert [event["item"]["id"] for event in house.heard(f"{noun}/didCreate")] == [done.answer.id for done in made]
    assert len({done.answer.id for done in made}) == 8
    await house.close()


async def test_an_id_is_given_to_one_workspace_only(house: House) -> None:
    for name in ("One", "Two"):
        commit = evolve(house.home.plan_creation({"name": name}, adopt=False), id="w1")
        if name == "One":
            await house.home.commit(commit)
        else:
            with pytest.raises(AlreadyExists):
                await house.home.commit(commit)
    assert [path.name for path in (house.config / "workspaces").iterdir()] == ["one"]
