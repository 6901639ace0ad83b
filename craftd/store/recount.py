"""What the lines of a transcript add up to after some of them were changed, without reading the others.

Of all counters only the last messages and the first user message matter, so a change costs a few lines wherever it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve

from craftd.model.messages import Counters, is_final
from craftd.model.records import Record
from craftd.store.table import Table


def recounted(table: Table, changed: Mapping[int, Record | None], read: Callable[[int], Record | None]) -> Counters:
    """Counters of *table* with the messages at some positions *changed* (None = taken out); one may take the place of a
    damaged line.

    read: the message at a position, None for a damaged line; it is asked for few of them.
    """
    before = table.counters
    unreadable = set(table.unreadable)
    gone = sum(record is None and position not in unreadable for position, record in changed.items())
    born = sum(record is not None and position in unreadable for position, record in changed.items())
    new = [record for record in changed.values() if record is not None]

    def record_at(position: int) -> Record | None:
        return changed[position] if position in changed else read(position)

    counters = Counters(count=before.count - gone + born, directory=before.directory)
    final_id, final_known = _unchanged_final(table, changed, new)
    last: Counters | None = None
    timestamp = None
    for position in range(len(table) - 1, -1, -1):
        if last is not None and timestamp is not None and final_known:
            break
        record = record_at(position)
        if record is None:
            continue
        one = Counters().add(record)
        last = last or one
        timestamp = one.last_timestamp if timestamp is None else timestamp
        if not final_known and is_final(record) and one.last_final_id is not None:
            final_id, final_known = one.last_final_id, True
    if last is not None:
        counters = evolve(counters, last_role=last.last_role, last_id=last.last_id)
    counters = evolve(counters, last_timestamp=timestamp, last_final_id=final_id)
    if before.preview_done or any(record.get("type") == "user" for record in new):
        for position in range(len(table)):
            record = record_at(position)
            if record is not None and record.get("type") == "user":
                first = Counters(directory=before.directory).add(record)
                return evolve(counters, preview=first.preview, preview_done=True)
    return counters


def _unchanged_final(table: Table, changed: Mapping[int, Record | None], new: list[Record]) -> tuple[str | None, bool]:
    """The id of the last final message, and whether it is certainly the same as before."""
    known = table.counters.last_final_id
    if any(map(is_final, new)) or (known is not None and any(table.ids[position] == known for position in changed)):
        return None, False
    return known, True
