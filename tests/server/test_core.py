from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from craftd.errors import IoError
from craftd.protocol.rendezvous import Places
from craftd.server import core
from craftd.server.auth import Auth, Tokens
from craftd.server.core import Daemon
from craftd.store import disk
from craftd.store.locks import AppLock
from craftd.workspace.guard import Guard


@pytest.fixture
async def daemon(tmp_path: Path) -> Daemon:
    """A daemon without a workspace or client that holds the app's lock."""
    guard = Guard(AppLock(tmp_path), time.monotonic)
    guard.permit()
    places = Places(str(tmp_path))
    daemon = Daemon(places, auto=False, exclusive=False, guard=guard, network=None, auth=Auth(Tokens(places)))
    parts: Any = (SimpleNamespace(open_workspaces=[]), SimpleNamespace(connections={}))
    daemon.home, daemon.dispatcher = parts
    return daemon


async def test_a_lock_that_cannot_be_given_back_is_kept_and_said(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(disk, "rename", refuse)
        with pytest.raises(IoError, match=r"\.server\.lock cannot be given back") as failed:
            await daemon.release()
        assert failed.value.errno == "EROFS"
        assert daemon.guard.held
    await daemon.release()
    assert not daemon.guard.held


async def test_the_daemon_outlives_a_lock_that_cannot_be_given_back(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, real, tries = asyncio.get_running_loop(), disk.rename, iter((refuse, disk.rename))
    done = asyncio.Event()

    def rename(source: Path, target: Path) -> None:
        if (call := next(tries)) is real:
            loop.call_soon_threadsafe(done.set)
        call(source, target)

    monkeypatch.setattr(disk, "rename", rename)
    for name in ("HOUSE_SECONDS", "GIVE_BACK_SECONDS"):
        monkeypatch.setattr(core, name, 0.0)
    house = asyncio.ensure_future(daemon._keep_house())
    async with asyncio.timeout(10):
        await done.wait()
    assert not house.done()
    house.cancel()


def refuse(source: Path, target: Path) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


def test_a_log_that_cannot_be_written_does_not_fill_standard_error(tmp_path: Path) -> None:
    (tmp_path / "craftd").mkdir()
    (tmp_path / "craftd" / "log").symlink_to("/dev/full")
    script = f"""
from craftd.protocol import rendezvous
from craftd.server import core
core._log_to(rendezvous.Places({str(tmp_path)!r}), to_stderr=True)
core.log.info("hello")
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stderr.endswith("INFO craftd.server.core: hello\n")
    assert ended.stderr.count("\n") == 1
