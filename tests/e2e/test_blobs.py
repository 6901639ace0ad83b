"""Staged bytes over the wire: pieces in any order, limits, whose they are, and when they are gone."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from tests.daemon import Daemon
from tests.e2e.places import start_impatient
from tests.wire import PATIENCE, Failed, Wire

CHUNK = 1 << 20


@define
class Place:
    daemon: Daemon
    root: Path
    client: Wire

    @property
    def staged(self) -> list[os.DirEntry[str]]:
        """Files in the daemon's own folder."""
        return sorted(os.scandir(self.daemon.places.blobs), key=lambda entry: entry.name)

    async def use(self, blob: str, path: str = "a.bin") -> Any:
        return await self.client.call("files/write", {"path": path, "content": {"blob": blob}})

    async def refused(self, method: str, **params: Any) -> dict[str, Any]:
        with pytest.raises(Failed) as failure:
            await self.client.call(method, params)
        data: dict[str, Any] = failure.value.error["data"]
        return data


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    (root := daemon.base / "ws").mkdir()
    daemon.register(ws=root)
    daemon.start()
    return daemon


@pytest.fixture
async def place(daemon: Daemon) -> AsyncIterator[Place]:
    client = await daemon.connect("ws")
    place = Place(daemon, daemon.base / "ws", client)
    yield place
    await client.close()
    await nothing_staged(place)


async def nothing_staged(place: Place) -> None:
    await until(place, lambda: not place.staged)


async def until(place: Place, true: Callable[[], bool]) -> None:
    """Wait for what nobody tells, one round trip after the other."""
    asker = await place.daemon.connect()
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asker.call("daemon/sync")
    await asker.close()


async def stage(client: Wire, data: bytes, **announced: Any) -> str:
    blob: str = (await client.call("blobs/create", announced))["blob"]
    for start in range(0, len(data), CHUNK):
        piece = base64.b64encode(data[start : start + CHUNK]).decode()
        await client.call("blobs/write", {"blob": blob, "offset": start, "data": piece})
    return blob


async def test_a_large_file_comes_in_pieces(place: Place) -> None:
    data = os.urandom(3 * CHUNK + 17)
    blob = await stage(place.client, data, size=len(data), sha256=hashlib.sha256(data).hexdigest().upper())
    [staged] = place.staged
    assert staged.stat().st_mode & 0o777 == 0o600
    assert (await place.use(blob))["size"] == len(data)
    assert (place.root / "a.bin").read_bytes() == data
    assert (await place.refused("files/write", path="b", content={"blob": blob}))["code"] == "NotFound"
    await nothing_staged(place)


async def test_pieces_come_in_any_order_and_again(place: Place) -> None:
    client = place.client
    created = await client.call("blobs/create")
    assert created["chunkBytes"] == CHUNK
    blob = created["blob"]
    received = []
    for offset, text in ((3, b"def"), (0, b"xbc"), (0, b"abc"), (6, b"")):
        params = {"blob": blob, "offset": offset, "data": base64.b64encode(text).decode()}
        received.append((await client.call("blobs/write", params))["received"])
    assert received == [3, 6, 6, 6]
    await place.use(blob, "order.txt")
    assert (place.root / "order.txt").read_bytes() == b"abcdef"
    assert (await client.call("files/read", {"path": "order.txt"}))["data"] == "abcdef"


async def test_a_use_comes_after_the_pieces_sent_before_it(place: Place) -> None:
    client = place.client
    blob = (await client.call("blobs/create"))["blob"]
    data = os.urandom(8 * CHUNK)
    for start in range(0, len(data), CHUNK):
        piece = base64.b64encode(data[start : start + CHUNK]).decode()
        client.ask("blobs/write", {"blob": blob, "offset": start, "data": piece})
    await place.use(blob, "piped.bin")
    assert (place.root / "piped.bin").read_bytes() == data


async def test_what_is_being_used_cannot_be_changed(place: Place) -> None:
    client, data = place.client, bytes(8 * CHUNK)
    blob = await stage(client, data, sha256=hashlib.sha256(data).hexdigest())
    use = client.ask("files/write", {"path": "checked.bin", "content": {"blob": blob}})
    late = client.ask("blobs/write", {"blob": blob, "offset": len(data) - 1, "data": base64.b64encode(b"x").decode()})
    with pytest.raises(Failed, match="InvalidState"):
        await client.answer(late)
    await client.answer(use)
    assert (place.root / "checked.bin").read_bytes() == data


@pytest.mark.parametrize(
    ("announced", "pieces", "why"),
    [({"size": 5}, [(0, b"abc")], "3 bytes were written, 5 were announced"),
     ({"sha256": "0" * 64}, [(0, b"abc")], "sha256"),
     ({}, [(0, b"abc"), (10, b"x")], "bytes from 3 on were never written"),
     ({}, [(10, b"x")], "bytes from 0 on were never written")],
)  # fmt: skip
async def test_what_is_not_as_announced_is_not_used_and_can_be_mended(
    place: Place, announced: dict[str, Any], pieces: list[tuple[int, bytes]], why: str
) -> None:
    client = place.client
    blob = (await client.call("blobs/create", announced))["blob"]
    for offset, data in pieces:
        await client.call("blobs/write", {"blob": blob, "offset": offset, "data": base64.b64encode(data).decode()})
    refused = await place.refused("files/write", path="never.txt", content={"blob": blob})
    assert refused["code"] == "ValidationFailed"
    assert why in refused["issues"][0]["message"]
    assert not (place.root / "never.txt").exists()
    if "size" in announced:
        await client.call("blobs/write", {"blob": blob, "offset": 3, "data": "ZGU="})
        await place.use(blob, "mended.txt")
        assert (place.root / "mended.txt").read_text() == "abcde"


async def test_a_use_that_fails_leaves_the_blob(place: Place) -> None:
    blob = await stage(place.client, b"abc")
    assert (await place.refused("files/write", path="nowhere/a", content={"blob": blob}))["code"] == "NotFound"
    await place.use(blob, "later.txt")
    assert (place.root / "later.txt").read_text() == "abc"


async def test_limits(place: Place) -> None:
    client = place.client
    too_large = await place.refused("blobs/create", size=(100 << 20) + 1)
    assert (too_large["code"], too_large["limit"]) == ("TooLarge", 100 << 20)
    blob = (await client.call("blobs/create", {"size": 2}))["blob"]
    assert (await place.refused("blobs/write", blob=blob, offset=0, data="YWJj"))["limit"] == 2
    open_end = (await client.call("blobs/create"))["blob"]
    chunk = base64.b64encode(bytes(CHUNK + 1)).decode()
    assert (await place.refused("blobs/write", blob=open_end, offset=0, data=chunk))["limit"] == CHUNK
    assert (await place.refused("blobs/write", blob=open_end, offset=(100 << 20) - 1, data="YWJj"))[
        "code"
    ] == "TooLarge"
    assert (await place.refused("blobs/write", blob=open_end, offset=-1, data=""))["code"] == "InvalidParams"
    assert (await place.refused("blobs/write", blob=open_end, offset=0, data="?"))["code"] == "InvalidParams"
    for size in (100 << 20, 100 << 20):
        await client.call("blobs/create", {"size": size})
    busy = await place.refused("blobs/create", size=60 << 20)
    assert (busy["code"], busy["retryable"]) == ("Busy", True)
    assert busy["retryAfterMs"] > 0
    assert (await place.refused("blobs/write", blob=open_end, offset=60 << 20, data="YWJj"))["code"] == "Busy"
    await client.call("blobs/delete", {"blob": "b3"})
    await client.call("blobs/create", {"size": 60 << 20})


async def test_blobs_of_two_clients_have_nothing_in_common(place: Place) -> None:
    other = await place.daemon.connect("ws")
    mine, theirs = await stage(place.client, b"mine"), await stage(other, b"theirs")
    assert mine == theirs
    await place.use(mine, "mine.txt")
    await other.call("files/write", {"path": "theirs.txt", "content": {"blob": theirs}})
    assert [(place.root / f"{name}.txt").read_text() for name in ("mine", "theirs")] == ["mine", "theirs"]
    kept = await stage(other, b"kept")
    assert (await place.refused("blobs/delete", blob=kept))["code"] == "NotFound"
    await other.close()


async def test_what_a_client_leaves_is_dropped_with_it(place: Place) -> None:
    other = await place.daemon.connect("ws")
    await stage(other, b"left")
    await stage(other, b"behind")
    assert len(place.staged) == 2
    other.hang_up()
    await nothing_staged(place)


async def test_a_change_that_had_arrived_is_carried_out_with_its_blob(place: Place) -> None:
    other = await place.daemon.connect("ws")
    blob = await stage(other, data := os.urandom(2 * CHUNK))
    other.send("files/write", {"path": "last.bin", "content": {"blob": blob}}, id=99)
    await other.writer.drain()
    other.hang_up()
    await until(place, (place.root / "last.bin").exists)
    assert (place.root / "last.bin").read_bytes() == data


async def test_the_content_of_another_file_can_be_taken(place: Place) -> None:
    (place.root / "source.bin").write_bytes(b"\xff\x00")
    content = {"path": str(place.root / "source.bin")}
    await place.client.call("files/write", {"path": "copy.bin", "content": content})
    assert (place.root / "copy.bin").read_bytes() == b"\xff\x00"
    (outside := place.daemon.base / "outside.txt").write_text("x")
    wrong = {
        str(outside): "Forbidden",
        "/etc/hostname": "Forbidden",
        "a.txt": "Forbidden",
        f"{place.root}/../outside.txt": "InvalidParams",
        f"{place.root}/none": "NotFound",
    }
    for path, code in wrong.items():
        assert (await place.refused("files/write", path="never", content={"path": path}))["code"] == code, path


@pytest.mark.parametrize("content", [{}, {"text": "a", "base64": "YQ=="}, {"blob": "b1", "path": "/x"}, {"txet": "a"}])
async def test_content_is_given_in_exactly_one_way(place: Place, content: dict[str, str]) -> None:
    refused = await place.refused("files/write", path="never", content=content)
    assert refused["code"] == "InvalidParams"
    assert refused["issues"][0]["path"].startswith("content")


async def test_a_lone_surrogate_is_no_text_of_a_file(place: Place) -> None:
    refused = await place.refused("files/write", path="never", content={"text": "\ud800"})
    assert refused["issues"][0]["path"] == "content.text"


async def test_a_blob_that_nobody_touches_is_dropped(make_daemon: Callable[..., Daemon]) -> None:
    daemon = make_daemon()
    (root := daemon.base / "ws").mkdir()
    daemon.register(ws=root)
    start_impatient(daemon, blobs__IDLE_SECONDS=0.05)
    client = await daemon.connect("ws")
    place = Place(daemon, root, client)
    blob = await stage(client, b"forgotten")
    await nothing_staged(place)
    assert (await place.refused("files/write", path="a", content={"blob": blob}))["code"] == "NotFound"
    await client.close()


async def test_what_a_killed_daemon_had_staged_is_removed_by_the_next(make_daemon: Callable[..., Daemon]) -> None:
    daemon = make_daemon()
    daemon.register()
    daemon.start()
    client = await daemon.connect()
    await stage(client, b"lost")
    daemon.kill()
    await client.close()
    assert os.listdir(daemon.places.blobs)
    daemon.start()
    assert os.listdir(daemon.places.blobs) == []
