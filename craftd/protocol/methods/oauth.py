"""Signing in to the services of sources. A flow is known to the connection that began it, for five minutes."""

from __future__ import annotations

from attrs import field, frozen

from craftd.protocol.contract import Committed, Position, Ref
from craftd.protocol.registry import method


@frozen(kw_only=True)
class StartedSignIn:
    """auth_url: to open in a browser. state: what comes back with the code. expires_at: ms since 1970 UTC."""

    flow: str
    auth_url: str
    state: str
    redirect_uri: str
    expires_at: int


@method("oauth/start", result=StartedSignIn, right="write")
@frozen(kw_only=True)
class StartSignIn(Ref):
    """Find out where to sign in for a source, and as what; the client opens the address and waits for the code."""

    source: str
    callback_port: int | None = None
    """Port of this machine on which the client listens: the browser comes back to `http://localhost:<port>/...`."""
    callback_url: str | None = None
    """HTTPS address to which the app's relay sends the browser on."""


@frozen(kw_only=True)
class SignedIn(Position):
    """id: of the credential that is stored now. account: whose it is, where the service says so."""

    id: str
    account: str | None = None


@method("oauth/complete", result=SignedIn, right="write")
@frozen(kw_only=True)
class CompleteSignIn(Ref):
    """Have the code exchanged, store what it is worth, and mark the source. The flow ends with it, whatever comes."""

    flow: str
    code: str = field(repr=False)
    state: str


@method("oauth/cancel", result=None, right="write")
@frozen(kw_only=True)
class CancelSignIn(Ref):
    """Forget a flow."""

    flow: str


@method("oauth/revoke", result=Committed, right="write")
@frozen(kw_only=True)
class RevokeSignIn(Ref):
    """Sign out here: the source's credentials go and it is marked. The service is not told."""

    source: str
