"""The ends of long transcripts that are not open. Reading one keeps nothing but a few places where lines begin."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from attrs import define, field

from craftd.store.table import Damage
from craftd.store.tail import Tail
from craftd.workspace.rows import SessionRow

TAIL_ABOVE: Final = 256 * 1024
"""Bytes of a transcript from which on it is not opened for its last messages; parsing so much takes a few ms."""

KEPT: Final = 128
"""Transcripts whose places are remembered."""


@define(eq=False)
class Tails:
    """Of one workspace; asked on its loop."""

    _kept: OrderedDict[str, Tail] = field(factory=OrderedDict)

    def of(self, row: SessionRow) -> Tail | None:
        """None where the file is short, or what its row says is not what readers are to see, or not enough."""
        mark, body = row.fingerprint, row.body
        if mark is None or body is None or row.away is not None or mark.size < TAIL_ABOVE:
            return None
        if any(damage["code"] == "rescued" for damage in row.damage):
            return None
        tail = self._kept.get(row.id)
        if tail is None or tail.fingerprint != mark:
            damage = [Damage(one["code"], one.get("line"), one["message"]) for one in row.damage]
            folder, messages = row.place.folder(row.id), row.derived["messageCount"]
            tail = Tail(folder / "session.jsonl", str(folder), mark, body.length, row.lines, messages, damage)
            self._kept[row.id] = tail
        self._kept.move_to_end(row.id)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return tail
