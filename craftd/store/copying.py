"""A session's folder as the beginning of another one: its lines up to a message, and the files that they name.

Lines keep their bytes: a path below the session's folder is a token, and so means the new folder. Where a line has the
old folder itself, that becomes a token. Of the transcript about a mebibyte is held at a time, or one line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from craftd.errors import CraftdError
from craftd.model import json_text, portable
from craftd.model.messages import Counters
from craftd.model.records import Record
from craftd.store import atomic, confine
from craftd.store.json_stream import Bytes
from craftd.store.lines import Piece
from craftd.store.session_export import files_in, pieces

PIECE: Final = 1 << 20
SIDECAR_BYTES: Final = 16 << 20
"""Of a file that says what a provider calls messages: a larger one is not read."""

_TOKEN: Final = portable.TOKEN.encode() + b"/"
_COUNTED_TOGETHER: Final = 256
COUNTED_BYTES: Final = 1 << 20
"""Messages that wait to be counted, and about how many bytes of them."""


@define(eq=False)
class Original:
    """A session in the workspace *root* that is to be copied. transcript: its `session.jsonl`, open.

    upto: id of the last message that is taken, None = all, and then what cannot be read is taken, too.
    """

    root: Path
    id: str
    transcript: Bytes
    upto: str | None
    found: bool = False
    """The message *upto* is there."""
    counters: Counters = field(factory=Counters)
    ids: set[str] = field(factory=set)
    named: set[str] = field(factory=set)
    """Files of the session that its lines name."""

    @property
    def folder(self) -> Path:
        return self.root / "sessions" / self.id

    def look(self, directory: str) -> None:
        """Read all that is taken, for a session in *directory*. Raises: OSError."""
        known = {json_text.dumps(path)[1:-1]: path for path in files_in(self.folder)}
        lengths = sorted({len(path) for path in known}, reverse=True)
        self.counters = Counters(directory=directory)
        waiting: list[Record] = []
        size = 0
        for line, record in self._taken():
            if record is not None:
                waiting.append(portable.parse_line(line, directory))
                size += len(line)
                if isinstance(id := record.get("id"), str):
                    self.ids.add(id)
            if len(waiting) >= _COUNTED_TOGETHER or size > COUNTED_BYTES:
                self.counters, waiting, size = self.counters.extend(waiting), [], 0
            for path in _mentioned(line, known, lengths):
                self.named.add(path)
        self.counters = self.counters.extend(waiting)
        self.found = self.upto is not None and self.upto in self.ids

    def lines(self, header: bytes) -> Iterator[bytes]:
        """The new transcript."""
        yield header + b"\n"
        for line, _ in self._taken():
            yield line + b"\n"

    def _taken(self) -> Iterator[tuple[bytes, Record | None]]:
        """The lines as they are in another folder, and what they say."""
        old = str(self.folder)
        for piece in pieces(self.transcript, old):
            if piece.record is not None:
                yield _moved(piece, old), piece.record
                if self.upto is not None and piece.record.get("id") == self.upto:
                    return
            elif self.upto is None:
                yield piece.raw, None

    def every_file(self) -> list[str]:
        """All that may be copied: no links, nothing hidden, nothing that can be made again."""
        return list(files_in(self.folder))

    def file(self, path: str) -> Iterator[bytes]:
        """Its content, of the size it had when it was opened. Raises: OSError, Forbidden."""
        with confine.find(self.root, ("sessions", self.id, *path.split("/")), follow=False) as spot:
            fd = spot.open_file()
        try:
            left, at = os.fstat(fd).st_size, 0
            while left and (data := os.pread(fd, min(PIECE, left), at)):
                yield data
                at, left = at + len(data), left - len(data)
        finally:
            os.close(fd)

    def sidecar(self, path: str) -> Any:
        """What a small JSON file says; None if it is not there, or is none."""
        try:
            data, size = [], 0
            for piece in self.file(path):
                data.append(piece)
                if (size := size + len(piece)) > SIDECAR_BYTES:
                    return None
            return json_text.loads(b"".join(data))
        except (OSError, ValueError, CraftdError):
            return None

    def contents(self, header: bytes, paths: Iterable[str], more: dict[str, bytes]) -> dict[str, atomic.Content]:
        """What the new folder holds: for `atomic.stage_folder`."""
        files: dict[str, atomic.Content] = {path: _Later(self, path) for path in sorted(paths) if path not in more}
        return {"session.jsonl": lambda: self.lines(header), **files, **more}


@define(eq=False)
class _Later:
    """The content of a file when it is wanted; None if it has gone since it was listed."""

    original: Original
    path: str

    def __call__(self) -> Iterator[bytes] | None:
        pieces = self.original.file(self.path)
        try:
            first = next(pieces, b"")
        except (FileNotFoundError, NotADirectoryError):
            return None
        return chain((first,), pieces)


def _moved(piece: Piece, old: str) -> bytes:
    """The line of *piece* in another folder than *old*."""
    if piece.problem is None and not portable.names(piece.raw, old):
        return piece.raw
    return portable.dump_line(piece.record, old)


def _mentioned(line: bytes, known: dict[bytes, str], lengths: list[int]) -> Iterator[str]:
    """Files in *line*, by the longest name that is one."""
    at = line.find(_TOKEN) if known else -1
    while at >= 0:
        at += len(_TOKEN)
        for length in lengths:
            path = known.get(line[at : at + length])
            if path is not None:
                yield path
                break
        at = line.find(_TOKEN, at)
