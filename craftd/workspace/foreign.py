"""Edits made by somebody else: noticed by fingerprint, merged field by field and line by line, announced once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field

from craftd.errors import Issue
from craftd.model import patch as patches
from craftd.model.ids import is_session_id
from craftd.model.portable import parse_line
from craftd.model.records import Record, version_of
from craftd.store import atomic, disk
from craftd.store.atomic import Fingerprint, ForeignWrite
from craftd.store.compare import Foreign
from craftd.store.lines import Body, Segment, compare_body, read_head
from craftd.store.table import Damage
from craftd.store.transcript import Transcript
from craftd.workspace.cache import row_from
from craftd.workspace.journal import Change
from craftd.workspace.rows import Place, SessionRow
from craftd.workspace.tables import Table, issue_changes

if TYPE_CHECKING:
    from craftd.workspace.sessions import SessionUnit

VERIFY_AT_ONCE: Final = 16 * 1024 * 1024
"""Bytes of transcripts read whole before a workspace answers; the rest follows in the background."""

EMPTY_AFTER_MS: Final = 60_000
"""Age from which a folder without a transcript is reported: a younger one may be about to get it."""

EVENT_BYTES: Final = 1024 * 1024
"""Messages of one `messages/didAppend` that announces a foreign edit."""


@define(eq=False)
class News:
    """What a look at a session's file found. restore: messages we had acknowledged that a foreign save dropped."""

    changes: list[Change] = field(factory=list)
    restore: list[Record] = field(factory=list)


# The first look at a workspace


def session_files(place: Place) -> dict[str, Fingerprint | None]:
    """Session folders that hold a transcript, by id. Fingerprint None: it cannot be looked at."""
    found: dict[str, Fingerprint | None] = {}
    try:
        entries = list(os.scandir(place.root / "sessions"))
    except (FileNotFoundError, NotADirectoryError):
        return found
    for entry in entries:
        if is_session_id(entry.name):
            for name in ("session.jsonl", "session.jsonl.tmp"):
                try:
                    mark = atomic.fingerprint(Path(entry.path) / name)
                except OSError:
                    found[entry.name] = None
                    break
                if mark is not None and (name == "session.jsonl" or _is_complete(Path(entry.path) / name)):
                    found[entry.name] = mark
                    break
    return found


def _is_complete(path: Path) -> bool:
    """Whether what a crashed save left can be used: whole lines, a header first."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    return data.endswith(b"\n") and data.lstrip().startswith(b"{")


def first_look(place: Place, cached: Mapping[str, list[Any]]) -> Iterable[SessionRow]:
    """A row for every session: from the cache where the file is the same, else from its first line."""
    for id, mark in session_files(place).items():
        row = row_from(cached[id], place, mark) if id in cached and mark is not None else None
        yield row or _from_first_line(place, id, mark)


def _from_first_line(place: Place, id: str, mark: Fingerprint | None) -> SessionRow:
    from craftd.workspace.sessions import header_text, sort_time

    folder = place.folder(id)
    path = folder / "session.jsonl"
    try:
        fd = disk.open_read(path)
        try:
            head = read_head(fd, os.fstat(fd).st_size, str(folder), id)
        finally:
            disk.close(fd)
    except FileNotFoundError:  # only what a crashed save left: needs the whole look
        return verified(SessionRow(id, place, b"", mark, 0))
    except OSError as error:
        damage = Damage("header-unreadable", 1, f"cannot be read: {error.strerror}")
        return SessionRow(id, place, b"", mark, 0, derived={"id": id}, damage=(damage_json(damage),))
    header = head.header if head.sound else None
    damage_found = tuple(map(damage_json, head.damage))
    if header is None:
        return verified(SessionRow(id, place, b"", mark, 0, derived={"id": id}, damage=damage_found))
    return SessionRow(id, place, header_text(header), mark, sort_time(header), {"id": id}, damage_found)


def verified(row: SessionRow) -> SessionRow:
    """The row after reading the file whole; as it was where that fails now."""
    from craftd.workspace.sessions import caught_up, row_of

    folder = row.place.folder(row.id)
    try:
        transcript = Transcript.load(folder / "session.jsonl", str(folder))
        header = readable_header(transcript)
        fresh = row_of(
            row.id, row.place, None if header is None else caught_up(header, transcript.counters), transcript
        )
        transcript.close()
    except (OSError, ForeignWrite):
        return row
    return fresh


# Looking again


def look(unit: SessionUnit) -> News:
    """Bring the unit's base in line with its file. A file that is missing makes the unit `gone`, nothing else."""
    news = News()
    try:
        if unit.transcript is None:
            if unit.row is None and not unit.folder.exists():
                unit.header, unit.gone = None, True
                return news
            unit.transcript = Transcript.load(unit.folder / "session.jsonl", unit.directory)
        row, transcript = unit.row, unit.transcript
        if row is None or row.fingerprint != transcript.fingerprint or row.body is None:
            news = _met(unit, transcript)
        else:
            unit.header = row.stored if row.readable else None
        if not transcript.check():
            foreign = transcript.reload()
            more = _reloaded(unit, transcript, foreign)
            news = News(news.changes + more.changes, more.restore)
    except FileNotFoundError:
        if unit.transcript is not None:
            unit.transcript.close()
        unit.transcript, unit.header, unit.gone = None, None, True
    return news


def _met(unit: SessionUnit, transcript: Transcript) -> News:
    """The file was read whole for the first time, or again after it was changed while we had no eye on it."""
    from craftd.workspace.sessions import caught_up

    old = unit.row
    header = readable_header(transcript)
    unit.header = None if header is None else caught_up(header, transcript.counters)
    if unit.header is None and old is not None and old.readable:
        unit.header = old.stored  # a broken line 1 never replaces the last good one in memory
    unit.rebase()
    if old is None:
        created = Change("sessions/didCreate", "sessions", {"item": unit.row.item().as_json()}, unit.id)  # type: ignore[union-attr]
        return News([created, *_damage_changes(unit, None)])
    changes = _header_changes(unit, old)
    if old.body is not None and old.fingerprint != transcript.fingerprint:
        verdict = compare_body(unit.folder / "session.jsonl", old.body)
        if verdict == "appended":
            changes = _appended(unit, transcript, _position_behind(transcript, old.body)) + changes
        elif verdict == "changed":
            changes = _replaced(unit, transcript) + changes
    return News(changes + _damage_changes(unit, old))


def _reloaded(unit: SessionUnit, transcript: Transcript, foreign: Foreign) -> News:
    """Somebody wrote while the transcript was open: three-way merge of line 1, single changes of the lines."""
    from craftd.workspace.sessions import caught_up

    old = unit.row
    assert old is not None
    mine = old.stored if old.readable else None
    if readable_header(transcript) is None or foreign.header_after is None:
        unit.header = mine
    elif mine is None:
        unit.header = caught_up(foreign.header_after, transcript.counters)
    else:
        merged = patches.merge(foreign.header_before or mine, mine, foreign.header_after)
        unit.header = caught_up(merged, transcript.counters)
    unit.rebase(behind=old.behind)
    restore = [parse_line(line, unit.directory) for line in foreign.lost_own]
    changes: list[Change] = []
    if not foreign.in_order:
        changes += _replaced(unit, transcript)
    else:
        gone = list(foreign.deleted)
        if restore and foreign.appended:  # what goes back now stands behind theirs
            gone += [record["id"] for record in restore if isinstance(record.get("id"), str)]
        if gone:
            members = {"session": unit.id, "ids": gone}
            changes.append(Change("messages/didDelete", "messages", members, unit.id))
        changes += _changed(unit, transcript, foreign.changed)
        if foreign.appended:
            changes += _appended(unit, transcript, foreign.appended[0])
    changes += _header_changes(unit, old) + _damage_changes(unit, old)
    return News(changes, restore)


def moved(news_changes: Sequence[Change]) -> bool:
    """Whether readers were told that restored messages lost their place."""
    return any(change.method in ("messages/didDelete", "messages/didTruncate") for change in news_changes)


def _header_changes(unit: SessionUnit, old: SessionRow) -> list[Change]:
    from craftd.workspace.sessions import header_changed

    return header_changed(unit, old.value, unit.value())


def _changed(unit: SessionUnit, transcript: Transcript, positions: Sequence[int]) -> list[Change]:
    from craftd.workspace.sessions import event_body

    changes = []
    for position in positions:
        segment = transcript.read(position, position + 1)[0]
        if segment.record is not None:
            members = {
                "session": unit.id,
                "id": message_id(segment),
                "version": version_of(segment.record),
                "item": event_body(segment.record),
            }
            changes.append(Change("messages/didChange", "messages", members, unit.id))
    return changes


def _replaced(unit: SessionUnit, transcript: Transcript) -> list[Change]:
    keep = Change("messages/didTruncate", "messages", {"session": unit.id, "keep": 0}, unit.id)
    return [keep, *_appended(unit, transcript, 0)]


def _appended(unit: SessionUnit, transcript: Transcript, first: int) -> list[Change]:
    """`messages/didAppend` for everything from position *first* on, in pieces that fit into events."""
    from craftd.workspace.sessions import appended

    changes: list[Change] = []
    records: list[Record] = []
    size, index = 0, None
    for start in range(first, len(transcript), 256):
        for segment in transcript.read(start, start + 256):
            if segment.record is None or segment.index is None:
                continue
            index = segment.index if index is None else index
            records.append(segment.record)
            size += segment.length
            if size >= EVENT_BYTES:
                changes.append(appended(unit.id, index, records, transcript.count))
                records, size, index = [], 0, None
    if records and index is not None:
        changes.append(appended(unit.id, index, records, transcript.count))
    return changes


def message_id(segment: Segment) -> str:
    """How a client names the line: its id, `#<index>` without one, `~<byte offset>` when it cannot be read."""
    if segment.record is None:
        return f"~{segment.offset}"
    id = segment.record.get("id")
    return id if isinstance(id, str) and id else f"#{segment.index}"


def readable_header(transcript: Transcript) -> Record | None:
    """Line 1, if it is a header one can believe."""
    if any(damage.code in ("header-unreadable", "header-missing") for damage in transcript.damage):
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


def damage_json(damage: Damage) -> dict[str, Any]:
    members: dict[str, Any] = {"code": damage.code}
    if damage.line is not None:
        members["line"] = damage.line
    return {**members, "message": damage.message}


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


_MILD = frozenset({"id-mismatch", "id-repeated", "count-mismatch", "rescued", "linked"})


def _line_range(line: int) -> dict[str, Any]:
    return {"start": {"line": line - 1, "character": 0}, "end": {"line": line, "character": 0}}


def _damage_changes(unit: SessionUnit, old: SessionRow | None) -> list[Change]:
    path = issue_path(unit.id)
    before = {path: damage_issues(unit.id, old.damage)} if old is not None and old.damage else {}
    after = {path: damage_issues(unit.id, unit.row.damage)} if unit.row is not None and unit.row.damage else {}
    return issue_changes(before, after)


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
            if any(os.path.lexists(os.path.join(entry.path, name)) for name in ("session.jsonl", "session.jsonl.tmp")):
                continue
            if now - entry.stat().st_mtime_ns // 1_000_000 < EMPTY_AFTER_MS:
                continue
        except OSError:
            continue
        path = f"sessions/{entry.name}"
        message = "a folder without session.jsonl is no session"
        found[path] = [Issue(path=path, message=message, code="no-transcript", severity="warning")]
    return found


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
        if any(atomic.fingerprint(root / path) != mark for path, mark in document.prints.items()):
            changed.add(key)
    return changed
