"""One short function per method. Importing this package registers all of them."""

from craftd.server.handlers import (
    blobs,
    credentials,
    daemon,
    events,
    files,
    issues,
    messages,
    nouns,
    oauth,
    permissions,
    sessions,
    skills,
    statuses,
    tokens,
    views,
    workspaces,
)

__all__ = [
    "blobs",
    "credentials",
    "daemon",
    "events",
    "files",
    "issues",
    "messages",
    "nouns",
    "oauth",
    "permissions",
    "sessions",
    "skills",
    "statuses",
    "tokens",
    "views",
    "workspaces",
]
