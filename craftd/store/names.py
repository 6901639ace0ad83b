"""What every line of a transcript is called, in a few bytes more than the names have: one block of text, and its ends.

A Python string of twelve characters takes 61 bytes and eight for the reference to it; here it takes 21.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from typing import Final

_BEGIN: Final = b"\n"
"""Before each name: tells "" from no name, and few names hold one themselves."""


class Names:
    """A list of strings and None that only grows. One thread adds, any may look."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._ends = array("Q")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, position: int) -> str | None:
        """Of a position from 0 on."""
        start = self._ends[position - 1] if position else 0
        return _name(self._text[start : self._ends[position]])

    def __iter__(self) -> Iterator[str | None]:
        start = 0
        for end in self._ends:
            yield _name(self._text[start:end])
            start = end

    def append(self, name: str | None) -> None:
        if name is not None:
            self._text += _BEGIN + name.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._text))

    def extend(self, names: Sequence[bytes]) -> None:
        """Append names in UTF-8."""
        ends = accumulate(map(len, names), lambda at, length: at + length + 1, initial=len(self._text))
        self._text += b"".join([_BEGIN + name for name in names])
        self._ends.extend(array("Q", islice(ends, 1, None)))

    def take(self, other: Names, start: int, stop: int) -> None:
        """Append those of *other* from *start* to before *stop*."""
        first = other._ends[start - 1] if start else 0
        ends = other._ends[start:stop]
        if not ends:
            return
        shift = len(self._text) - first
        self._text += other._text[first : ends[-1]]
        self._ends.extend(array("Q", [end + shift for end in ends]) if shift else ends)

    def find(self, name: str, start: int = 0) -> int | None:
        """Position of the first *name* from *start* on."""
        text = _BEGIN + name.encode("utf-8", "surrogatepass")
        at = self._ends[start - 1] if 0 < start <= len(self) else 0 if not start else len(self._text)
        while (at := self._text.find(text, at)) >= 0:
            position = bisect_right(self._ends, at)
            if position >= len(self._ends):
                return None
            if (self._ends[position - 1] if position else 0) == at and self._ends[position] == at + len(text):
                return position
            at += 1
        return None


def _name(text: bytearray) -> str | None:
    return text[1:].decode("utf-8", "surrogatepass") if text else None
