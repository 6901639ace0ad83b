"""A transcript with what the commits of a round have staged: messages changed, taken out and appended.

Positions are those of the transcript as it is on disk; what is appended stands at the positions behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from attrs import define, field

from craftd.model import portable
from craftd.model.messages import Counters
from craftd.model.records import Record
from craftd.model.repair import Mended
from craftd.store.atomic import ForeignWrite
from craftd.store.lines import Segment
from craftd.store.table import Damage
from craftd.store.transcript import Transcript

UNSOUND = frozenset({"line-unreadable", "torn-tail"})
"""Damage of a line whose bytes say something that its record does not."""


@define(eq=False)
class Draft:
    """transcript: None = a session without messages. directory: its folder.

    replaced: new lines by position, None = taken out. lines: of the messages appended. lost: lines of the file that go
    away although they could not be read as they stand.
    """

    transcript: Transcript | None
    directory: str
    replaced: dict[int, bytes | None] = field(factory=dict)
    lines: list[bytes] = field(factory=list)
    lost: list[bytes] = field(factory=list)
    _changed: dict[int, Record | None] = field(factory=dict)
    _appended: list[Record] = field(factory=list)
    _gone: list[int] = field(factory=list)
    """Indexes, before any change, of the messages taken out; ascending."""
    _born: bool = False
    """A message has taken the place of a line that was none: indexes are counted anew, line by line."""
    _counters: Counters | None = None

    @property
    def counters(self) -> Counters:
        if self._counters is None:
            if self.transcript is None:
                before = Counters(directory=self.directory)
            else:
                changed = self._changed
                before = self.transcript.counters_with(changed) if changed else self.transcript.counters
            self._counters = before.extend(self._appended)
        return self._counters

    @property
    def records(self) -> Sequence[Record]:
        """The messages appended."""
        return self._appended

    @property
    def count(self) -> int:
        return self.counters.count

    @property
    def tail(self) -> str:
        """Id of the last message, `#<index>` if it has none, "" for an empty transcript."""
        counters = self.counters
        return (counters.last_id or f"#{counters.count - 1}") if counters.count else ""

    @property
    def touched(self) -> bool:
        return bool(self.replaced or self.lines)

    def __len__(self) -> int:
        return self._base + len(self._appended)

    @property
    def _base(self) -> int:
        return 0 if self.transcript is None else len(self.transcript)

    # Looking

    def find(self, id: str) -> int | None:
        """Position of the message *id* (of equal ids the first), `#<index>`, or damaged line `~<byte offset>`."""
        position = self._find_by_name(id)
        if position is None and id[:1] == "#" and id[1:].isdecimal() and len(id) < 20:
            return self.position_of(int(id[1:]))
        if position is None and id[:1] == "~" and self.transcript is not None:
            position = self.transcript.find(id)
            return None if position in self.replaced else position
        return position

    def _find_by_name(self, id: str) -> int | None:
        if self.transcript is not None:
            position = -1
            while (found := self.transcript.find(id, position + 1)) is not None and self.transcript.id_of(found) == id:
                position = found
                if self.replaced.get(position, b"") is not None:
                    return position
        for at, record in enumerate(self._appended):
            if record.get("id") == id:
                return self._base + at
        return None

    def position_of(self, index: int) -> int | None:
        """Position of message number *index*."""
        if self._born:
            return next(islice(filter(self._is_message, range(len(self))), index, None), None) if index >= 0 else None
        for gone in self._gone:
            index += gone <= index
        base = 0 if self.transcript is None else self.transcript.counters.count
        if index < base:
            assert self.transcript is not None
            return self.transcript.position_of(index)
        return self._base + index - base if index - base < len(self._appended) else None

    def there(self, start: int) -> list[int]:
        """Positions of all lines from *start* on."""
        return [position for position in range(start, len(self)) if self.replaced.get(position, b"") is not None]

    def index_of(self, position: int) -> int | None:
        """Number of the message at *position*, None for a damaged line."""
        if position >= self._base:
            return self.count - len(self._appended) + position - self._base
        if self._born:
            return sum(map(self._is_message, range(position))) if self._is_message(position) else None
        assert self.transcript is not None
        index = self.transcript.index_of(position)
        return None if index is None else index - sum(gone < index for gone in self._gone)

    def _is_message(self, position: int) -> bool:
        """Whether one will stand there."""
        if position in self._changed:
            return self._changed[position] is not None
        return position >= self._base or (
            self.transcript is not None and self.transcript.index_of(position) is not None
        )

    def id_of(self, position: int) -> str | None:
        """Of the message at *position*."""
        if position < self._base:
            assert self.transcript is not None
            return self.transcript.id_of(position)
        id = self._appended[position - self._base].get("id")
        return id if isinstance(id, str) else None

    def read(self, position: int) -> Segment:
        """What stands at *position*. Raises: ForeignWrite, OSError."""
        index = self.index_of(position)
        if position >= self._base:
            at = position - self._base
            return Segment(0, len(self.lines[at]), self._appended[at], self.lines[at], None, index)
        line = self.replaced.get(position)
        if line is not None:
            return Segment(0, len(line), self._changed[position], line, None, index)
        found = self._on_disk(position)
        return Segment(found.offset, found.length, found.record, found.raw, found.damage, index)

    def recent(self, id: str) -> Record | None:
        """The message *id*, if it is staged, among the last 2,000, or was appended by this daemon."""
        for record in reversed(self._appended):
            if record.get("id") == id:
                return record
        if self.transcript is None:
            return None
        position = self.transcript.recent_position(id)
        if position is None or position not in self._changed:
            return self.transcript.recent(id)
        if self._changed[position] is None:
            again = self._find_by_name(id)
            return None if again is None else self.read(again).record
        return self._changed[position]

    # Staging

    def append(self, records: Sequence[Record]) -> list[int]:
        """Bytes of each one's line."""
        self._counters = self.counters.extend(records)
        lines = [portable.dump_line(record, self.directory) for record in records]
        self._appended += records
        self.lines += lines
        return list(map(len, lines))

    def replace(self, position: int, record: Record) -> int:
        """Bytes of its line."""
        line = portable.dump_line(record, self.directory)
        if position >= self._base:
            self.lines[position - self._base], self._appended[position - self._base] = line, record
        else:
            self._let_go((position,))
            self.replaced[position], self._changed[position] = line, record
        self._counters = None
        return len(line)

    def take_out(self, positions: Sequence[int]) -> None:
        base, transcript = self._base, self.transcript
        self._let_go(positions)
        for position in sorted(positions, reverse=True):
            if position >= base:
                del self.lines[position - base], self._appended[position - base]
            elif self.replaced.get(position, b"") is not None:
                self.replaced[position] = self._changed[position] = None
                assert transcript is not None
                if (index := transcript.index_of(position)) is not None:
                    self._gone.append(index)
        self._gone.sort()
        self._counters = None

    def mend(self, lines: Mapping[int, Mended]) -> None:
        """Put what damaged lines become in their place. Whoever asks keeps the whole file beside."""
        transcript = self.transcript
        assert transcript is not None
        for position, mended in lines.items():
            self.replaced[position], self._changed[position] = mended.line, mended.record
            index = transcript.index_of(position)
            if mended.line is None and index is not None:
                self._gone.append(index)
            self._born = self._born or (index is None and mended.line is not None)
        self._gone.sort()
        self._counters = None

    def _let_go(self, positions: Sequence[int]) -> None:
        """Note what only the bytes of these lines say."""
        transcript = self.transcript
        if transcript is None:
            return
        flaws: Mapping[int, Damage] = transcript.flaws
        for position in sorted(flaws.keys() & set(positions)):
            if flaws[position].code in UNSOUND and position not in self.replaced:
                self.lost.append(self._on_disk(position).raw)

    def _on_disk(self, position: int) -> Segment:
        transcript = self.transcript
        assert transcript is not None
        try:
            return transcript.read(position, position + 1)[0]
        except ForeignWrite:
            if transcript.check():  # it looks the same and is not: written within one tick of the clock
                transcript.distrust()
            raise
