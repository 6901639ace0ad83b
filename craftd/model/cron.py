"""Whether a text is a schedule as the app reads it: croner's dialect of cron.  App 0.11.1, golden `workspace`.

Five fields (minute, hour, day, month, weekday), six (seconds first) or seven (year last). No Python library reads this
dialect: croniter and its kin differ in seconds, `L`, `W`, `#`, `+` and in what they let pass.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

LONGEST: Final = 1000
"""Characters of a schedule; a longer one is a mistake."""

_NICKNAMES: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ONCE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,5}", re.ASCII)


class BadSchedule(ValueError):
    """The text is no schedule; the message is for people."""


@frozen
class _Field:
    """first, last: what a number may be. longest: of a step. names: words that stand for numbers, from *origin* on."""

    what: str
    first: int
    last: int
    longest: int
    names: tuple[str, ...] = ()
    origin: int = 0

    def check(self, text: str) -> None:
        for part in text.split(","):
            self._part(part)

    def _part(self, part: str) -> None:
        span, slash, step = part.partition("/")
        if slash:
            if _NUMBER.fullmatch(step) is None or not 1 <= int(step) <= self.longest:
                raise BadSchedule(f"steps by {step!r} in {self.what}")
            if span != "*" and "-" not in span:
                raise BadSchedule(f"steps from one value, not from * or a range, in {self.what}")
        if span == "*":
            return
        low, hyphen, high = self._without_letters(span).partition("-")
        start = self._number(low)
        if hyphen and self._number(high) < start:
            raise BadSchedule(f"has a range that runs backwards in {self.what}")

    def _without_letters(self, span: str) -> str:
        """*span* without what only days have: `15W`, `L`, `LW`, and of weekdays `5#2`, `5#L`, `5L`."""
        if self.what == "days":
            if span in ("l", "lw"):
                return str(self.last)
            return span.removesuffix("w")
        if self.what == "weekdays":
            span, hash, which = span.partition("#")
            if hash and which not in ("1", "2", "3", "4", "5", "l"):
                raise BadSchedule("asks for a weekday that no month has so often")
            return span if hash else span.removesuffix("l")
        return span

    def _number(self, word: str) -> int:
        if word in self.names:
            return self.origin + self.names.index(word)
        if _NUMBER.fullmatch(word) is None:
            raise BadSchedule(f"has {word!r} in {self.what}" if word else f"lacks a value in {self.what}")
        number = int(word)
        if not self.first <= number <= self.last:
            raise BadSchedule(f"has {number} in {self.what}, which go from {self.first} to {self.last}")
        return number


_FIELDS: Final = (
    _Field("seconds", 0, 59, 60),
    _Field("minutes", 0, 59, 60),
    _Field("hours", 0, 23, 24),
    _Field("days", 1, 31, 31),
    _Field("months", 1, 12, 12, _MONTHS, 1),
    _Field("weekdays", 0, 7, 7, _WEEKDAYS),
    _Field("years", 1, 9999, 9999),
)


def check(text: str) -> None:
    """Raises: BadSchedule. An empty text is none, and passes."""
    if len(text) > LONGEST:
        raise BadSchedule(f"is longer than {LONGEST} characters")
    schedule = text.strip()
    if not schedule or schedule.lower() in _NICKNAMES:
        return
    if schedule.startswith("@"):
        raise BadSchedule(f"has no meaning for {schedule[:20]!r}")
    if "T" in schedule and ":" in schedule:
        _check_once(schedule)
        return
    words = schedule.lower().split()
    if not 5 <= len(words) <= 7:
        raise BadSchedule("has neither five fields nor six or seven")
    fields = _FIELDS[1:6] if len(words) == 5 else _FIELDS[: len(words)]
    for field, word in zip(fields, words, strict=True):
        if field.what == "weekdays":
            word = word.removeprefix("+")
        field.check(word.replace("?", "*"))


def _check_once(text: str) -> None:
    """One point in time, ISO 8601."""
    found = _ONCE.fullmatch(text)
    if found is None:
        raise BadSchedule("is no point in time")
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups())
    long = month in (1, 3, 5, 7, 8, 10, 12)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = 31 if long else 30 if month != 2 else 29 if leap else 28
    if not (1 <= month <= 12 and 1 <= day <= days and hour < 24 and minute < 60 and second < 60):
        raise BadSchedule("is a point in time that does not exist")
