"""Signing in to the services of sources."""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import suppress
from urllib.parse import urlsplit

from craftd.errors import CraftdError, InvalidParams, InvalidState, Ref, Timeout, Unavailable
from craftd.model import credentials, oauth
from craftd.model.credentials import Identity
from craftd.model.oauth import NotSignedIn, SignInFailed, Wanted
from craftd.model.records import Item, Record
from craftd.protocol.contract import Committed
from craftd.protocol.methods.oauth import (
    CancelSignIn,
    CompleteSignIn,
    RevokeSignIn,
    SignedIn,
    StartedSignIn,
    StartSignIn,
)
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.credentials import clear_other_slot
from craftd.server.handlers.daemon import daemon_of
from craftd.server.signins import carry_out
from craftd.workspace.credentials import DeleteCredential, SetCredential
from craftd.workspace.workspace import Workspace


@handles
async def start(call: Call, params: StartSignIn) -> StartedSignIn:
    workspace: Workspace = call.scope
    item = _source(workspace, params.source)
    wanted = _wanted(params)
    try:
        flow = await carry_out(oauth.begin(item.value, wanted))
    except NotSignedIn as failure:
        raise InvalidState(str(failure), "no-sign-in", (), Ref("sources", item.id)) from None
    except SignInFailed as failure:
        raise Unavailable(str(failure)) from None
    except TimeoutError:
        raise Timeout("the service did not answer in time") from None
    daemon = daemon_of(call)
    credential = daemon.home.credential_id(_slot(item.value, workspace, item.id).account)
    begun = daemon.sign_ins.add(call.connection, workspace.id, item.id, credential, flow)
    return StartedSignIn(
        flow=begun.id,
        auth_url=flow.url,
        state=flow.state,
        redirect_uri=flow.redirect_uri,
        expires_at=begun.expires_at,
    )


@handles
async def complete(call: Call, params: CompleteSignIn) -> SignedIn:
    workspace: Workspace = call.scope
    daemon = daemon_of(call)
    begun = daemon.sign_ins.take(call.connection, workspace.id, params.flow, params.state)
    if not params.code:
        raise InvalidParams.of("code", "must not be empty")
    await asyncio.to_thread(daemon.guard.permit)  # a code counts once: not for tokens that cannot be stored
    try:
        tokens = await carry_out(oauth.exchange(begun.flow, params.code, daemon.sign_ins.now()))
    except SignInFailed as failure:
        raise InvalidState(str(failure), "refused", ("oauth/start",), Ref("sources", begun.source)) from None
    except TimeoutError:
        raise Timeout("the service did not answer in time; begin again") from None
    identity = credentials.parse(begun.credential)
    assert identity is not None
    # The tokens are there: from here on nobody takes it back.
    done = await asyncio.shield(
        daemon.home.commit(
            SetCredential(
                origin=call.origin,
                connection=call.connection,
                id=begun.credential,
                identity=identity,
                value=tokens.entry,
            )
        )
    )
    await clear_other_slot(call, identity)
    await _mark(call, begun.source, {"isAuthenticated": True, "connectionStatus": "connected"})
    return SignedIn(id=begun.credential, account=tokens.account, epoch=done.epoch, revision=done.revision)


@handles
async def cancel(call: Call, params: CancelSignIn) -> None:
    workspace: Workspace = call.scope
    daemon_of(call).sign_ins.take(call.connection, workspace.id, params.flow)


@handles
async def revoke(call: Call, params: RevokeSignIn) -> Committed:
    workspace: Workspace = call.scope
    item = _source(workspace, params.source)
    home = daemon_of(call).home
    for type in credentials.slots(item.value):
        id = home.credential_id(Identity(type, (workspace.id, item.id)).account)
        await home.commit(DeleteCredential(origin=call.origin, connection=call.connection, id=id, missing_ok=True))
    await _mark(call, item.id, {"isAuthenticated": False, "connectionStatus": "needs_auth"})
    return Committed(epoch=workspace.epoch, revision=workspace.revision)


def _source(workspace: Workspace, id: str) -> Item:
    try:
        return workspace.verbs.item("sources", id)
    except InvalidParams as error:
        raise InvalidParams.of("source", error.issues[0].message) from None


def _slot(config: Record, workspace: Workspace, source: str) -> Identity:
    return Identity(credentials.slots(config)[0], (workspace.id, source))


def _wanted(params: StartSignIn) -> Wanted:
    port, url = params.callback_port, params.callback_url
    if (port is None) == (url is None):
        raise InvalidParams.of(
            "callbackPort", "either callbackPort or callbackUrl says where the browser comes back to"
        )
    if port is not None and not 0 < port < 65536:
        raise InvalidParams.of("callbackPort", "must be from 1 to 65535")
    if url is not None and not _is_web(url):
        raise InvalidParams.of("callbackUrl", "must be an https address")
    return Wanted(random=secrets.token_bytes, port=port, url=url, environment=os.environ)


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname)


async def _mark(call: Call, source: str, marks: Record) -> None:
    """What the app writes into the source. One that has gone, or is damaged, needs no mark."""
    workspace: Workspace = call.scope
    patch = {"set": marks, "unset": ["/connectionError"]}
    with suppress(CraftdError):
        await workspace.verbs.update("sources", source, patch, None, call.origin, call.connection)
