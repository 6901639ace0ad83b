"""Tokens."""

from __future__ import annotations

import asyncio

from craftd.errors import Forbidden, InvalidParams, NotFound, Ref, Unauthenticated
from craftd.protocol.methods.tokens import CreatedToken, CreateToken, ListTokens, RevokeToken, ShownToken, ShownTokens
from craftd.server.auth import Token
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.daemon import daemon_of


@handles
async def create(call: Call, params: CreateToken) -> CreatedToken:
    daemon = daemon_of(call)
    if not params.rights:
        raise InvalidParams.of("rights", "a token without a right opens nothing")
    if missing := set(params.rights) - call.grant.rights:
        raise Forbidden(f"nobody gives away rights they do not have: {', '.join(sorted(missing))}", scope=min(missing))
    workspaces = None
    if params.workspaces is not None:
        if not params.workspaces:
            raise InvalidParams.of("workspaces", "a token for no workspace opens nothing; leave it out for all")
        if "admin" in params.rights:
            raise InvalidParams.of("rights", "admin is the right over all workspaces")
        workspaces = list(dict.fromkeys(_found(daemon.home.find(name), name) for name in params.workspaces))
    secret, token = await daemon.auth.create(params.name, params.rights, workspaces)
    return CreatedToken(secret=secret, token=_shown(token))


@handles
async def list_tokens(call: Call, params: ListTokens) -> ShownTokens:
    return ShownTokens(tokens=tuple(map(_shown, await daemon_of(call).auth.all())))


@handles
async def revoke(call: Call, params: RevokeToken) -> None:
    revoking = asyncio.ensure_future(daemon_of(call).revoke(params.id, call.connection))

    def leave() -> None:
        call.connection.revoke(Unauthenticated("the token was revoked"))

    own = call.grant.token == params.id
    try:
        await asyncio.shield(revoking)
    except asyncio.CancelledError:  # it is revoked all the same
        if own:
            revoking.add_done_callback(lambda done: None if done.exception() else leave())
        raise
    if own:  # the answer goes first
        call.after.append(leave)


def _found(id: str | None, name: str) -> str:
    if id is None:
        raise NotFound(Ref("workspaces", name))
    return id


def _shown(token: Token) -> ShownToken:
    return ShownToken(
        id=token.id, name=token.name, rights=token.rights, workspaces=token.workspaces, created_at=token.created_at
    )
