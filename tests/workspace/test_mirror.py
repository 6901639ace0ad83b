"""Random changes of ours and of others: a client that only hears events knows what the lists say."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import AlreadyExists, Busy, IoError, NotFound
from tests.workspace.house import SAVES, WHOLE_SAVES, House, Mirror, line, message, rename_over, same

SESSIONS = [f"26030{number}-calm-cedar" for number in range(1, 4)]


class Storm:
    """Changes by us and by somebody else, drawn from *seed*."""

    def __init__(self, house: House, seed: int) -> None:
        self.house = house
        self.random = random.Random(seed)
        self.count = 0
        self.acknowledged: dict[str, set[str]] = {id: set() for id in SESSIONS}
        self.edited: dict[str, dict[str, str]] = {id: {} for id in SESSIONS}
        self.deleted: dict[str, set[str]] = {id: set() for id in SESSIONS}
        self.theirs: dict[str, set[str]] = {id: set() for id in SESSIONS}
        self.tasks: list[asyncio.Task[None]] = []

    def next(self, what: str) -> str:
        self.count += 1
        return f"{what}-{self.count}"

    async def blow(self, steps: int) -> None:
        for _ in range(steps):
            step = self.random.choice([self.ours, self.ours, self.line_one, self.lines, self.labels, self.skill])
            await step()
            if self.random.random() < 0.2:
                await self.house.sync()
            elif self.random.random() < 0.5:
                await asyncio.sleep(0.03 * self.random.random())
        await asyncio.gather(*self.tasks)
        await self.house.sync()

    async def ours(self) -> None:
        self.tasks.append(asyncio.create_task(self._ours(self.random.choice(SESSIONS))))
        await asyncio.sleep(0)

    async def _ours(self, session: str) -> None:
        house, kind = self.house, self.random.randrange(8)
        mine = sorted(self.acknowledged[session])
        with suppress(
            IoError, Busy, AlreadyExists, NotFound
        ):  # somebody kept writing, or changed ours before it was acknowledged
            if kind < 3:
                id = self.next("ours")
                await house.append(session, id)
                self.acknowledged[session].add(id)
            elif kind in (5, 6) and mine:
                id, content = self.random.choice(mine), self.next("content")
                await house.edit(session, id, content=content)
                self.edited[session][id] = content
            elif kind == 7 and mine:
                id = self.random.choice(mine)
                self.acknowledged[session].discard(id)
                await house.take_out(session, id)
                self.deleted[session].add(id)
            elif kind == 3:
                await house.update("sessions", session, name=self.next("Name"))
            else:
                await house.create("labels", name=self.next("Label"))

    async def line_one(self) -> None:
        session = self.random.choice(SESSIONS)
        header, *lines = self.house.lines(session)
        self._save(session, [{**header, "labels": [self.next("l")]}, *lines])

    async def lines(self) -> None:
        """Append in place, or save a copy that misses some of our lines, with lines of their own."""
        session, house = self.random.choice(SESSIONS), self.house
        id = self.next("theirs")
        self.theirs[session].add(id)
        if self.random.random() < 0.4:
            with house.transcript(session).open("ab") as file:
                file.write(line(message(id)))
            return
        header, *lines = house.lines(session)
        kept = [one for one in lines if one["id"] in self.theirs[session] or self.random.random() < 0.8]
        for number, one in enumerate(kept):
            if self.random.random() < 0.1:
                kept[number] = {**one, "note": self.next("note")}
        self._save(session, [header, *kept, message(id)])

    def _save(self, session: str, lines: list[Any]) -> None:
        self.random.choice(WHOLE_SAVES)(self.house.transcript(session), b"".join(map(line, lines)))

    async def labels(self) -> None:
        file = self.house.root / "labels" / "config.json"
        known = json.loads(file.read_bytes()) if file.exists() else {"version": 1, "labels": []}
        known["labels"] = [*known["labels"][-5:], {"id": self.next("their-label"), "name": "Theirs"}]
        save = self.random.choice(SAVES) if file.exists() else rename_over
        save(file, json.dumps(known).encode())

    async def skill(self) -> None:
        folder = self.house.root / "skills" / f"skill-{self.random.randrange(3)}"
        if folder.exists() and self.random.random() < 0.3:
            shutil.rmtree(folder)
        elif folder.exists() and self.random.random() < 0.3:
            target = folder.with_name(f"skill-{self.random.randrange(3)}")
            if not target.exists():
                os.rename(folder, target)
        else:
            folder.mkdir(exist_ok=True)
            (folder / "SKILL.md").write_text(f"---\nname: n\ndescription: {self.next('d')}\n---\nText\n")


@pytest.mark.parametrize("seed", range(8))
async def test_a_client_that_only_hears_events_knows_what_the_lists_say(tmp_path: Path, seed: int) -> None:
    house = House.make(tmp_path)
    for id in SESSIONS:
        house.new_session(id, "m1", "m2")
    await house.open()
    mirror = await Mirror.of(house)
    storm = Storm(house, seed)
    await storm.blow(60)
    mirror.follow(house.events)
    await mirror.compare(house)
    for id in SESSIONS:
        there = set(await house.ids(id))
        assert storm.acknowledged[id] <= there
        for record in await house.messages(id):
            assert record["content"] == storm.edited[id].get(record["id"], record["content"])
            # what they changed while we deleted it stays
            assert record["id"] not in storm.deleted[id] or "note" in record
        assert storm.theirs[id] <= there
    revisions = [event["revision"] for event in house.events if event.get("workspace") == "ws"]
    assert revisions == list(range(revisions[0], revisions[0] + len(revisions)))

    lists = {noun: house.values(noun) for noun in mirror.records}
    await house.reopen()
    assert house.events == []
    for noun, values in lists.items():
        assert same(values, house.values(noun)), noun
    await house.close()
