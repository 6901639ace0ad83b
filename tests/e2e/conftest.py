from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.wire import Wire


@pytest.fixture(scope="module")
def make_daemon() -> Iterator[Callable[..., Daemon]]:
    """Makes daemons in folders of their own; they are ended with the module, and what they logged is looked at."""
    daemons: list[Daemon] = []
    with tempfile.TemporaryDirectory(prefix="craftd-", dir="/tmp") as folder:

        def make(**settings: str) -> Daemon:
            base = Path(folder, str(len(daemons)))
            base.mkdir()
            daemons.append(Daemon(base, **settings))
            return daemons[-1]

        yield make
        with ExitStack() as all_of_them:  # whatever one of them says
            for daemon in daemons:
                all_of_them.callback(daemon.end)


@pytest.fixture
async def connect() -> AsyncIterator[Callable[..., Awaitable[Wire]]]:
    """Connects clients to a daemon; they are closed with the test."""
    wires: list[Wire] = []

    async def to(daemon: Daemon, *workspaces: str, **more: Any) -> Wire:
        wires.append(await daemon.connect(*workspaces, **more))
        return wires[-1]

    yield to
    for wire in wires:
        await wire.close()
