"""Annotations of a message: highlights, notes and questions about a part of it.  App 0.11.1, AnnotationV1.

They stand in the message's `annotations`, in the order they were made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from craftd.errors import Issue
from craftd.model import checks, json_text
from craftd.model import patch as patches
from craftd.model.checks import Check
from craftd.model.ids import random_id
from craftd.model.json_text import equal
from craftd.model.patch import Patch
from craftd.model.records import Record

MOST = 200
"""Annotations of one message."""
MOST_BYTES = 32 * 1024
"""Of one annotation as JSON text."""
ID = re.compile(r"[^\x00-\x1f]{1,200}")


def of(message: Record) -> list[Any]:
    """What *message* has; [] where that is no list."""
    found = message.get("annotations")
    return found if isinstance(found, list) else []


def place_of(annotations: Sequence[Any], id: str) -> int | None:
    """Where the annotation *id* stands; of equal ids the first is meant."""
    return next((at for at, one in enumerate(annotations) if isinstance(one, dict) and one.get("id") == id), None)


def created(value: Record, session: str, message: str, now: int, pick: Callable[[int], int]) -> Record:
    """The annotation to store for a client's *value*: with an id and a time, about this message of this session."""
    whole: Record = {
        "id": value.get("id") or random_id("ann", now, pick),
        "schemaVersion": 1,
        "createdAt": now,
        "body": [],
    }
    whole |= {name: member for name, member in value.items() if name not in ("id", "schemaVersion")}
    target = whole.get("target")
    if isinstance(target, dict):
        source = target.get("source")
        about = {**source, "sessionId": session} if isinstance(source, dict) else {"sessionId": session}
        whole["target"] = {**target, "source": {**about, "messageId": about.get("messageId", message)}}
    return whole


def patched(old: Record, patch: Patch, now: int) -> Record:
    """The stored annotation *old* after *patch*; the same value if nothing changes."""
    new = patches.apply(old, patch)
    return old if equal(old, new) else {**new, "updatedAt": now}


def with_annotations(message: Record, annotations: Sequence[Any]) -> Record:
    """*message* with these annotations, `type` last where it was."""
    new = {**message, "annotations": list(annotations)}
    if "annotations" not in message and next(reversed(message), None) == "type":
        new["type"] = new.pop("type")
    return new


def merged(base: Sequence[Any], mine: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
    """Both changes of what a message has, annotation by annotation and member by member; *theirs* where both differ."""
    before, ours, others = by_id(base), by_id(mine), by_id(theirs)
    if before is None or ours is None or others is None:
        return list(theirs)
    return list(patches.merge(before, ours, others).values())


def by_id(annotations: Sequence[Any]) -> dict[str, Record] | None:
    """None where they cannot be told from each other so."""
    found = {one["id"]: one for one in annotations if isinstance(one, dict) and isinstance(one.get("id"), str)}
    return found if len(found) == len(annotations) else None


def size(annotation: Record) -> int:
    """Bytes of its JSON text."""
    return len(json_text.dumps(annotation))


def validate(value: Record, old: Record | None, message: str) -> list[Issue]:
    """What is wrong with the annotation *value* of *message*, or as the successor of *old*."""
    found = list(_judge(value, old))
    target = value.get("target")
    source = target.get("source") if isinstance(target, dict) else None
    if old is None and isinstance(source, dict) and source.get("messageId") != message:
        found.append(Issue(path="target.source.messageId", message=f"must be {message!r}, the message it belongs to"))
    if old is not None:
        for name in ("id", "schemaVersion"):
            if not equal(old.get(name), value.get(name)):
                found.append(Issue(path=name, message="cannot be changed"))
        if not equal(_source(old), _source(value)):
            found.append(Issue(path="target.source", message="cannot be changed"))
    return found


def _source(value: Record) -> Any:
    target = value.get("target")
    return target.get("source") if isinstance(target, dict) else None


def _judge(value: Record, old: Record | None) -> Iterator[Issue]:
    """Members that are as they were are nobody's fault now."""
    for issue in _ANNOTATION(value, ""):
        first = issue.path.partition(".")[0]
        if old is None or not equal(old.get(first), value.get(first)) or (first in old) != (first in value):
            yield issue


def _number(value: Any, path: str) -> Iterator[Issue]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield Issue(path=path, message="must be a number", code="schema")


def _key(value: Any, path: str) -> Iterator[Issue]:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        yield Issue(path=path, message="must be text or a number", code="schema")


def _filled(inner: Check) -> Check:
    listed = checks.listing(inner)

    def check(value: Any, path: str) -> Iterator[Issue]:
        yield from listed(value, path)
        if value == []:
            yield Issue(path=path, message="must not be empty", code="schema")

    return check


def _by_type(shapes: dict[str, Check]) -> Check:
    """An object whose `type` says what else it has; a type nobody knows may be of a newer app."""
    typed = checks.shape({"type": checks.text(empty=False)}, ("type",))

    def check(value: Any, path: str) -> Iterator[Issue]:
        yield from typed(value, path)
        if isinstance(value, dict) and isinstance(value.get("type"), str) and value["type"] in shapes:
            yield from shapes[value["type"]](value, path)

    return check


_TEXT = checks.text()
_BODY = _by_type(
    {
        "note": checks.shape({"text": _TEXT, "format": _TEXT}, ("text",)),
        "tag": checks.shape({"value": _TEXT}, ("value",)),
    }
)
_SELECTOR = _by_type(
    {
        "text-quote": checks.shape({"exact": _TEXT, "prefix": _TEXT, "suffix": _TEXT}, ("exact",)),
        "text-position": checks.shape(
            {"start": checks.whole, "end": checks.whole, "textVersion": _TEXT}, ("start", "end")
        ),
        "block": checks.shape({"blockType": _TEXT, "path": _TEXT, "blockId": _TEXT}, ("blockType", "path")),
        "xywh": checks.shape(
            {"unit": _TEXT, **dict.fromkeys(("x", "y", "w", "h", "page", "rotation"), _number)},
            ("unit", "x", "y", "w", "h"),
        ),
        "table-cell": checks.shape({"rowKey": _key, "columnKey": _key}, ("rowKey", "columnKey")),
    }
)
_ANNOTATION = checks.shape(
    {
        "id": checks.text(pattern=ID, what="must have 1 to 200 characters, none of them a control character"),
        "createdAt": checks.whole,
        "updatedAt": checks.whole,
        "deletedAt": checks.whole,
        "createdBy": checks.shape({"id": _TEXT, "name": _TEXT, "type": _TEXT}),
        "body": checks.listing(_BODY),
        "target": checks.shape(
            {
                "source": checks.shape({"sessionId": _TEXT, "messageId": _TEXT}, ("sessionId", "messageId")),
                "selectors": _filled(_SELECTOR),
            },
            ("source", "selectors"),
        ),
        "intent": _TEXT,
        "status": _TEXT,
        "threadRef": checks.shape({"threadId": _TEXT, "sessionId": _TEXT}),
        "style": checks.shape({"color": _TEXT, "opacity": _number}),
        "meta": checks.mapping(checks.anything),
    },
    ("id", "createdAt", "body", "target"),
)
