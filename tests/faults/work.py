"""Changes of every kind, made without end by several clients, and a record of them kept by somebody else.

What is asked for and known is written as *facts*: a name (`message s-a-1 a-7`) and a value, None = not there. Every
fact has one author, so after a kill it is what was acknowledged last or what its author had asked for since.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from attrs import define, field

from craftd.model.records import Record

Facts = dict[str, Any]
Call = Callable[[str, Record], Awaitable[Any]]

SHARED = "shared"
"""A session that all clients append to;"""
BIG = "big"
"""another, above the size from which rewrites are prepared outside the queue."""
CLIENTS = ("a", "b", "c")

HALF_LINES = frozenset({"torn-tail", "line-unreadable"})
"""The only damage a kill may leave: part of an append that nobody was told of."""


# Outside


@define
class Ledger:
    """certain: what was acknowledged. asked: what is asked for and not answered, by number."""

    certain: Facts = field(factory=dict)
    asked: dict[int, Facts] = field(factory=dict)

    def ask(self, number: int, facts: Facts) -> None:
        self.asked[number] = facts

    def acknowledge(self, number: int) -> None:
        self.certain |= self.asked.pop(number)

    def hear(self, line: str) -> None:
        """`number facts` asks, `number` alone acknowledges."""
        number, _, facts = line.partition(" ")
        if facts:
            self.ask(int(number), json.loads(facts))
        else:
            self.acknowledge(int(number))

    def judge(self, found: Facts) -> list[str]:
        """What is wrong with *found*, which from now on is what is certain."""
        problems = []
        possible: dict[str, list[Any]] = {}
        for facts in self.asked.values():
            for name, value in facts.items():
                possible.setdefault(name, []).append(value)
        for name in self.certain.keys() | found.keys():
            there, known = found.get(name), self.certain.get(name)
            if there != known and there not in possible.get(name, []):
                word = "came from nowhere" if known is None else f"acknowledged was {known!r}"
                problems.append(f"{name} is {there!r}: {word}")
        self.certain, self.asked = dict(found), {}
        return problems


async def facts_of(
    call: Call, workspace: str, root: Path, *, allowed: frozenset[str] = HALF_LINES
) -> tuple[Facts, list[str]]:
    """All facts of a workspace in the folder *root*, and what is wrong beside them. allowed: damage that is not."""
    facts: Facts = {}
    problems: list[str] = []
    async for item in pages(call, "sessions/list", {"workspace": workspace, "fields": ["*"]}):
        id, value = item["id"], item["value"]
        facts[f"session {id}"] = value.get("name")
        facts |= {f"mark {id} {name}": mark for name, mark in value.items() if name.startswith("x-")}
        damage = {one["code"] for one in item.get("info", {}).get("damage", ())}
        problems += [f"{id}: {code}" for code in damage - allowed]
        last: dict[str, int] = {}
        count = 0
        async for message in pages(call, "messages/list", {"workspace": workspace, "session": id}):
            if "damage" in message.get("info", {}):
                continue
            count += 1
            name, author = f"message {id} {message['id']}", message["id"].split("-")[0]
            if name in facts:
                problems.append(f"{name} is there twice")
            facts[name] = len(message["value"]["content"])
            if marks := message["value"].get("annotations"):
                facts[f"annotation {id} {message['id']}"] = sorted(mark["id"] for mark in marks)
            if found := KEPT_OUT.search(message["value"].get("toolResult", "")):
                path = Path(found[1])
                if path.exists():
                    facts[f"result {id} {message['id']}"] = shown(path.read_text())
                else:
                    problems.append(f"{name} speaks of {path.name}, which is not there")
            if author in CLIENTS and (number := int(message["id"].split("-")[1])) <= last.get(author, -1):
                problems.append(f"{name} stands behind {last[author]}")
            elif author in CLIENTS:
                last[author] = number
        if value.get("messageCount") != count:
            problems.append(f"{id} counts {value.get('messageCount')} messages, {count} are there")
    for noun, member in MEMBERS.items():
        async for item in pages(call, f"{noun}/list", {"workspace": workspace, "fields": ["*"]}):
            if item["id"].startswith(("r-", "proj_")):  # not one of those that the app brings along
                facts |= {f"{noun} {item['id']} {name}": item["value"].get(name) for name in member}
    async for item in pages(call, "workspaces/list", {}):
        facts[f"workspace {item['id']}"] = item["value"]["name"]
        if "missing" in item.get("info", {}):
            problems.append(f"the folder of workspace {item['id']} is not there")
    issues = (await call("issues/list", {"workspace": workspace}))["items"]
    problems += [f"{issue['path']}: {issue['message']}" for issue in issues if issue.get("code") not in allowed]
    for path in root.glob("sessions/*/data/**/*"):
        if path.is_file():
            facts[f"file {path.relative_to(root)}"] = shown(path.read_text())
    for path in root.glob("sessions/*/notes.md"):
        facts[f"notes {path.parent.name}"] = shown(path.read_text())
    if (trash := root / ".trash").is_dir():
        names = [name.split("-", 1)[1] for name in os.listdir(trash)]
        facts |= {f"trash {name}": True for name in names if name.startswith("s-")}
    return facts, problems


KEPT_OUT = re.compile(r"Full data saved to: (.*)")
"""Where a message says that its result is."""


def shown(text: str) -> str:
    """What is known of a file: a part of it would be shorter."""
    return f"{len(text)} {text[:20]}"


async def pages(call: Call, method: str, params: Record) -> Any:
    cursor: Record = {}
    while True:
        page = await call(method, {**params, "limit": 500, **cursor})
        for item in page["items"]:
            yield item
        if page.get("nextCursor") is None:
            return
        cursor = {"cursor": page["nextCursor"]}


LITTER = re.compile(r"\..*\.tmp")


def litter(*folders: Path) -> list[Path]:
    """Temporary files and folders that somebody forgot."""
    return [path for folder in folders for path in folder.rglob("*") if LITTER.fullmatch(path.name)]


def new_workspace(root: Path, big: int = 1_300_000) -> Facts:
    """A workspace folder with the two shared sessions; what is true of it. *big*: bytes of the larger one."""
    facts: Facts = {}
    for id, messages in ((SHARED, 1), (BIG, big // 20_000 + 1)):
        (folder := root / "sessions" / id).mkdir(parents=True)
        records = [
            {"id": f"old-{at}", "content": "x" * 20_000, "timestamp": 1, "type": "user"} for at in range(messages)
        ]
        header = {"id": id, "createdAt": 1, "name": id, "messageCount": messages}
        lines = [json.dumps(line, separators=(",", ":")) for line in (header, *records)]
        (folder / "session.jsonl").write_text("".join(f"{line}\n" for line in lines))
        facts[f"session {id}"] = id
        facts |= {f"message {id} {record['id']}": 20_000 for record in records}
    (root / "config.json").write_text(json.dumps({"id": "ws_1", "name": "Work", "slug": "ws", "createdAt": 1}))
    return facts


# Inside

MEMBERS: dict[str, tuple[str, ...]] = {
    "labels": ("name",),
    "statuses": ("label",),
    "projects": ("description",),
    "sources": ("tagline", "guide"),
    "skills": ("description", "content"),
}
"""What is changed of the records of each noun."""

REST: dict[str, Record] = {
    "labels": {},
    "statuses": {},
    "projects": {"name": "Some project"},
    "sources": {"name": "Some source", "type": "local", "local": {"path": "/tmp"}},
    "skills": {"name": "Some skill"},
}
"""What a new record needs beside."""


def _number(message: str) -> int:
    return int(message.rpartition("-")[2])


@define
class Worker:
    """One client. ask(number, facts) and acknowledge(number) tell the record keeper; facts: what is true at the start.

    round: no two rounds use the same ids.
    """

    name: str
    call: Call
    ask: Callable[[int, Facts], None]
    acknowledge: Callable[[int], None]
    facts: Facts
    workspace: str
    round: int
    numbers: Iterator[int]
    chance: random.Random = field(init=False)
    binned: dict[str, Facts] = field(factory=dict)
    """What was true of sessions that this round put into the trash."""

    def __attrs_post_init__(self) -> None:
        self.chance = random.Random(f"{self.name}{self.round}")
        own = (SHARED, BIG)
        self.facts = {
            name: value for name, value in self.facts.items() if self._is_mine(name) or name.split()[1] in own
        }

    def _is_mine(self, name: str) -> bool:
        return f"-{self.name}-" in name or f"_{self.name}0" in name

    async def run(self, enough: asyncio.Event) -> None:
        while not enough.is_set():
            await self.change()

    async def change(self) -> None:
        """One change of a random kind."""
        kinds = (
            self._append, self._edit, self._annotate, self._session, self._notes, self._record, self._file,
            self._workspaces,
        )  # fmt: skip
        kind = self.chance.choices(kinds, (10, 5, 3, 6, 2, 6, 4, 1))[0]
        await kind()

    async def _do(self, method: str, params: Record, facts: Facts) -> None:
        number = next(self.numbers)
        self.ask(number, facts)
        scope = {} if method.startswith("workspaces/") else {"workspace": self.workspace}
        await self.call(method, {**scope, **params})
        self.acknowledge(number)
        self.facts |= facts

    def _new_id(self) -> str:
        return f"-{self.name}-{self.round * 100_000 + next(self.numbers)}"

    def _sessions(self) -> list[str]:
        names = [name.split()[1] for name, value in self.facts.items() if name.startswith("session ") and value]
        return [id for id in names if self._is_mine(id)]

    async def _append(self) -> None:
        session = self.chance.choice((SHARED, BIG, *self._sessions()[-3:]))
        large = self.chance.random() < 0.1
        messages = [
            {
                "id": f"{self.name}-{self.round * 100_000 + next(self.numbers)}",
                "content": "x" * (self.chance.randint(20_000, 60_000) if large else self.chance.randint(1, 900)),
                "type": "assistant",
            }
            for _ in range(self.chance.choice((1, 1, 1, 4)))
        ]
        params: Record = {"session": session, "messages": messages}
        facts: Facts = {f"message {session} {one['id']}": len(one["content"]) for one in messages}
        if self.chance.random() < 0.1:
            result = f"{self.chance.random()} {'ab ' * self.chance.randint(20_000, 40_000)}"
            messages[0] |= {"type": "tool", "toolName": "Read", "toolResult": result}
            facts[f"result {session} {messages[0]['id']}"] = shown(result)
        if self.chance.random() < 0.25:
            mark = self.chance.random()
            params["set"] = {f"x-{self.name}-": mark}
            facts[f"mark {session} x-{self.name}-"] = mark
        await self._do("messages/append", params, facts)

    def _messages(self) -> list[list[str]]:
        """Session and id of those that this client wrote."""
        return [
            name.split()[1:]
            for name, value in self.facts.items()
            if value is not None and name.startswith("message ") and name.split()[2].startswith(f"{self.name}-")
        ]

    async def _annotate(self) -> None:
        if not (mine := self._messages()):
            return await self._append()
        session, id = self.chance.choice(mine[-20:])
        name, mark = f"annotation {session} {id}", f"n{next(self.numbers)}-{self.round}"
        value = {"target": {"selectors": [{"type": "text-quote", "exact": "x"}]}}
        params = {"session": session, "message": id, "id": mark, "value": value}
        await self._do("annotations/create", params, {name: sorted([*(self.facts.get(name) or ()), mark])})

    async def _notes(self) -> None:
        if not (mine := self._sessions()):
            return await self._session()
        id, text = self.chance.choice(mine), f"{self.chance.random()} {'x' * self.chance.randrange(1000)}"
        await self._do("notes/update", {"session": id, "text": text}, {f"notes {id}": shown(text)})

    async def _edit(self) -> None:
        """Of a message of mine, wherever it is; what stands behind it goes only where nobody else writes."""
        mine = self._messages()
        if not mine:
            return await self._append()
        session, id = self.chance.choice(mine[-20:])
        what, name = self.chance.random(), f"message {session} {id}"
        if what < 0.5:
            size = self.chance.randint(1, 900)
            patch = {"set": {"content": "y" * size, "toolStatus": "completed"}}
            await self._do("messages/update", {"session": session, "id": id, "patch": patch}, {name: size})
        elif what < 0.8 or session in (SHARED, BIG):
            gone: Facts = {name: None, f"result {session} {id}": None, f"annotation {session} {id}": None}
            await self._do("messages/delete", {"session": session, "id": id}, gone)
        else:
            there = [id for place, id in mine if place == session]
            behind = [one for one in there if _number(one) > _number(id)]
            gone = {f"{what} {session} {one}": None for one in behind for what in ("message", "result", "annotation")}
            await self._do("messages/truncate", {"session": session, "afterMessage": id}, gone)

    async def _session(self) -> None:
        mine, what = self._sessions(), self.chance.random()
        if self.binned and what < 0.2:
            id, back = self.binned.popitem()
            await self._do("sessions/restore", {"id": id}, {**back, f"trash {id}": None})
        elif what < 0.4 or not mine:
            id = f"s{self._new_id()}"
            await self._do("sessions/create", {"id": id, "value": {"name": id}}, {f"session {id}": id})
        elif what < 0.6:
            id, mark = self.chance.choice((SHARED, BIG)), self.chance.random()
            patch = {"set": {f"x-{self.name}-": mark}}
            await self._do("sessions/update", {"id": id, "patch": patch}, {f"mark {id} x-{self.name}-": mark})
        elif what < 0.8:
            id, name = self.chance.choice(mine), f"renamed {self.chance.random()}"
            await self._do("sessions/update", {"id": id, "patch": {"set": {"name": name}}}, {f"session {id}": name})
        else:
            id, permanent = self.chance.choice(mine), self.chance.random() < 0.3
            facts = {name: None for name in self.facts if name.split()[1] == id and not name.startswith("trash")}
            facts |= {} if permanent else {f"trash {id}": True}
            before = {name: self.facts[name] for name in facts if not name.startswith("trash")}
            await self._do("sessions/delete", {"id": id, "permanent": permanent}, facts)
            if not permanent:
                self.binned[id] = before

    async def _file(self) -> None:
        path = f"sessions/{SHARED}/data/{self.chance.randrange(3)}/f-{self.name}-{self.chance.randrange(3)}.txt"
        if self.facts.get(f"file {path}") and self.chance.random() < 0.2:
            return await self._do("files/delete", {"path": path}, {f"file {path}": None})
        large = self.chance.random() < 0.2
        text = f"{self.chance.random()} {'x' * (300_000 if large else self.chance.randrange(1000))}"
        await self._do("files/write", {"path": path, "content": {"text": text}}, {f"file {path}": shown(text)})

    async def _record(self) -> None:
        noun = self.chance.choice(tuple(MEMBERS))
        mine = sorted({name.split()[1] for name, value in self.facts.items() if name.startswith(f"{noun} ") and value})
        what = self.chance.random()
        value = {member: f"text {self.chance.random()}" for member in MEMBERS[noun]}
        if what < 0.5 or not mine:
            id = f"proj_{self.name}0{self._new_id()[3:]}" if noun == "projects" else f"r{self._new_id()}"
            facts = {f"{noun} {id} {member}": text for member, text in value.items()}
            await self._do(f"{noun}/create", {"id": id, "value": {**REST[noun], **value}}, facts)
            return
        id = self.chance.choice(mine)
        if what < 0.8:
            value = dict(self.chance.sample(sorted(value.items()), self.chance.randint(1, len(value))))
            facts = {f"{noun} {id} {member}": text for member, text in value.items()}
            await self._do(f"{noun}/update", {"id": id, "patch": {"set": value}}, facts)
        else:
            facts = {f"{noun} {id} {member}": None for member in MEMBERS[noun]}
            await self._do(f"{noun}/delete", {"id": id}, facts)

    async def _workspaces(self) -> None:
        mine = [name.split()[1] for name, value in self.facts.items() if name.startswith("workspace ") and value]
        if self.chance.random() < 0.6 or not mine:
            id = f"w{self._new_id()}"
            await self._do("workspaces/create", {"id": id, "value": {"name": id}}, {f"workspace {id}": id})
        elif self.chance.random() < 0.5:
            id, name = self.chance.choice(mine), f"renamed {self.chance.random()}"
            await self._do("workspaces/update", {"id": id, "patch": {"set": {"name": name}}}, {f"workspace {id}": name})
        else:
            id = self.chance.choice(mine)
            await self._do("workspaces/delete", {"id": id}, {f"workspace {id}": None})
