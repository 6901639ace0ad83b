"""The single queue of a scope: take what waits, compute, write, flush each file once, publish in order.

One task on the event loop decides; one thread writes. Commits on different units of a round are independent
(a commit that reads what an earlier one changes starts a new round), so a unit that fails fails alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from attrs import define, field

from craftd.errors import CraftdError, InternalError, IoError, ServerCancelled
from craftd.store import disk
from craftd.store.atomic import DirectoryNotFlushed, ForeignWrite
from craftd.store.transcript import Stale
from craftd.workspace.commit import Commit, Done, Unit, io_error
from craftd.workspace.journal import DAEMON, DISK, Change, Journal, Origin

log = logging.getLogger(__name__)

ROUND = 256
"""Commits of one round: bounds how long the first answer of a burst waits."""

TRIES = 20
"""Foreign writes in a row on one file before a commit gives up."""


class Backing(Protocol):
    """What the queue needs from its scope."""

    journal: Journal

    def open_unit(self, key: str) -> Unit:
        """The unit with its published state as base. Thread of the scope."""
        ...

    def preparation(self, key: str, commits: Sequence[Commit]) -> Callable[[], Any] | None:
        """Slow work to do outside the queue before *commits* can run: a function for a pool thread, or None."""
        ...

    def prepared(self, unit: Unit, result: Any) -> None:
        """Hand the result of that work to the unit. Thread of the scope."""
        ...

    def abandoned(self, result: Any) -> None:
        """The result of that work is not needed."""
        ...

    def writing(self, unit: Unit) -> AbstractContextManager[None]:
        """*unit* may be written inside of it. Raises ReadOnly when that may not be now. Thread of the scope."""
        ...

    def settled(self, units: Sequence[Unit]) -> None:
        """Tidy up after a round. Thread of the scope."""
        ...

    def announce(self, change: Change) -> None: ...
    def now(self) -> int: ...


@define(eq=False)
class Pending:
    commit: Commit
    future: asyncio.Future[Done]
    started: bool = False


@define(eq=False)
class Bundle:
    """Commits that wait together for one preparation of their unit, and then share its rewrite."""

    pendings: list[Pending]
    task: asyncio.Task[Any]


@define(eq=False)
class Outcome:
    """What a round made of one pending commit, or (pending None) of somebody else's edit."""

    origin: Origin
    changes: Sequence[Change] = ()
    pending: Pending | None = None
    answer: Any = None
    error: CraftdError | None = None

    @property
    def staged(self) -> bool:
        return self.error is None and bool(self.changes)


@define(eq=False)
class Round:
    """What the thread hands back: units to publish, outcomes in order, commits to take again."""

    units: list[Unit] = field(factory=list)
    outcomes: list[Outcome] = field(factory=list)
    again: list[Pending] = field(factory=list)


@define(eq=False)
class Queue:
    """Executes commits one round after the other; `run` is its task."""

    scope: Backing
    thread: Executor
    pool: Executor
    _waiting: deque[Pending] = field(factory=deque)
    _bundles: dict[str, Bundle] = field(factory=dict)
    _wake: asyncio.Event = field(factory=asyncio.Event)
    _idle: asyncio.Event = field(factory=asyncio.Event)
    _refused: CraftdError | None = None
    _unsafe: dict[str, tuple[Path, ...]] = field(factory=dict)
    """Folders in which a power loss could still undo something written, by unit. Thread of the scope."""

    def submit(self, commit: Commit) -> asyncio.Future[Done]:
        """Queue *commit* now; the future holds its answer. Raises ServerCancelled once closed."""
        if self._refused is not None:
            raise self._refused
        pending = Pending(commit, asyncio.get_running_loop().create_future())
        self._waiting.append(pending)
        self._idle.clear()
        self._wake.set()
        return pending.future

    async def commit(self, commit: Commit) -> Done:
        """Submit and wait. Cancelling takes a commit back while it waits; once started it finishes and answers."""
        future = self.submit(commit)
        pending = self._waiting[-1]
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not pending.started:
                future.cancel()
                raise
            return await future

    def refuse(self, error: CraftdError | None = None) -> None:
        """From now on `submit` fails; what waits already is carried out."""
        self._refused = error or ServerCancelled("the daemon stops")

    @property
    def idle(self) -> bool:
        """Nothing waits and nothing runs."""
        return not self._waiting and self._idle.is_set()

    async def drained(self) -> None:
        """Wait until nothing waits and nothing runs."""
        while not self.idle:
            self._wake.set()
            await self._idle.wait()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch, bundles = self._take()
            if not batch:
                if not self._waiting:
                    self._idle.set()
                self._wake.clear()
                await self._wake.wait()
                continue
            for pending in batch:
                pending.started = True
            results = {bundle.pendings[0].commit.unit: bundle.task.result() for bundle in bundles}
            # Shielded: a round whose bytes are on disk must be published even when the daemon is being stopped.
            work = loop.run_in_executor(self.thread, self._work, batch, results)
            try:
                done = await asyncio.shield(work)
            except asyncio.CancelledError:
                self._publish(await work)
                raise
            self._publish(done)

    def _take(self) -> tuple[list[Pending], list[Bundle]]:
        """What can run now, in order; starts preparations for the rest."""
        if not self._waiting and not self._bundles:
            return [], []
        self._drop_abandoned()
        self._waiting = deque(pending for pending in self._waiting if not pending.future.done())  # taken back
        groups: dict[str, list[Pending]] = {}
        held: set[Any] = set()  # units and connections whose further commits must wait for an earlier one
        for pending in self._waiting:
            commit = pending.commit
            bundle = self._bundles.get(commit.unit)
            prepared = bundle is None or (bundle.task.done() and pending in bundle.pendings)
            if not prepared or commit.unit in held or commit.connection in held:
                held |= {commit.unit, commit.connection} - {None}
                continue
            if any(unit.startswith(prefix) for prefix in commit.reads for unit in groups):
                break
            groups.setdefault(commit.unit, []).append(pending)
            if sum(map(len, groups.values())) >= ROUND:
                break
        chosen: set[int] = set()
        ready: list[Bundle] = []
        for key, group in groups.items():
            bundle = self._bundles.pop(key, None)
            if bundle is None and (job := self.scope.preparation(key, [pending.commit for pending in group])):
                self._bundles[key] = Bundle(group, asyncio.create_task(self._prepare(job)))
            elif bundle is not None and (error := bundle.task.exception()) is not None:
                self._fail(group, error)
            else:
                chosen |= set(map(id, group))
                if bundle is not None:
                    ready.append(Bundle(group, bundle.task))
        batch: list[Pending] = []
        left: deque[Pending] = deque()
        held.clear()
        for pending in self._waiting:
            commit = pending.commit
            if id(pending) in chosen and not held & {commit.unit, commit.connection}:
                batch.append(pending)
            else:
                held |= {commit.unit, commit.connection} - {None}
                left.append(pending)
        self._waiting = left
        taken = set(map(id, batch))
        for bundle in ready:  # held back after all: prepared it stays
            if id(bundle.pendings[0]) not in taken:
                self._bundles[bundle.pendings[0].commit.unit] = bundle
        return batch, [bundle for bundle in ready if id(bundle.pendings[0]) in taken]

    def _drop_abandoned(self) -> None:
        """Preparations whose commits were all taken back."""
        for key, bundle in list(self._bundles.items()):
            if bundle.task.done() and all(pending.future.done() for pending in bundle.pendings):
                del self._bundles[key]
                if bundle.task.exception() is None:
                    self.scope.abandoned(bundle.task.result())

    async def _prepare(self, job: Callable[[], Any]) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pool, job)
        finally:
            self._wake.set()

    def _fail(self, group: Sequence[Pending], error: BaseException) -> None:
        for pending in group:
            self._waiting.remove(pending)
            if not pending.future.done():
                pending.future.set_exception(as_failure(error))

    # -- in the scope's thread --

    def _work(self, batch: Sequence[Pending], results: dict[str, Any]) -> Round:
        done = Round()
        by_unit: dict[str, list[Pending]] = {}
        for pending in batch:
            by_unit.setdefault(pending.commit.unit, []).append(pending)
        position = {id(pending): at for at, pending in enumerate(batch)}
        placed: list[tuple[int, Outcome]] = []
        for key, group in by_unit.items():
            for outcome in self._unit(key, group, results.get(key), done):
                # What somebody else did to a unit comes before the first commit on it.
                first = outcome.pending or group[0]
                placed.append((position[id(first)], outcome))
        done.outcomes = [outcome for _, outcome in sorted(placed, key=lambda pair: pair[0])]
        self.scope.settled(done.units)
        return done

    def _unit(self, key: str, group: list[Pending], prepared: Any, done: Round) -> list[Outcome]:
        refused: list[Outcome] = []
        try:
            self._make_safe(key)
        except OSError as error:
            refused = failed([pending for pending in group if pending.commit.promises], error)
            group = [pending for pending in group if not pending.commit.promises]
            if not group:
                if prepared is not None:
                    self.scope.abandoned(prepared)
                return refused
        try:
            unit = self.scope.open_unit(key)
            if prepared is not None:
                self.scope.prepared(unit, prepared)
        except Exception as error:
            return refused + failed(group, error)
        done.units.append(unit)
        return refused + self._attempt(unit, group, done)

    def _attempt(self, unit: Unit, group: list[Pending], done: Round) -> list[Outcome]:
        foreign: list[Outcome] = []
        for _ in range(TRIES):
            try:
                changes = unit.refresh()
            except ForeignWrite:
                continue
            except Exception as error:
                return foreign + failed(group, error)
            if changes:
                foreign.append(Outcome(DISK, changes))
            mended: list[Change] = []
            outcomes: list[Outcome] = []
            try:
                mended = unit.mend()
                if unit.dirty and any(pending.commit.removes for pending in group):
                    self._write_before_it_goes(unit)
                    foreign += [Outcome(DAEMON, mended)] if mended else []
                    mended = []
                outcomes = [Outcome(DAEMON, mended)] if mended else []
                outcomes += [self._plan(unit, pending) for pending in group]
                if unit.dirty:
                    with self.scope.writing(unit):
                        unit.write()
            except ForeignWrite:
                unit.discard()
                continue
            except Stale:
                unit.discard()
                done.again.extend(group)
                return foreign
            except DirectoryNotFlushed as error:
                self._unsafe[unit.key] = error.folders
                refuse(outcomes, io_error(error, written=True))
            except Exception as error:
                unit.discard()
                if len(group) > 1:
                    # Each gets its own verdict: a smaller change may still fit on the disk, and what needed no
                    # writing beside another change (a repeat of it) may need it without.
                    return foreign + [one for pending in group for one in self._attempt(unit, [pending], done)]
                if not outcomes:
                    return foreign + failed(group, error)
                # A commit that staged nothing is not to blame for what was to be mended beside it.
                refuse([one for one in outcomes if one.staged or not mended], as_failure(error))
                return foreign + outcomes
            if late := unit.told_late():
                outcomes.insert(0, Outcome(DAEMON, late))
            return foreign + outcomes
        return foreign + failed(group, IoError("EAGAIN", "another program keeps writing this file"))

    def _write_before_it_goes(self, unit: Unit) -> None:
        """The folder goes into the trash, and nothing is put back there."""
        try:
            with self.scope.writing(unit):
                unit.write()
        except DirectoryNotFlushed as error:
            self._unsafe[unit.key] = error.folders

    def _make_safe(self, key: str) -> None:
        """Before anything is answered that builds on it: a repeat of a change that is written needs no writing any
        more, but its answer says that it is durable. Raises: OSError.
        """
        for folder in self._unsafe.get(key, ()):
            try:
                disk.flush_directory(folder)
            except FileNotFoundError:
                pass  # whatever was in it went with it
        self._unsafe.pop(key, None)

    def _plan(self, unit: Unit, pending: Pending) -> Outcome:
        try:
            planned = pending.commit.plan(unit, self.scope.now())
        except (ForeignWrite, Stale):
            raise  # what it looked at is not there any more, or it needs a preparation: once again
        except Exception as error:
            return Outcome(pending.commit.origin, pending=pending, error=as_failure(error))
        return Outcome(pending.commit.origin, planned.changes, pending, planned.answer)

    # -- on the loop --

    def _publish(self, done: Round) -> None:
        for unit in done.units:
            unit.publish()
        journal, at = self.scope.journal, self.scope.now()
        for outcome in done.outcomes:
            written = isinstance(outcome.error, IoError) and outcome.error.written
            if outcome.error is None or written:
                for change in journal.publish(outcome.changes, outcome.origin, at):
                    self.scope.announce(change)
            if outcome.pending is None or outcome.pending.future.done():
                continue
            if outcome.error is not None:
                outcome.pending.future.set_exception(outcome.error)
            else:
                outcome.pending.future.set_result(Done(outcome.answer, journal.epoch, journal.revision))
        for pending in reversed(done.again):
            pending.started = False
            self._waiting.appendleft(pending)


def as_failure(error: BaseException) -> CraftdError:
    """The error a client sees for *error*; an unforeseen one is logged here and becomes an incident."""
    if isinstance(error, CraftdError):
        return error
    if isinstance(error, OSError):
        return io_error(error)
    incident = f"{id(error):x}"
    log.error("incident %s", incident, exc_info=error)
    return InternalError(incident)


def failed(group: Sequence[Pending], error: BaseException) -> list[Outcome]:
    failure = as_failure(error)
    return [Outcome(pending.commit.origin, pending=pending, error=failure) for pending in group]


def refuse(outcomes: Sequence[Outcome], error: CraftdError) -> None:
    """What these commits answer stands or falls with what the disk did not take."""
    for outcome in outcomes:
        if outcome.error is None:
            outcome.error = error
