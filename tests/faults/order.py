"""Whether several clients saw one order: what each was told, against the revisions in the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from attrs import frozen


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

    Every client hears all events, each once, with the same text; an answer comes after the events up to its
    revision, and what was asked for after an answer has a later one.
    """
    found = []
    texts: dict[int, str] = {}
    spans: list[tuple[int, int, int, str]] = []
    for client, entries in clients.items():
        last = None
        asked: dict[str, int] = {}
        for entry in entries:
            if entry.kind == "asked":
                asked[entry.what] = entry.at
            elif entry.kind == "event":
                if last is not None and entry.revision != last + 1:
                    found.append(f"{client} heard of {entry.revision} after {last}")
                if texts.setdefault(entry.revision, entry.what) != entry.what:
                    found.append(f"{client} was told something else of {entry.revision}")
                last = entry.revision
            else:
                if last is not None and entry.revision > last:
                    found.append(f"{client} was answered {entry.revision} before it heard of it")
                spans.append((asked.pop(entry.what), entry.at, entry.revision, f"{entry.what} of {client}"))
    for begun, _, revision, name in spans:
        for _, ended, earlier, other in spans:
            if ended < begun and earlier > revision:
                found.append(f"{name} came after {other}, but {revision} is before {earlier}")
    return found
