"""The session header: which fields there are, how they stand on line 1, and what clients see of them.

Two forms. *Stored* is line 1 as `parse_header` returns it: session tokens are expanded (a token that is still there
was typed by a user), `~` is not. *Value* is what clients see (`view`). Changes are made on the value and carried back
by `to_stored`, which touches changed keys only, so that null, legacy spellings and unknown keys stay as they are.
Source: app 0.11.1, golden `expected.json` and `rewrite.json`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Container, Iterator, Sequence
from typing import Any, Final

from craftd.errors import Issue
from craftd.model import ids, portable
from craftd.model.json_text import dumps, equal, js_trim
from craftd.model.messages import Counters, is_final
from craftd.model.moved import at_home
from craftd.model.noun import Noun
from craftd.model.records import Record

PERSISTENT = (
    "id", "workspaceRootPath", "sdkSessionId", "sdkCwd", "createdAt", "lastUsedAt", "lastMessageAt", "name",
    "isFlagged", "sessionStatus", "labels", "hidden", "lastReadMessageId", "hasUnread", "enabledSourceSlugs",
    "permissionMode", "previousPermissionMode", "workingDirectory", "model", "llmConnection", "connectionLocked",
    "thinkingLevel", "sharedUrl", "sharedId", "pendingPlanExecution", "isArchived", "archivedAt",
    "branchFromMessageId", "branchFromSdkSessionId", "branchFromSessionPath", "branchFromSdkCwd",
    "branchFromSdkTurnId", "transferredSessionSummary", "transferredSessionSummaryApplied", "triggeredBy",
    "projectId", "parentSessionId", "kanbanColumn", "taskSlug", "taskRunId", "taskNodeId", "taskNodeCount", "taskDraft",
)  # fmt: skip
"""Fields that are set, in the order in which line 1 has them."""

COMPUTED = ("messageCount", "lastMessageRole", "preview", "tokenUsage", "lastFinalMessageId")
"""Fields behind them, in order. All but `tokenUsage` follow from the messages."""

VOLATILE = frozenset(
    {
        "lastUsedAt", "lastMessageAt", "messageCount", "preview", "lastMessageRole", "lastFinalMessageId",
        "tokenUsage", "hasUnread", "lastReadMessageId", "workspaceRootPath",
    }
)  # fmt: skip
"""Fields that do not enter the version: a new message does not invalidate a pending rename."""

IMMUTABLE = frozenset(
    {
        "id", "createdAt", "workspaceRootPath", "taskRunId", "taskNodeId", "messageCount", "preview",
        "lastMessageRole", "lastFinalMessageId",
    }
)  # fmt: skip
"""Fields no client changes; all but `taskRunId` and `taskNodeId` are not set at creation either."""

LIGHT = tuple(
    name for name in PERSISTENT + COMPUTED if name not in {"pendingPlanExecution", "transferredSessionSummary"}
)
"""Fields of list items: all but the two without a limit in size."""

ZERO_USAGE: Record = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0, "contextTokens": 0, "costUsd": 0}

DEFAULT_STATUS = "todo"
STATES = ("active", "inbox", "completed", "archived", "all")
PERMISSION_MODES = ("safe", "ask", "allow-all")
THINKING_LEVELS = ("off", "low", "medium", "high", "xhigh", "max")

_SPELLINGS = {
    "safe": "safe", "explore": "safe",
    "ask": "ask", "ask-to-edit": "ask", "ask_to_edit": "ask", "ask to edit": "ask",
    "allow-all": "allow-all", "execute": "allow-all",
}  # fmt: skip
_MODE_FIELDS = ("permissionMode", "previousPermissionMode")
_BRANCH_PATHS = ("branchFromSessionPath", "branchFromSdkCwd")
"""Into the workspace they begin at the session's own folder."""
_HOME_FIELDS = frozenset({"workspaceRootPath", "workingDirectory", "sdkCwd"})
_RANK = {name: rank for rank, name in enumerate(PERSISTENT)} | {name: 1000 + rank for rank, name in enumerate(COMPUTED)}
_UNKNOWN_RANK = 999


def parse_header(data: bytes, session_dir: str) -> Record:
    """Line 1 in stored form. Raises: ValueError if it is no JSON object."""
    header = portable.parse_line(data, session_dir)
    if not isinstance(header, dict):
        raise ValueError("the header is no object")
    return header


LINE_ONE: Final = 8192
"""Bytes of line 1, without its LF, from which a session is in none of the app's lists."""


def header_line(stored: Record, session_dir: str) -> bytes:
    """Line 1 as it is written, without the LF; `parse_header` reversed, but for a preview that leaves no room.

    Of a line beyond LINE_ONE the preview is cut, if that is enough: it follows from the messages, and nothing else does
    that could be shorter.
    """
    line = portable.dump_line(ordered(stored), session_dir)
    preview = stored.get("preview")
    if len(line) <= LINE_ONE or not isinstance(preview, str):
        return line
    paths = portable.occurrences(preview, session_dir)
    for end in range(len(preview) - 1, -1, -1):
        if any(start < end < stop for start, stop in paths):
            continue
        cut = {**stored, "preview": preview[:end]} if end else {k: v for k, v in stored.items() if k != "preview"}
        if len(shorter := portable.dump_line(ordered(cut), session_dir)) <= LINE_ONE:
            return shorter
    return line


def oversized(stored: Record, length: int) -> str:
    """What there is to say of a line 1 of *length* bytes: which of its fields would have to be shorter."""
    sizes = {name: len(dumps(value)) for name, value in stored.items()}
    longest = sorted((name for name in sizes if sizes[name] > LINE_ONE // 8), key=lambda name: -sizes[name])
    most = f"; most of it is {', '.join(longest[:3])}" if longest else ""
    return f"line 1 has {length} bytes, and the app lists no session with more than {LINE_ONE}{most}"


def ordered(stored: Record) -> Record:
    """*stored* in the order of line 1: persistent fields, unknown keys in their own order, computed fields."""
    return {name: stored[name] for name in sorted(stored, key=lambda name: _RANK.get(name, _UNKNOWN_RANK))}


def view(stored: Record, session_dir: str, root: str, home: str) -> Record:
    """What clients see of a header: real paths, one spelling of everything, unknown keys as they are.

    The folder decides about `id` and *root* about `workspaceRootPath`, whatever line 1 says. An unknown status stays.
    """
    value = dict(at_home(stored, session_dir, root, home))
    value["id"] = session_dir.rpartition("/")[2]
    value["workspaceRootPath"] = root
    directory = value.get("workingDirectory")
    if type(directory) is str:
        directory = value["workingDirectory"] = portable.expand_home(directory, home)
        if "sdkCwd" not in value:
            value["sdkCwd"] = directory
    sdk_cwd = value.get("sdkCwd")
    if type(sdk_cwd) is str and sdk_cwd is not directory:
        value["sdkCwd"] = portable.expand_home(sdk_cwd, home)
    for name in _BRANCH_PATHS:
        if type(path := value.get(name)) is str and "/../" in path:
            value[name] = posixpath.normpath(path)
    for name in _MODE_FIELDS:
        if name in value:
            mode = permission_mode(value[name])
            if mode is None:
                del value[name]
            else:
                value[name] = mode
    if "todoState" in value and not value.get("sessionStatus") and isinstance(value["todoState"], str):
        value["sessionStatus"] = value["todoState"]
    return value


def to_stored(old_stored: Record, old_value: Record, new_value: Record, home: str) -> Record:
    """*old_stored* with the changes that lead from *old_value* (its `view`) to *new_value*; nothing else is touched."""
    stored = dict(old_stored)
    for name in old_value:
        if name not in new_value:
            stored.pop(name, None)
            if name == "sessionStatus":
                stored.pop("todoState", None)
    for name, new in new_value.items():
        if name not in old_value or not equal(old_value[name], new):
            stored[name] = _with_tilde(name, new, home)
    if (
        "sdkCwd" not in stored
        and "sdkCwd" in new_value
        and stored.get("workingDirectory") != old_stored.get("workingDirectory")
    ):
        # It was only implied by the old working directory, and is fixed for life.
        stored["sdkCwd"] = _with_tilde("sdkCwd", new_value["sdkCwd"], home)
    return stored


def new_header(value: Record, now: int, root: str, session_dir: str, home: str) -> Record:
    """The stored header of a session created with *value* at *now* (ms since 1970 UTC); no messages yet."""
    given = {name: member for name, member in value.items() if name not in IMMUTABLE}
    made = {
        "id": session_dir.rpartition("/")[2],
        "workspaceRootPath": root,
        "sdkCwd": value.get("workingDirectory", session_dir),
        "createdAt": now,
        "lastUsedAt": now,
        "messageCount": 0,
        "tokenUsage": dict(ZERO_USAGE),
    }
    task = {name: value[name] for name in ("taskRunId", "taskNodeId") if name in value}
    return ordered({name: _with_tilde(name, member, home) for name, member in (made | given | task).items()})


def moved(old: Record, new: Record, session_dir: str) -> Record:
    """*new*, the successor of *old*, with the `sdkCwd` that another working directory brings while nothing was said."""
    if not equal(old.get("sdkCwd"), new.get("sdkCwd")) or _has_begun(old):
        return new
    directory = new.get("workingDirectory", session_dir)
    if type(directory) is not str or directory == old.get("workingDirectory", session_dir):
        return new
    return {**new, "sdkCwd": directory}


def _has_begun(value: Record) -> bool:
    return bool(value.get("messageCount") or value.get("sdkSessionId"))


def permission_mode(raw: object) -> str | None:
    """The mode meant by any spelling the app has ever used; None for anything else."""
    return _SPELLINGS.get(js_trim(raw).lower()) if isinstance(raw, str) else None


def status_of(value: Record) -> str:
    """Id of the status that a session counts under."""
    status = value.get("sessionStatus")
    return status if isinstance(status, str) and status else DEFAULT_STATUS


def matches_state(value: Record, state: str, closed_statuses: Container[str]) -> bool:
    """Whether a session belongs to one of STATES. A status the workspace does not know counts as open."""
    if state == "all":
        return True
    archived = value.get("isArchived") is True
    if archived or state == "archived":
        return archived and state == "archived"
    closed = status_of(value) in closed_statuses
    return state == "active" or closed == (state == "completed")


def validate(value: Record, old: Record | None) -> list[Issue]:
    """What is wrong with *value* as the successor of *old* (None: as a new session); both as `view` returns them.

    Only changes are judged: what a file already holds is no fault of the caller.
    """
    if old is None:
        changed = set(value)
        forbidden = changed & (IMMUTABLE - {"id", "taskRunId", "taskNodeId"})
    else:
        changed = {name for name in value if name not in old or not equal(old[name], value[name])}
        touched = changed | (old.keys() - value.keys())
        forbidden = touched & IMMUTABLE
    issues = [Issue(path=name, message="cannot be changed by a client") for name in sorted(forbidden)]
    for name in sorted(changed - forbidden):
        issues += [Issue(path=path, message=message) for path, message in _problems(name, value[name])]
    if old is not None and "sdkCwd" in touched and _has_begun(old):
        issues.append(Issue(path="sdkCwd", message="is fixed once there are messages"))
    if old is not None and old.get("connectionLocked") is True:
        message = "is fixed: the session has worked with its connection"
        issues += [
            Issue(path=name, message=message) for name in sorted(touched & {"llmConnection", "connectionLocked"})
        ]
    return issues


def fits(name: str, value: object) -> bool:
    """Whether *value* is of the kind that the field *name* has."""
    return not any(True for _ in _problems(name, value))


_STRINGS = frozenset(
    {
        "id", "sdkSessionId", "sdkCwd", "name", "sessionStatus", "lastReadMessageId", "workingDirectory", "model",
        "llmConnection", "sharedUrl", "sharedId", "branchFromMessageId", "branchFromSdkSessionId",
        "branchFromSessionPath", "branchFromSdkCwd", "branchFromSdkTurnId", "transferredSessionSummary", "projectId",
        "parentSessionId", "kanbanColumn", "taskSlug", "taskRunId", "taskNodeId",
    }
)  # fmt: skip
_INTEGERS = frozenset({"lastUsedAt", "lastMessageAt", "archivedAt", "taskNodeCount"})
_BOOLEANS = frozenset(
    {
        "isFlagged", "hidden", "hasUnread", "connectionLocked", "isArchived", "transferredSessionSummaryApplied",
        "taskDraft",
    }
)  # fmt: skip
_STRING_LISTS = frozenset({"labels", "enabledSourceSlugs"})
_CHOICES = {
    "permissionMode": PERMISSION_MODES,
    "previousPermissionMode": PERMISSION_MODES,
    "thinkingLevel": THINKING_LEVELS,
}
_OBJECTS: dict[str, dict[str, frozenset[type]]] = {
    "pendingPlanExecution": {
        "planPath": frozenset({str}),
        "draftInputSnapshot": frozenset({str}),
        "awaitingCompaction": frozenset({bool}),
        "executionDispatched": frozenset({bool}),
    },
    "triggeredBy": {"automationName": frozenset({str}), "event": frozenset({str}), "timestamp": frozenset({int})},
    "tokenUsage": dict.fromkeys(
        (*ZERO_USAGE, "cacheReadTokens", "cacheCreationTokens", "contextWindow"), frozenset({int, float})
    ),
}


def _problems(name: str, value: object) -> Iterator[tuple[str, str]]:
    if name in _STRINGS:
        if type(value) is not str:
            yield name, "must be a string"
        elif name == "workingDirectory" and not value.startswith(("/", "~", "$HOME", "${HOME}")):
            yield name, "must be absolute, or begin with ~"
    elif name in _INTEGERS:
        if type(value) is not int:
            yield name, "must be an integer"
    elif name in _BOOLEANS:
        if type(value) is not bool:
            yield name, "must be a boolean"
    elif name in _STRING_LISTS:
        if not (isinstance(value, list) and all(type(member) is str for member in value)):
            yield name, "must be an array of strings"
    elif choices := _CHOICES.get(name):
        if value not in choices:
            yield name, f"must be one of {', '.join(choices)}"
    elif members := _OBJECTS.get(name):
        if not isinstance(value, dict):
            yield name, "must be an object"
            return
        for member, kinds in members.items():
            if member in value and type(value[member]) not in kinds:
                yield f"{name}.{member}", "has the wrong type"


def _with_tilde(name: str, value: Any, home: str) -> Any:
    return portable.contract_home(value, home) if name in _HOME_FIELDS and isinstance(value, str) else value


SESSIONS = Noun(
    name="sessions",
    id_pattern=ids.SESSION_ID,
    light=LIGHT,
    volatile=VOLATILE,
    immutable=IMMUTABLE,
    sort="-lastMessageAt",
    fields=PERSISTENT + COMPUTED,
    validate=validate,
)


def following(header: Record, counters: Counters, records: Sequence[Record], *, viewed: bool = False) -> Record:
    """*header* with the values that follow from *records* appended; counters: after them.

    A final message makes the session unread; one that is *viewed* has been read up to it.
    """
    new = _counting(header, counters)
    times = [record["timestamp"] for record in records if isinstance(record.get("timestamp"), int)]
    if times:
        for name in ("lastMessageAt", "lastUsedAt"):
            known = new.get(name)
            new[name] = max(times[-1], known) if isinstance(known, int) else times[-1]
    if any(map(is_final, records)):
        new = _read(new) if viewed else {**new, "hasUnread": True}
    return new if new.keys() <= header.keys() else ordered(new)


def after_edit(
    header: Record, counters: Counters, removed: Container[str], *, news: bool = False, viewed: bool = False
) -> Record:
    """*header* with the values that follow from messages that were changed or *removed* (by id); counters: after that.

    news: a message became a final one. Times stay: they say when something was last said, not what is left of it.
    """
    new = _counting(header, counters)
    if news:
        new = _read(new) if viewed else {**new, "hasUnread": True}
    if counters.last_final_id is None and "lastFinalMessageId" in header and new.get("hasUnread") is True:
        new["hasUnread"] = False
    if new.get("lastReadMessageId") in removed:
        if new.get("hasUnread") is True or counters.last_final_id is None:
            del new["lastReadMessageId"]
        else:
            new["lastReadMessageId"] = counters.last_final_id
    return ordered(new)


def cleared(header: Record) -> Record:
    """*header* of a session whose messages were all taken away: the provider's conversation ends with them, too."""
    new = {name: value for name, value in header.items() if name != "sdkSessionId"}
    return {**new, "tokenUsage": dict(ZERO_USAGE)}


def marked_read(header: Record) -> Record:
    """*header* of a session of which everything was read; the same object if that is what it says."""
    new = _read(header)
    return header if new == header else ordered(new)


def _read(header: Record) -> Record:
    new = dict(header)
    if new.get("hasUnread") is True:
        new["hasUnread"] = False
    final = new.get("lastFinalMessageId")
    if isinstance(final, str):
        new["lastReadMessageId"] = final
    return new


def _counting(header: Record, counters: Counters) -> Record:
    counted = counters.header_fields()
    return {name: value for name, value in header.items() if name not in COUNTED or name in counted} | counted


def caught_up(header: Record, counters: Counters) -> Record:
    """Line 1 as found, with what the lines say where it is behind them (a crash between append and fold)."""
    counted = counters.header_fields()
    same = all(header.get(name) == counted.get(name) for name in COUNTED - {"preview"})
    if same:
        return header
    new = {**{k: v for k, v in header.items() if k not in COUNTED}, **counted}
    known = header.get("messageCount")
    if isinstance(known, int) and counters.count > known:
        at = counters.last_timestamp
        for name in ("lastMessageAt", "lastUsedAt"):
            if at is not None:
                new[name] = max(at, header[name]) if isinstance(header.get(name), int) else at
        if header.get("lastFinalMessageId") != counters.last_final_id and counters.last_final_id is not None:
            new["hasUnread"] = True
    return ordered(new)


COUNTED: Final = frozenset({"messageCount", "lastMessageRole", "preview", "lastFinalMessageId"})
"""What line 1 has from the messages."""
