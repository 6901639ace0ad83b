"""A commit: one atomic change of a scope, and the unit (what is written and flushed together) it changes."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from attrs import define, frozen

from craftd.errors import CraftdError, IoError
from craftd.workspace.journal import Change, Origin


class Unit(ABC):
    """The state of one file (or folder of files) inside a round: base = the last common state, plus what is staged.

    refresh, write and discard run in the scope's thread; publish on the event loop.
    """

    key: str

    @property
    @abstractmethod
    def dirty(self) -> bool:
        """Whether something is staged."""

    @abstractmethod
    def refresh(self) -> list[Change]:
        """Look at the disk; merge what somebody else wrote into the base. Answers what that changed."""

    def mend(self) -> list[Change]:
        """Stage what has to go back to the disk whatever the commits of this round are. Answers what that changes."""
        return []

    @abstractmethod
    def write(self) -> None:
        """Make everything staged durable and part of the base.

        Raises: ForeignWrite (somebody wrote in between: refresh and plan again), OSError.
        """

    def told_late(self) -> list[Change]:
        """What is different for readers that only the new base shows: damage that is gone because of the writing."""
        return []

    @abstractmethod
    def discard(self) -> None:
        """Forget what is staged."""

    @abstractmethod
    def publish(self) -> None:
        """Show the base to readers."""


@define(eq=False, kw_only=True)
class Commit(ABC):
    """One change as asked for. connection: whose later changes must wait for this one.

    reads: unit prefixes whose earlier commits must be published before this one is planned.
    """

    origin: Origin
    connection: object | None = None
    reads: frozenset[str] = frozenset()
    rewrites: ClassVar[bool] = False
    """The file is written anew: worth preparing outside the queue when it is large."""
    removes: ClassVar[bool] = False
    """What is there goes into the trash, if it is kept at all: what a foreign save undid is done again before."""
    promises: ClassVar[bool] = True
    """Its answer says that something is on disk for good."""

    @property
    @abstractmethod
    def unit(self) -> str:
        """Key of the unit it changes: `sessions/<id>`, `labels/config.json`."""

    def ahead(self) -> Callable[[], None] | None:
        """Slow work that only reads or works beside, for a pool thread, before a commit on a session is planned; None =
        nothing (any more). It raises nothing: `plan` does.
        """
        return None

    @abstractmethod
    def plan(self, unit: Any, now: int) -> Planned:
        """Compute on the running state and stage it. Raises CraftdError before anything is staged."""


@frozen
class Planned:
    """What becomes true with a commit: the answer to its author, and the changes everybody is told."""

    answer: Any
    changes: Sequence[Change] = ()


@frozen
class Done:
    """The answer with the position after the commit."""

    answer: Any
    epoch: str
    revision: int


def run_ahead(works: Sequence[Callable[[], None]], answer: Any) -> Any:
    """In a pool thread: all of *works*, then *answer*."""
    for work in works:
        work()
    return answer


def io_error(error: OSError, *, written: bool = False) -> CraftdError:
    name = errno.errorcode.get(error.errno or 0, "EIO")
    return IoError(name, f"the disk refused the change: {error.strerror or name}", written)
