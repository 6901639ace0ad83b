"""Published records as the index holds them: cheap to keep, computed when first looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from craftd.model import json_text, sessions
from craftd.model.records import Item, Record, milliseconds, version_of
from craftd.store.atomic import Fingerprint
from craftd.store.lines import BODY_DAMAGE, Body
from craftd.store.sound import Sound
from craftd.store.table import Damage
from craftd.store.transcript import Transcript
from craftd.workspace.live import Live

ALL = ("*",)


@frozen
class Place:
    """Where a workspace is. root: its real folder; home: what `~` in stored paths stands for. live: what is true of its
    sessions only now."""

    root: Path
    home: str
    live: Live = field(factory=Live, eq=False)

    def folder(self, session: str) -> Path:
        return self.root / "sessions" / session

    def directory(self, session: str) -> str:
        """The same as text, for what is done for every session."""
        return f"{self.root}/sessions/{session}"


@define(eq=False)
class PlainRow:
    """One record of a noun whose files are small. unit: the document it lives in, relative to the workspace; place:
    where it stands in there."""

    id: str
    unit: str
    value: Record
    version: str
    info: dict[str, Any]
    light: tuple[str, ...] | None
    place: int = 0
    _text: bytes | None = None

    def item(self) -> Item:
        return Item(self.id, self.version, self.value, self.info)

    def text(self, fields: tuple[str, ...] | None = None) -> bytes:
        if fields is not None:
            return json_text.dumps(self.item().as_json(None if fields == ALL else fields))
        if self._text is None:
            self._text = json_text.dumps_to_keep(self.item().as_json(self.light))
        return self._text


@define(eq=False)
class SessionRow:
    """One session. header: JSON text of line 1 as it would be written now, lazy values included; b"" = unreadable.

    derived: what the lines say where line 1 cannot (damaged headers). fingerprint: of the file this row was read
    from. body: length and digest of the bytes behind line 1, None until the file was read whole once; lines: how many
    of them are listed, messages and damaged ones, 0 until then.
    away: what body was when the daemon last stopped, if nobody was told yet what became of it.
    behind: line 1 on disk does not have the lazy values yet. at: sort value of lastMessageAt, ms.
    """

    id: str
    place: Place
    header: bytes
    fingerprint: Fingerprint | None
    at: int
    derived: Record = field(factory=dict)
    damage: tuple[dict[str, Any], ...] = ()
    body: Body | None = None
    lines: int = 0
    away: Body | None = None
    behind: bool = False
    _stored: Record | None = None
    _value: Record | None = None
    _version: str | None = None
    _text: bytes | None = None

    @property
    def stored(self) -> Record:
        """Line 1 in stored form. Not to be changed."""
        if self._stored is not None:
            return self._stored
        parsed: Record = json_text.loads(self.header) if self.header else {}
        return parsed

    def remember(self, stored: Record, value: Record, version: str) -> None:
        """Spare the next change of this session what the one that led here knew: `header` parsed, and what follows."""
        self._stored, self._value, self._version = stored, value, version

    def remembers(self, stored: Record) -> bool:
        """Whether *stored* is what `value` shows."""
        return self._stored is stored

    @property
    def readable(self) -> bool:
        return bool(self.header)

    @property
    def is_unread(self) -> bool:
        """Whether it counts as unread. Parses nothing but what says so."""
        if b'"hasUnread":true' not in self.header:
            return False
        stored = self.stored
        kept_out = stored.get("hidden") is True or stored.get("isArchived") is True
        return stored.get("hasUnread") is True and not kept_out

    @property
    def value(self) -> Record:
        if self._value is None:
            self._value = self._view(self.stored)
        return self._value

    def _view(self, stored: Record) -> Record:
        if not self.readable:
            return dict(self.derived)
        return sessions.view(stored, self.place.directory(self.id), str(self.place.root), self.place.home)

    @property
    def version(self) -> str:
        if self._version is None:
            self._version = version_of(self.stored, sessions.VOLATILE)
        return self._version

    @property
    def info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"damage": list(self.damage)} if self.damage else {}
        activity = self.place.live.activity(self.id)
        return info if activity is None else {**info, "activity": activity}

    def item(self) -> Item:
        return Item(self.id, self.version, self.value, self.info)

    def text(self, fields: tuple[str, ...] | None = None) -> bytes:
        if fields is None and self.place.live.activity(self.id) is not None:
            fields = sessions.LIGHT  # not to be kept: it passes
        if fields is not None:
            return json_text.dumps(self._listed().as_json(None if fields == ALL else fields))
        if self._text is None:
            self._text = json_text.dumps_to_keep(self._listed().as_json(sessions.LIGHT))
        return self._text

    def _listed(self) -> Item:
        """The item without keeping its value: of 10,000 listed sessions they would be most of the memory."""
        if self._value is not None:
            return self.item()
        stored = self.stored
        if self._version is None:
            self._version = version_of(stored, sessions.VOLATILE)
        return Item(self.id, self._version, self._view(stored), self.info)


def row_of(id: str, place: Place, header: Record | None, transcript: Transcript) -> SessionRow:
    """The published form of a session whose file was read whole; *header*: as it would be written now."""
    counters = transcript.counters
    return SessionRow(
        id=id,
        place=place,
        header=b"" if header is None else header_text(header),
        fingerprint=transcript.fingerprint,
        at=sort_time(header if header is not None else {"lastMessageAt": counters.last_timestamp}),
        derived={"id": id, **counters.header_fields()},
        damage=tuple(map(damage_json, transcript.damage)),
        body=transcript.body(),
        lines=len(transcript),
    )


def sound_of(row: SessionRow | None) -> Sound | None:
    """What was found when the file of *row* was read whole, if nothing was wrong with its lines."""
    if row is None or row.body is None or any(damage["code"] in BODY_DAMAGE for damage in row.damage):
        return None
    return Sound(row.body, row.lines, row.derived)


def header_text(header: Record) -> bytes:
    """Stored form as text: what a row keeps of line 1."""
    return json_text.dumps_to_keep(header)


def sort_time(header: Record) -> int:
    """What the default order goes by: last message, else last use; ms, 0 when neither is a time."""
    for name in ("lastMessageAt", "lastUsedAt"):
        if (at := milliseconds(header.get(name))) is not None:
            return at
    return 0


def damage_json(damage: Damage) -> dict[str, Any]:
    members: dict[str, Any] = {"code": damage.code}
    if damage.line is not None:
        members["line"] = damage.line
    return {**members, "message": damage.message}
