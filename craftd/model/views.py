"""Views: saved expressions that sessions match or not.  App 0.11.1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from craftd.errors import Issue
from craftd.model.checks import Check, colour, shape, text, validator
from craftd.model.expressions import ExpressionError, parse
from craftd.model.ids import choose_slug
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record

TEXTS: Final = ("name", "preview", "sessionStatus", "todoState", "permissionMode", "model", "lastMessageRole")
NUMBERS: Final = ("lastUsedAt", "createdAt", "messageCount", "labelCount")
FLAGS: Final = ("isFlagged", "hasUnread", "isProcessing", "hasPendingPlan")
TOKENS: Final = ("inputTokens", "outputTokens", "totalTokens", "costUsd", "contextTokens")
NAMES: Final = frozenset(
    (*TEXTS, *NUMBERS, *FLAGS, "labels", "tokenUsage", *(f"tokenUsage.{name}" for name in TOKENS), *TOKENS)
)
"""What an expression may name; the last ones before `of`."""


def context_of(value: Record, *, processing: bool = False) -> dict[str, Any]:
    """A session as expressions see it. What is missing or of another kind is "", 0, false or []."""

    def words(name: str) -> str:
        return found if isinstance(found := value.get(name), str) else ""

    def number(record: Record, name: str) -> float | int:
        found = record.get(name)
        return found if isinstance(found, (int, float)) and not isinstance(found, bool) else 0

    labels = value.get("labels")
    used = value.get("tokenUsage")
    last = number(value, "lastMessageAt") or number(value, "lastUsedAt")
    context: dict[str, Any] = {name: words(name) for name in TEXTS}
    context["todoState"] = context["sessionStatus"] = context["sessionStatus"] or context["todoState"]
    context |= {name: number(value, name) for name in NUMBERS} | {"lastUsedAt": last}
    context["labels"] = labels if isinstance(labels, list) else []
    context["labelCount"] = len(context["labels"])
    context |= {name: value.get(name) is True for name in FLAGS}
    context["isProcessing"] = processing
    context["hasPendingPlan"] = context["lastMessageRole"] == "plan"
    context["tokenUsage"] = {name: number(used if isinstance(used, dict) else {}, name) for name in TOKENS}
    return context


SAMPLES: Final = (
    context_of({}),
    {
        **dict.fromkeys(TEXTS, "x"), **dict.fromkeys(NUMBERS, 1), **dict.fromkeys(FLAGS, True),
        "labels": ["x", "y::1"], "tokenUsage": dict.fromkeys(TOKENS, 1),
    },
)  # fmt: skip
"""Sessions that take the two ways through most expressions."""

ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?", re.ASCII)

LONGEST_NEW: Final = 30
"""Characters of an id made from a name, before a number is appended."""


def expression(value: Any, path: str) -> Iterator[Issue]:
    """An expression that can be evaluated and means something for sessions."""
    if not isinstance(value, str):
        yield Issue(path=path, message="must be text", code="schema")
        return
    try:
        doubts = list(parse(value).doubts(NAMES, SAMPLES))
    except ExpressionError as error:
        doubts = [error]
    for doubt in doubts:
        yield Issue(path=path, message=str(doubt), code=f"expression-{doubt.code}")


FIELDS: dict[str, Check] = {
    "id": text(pattern=ID, what="must be letters, digits, inner hyphens and underscores"),
    "name": text(empty=False),
    "description": text(),
    "color": colour,
    "expression": expression,
}


def new(value: Record, facts: Facts) -> tuple[str, Record]:
    """A view behind the others."""
    short = choose_slug(str(value.get("name", "")), (), "view")[:LONGEST_NEW]
    id = facts.id or choose_slug(short if short.startswith("view") else f"view-{short}", facts.taken, "view")
    return id, {"id": id, **{key: member for key, member in value.items() if key != "id"}}


DEFAULTS: Final = tuple(
    {"id": f"view-{name.lower()}", "name": name, "color": shade, "expression": meaning}
    for name, shade, meaning in (
        ("New", "accent", "hasUnread == true"),
        ("Plan", "info", "hasPendingPlan == true"),
        ("Explore", "foreground/50", 'permissionMode == "safe"'),
        ("Processing", "success", "isProcessing == true"),
    )
)


def of_smart_labels(stored: Record) -> list[Record]:
    """Views of a `labels/config.json` of the time before views; `smart-x` is called `view-x` now."""
    found: dict[str, Record] = {}
    given = stored.get("smartLabels")
    for one in given if isinstance(given, list) else ():
        if not isinstance(one, dict) or not isinstance(id := one.get("id"), str):
            continue
        value = {**one, "id": f"view-{id.removeprefix('smart-')}" if id.startswith("smart-") else id}
        if not VIEWS.validate(value, None):
            found.setdefault(value["id"], value)
    return list(found.values())


VIEWS = Noun(
    name="views",
    id_pattern=ID,
    immutable=frozenset({"id"}),
    sort="place",
    fields=tuple(FIELDS),
    validate=validator(shape(FIELDS, required=("id", "name", "expression"))),
    new=new,
    defaults=DEFAULTS,
    ordered=True,
)
