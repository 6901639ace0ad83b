"""Idempotency keys: a change that is sent again with its key is not made again.

In memory only: a repeat after a restart of the daemon is a new change (protocol.md says so).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import attrs
from attrs import define

from craftd.errors import Cancelled, InvalidParams
from craftd.model import json_text
from craftd.model.records import Item
from craftd.protocol import codec

KEPT = 10_000
"""Keys of one scope."""
KEPT_SECONDS = 600.0

Identity: TypeAlias = tuple[str | None, str | None, str]
"""Token, name of the client, key: strangers cannot meet in one."""


@define(eq=False)
class _First:
    """What a key was used for. outcome: the result without its item's value."""

    digest: bytes
    expires: float
    outcome: asyncio.Future[Any]


class Keys:
    """The keys of one scope."""

    def __init__(self) -> None:
        self._firsts: OrderedDict[Identity, _First] = OrderedDict()

    async def once(
        self,
        identity: Identity,
        asked: bytes,
        run: Callable[[], Awaitable[Any]],
        item: Callable[[str], Awaitable[Any]],
    ) -> Any:
        """The result of *run*, or that of an earlier call with the same key, whose item is read again by its id.

        asked: `digest` of method and params. A failed change is forgotten: nothing was done, so it may be tried again.
        Raises: InvalidParams (reason keyReused) when the key belongs to another change; whatever *run* raises.
        """
        loop = asyncio.get_running_loop()
        self._keep(KEPT, loop.time())
        first = self._firsts.get(identity)
        if first is not None:
            if first.digest != asked:
                raise InvalidParams.of("key", "this key was used for another change", "keyReused")
            kept = await asyncio.shield(first.outcome)
            return await _complete(kept, item)
        self._keep(KEPT - 1, loop.time())
        first = _First(asked, loop.time() + KEPT_SECONDS, loop.create_future())
        self._firsts[identity] = first
        try:
            result = await run()
        except BaseException as failure:
            if self._firsts.get(identity) is first:
                del self._firsts[identity]
            told = (
                failure
                if isinstance(failure, Exception)
                else Cancelled("the first request with this key was cancelled")
            )
            first.outcome.set_exception(told)
            first.outcome.exception()  # seen: nobody need be waiting for it
            raise
        first.outcome.set_result(_kept(result))
        return result

    def _keep(self, most: int, now: float) -> None:
        """Forget the oldest beyond *most*, and those whose time is over."""
        while self._firsts:
            identity, oldest = next(iter(self._firsts.items()))
            if len(self._firsts) <= most and oldest.expires > now:
                return
            del self._firsts[identity]


def digest(method: str, params: Any) -> bytes:
    """The same for equal JSON, whatever the order of members."""
    return hashlib.blake2b(json_text.canonical([method, params]), digest_size=16).digest()


def _kept(result: Any) -> Any:
    """*result* with nothing of its item but id and version: ten thousand records would be too much to keep."""
    item = getattr(result, "item", None)
    if item is None:
        return result
    members = {"id": item.id, "version": item.version} if isinstance(item, Item) else codec.loads(codec.dumps(item))
    return attrs.evolve(result, item={"id": members["id"], "version": members["version"]})


async def _complete(kept: Any, item: Callable[[str], Awaitable[Any]]) -> Any:
    remembered = getattr(kept, "item", None)
    if remembered is None:
        return kept
    now = await item(remembered["id"])
    return kept if now is None else attrs.evolve(kept, item=now)
