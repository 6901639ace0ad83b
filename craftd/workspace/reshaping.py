"""Changes of a status, label or project that reach into sessions: several commits, ended by the next start if killed.

A record of what is intended is flushed before the first commit and removed after the last. Deleting ends with the
definition, so whoever fails in between has it still; renaming begins with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs
from attrs import define, field, frozen

from craftd.errors import CraftdError, IoError, ServerCancelled
from craftd.model import labels, projects, sessions
from craftd.model.records import Record
from craftd.store import intents
from craftd.workspace.changes import DeleteRecord
from craftd.workspace.commit import Done, io_error
from craftd.workspace.definitions import AdaptSession, AskToDelete, RenameRecord
from craftd.workspace.journal import DAEMON, Origin
from craftd.workspace.many import in_parts

if TYPE_CHECKING:
    from craftd.workspace.rows import SessionRow
    from craftd.workspace.tables import Table
    from craftd.workspace.workspace import Workspace

log = logging.getLogger(__name__)

_T = TypeVar("_T")

AGAIN_SECONDS = 5.0
AGAIN_SECONDS_MOST = 300.0
"""Between two tries to finish what the disk refused; twice as long each time."""

LOOKS: Final = 3
"""How often sessions are looked through: others may go on using the definition meanwhile."""

Told = Callable[[int, int], None]
"""Hears how many sessions of how many are done."""


@frozen(kw_only=True)
class Intent:
    """verb: delete or rename. to: what sessions get instead, None = nothing. ids: all that go."""

    verb: str
    noun: str
    ids: tuple[str, ...]
    to: str | None = None

    @classmethod
    def read(cls, record: Record) -> Intent:
        """Raises: KeyError, TypeError."""
        return cls(verb=record["verb"], noun=record["noun"], ids=tuple(record["ids"]), to=record["to"])

    def instead(self, value: Record) -> Record:
        """What a session becomes; itself if it has nothing to do with it."""
        if self.noun == "projects":
            return projects.unbound(value, self.ids)
        if self.noun == "labels":
            return (
                labels.stripped(value, self.ids) if self.to is None else labels.relabelled(value, self.ids[0], self.to)
            )
        return {**value, "sessionStatus": self.to} if sessions.status_of(value) in self.ids else value

    @property
    def reaches_sessions(self) -> bool:
        """An unknown status keeps its id; an unknown label or project is of no use."""
        return self.noun != "statuses" or self.to is not None

    def concerns(self, row: SessionRow) -> bool:
        """Whether a session has to be changed. Most are not parsed for that."""
        if not any(id.encode() in row.header for id in self.ids):
            return False
        return row.readable and self.instead(row.value) is not row.value


@frozen
class Reshaped:
    """done: of the definition. sessions: how many were changed."""

    done: Done
    sessions: int


@define(eq=False, kw_only=True)
class Reshaping:
    """One such change, of the record *id* of *noun*."""

    workspace: Workspace
    noun: str
    id: str
    origin: Origin
    connection: object = None
    told: Told = lambda done, total: None
    changed: int = field(default=0, init=False)

    @property
    def _table(self) -> Table:
        return self.workspace.tables[self.noun]

    def _named(self) -> dict[str, Any]:
        table, id, key = self.workspace.verbs.place(self.noun, self.id)
        return {
            "origin": self.origin,
            "connection": self.connection,
            "noun": table.noun,
            "key": key,
            "id": id,
            "workspace": self.workspace.id,
            "facts": self.workspace.facts(),
        }

    async def delete(self, move_to: str | None, expected: str | None, *, missing_ok: bool) -> Reshaped:
        """Sessions lose the project, or the label and those in it; or get the status *move_to*, None = keep theirs."""
        ask = AskToDelete(**self._named(), expected=expected, missing_ok=missing_ok, move_to=move_to)
        asked = await self.workspace.commit(ask)
        if not asked.answer:
            return Reshaped(asked, 0)
        self.id = asked.answer[0]
        intent = Intent(verb="delete", noun=self.noun, ids=asked.answer, to=move_to)
        return await self._to_the_end(self._carry_out(intent, None, missing_ok=missing_ok))

    async def give_id(self, new_id: str, expected: str | None) -> Reshaped:
        """The done's answer is Updated."""
        asked = await self.workspace.commit(RenameRecord(**self._named(), new_id=new_id, expected=expected, dry=True))
        if not asked.answer.changed:
            return Reshaped(asked, 0)
        intent = Intent(verb="rename", noun=self.noun, ids=(self.id,), to=new_id)
        return await self._to_the_end(self._carry_out(intent, None))

    async def _to_the_end(self, work: Coroutine[Any, Any, _T]) -> _T:
        """*work*, also when nobody waits for it any more; it ends early only with the workspace."""
        ended: asyncio.Future[_T] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                ended.set_result(await work)
            except asyncio.CancelledError:
                ended.set_exception(ServerCancelled("the daemon stops; what was begun is finished by its next start"))
                raise
            except Exception as error:
                ended.set_exception(error)

        self.workspace.supervise(run())
        return await asyncio.shield(ended)

    async def _carry_out(self, intent: Intent, path: Path | None, *, missing_ok: bool = True) -> Reshaped:
        """path: where the intent is kept already."""
        if path is None and await self._concerned(intent):
            path = await self._keep(intent)
        try:
            if intent.verb == "delete":
                await self._adapt(intent)
            try:
                done = await self._define(intent, missing_ok)
            except IoError as error:
                if error.written:  # it is there, so sessions follow; the intent stays for if a power loss undoes it
                    await self._adapt(intent)
                raise
            await self._adapt(intent)  # of a deletion: who came to use it while it went
        except CraftdError:
            if path is not None and self._table.find(self.id) is not None:
                await self._drop(path)  # the definition is there still, and who asked is told
            elif path is not None:
                self.workspace.supervise(self._finish_later(intent, path))
            raise
        if path is not None:
            await self._drop(path)
        return Reshaped(done, self.changed)

    async def _define(self, intent: Intent, missing_ok: bool) -> Done:
        if intent.verb == "rename":
            assert intent.to is not None
            return await self.workspace.commit(RenameRecord(**self._named(), new_id=intent.to))
        return await self.workspace.commit(DeleteRecord(**self._named(), missing_ok=missing_ok))

    async def _adapt(self, intent: Intent) -> None:
        """Change the sessions, and those that came to use it meanwhile."""
        for _ in range(LOOKS):
            rows = await self._concerned(intent)
            if not rows:
                return
            adapt = partial(AdaptSession, origin=self.origin, connection=self.connection, instead=intent.instead)
            told = partial(self._tell, self.changed, self.changed + len(rows))
            answers = await in_parts(self.workspace, [adapt(id=row.id) for row in rows], told)
            self.changed += sum(answers)
            if not any(answers):  # what is left cannot be changed
                return

    def _tell(self, before: int, total: int, done: int) -> None:
        self.told(before + done, total)

    async def _concerned(self, intent: Intent) -> list[SessionRow]:
        if not intent.reaches_sessions:
            return []

        def work(rows: list[SessionRow]) -> list[SessionRow]:
            return [row for row in rows if intent.concerns(row)]

        return await self.workspace.in_pool(work, list(self.workspace.sessions))

    async def _keep(self, intent: Intent) -> Path:
        def work(record: Record) -> Path:
            with self.workspace.guard.writing():
                return intents.keep(self.workspace.state, self.workspace.id, record)

        try:
            return await self.workspace.in_pool(work, {**attrs.asdict(intent), "ids": list(intent.ids)})
        except OSError as error:
            raise io_error(error) from error

    async def _drop(self, path: Path) -> None:
        if not await self._removed(path):
            self.workspace.supervise(self._remove_later(path))

    async def _removed(self, path: Path) -> bool:
        try:
            await self.workspace.in_pool(intents.drop, path)
        except FileNotFoundError:
            return True
        except OSError as error:
            log.info("%s is not removed yet: %s", path, error)
            return False
        return True

    async def _remove_later(self, path: Path) -> None:
        async for _ in _again():
            if await self._removed(path):
                return

    async def _finish_later(self, intent: Intent, path: Path) -> None:
        """The definition has changed: nobody can ask for the rest any more, so it is tried until the disk takes it."""
        async for _ in _again():
            try:
                await self.finish(intent, path)
            except CraftdError as error:
                log.info("%s is not finished yet: %s", path, error)
            else:
                return

    async def finish(self, intent: Intent, path: Path) -> None:
        """Do the rest of what was begun."""
        known = self.workspace.has(intent.noun, intent.to) if intent.to is not None else True
        if intent.verb == "rename":
            if not known and not self.workspace.has(intent.noun, self.id):
                await self._drop(path)  # somebody took it away meanwhile
                return
            if known:
                await self._adapt(intent)
                await self._drop(path)
                return
        elif not known:
            await self._drop(path)
            return
        elif not self.workspace.has(intent.noun, self.id):
            await self._adapt(intent)
            await self._drop(path)
            return
        await self._carry_out(intent, path)


async def _again() -> AsyncIterator[None]:
    """Waits longer and longer for the next try of what the disk refused."""
    wait = AGAIN_SECONDS
    while True:
        await asyncio.sleep(wait)
        yield
        wait = min(2 * wait, AGAIN_SECONDS_MOST)


async def finish_all(workspace: Workspace) -> None:
    """Finish what earlier daemons began in *workspace*; what cannot be finished now waits for the next start."""
    for path, record in (await workspace.in_pool(_kept, workspace)).items():
        try:
            intent = Intent.read(record)
            reshaping = Reshaping(workspace=workspace, noun=intent.noun, id=intent.ids[0], origin=DAEMON)
            await reshaping.finish(intent, path)
        except (CraftdError, KeyError, TypeError, IndexError) as error:
            log.warning("%s is not finished: %s", path, error)


def _kept(workspace: Workspace) -> dict[Path, Any]:
    return intents.kept(workspace.state, workspace.id)
