from __future__ import annotations

import asyncio
from typing import Any

import pytest

from craftd.errors import InvalidParams
from craftd.model.records import Item
from craftd.protocol.codec import Raw
from craftd.protocol.contract import Committed, Created
from craftd.server import keys as module
from craftd.server.keys import Keys, digest


class Maker:
    """Makes changes, and counts them."""

    def __init__(self, item: Any = None) -> None:
        self.keys = Keys()
        self.made = 0
        self.item = item

    async def make(self) -> Any:
        self.made += 1
        if self.item is None:
            return Committed(epoch="e", revision=self.made)
        return Created(epoch="e", revision=self.made, item=self.item)

    async def now(self, id: str) -> Any:
        return {"id": id, "version": "now", "value": {}} if id == "x" else None

    async def once(self, key: str, params: Any = None) -> Any:
        return await self.keys.once((None, "c", key), digest("labels/create", params or {}), self.make, self.now)


@pytest.mark.parametrize(
    "item", [Item("x", "v", {"n": 1}), {"id": "x", "version": "v"}, Raw(b'{"id":"x","version":"v"}')]
)
async def test_the_item_of_a_repeat_is_read_again(item: Any) -> None:
    maker = Maker(item)
    assert (await maker.once("k")).item is item
    assert await maker.once("k") == Created(epoch="e", revision=1, item={"id": "x", "version": "now", "value": {}})
    assert maker.made == 1


async def test_a_repeat_names_what_was_made_even_when_it_is_gone() -> None:
    maker = Maker(Item("gone", "v", {}))
    await maker.once("k")
    assert (await maker.once("k")).item == {"id": "gone", "version": "v"}


async def test_the_order_of_members_does_not_matter_and_their_types_do() -> None:
    maker = Maker()
    await maker.once("k", {"a": 1, "b": {"c": True, "d": None}})
    assert (await maker.once("k", {"b": {"d": None, "c": True}, "a": 1})).revision == 1
    with pytest.raises(InvalidParams):
        await maker.once("k", {"b": {"d": None, "c": 1}, "a": 1})


async def test_the_oldest_keys_give_way_to_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    maker = Maker()
    for key in ("one", "two", "three", "two", "three"):
        await maker.once(key)
    assert maker.made == 3
    await maker.once("one")
    assert maker.made == 4


async def test_a_key_is_forgotten_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_SECONDS", 0.0)
    maker = Maker()
    await maker.once("k", {"n": 1})
    await maker.once("k", {"n": 2})
    assert maker.made == 2


async def test_a_key_that_gave_way_while_its_change_ran_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 1)
    maker = Maker()
    running = asyncio.create_task(maker.keys.once((None, "c", "slow"), b"", asyncio.Event().wait, maker.now))
    await asyncio.sleep(0)
    await maker.once("fast")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await maker.once("fast")).revision == 1
