"""Large content in pieces: into the daemon as a staged blob, out of it by ranges."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from craftd.client.client import Client
    from craftd.client.shapes import Content


async def upload(client: Client, source: bytes | str | os.PathLike[str]) -> Content:
    """Stage bytes, or the file with that name; what comes back is the `content` of one change.

    A blob belongs to the connection: when that is lost, upload once more.
    Raises: OSError, CallFailed, ConnectionLost.
    """
    with _open(source) as file:
        made = await client.blobs.create(size=file.seek(0, os.SEEK_END))
        offset = file.seek(0)
        while piece := file.read(made["chunkBytes"]):
            data = base64.b64encode(piece).decode()
            await client.blobs.write(blob=made["blob"], offset=offset, data=data)
            offset += len(piece)
    return {"blob": made["blob"]}


async def download(client: Client, **where: Any) -> AsyncIterator[bytes]:
    """A file in pieces. where: `workspace` and `path`, with `session` if it lies there, or `uri`.

    Raises: Changed when somebody wrote it meanwhile; CallFailed, ConnectionLost.
    """
    offset, version = 0, None
    while True:
        part = await client.files.read(**where, offset=offset, encoding="base64")
        if version is not None and part["version"] != version:
            raise Changed(f"{where.get('path') or where.get('uri')} changed while it was read")
        version = part["version"]
        if piece := base64.b64decode(part.get("data", "")):
            yield piece
        offset += len(piece)
        if part.get("eof", True):
            return


class Changed(Exception):
    """A file is not the one that its first part came from: begin again."""


def _open(source: bytes | str | os.PathLike[str]) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")
