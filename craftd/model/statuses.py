"""Statuses of sessions: an ordered list in two categories.  App 0.11.1."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from craftd.errors import Issue
from craftd.model.checks import Check, colour, flag, one_of, shape, text, validator, whole
from craftd.model.ids import choose_slug
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record

ID = re.compile(r"[a-z0-9-]{1,100}", re.ASCII)

LONGEST_NEW = 30
"""Characters of an id made from a label, before a number is appended."""

FIXED = frozenset({"todo", "done", "cancelled"})
"""What the app itself assigns; without each of them as fixed it ignores the whole file."""

FIELDS: dict[str, Check] = {
    "id": text(pattern=ID, what="must be lower-case letters, digits and hyphens", code="bad-slug"),
    "label": text(empty=False),
    "color": colour,
    "icon": text(),
    "category": one_of("open", "closed"),
    "isFixed": flag,
    "isDefault": flag,
    "order": whole,
}

SCHEMA = shape(FIELDS, required=("id", "label", "category", "isFixed", "isDefault", "order"))


def new(value: Record, facts: Facts) -> tuple[str, Record]:
    """A status at the end of the list unless *value* says where; never fixed, never default, as in the app."""
    short = choose_slug(str(value.get("label", "")), (), "status")[:LONGEST_NEW]
    id = facts.id or choose_slug(short, facts.taken, "status")
    given = {key: member for key, member in value.items() if key not in ("id", "isFixed", "isDefault")}
    made: Record = {"id": id, "label": id, "category": "open", **given, "isFixed": False, "isDefault": False}
    orders = [order for other in facts.beside.values() if isinstance(order := other.get("order"), int)]
    return id, {**made, "order": value.get("order", max(orders, default=-1) + 1)}


def among(id: str, value: Record, records: Mapping[str, Record]) -> list[Issue]:
    """A fixed status keeps its category: the app decides by it what is finished."""
    fixed = next((default for default in DEFAULTS if default["id"] == id and id in FIXED), None)
    if fixed is not None and value.get("category") != fixed["category"]:
        return [Issue(path="category", message=f"of {id} must be {fixed['category']}", code="fixed-category")]
    return []


def must_hold(records: Mapping[str, Record]) -> list[Issue]:
    """What makes the app ignore the whole file."""
    found = []
    for id in sorted(FIXED):
        if id not in records:
            found.append(Issue(path="", message=f"{id!r} must be there", code="fixed-status-missing"))
        elif records[id].get("isFixed") is not True:
            message = f"of {id} must be true, else the whole file does not count"
            found.append(Issue(path="isFixed", message=message, code="fixed-flag-off", id=id))
    return found


_AROUND = shape({"version": whole, "defaultStatusId": text(empty=False)})


def check_file(file: Record) -> Iterator[Issue]:
    """What is wrong with the file beside its entries."""
    yield from _AROUND(file, "")
    entries = file.get("statuses")
    if not isinstance(entries, list):
        return
    statuses = [entry for entry in entries if isinstance(entry, dict)]
    default = file.get("defaultStatusId")
    if isinstance(default, str) and default and default not in [status.get("id") for status in statuses]:
        yield Issue(path="defaultStatusId", message=f"there is no status {default!r}", code="default-status-unknown")
    categories = [status.get("category") for status in statuses]
    if statuses and "open" not in categories:
        yield Issue(path="statuses", message="none of them is open", code="no-open-status")
    if statuses and "closed" not in categories:
        yield Issue(path="statuses", message="none of them is closed", severity="warning", code="no-closed-status")


def _default(id: str, label: str, category: str, order: int, *, fixed: bool) -> Record:
    return {
        "id": id, "label": label, "category": category, "isFixed": fixed, "isDefault": not fixed, "order": order,
    }  # fmt: skip


DEFAULTS = (
    _default("backlog", "Backlog", "open", 0, fixed=False),
    _default("todo", "Todo", "open", 1, fixed=True),
    _default("needs-review", "Needs Review", "open", 2, fixed=False),
    _default("done", "Done", "closed", 3, fixed=True),
    _default("cancelled", "Cancelled", "closed", 4, fixed=True),
)

STATUSES = Noun(
    name="statuses",
    id_pattern=ID,
    immutable=frozenset({"id", "isFixed", "isDefault"}),
    sort="order",
    fields=tuple(FIELDS),
    validate=validator(SCHEMA),
    new=new,
    among=among,
    must_hold=must_hold,
    defaults=DEFAULTS,
    required=FIXED,
    is_kept=lambda value: value.get("isDefault") is True,
)
