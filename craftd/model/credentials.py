"""Credentials: whose a secret is and what may be known of it; never the secret itself.  App 0.11.1.

The file calls an entry by its *account*, `type::part::part`, where a workspace is named by the base name of its folder.
Two workspaces may have that in common, so clients name a credential by an *id*: the same text with the workspace's
registry id in that place. An entry that craftd wrote also says whose it is, in a member of its own (`MARK`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen

from craftd.model.checks import shape, text, validator, whole
from craftd.model.noun import Noun
from craftd.model.records import Record

MARK: Final = "craftdWorkspace"
"""Member of an entry: registry id of the workspace it belongs to. The app keeps it and does not look at it."""

MARGIN_MS: Final = 5 * 60 * 1000
"""What expires within that time is refreshed before it is used."""

_NEVER: Final = 2**53
"""ms since 1970 UTC: no time that a program can have meant."""

_SOURCE = ("workspace", "source")

OWNERS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("llm_api_key", "llm_oauth", "llm_iam", "llm_service_account"), ("connection",)),
    "workspace_oauth": ("workspace",),
    **dict.fromkeys(("source_oauth", "source_bearer", "source_apikey", "source_basic"), _SOURCE),
    "messaging_bearer": ("workspace", "platform"),
    **dict.fromkeys(("anthropic_api_key", "claude_oauth"), ()),
}
"""Every type that is still in use, and what names its owner."""


@frozen
class Identity:
    """parts: what OWNERS says of the type, in that order; empty = of the whole installation (`type::global`)."""

    type: str
    parts: tuple[str, ...] = ()

    @property
    def account(self) -> str:
        return "::".join((self.type, *(self.parts or ("global",))))

    @property
    def of_workspace(self) -> bool:
        return bool(self.parts) and OWNERS[self.type][0] == "workspace"

    @property
    def storable(self) -> bool:
        """Whether its account leads back to it: no part is empty, has `::` in it, or a `:` at its ends."""
        known = self.type in OWNERS and len(self.parts) == len(OWNERS[self.type])
        return known and all(fits(part) for part in self.parts)


def fits(part: str) -> bool:
    """Whether *part* can stand in an account."""
    return part != "" and part.isprintable() and "::" not in part and part[0] != ":" and part[-1] != ":"


def parse(account: str) -> Identity | None:
    """None for what is none: a retired type, or a part with `::` in it, as the app may have written."""
    type, *parts = account.split("::")
    names = OWNERS.get(type)
    if names is None:
        return None
    if parts and len(parts) == len(names):
        return Identity(type, tuple(parts))
    return Identity(type) if parts == ["global"] else None


# What is known of an entry

FIELDS: Final = {
    "value": text(),
    **dict.fromkeys(
        (
            "refreshToken", "clientId", "clientSecret", "tokenType", "source", "idToken", "awsAccessKeyId",
            "awsRegion", "awsSessionToken", "gcpProjectId", "gcpRegion", "serviceAccountEmail",
        ),
        text(),
    ),
    "expiresAt": whole,
}  # fmt: skip

validate = validator(shape(FIELDS, required=("value",)))
"""What is wrong with an entry about to be stored. No issue repeats anything of it but the names of members."""


@frozen
class Stored:
    """An entry without its secrets. version: changes with every part of it, the secret too."""

    account: str
    version: str
    mark: str | None = None
    expires_at: int | None = None
    """ms since 1970 UTC; the app counts 0 as absent."""
    refreshable: bool = False
    state: str = "set"
    """set, empty (its value is ""), damaged (no object, or no value)."""

    @classmethod
    def of(cls, account: str, entry: Any, version: str) -> Stored:
        if not isinstance(entry, dict) or not isinstance(entry.get("value"), str):
            return cls(account, version, state="damaged")
        mark, expires, refresh = entry.get(MARK), entry.get("expiresAt"), entry.get("refreshToken")
        known = isinstance(expires, int | float) and not isinstance(expires, bool) and 0 < expires < _NEVER
        return cls(
            account,
            version,
            mark=mark if isinstance(mark, str) and mark else None,
            expires_at=int(expires) if known and expires is not None else None,
            refreshable=isinstance(refresh, str) and refresh != "",
            state="set" if entry["value"] else "empty",
        )

    def status(self, now: int) -> str:
        """ready, expiring (within five minutes), expired, empty, damaged."""
        if self.state != "set":
            return self.state
        if self._of_a_connection:  # their margin counts as expired already, and so does a token of unknown age
            late = self.refreshable if self.expires_at is None else self.expires_at - MARGIN_MS <= now
            return "expired" if late else "ready"
        if self.expires_at is None or self.expires_at - MARGIN_MS > now:
            return "ready"
        return "expired" if self.expires_at <= now else "expiring"

    @property
    def _of_a_connection(self) -> bool:
        return not OWNERS.get(self.account.partition("::")[0], _SOURCE) or self.account.startswith("llm_")


def refreshed(old: Record, new: Record) -> Record:
    """*old* after its token was refreshed to *new*: what *new* does not say stays, but for when the old one expired."""
    return {**{name: member for name, member in old.items() if name != "expiresAt"}, **new}


# Whose it is


@frozen
class Owner:
    """A workspace as accounts name it. id: registry id; folder: base name of its folder; own: its `ws_` id."""

    id: str
    folder: str
    own: str | None = None


@frozen
class Named:
    """A stored entry under the id by which clients know it.

    problem: unregistered (no such workspace), ambiguous (it may be that of several), shadowed (another one counts).
    """

    id: str
    stored: Stored
    owner: Mapping[str, str] = field(factory=dict)
    problem: str | None = None

    @property
    def value(self) -> Record:
        """What everybody may see."""
        seen: Record = dict(self.owner)
        if self.stored.expires_at is not None:
            seen["expiresAt"] = self.stored.expires_at
        if self.stored.refreshable:
            seen["refreshable"] = True
        return seen


def named(entries: Iterable[Stored], owners: Sequence[Owner]) -> dict[str, Named]:
    """Every entry, by its id. Of several with one owner, what craftd marked counts before what the app wrote."""
    found: dict[str, Named] = {}
    claims = sorted(
        (_claim(stored, owners) for stored in entries),
        key=lambda claim: (claim.stored.account != claim.id, claim.stored.mark is None),
    )
    for claim in claims:
        id, problem = claim.id, claim.problem
        if id in found:
            id, problem = claim.stored.account, "shadowed"
        while id in found:
            id += "+"
        found[id] = Named(id, claim.stored, claim.owner, problem)
    return found


def _claim(stored: Stored, owners: Sequence[Owner]) -> Named:
    identity = parse(stored.account)
    if identity is None:
        return Named(stored.account, stored, {"account": stored.account})
    names = OWNERS[identity.type]
    owner = {"type": identity.type, **dict(zip(names, identity.parts, strict=False))}
    if not identity.of_workspace:
        return Named(stored.account, stored, owner)
    part, *rest = identity.parts
    fitting = [stored.mark] if stored.mark is not None else _workspaces(identity.type, part, owners)
    if len(fitting) != 1:
        del owner["workspace"]
        unsure = {"type": identity.type, "workspaceName": part, **owner}
        return Named(stored.account, stored, unsure, "ambiguous" if fitting else "unregistered")
    [id] = fitting
    known = any(one.id == id for one in owners)
    mine = Identity(identity.type, (id, *rest))
    return Named(mine.account, stored, {**owner, "workspace": id}, None if known else "unregistered")


def _workspaces(type: str, part: str, owners: Sequence[Owner]) -> list[str]:
    """Registry ids of those that *part* of an unmarked account, which only the app writes, may mean."""
    if OWNERS[type] == _SOURCE:
        return [one.id for one in owners if one.folder == part]
    return [one.id for one in owners if one.id == part] or [one.id for one in owners if one.own == part]


def place(wanted: Identity, entries: Mapping[str, Named], owners: Sequence[Owner]) -> str:
    """The account under which a credential with the id `wanted.account` is stored: where the app looks, if it may.

    A folder's name that several workspaces share, or that somebody else's entry has, would be read by the wrong one.
    """
    current = entries.get(wanted.account)
    if OWNERS[wanted.type] == _SOURCE:
        owner = next((one for one in owners if one.id == wanted.parts[0]), None)
        if owner is not None and fits(owner.folder) and [one.folder for one in owners].count(owner.folder) == 1:
            account = Identity(wanted.type, (owner.folder, *wanted.parts[1:])).account
            if all(one.stored.account != account or one is current for one in entries.values()):
                return account
    return wanted.account if current is None else current.stored.account


# Which one a source uses


def slots(config: Record) -> tuple[str, ...]:
    """Types under which the credential of a source is looked for; the first that is not empty counts.

    A new one belongs into the first.
    """
    kind = config.get("type")
    block = config.get(kind, {}) if isinstance(kind, str) else {}
    auth = block.get("authType") if isinstance(block, dict) else None
    if kind == "api":
        if auth == "none":
            return ()
        if config.get("provider") in ("google", "slack", "microsoft") or auth == "oauth":
            return ("source_oauth",)
        return ({"bearer": "source_bearer", "basic": "source_basic"}.get(str(auth), "source_apikey"),)
    if kind != "mcp" or block.get("transport") == "stdio" or auth == "none":
        return ("source_oauth",)
    return ("source_bearer", "source_oauth") if auth == "bearer" else ("source_oauth", "source_bearer")


CREDENTIALS = Noun(
    name="credentials",
    verbs=frozenset({"list", "delete"}),
    scope="global",
    id_pattern=re.compile(r".{0,2000}", re.DOTALL),
    id_member=None,
    fields=("type", "workspace", "workspaceName", "source", "connection", "platform", "account", "expiresAt"),
)
