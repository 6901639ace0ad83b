"""Images that a message brings along as base64: they belong into files, and a new line has none of them.

The app writes `resizedBase64` and `thumbnailBase64` of an attachment into the line, up to 5 MiB each, and again with
every save. What has its file already is left out; what has none gets one, and the attachment says where.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Any, Final

from craftd.model.records import Record

FOLDER: Final = "attachments"

_PLACES: Final = (("resizedBase64", "storedPath", ""), ("thumbnailBase64", "thumbnailPath", "_thumb"))
"""Member with the image, member with the path of its file, and what the name of that file ends in."""

_KINDS: Final = ((b"\x89PNG", "png"), (b"\xff\xd8\xff", "jpg"), (b"GIF8", "gif"), (b"RIFF", "webp"))
_DATA_URL: Final = re.compile(r"data:[^,]{0,100};base64,")


def moved(record: Record, directory: str) -> tuple[Record, dict[str, bytes]]:
    """*record* without images in its attachments; and the files (below *directory*) of those that had none."""
    attachments = record.get("attachments")
    if not isinstance(attachments, list):
        return record, {}
    files: dict[str, bytes] = {}
    new = [_without(one, directory, files) if isinstance(one, dict) else one for one in attachments]
    if all(one is old for one, old in zip(new, attachments, strict=True)):
        return record, {}
    return {**record, "attachments": new}, files


def _without(attachment: Record, directory: str, files: dict[str, bytes]) -> Record:
    for member, path, ending in _PLACES:
        image = attachment.get(member)
        if not isinstance(image, str):
            continue
        if isinstance(attachment.get(path), str) and attachment[path]:
            attachment = _left_out(attachment, member)
        elif (data := _decoded(image)) is not None:
            digest = hashlib.sha256(data).hexdigest()[:32]
            name = f"{FOLDER}/{digest}{ending}.{_kind(data)}"
            files[name] = data
            attachment = {**_left_out(attachment, member), path: f"{directory}/{name}"}
    return attachment


def _left_out(record: Record, name: str) -> Record:
    return {key: value for key, value in record.items() if key != name}


def _decoded(text: str) -> bytes | None:
    """What *text* is the base64 of; None where it is none, or of nothing."""
    try:
        return base64.b64decode(text[_start(text) :], validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _start(text: str) -> int:
    found = _DATA_URL.match(text)
    return 0 if found is None else found.end()


def _kind(data: bytes) -> Any:
    return next((ending for beginning, ending in _KINDS if data.startswith(beginning)), "bin")
