"""A connection that comes back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

from craftd.client.connection import Connection
from craftd.client.failures import CallFailed, ConnectionLost
from craftd.client.launch import Mismatch, NotReached

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two attempts to connect: twice as many each time."""


class Line:
    """dial: makes a connection. back: called with it in the step in which it is used for the first time.

    told: called with False when the connection is lost, with True when it is back, with a failure when it will not be.
    needed: somebody wants the connection back as soon as possible; otherwise it comes back when it is asked for.
    """

    def __init__(
        self,
        dial: Callable[[Callable[[Connection], None]], Awaitable[Connection]],
        back: Callable[[Connection], None],
        told: Callable[[bool | Exception], None],
        *,
        needed: Callable[[], bool],
        comes_back: bool,
        patience: float,
    ) -> None:
        self.connection: Connection | None = None
        self.failure: Exception | None = None
        """Why there will be no connection any more."""
        self.comes_back = comes_back
        self._dial = dial
        self._back = back
        self._told = told
        self._is_needed = needed
        self._patience = patience
        self._wanted = asyncio.Event()
        self._changed = asyncio.Event()
        self._lost = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """The first connection. Raises: NotReached, CallFailed, ConnectionLost."""
        if not self._install(await self._dial(self._is_lost)):
            raise ConnectionLost
        self._keeper = asyncio.create_task(self._keep())

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
            self._keeper = None
        connection, self.connection = self.connection, None
        self._give_up(ConnectionLost("the client was closed"))
        if connection is not None:
            await connection.close()

    async def connected(self) -> Connection:
        """The connection, waiting for it if need be. Raises: ConnectionLost, or what stands in the way."""
        if self.connection is not None:
            return self.connection
        try:
            async with asyncio.timeout(self._patience):
                while True:
                    if self.failure is not None:
                        raise self.failure
                    if self.connection is not None:
                        return self.connection
                    self._wanted.set()
                    await self._changed.wait()
        except TimeoutError:
            raise ConnectionLost(f"there was no connection for {self._patience:g} s") from None

    def _install(self, connection: Connection) -> bool:
        """False: it did not last."""
        if connection.failure is not None:
            return False
        self.connection = connection
        self._lost.clear()
        self._wanted.clear()
        self._back(connection)
        self._changed.set()
        return True

    def _is_lost(self, connection: Connection) -> None:
        if connection is self.connection:
            self.connection = None
            self._changed.clear()
            self._lost.set()

    async def _keep(self) -> None:
        told = True
        while True:
            await self._lost.wait()
            if told:
                self._told(False)
            if not self.comes_back:
                self._give_up(ConnectionLost())
                return
            if not self._is_needed():
                await self._wanted.wait()
            try:
                connection = await self._dial_patiently()
            except Exception as failure:  # one that trying again does not help
                self._give_up(failure)
                return
            told = self._install(connection)
            if told:
                self._told(True)

    async def _dial_patiently(self) -> Connection:
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._dial(self._is_lost)
            except Mismatch:
                raise
            except CallFailed as failure:
                if not failure.retryable:
                    raise
            except (NotReached, ConnectionLost):
                pass
            # Not all at once: a daemon that comes back has many clients.
            await asyncio.sleep(pause * (0.5 + os.urandom(1)[0] / 512))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _give_up(self, failure: Exception) -> None:
        if self.failure is None:
            self.failure = failure
            self._changed.set()
            self._told(failure)
