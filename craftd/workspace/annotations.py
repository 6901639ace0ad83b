"""Commits that change the annotations of a message. To readers they are changes of the message."""

from __future__ import annotations

from attrs import define

from craftd.errors import (
    AlreadyExists,
    Corrupt,
    InvalidState,
    NotFound,
    Ref,
    TooLarge,
    ValidationFailed,
    VersionConflict,
)
from craftd.model import annotations as marks
from craftd.model import messages
from craftd.model.records import Item, Record, version_of
from craftd.workspace import reading, telling
from craftd.workspace.changes import Updated
from craftd.workspace.commit import Planned
from craftd.workspace.messages import MessageCommit
from craftd.workspace.sessions import SessionUnit
from craftd.workspace.workspace import Workspace


def item_of(annotation: Record) -> Item:
    return Item(str(annotation.get("id")), version_of(annotation), annotation)


async def one(workspace: Workspace, session: str, message: str, id: str) -> Item:
    """The annotation *id* of a message. Raises: NotFound."""
    listed = marks.of((await reading.one(workspace, session, message)).value)
    place = marks.place_of(listed, id)
    if place is None:
        raise NotFound(Ref("annotations", id, workspace.id))
    return item_of(listed[place])


@define(eq=False, kw_only=True)
class AnnotationCommit(MessageCommit):
    """A change of what one message has. expected: version of the annotation."""

    def _message(self, unit: SessionUnit) -> tuple[int, Record]:
        """Where the message stands, and what it says. Raises: NotFound, Corrupt, and what `require_writable` does."""
        unit.require_writable()
        position = self._find(unit)
        if position is None:
            raise NotFound(self.ref)
        record = unit.draft.read(position).record
        if record is None:
            uri = (unit.folder / "session.jsonl").as_uri()
            raise Corrupt(f"{self.ref} cannot be read: there is nothing to annotate", uri, self.ref)
        if not isinstance(record.get("annotations", []), list | None):
            raise InvalidState(f"what {self.ref} has as annotations is no list", "unsound")
        return position, record

    def _check(self, value: Record, old: Record | None, message: Record) -> None:
        if issues := marks.validate(value, old, str(message.get("id"))):
            raise ValidationFailed(tuple(issues), Ref("annotations", str(value.get("id"))))
        if (size := marks.size(value)) > marks.MOST_BYTES:
            raise TooLarge("the annotation", marks.MOST_BYTES, size)

    def _expect_annotation(self, annotation: Record) -> None:
        item = item_of(annotation)
        if self.expected is not None and item.version != self.expected:
            current = {"version": item.version, "item": item.as_json()}
            raise VersionConflict(Ref("annotations", item.id), current)

    def _stage(
        self, unit: SessionUnit, position: int, message: Record, listed: list[Record], answer: object
    ) -> Planned:
        old = unit.value()
        new = marks.with_annotations(message, listed)
        if issues := messages.validate_change(message, new):
            raise ValidationFailed(tuple(issues), self.ref)
        size = unit.replace(position, new)
        name = reading.item_of(unit.draft.read(position)).id
        change = telling.message_changed(unit.id, name, message, new, size)
        return Planned(answer, [change, *unit.changed_since(old)])


@define(eq=False, kw_only=True)
class CreateAnnotation(AnnotationCommit):
    """Answers the new Item. annotation: the id that was asked for."""

    annotation: str | None = None
    value: Record

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        position, message = self._message(unit)
        id = message.get("id")
        if not isinstance(id, str) or not id:
            raise InvalidState(f"{self.ref} has no id that an annotation could name", "unnamed")
        listed = marks.of(message)
        wanted = self.value if self.annotation is None else {**self.value, "id": self.annotation}
        made = marks.created(wanted, unit.id, id, now, unit.pick)
        self._check(made, None, message)
        place = marks.place_of(listed, made["id"])
        if place is not None:
            raise AlreadyExists(Ref("annotations", made["id"]), item_of(listed[place]).as_json())
        if len(listed) >= marks.MOST:
            raise InvalidState(f"{self.ref} has {len(listed)} annotations, and {marks.MOST} are the most", "full")
        return self._stage(unit, position, message, [*listed, made], item_of(made))


@define(eq=False, kw_only=True)
class UpdateAnnotation(AnnotationCommit):
    """Answers Updated."""

    annotation: str
    patch: Record

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        position, message = self._message(unit)
        listed = marks.of(message)
        place = marks.place_of(listed, self.annotation)
        if place is None:
            raise NotFound(Ref("annotations", self.annotation))
        old = listed[place]
        self._expect_annotation(old)
        new = marks.patched(old, self.patch, now)
        if new is old:
            unit.confirm()
            return Planned(Updated(item_of(old), changed=False))
        self._check(new, old, message)
        updated = [*listed[:place], new, *listed[place + 1 :]]
        return self._stage(unit, position, message, updated, Updated(item_of(new), changed=True))


@define(eq=False, kw_only=True)
class DeleteAnnotation(AnnotationCommit):
    annotation: str
    missing_ok: bool = False

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        position, message = self._message(unit)
        listed = marks.of(message)
        place = marks.place_of(listed, self.annotation)
        if place is None:
            if self.missing_ok:
                return Planned(None)
            raise NotFound(Ref("annotations", self.annotation))
        self._expect_annotation(listed[place])
        return self._stage(unit, position, message, [*listed[:place], *listed[place + 1 :]], None)
