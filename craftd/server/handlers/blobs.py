"""Staged bytes."""

from __future__ import annotations

from craftd.protocol.methods.blobs import CreateBlob, CreatedBlob, DeleteBlob, WriteBlob, WrittenBlob
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
async def delete(call: Call, params: DeleteBlob) -> None:
    daemon_of(call).blobs.delete(call.connection, params.blob)
