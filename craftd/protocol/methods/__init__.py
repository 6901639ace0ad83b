"""Importing this package completes the registry: the methods written out here, then those derived from the nouns."""

from craftd.model.nouns import NOUNS
from craftd.protocol import contract
from craftd.protocol.methods import (
    annotations,
    app_records,
    automations,
    blobs,
    bundles,
    credentials,
    daemon,
    events,
    files,
    issues,
    labels,
    mentions,
    messages,
    notes,
    oauth,
    permissions,
    plans,
    projects,
    sessions,
    skills,
    sources,
    statuses,
    tasks,
    tokens,
    views,
    workspaces,
)
from craftd.protocol.registry import REGISTRY

contract.derive(NOUNS, REGISTRY)

__all__ = [
    "annotations",
    "app_records",
    "automations",
    "blobs",
    "bundles",
    "credentials",
    "daemon",
    "events",
    "files",
    "issues",
    "labels",
    "mentions",
    "messages",
    "notes",
    "oauth",
    "permissions",
    "plans",
    "projects",
    "sessions",
    "skills",
    "sources",
    "statuses",
    "tasks",
    "tokens",
    "views",
    "workspaces",
]
