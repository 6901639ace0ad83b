"""Connections, settings and preferences."""

from __future__ import annotations

from contextlib import suppress

from craftd.errors import Corrupt, Forbidden, InvalidParams, NotFound
from craftd.model.app_records import CONNECTIONS, PREFERENCES
from craftd.model.credentials import OWNERS, Identity
from craftd.protocol.contract import Committed, Created, Got, Page, Updated
from craftd.protocol.methods.app_records import (
    CreateConnection,
    DeleteConnection,
    GetConnection,
    GetPreferences,
    GetSettings,
    ListConnections,
    UpdateConnection,
    UpdatePreferences,
    UpdateSettings,
)
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.daemon import daemon_of
from craftd.server.handlers.nouns import chosen, page_of
from craftd.workspace import app_records as commits
from craftd.workspace import changes, registry
from craftd.workspace.changes import check_patch
from craftd.workspace.credentials import DeleteCredential
from craftd.workspace.home import PREFERENCES_FILE, Home
from craftd.workspace.workspace import Workspace

# Connections


@handles
def list_connections(call: Call, params: ListConnections) -> Page:
    home: Home = call.scope
    index = commits.connections(home.file.value or {}, home.journal.epoch)
    return page_of(index, params, home.journal.epoch, home.journal.revision)


@handles
def get_connection(call: Call, params: GetConnection) -> Got:
    home: Home = call.scope
    item = commits.connection_item(home.file.value or {}, _slug(params.id))
    return Got(item=chosen(item, params.fields), epoch=home.journal.epoch, revision=home.journal.revision)


@handles
async def create_connection(call: Call, params: CreateConnection) -> Created:
    home: Home = call.scope
    done = await home.commit(
        commits.CreateConnection(
            origin=call.origin,
            connection=call.connection,
            value=params.value,
            facts=home.facts(),
            id=None if params.id is None else _slug(params.id),
        )
    )
    return Created(item=done.answer, epoch=done.epoch, revision=done.revision)


@handles
async def update_connection(call: Call, params: UpdateConnection) -> Updated:
    home: Home = call.scope
    done = await home.commit(
        commits.UpdateConnection(
            origin=call.origin,
            connection=call.connection,
            slug=_slug(params.id),
            patch=check_patch(params.patch),
            expected=params.expected_version,
        )
    )
    item = chosen(done.answer.item, params.fields)
    return Updated(item=item, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)


@handles
async def delete_connection(call: Call, params: DeleteConnection) -> Committed:
    home: Home = call.scope
    slug = _slug(params.id)
    try:
        done = await home.commit(
            commits.AskForConnection(
                origin=call.origin, connection=call.connection, slug=slug, expected=params.expected_version
            )
        )
    except NotFound:
        if not params.missing_ok:
            raise
        return Committed(epoch=home.journal.epoch, revision=home.journal.revision)
    # The connection goes last: as long as it is there, whoever is interrupted can ask again.
    for type in (type for type, owner in OWNERS.items() if owner == ("connection",)):
        account = Identity(type, (slug,)).account
        await home.commit(DeleteCredential(origin=call.origin, connection=call.connection, id=account, missing_ok=True))
    for id, known in list(home.known.items()):
        defaults = (known.settings.value or {}).get("defaults")
        if isinstance(defaults, dict) and defaults.get("defaultLlmConnection") == slug:
            patch = check_patch({"unset": ["/defaults/defaultLlmConnection"]})
            update = registry.UpdateSettings(
                origin=call.origin, connection=call.connection, id=id, patch=patch, facts=home.facts()
            )
            with suppress(Corrupt, Forbidden, NotFound):  # a name that leads nowhere is passed over there
                await home.commit(update)
    done = await home.commit(commits.DeleteConnection(origin=call.origin, connection=call.connection, slug=slug))
    return Committed(epoch=done.epoch, revision=done.revision)


def _slug(id: str) -> str:
    if CONNECTIONS.id_pattern.fullmatch(id) is None:
        raise InvalidParams.of("id", "must be letters, digits and inner hyphens")
    return id


# Settings


@handles
def get_settings(call: Call, params: GetSettings) -> Got:
    scope: Workspace | Home = call.scope
    home = daemon_of(call).home
    if isinstance(scope, Home):
        item = commits.settings_item(home.file.value or {})
    else:
        item = commits.of_workspace(home.item(scope.id))
    return Got(item=chosen(item, params.fields), epoch=home.journal.epoch, revision=home.journal.revision)


@handles
async def update_settings(call: Call, params: UpdateSettings) -> Updated:
    scope: Workspace | Home = call.scope
    home = daemon_of(call).home
    patch = check_patch(params.patch)
    if isinstance(scope, Home):
        done = await home.commit(
            commits.UpdateGlobalSettings(
                origin=call.origin, connection=call.connection, patch=patch, expected=params.expected_version
            )
        )
        item = done.answer.item
    else:
        done = await home.commit(
            registry.UpdateSettings(
                origin=call.origin,
                connection=call.connection,
                id=scope.id,
                patch=patch,
                facts=home.facts(),
                expected=params.expected_version,
            )
        )
        item = commits.of_workspace(done.answer.item)
    shown = chosen(item, params.fields)
    return Updated(item=shown, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)


# Preferences


@handles
def get_preferences(call: Call, params: GetPreferences) -> Got:
    home: Home = call.scope
    item = commits.item(home, PREFERENCES.name, PREFERENCES.name)
    return Got(item=chosen(item, params.fields), epoch=home.journal.epoch, revision=home.journal.revision)


@handles
async def update_preferences(call: Call, params: UpdatePreferences) -> Updated:
    home: Home = call.scope
    done = await home.commit(
        changes.UpdateRecord(
            origin=call.origin,
            connection=call.connection,
            noun=PREFERENCES,
            key=PREFERENCES_FILE,
            id=PREFERENCES.name,
            workspace=None,
            facts=home.facts(),
            patch=check_patch(params.patch),
            expected=params.expected_version,
        )
    )
    item = chosen(done.answer.item, params.fields)
    return Updated(item=item, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)
