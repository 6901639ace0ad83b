"""What we acknowledged and a foreign save undid: it is done again.

A program that saves the whole file from an older copy knows nothing of what happened since. A message that is again
exactly as it was before our change was undone by mistake; one that is something else is merged, member by member.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from attrs import frozen

from craftd.model import messages
from craftd.model import patch as patches
from craftd.model.portable import parse_line
from craftd.model.records import Record
from craftd.store.compare import Foreign
from craftd.store.transcript import Transcript
from craftd.workspace import telling
from craftd.workspace.journal import Change

if TYPE_CHECKING:
    from craftd.workspace.sessions import SessionUnit


@frozen
class Debt:
    """One message. record: what it has to be, None = not there. instead: hash of the line there is, None = none.

    base: what it was before we changed it, where what is there is theirs: to be merged with what we made of it.
    """

    id: str
    record: Record | None
    instead: int | None = None
    base: Record | None = None


LINE_ONE: Final = Debt("", None)
"""What line 1 said: it is written again as it is in memory."""


def owed(foreign: Foreign, transcript: Transcript) -> list[Debt]:
    """What a save that *transcript* was just reloaded from undid."""
    found = []
    for line in foreign.lost_own:
        record = parse_line(line, transcript.directory)
        found.append(Debt(record["id"], record))
    changed = zip(foreign.changed, foreign.changed_from, foreign.bases, strict=True)
    for position, ours, base in changed:
        id = transcript.id_of(position)
        if id is not None and ours is not None and base is not None:
            records = parse_line(ours, transcript.directory), parse_line(base, transcript.directory)
            found.append(Debt(id, records[0], transcript.digest_of(position), records[1]))
    undone: list[tuple[int, Record | None]] = [(position, None) for position in foreign.returned]
    undone += [(position, parse_line(line, transcript.directory)) for position, line in foreign.reverted]
    for position, record in undone:
        if (id := transcript.id_of(position)) is not None:
            found.append(Debt(id, record, transcript.digest_of(position)))
    return found


def pay(owing: Sequence[Debt], unit: SessionUnit) -> tuple[list[Change], list[Record]]:
    """Stage what is still owed of messages that are there; what readers are told of it, and the messages that are not
    there any more. Raises: ForeignWrite, OSError."""
    draft = unit.draft
    changes: list[Change] = []
    if LINE_ONE in owing and unit.header is not None:
        unit.change(unit.header)
    lost: list[Record] = []
    for debt in owing:
        position = draft.find(debt.id)
        if debt.instead is None:
            if position is None and debt.record is not None:
                lost.append(debt.record)
        elif position is not None:
            there = draft.read(position)
            if hash(there.raw) != debt.instead or there.record is None:
                continue
            if debt.record is None:
                unit.take_out([position])
                changes.append(telling.message_deleted(unit.id, debt.id))
                continue
            record = debt.record if debt.base is None else messages.merged(debt.base, debt.record, there.record)
            if patches.diff(there.record, record):
                size = unit.replace(position, record)
                changes.append(telling.message_changed(unit.id, debt.id, there.record, record, size))
    return changes, lost
