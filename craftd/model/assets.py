"""Uploads of a project: what they are called, and what they are.  App 0.11.1, golden `projects/cases.json`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from craftd.model.files import NAME_BYTES

_NOT_IN_NAMES: Final = re.compile(r"[/\\\x00-\x1f\x7f]")

_TEXT = (
    "txt md json js ts tsx jsx py rb go rs java c cpp h css scss html xml yaml yml toml sh bash zsh fish sql graphql "
    "csv log conf ini cfg env dockerfile"
)
_OFFICE = "application/vnd.openxmlformats-officedocument"
_TYPES: Final = {
    **dict.fromkeys(_TEXT.split(), "text/plain"),
    **{name: f"image/{name}" for name in ("png", "jpeg", "gif", "webp", "bmp", "tiff", "heic", "heif")},
    "jpg": "image/jpeg",
    "tif": "image/tiff",
    "ico": "image/x-icon",
    "icns": "image/x-icns",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "mp3": "audio/mpeg",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "weba": "audio/webm",
    "webm": "audio/webm",
}
UNKNOWN: Final = "application/octet-stream"


def sanitised(name: str, pick: Callable[[int], int]) -> str:
    """A name that a file can have: the last part, without separators, control characters and dots at the beginning.

    pick(n): a random number below n, for a name of which nothing is left.
    """
    last = _NOT_IN_NAMES.sub("", name.rstrip("/").rpartition("/")[2]).lstrip(".")
    last = last.encode("utf-8", "ignore")[:NAME_BYTES].decode("utf-8", "ignore")
    return last or "asset_" + "".join(f"{pick(16):x}" for _ in range(8))


def numbered(name: str, number: int) -> str:
    """*name* for when it is taken: `plan-2.md`. The number goes before the last extension."""
    if number < 2:
        return name
    stem, dot, extension = name.rpartition(".")
    if not dot or not stem:
        stem, dot, extension = name, "", ""
    tail = f"-{number}{dot}{extension}"
    room = max(1, NAME_BYTES - len(tail.encode()))
    return stem.encode()[:room].decode("utf-8", "ignore") + tail


def media_type(name: str) -> str:
    """By the last extension; a name that is nothing but one has none."""
    stem, dot, extension = name.rpartition(".")
    return _TYPES.get(extension.lower(), UNKNOWN) if dot and stem else UNKNOWN


def size_text(size: int) -> str:
    """Bytes in words: `512 B`, `1.5 KB`."""
    if size < 1024:
        return f"{size} B"
    for unit, factor in (("KB", 1024), ("MB", 1024**2)):
        if size < factor * 1024:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 1024**3:.1f} GB"
