"""Files of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import unquote, urlsplit

from craftd.errors import Forbidden, InvalidParams
from craftd.model.files import parts_of
from craftd.protocol.codec import Raw
from craftd.protocol.contract import Committed, Page
from craftd.protocol.methods.blobs import Content
from craftd.protocol.methods.files import (
    DeleteFile,
    FileRange,
    FoundFiles,
    ListFiles,
    ReadFile,
    SearchFiles,
    WriteFile,
    WrittenFile,
)
from craftd.server import blobs
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.daemon import daemon_of
from craftd.workspace import browse, file_search, files, session_files
from craftd.workspace.files import Ground, Source
from craftd.workspace.workspace import Workspace


@handles
async def list_files(call: Call, params: ListFiles) -> Page:
    workspace: Workspace = call.scope
    parts = _parts(call, params.path, params.session, params.uri)
    epoch, revision = workspace.epoch, workspace.revision
    work = partial(
        browse.page,
        parts=parts,
        epoch=epoch,
        filter=params.filter,
        sort=params.sort,
        fields=params.fields,
        limit=params.limit,
        cursor=params.cursor,
    )
    page = await workspace.in_pool(work, workspace.ground())
    items = tuple(map(Raw, page.items))
    return Page(items=items, next_cursor=page.next_cursor, total=page.total, epoch=epoch, revision=revision)


@handles
async def search(call: Call, params: SearchFiles) -> FoundFiles:
    workspace: Workspace = call.scope
    parts = _parts(call, params.path, params.session, params.uri)
    epoch, revision = workspace.epoch, workspace.revision
    looking = file_search.Looking(parts, params.query, file_search.limit(params.limit))
    try:
        found = await workspace.in_pool(looking.run, workspace.ground())
    finally:
        looking.stop.now()
    items = tuple(map(Raw, found.items))
    return FoundFiles(items=items, searched=found.searched, stopped=found.stopped, epoch=epoch, revision=revision)


@handles
async def read(call: Call, params: ReadFile) -> FileRange:
    workspace: Workspace = call.scope
    work = partial(
        browse.read,
        parts=_parts(call, params.path, params.session, params.uri),
        offset=params.offset,
        length=params.length,
        binary=params.encoding == "base64",
        if_version=params.if_version,
    )
    piece = await workspace.in_pool(work, workspace.ground())
    if isinstance(piece, str):
        return FileRange(version=piece, unchanged=True)
    return FileRange(
        version=piece.version,
        data=piece.data,
        offset=piece.offset,
        length=piece.length,
        size=piece.size,
        eof=piece.eof,
    )


@handles
async def write(call: Call, params: WriteFile) -> WrittenFile:
    workspace: Workspace = call.scope
    parts = _parts(call, params.path, params.session, params.uri)
    with content_of(call, params.content) as source:
        done = await workspace.commit(
            files.WriteFile(
                origin=call.origin,
                connection=call.connection,
                parts=parts,
                expected=params.expected_version,
                source=source,
            )
        )
    return WrittenFile(version=done.answer.version, size=done.answer.size, epoch=done.epoch, revision=done.revision)


@handles
async def delete(call: Call, params: DeleteFile) -> Committed:
    workspace: Workspace = call.scope
    done = await session_files.delete(
        workspace,
        files.DeleteFile(
            origin=call.origin,
            connection=call.connection,
            parts=_parts(call, params.path, params.session, params.uri),
            expected=params.expected_version,
            missing_ok=params.missing_ok,
        ),
    )
    return Committed(epoch=done.epoch, revision=done.revision)


def check_text(member: str, text: str | None) -> None:
    """Raises: InvalidParams for what no file can hold."""
    if text is not None and any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidParams.of(member, "has a lone surrogate: no file holds it as UTF-8")


@contextmanager
def content_of(call: Call, content: Content, largest: int = blobs.BLOB_BYTES) -> Iterator[Source]:
    """What *content* means; a blob is consumed if the block ends well. largest: bytes of a file that is named.

    Raises: InvalidParams, NotFound, Forbidden.
    """
    if content.text is not None:
        try:
            yield files.Given(content.text.encode())
        except UnicodeEncodeError:
            raise InvalidParams.of("content.text", "has a lone surrogate: no file holds it as UTF-8") from None
    elif content.base64 is not None:
        yield files.Given(blobs.decoded(content.base64, "content.base64"))
    elif content.blob is not None:
        with daemon_of(call).blobs.borrowed(call.connection, content.blob) as blob:
            yield blob
    else:
        assert content.path is not None
        yield _local_file(call, content.path, largest)


def _local_file(call: Call, path: str, largest: int) -> Source:
    """A file of this machine. Raises: Forbidden if no workspace that the connection may open has it."""
    reachable = daemon_of(call).reachable(call.grant)
    for workspace, ground in _grounds(call):
        if workspace in reachable:
            inside = _below(ground, path)
            if inside is not None:
                return browse.LocalFile(ground, parts_of(inside, "content.path"), largest)
    raise Forbidden(f"{path} lies in no workspace that this connection may open", path=path)


def _grounds(call: Call) -> list[tuple[str, Ground]]:
    return daemon_of(call).home.grounds()


def _parts(call: Call, path: str | None, session: str | None, uri: str | None) -> tuple[str, ...]:
    """Names from the workspace's folder to the file. Raises: InvalidParams, Forbidden (a URI of another place)."""
    workspace: Workspace = call.scope
    if uri is None:
        parts = parts_of(path or "")
        if session is None:
            return parts
        workspace.check_session_id(session, "session")
        return ("sessions", session, *parts)
    if path is not None or session is not None:
        raise InvalidParams.of("uri", "stands instead of path and session")
    try:
        split = urlsplit(uri)
    except ValueError as error:
        raise InvalidParams.of("uri", f"cannot be read: {error}") from None
    if split.scheme != "file" or split.netloc not in ("", "localhost") or split.query or split.fragment:
        raise InvalidParams.of("uri", "expected file:///...")
    named = unquote(split.path, errors="surrogateescape")
    for id, ground in _grounds(call):
        inside = _below(ground, named)
        if id == workspace.id and inside is not None:
            return parts_of(inside, "uri")
    raise Forbidden(f"{named} does not lie in this workspace", path=named)


def _below(ground: Ground, path: str) -> str | None:
    """*path* from the root of *ground*, which may be called by more than one name; None if it is not below."""
    for root in ground.names:
        if path == root or path.startswith(f"{root}/"):
            return path[len(root) + 1 :]
    return None
