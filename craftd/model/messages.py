"""Messages of a transcript: their kinds, what is stored of one, and the counters a header derives from them.

Source: app 0.11.1, golden `vectors.preview` and `vectors.headerComputed`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import frozen

from craftd.errors import Issue
from craftd.model import annotations as marks
from craftd.model import patch as patches
from craftd.model.json_text import JS_WHITESPACE, utf16_cut, utf16_length
from craftd.model.noun import Noun
from craftd.model.patch import Patch
from craftd.model.portable import TOKEN, occurrences
from craftd.model.records import Record, milliseconds

MESSAGE_TYPES = frozenset({"user", "assistant", "tool", "error", "status", "info", "warning", "plan", "auth-request"})
LAST_ROLES = frozenset({"user", "assistant", "plan", "tool", "error"})
"""Types that `lastMessageRole` names; after another type the field is absent."""

MAX_ID = 200
PREVIEW_UNITS = 150
"""UTF-16 units of a preview, as it is on disk: a path below the session folder counts as its token."""

_LIVE_ONLY = ("isStreaming", "isPending", "role")
_WORD = "[A-Za-z0-9_-]+"
_NOISE = tuple(
    (re.compile(pattern), end)
    for pattern, end in (
        (r"(?s)<edit_request>.*?</edit_request>", "</edit_request>"),
        (r"<[^>]+>", ">"),
        (rf"\[skill:(?:{_WORD}:)?{_WORD}\]", "]"),
        (rf"\[source:{_WORD}\]", "]"),
        (r"\[file:[^\]]+\]", "]"),
        (r"\[folder:[^\]]+\]", "]"),
    )
)
_BLANKS = re.compile(f"[{JS_WHITESPACE}]+")


@frozen
class Counters:
    """What a header says about its messages, advanced message by message.

    last_timestamp: milliseconds, of the last message that has one. last_final_id: the last assistant message that is
    not intermediate and has an id. preview is settled by the first user message, even if that one gives none.
    directory: the session's folder, for cutting the preview (see `preview`).
    """

    count: int = 0
    last_role: str | None = None
    last_final_id: str | None = None
    preview: str | None = None
    preview_done: bool = False
    last_timestamp: int | None = None
    last_id: str | None = None
    directory: str = ""

    def add(self, record: Record) -> Counters:
        """The counters after *record* (as `portable.parse_line` returns it) was appended."""
        return self.extend((record,))

    def extend(self, records: Iterable[Record]) -> Counters:
        """The counters after all *records* were appended, in order."""
        count, role, last_final = self.count, self.last_role, self.last_final_id
        text, done, timestamp, last_id = self.preview, self.preview_done, self.last_timestamp, self.last_id
        for record in records:
            count += 1
            role = record.get("type")
            last_id = record.get("id")
            if role == "assistant":
                if is_final(record) and isinstance(last_id, str):
                    last_final = last_id
            elif role == "user" and not done:
                done = True
                text = preview(record.get("content"), self.directory)
            if (at := milliseconds(record.get("timestamp"))) is not None:
                timestamp = at
        if not (isinstance(role, str) and role in LAST_ROLES):
            role = None
        return Counters(count, role, last_final, text, done, timestamp, _string(last_id), self.directory)

    def header_fields(self) -> dict[str, Any]:
        """The computed header fields, absent where there is nothing to say."""
        fields = {
            "messageCount": self.count,
            "lastMessageRole": self.last_role,
            "preview": self.preview,
            "lastFinalMessageId": self.last_final_id,
        }
        return {name: value for name, value in fields.items() if value is not None}


def is_final(record: Record) -> bool:
    """Whether it is what an assistant has to say at the end of a turn: such a message makes a session unread."""
    return record.get("type") == "assistant" and not record.get("isIntermediate")


def preview(content: object, directory: str = "") -> str | None:
    """The beginning of a user message without mark-up; None if nothing is left.

    At most PREVIEW_UNITS, not ending in half a character, and not inside a path below *directory*: such a beginning
    could not be made portable any more.
    """
    if not isinstance(content, str):
        return None
    return _cut(clean(content), directory) or None


def clean(content: str) -> str:
    """*content* without edit requests, tags and mentions, on one line. An unclosed `<` stays."""
    for noise, end in _NOISE:
        # Behind the last end nothing can match; searching there costs quadratic time on a text full of beginnings.
        after = content.rfind(end) + len(end)
        if after >= len(end):
            content = noise.sub("", content[:after]) + content[after:]
    return _BLANKS.sub(" ", content).strip(JS_WHITESPACE)


def normalise(record: Record) -> Record:
    """*record* as a new message is stored: nothing of its live state, the runtime's `role` as `type`, `type` last."""
    stored = {key: value for key, value in record.items() if key not in _LIVE_ONLY and key != "type"}
    for name in ("type", "role"):
        if name in record:
            stored["type"] = record[name]
            break
    return stored


def patched(record: Record, patch: Patch) -> Record:
    """The stored message *record* after *patch*, its members where they stood and new ones before the last `type`."""
    new = {key: value for key, value in patches.apply(record, patch).items() if key in record or key not in _LIVE_ONLY}
    return _with_type_last(new, record)


def merged(base: Record, mine: Record, theirs: Record) -> Record:
    """Both changes of the stored message *base*, member by member; where both changed one, *theirs* stays.

    Of annotations each is a member.
    """
    both = patches.merge(base, mine, theirs)
    if isinstance(mine.get("annotations"), list) and isinstance(theirs.get("annotations"), list):
        both["annotations"] = marks.merged(marks.of(base), mine["annotations"], theirs["annotations"])
    return _with_type_last(both, theirs)


def _with_type_last(new: Record, old: Record) -> Record:
    """*new*, with `type` at its end if *old* has it there: that is where the app writes it."""
    if new.keys() <= old.keys() or next(reversed(old), None) != "type" or "type" not in new:
        return new
    return {**{key: value for key, value in new.items() if key != "type"}, "type": new["type"]}


def validate_change(old: Record, new: Record) -> list[Issue]:
    """What is wrong with *new* as the successor of *old*; faults that *old* had already are none of it."""
    known = {(issue.path, issue.message) for issue in validate(old)}
    issues = [issue for issue in validate(new) if (issue.path, issue.message) not in known]
    if old.get("id") != new.get("id"):
        issues.append(Issue(path="id", message="cannot be changed"))
    if not _is_finite(new):
        issues.append(Issue(path="", message="holds a number that JSON cannot say, and would lose it"))
    return issues


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def is_message(record: object) -> bool:
    """Whether a line is a message and no header: how a file without its header is recognised."""
    return (
        isinstance(record, dict)
        and isinstance(record.get("type"), str)
        and record["type"] in MESSAGE_TYPES
        and "content" in record
        and "createdAt" not in record
    )


def validate(record: Record) -> list[Issue]:
    """What is wrong with a message to store; unknown keys and unknown types are fine."""
    return [Issue(path=path, message=message) for path, message in _problems(record)]


def _problems(record: Record) -> Iterator[tuple[str, str]]:
    identity = record.get("id")
    if not (isinstance(identity, str) and 0 < len(identity) <= MAX_ID):
        yield "id", f"must be a string of 1 to {MAX_ID} characters"
    elif identity[0] in "#~":
        yield "id", "must not begin with # or ~, which address messages without an id"
    kind = record.get("type", record.get("role"))
    if not (isinstance(kind, str) and kind):
        yield "type", "must be a non-empty string"
    if not isinstance(record.get("content"), str):
        yield "content", "must be a string"
    for name, (accepted, wanted) in _FIELDS.items():
        if name in record and type(record[name]) not in accepted:
            yield name, f"must be {wanted}"
    for name in ("attachments", "badges", "annotations"):
        members = record.get(name)
        if isinstance(members, list):
            for index, member in enumerate(members):
                if not isinstance(member, dict):
                    yield f"{name}.{index}", "must be an object"
                elif name == "annotations" and marks.size(member) > marks.MOST_BYTES:
                    yield f"{name}.{index}", f"must have at most {marks.MOST_BYTES} bytes"
    if len(marks.of(record)) > marks.MOST:
        yield "annotations", f"must be at most {marks.MOST}"


_Kind = tuple[tuple[type, ...], str]
_STRING: _Kind = ((str,), "a string")
_BOOLEAN: _Kind = ((bool,), "a boolean")
_NUMBER: _Kind = ((int, float), "a number")
_LIST: _Kind = ((list,), "an array")
_OBJECT: _Kind = ((dict,), "an object")
_FIELDS: dict[str, _Kind] = {
    "timestamp": ((int,), "an integer (milliseconds)"),
    **dict.fromkeys(
        (
            "toolName", "toolUseId", "toolResult", "toolStatus", "toolIntent", "toolDisplayName", "parentToolUseId",
            "turnId", "taskId", "shellId", "statusType", "infoLevel", "errorCode", "errorTitle", "errorOriginal",
            "planPath", "authRequestId", "authSourceSlug", "authSourceName", "authRequestType", "authStatus",
        ),
        _STRING,
    ),
    **dict.fromkeys(("isIntermediate", "isError", "isBackground", "hidden", "isQueued", "errorCanRetry"), _BOOLEAN),
    **dict.fromkeys(("toolDuration", "elapsedSeconds"), _NUMBER),
    **dict.fromkeys(("attachments", "badges", "annotations", "errorDetails", "errorActions"), _LIST),
    **dict.fromkeys(("toolInput", "toolDisplayMeta"), _OBJECT),
}  # fmt: skip
"""Declared fields with their types; the values of enumerations are left to grow."""


def _cut(text: str, directory: str) -> str:
    left, end = PREVIEW_UNITS, 0
    for start, stop in occurrences(text, directory):
        gap = utf16_length(text[end:start])
        if gap > left:
            break
        if gap + len(TOKEN) > left:
            return text[:start]
        left -= gap + len(TOKEN)
        end = stop
    return text[:end] + utf16_cut(text[end:], left)


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


MESSAGES = Noun(
    name="messages",
    verbs=frozenset({"list", "get", "update", "delete"}),
    parents=("session",),
    id_pattern=re.compile(r"[^\x00-\x1f]{1,200}"),
    fields=("id", "type", "timestamp"),
    sort="",
)
