"""A session's folder as a bundle, written piece by piece: lines as they are stored, then files.

What is read is what was there when it began: the transcript up to the size it had, each file up to the size it had.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from craftd.errors import Busy, Forbidden, TooLarge
from craftd.model import json_text, session_bundles
from craftd.model.portable import dump_line
from craftd.model.records import Record
from craftd.store import confine
from craftd.store.json_stream import Bytes
from craftd.store.lines import Piece, read_head, split

Sink = Callable[[bytes], None]
Warn = Callable[[str, str, str], None]
"""Told path, code and message of what stays out."""

PIECE: Final = 3 << 18
"""Bytes of a file that become one piece of base64."""

_BLANK: Final = b" \t\r\n\x00"


def write_bundle(
    sink: Sink, folder: Path, transcript: Bytes, header_line: bytes, branch: Record | None, warn: Warn
) -> None:
    """Write the bundle of the session in *folder* whose `session.jsonl` is open as *transcript*.

    Raises: TooLarge (its files), Busy (one of them became shorter), OSError.
    """
    sink(b'{"version":1,"session":{"header":' + header_line + b',"messages":[')
    between = b""
    lost = 0
    for message in messages(transcript, str(folder)):
        if message is None:
            lost += 1
        else:
            sink(between + message)
            between = b","
    if lost:
        warn("session.jsonl", "unreadable", f"{lost} lines cannot be read and are left out")
    sink(b']},"files":[')
    _write_files(sink, folder, warn)
    sink(b"]" + (b"" if branch is None else b',"branchInfo":' + json_text.dumps(branch)) + b"}")


def messages(transcript: Bytes, directory: str) -> Iterator[bytes | None]:
    """The JSON text of each message in *transcript*, as it is stored; None for what cannot be read."""
    for piece in pieces(transcript, directory):
        if piece.record is None:
            yield None
        elif piece.problem is not None:
            yield dump_line(piece.record, directory)
        else:
            yield piece.raw


def pieces(transcript: Bytes, directory: str) -> Iterator[Piece]:
    """What stands behind the header of *transcript*, line by line."""
    start = read_head(transcript.fd, transcript.size, directory, os.path.basename(directory)).body
    for line in _lines(transcript, start):
        content = line.strip(_BLANK)
        yield from split(content, directory) if content else ()


def files_in(folder: Path) -> Iterator[str]:
    """Paths of the files of a session beside its transcript: no hidden ones, none that can be made again, no links."""
    return _walk(folder, "")


def _lines(content: Bytes, start: int) -> Iterator[bytes]:
    held: list[bytes] = []
    while piece := content.at(start, PIECE):
        start += len(piece)
        first, *rest = piece.split(b"\n")
        held.append(first)
        if rest:
            yield b"".join(held)
            yield from rest[:-1]
            held = [rest[-1]]
    yield b"".join(held)


def _write_files(sink: Sink, folder: Path, warn: Warn) -> None:
    room, count, between = session_bundles.FILES_BYTES, 0, b""
    for path in sorted(_walk(folder, ""), key=lambda path: (path.casefold(), path)):
        if session_bundles.wrong_file(path) is not None:
            warn(path, "unfit-name", "no bundle can hold a file of this name")
            continue
        try:
            with confine.find(
                folder.parents[1], (folder.parent.name, folder.name, *path.split("/")), follow=False
            ) as spot:
                fd = spot.open_file()
        except (OSError, Forbidden) as error:
            warn(path, "unreadable", f"cannot be read: {getattr(error, 'strerror', error)}")
            continue
        try:
            status = os.fstat(fd)
            room, count = room - status.st_size, count + 1
            if room < 0 or count > session_bundles.MOST_FILES:
                raise TooLarge("the files of a session in a bundle", session_bundles.FILES_BYTES)
            name = json_text.dumps(path)
            sink(between + b'{"relativePath":' + name + b',"contentBase64":"')
            for at in range(0, status.st_size, PIECE):
                wanted = min(PIECE, status.st_size - at)
                data = os.pread(fd, wanted, at)
                if len(data) < wanted:
                    raise Busy(f"{path} became shorter while it was exported", 200)
                sink(base64.b64encode(data))
            sink(b'","size":%d}' % status.st_size)
            between = b","
        finally:
            os.close(fd)


def _walk(folder: Path, above: str) -> Iterator[str]:
    """Paths of all regular files but hidden ones, the transcript, and what can be made again. No link is followed."""
    try:
        with os.scandir(folder) as entries:
            inside = list(entries)
    except OSError:
        return
    for entry in inside:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in session_bundles.LEFT_OUT:
                yield from _walk(folder / entry.name, f"{above}{entry.name}/")
        elif entry.is_file(follow_symlinks=False) and not session_bundles.is_transcript(entry.name):
            yield f"{above}{entry.name}"
