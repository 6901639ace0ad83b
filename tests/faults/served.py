"""The whole daemon in this process, so that its disk can be broken, with a client that follows what it is told."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import define

from craftd.model import json_text
from craftd.model.records import Record
from craftd.protocol import rendezvous
from craftd.server import core
from craftd.server.auth import Auth, Tokens
from craftd.server.daemon import Network
from craftd.store.locks import AppLock
from craftd.workspace.guard import Guard
from craftd.workspace.workspace import Workspace
from tests.faults.scopes import Scopes
from tests.faults.work import Call, litter, pages
from tests.wire import Wire
from tests.workspace.house import NOUNS, Mirror, line, message, same

WORK = "work"
"""Registry id of the workspace."""

State = dict[str, Any]


@define(eq=False)
class Served:
    """base: holds the configuration folder `cfg` and the workspace folder `ws`. wire: a client of both scopes."""

    base: Path
    daemon: core.Daemon
    wire: Wire
    mirror: Mirror

    @classmethod
    @asynccontextmanager
    async def start(cls, base: Path, network: Network | None = None) -> AsyncIterator[Served]:
        """Serve a new workspace with one session. XDG_RUNTIME_DIR must be short: a socket lies there."""
        root, config = base / "ws", base / "cfg"
        (config / "craftd").mkdir(parents=True)
        (root / "sessions" / "first").mkdir(parents=True)
        header = {"id": "first", "createdAt": 1, "name": "Old", "messageCount": 1}
        (root / "sessions" / "first" / "session.jsonl").write_bytes(line(header) + line(message("m1")))
        (root / "config.json").write_text(json.dumps({"id": "ws_1", "name": "Work", "slug": "ws", "createdAt": 1}))
        entry = {"id": WORK, "name": "Work", "slug": "ws", "rootPath": str(root), "createdAt": 1}
        registry = {"workspaces": [entry], "activeWorkspaceId": WORK, "activeSessionId": None}
        (config / "config.json").write_text(json.dumps(registry))
        places, guard = rendezvous.find(str(config)), Guard(AppLock(config), time.monotonic)
        daemon = core.Daemon(places, False, False, guard, network or Network(), Auth(Tokens(places)))
        running = asyncio.create_task(daemon.run())
        try:
            async with asyncio.timeout(10):
                while daemon.socket is None and not running.done():  # noqa: ASYNC110 (nothing tells when it is there)
                    await asyncio.sleep(0.002)
            assert daemon.socket is not None
            wire = await Wire.connect(daemon.socket)
            await wire.initialize({"workspaces": [{"id": WORK}]})
            await wire.call("events/subscribe", {"workspace": WORK})
            await wire.call("events/subscribe", {})
            served = cls(base, daemon, wire, Mirror({}, {}))
            state = await served.state()
            served.mirror = Mirror({noun: _values(state[noun]) for noun in FOLLOWED}, _messages(state))
            yield served
            await wire.close()
        finally:
            daemon.stop("stop")
            await running

    @property
    def root(self) -> Path:
        return self.base / "ws"

    @property
    def config(self) -> Path:
        return self.base / "cfg"

    @property
    def workspace(self) -> Workspace:
        [found] = [one for one in self.daemon.home.open_workspaces if one.id == WORK]
        return found

    async def call(self, method: str, **params: Any) -> Any:
        """A request about the workspace, or about the registry of workspaces."""
        return await self.wire.call(method, scoped(method, params))

    async def state(self) -> State:
        return {**await state_of(self.wire.call), "files": self._files()}

    def _files(self) -> Record:
        """Those that are no records."""
        found = [path for path in self.root.glob("sessions/*/data/**/*") if path.is_file()]
        found += self.root.glob("automations.json")
        trash = {str(path.relative_to(self.root)): None for path in self.root.glob(".trash/[!.]*")}
        return {**trash, **{str(path.relative_to(self.root)): path.read_text() for path in found}}

    async def state_on_disk(self) -> State:
        """What a daemon that starts now would find."""
        (beside := self.base / "fresh" / "craftd").mkdir(parents=True, exist_ok=True)
        shutil.copy(self.config / "config.json", beside.parent)
        async with Scopes.open(beside.parent) as scopes:
            return {**await state_of(scopes.call), "files": self._files()}

    def follow(self) -> None:
        """Take the events that have come since the last time."""
        events = [{"method": one["method"], **one["params"]} for one in self.wire.received if "method" in one]
        self.wire.received.clear()
        self.mirror.follow(events)

    async def check(self, *, litter_allowed: bool = False) -> tuple[State, list[str]]:
        """What is served now, and what is wrong with it: against the disk, and against what the client was told."""
        await self.call("daemon/sync", workspace=WORK)
        state, on_disk = await self.state(), await self.state_on_disk()
        problems = [f"{where} is served, on disk is {there}" for where, there in differences(state, on_disk)]
        try:
            self.follow()
        except (AssertionError, KeyError, ValueError) as error:
            problems.append(f"an event is wrong: {error!r}")
        for id in self.mirror.records["sessions"].keys() & state["sessions"].keys():
            self.mirror.messages.setdefault(id, list(state["messages"][id]))  # listed, since it came with messages
        known: State = {**self.mirror.records, "messages": self.mirror.messages}
        shown = {**{noun: _values(state[noun]) for noun in FOLLOWED}, "messages": _messages(state)}
        problems += [f"the client was told {where}, served is {there}" for where, there in differences(known, shown)]
        if problems:  # it was told wrong things once; do not say so again
            self.mirror = Mirror({noun: _values(state[noun]) for noun in FOLLOWED}, _messages(state))
        left = litter(self.config, self.root)
        if not litter_allowed:
            problems += [f"left behind: {path}" for path in left]
        for path in left:  # the next start of a daemon would do it
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return state, problems


FOLLOWED = (*NOUNS, "workspaces")


def scoped(method: str, params: Record) -> Record:
    elsewhere = ("workspaces/", "daemon/", "blobs/", "credentials/")
    return params if method.startswith(elsewhere) else {"workspace": WORK, **params}


async def state_of(call: Call) -> State:
    """Every record by noun and id, as (version, value); `messages`: the values of each session's."""
    state: State = {"messages": {}}
    for noun in FOLLOWED:
        params = {"fields": ["*"], **({} if noun == "workspaces" else {"workspace": WORK})}
        state[noun] = {
            item["id"]: (item["version"], item["value"], item.get("info"))
            async for item in pages(call, f"{noun}/list", params)
        }
    for id in state["sessions"]:
        named = {"workspace": WORK, "session": id}
        state["messages"][id] = [item["value"] async for item in pages(call, "messages/list", named)]
    return state


def _values(records: dict[str, Any]) -> dict[str, Record]:
    return {id: value for id, (_, value, _) in records.items()}


def _messages(state: State) -> dict[str, list[Record]]:
    return {id: list(records) for id, records in state["messages"].items()}


def differences(one: State, other: State) -> list[tuple[str, str]]:
    """Records that are not the same in both: what they are here, what there."""
    found = []
    for noun in one:
        for id in one[noun].keys() | other[noun].keys():
            mine, theirs = one[noun].get(id), other[noun].get(id)
            if not same(_json(mine), _json(theirs)):
                found.append((f"{noun}/{id} {mine!r}"[:400], f"{theirs!r}"[:400]))
    return found


def _json(value: Any) -> Any:
    return json_text.loads(json_text.dumps(list(value) if isinstance(value, tuple) else value))
