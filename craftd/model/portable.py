"""Paths in stored text that survive a move: the session folder as `{{SESSION_PATH}}`, the home folder as `~`.

A token stands for the folder of the file it is read from. The app replaces in JSON text and without regard to names
or escapes; here only whole paths are replaced, a token expands to any folder name, and a token that a user typed stays
what it is: its first brace is written as `\\u007b`, which the app reads as the text it is.
Source: app 0.11.1, golden `vectors.tokens` and `vectors.paths`.
"""

from __future__ import annotations

import posixpath
import re
from functools import cached_property, lru_cache
from typing import Any

from craftd.model import json_text

TOKEN = "{{SESSION_PATH}}"
_TOKEN_BYTES = TOKEN.encode()
_TYPED_TOKEN = b"\\u007b{SESSION_PATH}}"
END_OF_PATH = r"(?![A-Za-z0-9_-]|\.[A-Za-z0-9_-])"
"""No further character of a folder name. Session ids are ASCII, so `…/260306-a-b是` names the session, `…-b-2` not."""

_HOME = re.compile(r"\$\{HOME\}|\$HOME(?=/|$)")


def dump_line(record: Any, directory: str) -> bytes:
    """The line of *record* in a file below *directory* (absolute, no trailing slash), without the LF."""
    text = json_text.dumps(record)
    if _TOKEN_BYTES in text:
        text = text.replace(_TOKEN_BYTES, _TYPED_TOKEN)
    folder = _folder(directory)
    if folder is not None and folder.replaceable and folder.text in text:
        text = folder.in_text.sub(_TOKEN_BYTES, text)
    return text


def parse_line(data: bytes, directory: str) -> Any:
    """The value of a line that stands in a file below *directory*; `dump_line` reversed.

    Raises: ValueError for what is no JSON.
    """
    return json_text.loads(expand_line(data, directory))


def expand_line(data: bytes, directory: str) -> bytes:
    """A line that stands in a file below *directory* as JSON text of the same value without tokens."""
    if _TOKEN_BYTES in data:
        folder = _folder(directory)
        if folder is not None:
            return data.replace(_TOKEN_BYTES, folder.text)
    return data


def retarget(data: bytes, old: str, new: str) -> bytes:
    """JSON text with every path at or below the folder *old* at or below *new*."""
    folder = _folder(old)
    if folder is None or folder.text not in data:
        return data
    text = json_text.dumps(new)[1:-1]
    return folder.in_text.sub(lambda _: text, data)


def names(data: bytes, directory: str) -> bool:
    """Whether *directory* stands in JSON text as it is."""
    folder = _folder(directory)
    return folder is not None and folder.text in data


def occurrences(text: str, directory: str) -> list[tuple[int, int]]:
    """Where *text* names *directory* or something below it: (start, end) of the part a token would replace."""
    folder = _folder(directory)
    if folder is None or not folder.replaceable or directory not in text:
        return []
    return [found.span() for found in folder.in_string.finditer(text)]


def expand_home(path: str, home: str, cwd: str | None = None) -> str:
    """*path* with `~`, `$HOME` and `${HOME}` replaced, normalised; relative paths start at *cwd* (None: stay relative).

    `~name` is no home form. "" stays "".
    """
    if not path:
        return path
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    if "$" in path:
        path = _HOME.sub(lambda _: home, path)
    if not path.startswith("/") and cwd is not None:
        path = f"{cwd}/{path}"
    return _normalised(path)


def contract_home(path: str, home: str) -> str:
    """*path* normalised and, at or below *home*, beginning with `~`."""
    if not path:
        return path
    path = _normalised(path)
    home = home.rstrip("/")
    if home and (path == home or path.startswith(home + "/")):
        return "~" + path[len(home) :]
    return path


class _Folder:
    """What replacing one folder needs; compiled when it is first needed, since expanding needs none of it.

    replaceable: JSON text spells the folder as it is. The app expands a token without escaping, so behind a token for
    a folder with a quote or a backslash it could not read the line.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.text = json_text.dumps(directory)[1:-1]
        self.replaceable = self.text == directory.encode("utf-8", "surrogatepass")

    @cached_property
    def in_text(self) -> re.Pattern[bytes]:
        return re.compile(re.escape(self.text) + END_OF_PATH.encode())

    @cached_property
    def in_string(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.directory) + END_OF_PATH)


@lru_cache(maxsize=1024)
def _folder(directory: str) -> _Folder | None:
    return _Folder(directory) if directory.strip("/") else None


def _normalised(path: str) -> str:
    """Node's `path.normalize`: like `posixpath.normpath`, but a trailing slash survives and `//` is one slash."""
    slash = "/" if path.endswith("/") else ""
    plain = posixpath.normpath(path)
    if plain.startswith("//"):
        plain = plain[1:]
    return plain if plain == "/" else plain + slash
