"""Projects: folders with a configuration, uploads and a memory, to which sessions are bound by id.

The folder never changes its name, so the slug says where the assets are for good.  App 0.11.1.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from craftd.errors import Issue
from craftd.model.checks import Check, listing, nullable, shape, text, validator, whole
from craftd.model.ids import choose_slug
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record

ORDER = ("id", "slug", "name", "description", "workingDirectory", "details", "colorTheme", "createdAt", "updatedAt")
"""Keys of a new config.json; the app appends what comes later."""

SLUG = re.compile(r"[a-z0-9-]+", re.ASCII)

FIELDS: dict[str, Check] = {
    "id": text(empty=False),
    "slug": text(pattern=SLUG, what="must be lower-case letters, digits and hyphens"),
    "name": text(),
    "description": nullable(text()),
    "workingDirectory": nullable(text()),
    "details": nullable(text()),
    "colorTheme": nullable(text()),
    "color": nullable(text()),
    "createdAt": whole,
    "updatedAt": whole,
    "archivedAt": nullable(whole),
    "kanbanColumns": nullable(
        listing(
            shape(
                {"id": text(), "name": text(), "dropStatusId": nullable(text()), "color": nullable(text())},
                required=("id", "name"),
            )
        )
    ),
}

SCHEMA = shape(FIELDS, required=("id", "slug", "name", "createdAt", "updatedAt"))


def new(value: Record, facts: Facts) -> tuple[str, Record]:
    """A project as the app creates it, with all members of *value*: the app itself loses `color` here."""
    name = value.get("name")
    name = (name.strip() or "New Project") if isinstance(name, str) else "New Project" if name is None else name
    wanted = value.get("slug")
    slug = choose_slug(wanted if isinstance(wanted, str) else str(name), facts.taken, "project")
    id = facts.id or "proj_" + "".join(f"{facts.pick(16):x}" for _ in range(8))
    given = {**value, "id": id, "slug": slug, "name": name, "createdAt": facts.now, "updatedAt": facts.now}
    given = {key: member for key, member in given.items() if member is not None}
    first = {key: given[key] for key in ORDER if key in given}
    return id, first | given


def touch(value: Record, facts: Facts) -> Record:
    return {**value, "updatedAt": facts.now}


def among(id: str, value: Record, records: Mapping[str, Record]) -> list[Issue]:
    """A folder holds one project; two that are created at once may have chosen the same name."""
    if records.keys() - {id}:
        return [Issue(path="slug", message=f"{value.get('slug')!r} is taken", code="slug-taken")]
    return []


def unbound(value: Record, gone: Container[str]) -> Record:
    """A session without its project if that is one of *gone*; else itself."""
    bound = value.get("projectId")
    if not isinstance(bound, str) or bound not in gone:
        return value
    return {name: member for name, member in value.items() if name != "projectId"}


PROJECTS = Noun(
    name="projects",
    id_pattern=re.compile(r"proj_[A-Za-z0-9]{1,64}", re.ASCII),
    aliases=("slug",),
    light=(
        "id", "slug", "name", "description", "color", "colorTheme", "workingDirectory", "createdAt", "updatedAt",
        "archivedAt",
    ),
    volatile=frozenset({"updatedAt"}),
    immutable=frozenset({"id", "slug", "createdAt"}),
    sort="name",
    fields=tuple(FIELDS),
    validate=validator(SCHEMA),
    new=new,
    touch=touch,
    among=among,
)  # fmt: skip
