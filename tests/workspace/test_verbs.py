"""Records that are created at the same time, or with an id that is taken."""

from __future__ import annotations

import asyncio

import pytest
from attrs import evolve

from craftd.errors import AlreadyExists, ValidationFailed
from tests.workspace.house import House


async def test_projects_created_at_once_with_one_name_get_folders_of_their_own(house: House) -> None:
    made = await asyncio.gather(*(house.create("projects", name="Atlas") for _ in range(3)))
    slugs = {done.answer.value["slug"] for done in made}
    assert slugs == {"atlas", "atlas-2", "atlas-3"}
    assert {path.name for path in (house.root / "projects").iterdir()} == slugs


async def test_a_folder_that_was_asked_for_by_name_is_given_once(house: House) -> None:
    made = await asyncio.gather(
        *(house.create("projects", name="Atlas", slug="atlas") for _ in range(2)), return_exceptions=True
    )
    assert isinstance(made[1], ValidationFailed)
    assert [path.name for path in (house.root / "projects").iterdir()] == ["atlas"]


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


async def test_an_id_is_given_to_one_workspace_only(house: House) -> None:
    for name in ("One", "Two"):
        commit = evolve(house.home.plan_creation({"name": name}, adopt=False), id="w1")
        if name == "One":
            await house.home.commit(commit)
        else:
            with pytest.raises(AlreadyExists):
                await house.home.commit(commit)
    assert [path.name for path in (house.config / "workspaces").iterdir()] == ["one"]
