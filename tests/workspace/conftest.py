from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.workspace.house import House


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """An open workspace with one session of three messages."""
    house = House.make(tmp_path)
    house.new_session("260301-calm-cedar", "m1", "m2", "m3")
    await house.open()
    yield house
    await house.close()
