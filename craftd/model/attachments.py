"""Attachments of a session: what their files are called, and what a message says of one.  App 0.11.1.

`<uuid>_<name>` is the file, `<uuid>_thumb.png` its thumbnail, `<uuid>_<name>.md` what was made of a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from attrs import frozen

from craftd.model.assets import media_type
from craftd.model.files import NAME_BYTES
from craftd.model.json_text import utf16_cut
from craftd.model.records import Record

NAME_UNITS: Final = 200
"""UTF-16 units of a name."""
THUMBNAIL: Final = "thumb.png"
MARKDOWN: Final = ".md"

_SEPARATORS: Final = re.compile(r'[/\\<>:"|?*]')
_CONTROLS: Final = re.compile(r"[\x00-\x1f]")
_DOTS: Final = re.compile(r"\.+")
_STORED: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_(.+)", re.DOTALL)
_ROOM: Final = NAME_BYTES - len("00000000-0000-0000-0000-000000000000_") - len(MARKDOWN)

_EXTENSIONS: Final = {
    "image": "png jpg jpeg gif webp bmp tiff tif ico icns heic heif svg",
    "pdf": "pdf",
    "office": "docx xlsx pptx doc xls ppt",
    "audio": "mp3 wav ogg opus m4a aac flac weba webm",
}
_KINDS: Final = {extension: kind for kind, extensions in _EXTENSIONS.items() for extension in extensions.split()}


def safe_name(name: str) -> str:
    """What stands for *name* in the name of a file; of what has more than 255 bytes with all that is added, less."""
    name = _DOTS.sub(".", _CONTROLS.sub("", _SEPARATORS.sub("_", name))).strip(". ")
    name = utf16_cut(name, NAME_UNITS).encode("utf-8", "ignore")[:_ROOM].decode("utf-8", "ignore")
    return name or "unnamed"


def stored_name(id: str, name: str) -> str:
    """The file of an attachment called *name*; never that of its own thumbnail."""
    safe = safe_name(name)
    return f"{id}_{'thumb-1.png' if safe == THUMBNAIL else safe}"


def kind_of(name: str) -> str:
    """`image`, `pdf`, `office`, `audio`, else `text`, as in the app."""
    stem, dot, extension = name.rpartition(".")
    return _KINDS.get(extension.lower(), "text") if dot and stem else "text"


@frozen
class Attachment:
    """id: of an attachment that the app or craftd stored a UUID, else the name of the file. file, thumbnail,
    markdown: names in the folder."""

    id: str
    name: str
    file: str
    thumbnail: str | None = None
    markdown: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """All of them, the attachment itself last: what is taken away in this order is never half of one."""
        return tuple(name for name in (self.thumbnail, self.markdown, self.file) if name is not None)


def grouped(files: Iterable[str]) -> list[Attachment]:
    """The attachments that *files* of one folder are, in the order of the files themselves."""
    names = list(files)
    there = set(names)
    made = {name for name in names if name.endswith(MARKDOWN) and name.removesuffix(MARKDOWN) in there}
    found = {name: _STORED.fullmatch(name) for name in names if name not in made}
    owners = {match[1] for match in found.values() if match is not None and match[2] != THUMBNAIL}
    attachments: dict[str, Attachment] = {}
    for name, match in found.items():
        if match is not None and match[2] == THUMBNAIL and match[1] in owners:
            continue
        markdown = name + MARKDOWN if name + MARKDOWN in made else None
        if match is None or match[1] in attachments:
            attachments[name] = Attachment(name, name, name, markdown=markdown)
        else:
            thumbnail = f"{match[1]}_{THUMBNAIL}" if match[1] in owners else None
            thumbnail = thumbnail if thumbnail in there else None
            attachments[match[1]] = Attachment(match[1], match[2], name, thumbnail, markdown)
    return list(attachments.values())


def renditions(attachment: Attachment) -> list[tuple[str, str]]:
    """What would be made of a new attachment: names of files, and of what (`thumbnail`, or a document's extension)."""
    kind, extension = kind_of(attachment.name), attachment.name.rpartition(".")[2].lower()
    if kind == "image":
        return [(f"{attachment.id}_{THUMBNAIL}", "thumbnail")]
    return [(attachment.file + MARKDOWN, extension)] if kind == "office" else []


def stored(attachment: Attachment, size: int, folder: str) -> Record:
    """What a message has in its `attachments`. folder: absolute path of the folder of attachments."""
    told: Record = {
        "id": attachment.id,
        "type": kind_of(attachment.name),
        "name": attachment.name,
        "mimeType": media_type(attachment.name),
        "size": size,
        "storedPath": f"{folder}/{attachment.file}",
    }
    if attachment.thumbnail is not None:
        told["thumbnailPath"] = f"{folder}/{attachment.thumbnail}"
    if attachment.markdown is not None:
        told["markdownPath"] = f"{folder}/{attachment.markdown}"
    return {**told, "wasResized": False}
