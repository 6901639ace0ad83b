from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.server.toys import Toys
from tests.wire import Wire


@pytest.fixture
async def toys(tmp_path: Path) -> AsyncIterator[Toys]:
    """A dispatcher with toy methods on a real socket."""
    toys = await Toys.start(tmp_path / "run" / "sock")
    yield toys
    await toys.stop()


@pytest.fixture
async def wire(toys: Toys) -> AsyncIterator[Wire]:
    """A client that is initialized."""
    wire = await toys.client()
    yield wire
    await wire.close()
