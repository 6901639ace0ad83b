"""Who may do what: grants, the tokens that give them, and what becomes of wrong ones. Knows no connection.

The Unix socket needs no token: the kernel says who is there. Tokens are written down as hashes; the one that local
programs use lies in a file of its own, which only its owner can read. No token enters a log, a status or an error.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import json
import logging
import os
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from stat import S_IMODE
from typing import Any

from attrs import define, field, frozen

from craftd.errors import Corrupt, NotFound, Ref, Unauthenticated
from craftd.protocol.registry import RIGHTS
from craftd.protocol.rendezvous import Places
from craftd.store import atomic

log = logging.getLogger(__name__)

TOKEN_BYTES = 32
SHORTEST = 16
DISTINCT = 8
"""A token that somebody made up has at least so many characters, and so many different ones."""
FAILURES = 5
FAILURES_SECONDS = 60.0
"""Five wrong tokens of one address in a minute; the sixth is looked at when the first of them is a minute old."""
LOCAL = "local"
"""Id of the token in `craftd/token`."""

_ONLY_PRIVATE = frozenset({"secrets", "execute"})
"""Rights that nobody has over a network that others can read."""


@frozen
class Grant:
    """What a connection may do. token: id of the token it came by, None for the local user.

    workspaces: registry ids that it is limited to; None = all.
    """

    token: str | None
    rights: frozenset[str]
    workspaces: frozenset[str] | None = None


EVERYTHING = Grant(None, frozenset(RIGHTS))
NOTHING = Grant(None, frozenset(), frozenset())


@frozen
class Caller:
    """Where a connection of the network comes from. address: of the other end, without its port."""

    address: str
    tls: bool

    @property
    def private(self) -> bool:
        """Nobody between us can read along."""
        return self.tls or is_loopback(self.address)


@frozen(kw_only=True)
class Token:
    """One token as it is kept: without its secret. created_at: milliseconds since 1970 UTC."""

    id: str
    name: str
    digest: bytes
    rights: tuple[str, ...]
    workspaces: tuple[str, ...] | None = None
    created_at: int | None = None

    def described(self) -> dict[str, Any]:
        """What may be shown."""
        members: dict[str, Any] = {"id": self.id, "name": self.name, "rights": list(self.rights)}
        if self.workspaces is not None:
            members["workspaces"] = list(self.workspaces)
        if self.created_at is not None:
            members["createdAt"] = self.created_at
        return members


class Tokens:
    """The tokens of one configuration. Its functions touch the disk, except `find`."""

    def __init__(self, places: Places) -> None:
        self._file = Path(places.tokens)
        self._local = Path(places.token)
        self._tokens: dict[str, Token] | None = None

    def load(self) -> dict[str, Token]:
        """All tokens by id, read when they are asked for first.  Raises: Corrupt, OSError."""
        if self._tokens is None:
            tokens = [_local_token(self._local)] if self._local.exists() else []
            self._tokens = {token.id: token for token in tokens + self._read()}
        return self._tokens

    def _read(self) -> list[Token]:
        try:
            members = json.loads(self._file.read_bytes())
            return [_parse(record) for record in members["tokens"]]
        except FileNotFoundError:
            return []
        except (ValueError, KeyError, TypeError) as error:
            raise Corrupt(f"{self._file} holds no tokens: {error!r}", self._file.as_uri()) from None

    def ensure_local(self) -> None:
        """Have the token that local programs read.  Raises: Corrupt, OSError."""
        tokens = self.load()
        if LOCAL not in tokens:
            self._tokens = {LOCAL: self._new_local(), **tokens}

    def _new_local(self) -> Token:
        atomic.replace(self._local, new_secret().encode() + b"\n", mode=0o600)
        return _local_token(self._local)

    def create(self, name: str, rights: Iterable[str], workspaces: Iterable[str] | None) -> tuple[str, Token]:
        """A new token and its secret, which is kept nowhere.  Raises: Corrupt, OSError."""
        secret = new_secret()
        token = Token(
            id=f"t-{secrets.token_hex(4)}",
            name=name,
            digest=digest(secret),
            rights=tuple(right for right in RIGHTS if right in set(rights)),
            workspaces=None if workspaces is None else tuple(workspaces),
            created_at=time.time_ns() // 1_000_000,
        )
        self._write({**self.load(), token.id: token})
        return secret, token

    def revoke(self, id: str) -> None:
        """Make a token worthless; the local one is replaced.  Raises: NotFound, Corrupt, OSError."""
        tokens = self.load()
        if id not in tokens:
            raise NotFound(Ref("tokens", id))
        if id == LOCAL:
            self._tokens = {**tokens, LOCAL: self._new_local()}
        else:
            self._write({other: token for other, token in tokens.items() if other != id})

    def _write(self, tokens: dict[str, Token]) -> None:
        kept = [{**token.described(), "hash": token.digest.hex()} for token in tokens.values() if token.id != LOCAL]
        atomic.replace(self._file, json.dumps({"tokens": kept}, indent=2).encode() + b"\n", mode=0o600)
        self._tokens = tokens

    def find(self, secret: str) -> Token | None:
        """The token with this secret; takes as long for a wrong one as for a right one."""
        asked = digest(secret)
        found = None
        for token in (self._tokens or {}).values():
            if hmac.compare_digest(token.digest, asked):
                found = token
        return found


class Failures:
    """Wrong tokens of the last minute, per address."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: dict[str, deque[float]] = {}

    def delay(self, address: str) -> float:
        """Seconds until the next token of *address* may be looked at."""
        times = self._times.get(_network_of(address))
        if times is None or len(times) < FAILURES:
            return 0.0
        return max(0.0, times[0] + FAILURES_SECONDS - self._clock())

    def note(self, address: str) -> None:
        now = self._clock()
        for old in [name for name, times in self._times.items() if times[-1] + FAILURES_SECONDS <= now]:
            del self._times[old]
        self._times.setdefault(_network_of(address), deque(maxlen=FAILURES)).append(now)


@define(eq=False)
class Auth:
    """Tokens -> grants."""

    tokens: Tokens
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _failures: Failures = field(init=False)
    _changing: asyncio.Lock = field(factory=asyncio.Lock)

    def __attrs_post_init__(self) -> None:
        self._failures = Failures(self.clock)

    async def grant(self, secret: str | None, caller: Caller) -> Grant:
        """What the token *secret* allows *caller*; after too many wrong ones it is looked at later.

        Answers without waiting for anything unless there is a delay.  Raises: Unauthenticated.
        """
        if secret is None:
            raise Unauthenticated("a token is needed, see `craftd token`")
        while (delay := self._failures.delay(caller.address)) > 0:
            await self.sleep(delay)
        token = self.tokens.find(secret)
        if token is None:
            self._failures.note(caller.address)
            log.warning("a wrong token from %s", caller.address)
            raise Unauthenticated("this token is not valid")
        rights = frozenset(token.rights)
        if not caller.private:
            rights -= _ONLY_PRIVATE
        if token.workspaces is not None:
            rights -= {"admin"}  # the right over all of them
        return Grant(token.id, rights, None if token.workspaces is None else frozenset(token.workspaces))

    async def create(self, name: str, rights: Iterable[str], workspaces: Iterable[str] | None) -> tuple[str, Token]:
        """See `Tokens.create`."""
        async with self._changing:
            return await asyncio.to_thread(self.tokens.create, name, rights, workspaces)

    async def revoke(self, id: str) -> None:
        """See `Tokens.revoke`."""
        async with self._changing:
            await asyncio.to_thread(self.tokens.revoke, id)

    async def all(self) -> list[Token]:
        """Raises: Corrupt, OSError."""
        async with self._changing:
            return list((await asyncio.to_thread(self.tokens.load)).values())


def new_secret() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(TOKEN_BYTES)).rstrip(b"=").decode()


def digest(secret: str) -> bytes:
    """A plain hash: what has 256 random bits is not found by trying."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


def is_loopback(address: str) -> bool:
    """Does the numeric *address* lead to this machine alone?"""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(ip, "ipv4_mapped", None)
    return (mapped or ip).is_loopback


def _network_of(address: str) -> str:
    """One household has all of an IPv6 network of 64 bits."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address) or ip.ipv4_mapped is not None:
        return str(ip)
    return str(ipaddress.ip_network((ip, 64), strict=False))


def _parse(record: Any) -> Token:
    """Raises: ValueError, KeyError, TypeError."""
    rights = tuple(record["rights"])
    workspaces = record.get("workspaces")
    if set(rights) - set(RIGHTS):
        raise ValueError(f"unknown rights {sorted(set(rights) - set(RIGHTS))}")
    if workspaces is not None and not all(type(id) is str for id in workspaces):
        raise ValueError("workspaces are no texts")
    return Token(
        id=str(record["id"]),
        name=str(record["name"]),
        digest=bytes.fromhex(record["hash"]),
        rights=rights,
        workspaces=None if workspaces is None else tuple(workspaces),
        created_at=record.get("createdAt"),
    )


def _local_token(path: Path) -> Token:
    """Raises: OSError, also for a token that others can read or guess."""
    secret = path.read_text().strip()
    if S_IMODE(os.stat(path).st_mode) & 0o077:
        raise PermissionError(f"{path} can be read by others: chmod 600 {path}")
    if len(secret) < SHORTEST or len(set(secret)) < DISTINCT:
        raise PermissionError(
            f"the token in {path} is too easy to guess: at least {SHORTEST} characters, {DISTINCT} of them different; "
            "without the file a new one is made"
        )
    return Token(id=LOCAL, name="programs on this machine", digest=digest(secret), rights=RIGHTS)
