"""Sign-ins that have begun: in memory, each known to its connection alone, for five minutes."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from attrs import define, field, frozen

from craftd.errors import Busy, InvalidParams, NotFound, Ref, Unsupported
from craftd.model.oauth import Flow, Reply, Request, Steps

if TYPE_CHECKING:
    import httpx

    from craftd.server.connection import Connection

LIFE_MS: Final = 5 * 60 * 1000
MOST: Final = 16
"""Sign-ins that one connection has begun and not ended."""
SECONDS: Final = 15.0
"""For one answer of a service."""
SECONDS_IN_ALL: Final = 45.0
MOST_BYTES: Final = 256 * 1024
"""Of one answer."""

T = TypeVar("T")


@frozen
class SignIn:
    """workspace: registry id. credential: id under which the tokens will be stored."""

    id: str
    workspace: str
    source: str
    credential: str
    flow: Flow
    expires_at: int


@define(eq=False)
class SignIns:
    now: Callable[[], int]
    _begun: dict[Any, dict[str, SignIn]] = field(factory=dict)

    def add(self, connection: Connection, workspace: str, source: str, credential: str, flow: Flow) -> SignIn:
        """Raises: Busy."""
        mine = self._mine(connection)
        if len(mine) >= MOST:
            raise Busy(f"{MOST} sign-ins have begun and not ended", 1000)
        begun = SignIn(secrets.token_urlsafe(16), workspace, source, credential, flow, self.now() + LIFE_MS)
        self._begun[connection] = {**mine, begun.id: begun}
        return begun

    def take(self, connection: Connection, workspace: str, id: str, state: str | None = None) -> SignIn:
        """The sign-in, which is not known any more. Raises: NotFound; InvalidParams for another *state*: it stays."""
        mine = self._mine(connection)
        found = mine.get(id)
        if found is None or found.workspace != workspace:
            raise NotFound(Ref("oauth", id, workspace))
        if state is not None and not hmac.compare_digest(state.encode(), found.flow.state.encode()):
            raise InvalidParams.of("state", "is not the one that was sent")
        del mine[id]
        self._begun[connection] = mine
        return found

    def gone(self, connection: Connection) -> None:
        self._begun.pop(connection, None)

    def _mine(self, connection: Connection) -> dict[str, SignIn]:
        now = self.now()
        return {id: begun for id, begun in self._begun.get(connection, {}).items() if begun.expires_at > now}


async def carry_out(steps: Steps[T]) -> T:
    """Make the requests of *steps*, following no redirect.

    Raises: Unsupported (the library is not there), TimeoutError, what the steps raise.
    """
    client = await asyncio.to_thread(_client)
    async with client, asyncio.timeout(SECONDS_IN_ALL):
        try:
            request = next(steps)
            while True:
                request = steps.send(await _ask(client, request))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _client() -> httpx.AsyncClient:
    try:
        import httpx
    except ImportError:
        raise Unsupported("signing in needs httpx: pip install 'craftd[oauth]'", "oauth") from None
    return httpx.AsyncClient(timeout=SECONDS, follow_redirects=False)


async def _ask(client: httpx.AsyncClient, request: Request) -> Reply:
    import httpx

    try:
        content = None if request.body is None else request.body.encode()
        headers = {"User-Agent": "craftd", **request.headers}
        async with client.stream(request.method, request.url, headers=headers, content=content) as response:
            body = b""
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > MOST_BYTES:
                    return Reply(0)
            told = {name.lower(): value for name, value in response.headers.items()}
            return Reply(response.status_code, told, body)
    except (httpx.HTTPError, httpx.InvalidURL):
        return Reply(0)
