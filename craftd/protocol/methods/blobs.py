"""Staged bytes: larger content comes in pieces first, and is then named where a method wants content."""

from __future__ import annotations

from typing import ClassVar

from attrs import fields, frozen

from craftd.protocol.codec import Mismatch
from craftd.protocol.registry import method


@frozen(kw_only=True)
class Content:
    """What a file shall hold: exactly one of these members."""

    text: str | None = None
    base64: str | None = None
    blob: str | None = None
    """Id from `blobs/create`; the first use that succeeds consumes it."""
    path: str | None = None
    """Absolute, on the daemon's machine, inside a workspace that the connection may open."""

    def __attrs_post_init__(self) -> None:
        names = [member.name for member in fields(Content)]
        if sum(getattr(self, name) is not None for name in names) != 1:
            raise Mismatch(f"expected exactly one of {', '.join(names)}")


@frozen(kw_only=True)
class _BlobChange:
    """Blobs belong to their connection and to no workspace; no idempotency key, a repeat does no harm."""

    mutates: ClassVar[bool] = True


@frozen(kw_only=True)
class CreatedBlob:
    """chunk_bytes: what one `blobs/write` may carry at most."""

    blob: str
    chunk_bytes: int


@method("blobs/create", result=CreatedBlob, right="write")
@frozen(kw_only=True)
class CreateBlob(_BlobChange):
    """Begin to stage bytes; size and sha256, if given, are checked when the blob is used."""

    size: int | None = None
    sha256: str | None = None
    """64 hexadecimal digits."""


@frozen(kw_only=True)
class WrittenBlob:
    """received: how many bytes of the blob are there now."""

    received: int


@method("blobs/write", result=WrittenBlob, right="write")
@frozen(kw_only=True)
class WriteBlob(_BlobChange):
    """Stage one piece; writing a range again is allowed."""

    blob: str
    offset: int
    data: str
    """Base64."""


@method("blobs/delete", result=None, right="write")
@frozen(kw_only=True)
class DeleteBlob(_BlobChange):
    """Drop a blob that will not be used."""

    blob: str


@frozen(kw_only=True)
class BlobRange:
    """data: base64. size: bytes of the whole blob. eof: this reaches its end."""

    data: str
    offset: int
    size: int
    eof: bool


@method("blobs/read", result=BlobRange, right="read")
@frozen(kw_only=True)
class ReadBlob:
    """A range of a blob, 1 MiB at most; it stays until it is deleted or idle for five minutes."""

    blob: str
    offset: int = 0
    """Bytes."""
    length: int | None = None
