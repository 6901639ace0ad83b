"""How far the first reading of a workspace's transcripts is, for who wants to show it."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

Heard = Callable[[int], None]
"""Gets what has been read, in percent: 100 once, at the end."""


@define(eq=False)
class FirstReading:
    """Lives on the event loop. total: files that were not read whole before the workspace was open."""

    total: int = 0
    done: int = 0
    finished: bool = False
    _hearing: list[Heard] = field(factory=list)

    @property
    def percent(self) -> int:
        """99 at most, before the end."""
        return min(99, 100 * self.done // max(1, self.total))

    def hear(self, heard: Heard) -> None:
        """Call *heard* whenever the percentage is another one, and at the end."""
        self._hearing.append(heard)

    def step(self) -> None:
        before = self.percent
        self.done += 1
        if self.percent != before:
            for heard in self._hearing:
                heard(self.percent)

    def finish(self) -> None:
        self.finished = True
        for heard in self._hearing:
            heard(100)
        self._hearing.clear()
