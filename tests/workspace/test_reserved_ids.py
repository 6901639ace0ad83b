"""Ids of new sessions: of nobody who is, was, or is missed; and whoever comes first has them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import AlreadyExists
from craftd.model.ids import ADJECTIVES, NOUNS
from craftd.store import disk
from tests.workspace.house import CLIENT, House

DAY = 1_783_166_400_000
"""Noon of 4 July 2026, UTC."""
BASE = f"{ADJECTIVES[0]}-{NOUNS[0]}"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """One whose random choices are all the first, so that every session would be called the same."""
    house = House.make(tmp_path, pick=lambda n: 0, clock=lambda: DAY)
    (house.root / ".trash" / f"1783000000000-260704-{BASE}-2").mkdir(parents=True)
    await house.open()
    yield house
    await house.close()


async def create(house: House, **value: Any) -> str:
    return str((await house.create("sessions", **value)).answer.id)


async def delete(house: House, id: str, *, permanent: bool) -> None:
    await house.workspace.verbs.delete("sessions", id, None, CLIENT, None, missing_ok=False, permanent=permanent)


async def test_an_id_is_not_given_again(house: House) -> None:
    first, third = await create(house), await create(house)
    assert (first, third) == (f"260704-{BASE}", f"260704-{BASE}-3")  # the second lies in the trash
    await delete(house, first, permanent=True)
    fourth = await create(house, parentSessionId=third)
    await delete(house, third, permanent=False)
    fifth = await create(house)
    assert (fourth, fifth) == (f"260704-{BASE}-4", f"260704-{BASE}-5")
    await house.reopen()
    # Whoever was removed for good is forgotten then; whoever is in the trash, or has children, is not.
    assert [await create(house), await create(house)] == [f"260704-{BASE}", f"260704-{BASE}-6"]


async def test_whoever_asks_for_a_deleted_id_by_name_gets_it(house: House) -> None:
    first = await create(house)
    await delete(house, first, permanent=True)
    assert (await house.create("sessions", first)).answer.id == first


async def test_many_at_once_get_ids_of_their_own(house: House) -> None:
    ids = await asyncio.gather(*(create(house) for _ in range(30)))
    assert len(set(ids)) == 30


@pytest.mark.parametrize("given", [True, False])
async def test_another_process_may_be_faster(house: House, monkeypatch: pytest.MonkeyPatch, given: bool) -> None:
    """Its folder appears between the look and the rename."""
    move, wanted = disk.move_folder, house.root / "sessions" / f"260704-{BASE}"

    def slow(source: Path, target: Path) -> None:
        if target == wanted and not wanted.exists():
            wanted.mkdir()
            (wanted / "session.jsonl").write_text('{"id":"theirs","name":"Theirs"}\n')
        move(source, target)

    monkeypatch.setattr(disk, "move_folder", slow)
    if given:
        with pytest.raises(AlreadyExists):
            await house.create("sessions", wanted.name, name="Ours")
    else:
        assert await create(house, name="Ours") == f"260704-{BASE}-3"
    await house.sync()
    assert house.workspace.session(wanted.name).value["name"] == "Theirs"
    assert (wanted / "session.jsonl").read_text() == '{"id":"theirs","name":"Theirs"}\n'
