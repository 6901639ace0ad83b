"""Where every line of a transcript's body stands, what it is called and what it hashes to; the counters along the way.

Offsets count from the beginning of the body, so a new line 1 moves nothing. A line takes 34 bytes and its id, and
adding one costs the same however many there are. A table only ever grows; whoever changes lines builds another one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set
from itertools import accumulate, chain
from typing import Final

from attrs import frozen

from craftd.model.messages import Counters
from craftd.model.records import Record
from craftd.store.names import Names

_PENDING_BYTES: Final = 1 << 20
"""Parsed messages that wait to be counted together hold at most about this much text."""


@frozen
class Damage:
    """Something wrong with a transcript. line: 1-based, None for the file as a whole.

    code: header-unreadable, header-missing, header-oversized, blank-first-line, line-unreadable, torn-tail, nul-bytes,
    id-mismatch, id-repeated, count-mismatch, rescued or linked (protocol.md, Damage).
    """

    code: str
    line: int | None
    message: str


class Table:
    """Positions count everything that is listed, damaged lines too; an *index* counts messages alone."""

    def __init__(self, directory: str) -> None:
        self.offsets = array("Q")
        self.lengths = array("Q")
        self.digests = array("q")
        """Hash of each line's bytes, good within this process."""
        self.ids = Names()
        self.own = bytearray()
        """1 for each line this process has acknowledged."""
        self.unreadable: list[int] = []
        """Positions without a record, ascending."""
        self.flaws: dict[int, Damage] = {}
        """Damage of single positions, the first where there are two: that of the line before that of its id."""
        self.damage: list[Damage] = []
        """All damage of the body, by line."""
        self.padding: list[tuple[int, int, bytes]] = []
        """(start, stop, replacement) of runs of NUL bytes that the next rewrite drops."""
        self._counters = Counters(directory=directory)
        self._pending: list[Record] = []
        self._pending_bytes = 0

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def counters(self) -> Counters:
        """What the lines add up to."""
        if self._pending:
            self._counters = self._counters.extend(self._pending)
            self._pending = []
            self._pending_bytes = 0
        return self._counters

    def add(self, offset: int, raw: bytes, record: Record | None, *, own: bool = False) -> None:
        """One line more, and count it. None = it cannot be read."""
        position = len(self.offsets)
        self.put(offset, raw, None if record is None else id_of(record), own=own)
        if record is None:
            self.unreadable.append(position)
            return
        self._pending.append(record)
        self._pending_bytes += len(raw)
        if self._pending_bytes > _PENDING_BYTES:
            self._counters = self.counters

    def put(self, offset: int, raw: bytes, identity: str | None, *, own: bool = False) -> None:
        """One line more, not counted."""
        self.ids.append(identity)
        self.offsets.append(offset)
        self.lengths.append(len(raw))
        self.digests.append(hash(raw))
        self.own.append(own)

    def put_all(self, offset: int, lines: Sequence[bytes], identities: Sequence[bytes]) -> None:
        """Lines in a row from *offset* on, each with an LF behind it, and their ids as UTF-8; not counted."""
        lengths = array("Q", map(len, lines))
        self.ids.extend(identities)
        self.offsets.extend(array("Q", accumulate(lengths[:-1], lambda at, length: at + length + 1, initial=offset)))
        self.lengths.extend(lengths)
        self.digests.extend(array("q", map(hash, lines)))
        self.own.extend(bytes(len(lines)))

    def report(self, damage: Damage, position: int | None = None) -> None:
        self.damage.append(damage)
        if position is not None:
            self.flaws.setdefault(position, damage)

    def end(self, position: int) -> int:
        """Offset behind the line at *position*."""
        return self.offsets[position] + self.lengths[position]

    def index_of(self, position: int) -> int | None:
        """Index of the message at *position*, None for a damaged line."""
        before = bisect_left(self.unreadable, position)
        damaged = before < len(self.unreadable) and self.unreadable[before] == position
        return None if damaged else position - before

    def position_of(self, index: int) -> int | None:
        """Position of message number *index* (0-based), None if there are fewer."""
        position = index
        for damaged in self.unreadable:
            if damaged > position:
                break
            position += 1
        return position if index >= 0 and position < len(self) else None

    def find(self, identity: str, start: int = 0) -> int | None:
        """Position of the first message called *identity*, from *start* on."""
        return self.ids.find(identity, start)

    def latest(self, number: int) -> dict[str, int]:
        """Positions by id of the last *number* lines and of all our own; of equal ids the first."""
        first = max(0, len(self) - number)
        positions: dict[str, int] = {}
        for position in chain(self._ours(first), range(first, len(self))):
            if (identity := self.ids[position]) is not None:
                positions.setdefault(identity, position)
        return positions

    def _ours(self, stop: int) -> Iterator[int]:
        at = self.own.find(1, 0, stop)
        while at >= 0:
            yield at
            at = self.own.find(1, at + 1, stop)

    def settle_tail(self) -> None:
        """A torn last line that got its LF is a damaged line like others."""
        flaw = self.flaws.get(len(self) - 1)
        if flaw is not None and flaw.code == "torn-tail":
            self.damage.remove(flaw)
            del self.flaws[len(self) - 1]
            self.report(Damage("line-unreadable", flaw.line, flaw.message), len(self) - 1)

    def mark_own(self, ids: Set[str]) -> None:
        """The lines with these *ids* are ours, no others."""
        self.own[:] = bytes(len(self))
        for position, identity in enumerate(self.ids) if ids else ():
            self.own[position] = identity is not None and identity in ids

    def own_ids(self) -> set[str]:
        ours = (self.ids[position] for position in self._ours(len(self)))
        return {identity for identity in ours if identity is not None}

    def copy(self) -> Table:
        table = Table(self.counters.directory)
        table.take(self, 0, len(self), 0)
        table.unreadable, table.flaws = list(self.unreadable), dict(self.flaws)
        table.damage, table.padding = list(self.damage), list(self.padding)
        table.counted_as(self.counters)
        return table

    def take(self, other: Table, start: int, stop: int, shift: int) -> None:
        """Lines *start* to *stop* of *other*, *shift* bytes further on, not counted and without their damage."""
        offsets = other.offsets[start:stop]
        self.offsets.extend(array("Q", [offset + shift for offset in offsets]) if shift else offsets)
        self.lengths.extend(other.lengths[start:stop])
        self.digests.extend(other.digests[start:stop])
        self.ids.take(other.ids, start, stop)
        self.own.extend(other.own[start:stop])

    def counted_as(self, counters: Counters) -> None:
        """What the lines add up to, after they were put or taken without counting."""
        self._counters = counters


def id_of(record: Record) -> str | None:
    identity = record.get("id")
    return identity if isinstance(identity, str) else None
