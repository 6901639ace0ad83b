"""Whether several clients saw one order: what each was told, against the revisions in the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Literal

from attrs import define, field, frozen

from craftd.model import json_text
from tests.wire import Wire


@frozen
class Entry:
    """One thing in the order in which a client sent or heard it.

    at: place among the entries of all clients. what: a request's number for asked and answered, a fingerprint of its
    text for an event. revision: of an answer or event.
    """

    at: int
    kind: Literal["asked", "answered", "event"]
    what: str
    revision: int = 0


def problems(clients: Mapping[str, Sequence[Entry]]) -> list[str]:
    """What contradicts that all changes happened one after the other, in the order of their revisions.

    clients: whose subscriptions are alike. Each hears every event that any of them hears, once, with the same text; an
    answer comes after the events up to its revision, and what was asked for after an answer has a later one.
    """
    found = []
    texts: dict[int, str] = {}
    spans: list[tuple[int, int, int, str]] = []
    for client, entries in clients.items():
        last = answered = -1
        asked: dict[str, int] = {}
        for entry in entries:
            if entry.kind == "asked":
                asked[entry.what] = entry.at
            elif entry.kind == "event":
                if entry.revision <= last:
                    found.append(f"{client} heard of {entry.revision} after {last}")
                if texts.setdefault(entry.revision, entry.what) != entry.what:
                    found.append(f"{client} was told something else of {entry.revision}")
                if entry.revision <= answered:
                    found.append(f"{client} was answered {answered} before it heard of {entry.revision}")
                last = entry.revision
            else:
                answered = max(answered, entry.revision)
                spans.append((asked.pop(entry.what), entry.at, entry.revision, f"{entry.what} of {client}"))
    for client, entries in clients.items():
        heard = [entry.revision for entry in entries if entry.kind == "event"]
        missing = [one for one in texts if heard and heard[0] < one < heard[-1] and one not in set(heard)]
        found += [f"{client} did not hear of {revision}" for revision in missing]
    for begun, _, revision, name in spans:
        for _, ended, earlier, other in spans:
            if ended < begun and earlier > revision:
                found.append(f"{name} came after {other}, but {revision} is before {earlier}")
    return found


@define(eq=False)
class Client:
    """A client that notes when it asked and was answered. clock: the one of all clients."""

    wire: Wire
    clock: count[int]
    _spans: dict[int, list[int]] = field(factory=dict)

    async def call(self, method: str, params: Any = None) -> Any:
        return await self.answer(self.ask(method, params))

    def ask(self, method: str, params: Any = None) -> int:
        id = self.wire.ask(method, params)
        if "workspace" in (params or {}):
            self._spans[id] = [next(self.clock)]
        return id

    async def answer(self, id: int) -> Any:
        try:
            return await self.wire.answer(id)
        finally:
            if id in self._spans:
                self._spans[id].append(next(self.clock))

    def entries(self) -> list[Entry]:
        """Everything about the one workspace that it works with, as `problems` takes it."""
        found = [Entry(span[0], "asked", str(id)) for id, span in self._spans.items()]
        for message in self.wire.received:
            params, result = message.get("params") or {}, message.get("result")
            if "workspace" in params and "revision" in params:
                found.append(Entry(0, "event", json_text.canonical(params), params["revision"]))
            elif message.get("id") in self._spans and isinstance(result, dict) and "revision" in result:
                # An answer that nobody saw arrive ended before nothing.
                span = [*self._spans[message["id"]], 1 << 60]
                found.append(Entry(span[1], "answered", str(message["id"]), result["revision"]))
        return found
