"""What a mirror keeps: records of a noun, messages of a session, and what an event makes of them. No I/O.

* Lists are answered from the daemon's memory in their place among the events: what comes before a page is in it, what
  comes behind it is not. Pages are sorted by id, so no record is on no page because it moved.
* Transcripts are read from files, so a page may be older than the events before it. Messages that are appended name
  their position and can be put in twice; if anything else happened meanwhile, the transcript is listed once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from craftd.errors import InvalidParams
from craftd.model import patch as patches

Record: TypeAlias = dict[str, Any]


class Unlisted(Exception):
    """What is listed has changed in a way that only listing again can tell."""


class Table:
    """Records of one noun by id: `{id, version, value}`.  coming: what is being listed anew."""

    def __init__(self) -> None:
        self.items: dict[str, Record] = {}
        self.coming: dict[str, Record] | None = None

    def hear(self, what: str, params: Mapping[str, Any]) -> set[str]:
        """Apply an event; the ids that it is about.  Raises: Unlisted."""
        if self.coming is not None:
            _apply(self.coming, what, params, strict=False)
        return _apply(self.items, what, params, strict=self.coming is None)

    def arrive(self) -> set[str]:
        """Put what was listed in its place; ids of records that differ."""
        old, new = self.items, self.coming or {}
        self.items, self.coming = new, None
        return {id for id in {*old, *new} if old.get(id) != new.get(id)}


def _apply(items: dict[str, Record], what: str, params: Mapping[str, Any], *, strict: bool) -> set[str]:
    """strict: everything is listed, so a change of a record that is not there must not be."""
    if what == "didCreate":
        item = params["item"]
        items[item["id"]] = kept(item)
        return {item["id"]}
    if what == "didDelete":
        items.pop(params["id"], None)
        return {params["id"]}
    if what != "didChange":
        return set()
    for change in params["changes"]:
        known = items.get(change["id"])
        if known is None:
            if strict:
                raise Unlisted
            continue
        value = _patched(known["value"], params["patch"])
        items[change["id"]] = {"id": change["id"], "version": change["version"], "value": value}
    return {change["id"] for change in params["changes"]}


def kept(item: Mapping[str, Any]) -> Record:
    """An item without what is computed: no event says when that changes."""
    return {"id": item["id"], "version": item["version"], "value": item["value"]}


def _patched(value: Record, patch: Mapping[str, Any]) -> Record:
    try:
        return patches.apply(value, dict(patch))
    except InvalidParams:
        raise Unlisted from None


class Transcript:
    """Messages of one session in order. coming: events that came while it is listed anew.

    touched: messages that were changed before their bodies had been fetched.
    """

    def __init__(self) -> None:
        self.messages: list[Record] = []
        self.coming: list[tuple[str, Mapping[str, Any]]] | None = None
        self.touched: set[str] = set()

    def hear(self, what: str, params: Mapping[str, Any]) -> None:
        """Raises: Unlisted."""
        if self.coming is not None:
            self.coming.append((what, params))
        elif what == "didAppend":
            self._append(params)
        elif what == "didTruncate":
            del self.messages[params["keep"] :]
        elif what == "didDelete":
            del self.messages[self.place(params["id"])]
        elif what == "didChange":
            for change in params["changes"]:
                self._change(change["id"], params["patch"])

    def _change(self, id: str, patch: Mapping[str, Any]) -> None:
        place = self.place(id)
        if is_omitted(self.messages[place]):
            self.touched.add(id)
        else:
            self.messages[place] = _patched(self.messages[place], patch)

    def _append(self, params: Mapping[str, Any]) -> None:
        index, new = params["index"], params["messages"]
        if index > len(self.messages):
            raise Unlisted
        known = self.messages[index : index + len(new)]
        if any(not is_omitted(each) and each != mine for each, mine in zip(new, known, strict=False)):
            raise Unlisted
        self.messages += new[len(known) :]
        if len(self.messages) != params["count"]:
            raise Unlisted

    def place(self, id: str) -> int:
        """Of repeated ids the first is meant.  Raises: Unlisted."""
        for place, message in enumerate(self.messages):
            if message.get("id") == id:
                return place
        if id.startswith("#") and id[1:].isdigit() and int(id[1:]) < len(self.messages):
            return int(id[1:])
        raise Unlisted

    def arrive(self, messages: list[Record]) -> None:
        """Put what was listed in its place, and behind it what came meanwhile.  Raises: Unlisted."""
        coming, self.coming = self.coming or [], None
        if any(what != "didAppend" for what, _ in coming):
            raise Unlisted
        self.messages = messages
        for _, params in coming:
            if params["index"] + len(params["messages"]) > len(self.messages):
                self._append({**params, "count": params["index"] + len(params["messages"])})

    @property
    def omitted(self) -> list[str]:
        """What to ask for: messages whose bodies no event carried."""
        return [message["id"] or f"#{place}" for place, message in enumerate(self.messages) if is_omitted(message)]


def is_omitted(message: Record) -> bool:
    return set(message) == {"id", "type", "omitted"}
