"""YAML text as JSON values with places, and changes of single entries that leave every other byte alone.

ruamel.yaml scans and parses; which word means what is decided here: `parse` does as js-yaml 3 (front matter),
`parse_core` as the core schema of YAML 1.2 (tasks). Editing replaces the text of the entries that changed, so comments,
quotes, order and blank lines survive; the result is parsed again, and only where that does not give the wanted values
(anchors, `? key` forms, flow roots) is the whole text written anew.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final

from attrs import define, evolve, field, frozen
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from craftd.model import json_text
from craftd.model.records import Record
from craftd.store import yaml_scalars

DEEPEST: Final = 100
"""Containers inside each other."""

MOST: Final = 100_000
"""Values in one text with every alias written out: a few lines of aliases can stand for billions."""

_TAG: Final = "tag:yaml.org,2002:"
_TAB_AT_START: Final = re.compile(r"^( *)(\t[ \t]*)", re.MULTILINE)
_TAB_BETWEEN: Final = re.compile(r"(?<=[:\-?,\[{])\t+|\t+(?=#|\r?$)", re.MULTILINE)


@define
class NotYaml(ValueError):
    """index: offset of the mistake in the text, where it is known."""

    message: str
    index: int | None = None

    def __str__(self) -> str:
        return self.message


@frozen(kw_only=True)
class Node:
    """A value and where it stands. source: text of a scalar; block: written with indentation, not brackets.

    entries: members of a mapping; items: those of a list, and what a mapping takes over by `<<`.
    size: values in it, aliases counted as often as they are used. other: what an unquoted scalar that is no text is.
    """

    value: Any
    start: int
    end: int
    kind: str
    block: bool = False
    size: int = 1
    source: str = ""
    other: str | None = None
    entries: dict[str, Entry] = field(factory=dict)
    items: list[Node] = field(factory=list)

    def place_of(self, path: list[str]) -> int | None:
        """Where the member at *path* begins, key included, or its nearest parent that is there."""
        node, place = self, None
        for name in path:
            if name in node.entries:
                node, place = node.entries[name].node, node.entries[name].start
            elif node.kind == "list" and name.isdecimal() and int(name) < len(node.items):
                node = node.items[int(name)]
                place = node.start
            else:
                break
        return place

    def span_of(self, path: list[str]) -> tuple[int, int] | None:
        """Where the value at *path* stands, or of what is not there its nearest parent's key; None for the whole."""
        node, span = self, None
        for name in path:
            if name in node.entries:
                entry = node.entries[name]
                node, key = entry.node, (entry.start, entry.end)
            elif node.kind == "list" and name.isdecimal() and len(name) < 10 and int(name) < len(node.items):
                node = node.items[int(name)]
                key = (node.start, node.start)
            else:
                break
            span = key if node.kind in ("map", "list") else (node.start, node.end)
        return span

    def last(self) -> int:
        """Where its text really ends; the parser counts blank lines and comments after a block to it."""
        inner = [entry.node.last() for entry in self.entries.values()] + [item.last() for item in self.items]
        return max(inner) if self.block and inner else self.end


@frozen
class Entry:
    """A key (start to end) and its node."""

    start: int
    end: int
    node: Node


def parse(text: str) -> Node:
    """The one document in *text*; nothing, or only comments, is a null. Raises: NotYaml.

    A missing last line end is added, as js-yaml does: block texts end with it.
    """
    if not text.endswith(("\n", "\r")):
        text += "\n"
    try:
        return _compose(text, lambda index: index)
    except NotYaml:
        if "\t" not in text:
            raise
    # js-yaml takes a tab for a blank wherever one may stand between words; ruamel.yaml, like the standard, does not.
    cuts: list[int] = []
    removed = 0
    for found in _TAB_AT_START.finditer(text):
        cuts.extend([found.start(2) - removed] * len(found.group(2)))
        removed += len(found.group(2))
    blank = _TAB_BETWEEN.sub(lambda found: " " * len(found.group()), _TAB_AT_START.sub(r"\1", text))
    return _compose(blank, lambda index: index + bisect_right(cuts, index))


def parse_core(text: str) -> Node:
    """The one document in *text* by the core schema of YAML 1.2: `yes` is text, nothing is merged. Raises: NotYaml."""
    return _compose(text, lambda index: index, core=True)


def texts(node: Node, names: frozenset[str]) -> Record:
    """The mapping *node* as a value in which the scalars called *names* are always text: what was written."""
    value: Record = dict(node.value)
    for name in names & node.entries.keys():
        entry = node.entries[name].node
        if entry.kind == "scalar" and value[name] is not None:
            value[name] = entry.source
    return value


def _compose(text: str, place: Any, *, core: bool = False) -> Node:
    try:
        events: Iterator[Event] = iter(YAML(typ="safe", pure=True).parse(text))
        return _Composer(events, place, core).document()
    except NotYaml:
        raise
    except ReaderError as error:
        raise NotYaml("a character that YAML does not allow", place(error.position)) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise NotYaml(error.problem or error.context or "unreadable", mark and place(mark.index)) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise NotYaml(str(error).partition("\n")[0] or "unreadable") from None


@define(eq=False)
class _Composer:
    events: Iterator[Event]
    place: Any
    core: bool
    anchors: dict[str, Node] = field(factory=dict)
    count: int = 0

    def document(self) -> Node:
        root: Node | None = None
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    raise self._wrong(event, "more than one document")
                root = self._node(next(self.events), 0)
        return root or Node(value=None, start=0, end=0, kind="scalar")

    def _wrong(self, event: Event, message: str) -> NotYaml:
        return NotYaml(message, self.place(event.start_mark.index))

    def _node(self, event: Event, depth: int) -> Node:
        if isinstance(event, AliasEvent):
            known = self.anchors.get(event.anchor)
            if known is None:
                raise self._wrong(event, f"no anchor {event.anchor!r} before")
            start, end = self._span(event, event)
            return Node(
                value=known.value, start=start, end=end, kind="alias", size=known.size, source=known.source,
                other=known.other,
            )  # fmt: skip
        if depth > DEEPEST:
            raise self._wrong(event, f"more than {DEEPEST} levels")
        self.count += 1
        if self.count > MOST:
            raise self._wrong(event, f"more than {MOST} values")
        if isinstance(event, ScalarEvent):
            node = self._scalar(event)
        elif isinstance(event, SequenceStartEvent):
            node = self._sequence(event, depth)
        elif isinstance(event, MappingStartEvent):
            node = self._mapping(event, depth)
        else:
            raise self._wrong(event, "a value is missing")
        if node.size > MOST:
            raise self._wrong(event, f"more than {MOST} values")
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def _span(self, first: Event, last: Event) -> tuple[int, int]:
        return self.place(first.start_mark.index), self.place(last.end_mark.index)

    def _tag(self, event: Any) -> str | None:
        tag = None if event.tag is None else str(event.tag)
        return tag.removeprefix(_TAG) if tag is not None and tag.startswith(_TAG) else tag

    def _scalar(self, event: Any) -> Node:
        text: str = event.value
        start, end = self._span(event, event)
        style = event.style or ""
        tag = self._tag(event)
        other = None
        if tag is None and style == "":
            value, other = self._plain(text), yaml_scalars.is_other_than_text(text)
        elif tag in (None, "!", "str"):
            value = text
        else:
            value = self._tagged(event, tag, text)
            other = f"a {tag}" if tag is not None else None
        return Node(
            value=value, start=start, end=end, kind="scalar", block=style in ("|", ">"), source=text, other=other
        )

    def _plain(self, text: str) -> Any:
        return yaml_scalars.core(text) if self.core else yaml_scalars.plain(text)

    def _tagged(self, event: Any, tag: str | None, text: str) -> Any:
        value = self._plain(text)
        fits = {
            "null": value is None,
            "bool": isinstance(value, bool),
            "int": isinstance(value, int) and not isinstance(value, bool),
            "float": isinstance(value, (int, float)) and not isinstance(value, bool),
        }
        if tag is not None and fits.get(tag):
            return value
        if tag in ("timestamp", "binary"):
            return "".join(text.split()) if tag == "binary" else text
        raise self._wrong(event, f"the tag {event.tag} does not fit here")

    def _sequence(self, event: Any, depth: int) -> Node:
        if self._tag(event) not in (None, "!", "seq", "omap", "pairs"):
            raise self._wrong(event, f"the tag {event.tag} does not fit here")
        items: list[Node] = []
        while not isinstance(following := next(self.events), SequenceEndEvent):
            items.append(self._node(following, depth + 1))
        start, end = self._span(event, following)
        return Node(
            value=[item.value for item in items], start=start, end=end, kind="list", block=not event.flow_style,
            size=1 + sum(item.size for item in items), items=items,
        )  # fmt: skip

    def _mapping(self, event: Any, depth: int) -> Node:
        if self._tag(event) not in (None, "!", "map", "set"):
            raise self._wrong(event, f"the tag {event.tag} does not fit here")
        value: Record = {}
        entries: dict[str, Entry] = {}
        merged: list[Node] = []
        size = 1
        while not isinstance(following := next(self.events), MappingEndEvent):
            key = self._node(following, depth + 1)
            node = self._node(next(self.events), depth + 1)
            size += 1 + node.size
            if isinstance(following, ScalarEvent) and key.source == "<<" and not following.style and not self.core:
                self._merge(following, value, node.value)
                merged.append(node)
                continue
            name = self._name(following, key)
            if name in entries:
                raise self._wrong(following, f"the key {name!r} stands here for the second time")
            value[name] = node.value
            if node.start == node.end:  # nothing is there; the parser may place it on a later line
                node = evolve(node, start=key.end, end=key.end)
            entries[name] = Entry(key.start, key.end, node)
        start, end = self._span(event, following)
        return Node(
            value=value, start=start, end=end, kind="map", block=not event.flow_style, size=size, entries=entries,
            items=merged,
        )  # fmt: skip

    def _merge(self, event: Event, value: Record, source: Any) -> None:
        for mapping in source if isinstance(source, list) else [source]:
            if not isinstance(mapping, dict):
                raise self._wrong(event, "`<<` takes mappings")
            for name, member in mapping.items():
                value.setdefault(name, member)

    def _name(self, event: Event, key: Node) -> str:
        if isinstance(key.value, str):
            return key.value
        if isinstance(key.value, (dict, list)):
            raise self._wrong(event, "a key must be one word or text")
        return json_text.dumps(key.value).decode()


# -- writing --

_PLAIN: Final = re.compile(r"[^\W\d_][^\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]*(?<![\s:])")
_PLAIN_INSIDE: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9 _./-]*[A-Za-z0-9_./-])?", re.ASCII)
_ELSEWHERE_NO_TEXT: Final = frozenset({"y", "n", "yes", "no", "on", "off"})
"""Booleans to YAML 1.1 readers other than the app."""
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def scalar(text: str, *, inside: bool = False) -> str:
    """*text* as YAML: plain where every reader takes it for text, else in double quotes. inside: between brackets."""
    pattern = _PLAIN_INSIDE if inside else _PLAIN
    if (
        pattern.fullmatch(text)
        and ": " not in text
        and " #" not in text
        and text.lower() not in _ELSEWHERE_NO_TEXT
        and yaml_scalars.is_other_than_text(text) is None
    ):
        return text
    quoted = json_text.dumps(text).decode()
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted)


def flow(value: Any, *, inside: bool = False) -> str:
    """*value* on one line."""
    if isinstance(value, str):
        return scalar(value, inside=inside)
    if isinstance(value, list):
        return "[" + ", ".join(flow(item, inside=True) for item in value) + "]"
    if isinstance(value, dict):
        members = (f"{scalar(name, inside=True)}: {flow(member, inside=True)}" for name, member in value.items())
        return "{" + ", ".join(members) + "}"
    return json_text.dumps(value).decode()


def format(value: Record, newline: str = "\n") -> str:
    """*value* as block entries, one a line."""
    return "".join(f"{scalar(name)}: {flow(member)}{newline}" for name, member in value.items())


def edit(text: str, value: Record, names: frozenset[str], newline: str) -> str:
    """*text* (a mapping, or nothing) changed so that `texts(parse(it), names)` is *value*, touching only what differs.

    *text* may lack its last line end; so may the answer then.
    """
    open_end = not text.endswith(("\n", "\r"))
    lines = text + newline if open_end else text
    root = parse(lines)
    old = texts(root, names) if root.kind == "map" else {}
    edited = _spliced(lines, root, old, value, newline) if root.kind != "map" or root.block else None
    if edited is None or not _says(edited, value, names):
        start = text[: len(text) - len(text.lstrip("\r\n"))] or newline
        edited = start + format(value, newline)
    return edited.removesuffix(newline) if open_end else edited


def _says(text: str, value: Record, names: frozenset[str]) -> bool:
    try:
        root = parse(text)
    except NotYaml:
        return False
    found = texts(root, names) if root.kind == "map" else {}
    return json_text.canonical(found) == json_text.canonical(value)


def _spliced(text: str, root: Node, old: Record, new: Record, newline: str) -> str:
    splices: list[tuple[int, int, str]] = []
    for name, entry in root.entries.items():
        if name not in new:
            splices.append((_line_start(text, entry.start), _line_end(text, _true_end(text, entry.node)), ""))
        elif json_text.canonical(old[name]) != json_text.canonical(new[name]):
            splices.append(_changed(text, entry, new[name], newline))
    # A key that came in by a merge has no entry of its own yet: its change is a new one.
    added = {
        name: member
        for name, member in new.items()
        if name not in root.entries
        and not (name in old and json_text.canonical(old[name]) == json_text.canonical(member))
    }
    if added:
        at = _line_end(text, _true_end(text, root)) if root.entries or root.items else len(text)
        splices.append((at, at, format(added, newline)))
    for start, end, replacement in sorted(splices, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _changed(text: str, entry: Entry, value: Any, newline: str) -> tuple[int, int, str]:
    node, end = entry.node, _true_end(text, entry.node)
    if node.kind == "list" and node.block and isinstance(value, list) and value and node.items:
        start = _line_start(text, node.items[0].start)
        return start, _line_end(text, end), _block_items(text, node, value, newline)
    if node.block and node.kind != "scalar":
        start = text.index(":", entry.end) + 1
        comment = re.match(r"[ \t]*#[^\r\n]*", text[start:])
        return start, end, f" {flow(value)}" + (comment.group() if comment else "")
    if node.start == node.end:
        start = text.index(":", entry.end) + 1
        return start, start, f" {flow(value)}"
    return node.start, end, flow(value)


def _block_items(text: str, node: Node, value: list[Any], newline: str) -> str:
    """Lines of the new list; an item that was there before keeps its own lines, comments included."""
    starts = [_line_start(text, item.start) for item in node.items]
    ends = [*starts[1:], _line_end(text, _true_end(text, node))]
    first = text[starts[0] :]
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    unused = [
        (json_text.canonical(item.value), text[start:end])
        for item, start, end in zip(node.items, starts, ends, strict=True)
    ]
    lines: list[str] = []
    for item in value:
        key = json_text.canonical(item)
        at = next((at for at, (known, _) in enumerate(unused) if known == key), None)
        lines.append(f"{indent}- {flow(item)}{newline}" if at is None else unused.pop(at)[1])
    return "".join(lines)


def _true_end(text: str, node: Node) -> int:
    """End of the last character that belongs to *node*."""
    end = node.last()
    return max(node.start, len(text[:end].rstrip()))


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def _line_end(text: str, index: int) -> int:
    """Behind the line end that follows *index*."""
    at = text.find("\n", index)
    return len(text) if at < 0 else at + 1
