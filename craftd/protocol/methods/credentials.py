"""Credentials: whose they are and how it is with them; a secret only where `reveal` is asked for it.

An `id` is `<type>::<owner>`: `llm_api_key::<connection>`, `source_bearer::<workspace>::<source>`, with registry ids.
"""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from craftd.model.records import Record
from craftd.protocol.contract import (
    Committed,
    Delete,
    DidChange,
    DidCreate,
    List,
    Mutation,
    Page,
    Position,
    Ref,
    Updated,
)
from craftd.protocol.registry import method, notification


@method("credentials/list", result=Page, right="read", scope="global")
@frozen(kw_only=True)
class ListCredentials(List):
    """Identities and status of all credentials, never a secret."""


@method("credentials/set", result=Updated, right="write", scope="global")
@frozen(kw_only=True)
class SetCredential(Mutation):
    """Store a credential, in the place of the one that is there."""

    id: str
    value: Record = field(repr=False)
    """As the app stores it: `value`, and `refreshToken`, `expiresAt`, `clientId` and so on where they are known."""
    expected_version: str | None = None
    """"" = there must be none."""
    refreshed: bool = False
    """Its token was refreshed: what *value* does not say stays as it is, but for `expiresAt`."""


@method("credentials/delete", result=Committed, right="write", scope="global")
@frozen(kw_only=True)
class DeleteCredential(Delete):
    """Remove a credential from the file; nobody who issued it is told."""


@frozen(kw_only=True)
class VaultStatus:
    """state: absent, ready, undecryptable, corrupt, unreadable, unsupported. set_aside: what could not be opened."""

    state: str
    message: str | None = None
    set_aside: tuple[str, ...] = ()


@frozen(kw_only=True)
class CredentialStatus:
    """status: ready, expiring (within five minutes), expired, empty, damaged. expires_at: ms since 1970 UTC."""

    id: str
    version: str
    status: str
    expires_at: int | None = None
    refreshable: bool = False


@frozen(kw_only=True)
class CredentialsStatus(Position):
    """items: none where the file cannot be opened."""

    file: VaultStatus
    items: tuple[CredentialStatus, ...]


@method("credentials/status", result=CredentialsStatus, right="read", scope="global")
@frozen(kw_only=True)
class GetCredentialsStatus(Ref):
    """How it is with the file, and with one credential or all of them."""

    id: str | None = None


@frozen(kw_only=True)
class Revealed(Position):
    """value: as stored, the secret with it."""

    id: str
    version: str
    value: Any = field(repr=False)


@method("credentials/reveal", result=Revealed, right="secrets", scope="global")
@frozen(kw_only=True)
class RevealCredential(Ref):
    """The secret itself, for whoever calls the service it opens."""

    id: str


@notification("credentials/didCreate")
@frozen(kw_only=True)
class CredentialsDidCreate(DidCreate):
    """A credential is there: whose it is."""


@notification("credentials/didChange")
@frozen(kw_only=True)
class CredentialsDidChange(DidChange):
    """A credential changed; where only its secret did, `patch` is empty and the version is another one."""
