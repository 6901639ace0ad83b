"""A configuration folder with one workspace, served in this process on real files, and a client's copy of it."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import define, field

from craftd.model import json_text
from craftd.model import patch as patches
from craftd.model.records import Record
from craftd.store.locks import AppLock
from craftd.workspace import reading
from craftd.workspace.commit import Done
from craftd.workspace.guard import Guard
from craftd.workspace.home import Home
from craftd.workspace.journal import Change, Origin
from craftd.workspace.messages import AppendMessages, DeleteMessage, TruncateMessages, UpdateMessage
from craftd.workspace.workspace import Surroundings, Workspace

PATIENCE = 20.0
"""Seconds: nothing here takes that long unless it never comes."""

NOUNS = ("sessions", "projects", "sources", "skills", "statuses", "labels", "views", "permissions")

CLIENT = Origin(kind="client", client="c-1")

SESSION = "260301-calm-cedar"


@define(eq=False)
class House:
    """config, root: the folders. events: params of everything published, with its `method`, in order."""

    config: Path
    root: Path
    settings: dict[str, Any] = field(factory=dict)
    events: list[Record] = field(factory=list)
    home: Home = field(init=False)
    workspace: Workspace = field(init=False)
    pool: ThreadPoolExecutor = field(init=False)
    _tasks: list[asyncio.Task[None]] = field(factory=list)
    _news: asyncio.Event = field(factory=asyncio.Event)

    @classmethod
    def make(cls, base: Path, name: str = "ws", **settings: Any) -> House:
        """Folders of a new workspace, which may lie beside others in *base*."""
        config, root = base / f"{name}-cfg", base / name
        (config / "craftd").mkdir(parents=True)
        for room in ("sessions", "skills", "sources", "projects", "labels", "statuses"):
            (root / room).mkdir(parents=True, exist_ok=True)
        house = cls(config, root, settings)
        house.register({"id": "ws", "rootPath": str(root)})
        return house

    def register(self, *entries: Record) -> None:
        write(self.config / "config.json", {"workspaces": list(entries), "activeWorkspaceId": "ws"})

    async def open(self) -> House:
        self.pool = ThreadPoolExecutor(4)
        around = Surroundings(
            guard=Guard(AppLock(self.config), time.monotonic),
            pool=self.pool,
            spawn=self._spawn,
            home=str(self.config.parent / "home"),
            cache=self.config / "craftd" / "cache",
            **{"sweep_every": 3600.0, "house_every": 3600.0, **self.settings},
        )
        self.home = Home.of(self.config, around)
        self.home.listeners.add(self._heard)
        await self.home.start()
        self.workspace = await self.open_workspace("ws")
        self.workspace.listeners.add(self._heard)
        return self

    async def open_workspace(self, name: str) -> Workspace:
        found = self.home.workspace(name)
        return found if isinstance(found, Workspace) else await found

    async def close(self) -> None:
        await self.home.close()
        self.pool.shutdown()
        for task in self._tasks:
            if not task.cancelled():
                task.result()
        self._tasks.clear()

    async def reopen(self) -> None:
        """Stop and start; what was heard before is forgotten."""
        await self.close()
        self.events.clear()
        await self.open()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    def _heard(self, scope: str | None, change: Change) -> None:
        message = json_text.loads(change.body)
        self.events.append({"method": message["method"], **message["params"]})
        self._news.set()

    # What was heard

    def heard(self, method: str = "", kind: str = "") -> list[Record]:
        """Events whose method begins with *method* and whose origin is of *kind*."""
        return [e for e in self.events if e["method"].startswith(method) and e["origin"]["kind"].startswith(kind)]

    @property
    def methods(self) -> list[str]:
        return [event["method"] for event in self.events]

    async def hear(self, method: str, number: int = 1) -> Record:
        """The *number*-th event called *method*, which comes without being asked for."""
        async with asyncio.timeout(PATIENCE):
            while len(found := self.heard(method)) < number:
                self._news.clear()
                await self._news.wait()
        return found[number - 1]

    async def sync(self) -> None:
        """Everything done to files before this call is published after it."""
        await self.home.sync()
        await self.workspace.sync()

    # Acting as a client

    async def create(self, noun: str, id: str | None = None, **value: Any) -> Done:
        return await self.workspace.verbs.create(noun, value, id, CLIENT, None)

    async def update(self, noun: str, id: str, **set: Any) -> Done:
        return await self.workspace.verbs.update(noun, id, {"set": set}, None, CLIENT, None)

    async def delete(self, noun: str, id: str) -> Done:
        return await self.workspace.verbs.delete(noun, id, None, CLIENT, None, missing_ok=False)

    async def append(self, session: str, *ids: str) -> Done:
        commit = AppendMessages(origin=CLIENT, labels=dict, id=session, messages=[message(id) for id in ids])
        return await self.workspace.commit(commit)

    async def edit(self, session: str, message: str, expected: str | None = None, **set: Any) -> Done:
        commit = UpdateMessage(origin=CLIENT, id=session, message=message, patch={"set": set}, expected=expected)
        return await self.workspace.commit(commit)

    async def take_out(self, session: str, message: str, **more: Any) -> Done:
        return await self.workspace.commit(DeleteMessage(origin=CLIENT, id=session, message=message, **more))

    async def truncate(self, session: str, keep: int | None = None, after: str | None = None) -> Done:
        return await self.workspace.commit(TruncateMessages(origin=CLIENT, id=session, keep=keep, after=after))

    # What there is

    def value(self, noun: str, id: str) -> Record:
        return self.workspace.verbs.item(noun, id).value

    def info(self, noun: str, id: str) -> Record:
        return self.workspace.verbs.item(noun, id).info

    def values(self, noun: str) -> dict[str, Record]:
        return {row.id: row.value for row in self.workspace.verbs.index(noun)}

    async def messages(self, session: str) -> list[Record]:
        found: list[Record] = []
        cursor = None
        while True:
            page = await reading.page(self.workspace, session, cursor=cursor, limit=500)
            found += [item["value"] for text in page.items if (item := json_text.loads(text))["value"]]
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def ids(self, session: str = SESSION) -> list[str]:
        return [record["id"] for record in await self.messages(session)]

    # Files, as somebody else sees them

    def transcript(self, session: str = SESSION) -> Path:
        return self.root / "sessions" / session / "session.jsonl"

    def new_session(self, session: str = SESSION, *ids: str, where: Path | None = None, **header: Any) -> Path:
        """Made by another program; its session.jsonl."""
        folder = (where or self.root / "sessions") / session
        folder.mkdir(parents=True)
        path = folder / "session.jsonl"
        lines = [{"id": session, "createdAt": 1, "name": "Old", **header, "messageCount": len(ids)}]
        path.write_bytes(b"".join(map(line, [*lines, *map(message, ids)])))
        return path

    def lines(self, session: str = SESSION) -> list[Record]:
        return [json.loads(text) for text in self.transcript(session).read_bytes().split(b"\n") if text.strip(b"\0 ")]


async def until(condition: Callable[[], Any]) -> None:
    """Wait for what comes without being asked for, and says nothing when it does."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 (files and threads, too, are waited for)
            await asyncio.sleep(0.005)


def message(id: str, content: str = "text", **more: Any) -> Record:
    return {"id": id, "content": f"{content} of {id}", "timestamp": 1772323200000, **more, "type": "user"}


def line(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False))


# How other programs save


def rename_over(path: Path, data: bytes) -> None:
    """A temporary file beside, renamed over: most programs."""
    beside = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    beside.write_bytes(data)
    os.rename(beside, path)


def rename_from_elsewhere(path: Path, data: bytes) -> None:
    """A temporary file on the same disk, outside of what is watched."""
    away = Path(path.anchor, *path.parts[1:3], f"save-{os.getpid()}-{time.monotonic_ns()}")
    away.write_bytes(data)
    os.rename(away, path)


def unlink_and_rename(path: Path, data: bytes) -> None:
    """The Craft Agents app: complete `.tmp` beside, the old file removed, then renamed."""
    beside = path.with_name(f"{path.name}.tmp")
    beside.write_bytes(data)
    path.unlink()
    time.sleep(0.003)
    os.rename(beside, path)


def rename_away_and_write(path: Path, data: bytes) -> None:
    """Editors that keep a backup: for a moment there is nothing at the name."""
    backup = path.with_name(f"{path.name}~")
    os.rename(path, backup)
    time.sleep(0.003)
    path.write_bytes(data)
    backup.unlink()


def in_place(path: Path, data: bytes) -> None:
    """Truncated and written: for a moment the file is empty."""
    path.write_bytes(data)


WHOLE_SAVES = (rename_over, rename_from_elsewhere, unlink_and_rename)
"""Nobody ever sees half of the file."""

SAVES = (*WHOLE_SAVES, rename_away_and_write, in_place)


# A client's copy


@define(eq=False)
class Mirror:
    """What a client knows that listed once and then only applied events, each of which has to be news to it."""

    records: dict[str, dict[str, Record]]
    messages: dict[str, list[Record]]

    @classmethod
    async def of(cls, house: House) -> Mirror:
        records = {noun: dict(house.values(noun)) for noun in NOUNS}
        messages = {id: await house.messages(id) for id in records["sessions"]}
        house.events.clear()
        return cls(records, messages)

    def follow(self, events: Sequence[Record]) -> None:
        for event in events:
            noun, verb = event["method"].split("/")
            if noun == "messages":
                self._message(verb, event)
            elif noun in self.records:
                self._record(noun, verb, event)

    def _record(self, noun: str, verb: str, event: Record) -> None:
        known = self.records[noun]
        if verb == "didCreate":
            item = event["item"]
            assert item["id"] not in known, event
            known[item["id"]] = item["value"]
            empty = not item["value"].get("messageCount")
            if noun == "sessions" and event["origin"]["kind"] == "client" and empty:
                self.messages[item["id"]] = []
        elif verb == "didDelete":
            del known[event["id"]]
            if noun == "sessions":
                self.messages.pop(event["id"], None)
        elif verb == "didChange":
            for change in event["changes"]:
                before = known[change["id"]]
                known[change["id"]] = patches.apply(before, event["patch"])
                assert patches.diff(before, known[change["id"]]), f"no news: {event}"

    def _message(self, verb: str, event: Record) -> None:
        known = self.messages.get(event["session"])
        if known is None:
            return  # a session that somebody else made: a client lists its messages when it opens it
        if verb == "didAppend":
            assert event["index"] == len(known), event
            known += event["messages"]
            assert event["count"] == len(known), event
        elif verb == "didTruncate":
            assert event["keep"] <= len(known), event
            del known[event["keep"] :]
        elif verb == "didDelete":
            if not event["id"].startswith("~"):  # a damaged line is no message
                del known[_place_of(known, event["id"])]
        else:
            for change in event["changes"]:
                at = _place_of(known, change["id"])
                before, known[at] = known[at], patches.apply(known[at], event["patch"])
                assert patches.diff(before, known[at]), f"no news: {event}"

    async def compare(self, house: House) -> None:
        """Raises AssertionError where it differs from the lists."""
        for noun in NOUNS:
            assert same(self.records[noun], house.values(noun)), noun
        for id, known in self.messages.items():
            assert same(known, await house.messages(id)), id


def _place_of(messages: Sequence[Record], id: str) -> int:
    """Of the first message *id*; `#<index>` names one without an id."""
    places = [at for at, record in enumerate(messages) if record.get("id") == id]
    return places[0] if places else int(id.removeprefix("#"))


def same(one: Any, other: Any) -> bool:
    return json_text.canonical(one) == json_text.canonical(other)


def everything_below(folder: Path) -> Iterator[tuple[str, Any]]:
    """Relative path, time of change and content of every file; folders by their names."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        yield name, None if path.is_dir() else (path.lstat().st_mtime_ns, path.read_bytes())
