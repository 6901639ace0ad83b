"""Workspaces: entries of the registry and the settings file of a workspace folder.  App 0.11.1."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from itertools import count
from typing import Any

from craftd.errors import Issue
from craftd.model.noun import Noun
from craftd.model.records import Record

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


def validate(value: Record, old: Record | None) -> list[Issue]:
    """What is wrong with the settings of a workspace; plain types only."""
    issues = []
    name = value.get("name")
    if not isinstance(name, str) or not name.strip():
        issues.append(Issue(path="name", message="must be text that is not empty"))
    for key, kind, said in (
        ("defaults", dict, "must be an object"),
        ("localMcpServers", dict, "must be an object"),
        ("slug", str, "must be text"),
    ):
        if key in value and not isinstance(value[key], kind):
            issues.append(Issue(path=key, message=said))
    return issues


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
    validate=validate,
)
