"""Labels that a session gets for what its user says: the rules of labels, run over a message.  App 0.11.1."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from craftd.model import javascript
from craftd.model.javascript import Pattern
from craftd.model.label_entries import Entry, is_value
from craftd.model.records import Record

MOST: Final = 10
"""Entries found in one message."""

SLOW: Final = 3
"""Rules that may take too long before the rest of a message's rules is left out."""

_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
_GROUP = re.compile(r"\$([0-9]+)", re.ASCII)
_SCALED = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)\s*([kmb])", re.ASCII | re.IGNORECASE)
_BEGINNING = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)", re.ASCII)
_SCALES = {"k": 10**3, "m": 10**6, "b": 10**9}


@frozen
class Rule:
    """One rule of a label, ready to run. type: the label's `valueType`. template: with `$1`, `$2`... for groups."""

    label: str
    type: str | None
    pattern: Pattern
    template: str | None

    def entries(self, text: str) -> Iterator[str]:
        """What *text* says. Raises: TooSlow."""
        for groups in self.pattern.find_all(text):
            if self.type is None:
                yield self.label
                return
            value = normalised(self._value(groups), self.type)
            if is_value(value, self.type):
                yield str(Entry(self.label, value))

    def _value(self, groups: tuple[str | None, ...]) -> str:
        """groups: the whole match, then what is in parentheses."""
        if self.template is not None:
            return _GROUP.sub(lambda found: _group(groups, int(found.group(1)[:3])), self.template)
        return _group(groups, 1) or _group(groups, 0)


def _group(groups: tuple[str | None, ...], number: int) -> str:
    return (groups[number] or "") if number < len(groups) else ""


def rules_of(labels: Mapping[str, Record]) -> list[Rule]:
    """All rules that can run, in the order of the labels. labels: in the order of their file."""
    return [rule for id, value in labels.items() for rule in _rules(id, value)]


def _rules(id: str, value: Record) -> Iterator[Rule]:
    declared = value.get("autoRules")
    type = value.get("valueType")
    for given in declared if isinstance(declared, list) else ():
        if (pattern := _compiled(given)) is not None:
            template = given.get("valueTemplate")
            yield Rule(
                id,
                type if isinstance(type, str) and type else None,
                pattern,
                template if isinstance(template, str) and template else None,
            )


def _compiled(given: Any) -> Pattern | None:
    if not isinstance(given, dict):
        return None
    source, flags = given.get("pattern"), given.get("flags", "gi")
    if not isinstance(source, str) or not isinstance(flags, str) or not source:
        return None
    try:
        return javascript.compile(source, flags)
    except javascript.BadPattern:
        return None


def found_in(text: str, rules: list[Rule]) -> list[str]:
    """Entries for what *text*, the content of a message, says outside of code; at most `MOST`.

    A rule that takes too long finds nothing, and after `SLOW` of them no other is tried.
    """
    text = _CODE.sub("", text)
    found: list[str] = []
    slow = 0
    for rule in rules:
        here: list[str] = []
        try:
            for entry in rule.entries(text):
                if entry not in found and entry not in here:
                    here.append(entry)
                if len(found) + len(here) == MOST:
                    return found + here
        except javascript.TooSlow:
            slow += 1
            if slow == SLOW:
                break
            continue
        found += here
    return found


def normalised(raw: str, type: str | None) -> str:
    """*raw* as a value of its type is written: `$45,000` and `1.5M` are numbers; what is none stays as it is."""
    if type == "link":
        return raw.strip()
    if type != "number":
        return raw
    text = raw.strip()
    if text and unicodedata.category(text[0]) == "Sc":
        text = text[1:].lstrip()
    text = text.replace(",", "")
    if (scaled := _SCALED.fullmatch(text)) is not None:
        number = float(scaled.group(1)) * _SCALES[scaled.group(2).lower()]
        return f"{number:.0f}" if number.is_integer() else f"{number:.2f}"
    beginning = _BEGINNING.match(text)
    if beginning is None:
        return raw
    number = float(beginning.group())
    return f"{number:.0f}" if number.is_integer() else repr(number)
