"""Tokens: what clients of the network show. Their secrets are told once, and kept nowhere."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen

from craftd.protocol.registry import method

TokenRight: TypeAlias = Literal["read", "write", "execute", "secrets", "admin"]


@frozen(kw_only=True)
class ShownToken:
    """workspaces: registry ids that it is limited to. created_at: absent for the one in the file `craftd/token`."""

    id: str
    name: str
    rights: tuple[str, ...]
    workspaces: tuple[str, ...] | None = None
    created_at: int | None = None


@frozen(kw_only=True)
class CreatedToken:
    """secret: what clients show; it is not told again."""

    secret: str = field(repr=False)
    token: ShownToken


@frozen(kw_only=True)
class ShownTokens:
    tokens: tuple[ShownToken, ...]


@method("tokens/create", result=CreatedToken, right="admin")
@frozen(kw_only=True)
class CreateToken:
    """Make a token: for all workspaces, or for some, and then without the right `admin`."""

    rights: tuple[TokenRight, ...]
    name: str = ""
    """For people."""
    workspaces: tuple[str, ...] | None = None
    """Registry ids, `ws_` ids, slugs or paths."""


@method("tokens/list", result=ShownTokens, right="admin")
@frozen(kw_only=True)
class ListTokens:
    """All tokens, without their secrets."""


@method("tokens/revoke", result=None, right="admin")
@frozen(kw_only=True)
class RevokeToken:
    """Make a token worthless and close its connections; `local`, the one in the file `craftd/token`, is replaced."""

    id: str
