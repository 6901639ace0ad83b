"""Commits that change the messages of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field

from craftd.errors import (
    AlreadyExists,
    Busy,
    Corrupt,
    InvalidParams,
    Issue,
    NotFound,
    Ref,
    ValidationFailed,
    VersionConflict,
)
from craftd.model import auto_labels, header_rules, json_text, label_entries, messages, sessions
from craftd.model import patch as patches
from craftd.model.ids import new_message_id
from craftd.model.records import Item, Record, version_of
from craftd.store.transcript import Stale
from craftd.workspace import kept_out, telling
from craftd.workspace.changes import Updated
from craftd.workspace.commit import Planned
from craftd.workspace.journal import Change
from craftd.workspace.reading import item_of
from craftd.workspace.sessions import SessionCommit, SessionUnit


@define(eq=False, kw_only=True)
class AppendMessages(SessionCommit):
    """Answers `[{id, version}]`, one per message given; one that is stored already is not stored again.

    labels: all there are. Where their rules find something in what a user says, the session gets it with the message.
    mode: what holds for a session that has no permission mode of its own. known: see CreateSession.
    """

    messages: Sequence[Any]
    labels: Callable[[], Mapping[str, Record]]
    known: Callable[[str, str], bool] = lambda noun, id: True
    mode: Callable[[Record], str | None] = lambda value: None
    expected_tail: str | None = None
    set: Record | None = None
    _stored: dict[int, Record] = field(factory=dict, init=False)
    """What became of each message at the first try: a second one must find it again by the id it got."""
    _found: list[str] | None = field(default=None, init=False)
    """Labels for what is said in them, once that was looked for."""

    @property
    def rewrites(self) -> bool:  # type: ignore[override]
        return bool(self.set or self._found)

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        stored = unit.require_writable()
        self._validate()
        if self.expected_tail is not None and unit.draft.tail != self.expected_tail and not self._all_there(unit):
            raise VersionConflict(unit.ref, {"tail": unit.draft.tail})
        new: list[Record] = []
        files: kept_out.Files = {}
        answer: list[dict[str, str]] = []
        for at, given in enumerate(self.messages):
            record = self._stored.get(at) or messages.normalise(given)
            id = record.get("id")
            twin = None if id is None else (_by_id(new, id) or unit.draft.recent(id))
            if twin is not None:
                if not any(same_message(twin, form) for form in kept_out.forms(record, unit.directory)):
                    shown = {"id": id, "version": version_of(twin), "value": twin}
                    raise AlreadyExists(Ref("messages", str(id)), shown)
                record = twin
                unit.confirm()
            else:
                whole = self._stored[at] = complete(record, now, unit.pick)
                record, more = unit.to_store(whole)
                new.append(record)
                files |= more
            answer.append({"id": record["id"], "version": version_of(record)})
        if not new and not self.set:
            return Planned(answer)
        old = unit.value()
        wanted = self._labelled(self._set(old, unit, now), new)
        header = None
        if wanted is not old and patches.diff(old, wanted):
            header = sessions.ordered(sessions.to_stored(stored, old, wanted, unit.place.home))
        index = unit.draft.count
        changes: list[Change] = []
        if new:
            unit.keep(files)
            sizes = unit.append(new, header)
            changes.append(telling.appended(unit.id, index, new, sizes, unit.draft.count))
        elif header is not None:
            unit.change(header)
        changes += unit.changed_since(old)
        return Planned(answer, changes)

    def _set(self, old: Record, unit: SessionUnit, now: int) -> Record:
        if not self.set:
            return old
        wanted = header_rules.patched(old, {"set": self.set}, unit.directory, now, self.mode)
        wanted, wrong = label_entries.settle(wanted, old, self.labels())
        issues = [*sessions.validate(wanted, old), *header_rules.issues(wanted, old), *wrong]
        issues += unit.index.references(unit.id, wanted, old, self.known)
        if issues:
            raise InvalidParams(tuple(Issue(path=f"set.{i.path}", message=i.message) for i in issues))
        return wanted

    def _labelled(self, value: Record, new: Sequence[Record]) -> Record:
        """Raises: Stale once, when there is something: line 1 of a long file is better made ready outside the queue."""
        said = [record["content"] for record in new if record.get("type") == "user" and record.get("content")]
        if self._found is None:
            rules = auto_labels.rules_of(self.labels()) if said else []
            self._found = [entry for text in said for entry in auto_labels.found_in(text, rules)] if rules else []
            if self._found and label_entries.with_entries(value, self._found) is not value:
                raise Stale
        return label_entries.with_entries(value, self._found if said else ())

    def _validate(self) -> None:
        issues = []
        for at, given in enumerate(self.messages):
            if not isinstance(given, dict):
                issues.append(Issue(path=f"messages.{at}", message="must be an object"))
                continue
            for issue in messages.validate({"id": "given-later", **messages.normalise(given)}):
                issues.append(Issue(path=f"messages.{at}.{issue.path}", message=issue.message))
        if issues:
            raise InvalidParams(tuple(issues))

    def _all_there(self, unit: SessionUnit) -> bool:
        """A repeat of an append that was carried out: its own messages moved the tail."""
        ids = [given.get("id") for given in self.messages]
        return bool(ids) and all(isinstance(id, str) and unit.draft.recent(id) is not None for id in ids)


def _by_id(records: Sequence[Record], id: object) -> Record | None:
    return next((record for record in records if record.get("id") == id), None)


def same_message(stored: Record, given: Record) -> bool:
    """Whether *given* (normalised) is what is stored; the time we put in for the caller does not count."""
    if "timestamp" not in given:
        stored = {name: value for name, value in stored.items() if name != "timestamp"}
    return json_text.canonical(stored) == json_text.canonical(given)


def complete(record: Record, now: int, pick: Callable[[int], int]) -> Record:
    """*record* with an id and a time, at their usual places."""
    whole = {"id": record.get("id") or new_message_id(now, pick), **record}
    if whole.get("timestamp") is None:
        whole = {**{name: value for name, value in whole.items() if name != "type"}, "timestamp": now}
        whole["type"] = record["type"]
    return whole


@define(eq=False, kw_only=True)
class MessageCommit(SessionCommit):
    """A change of one message. message: its id, `#<index>`, or a damaged line as `~<byte offset>`."""

    rewrites = True
    message: str
    expected: str | None = None

    def _find(self, unit: SessionUnit) -> int | None:
        """Raises: Busy while it is owed: a foreign save dropped it, and it is about to be put back."""
        position = unit.draft.find(self.message)
        if position is None and any(debt.id == self.message for debt in unit.owed):
            raise Busy(f"{self.ref} was dropped by another program and is being put back", 1000)
        return position

    @property
    def ref(self) -> Ref:
        return Ref("messages", self.message)

    def _expect(self, item: Item) -> None:
        if self.expected is not None and item.version != self.expected:
            raise VersionConflict(self.ref, {"version": item.version, "item": item.as_json()})


@define(eq=False, kw_only=True)
class UpdateMessage(MessageCommit):
    """Answers Updated."""

    patch: Record

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        unit.require_writable()
        position = self._find(unit)
        if position is None:
            raise NotFound(self.ref)
        there = unit.draft.read(position)
        item = item_of(there)
        self._expect(item)
        if there.record is None:
            uri = (unit.folder / "session.jsonl").as_uri()
            raise Corrupt(f"{self.ref} cannot be read: delete it, and append what it should be", uri, self.ref)
        record, files = unit.to_store(messages.patched(there.record, self.patch), there.record)
        if not patches.diff(there.record, record):
            return Planned(Updated(item, changed=False))
        issues = messages.validate_change(there.record, record)
        if issues:
            raise ValidationFailed(tuple(issues), self.ref)
        old = unit.value()
        unit.keep(files)
        size = unit.replace(position, record)
        change = telling.message_changed(unit.id, item.id, there.record, record, size)
        return Planned(Updated(item_of(unit.draft.read(position)), changed=True), [change, *unit.changed_since(old)])


@define(eq=False, kw_only=True)
class DeleteMessage(MessageCommit):
    """Take one line out. Of one that could not be read as it stands the bytes are kept beside the transcript."""

    missing_ok: bool = False

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        unit.require_writable()
        position = self._find(unit)
        if position is None:
            if self.missing_ok:
                return Planned(None)
            raise NotFound(self.ref)
        item = item_of(unit.draft.read(position))
        self._expect(item)
        old = unit.value()
        unit.take_out([position])
        return Planned(None, [telling.message_deleted(unit.id, item.id), *unit.changed_since(old)])


@define(eq=False, kw_only=True)
class TruncateMessages(SessionCommit):
    """Leave the first *keep* messages, or those up to *after*, and take out every line behind; 0 clears the session."""

    rewrites = True
    keep: int | None = None
    after: str | None = None

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        stored = unit.require_writable()
        if unit.owed:
            raise Busy(f"{unit.ref} was saved by another program and is being mended", 1000)
        draft = unit.draft
        keep = draft.count if self.keep is None else self.keep
        if self.after is not None:
            last = draft.find(self.after)
            index = None if last is None else draft.index_of(last)
            if index is None:
                raise NotFound(Ref("messages", self.after))
            keep = index + 1
        old, count = unit.value(), draft.count
        header = sessions.cleared(stored) if keep == 0 else stored
        if keep >= count and (keep or json_text.equal(header, stored)):
            return Planned(None)
        first = 0 if keep == 0 else _behind(draft.position_of(keep - 1))
        unit.take_out(draft.there(first), header)
        told = [telling.truncated(unit.id, keep)] if keep < count else []
        return Planned(None, [*told, *unit.changed_since(old)])


def _behind(position: int | None) -> int:
    assert position is not None
    return position + 1
