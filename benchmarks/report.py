"""Figures and the table they are printed in."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from attrs import asdict, frozen


@frozen(kw_only=True)
class Figure:
    """One measured value beside what a user would have otherwise, in the same unit and from the same run.

    otherwise: what that is. at_most: what was to be reached, by `value`, or by `value / beside` if of_ratio.
    """

    what: str
    value: float
    unit: str
    beside: float | None = None
    otherwise: str = ""
    at_most: float | None = None
    of_ratio: bool = False

    @property
    def ratio(self) -> float | None:
        return None if self.beside is None else self.value / self.beside if self.beside else float("inf")

    @property
    def reached(self) -> bool | None:
        measured = self.ratio if self.of_ratio else self.value
        return None if self.at_most is None or measured is None else measured <= self.at_most

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "reached": self.reached}

    def cells(self) -> list[str]:
        goal = ""
        if self.at_most is not None:
            goal = f"{'missed: ' if not self.reached else ''}<= "
            goal += f"{_short(self.at_most)} x" if self.of_ratio else f"{_short(self.at_most)} {self.unit}"
        return [
            self.what,
            f"{_short(self.value)} {self.unit}",
            "" if self.beside is None else f"{_short(self.beside)} {self.unit}",
            "" if self.ratio is None else f"{_short(self.ratio)} x",
            goal,
            self.otherwise,
        ]


Measure: TypeAlias = Callable[[bool], Iterator[Figure]]
"""A benchmark: yields its figures; True = small and quick, to see that it works."""

HEAD = ("what", "craftd", "otherwise", "ratio", "target", "otherwise is")


def table(figures: Iterable[Figure]) -> str:
    """The figures as a Markdown table that is readable as it is."""
    rows = [HEAD, *(tuple(figure.cells()) for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in lines)


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def p50(values: Sequence[float]) -> float:
    return statistics.median(values)


def percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def middle(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """The round in which the ratio of the two is the median one: both were measured while the machine was as busy."""
    rounds = sorted(zip(ours, theirs, strict=True), key=lambda pair: pair[0] / pair[1])
    return rounds[len(rounds) // 2]


def check(holds: object, what: str) -> None:
    """A figure of something that did not do its work is worth nothing."""
    if not holds:
        raise SystemExit(f"wrong: {what}")
