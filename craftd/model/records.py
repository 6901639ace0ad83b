"""A record is the JSON object as stored; classes are views on it and never its owner."""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

from attrs import field, frozen

from craftd.model import json_text

Record: TypeAlias = dict[str, Any]


@frozen
class Item:
    """What a client gets of one record: `value` as stored (paths expanded), `info` computed and read-only."""

    id: str
    version: str
    value: Record
    info: dict[str, Any] = field(factory=dict)
    uri: str | None = None

    def as_json(self, fields: tuple[str, ...] | None = None) -> dict[str, Any]:
        """Wire form; *fields*: top-level names of value to keep (None = all)."""
        value = self.value if fields is None else {k: self.value[k] for k in fields if k in self.value}
        members: dict[str, Any] = {"id": self.id, "version": self.version}
        if self.uri is not None:
            members["uri"] = self.uri
        members["value"] = value
        if self.info:
            members["info"] = self.info
        return members


def version_of(record: Record, volatile: frozenset[str] = frozenset()) -> str:
    """Opaque hash (16 hex digits) of *record* without its *volatile* top-level keys; equal content, equal version.

    Key order does not enter: a foreign program that only reorders keys has changed nothing.
    """
    kept = {key: value for key, value in record.items() if key not in volatile}
    return hashlib.blake2b(json_text.canonical(kept), digest_size=8).hexdigest()


def milliseconds(value: Any) -> int | None:
    """*value* as whole milliseconds if it is a time that the app can tell apart from its neighbours, else None."""
    if type(value) is int or type(value) is float:
        return int(value) if abs(value) < 2**53 else None
    return None
