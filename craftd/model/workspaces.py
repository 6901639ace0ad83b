"""Workspaces: entries of the registry and the settings file of a workspace folder.  App 0.11.1."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from itertools import count
from typing import Any, Final

from craftd.errors import Issue
from craftd.model import portable, retention
from craftd.model.checks import Check, flag, listing, nullable, one_of, shape, text, validator, whole
from craftd.model.noun import SLUG, Noun
from craftd.model.permissions import parse_mode
from craftd.model.records import Record
from craftd.model.sessions import THINKING_LEVELS

FOLDERS = ("sessions", "sources", "skills", "statuses", "labels")
"""Made with a workspace, beside `.claude-plugin`."""


def choose_slug(name: str, taken: Container[str] = ()) -> str:
    """Free folder name for a workspace called *name*: ASCII, 50 characters plus suffix, else `workspace`."""
    base = re.sub(r"[^a-z0-9]+", "-", name.lower())
    base = base.removeprefix("-").removesuffix("-")[:50] or "workspace"
    if base not in taken:
        return base
    return next(slug for n in count(2) if (slug := f"{base}-{n}") not in taken)


def new_registry_id(pick: Callable[[int], int]) -> str:
    """32 random hex digits shaped 8-4-4-4-12."""
    digits = "".join(f"{pick(16):x}" for _ in range(32))
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def new_config(name: str, slug: str, now: int, pick: Callable[[int], int]) -> Record:
    """`config.json` of a new workspace folder."""
    return {
        "id": "ws_" + "".join(f"{pick(16):x}" for _ in range(8)),
        "name": name,
        "slug": slug,
        "defaults": {
            "permissionMode": "ask",
            "cyclablePermissionModes": ["safe", "ask", "allow-all"],
            "enabledSourceSlugs": [],
        },
        "localMcpServers": {"enabled": True},
        "createdAt": now,
        "updatedAt": now,
    }


def plugin_manifest(name: str) -> Record:
    """`.claude-plugin/plugin.json`; the edges of the name are not trimmed, as the app has it."""
    return {"name": "craft-workspace-" + re.sub(r"[^a-z0-9]+", "-", name.lower()), "version": "1.0.0"}


def _name(value: Any, path: str) -> Iterator[Issue]:
    if not isinstance(value, str) or not value.strip():
        yield Issue(path=path, message="must be text that is not empty", code="schema")


def mode(value: Any, path: str) -> Iterator[Issue]:
    if parse_mode(value) is None:
        yield Issue(path=path, message="must be one of safe, ask, allow-all", code="schema")


def thinking(value: Any, path: str) -> Iterator[Issue]:
    """`think` is an old word for medium."""
    if value != "think":
        yield from one_of(*THINKING_LEVELS)(value, path)


LOCAL_SERVERS: Final = shape({"enabled": flag})

slug: Final = text(
    pattern=SLUG, what="must be lower-case letters, digits, inner hyphens and underscores", code="bad-slug"
)
"""Part of paths in the app."""

DEFAULTS_FIELDS: Final[dict[str, Check]] = {
    "permissionMode": nullable(mode),
    "cyclablePermissionModes": nullable(listing(mode)),
    "enabledSourceSlugs": nullable(listing(text())),
    "model": nullable(text()),
    "thinkingLevel": nullable(thinking),
    "workingDirectory": nullable(text()),
    "defaultLlmConnection": nullable(text()),
    "colorTheme": nullable(text(pattern=re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII), what="is no id of a theme")),
}

SCHEMA: Final = shape(
    {
        "id": text(empty=False),
        "name": _name,
        "slug": slug,
        "defaults": shape(DEFAULTS_FIELDS),
        "localMcpServers": LOCAL_SERVERS,
        retention.MEMBER: retention.CHECK,
        "createdAt": whole,
        "updatedAt": whole,
    },
    required=("name",),
)
"""`config.json` of a workspace, which the app does not check at all. What a level leaves open may be null there."""


def check(value: Any) -> list[Issue]:
    """The `config.json` of a workspace."""
    return list(SCHEMA(value, ""))


def expanded(config: Record, home: str) -> Record:
    """A workspace's `config.json` with the path in it as it is here."""
    return _with_directory(config, lambda path: portable.expand_home(path, home))


def contracted(config: Record, stored: Record, home: str) -> Record:
    """*config*, expanded, as it is stored; a path that means what *stored* means stays as it is written there."""
    before = (
        (stored.get("defaults") or {}).get("workingDirectory") if isinstance(stored.get("defaults"), dict) else None
    )

    def written(path: str) -> str:
        same = isinstance(before, str) and portable.expand_home(before, home) == path
        return before if same and isinstance(before, str) else portable.contract_home(path, home)

    return _with_directory(config, written)


def _with_directory(config: Record, change: Callable[[str], str]) -> Record:
    defaults = config.get("defaults")
    path = defaults.get("workingDirectory") if isinstance(defaults, dict) else None
    if not isinstance(path, str) or not path or not isinstance(defaults, dict):
        return config
    new = change(path)
    return config if new == path else {**config, "defaults": {**defaults, "workingDirectory": new}}


def registry_problem(config: Any) -> str | None:
    """Why a parsed global `config.json` cannot be used as a registry; None if it can."""
    if not isinstance(config, dict):
        return "is not a JSON object"
    entries = config.get("workspaces")
    if not isinstance(entries, list):
        return "has no list `workspaces`"
    return None


WORKSPACES = Noun(
    name="workspaces",
    scope="global",
    id_pattern=re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII),
    immutable=frozenset({"id", "slug", "createdAt", "path"}),
    volatile=frozenset({"path", "updatedAt"}),
    aliases=("id", "slug", "path"),
    sort="name",
    validate=validator(SCHEMA),
)
