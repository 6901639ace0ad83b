"""The scopes of a configuration folder in this process, where no daemon runs: only looked at, or opened to be changed.

Who opens them holds the daemon's own lock meanwhile, so none starts beside it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from attrs import frozen

from craftd.errors import CraftdError, Issue, NotFound, ReadOnly, Ref
from craftd.model.repair import Finding
from craftd.store.atomic import ForeignWrite
from craftd.store.locks import AppLock, DaemonLock
from craftd.workspace import repair
from craftd.workspace.checking import surroundings
from craftd.workspace.guard import Guard
from craftd.workspace.home import Home
from craftd.workspace.journal import Origin
from craftd.workspace.rows import SessionRow
from craftd.workspace.workspace import Workspace

ORIGIN: Final = Origin(kind="daemon")


@frozen
class Seen:
    """A scope that was looked at. id: None = the configuration folder. damaged: what is wrong with which session."""

    id: str | None
    root: Path
    issues: Sequence[Issue]
    damaged: Mapping[str, tuple[Finding, ...]]


def look(config: Path, name: str | None) -> Iterator[Seen]:
    """The workspace called *name*; else the configuration folder and every workspace it names whose folder is there.

    Nothing is locked, written or made. Raises: NotFound, InvalidParams.
    """
    home = Home.of(config, surroundings(config))
    home.look_once()
    if name is None:
        yield Seen(None, config, _in_order(home.issues()), {})
        ids = [id for id, known in home.known.items() if home.find(id) == id and known.entry.root.is_dir()]
    else:
        id = home.find(name)
        if id is None:
            raise NotFound(Ref("workspaces", name))
        ids = [id]
    for id in ids:
        workspace = Workspace.look_once(id, home.known[id].entry.root, home.around)
        damaged = {row.id: found for row in workspace.sessions if row.damage and (found := _found(row))}
        yield Seen(id, home.known[id].entry.root, _in_order(workspace.issues()), damaged)


def mend(config: Path, sessions: Sequence[tuple[str, str]]) -> dict[tuple[str, str], repair.Repaired | CraftdError]:
    """Repair sessions, each a workspace's registry id and its own. Raises: ReadOnly (a daemon starts), OSError."""

    async def work() -> dict[tuple[str, str], repair.Repaired | CraftdError]:
        done: dict[tuple[str, str], repair.Repaired | CraftdError] = {}
        async with _opened(config) as home:
            for id, session in sessions:
                try:
                    found = home.workspace(id)
                    workspace = found if isinstance(found, Workspace) else await found
                    commit = repair.RepairSession(origin=ORIGIN, id=session)
                    done[id, session] = (await workspace.commit(commit)).answer
                except CraftdError as error:
                    done[id, session] = error
        return done

    return asyncio.run(work())


@asynccontextmanager
async def _opened(config: Path) -> AsyncIterator[Home]:
    lock = DaemonLock(config)
    holder = lock.take()
    if holder is not None:
        raise ReadOnly(holder.as_json())
    guard = Guard(AppLock(config), time.monotonic)
    try:
        async with asyncio.TaskGroup() as group:
            with ThreadPoolExecutor(4) as pool:
                around = surroundings(config)
                around.guard, around.pool, around.spawn = guard, pool, group.create_task
                home = Home.of(config, around)
                await home.start()
                try:
                    yield home
                finally:
                    await home.close()
                    guard.give_back()
    finally:
        lock.give_back()


def _in_order(issues: Mapping[str, Sequence[Issue]]) -> list[Issue]:
    return [issue for path in sorted(issues) for issue in issues[path]]


def _found(row: SessionRow) -> tuple[Finding, ...]:
    try:
        return repair.look(row)
    except (OSError, ForeignWrite):
        return ()
