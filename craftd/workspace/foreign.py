"""Edits made by somebody else: noticed by fingerprint, merged field by field and line by line, announced once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from craftd.errors import Issue
from craftd.model import json_text
from craftd.model import patch as patches
from craftd.model import sessions as session_rules
from craftd.model.ids import is_session_id
from craftd.model.portable import expand_line, parse_line
from craftd.model.records import Record
from craftd.store import atomic, conflicts, disk
from craftd.store.atomic import Fingerprint, ForeignWrite
from craftd.store.compare import Foreign
from craftd.store.lines import UNHEADED, Body, Segment, compare_body, read_head
from craftd.store.locate import ABSENCE_MS, usable
from craftd.store.table import Damage
from craftd.store.transcript import Transcript
from craftd.workspace import debts, telling
from craftd.workspace.journal import Change
from craftd.workspace.rows import Place, SessionRow, damage_json, row_of, sort_time, sound_of
from craftd.workspace.tables import Table, issue_changes

if TYPE_CHECKING:
    from craftd.workspace.sessions import SessionUnit

_T = TypeVar("_T")

VERIFY_AT_ONCE: Final = 2 * 1024 * 1024
"""Bytes of transcripts read whole before a workspace answers, about 0.1 s; the rest follows in the background."""

EMPTY_AFTER_MS: Final = 60_000
"""Age from which a folder without a transcript is reported: a younger one may be about to get it."""

DELETED_ONE_BY_ONE: Final = 200
"""Messages that are announced as deleted one after the other; of more, readers get the transcript anew."""

EVENT_BYTES: Final = 1024 * 1024
"""Messages of one `messages/didAppend` that announces a foreign edit."""

TOLD_BYTES: Final = 8 * 1024 * 1024
"""Messages of a foreign edit that are announced. No client's queue takes more (`outbox.LAPSE_BYTES`), and nobody holds
more of a file in memory.
"""


# The first look at a workspace


def session_files(place: Place) -> dict[str, Fingerprint | None]:
    """Session folders that hold a transcript, by id. Fingerprint None: it cannot be looked at."""
    found: dict[str, Fingerprint | None] = {}
    folder = f"{place.root}/sessions"
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return found
    for id in names:
        if not is_session_id(id) or conflicts.is_copy(folder, id):
            continue
        path = f"{folder}/{id}/session.jsonl"  # this runs for every session, often: a Path costs more than the look
        try:
            mark = atomic.fingerprint(path)
            if mark is None and (mark := atomic.glance(f"{path}.tmp")) is not None and not usable(Path(f"{path}.tmp")):
                continue
        except OSError:
            found[id] = None
            continue
        if mark is not None:
            found[id] = mark
    return found


def first_look(place: Place, known: Mapping[str, SessionRow]) -> Iterator[SessionRow]:
    """A row for every session: the one that is *known* where the file is the same, else from its first line."""
    for id, mark in session_files(place).items():
        before = known.get(id)
        if before is not None and before.fingerprint == mark:
            yield before
            continue
        row = _from_first_line(place, id, mark)
        if before is not None:
            row.away = before.body
            _keep_good_header(row, before)
        yield row


def while_away(before: Mapping[str, SessionRow], after: Mapping[str, SessionRow]) -> list[Change]:
    """Sessions made and deleted and lines 1 changed between two states. Messages need a closer look: `away`."""
    changes = [telling.deleted(id) for id in before if id not in after]
    for id, row in after.items():
        old = before.get(id)
        if old is None:
            changes.append(telling.created(row.item()))
        elif old is not row:
            changes += _line_one(row, old)
            changes += damage_changes(old, row)
    return changes


def _keep_good_header(row: SessionRow, before: SessionRow) -> None:
    """A broken line 1 never replaces the last good one in memory."""
    if not row.readable and before.readable:
        row.header, row.at = before.header, before.at


def _from_first_line(place: Place, id: str, mark: Fingerprint | None) -> SessionRow:
    folder = place.directory(id)
    try:
        fd = disk.open_read(f"{folder}/session.jsonl")
        try:
            head = read_head(fd, os.fstat(fd).st_size, folder, id)
        finally:
            disk.close(fd)
    except FileNotFoundError:  # only what a crashed save left: needs the whole look
        return verified(SessionRow(id, place, b"", mark, 0))
    except OSError as error:
        return _unreadable(place, id, mark, error)
    header = head.header if head.sound else None
    text = expand_line(head.text, folder)
    damage_found = tuple(map(damage_json, head.damage))
    if header is None:
        return verified(SessionRow(id, place, b"", mark, 0, derived={"id": id}, damage=damage_found))
    return SessionRow(id, place, text, mark, sort_time(header), {"id": id}, damage_found)


def _unreadable(place: Place, id: str, mark: Fingerprint | None, error: OSError) -> SessionRow:
    damage = Damage("header-unreadable", 1, f"cannot be read: {error.strerror}")
    return SessionRow(id, place, b"", mark, 0, derived={"id": id}, damage=(damage_json(damage),))


def verified(row: SessionRow) -> SessionRow:
    """The row after reading the file whole; as it was where that fails now."""
    folder = row.place.folder(row.id)
    try:
        transcript = Transcript.load(folder / "session.jsonl", str(folder))
        header = readable_header(transcript)
        if header is not None:
            header = session_rules.caught_up(header, transcript.counters)
        elif row.readable:
            header = row.stored
        fresh = row_of(row.id, row.place, header, transcript)
        transcript.close()
    except (OSError, ForeignWrite):
        return row
    fresh.away = row.away
    return fresh


def shows_the_same(fresh: SessionRow, row: SessionRow) -> bool:
    """Whether nobody has to be told that *fresh* takes the place of *row*."""
    same_file = fresh.fingerprint == row.fingerprint and fresh.damage == row.damage
    return same_file and json_text.equal(fresh.stored, row.stored)


# Looking again


def look(unit: SessionUnit) -> list[Change]:
    """Bring the unit's base in line with its file; answers what that changes for readers.

    A file that is missing makes the unit `gone`, nothing else. Raises: ForeignWrite: it changed while it was read, and
    the base is what it was; look again.
    """
    row = unit.row
    try:
        if row is None and conflicts.is_copy(str(unit.folder.parent), unit.id):
            raise FileNotFoundError
        if unit.transcript is None:
            if row is None and not unit.folder.exists():
                unit.header, unit.gone = None, True
                return []
            _let_finish(unit)
            path, sound = unit.folder / "session.jsonl", sound_of(row)
            unit.transcript = _found(lambda: Transcript.load(path, unit.directory, sound), unit)
        transcript = unit.transcript
        told = row is not None and row.fingerprint == transcript.fingerprint and row.body is not None and not row.away
        if transcript.check():
            if told:
                assert row is not None
                unit.header = row.stored if row.readable else None
                return []
            foreign = None
        else:
            _let_finish(unit)
            foreign = _found(transcript.reload, unit)
            unit.owed += debts.owed(foreign, transcript)
        if told and foreign is not None:
            return _reloaded(unit, transcript, foreign)
        return _met(unit, transcript)
    except FileNotFoundError:
        if unit.transcript is not None:
            unit.transcript.close()
        unit.transcript, unit.header, unit.gone = None, None, True
        return []
    except OSError as error:
        if row is not None and row.readable:
            raise  # nothing that could be read before is given up
        mark = atomic.glance(unit.folder / "session.jsonl")
        unit.row, unit.header = _unreadable(unit.place, unit.id, mark, error), None
        created = [telling.created(unit.row.item())] if row is None else []
        return created + damage_changes(row, unit.row)


def _found(work: Callable[[], _T], unit: SessionUnit) -> _T:
    """*work*, again and again for a while if the file is missing and its folder is not: somebody is about to save."""
    return patiently(work, lambda: unit.row is not None and unit.folder.exists())


def patiently(work: Callable[[], _T], is_expected: Callable[[], bool]) -> _T:
    """*work*, again and again for a while if it does not find a file that somebody is about to save."""
    deadline = time.monotonic() + ABSENCE_MS / 1000
    while True:
        try:
            return work()
        except FileNotFoundError:
            if not is_expected() or time.monotonic() > deadline:
                raise
        time.sleep(0.001)


def _let_finish(unit: SessionUnit) -> None:
    """Wait a moment for a program that has truncated the file, or written half a line, and goes on."""
    path = unit.folder / "session.jsonl"
    deadline = time.monotonic() + ABSENCE_MS / 1000
    while time.monotonic() < deadline and _is_unfinished(path, None if unit.row is None else unit.row.fingerprint):
        time.sleep(0.001)


def _is_unfinished(path: Path, known: Fingerprint | None) -> bool:
    try:
        fd = disk.open_read(path)
    except OSError:
        return False
    try:
        status = os.fstat(fd)
        if atomic.of_stat(status) == known or not atomic.is_fresh(atomic.of_stat(status)):
            return False
        return status.st_size == 0 or os.pread(fd, 1, status.st_size - 1) != b"\n"
    except OSError:
        return False
    finally:
        disk.close(fd)


def _met(unit: SessionUnit, transcript: Transcript) -> list[Change]:
    """The file was read whole for the first time, or again after it was changed while we had no eye on it."""
    old = unit.row
    header = readable_header(transcript)
    if header is not None:
        header = session_rules.caught_up(header, transcript.counters)
    elif old is not None and old.readable:
        header = old.stored  # a broken line 1 never replaces the last good one in memory
    changes: list[Change] = []
    told = None if old is None else old.away or old.body
    if told is not None and told != transcript.body():
        verdict = compare_body(unit.folder / "session.jsonl", told)
        if not transcript.check():
            raise ForeignWrite(transcript.path)
        if verdict == "appended":
            changes += _appended(unit, transcript, _position_behind(transcript, told))
        elif verdict == "changed":
            changes += _replaced(unit, transcript, 0)
    unit.header = header
    unit.rebase()
    assert unit.row is not None
    if old is None:
        return [telling.created(unit.row.item()), *damage_changes(None, unit.row)]
    return changes + _line_one(unit.row, old) + damage_changes(old, unit.row)


def _reloaded(unit: SessionUnit, transcript: Transcript, foreign: Foreign) -> list[Change]:
    """Somebody wrote while the transcript was open: three-way merge of line 1, single changes of the lines."""
    old = unit.row
    assert old is not None
    mine = old.stored if old.readable else None
    if readable_header(transcript) is None or foreign.header_after is None:
        header = mine
    elif mine is None:
        header = session_rules.caught_up(foreign.header_after, transcript.counters)
    else:
        merged = patches.merge(foreign.header_before or mine, mine, foreign.header_after)
        header = session_rules.caught_up(merged, transcript.counters)
        if foreign.late and patches.diff(foreign.header_after, merged):
            unit.owed.append(debts.LINE_ONE)
    changes: list[Change] = []
    gone = [*foreign.deleted, *(parse_line(line, unit.directory)["id"] for line in foreign.lost_own)]
    if not foreign.in_order or len(gone) > DELETED_ONE_BY_ONE:
        changes += _replaced(unit, transcript, 0)
    else:
        changes += [telling.message_deleted(unit.id, id) for id in gone]
        changes += _changed(unit, transcript, foreign)
    unit.header = header
    unit.rebase(behind=old.behind)
    assert unit.row is not None
    return changes + _line_one(unit.row, old) + damage_changes(old, unit.row)


def _line_one(row: SessionRow, old: SessionRow) -> list[Change]:
    return telling.changed(row.id, row.version, old.value, row.value)


def _changed(unit: SessionUnit, transcript: Transcript, foreign: Foreign) -> list[Change]:
    """What became of lines that were there and what stands behind them now.

    From the first line on whose earlier content is not known any more, readers get everything anew.
    """
    changes: list[Change] = []
    before = dict(zip(foreign.changed, foreign.changed_from, strict=True))
    before |= dict(foreign.reverted)
    for position, line in sorted(before.items()):
        [segment] = transcript.read(position, position + 1)
        id = message_id(segment)
        if line is None or segment.record is None or transcript.find(id) != position:
            return changes + _replaced(unit, transcript, position)
        old = parse_line(line, unit.directory)
        if patches.diff(old, segment.record):
            changes.append(telling.message_changed(unit.id, id, old, segment.record, segment.length))
    return changes + (_appended(unit, transcript, foreign.appended[0]) if foreign.appended else [])


def _replaced(unit: SessionUnit, transcript: Transcript, first: int) -> list[Change]:
    """Everything from position *first* on is to be taken anew."""
    keep = transcript.count
    for position in range(first, len(transcript)):
        [segment] = transcript.read(position, position + 1)
        if segment.index is not None:
            keep = segment.index
            break
    if transcript.bytes_from(first) > TOLD_BYTES:
        return [telling.truncated(unit.id, keep, unsent=True)]
    return [telling.truncated(unit.id, keep), *_appended(unit, transcript, first)]


def _appended(unit: SessionUnit, transcript: Transcript, first: int) -> list[Change]:
    """`messages/didAppend` for everything from position *first* on, in pieces that fit into events."""
    if transcript.bytes_from(first) > TOLD_BYTES:
        return _replaced(unit, transcript, first)
    changes: list[Change] = []
    records: list[Record] = []
    sizes: list[int] = []
    total, index = 0, None
    for start in range(first, len(transcript), 256):
        for segment in transcript.read(start, start + 256):
            if segment.record is None or segment.index is None:
                continue
            index = segment.index if index is None else index
            records.append(segment.record)
            sizes.append(segment.length)
            total += segment.length
            if total >= EVENT_BYTES:
                changes.append(telling.appended(unit.id, index, records, sizes, transcript.count))
                records, sizes, total, index = [], [], 0, None
    if records and index is not None:
        changes.append(telling.appended(unit.id, index, records, sizes, transcript.count))
    return changes


def message_id(segment: Segment) -> str:
    """How a client names the line: its id, `#<index>` without one, `~<byte offset>` when it cannot be read."""
    if segment.record is None:
        return f"~{segment.offset}"
    id = segment.record.get("id")
    return id if isinstance(id, str) and id else f"#{segment.index}"


def readable_header(transcript: Transcript) -> Record | None:
    """Line 1, if it is a header one can believe."""
    if any(damage.code in UNHEADED for damage in transcript.damage):
        return None
    return transcript.header


def _position_behind(transcript: Transcript, body: Body) -> int:
    """Position of the first line behind the *body* that the file begins with."""
    start = transcript.fingerprint.size - transcript.body().length + body.length
    for offset in (start, start + 1):  # the old end may have lacked its LF
        position = transcript.find(f"~{offset}")
        if position is not None:
            return position
    return len(transcript)


# Damage and other issues


def issue_path(session: str) -> str:
    return f"sessions/{session}/session.jsonl"


def damage_issues(session: str, damage: Iterable[Mapping[str, Any]]) -> list[Issue]:
    return [
        Issue(
            path=issue_path(session),
            message=one["message"],
            code=one["code"],
            severity="warning" if one["code"] in _MILD else "error",
            range=_line_range(one["line"]) if "line" in one else None,
            noun="sessions",
            id=session,
        )
        for one in damage
    ]


_MILD = frozenset(
    {"id-mismatch", "id-repeated", "count-mismatch", "rescued", "linked", "blank-first-line", "header-oversized"}
)


def _line_range(line: int) -> dict[str, Any]:
    return {"start": {"line": line - 1, "character": 0}, "end": {"line": line, "character": 0}}


def damage_changes(old: SessionRow | None, new: SessionRow | None) -> list[Change]:
    """`issues/didChange` when one damage came or went; None: no session."""
    return issue_changes(_issues_of(old), _issues_of(new))


def _issues_of(row: SessionRow | None) -> dict[str, list[Issue]]:
    return {issue_path(row.id): damage_issues(row.id, row.damage)} if row is not None and row.damage else {}


def empty_folders(root: Path, now: int) -> dict[str, list[Issue]]:
    """Folders below sessions/ that hold no transcript, once they are a minute old."""
    found: dict[str, list[Issue]] = {}
    try:
        entries = list(os.scandir(root / "sessions"))
    except OSError:
        return found
    for entry in entries:
        try:
            if entry.name.startswith(".") or not entry.is_dir():
                continue
            path = Path(entry.path, "session.jsonl")
            if os.path.lexists(path) or usable(path.with_name("session.jsonl.tmp")):
                continue
            if now - entry.stat().st_mtime_ns // 1_000_000 < EMPTY_AFTER_MS:
                continue
        except OSError:
            continue
        name = f"sessions/{entry.name}"
        message = "a folder without session.jsonl is no session"
        found[name] = [Issue(path=name, message=message, code="no-transcript", severity="warning")]
    return found


def conflict_copies(root: Path) -> dict[str, list[Issue]]:
    """What synchronisers left in the folders of sessions; no watch and no sweep looks at all of them."""
    found = (conflicts.at(root, path) for path in conflicts.in_sessions(root))
    return {one.issue.path: [one.issue] for one in found if one is not None}


# Sweeping


def changed_sessions(place: Place, rows: Mapping[str, SessionRow]) -> set[str]:
    """Unit keys of sessions whose file is not the one their row was read from."""
    found = session_files(place)
    known = dict(rows)
    changed = {id for id, mark in found.items() if id not in known or known[id].fingerprint != mark}
    return {f"sessions/{id}" for id in changed | (known.keys() - found.keys())}


def changed_documents(root: Path, table: Table) -> set[str]:
    documents = dict(table.documents)
    keys = set(table.shelf.keys(root))
    changed = (keys - documents.keys()) | (documents.keys() - keys)
    for key, document in documents.items():
        if any(atomic.glance(root / path) != mark for path, mark in document.prints.items()):
            changed.add(key)
    changed |= {key for key, ids in list(table.hidden.items()) if any(table.free(root, id, key) for id in ids)}
    return changed
