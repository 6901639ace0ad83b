"""Files of a workspace that are no records; records can be read as files too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from attrs import frozen

from craftd.protocol.contract import Change, Committed, ItemJson, List, Mutation, Page, Position, Ref
from craftd.protocol.methods.blobs import Content
from craftd.protocol.registry import method, notification


@method("files/list", result=Page, right="read")
@frozen(kw_only=True)
class ListFiles(List):
    """What one folder holds, without hidden files. Sort by name, kind, size or modifiedAt."""

    path: str | None = None
    """From the workspace's folder, or from the session's; absent: that folder itself."""
    session: str | None = None
    uri: str | None = None
    """`file:` URI, instead of path and session."""


@frozen(kw_only=True)
class FoundFiles(Position):
    """searched: how many names were looked at. stopped: why not all of them: limit, time, many."""

    items: Sequence[ItemJson]
    searched: int
    stopped: str | None = None


@method("files/search", result=FoundFiles, right="read")
@frozen(kw_only=True)
class SearchFiles(Ref):
    """Files and folders below a folder by name, whatever its case; the nearest first, then by path."""

    query: str
    """In the name; with a slash: in the path below the folder."""
    path: str | None = None
    session: str | None = None
    uri: str | None = None
    limit: int | None = None
    """50 default, 500 max."""
    partial_result_token: int | str | None = None


@frozen(kw_only=True)
class FileRange:
    """length: bytes of the file that *data* stands for. eof: it reaches the end. Unchanged: only version."""

    version: str
    unchanged: bool | None = None
    data: str | None = None
    offset: int | None = None
    length: int | None = None
    size: int | None = None
    eof: bool | None = None


@method("files/read", result=FileRange, right="read")
@frozen(kw_only=True)
class ReadFile(Ref):
    """A range of a file, 1 MiB at most. As text it is whole characters, at least one."""

    path: str | None = None
    session: str | None = None
    uri: str | None = None
    offset: int = 0
    """Bytes."""
    length: int | None = None
    encoding: Literal["utf-8", "base64"] = "utf-8"
    if_version: str | None = None
    """Answer `unchanged: true` if the file still has it."""


@frozen(kw_only=True)
class WrittenFile(Committed):
    """version: another one after every write. size: bytes."""

    version: str
    size: int


@method("files/write", result=WrittenFile, right="write")
@frozen(kw_only=True)
class WriteFile(Mutation):
    """Give a file new content, or make it: the old content or the new is there, never a mix."""

    content: Content
    path: str | None = None
    session: str | None = None
    uri: str | None = None
    expected_version: str | None = None
    """"": it must not be there; absent: whatever is there."""


@method("files/delete", result=Committed, right="write")
@frozen(kw_only=True)
class DeleteFile(Mutation):
    """Remove a file, or a link as a link."""

    path: str | None = None
    session: str | None = None
    uri: str | None = None
    expected_version: str | None = None
    missing_ok: bool = False


@notification("files/didChange")
@frozen(kw_only=True)
class FilesDidChange(Change):
    """A file that is no record is there, is another one, or is gone; told to who asked for the topic `files`."""

    path: str
    kind: Literal["created", "changed", "deleted"]
    version: str | None = None
