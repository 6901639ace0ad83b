"""Staged bytes."""

from __future__ import annotations

import base64

from craftd.protocol.methods.blobs import (
    BlobRange,
    CreateBlob,
    CreatedBlob,
    DeleteBlob,
    ReadBlob,
    WriteBlob,
    WrittenBlob,
)
from craftd.server.blobs import CHUNK_BYTES
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.daemon import daemon_of


@handles
async def create(call: Call, params: CreateBlob) -> CreatedBlob:
    blob = daemon_of(call).blobs.create(call.connection, params.size, params.sha256)
    return CreatedBlob(blob=blob.id, chunk_bytes=CHUNK_BYTES)


@handles
async def write(call: Call, params: WriteBlob) -> WrittenBlob:
    received = await daemon_of(call).blobs.write(call.connection, params.blob, params.offset, params.data)
    return WrittenBlob(received=received)


@handles
async def read(call: Call, params: ReadBlob) -> BlobRange:
    data, size = await daemon_of(call).blobs.read(call.connection, params.blob, params.offset, params.length)
    eof = params.offset + len(data) >= size
    return BlobRange(data=base64.b64encode(data).decode(), offset=params.offset, size=size, eof=eof)


@handles
async def delete(call: Call, params: DeleteBlob) -> None:
    daemon_of(call).blobs.delete(call.connection, params.blob)
