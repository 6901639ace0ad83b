"""What a session of a project is told of it: a block for the prompt, and the same as data.  App 0.11.1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from attrs import frozen

from craftd.model import assets, memory
from craftd.model.json_text import JS_WHITESPACE
from craftd.model.records import Record

INSTRUCTIONS: Final = (
    "This session belongs to the project above. Read an asset only when it is needed. What the memory says holds, "
    "unless the user says otherwise. Write what will matter later into MEMORY.md, the newest first, and keep it below "
    "5000 tokens."
)

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ALL_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")
_CLOSING: Final = re.compile(r"<\s*/\s*(project_context|project_memory|project_assets)\s*>", re.IGNORECASE)


@frozen
class Asset:
    """size: bytes. modified_at: ms since 1970 UTC. version: another one after every write."""

    name: str
    size: int
    modified_at: int
    version: str = ""

    @property
    def mime_type(self) -> str:
        return assets.media_type(self.name)


def as_json(project: Record, folder: str, listed: Sequence[Asset], noted: str) -> dict[str, Any]:
    """`info.context`. folder: absolute path of the project's. noted: MEMORY.md, "" where there is none."""
    kept = memory.limited(noted)
    context: dict[str, Any] = {
        "assetsPath": f"{folder}/assets",
        "assets": [{"name": one.name, "mimeType": one.mime_type, "size": one.size} for one in listed],
        "memoryPath": f"{folder}/MEMORY.md",
        "text": "\n".join(block(project, folder, listed, kept.text)),
    }
    return context if kept.text is None else {**context, "memory": kept.text}


def block(project: Record, folder: str, listed: Sequence[Asset], remembered: str | None) -> list[str]:
    """Lines of the block. Nothing in it can end it: closing tags in texts are written as entities."""
    lines = ["", f'<project_context project="{_attribute(project.get("name"))}">']
    for member in ("description", "details"):
        text = _body(project.get(member))
        if text:
            lines += [*text.split("\n"), ""]
    lines.append(f"<project_assets_path>{folder}/assets</project_assets_path>")
    if listed:
        shown = (f"- {_name(one.name)} ({one.mime_type}, {assets.size_text(one.size)})" for one in listed)
        lines += ["<project_assets>", *shown, "</project_assets>"]
    lines.append(f"<project_memory_path>{folder}/MEMORY.md</project_memory_path>")
    if remembered is not None:
        lines += ["<project_memory>", *_body(remembered).split("\n"), "</project_memory>"]
    return [*lines, "", INSTRUCTIONS, "</project_context>", ""]


def _attribute(name: object) -> str:
    text = name if isinstance(name, str) else ""
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(char, entity)
    return _ALL_CONTROLS.sub("", text)


def _body(text: object) -> str:
    plain = _CONTROLS.sub("", text if isinstance(text, str) else "").strip(JS_WHITESPACE)
    return _CLOSING.sub(lambda tag: f"&lt;/{tag.group(1).lower()}&gt;", plain)


def _name(name: str) -> str:
    return _CLOSING.sub(lambda tag: f"&lt;/{tag.group(1).lower()}&gt;", _ALL_CONTROLS.sub("", name))
