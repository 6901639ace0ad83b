"""Credentials. A token that is limited to workspaces sees theirs alone."""

from __future__ import annotations

import asyncio

from craftd.errors import CraftdError, InvalidParams, NotFound, Ref
from craftd.model.credentials import CREDENTIALS, Identity, slots
from craftd.protocol.contract import Committed, Page, Updated
from craftd.protocol.methods.credentials import (
    CredentialsStatus,
    CredentialStatus,
    DeleteCredential,
    GetCredentialsStatus,
    ListCredentials,
    RevealCredential,
    Revealed,
    SetCredential,
    VaultStatus,
)
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.daemon import daemon_of
from craftd.server.handlers.nouns import page_of
from craftd.workspace import credentials as vault
from craftd.workspace.home import Home
from craftd.workspace.workspace import Workspace


@handles
async def list_credentials(call: Call, params: ListCredentials) -> Page:
    home: Home = call.scope
    await home.look_at_credentials()
    home.vault.require_open()
    return page_of(home.vault.index, params, home.journal.epoch, home.journal.revision, _visible(call))


@handles
async def set_credential(call: Call, params: SetCredential) -> Updated:
    home: Home = call.scope
    id = _own(call, params.id)
    identity = vault.identity_of(id)
    if identity is None:
        raise InvalidParams.of("id", "is no `<type>::<owner>` under which a credential can be stored")
    done = await home.commit(
        vault.SetCredential(
            origin=call.origin,
            connection=call.connection,
            id=id,
            identity=identity,
            value=params.value,
            refreshed=params.refreshed,
            expected=params.expected_version,
        )
    )
    await clear_other_slot(call, identity)
    return Updated(item=done.answer.item, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)


async def clear_other_slot(call: Call, stored: Identity) -> None:
    """An mcp source has two slots: what lies in the other one would count again once this one is gone."""
    if stored.type not in ("source_bearer", "source_oauth"):
        return
    home = daemon_of(call).home
    try:
        opening = home.workspace(stored.parts[0])
        workspace = opening if isinstance(opening, Workspace) else await asyncio.shield(opening)
    except CraftdError:  # its folder is not there: nobody can say what the source is
        return
    row = workspace.tables["sources"].index.get(stored.parts[1])
    types = () if row is None else slots(row.value)
    for type in types if stored.type in types else ():
        if type != stored.type:
            id = home.credential_id(Identity(type, stored.parts).account)
            await home.commit(
                vault.DeleteCredential(origin=call.origin, connection=call.connection, id=id, missing_ok=True)
            )


@handles
async def delete(call: Call, params: DeleteCredential) -> Committed:
    home: Home = call.scope
    done = await home.commit(
        vault.DeleteCredential(
            origin=call.origin,
            connection=call.connection,
            id=_own(call, params.id),
            missing_ok=params.missing_ok,
            expected=params.expected_version,
        )
    )
    return Committed(epoch=done.epoch, revision=done.revision)


@handles
async def status(call: Call, params: GetCredentialsStatus) -> CredentialsStatus:
    home: Home = call.scope
    await home.look_at_credentials()
    kept = await asyncio.to_thread(home.vault.set_aside)
    known = home.vault.known
    visible = _visible(call)
    rows = [row for row in home.vault.index if visible is None or row.id in visible]
    if params.id is not None:
        home.vault.require_open()
        id = _own(call, params.id)
        rows = [row for row in rows if row.id == id]
        if not rows:
            raise NotFound(Ref("credentials", id))
    return CredentialsStatus(
        file=VaultStatus(
            state=known.state,
            message=known.own_issues[0].message if known.own_issues else None,
            set_aside=tuple(kept),
        ),
        items=tuple(
            CredentialStatus(
                id=row.id,
                version=row.named.stored.version,
                status=row.status,
                expires_at=row.named.stored.expires_at,
                refreshable=row.named.stored.refreshable,
            )
            for row in sorted(rows, key=lambda row: row.id)
        ),
        epoch=home.journal.epoch,
        revision=home.journal.revision,
    )


@handles
async def reveal(call: Call, params: RevealCredential) -> Revealed:
    home: Home = call.scope
    id = _own(call, params.id)
    done = await home.commit(vault.Reveal(origin=call.origin, connection=call.connection, id=id))
    secret: vault.Secret = done.answer
    return Revealed(id=id, version=secret.version, value=secret.entry, epoch=done.epoch, revision=done.revision)


def _visible(call: Call) -> frozenset[str] | None:
    """Ids of what the connection may know of, None = all."""
    home: Home = call.scope
    if call.grant.workspaces is None:
        return None
    reachable = daemon_of(call).reachable(call.grant)
    return frozenset(row.id for row in home.vault.index if row.value.get("workspace") in reachable)


def _own(call: Call, id: str) -> str:
    """*id*, if the connection may know of it.  Raises: InvalidParams; NotFound, as if there were none."""
    if CREDENTIALS.id_pattern.fullmatch(id) is None:
        raise InvalidParams.of("id", "is too long")
    home: Home = call.scope
    id = home.credential_id(id)
    if call.grant.workspaces is not None:
        identity = vault.identity_of(id)
        if identity is None or not identity.of_workspace:
            raise NotFound(Ref("credentials", id))
        daemon_of(call).reached(identity.parts[0], call.grant)
    return id
