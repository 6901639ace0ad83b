"""Records of the configuration folder: connections, settings, preferences. Settings are also those of a workspace."""

from __future__ import annotations

from attrs import frozen

from craftd.model.records import Record
from craftd.protocol.contract import (
    Committed,
    Create,
    Created,
    Delete,
    Get,
    Got,
    List,
    Mutation,
    Page,
    Ref,
    Update,
    Updated,
)
from craftd.protocol.registry import method


@method("connections/list", result=Page, right="read", scope="global")
@frozen(kw_only=True)
class ListConnections(List):
    """One page of connections to providers; none holds a secret."""


@method("connections/get", result=Got, right="read", scope="global")
@frozen(kw_only=True)
class GetConnection(Get):
    """One connection, by its slug."""


@method("connections/create", result=Created, right="write", scope="global")
@frozen(kw_only=True)
class CreateConnection(Create):
    """A new connection; the first one is the default. Its secret is stored with `credentials/set`."""


@method("connections/update", result=Updated, right="write", scope="global")
@frozen(kw_only=True)
class UpdateConnection(Update):
    """Change members of a connection."""


@method("connections/delete", result=Committed, right="write", scope="global")
@frozen(kw_only=True)
class DeleteConnection(Delete):
    """Remove a connection, first its credentials and what names it in workspaces."""


@method("settings/get", result=Got, right="read", scope="either")
@frozen(kw_only=True)
class GetSettings(Ref):
    """The settings of a workspace, or of the whole configuration."""

    fields: tuple[str, ...] | None = None


@method("settings/update", result=Updated, right="write", scope="either")
@frozen(kw_only=True)
class UpdateSettings(Mutation):
    """Change the settings of a workspace, or of the whole configuration."""

    patch: Record
    expected_version: str | None = None
    fields: tuple[str, ...] | None = None


@method("preferences/get", result=Got, right="read", scope="global")
@frozen(kw_only=True)
class GetPreferences(Ref):
    """What the user said of themself: name, place, language, notes."""

    fields: tuple[str, ...] | None = None


@method("preferences/update", result=Updated, right="write", scope="global")
@frozen(kw_only=True)
class UpdatePreferences(Mutation):
    """Change preferences; the first change makes the file."""

    patch: Record
    expected_version: str | None = None
    fields: tuple[str, ...] | None = None
