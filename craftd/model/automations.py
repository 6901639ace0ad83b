"""Automations: what is wrong with `automations.json`. An event, then matchers with conditions and actions.  App 0.11.1.

A matcher of the wrong shape is not looked into further; the others are. Nothing is run here.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Container, Iterator
from typing import Any, Final

from attrs import frozen

from craftd.errors import Issue
from craftd.model import cron, javascript
from craftd.model.checks import Check, anything, flag, listing, one_of, shape, text

EVENTS: Final = frozenset({
    "LabelAdd", "LabelRemove", "LabelConfigChange", "PermissionModeChange", "FlagChange", "SessionStatusChange",
    "SchedulerTick", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Notification", "UserPromptSubmit",
    "SessionStart", "SessionEnd", "Stop", "SubagentStart", "SubagentStop", "PreCompact", "PermissionRequest", "Setup",
})  # fmt: skip

OLD_NAMES: Final = {"TodoStateChange": "SessionStatusChange"}

LONGEST_PATTERN: Final = 500
DEEPEST: Final = 8
"""Conditions at this depth (the outermost have 0) never hold."""
DEEP: Final = 4
"""Depth from which on conditions are hard to follow."""

_TRANSITIONS: Final = frozenset({"SessionStatusChange", "PermissionModeChange"})
"""Events that say what was before."""
_OPERATORS: Final = (("value",), ("from", "to"), ("contains",), ("not_value",))
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_TIME_SHAPE: Final = re.compile(r"\d\d:\d\d", re.ASCII)
_TIME: Final = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d", re.ASCII)
_SLOW: Final = (
    re.compile(r"\([^()]*[+*][^()]*\)[+*?{]"),
    re.compile(r"\([^()]*\|[^()]*\)[+*{]"),
    re.compile(r"\.\*\.\*|\.\+\.\+"),
)
"""What can take for ever: a repeated group that repeats or chooses, two greedy dots in a row."""


@frozen(kw_only=True)
class Around:
    """What an automation may name. zones: names of time zones. None: not known, so nothing is said about it."""

    zones: Container[str] | None = None
    labels: Container[str] | None = None
    connections: Container[str] | None = None


def check(value: Any, around: Around) -> list[Issue]:
    """What is wrong with the whole file; paths are dotted, with numbers for the places in lists."""
    root = list(_ROOT(value, ""))
    if not isinstance(value, dict) or not isinstance(value.get("automations", {}), dict):
        return root
    return [*root, *_events(value.get("automations", {}), around)]


def _events(automations: dict[str, Any], around: Around) -> Iterator[Issue]:
    seen: set[str] = set()
    counted = 0
    for name, matchers in automations.items():
        path = f"automations.{name}"
        if name in OLD_NAMES:
            yield _warning(path, "old-event-name", f"is called {OLD_NAMES[name]} now")
        elif name not in EVENTS:
            yield _warning(path, "unknown-event", "is no event; what stands here never runs")
        if not isinstance(matchers, list):
            yield _error(path, "schema", "must be a list")
            continue
        counted += len(matchers)
        event = OLD_NAMES.get(name, name)
        for index, matcher in enumerate(matchers):
            yield from _matcher(matcher, f"{path}.{index}", event, around, seen)
    if not counted:
        yield _warning("automations", "no-automations", "there are none")


def _matcher(matcher: Any, path: str, event: str, around: Around, seen: set[str]) -> Iterator[Issue]:
    wrong = list(_MATCHER(matcher, path))
    yield from wrong
    if wrong:
        return
    id = matcher.get("id")
    if id in seen:
        yield _warning(f"{path}.id", "duplicate-id", f"{id} is the id of another automation")
    seen.update(() if id is None else (id,))
    yield from _pattern(matcher.get("matcher"), f"{path}.matcher")
    yield from _schedule(matcher, path, event)
    yield from _zone(matcher, path, around)
    if matcher.get("permissionMode") == "allow-all":
        yield _warning(f"{path}.permissionMode", "allow-all-mode", "lets its session do everything, unasked")
    yield from _labels(matcher.get("labels", ()), f"{path}.labels", around)
    yield from _conditions(matcher.get("conditions", ()), path, 0, event, around)
    for index, action in enumerate(matcher["actions"]):
        yield from _action(action, f"{path}.actions.{index}", around)


def _pattern(pattern: str | None, path: str) -> Iterator[Issue]:
    if pattern is None:
        return
    if len(pattern) > LONGEST_PATTERN:
        yield _error(path, "regex-too-long", f"is longer than {LONGEST_PATTERN} characters")
        return
    try:
        javascript.compile(pattern)
    except javascript.BadPattern as error:
        yield _error(path, "bad-regex", str(error))
        return
    if any(slow.search(pattern) for slow in _SLOW):
        yield _error(path, "slow-regex", "can take for ever: it repeats what repeats or chooses")


def _schedule(matcher: dict[str, Any], path: str, event: str) -> Iterator[Issue]:
    if "cron" not in matcher:
        if event == "SchedulerTick":
            yield _warning(path, "no-cron", "has no schedule, so it never runs")
        return
    if event != "SchedulerTick":
        yield _warning(f"{path}.cron", "cron-on-other-event", "counts for SchedulerTick alone")
    try:
        cron.check(matcher["cron"])
    except cron.BadSchedule as error:
        yield _error(f"{path}.cron", "bad-cron", str(error))


def _zone(value: dict[str, Any], path: str, around: Around) -> Iterator[Issue]:
    zone = value.get("timezone")
    if zone is not None and around.zones is not None and zone not in around.zones:
        yield _error(f"{path}.timezone", "bad-timezone", "is no time zone", "a name such as Europe/Lisbon")


def _labels(labels: list[str], path: str, around: Around) -> Iterator[Issue]:
    known = around.labels
    missing = [] if known is None else [id for id in (entry.partition("::")[0] for entry in labels) if id not in known]
    missing = [id for id in missing if "$" not in id]
    if missing:
        yield _warning(path, "label-unknown", f"there is no label {', '.join(missing)}")


def _conditions(conditions: list[Any], path: str, depth: int, event: str, around: Around) -> Iterator[Issue]:
    """What conditions of a right shape mean; what stands too deep is said once and not looked into."""
    path = f"{path}.conditions"
    if depth > DEEP:
        yield _warning(path, "condition-deep", "is hard to follow at this depth")
    if depth == DEEPEST:
        yield _error(path, "condition-too-deep", f"never holds: conditions nest up to {DEEPEST} deep")
        return
    for index, condition in enumerate(conditions):
        place = f"{path}.{index}"
        if condition["condition"] == "time":
            for name in ("after", "before"):
                if name in condition and _TIME.fullmatch(condition[name]) is None:
                    yield _error(f"{place}.{name}", "bad-time", "is no time of a day, 00:00 to 23:59")
            yield from _zone(condition, place, around)
        elif condition["condition"] == "state":
            if event not in _TRANSITIONS and ("from" in condition or "to" in condition):
                yield _warning(place, "transition-on-other-event", f"{event} does not say what was before")
        else:
            yield from _conditions(condition["conditions"], place, depth + 1, event, around)


def _action(action: dict[str, Any], path: str, around: Around) -> Iterator[Issue]:
    kind = action["type"]
    if kind == "prompt":
        prompt = action.get("prompt")
        if not isinstance(prompt, str):
            yield _warning(f"{path}.prompt", "no-prompt", "must be text; nothing is said without it")
        elif not prompt.strip():
            yield _warning(f"{path}.prompt", "no-prompt", "says nothing")
        connection = action.get("llmConnection")
        known = around.connections
        if isinstance(connection, str) and known is not None and connection not in known:
            yield _error(f"{path}.llmConnection", "connection-unknown", "there is no such connection")
    elif kind == "webhook":
        yield from _webhook(action, path)
    else:
        yield _warning(f"{path}.type", "unknown-action", "is neither prompt nor webhook; nothing is done")


def _webhook(action: dict[str, Any], path: str) -> Iterator[Issue]:
    url = action.get("url")
    if not isinstance(url, str):
        yield _warning(f"{path}.url", "bad-url", "must be text")
    elif "$" in url:
        yield _warning(f"{path}.url", "templated-url", "is known only when it is called")
    elif not url.lower().startswith(("http://", "https://")):
        yield _warning(f"{path}.url", "bad-url", "is neither http nor https, so it is never called")
    if action.get("method", "POST") not in _METHODS:
        yield _warning(f"{path}.method", "bad-method", f"must be one of {', '.join(_METHODS)}")


def _error(path: str, code: str, message: str, suggestion: str | None = None) -> Issue:
    return Issue(path=path, code=code, message=message, suggestion=suggestion)


def _warning(path: str, code: str, message: str) -> Issue:
    return Issue(path=path, code=code, message=message, severity="warning")


def _number(value: Any, path: str) -> Iterator[Issue]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        yield _error(path, "schema", "must be a number")


def _topic(value: Any, path: str) -> Iterator[Issue]:
    if not isinstance(value, str) or not 1 <= len(value) <= 128:
        yield _error(path, "schema", "must be text of 1 to 128 characters")


def _some(inner: Check, code: str = "schema") -> Check:
    """A list that is not empty."""
    items = listing(inner)

    def check(value: Any, path: str) -> Iterator[Issue]:
        if value == []:
            yield _error(path, code, "must not be empty")
        yield from items(value, path)

    return check


def _state(value: Any, path: str) -> Iterator[Issue]:
    wrong = list(_STATE(value, path))
    yield from wrong
    if wrong:
        return
    used = [names for names in _OPERATORS if any(name in value for name in names)]
    if not used:
        yield _error(
            f"{path}.field", "state-no-operator", "compares with nothing: value, from, to, contains, not_value"
        )
    elif len(used) > 1:
        yield _error(f"{path}.field", "state-two-operators", "compares in more than one way")


def _condition(value: Any, path: str) -> Iterator[Issue]:
    """A condition by its kind, and what it holds, as deep as it may go; below that nothing is looked at."""
    pending = deque([(value, path, 0)])
    while pending:
        value, path, depth = pending.popleft()
        kind = value.get("condition") if isinstance(value, dict) else None
        if kind in ("and", "or", "not"):
            wrong = list(_GROUP(value, path))
            yield from wrong
            if not wrong and depth < DEEPEST:
                inside = enumerate(value["conditions"])
                pending.extend((inner, f"{path}.conditions.{index}", depth + 1) for index, inner in inside)
        elif kind == "time":
            yield from _TIMES(value, path)
        elif kind == "state":
            yield from _state(value, path)
        elif isinstance(value, dict):
            yield _error(f"{path}.condition", "schema", "must be one of time, state, and, or, not")
        else:
            yield _error(path, "schema", "must be an object")


_ROOT: Final = shape({"version": _number, "automations": shape({})})
_GROUP: Final = shape({"conditions": _some(anything)}, required=("conditions",))
_STATE: Final = shape({"field": text(), "contains": text()}, required=("field",))
_CLOCK: Final = text(pattern=_TIME_SHAPE, what="must be a time, HH:MM")
_TIMES: Final = shape(
    {
        "after": _CLOCK,
        "before": _CLOCK,
        "weekday": listing(one_of("mon", "tue", "wed", "thu", "fri", "sat", "sun")),
        "timezone": text(),
    }
)
_MATCHER: Final = shape(
    {
        "id": text(),
        "name": text(),
        "enabled": flag,
        "matcher": text(),
        "cron": text(),
        "timezone": text(),
        "conditions": listing(_condition),
        "permissionMode": one_of("safe", "ask", "allow-all"),
        "labels": listing(text()),
        "telegramTopic": _topic,
        "actions": _some(shape({"type": text()}, required=("type",)), code="no-actions"),
    },
    required=("actions",),
)
