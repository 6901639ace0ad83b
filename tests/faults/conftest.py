from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def run_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A run-time folder with a name short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="craftd-", dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flushing takes no time: for tests in which nothing is cut off or killed."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
