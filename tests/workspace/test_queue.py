"""The queue alone, on a scope of toy units whose 'disk' is a dict."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from attrs import define, field

from craftd.errors import Busy, IoError, NotFound, ReadOnly, Ref, ServerCancelled
from craftd.store.atomic import DirectoryNotFlushed, ForeignWrite
from craftd.store.transcript import Stale
from craftd.workspace.commit import Commit, Planned, Unit
from craftd.workspace.journal import Change, Journal, Origin
from craftd.workspace.queue import Queue

ME = Origin(kind="client")


@define(eq=False)
class Toy(Unit):
    key: str
    scope: Scope
    staged: list[Any] = field(factory=list)

    @property
    def dirty(self) -> bool:
        return bool(self.staged)

    def refresh(self) -> list[Change]:
        return [change(self.key, "disk")] if self.scope.foreign.pop(self.key, False) else []

    def write(self) -> None:
        failure = self.scope.failures.get(self.key, [])
        error = failure.pop(0) if failure else None
        if isinstance(error, DirectoryNotFlushed):
            self.scope.disk.setdefault(self.key, []).extend(self.staged)
            self.staged.clear()
        if error is not None:
            raise error
        self.scope.writes.append((self.key, list(self.staged)))
        self.scope.disk.setdefault(self.key, []).extend(self.staged)
        self.staged.clear()

    def discard(self) -> None:
        self.staged.clear()

    def publish(self) -> None:
        self.scope.published.append(self.key)


def change(key: str, what: Any) -> Change:
    return Change("toys/didChange", "toys", {"key": key, "what": what})


@define(eq=False, kw_only=True)
class Put(Commit):
    origin: Origin = ME
    key: str
    what: Any
    refused: Exception | None = None

    @property
    def unit(self) -> str:
        return self.key

    def plan(self, unit: Toy, now: int) -> Planned:
        if self.refused is not None:
            raise self.refused
        unit.staged.append(self.what)
        return Planned(self.what, [change(self.key, self.what)])


@define(eq=False)
class Scope:
    journal: Journal = field(factory=lambda: Journal("ws", "e"))
    disk: dict[str, list[Any]] = field(factory=dict)
    writes: list[tuple[str, list[Any]]] = field(factory=list)
    failures: dict[str, list[Exception]] = field(factory=dict)
    foreign: dict[str, bool] = field(factory=dict)
    published: list[str] = field(factory=list)
    told: list[tuple[str, Any]] = field(factory=list)
    jobs: dict[str, Callable[[], Any]] = field(factory=dict)
    got: list[Any] = field(factory=list)
    forgotten: list[Any] = field(factory=list)
    read_only: bool = False

    def open_unit(self, key: str) -> Unit:
        return Toy(key, self)

    def preparation(self, key: str, commits: Sequence[Commit]) -> Callable[[], Any] | None:
        return self.jobs.pop(key, None)

    def prepared(self, unit: Unit, result: Any) -> None:
        self.got.append(result)

    def abandoned(self, result: Any) -> None:
        self.forgotten.append(result)

    @contextmanager
    def writing(self, unit: Unit) -> Iterator[None]:
        if self.read_only:
            raise ReadOnly({"pid": 1})
        yield

    def settled(self, units: Sequence[Unit]) -> None: ...

    def announce(self, change: Change) -> None:
        self.told.append((change.members["key"], change.members["what"]))

    def now(self) -> int:
        return 0


@pytest.fixture
async def made() -> AsyncIterator[tuple[Scope, Queue]]:
    scope = Scope()
    with ThreadPoolExecutor(1) as thread, ThreadPoolExecutor(2) as pool:
        queue = Queue(scope, thread, pool)
        task = asyncio.create_task(queue.run())
        yield scope, queue
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


Made = tuple[Scope, Queue]


async def test_commits_that_wait_together_share_one_write_per_unit(made: Made) -> None:
    scope, queue = made
    await asyncio.gather(*(queue.commit(Put(key="ab"[n % 2], what=n)) for n in range(10)))
    assert scope.writes == [("a", [0, 2, 4, 6, 8]), ("b", [1, 3, 5, 7, 9])]
    assert [what for _, what in scope.told] == list(range(10))


async def test_every_change_was_announced_when_its_answer_comes(made: Made) -> None:
    scope, queue = made
    done = await queue.commit(Put(key="a", what="x"))
    assert (done.answer, done.revision, scope.told) == ("x", 1, [("a", "x")])
    assert scope.published == ["a"]


async def test_a_refused_commit_takes_nobody_along(made: Made) -> None:
    scope, queue = made
    refused = NotFound(Ref("toys", "a"))
    one, two = await asyncio.gather(
        queue.commit(Put(key="a", what=1, refused=refused)), queue.commit(Put(key="a", what=2)), return_exceptions=True
    )
    assert one is refused
    assert two.answer == 2
    assert scope.disk == {"a": [2]}


async def test_a_unit_that_fails_fails_alone(made: Made) -> None:
    scope, queue = made
    scope.failures["a"] = [OSError(errno.EIO, "broken")]
    one, two = await asyncio.gather(
        queue.commit(Put(key="a", what=1)), queue.commit(Put(key="b", what=2)), return_exceptions=True
    )
    assert isinstance(one, IoError)
    assert (one.errno, one.written) == ("EIO", False)
    assert two.answer == 2
    assert scope.told == [("b", 2)]


async def test_each_commit_of_a_failed_write_gets_its_own_verdict(made: Made) -> None:
    scope, queue = made
    full = OSError(errno.ENOSPC, "full")
    scope.failures["a"] = [full, full]
    answers = await asyncio.gather(*(queue.commit(Put(key="a", what=n)) for n in range(3)), return_exceptions=True)
    assert [type(answer).__name__ for answer in answers] == ["IoError", "Done", "Done"]
    assert scope.disk == {"a": [1, 2]}


async def test_what_is_written_but_not_safe_is_announced_and_said(made: Made) -> None:
    scope, queue = made
    scope.failures["a"] = [DirectoryNotFlushed(errno.EIO, "broken")]
    with pytest.raises(IoError) as caught:
        await queue.commit(Put(key="a", what=1))
    assert caught.value.written
    assert scope.told == [("a", 1)]


async def test_a_foreign_write_is_merged_and_comes_before_the_commit_that_met_it(made: Made) -> None:
    scope, queue = made
    scope.failures["a"] = [ForeignWrite(__file__)]  # type: ignore[arg-type]
    scope.foreign["a"] = True
    await asyncio.gather(queue.commit(Put(key="b", what=0)), queue.commit(Put(key="a", what=1)))
    assert scope.told == [("b", 0), ("a", "disk"), ("a", 1)]
    assert scope.disk["a"] == [1]


async def test_a_file_that_is_always_being_written_gives_up(made: Made) -> None:
    scope, queue = made
    scope.failures["a"] = [ForeignWrite(__file__) for _ in range(100)]  # type: ignore[arg-type]
    with pytest.raises((IoError, Busy)):
        await queue.commit(Put(key="a", what=1))
    assert scope.told == []


async def test_changes_of_a_connection_keep_their_order_when_one_must_be_prepared(made: Made) -> None:
    scope, queue = made
    gate = threading.Event()
    scope.jobs["a"] = lambda: gate.wait(10)
    me, other = object(), object()
    first = asyncio.ensure_future(queue.commit(Put(key="a", what=1, connection=me)))
    second = asyncio.ensure_future(queue.commit(Put(key="b", what=2, connection=me)))
    third = asyncio.ensure_future(queue.commit(Put(key="c", what=3, connection=other)))
    assert (await third).answer == 3  # somebody else's does not wait
    assert not first.done()
    assert not second.done()
    gate.set()
    await asyncio.gather(first, second)
    assert scope.told == [("c", 3), ("a", 1), ("b", 2)]


async def test_commits_that_wait_for_a_preparation_share_it_and_later_ones_wait(made: Made) -> None:
    scope, queue = made
    gate = threading.Event()
    scope.jobs["a"] = lambda: gate.wait(10) and "prepared"
    waiting = [asyncio.ensure_future(queue.commit(Put(key="a", what=n))) for n in range(3)]
    await queue.commit(Put(key="b", what="b"))
    late = asyncio.ensure_future(queue.commit(Put(key="a", what="late")))
    await queue.commit(Put(key="b", what="b"))
    gate.set()
    await asyncio.gather(*waiting, late)
    assert scope.got == ["prepared"]
    assert [what for key, what in scope.told if key == "a"] == [0, 1, 2, "late"]


async def test_a_stale_preparation_is_made_again(made: Made) -> None:
    scope, queue = made
    scope.failures["a"] = [Stale()]
    scope.jobs["a"] = lambda: "first"
    done = await queue.commit(Put(key="a", what=1))
    assert done.answer == 1
    assert scope.told == [("a", 1)]


async def test_a_failed_preparation_is_the_answer_of_all_that_waited(made: Made) -> None:
    scope, queue = made

    def fail() -> None:
        raise OSError(errno.EIO, "unreadable")

    scope.jobs["a"] = fail
    answers = await asyncio.gather(*(queue.commit(Put(key="a", what=n)) for n in range(2)), return_exceptions=True)
    assert [type(answer).__name__ for answer in answers] == ["IoError", "IoError"]
    assert (await queue.commit(Put(key="a", what=9))).answer == 9


async def test_a_waiting_commit_can_be_taken_back_and_its_preparation_is_forgotten(made: Made) -> None:
    scope, queue = made
    gate = threading.Event()
    scope.jobs["a"] = lambda: gate.wait(10) and "prepared"
    waiting = asyncio.ensure_future(queue.commit(Put(key="a", what=1)))
    await queue.commit(Put(key="b", what="b"))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.set()
    assert (await queue.commit(Put(key="a", what=2))).answer == 2
    assert scope.forgotten == ["prepared"]
    assert scope.disk["a"] == [2]


async def test_a_commit_that_reads_what_an_earlier_one_changes_sees_it_published(made: Made) -> None:
    scope, queue = made
    seen: list[list[str]] = []

    @define(eq=False, kw_only=True)
    class Look(Put):
        def plan(self, unit: Toy, now: int) -> Planned:
            seen.append(list(scope.published))
            return Planned(None)

    await asyncio.gather(
        queue.commit(Put(key="projects/a", what=1)),
        queue.commit(Look(key="sessions/b", what=2, reads=frozenset({"projects/"}))),
    )
    assert seen == [["projects/a"]]


async def test_read_only_refuses_what_would_write_and_nothing_else(made: Made) -> None:
    scope, queue = made
    scope.read_only = True
    scope.foreign["b"] = True

    @define(eq=False, kw_only=True)
    class Look(Put):
        def plan(self, unit: Toy, now: int) -> Planned:
            return Planned("seen")

    write, look = await asyncio.gather(
        queue.commit(Put(key="a", what=1)), queue.commit(Look(key="b", what=2)), return_exceptions=True
    )
    assert isinstance(write, ReadOnly)
    assert look.answer == "seen"
    assert scope.disk == {}
    assert scope.told == [("b", "disk")]


async def test_after_the_end_nothing_more_is_taken_and_what_waits_is_carried_out(made: Made) -> None:
    scope, queue = made
    waiting = asyncio.ensure_future(queue.commit(Put(key="a", what=1)))
    await asyncio.sleep(0)
    queue.refuse()
    with pytest.raises(ServerCancelled):
        queue.submit(Put(key="a", what=2))
    await queue.drained()
    assert (await waiting).answer == 1
    assert scope.disk == {"a": [1]}


async def test_an_unforeseen_failure_is_an_incident_and_the_queue_lives(
    made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    _, queue = made
    with pytest.raises(Exception, match="incident"):
        await queue.commit(Put(key="a", what=1, refused=ZeroDivisionError("secret")))
    assert "ZeroDivisionError" in caplog.text
    assert (await queue.commit(Put(key="a", what=2))).answer == 2
