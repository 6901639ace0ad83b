"""Repair of a session: one commit that takes away what is wrong with its file and keeps what the file was beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from attrs import define, frozen

from craftd.errors import Busy, Corrupt
from craftd.model.records import Record
from craftd.model.repair import Finding, Mended
from craftd.store import confine, repair
from craftd.store.lines import Segment
from craftd.store.transcript import Transcript
from craftd.workspace import foreign, telling
from craftd.workspace.commit import Planned
from craftd.workspace.journal import Change
from craftd.workspace.rows import SessionRow
from craftd.workspace.sessions import SessionCommit, SessionUnit


@frozen
class Repaired:
    """found: what was wrong. kept: name of the file as it was, in the same folder; None = nothing was written."""

    found: tuple[Finding, ...]
    kept: str | None = None


@define(eq=False, kw_only=True)
class RepairSession(SessionCommit):
    """Answers Repaired. dry_run: only say what is wrong and what would become of it."""

    dry_run: bool = False

    @property
    def rewrites(self) -> bool:  # type: ignore[override]
        return not self.dry_run

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        unit.require()
        transcript = unit.transcript
        if transcript is None:
            assert unit.row is not None
            reason = unit.row.damage[0]["message"] if unit.row.damage else "cannot be read"
            raise Corrupt(reason, (unit.folder / "session.jsonl").as_uri(), unit.ref)
        if unit.draft.replaced:
            raise Busy(f"{unit.ref} is being changed", 200)
        plan = repair.plan(transcript, unit.header)
        if self.dry_run or not plan.mends:
            return Planned(Repaired(plan.found))
        assert plan.header is not None
        if os.path.islink(f"{unit.directory}/session.jsonl"):
            confine.check_writable(unit.place.root, unit.folder / "session.jsonl")
        kept = repair.name_beside(unit.folder, now)
        old = unit.value()
        unit.repair(plan.header, plan.lines, kept)
        return Planned(Repaired(plan.found, kept), [*_told(unit, transcript, plan.lines), *unit.changed_since(old)])


def look(row: SessionRow) -> tuple[Finding, ...]:
    """What is wrong with a session of a workspace that nobody has open. Raises: OSError, ForeignWrite."""
    transcript = Transcript.load(row.place.folder(row.id) / "session.jsonl", row.place.directory(row.id))
    try:
        return repair.plan(transcript, row.stored if row.readable else None).found
    finally:
        transcript.close()


def _told(unit: SessionUnit, transcript: Transcript, lines: Mapping[int, Mended]) -> list[Change]:
    """What becomes of messages. Damaged lines go one by one; from the first message on that is another one afterwards
    readers get everything anew.
    """
    gone, others = [], []
    for position, mended in sorted(lines.items()):
        index, id = transcript.index_of(position), transcript.id_of(position)
        if index is None and mended.line is None:
            gone.append(position)
        elif index is None or mended.record is None or mended.record.get("id", id) != id:
            others.append(position)
    if not others and len(gone) <= foreign.DELETED_ONE_BY_ONE:
        segments = (transcript.read(position, position + 1)[0] for position in gone)
        return [telling.message_deleted(unit.id, foreign.message_id(segment)) for segment in segments]
    first = min([*gone, *others])
    before = (transcript.index_of(position) for position in range(first - 1, -1, -1))
    keep = next((index + 1 for index in before if index is not None), 0)
    return [telling.truncated(unit.id, keep), *_appended(unit, first, keep)]


def _appended(unit: SessionUnit, first: int, index: int) -> Iterator[Change]:
    """`messages/didAppend` for what will stand from position *first* on; index: of the first of these messages."""
    draft = unit.draft
    records: list[Record] = []
    sizes: list[int] = []
    total = 0
    for position in draft.there(first):
        segment: Segment = draft.read(position)
        if segment.record is None:
            continue
        records.append(segment.record)
        sizes.append(segment.length)
        total += segment.length
        if total >= foreign.EVENT_BYTES:
            yield telling.appended(unit.id, index, records, sizes, draft.count)
            index, records, sizes, total = index + len(records), [], [], 0
    if records:
        yield telling.appended(unit.id, index, records, sizes, draft.count)
