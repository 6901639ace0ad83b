"""What somebody else did to a transcript: two tables of its lines, before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import islice, pairwise
from typing import Final

from attrs import frozen

from craftd.model.records import Record
from craftd.store.rewrite import Edit
from craftd.store.table import Table

REMEMBERED_BYTES: Final = 1 << 20
"""Acknowledged lines kept in memory, for a foreign program that overwrites the file in place."""

REMEMBERED_FORMS: Final = 16
"""Earlier contents known of one line that we change again and again."""

REMEMBERED_GONE: Final = 10_000
"""Lines we took out that are recognised when a program saves an older copy of the file."""


@frozen
class Foreign:
    """A foreign write, as `Transcript.reload` found it. Positions are those of the reloaded transcript.

    appended, changed: positions of new lines and of lines with another content. changed_from: what each of the latter
    said before, None where that cannot be found any more; bases: what it had said before we first changed it, None
    where we did not. deleted: ids of lines that are gone for good.
    lost_own: lines (without LF) that we had acknowledged since opening and that their save dropped. reverted:
    (position, our line) where their save brought back what a line said before we changed it. Both are to be put back.
    unrecoverable: how many of those could not be found any more. returned: positions, among those appended, of lines
    that we had taken out and that their save brought back as they were; they are to be taken out again.
    header_before: what their line 1 came from; late: that is not what was there last, they wrote it before.
    in_order: every line that vanished had an id of its own, none changed its place, and what is new stands at the end;
    otherwise a list of single changes cannot describe what happened.
    """

    header_before: Record | None
    header_after: Record | None
    appended: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()
    changed_from: tuple[bytes | None, ...] = ()
    bases: tuple[bytes | None, ...] = ()
    deleted: tuple[str, ...] = ()
    lost_own: tuple[bytes, ...] = ()
    reverted: tuple[tuple[int, bytes], ...] = ()
    unrecoverable: int = 0
    returned: tuple[int, ...] = ()
    in_order: bool = True
    late: bool = False


class Ours:
    """What this process acknowledged of one transcript since opening it, as far as memory allows."""

    def __init__(self) -> None:
        self.lines: dict[int, bytes] = {}
        """The latest lines by digest, oldest first, REMEMBERED_BYTES at most."""
        self.earlier: dict[str, tuple[int, ...]] = {}
        """For each line we changed, by id, the digests it had before: the first, and the latest."""
        self.bases: dict[str, bytes] = {}
        """What each of them said before we first changed it; REMEMBERED_BYTES at most, oldest first."""
        self._gone: dict[str, tuple[int, ...]] = {}
        """The same for each line we took out, with the last one; oldest first."""
        self._latest: dict[str, int] = {}
        self._bytes = 0

    def line(self, digest: int, identity: str | None) -> bytes | None:
        """The line of that *digest*, else what we last said under that *identity*; None when it is forgotten."""
        return self.lines.get(digest) or self.lines.get(self._latest.get(identity or "", 0))

    def remember(self, line: bytes, identity: str | None) -> None:
        digest = hash(line)
        if identity is not None:
            self._latest[identity] = digest
            self._gone.pop(identity, None)
        if digest in self.lines:
            return
        self.lines[digest] = line
        self._bytes += len(line)
        while self._bytes > REMEMBERED_BYTES and len(self.lines) > 1:
            self._bytes -= len(self.lines.pop(next(iter(self.lines))))
        if len(self._latest) > 2 * len(self.lines):
            self._latest = {identity: digest for identity, digest in self._latest.items() if digest in self.lines}

    def edited(self, old: Table, edits: Iterable[Edit], line_of: Callable[[int], bytes | None]) -> None:
        """The lines of *old* were changed by *edits*; line_of: the bytes at an old position, None = not there."""
        for edit in edits:
            for position in edit.positions[-REMEMBERED_GONE:]:
                identity = old.ids[position]
                if identity is not None:
                    first, *later = (*self.earlier.pop(identity, ()), old.digests[position])
                    forms = (first, *later[-REMEMBERED_FORMS:])
                    if edit.line is None:
                        self._gone[identity] = forms
                        self.bases.pop(identity, None)
                    else:
                        self.earlier[identity] = forms
                        if identity not in self.bases and (line := line_of(position)) is not None:
                            self.bases[identity] = line
                if edit.line is not None:
                    self.remember(edit.line, identity)
        while len(self.bases) > 1 and sum(map(len, self.bases.values())) > REMEMBERED_BYTES:
            del self.bases[next(iter(self.bases))]
        for identity in list(self._gone)[: max(0, len(self._gone) - REMEMBERED_GONE)]:
            del self._gone[identity]

    def took_out(self, table: Table, position: int) -> bool:
        """Whether this line of *table* is one that we took out."""
        return table.digests[position] in self._gone.get(table.ids[position] or "", ())


def compared(
    old: Table,
    new: Table,
    header_before: Record | None,
    header_after: Record | None,
    *,
    earlier: Mapping[str, tuple[int, ...]],
    line_of: Callable[[int], bytes | None],
) -> Foreign:
    """How *new* came from *old*; what is still there of our own lines is marked as such in *new*.

    earlier: for each line we changed, the digests it had before. line_of: bytes of the line at an old position, None if
    they cannot be found any more.
    """
    what = _difference(old, new, earlier)
    new.mark_own(old.own_ids())
    lost = [line_of(position) for position in what.lost]
    gone = [*what.deleted, *(position for position, line in zip(what.lost, lost, strict=True) if line is None)]
    reverted = [(position, line_of(at)) for position, at in what.reverted]
    return Foreign(
        header_before,
        header_after,
        appended=what.appended,
        changed=tuple(position for position, _ in what.changed),
        changed_from=tuple(_known_lines(what.changed, line_of)),
        deleted=tuple(identity for position in gone if (identity := old.ids[position]) is not None),
        lost_own=tuple(line for line in lost if line is not None),
        reverted=tuple((position, line) for position, line in reverted if line is not None),
        unrecoverable=lost.count(None) + sum(line is None for _, line in reverted),
        in_order=what.in_order,
    )


def _known_lines(changed: Iterable[tuple[int, int]], line_of: Callable[[int], bytes | None]) -> Iterator[bytes | None]:
    """What lines said before they changed, as far as memory is for it."""
    size = 0
    for _, at in changed:
        line = line_of(at) if size <= REMEMBERED_BYTES else None
        size += len(line or b"")
        yield line


@frozen
class _Difference:
    """Positions of *new*: appended; of *old*: deleted, lost (own lines that are gone).

    changed: (new position, old position); reverted: the same of own lines whose earlier content is back.
    """

    appended: tuple[int, ...]
    changed: tuple[tuple[int, int], ...]
    deleted: tuple[int, ...]
    lost: tuple[int, ...]
    reverted: tuple[tuple[int, int], ...]
    in_order: bool


def _difference(old: Table, new: Table, earlier: Mapping[str, tuple[int, ...]]) -> _Difference:
    """Lines are the same line if they have the same id; without one, if they are equal.

    What both tables begin and end with is the same and is not looked at line by line: of a long transcript, nearly all.
    """
    begin, end = _in_common(old, new)
    before, after = _by_key(old, begin, len(old) - end), _by_key(new, begin, len(new) - end)
    appended: list[int] = []
    changed: list[tuple[int, int]] = []
    reverted: list[tuple[int, int]] = []
    kept: list[int] = []
    last_kept = len(new) if end else begin - 1
    for key, position in after.items():
        at = before.get(key)
        if at is None:
            appended.append(position)
            continue
        kept.append(at)
        last_kept = max(last_kept, position)
        if old.digests[at] != new.digests[position]:
            if old.own[at] and isinstance(key, str) and new.digests[position] in earlier.get(key, ()):
                reverted.append((position, at))
            else:
                changed.append((position, at))
    gone = {position: key for key, position in before.items() if key not in after}
    deleted = tuple(position for position in gone if not old.own[position])
    in_order = (
        all(isinstance(key, str) for key in gone.values())
        and not (gone and set(gone.values()).intersection(islice(old.ids, begin)))
        and all(first < second for first, second in pairwise(kept))
        and (not appended or appended[0] > last_kept)
    )
    lost = tuple(position for position in gone if old.own[position])
    return _Difference(tuple(appended), tuple(changed), deleted, lost, tuple(reverted), in_order)


def _in_common(old: Table, new: Table) -> tuple[int, int]:
    """How many lines both begin with, and end with behind those. None where one id stands twice: the first counts."""
    if any(damage.code == "id-repeated" for table in (old, new) for damage in table.damage):
        return 0, 0
    most = min(len(old), len(new))
    begin = _most(most, lambda count: old.digests[:count] == new.digests[:count])
    end = _most(most - begin, lambda count: old.digests[len(old) - count :] == new.digests[len(new) - count :])
    return begin, end


def _most(most: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to *most* that *holds*, which all smaller ones do."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if holds(middle) else (least, middle - 1)
    return least


def _by_key(table: Table, start: int, stop: int) -> dict[Hashable, int]:
    """Position of each of these lines by its id, else by its content; the second of equals gets a key of its own."""
    positions: dict[Hashable, int] = {}
    repeated: Counter[Hashable] = Counter()
    for position in range(start, stop):
        identity = table.ids[position]
        key: Hashable = table.digests[position] if identity is None else identity
        if key in positions:
            repeated[key] += 1
            key = (key, repeated[key])
        positions[key] = position
    return positions
