"""Which methods may be sent once more.

Made by scripts/generate from craftd's registry of methods. Changes made by hand are lost.
"""

from __future__ import annotations

KEYED = frozenset(
    {
        "credentials/delete",
        "credentials/set",
        "files/delete",
        "files/write",
        "labels/create",
        "labels/delete",
        "labels/rename",
        "labels/reorder",
        "labels/update",
        "messages/append",
        "messages/delete",
        "messages/truncate",
        "messages/update",
        "permissions/update",
        "projects/create",
        "projects/delete",
        "projects/update",
        "sessions/create",
        "sessions/delete",
        "sessions/markRead",
        "sessions/update",
        "skills/create",
        "skills/delete",
        "skills/update",
        "sources/create",
        "sources/delete",
        "sources/update",
        "statuses/create",
        "statuses/delete",
        "statuses/rename",
        "statuses/reorder",
        "statuses/update",
        "views/create",
        "views/delete",
        "views/update",
        "workspaces/create",
        "workspaces/delete",
        "workspaces/update",
    }
)
"""Methods that take a `key`: the same change sent again with its key is made once."""

READS = frozenset(
    {
        "credentials/list",
        "credentials/status",
        "daemon/hello",
        "daemon/status",
        "daemon/sync",
        "events/read",
        "events/subscribe",
        "events/unsubscribe",
        "files/list",
        "files/read",
        "issues/list",
        "labels/get",
        "labels/list",
        "messages/get",
        "messages/list",
        "permissions/check",
        "permissions/get",
        "permissions/list",
        "projects/get",
        "projects/list",
        "sessions/get",
        "sessions/list",
        "sessions/unread",
        "sessions/view",
        "skills/get",
        "skills/list",
        "skills/validate",
        "sources/get",
        "sources/list",
        "statuses/get",
        "statuses/list",
        "views/evaluate",
        "views/get",
        "views/list",
        "workspaces/get",
        "workspaces/list",
    }
)
"""Methods that change nothing: asking again is harmless."""
