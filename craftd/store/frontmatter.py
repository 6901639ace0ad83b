"""Markdown with front matter (SKILL.md): the grammar of the app's reader, and edits that touch only what changed.

Source: app 0.11.1 (gray-matter 4.0.3 with js-yaml 3.14), golden skills. `---js` is executed there and refused here.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from attrs import evolve, frozen

from craftd.errors import Issue, ValidationFailed
from craftd.model import json_text
from craftd.model.json_places import Range
from craftd.model.records import Record
from craftd.store import yaml_text
from craftd.store.files import BOM, Parsed, Problem, encoded, same, whole_line

LARGEST_MATTER: Final = 256 * 1024
"""Bytes; without a closing line the whole file is front matter, and parsing YAML is slow."""

_FENCE: Final = b"---"
_CLOSE: Final = b"\n---"
_COMMENTS: Final = re.compile(rb"^\s*#[^\n]+", re.MULTILINE)


@frozen(kw_only=True)
class Parts:
    """The file in pieces that, joined, are the file. closed: a closing line ends the front matter."""

    bom: bytes = b""
    fence: bytes = b""
    language: bytes = b""
    matter: bytes = b""
    close: bytes = b""
    body: bytes = b""

    def joined(self) -> bytes:
        return self.bom + self.fence + self.language + self.matter + self.close + self.body

    @property
    def newline(self) -> str:
        return "\r\n" if b"\r\n" in self.matter + self.close + self.body else "\n"


def split(data: bytes) -> Parts:
    """Front matter starts with exactly three dashes at the very start and ends at the first line that starts so."""
    bom = BOM if data.startswith(BOM) else b""
    text = data[len(bom) :]
    if not text.startswith(_FENCE) or text[3:4] == b"-":
        return Parts(bom=bom, body=text)
    rest = text[3:]
    first = re.match(rb"[^\n]*?(?=\r?\n|\Z)", rest)
    language = first.group() if first and first.group().strip() else b""
    rest = rest[len(language) :]
    at = rest.find(_CLOSE)
    if at < 0:
        return Parts(bom=bom, fence=_FENCE, language=language, matter=rest)
    after = at + len(_CLOSE)
    line_end = re.match(rb"\r?\n?", rest[after:])
    close = _CLOSE + (line_end.group() if line_end else b"")
    return Parts(bom=bom, fence=_FENCE, language=language, matter=rest[:at], close=close, body=rest[at + len(close) :])


@frozen(kw_only=True)
class MatterForm:
    """The front matter's members, and the text after it as the member *body*.

    texts: members that are text whatever YAML takes them for: their value is what was written (`123`, `2026-07-01`).
    A member of the front matter that is itself called *body* is not shown, and kept.
    """

    body: str = "content"
    texts: frozenset[str] = frozenset()

    def parse(self, data: bytes) -> Parsed:
        parts = split(data)
        read = self._matter(parts)
        return evolve(read, value={**read.value, self.body: parts.body.decode("utf-8", "replace")})

    def format(self, value: Any, data: bytes | None) -> bytes:
        """Raises: ValidationFailed for members that would not be read back (a key of 1,100 characters, 200 levels)."""
        written = self._written(value, data)
        wanted = {name: member for name, member in value.items() if name != self.body}
        found = self.parse(written)
        if not found.sound or not same({n: m for n, m in found.value.items() if n != self.body}, wanted):
            raise ValidationFailed((Issue(path="", message="cannot be written as front matter", code="not-yaml"),))
        return written

    def _written(self, value: Any, data: bytes | None) -> bytes:
        content = encoded(value.get(self.body) or "")
        members: Record = {name: member for name, member in value.items() if name != self.body}
        if data is None:
            return b"---\n" + encoded(yaml_text.format(members)) + b"---\n" + content
        parts = split(data)
        old = self._matter(parts).value
        if self.body in old:
            members[self.body] = old[self.body]
        if not same(old, members):
            parts = self._with_members(parts, members)
        if parts.body.decode("utf-8", "replace") != value.get(self.body, ""):
            parts = _with_body(parts, content)
        return parts.joined()

    def ranges_of(self, data: bytes, paths: Collection[str]) -> dict[str, Range | None]:
        """The front matter is parsed once, however many *paths* there are."""
        parts = split(data)
        text = parts.matter.decode("utf-8", "replace")
        try:
            root = yaml_text.parse(text) if parts.fence and set(paths) != {self.body} else None
        except yaml_text.NotYaml:
            return {path: whole_line(self._body_line(parts)) if path == self.body else None for path in paths}
        lines = {path: self._line(parts, root, text, path) for path in paths}
        return {path: whole_line(line) for path, line in lines.items()}

    def _line(self, parts: Parts, root: yaml_text.Node | None, text: str, path: str) -> int:
        if path == self.body:
            return self._body_line(parts)
        place = None if root is None else root.place_of(path.split("."))
        return 1 if place is None else text.count("\n", 0, place) + 1

    def _body_line(self, parts: Parts) -> int:
        return (parts.bom + parts.fence + parts.language + parts.matter + parts.close).count(b"\n") + 1

    def _matter(self, parts: Parts) -> Parsed:
        """Members of the front matter alone."""
        if not _COMMENTS.sub(b"", parts.matter).strip():
            return Parsed(value={})
        language = parts.language.decode("utf-8", "replace").strip()
        if language.lower() not in ("", "yaml", "yml", "json"):
            return _unreadable(f"front matter in {language[:40]!r} is not read, only YAML and JSON are", 1)
        if len(parts.matter) > LARGEST_MATTER:
            return _unreadable(f"front matter longer than {LARGEST_MATTER} bytes; is its closing line missing?", 1)
        text = parts.matter.decode("utf-8", "replace")
        read = self._json(text) if language.lower() == "json" else self._yaml(text)
        problems = list(read.problems)
        if not parts.close:
            problems.append(Problem(message="front matter without a closing line", code="not-closed", line=1))
        sound = read.sound
        try:
            parts.matter.decode()
        except UnicodeDecodeError as error:
            line = parts.matter.count(b"\n", 0, error.start) + 1
            problems.append(Problem(message="not UTF-8", code="not-utf8", line=line))
            sound = False  # an edit would write the substitutes
        return Parsed(value=read.value, problems=tuple(problems), sound=sound)

    def _yaml(self, text: str) -> Parsed:
        try:
            root = yaml_text.parse(text)
        except yaml_text.NotYaml as error:
            line = None if error.index is None else text.count("\n", 0, error.index) + 1
            return _unreadable(f"no YAML: {error.message}", line)
        if root.kind != "map":
            return _unreadable("front matter must be `name: value` lines", 2, "schema")
        problems = [
            Problem(
                message=f"{name} is {entry.node.other} to YAML: put it in quotes",
                code="schema",
                line=text.count("\n", 0, entry.start) + 1,
            )
            for name, entry in root.entries.items()
            if name in self.texts and entry.node.other is not None and entry.node.value is not None
        ]
        return Parsed(value=yaml_text.texts(root, self.texts), problems=tuple(problems))

    def _json(self, text: str) -> Parsed:
        try:
            value = json_text.loads(text)
        except ValueError as error:
            return _unreadable(f"no JSON: {error}", getattr(error, "lineno", None))
        if not isinstance(value, dict):
            return _unreadable("front matter must be an object", 2, "schema")
        return Parsed(value=value)

    def _with_members(self, parts: Parts, members: Record) -> Parts:
        newline = parts.newline
        end = newline.encode()
        if not parts.fence:
            parts = evolve(parts, fence=_FENCE, close=end + _FENCE + end)
        if parts.language.strip().lower() == b"json":
            matter = end + json_text.dumps_indented(members)
        else:
            text = parts.matter.decode()
            # The LF of a CRLF before the closing line belongs to the closing mark.
            cr = "\r" if text.endswith("\r") and parts.close else ""
            matter = encoded(yaml_text.edit(text.removesuffix(cr), members, self.texts, newline) + cr)
        return evolve(parts, matter=matter)


def _with_body(parts: Parts, body: bytes) -> Parts:
    end = parts.newline.encode()
    if parts.fence and not parts.close:
        parts = evolve(parts, close=end + _FENCE + end)
    elif parts.fence and not parts.close.endswith(b"\n"):
        parts = evolve(parts, close=parts.close + end)
    elif not parts.fence and body.startswith(_FENCE):
        # The new text would be taken for front matter.
        parts = evolve(parts, fence=_FENCE, close=end + _FENCE + end)
    return evolve(parts, body=body)


def _unreadable(message: str, line: int | None, code: str = "not-yaml") -> Parsed:
    return Parsed(value={}, problems=(Problem(message=message, code=code, line=line),), sound=False)
