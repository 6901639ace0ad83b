"""Whatever is done and goes wrong: a secret is in the answer of `reveal`, in the encrypted file, and nowhere else."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from craftd.model import json_text
from craftd.protocol import lifecycle
from craftd.protocol.methods import credentials as methods
from craftd.store import atomic, disk, vault
from craftd.workspace import credentials
from craftd.workspace.commit import Done
from craftd.workspace.journal import Origin
from tests.faults.served import WORK, Served
from tests.wire import Failed

OURS = f"source_basic::{WORK}::x"
CANARY = "canary-7f3a91"
ENTRY = {
    "value": json_text.dumps({"username": "ada", "password": f"{CANARY}-password"}).decode(),
    "refreshToken": f"{CANARY}-refresh",
    "clientSecret": f"{CANARY}-client",
    "unknown": {"deep": [f"{CANARY}-deep"]},
    "expiresAt": 1,
}


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Everything that is logged, tracebacks too, at the lowest level, with asyncio telling what it runs."""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "asyncio")
    return caplog


async def attempt(served: Served, method: str, **params: Any) -> str:
    try:
        await served.wire.call(method, params)
    except Failed as failure:
        return failure.name
    return "done"


async def everything(served: Served, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every way a secret takes, and most in which it fails; what was answered."""
    answers = []

    async def do(method: str, **params: Any) -> None:
        answers.append(await attempt(served, method, **params))

    await do("credentials/set", id=OURS, value=ENTRY, key="a key of sixteen")
    await do("credentials/set", id=OURS, value=ENTRY, key="a key of sixteen")
    await do("credentials/set", id=OURS, value={"value": CANARY}, key="a key of sixteen")
    await do("credentials/set", id=OURS, value={**ENTRY, "expiresAt": CANARY})
    await do("credentials/set", id=OURS, value={"value": {"x": CANARY}}, expectedVersion="0")
    await do("credentials/set", id=OURS, value=CANARY)
    await do("credentials/set", id=OURS, value=ENTRY, mispelt=CANARY)
    await do("credentials/set", id="nonsense", value=ENTRY)
    await do("credentials/set", id=OURS, value={"value": f"{CANARY} again"}, refreshed=True)
    await do("workspace/executeCommand", command="craft.call", arguments=["credentials/set", {"id": OURS, "value": 5}])
    for where, name, failure in (
        (vault, "seal", RuntimeError("unforeseen")),
        (atomic, "replace", OSError(errno.ENOSPC, "ENOSPC")),
        (disk, "flush_directory", OSError(errno.EIO, "EIO")),
        (credentials, "place", KeyError("unforeseen")),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(where, name, failing(failure))
            await do("credentials/set", id=f"{OURS}-{name}", value=ENTRY)
    for method in ("list", "status", "reveal"):
        await do(f"credentials/{method}", **({"id": OURS} if method == "reveal" else {}))
    for method, params in (("daemon/sync", {}), ("daemon/status", {}), ("issues/list", {}), ("workspaces/list", {})):
        await do(method, **params)
    await do("credentials/delete", id=OURS)
    return answers


def failing(failure: Exception) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise failure

    return fail


@pytest.mark.usefixtures("run_time", "quick")
async def test_a_secret_shows_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.slow_callback_duration = 0.0  # every callback and task is shown with what it was given
    async with Served.start(tmp_path) as served:
        answers = await everything(served, monkeypatch)
        assert answers[:10] == [
            "done", "done", "InvalidParams", "ValidationFailed", "VersionConflict", "InvalidParams", "InvalidParams",
            "InvalidParams", "done", "InvalidParams",
        ]  # fmt: skip
        assert answers[10:14] == ["InternalError", "IoError", "IoError", "InternalError"]
        assert set(answers[14:]) == {"done"}
        revealed = [body for body in served.wire.bodies if CANARY.encode() in body]
        assert len(revealed) == 1
        assert json_text.loads(revealed[0])["result"]["value"]["value"] == f"{CANARY} again"
        journal = served.daemon.home.journal.since(served.daemon.home.journal.epoch, 0)
        assert journal
        assert CANARY not in str([change.body for change in journal])
        assert CANARY not in "".join(shown_by_objects())
        loop.set_debug(False)
    assert "Traceback" in said.text
    assert "Executing" in said.text
    assert CANARY not in said.text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert tmp_path / "cfg" / "credentials.enc" in files
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []


def shown_by_objects() -> Iterator[str]:
    """`repr` of every object of ours that is alive."""
    for one in gc.get_objects():
        if str(type(one).__module__).startswith("craftd."):  # that of some types is no text
            yield repr(one)


def test_what_carries_a_secret_does_not_show_it() -> None:
    identity = credentials.identity_of(OURS)
    assert identity is not None
    origin = Origin(kind="client")
    carriers = [
        methods.SetCredential(id=OURS, value=ENTRY),
        methods.Revealed(epoch="e", revision=1, id=OURS, version="v", value=ENTRY),
        credentials.SetCredential(origin=origin, id=OURS, identity=identity, value=ENTRY),
        Done(credentials.Secret("v", ENTRY), "e", 1),
        lifecycle.Request(1, "credentials/set", {"id": OURS, "value": ENTRY}),
        lifecycle.Notification("credentials/set", {"id": OURS, "value": ENTRY}),
        vault.Content(opened=vault.Opened(vault.Header(bytes(32)), {"credentials": {OURS: ENTRY}}, True)),
    ]
    assert [one for one in carriers if CANARY in repr(one)] == []
    assert CANARY in repr(ENTRY)


async def test_a_secret_that_shows_is_seen(said: pytest.LogCaptureFixture) -> None:
    """The test above would notice."""
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.slow_callback_duration = 0.0
    done = loop.create_future()
    loop.call_soon(lambda secret: done.set_result(None), CANARY)
    await done
    loop.set_debug(False)
    assert CANARY in said.text
