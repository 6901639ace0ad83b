"""The index of sessions, which also knows who stems from whom; and the ids that no new session is given."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import partial
from typing import Any, Final

from attrs import define, field, frozen

from craftd.errors import Issue
from craftd.model import json_text, lineage
from craftd.model.records import Record
from craftd.workspace.index import Index
from craftd.workspace.rows import SessionRow

_MARKS: Final = (f'"{lineage.PARENT}":'.encode(), f'"{lineage.ORIGIN}":'.encode())

Many = dict[str, frozenset[str]]
Known = Callable[[str, str], bool]


def reads_of(changed: Container[str]) -> frozenset[str]:
    """Units whose earlier commits decide whether these members of a session may be *changed*."""
    members = {"projectId": "projects/", lineage.PARENT: "sessions/"}
    return frozenset(unit for name, unit in members.items() if name in changed)


@define(eq=False)
class Sessions(Index):
    """children, branches: ids by the session they stem from, which need not be there. Any thread may ask.

    graves: ids of deleted sessions.
    """

    children: Many = field(factory=dict)
    branches: Many = field(factory=dict)
    graves: set[str] = field(factory=set)
    _links: dict[str, tuple[str | None, str | None]] = field(factory=dict)

    def put(self, row: Any) -> None:
        super().put(row)
        self._link(row.id, _links_of(row))

    def fill(self, rows: Iterable[Any]) -> None:
        them = list(rows)
        super().fill(them)
        for row in them:
            self._link(row.id, _links_of(row))

    def remove(self, id: str) -> None:
        super().remove(id)
        self._link(id, (None, None))
        self.graves.add(id)

    def _link(self, id: str, links: tuple[str | None, str | None]) -> None:
        before = self._links.get(id, (None, None))
        if links == before:
            return
        for many, old, new in zip((self.children, self.branches), before, links, strict=True):
            if old == new:
                continue
            if old is not None and not _put(many, old, many.get(old, frozenset()) - {id}):
                del many[old]
            if new is not None:
                _put(many, new, many.get(new, frozenset()) | {id})
        if links == (None, None):
            del self._links[id]
        else:
            self._links[id] = links

    def relations(self, id: str) -> dict[str, list[str]]:
        """Its `children` and `branches`, as far as it has some."""
        found = {"children": self.children.get(id), "branches": self.branches.get(id)}
        return {name: sorted(them) for name, them in found.items() if them}

    def is_reserved(self, id: str) -> bool:
        """Whether a new session would be taken for another one: for one that is there, was there, or is missed."""
        return id in self.rows or id in self.graves or id in self.children or id in self.branches

    def references(self, id: str, value: Record, old: Record | None, known: Known) -> list[Issue]:
        """What is wrong with project and parent in *value* as the successor of *old* (None: as a new session).

        known(noun, id): whether a record is there.
        """
        found = []
        for name, noun in (("projectId", "projects"), (lineage.PARENT, "sessions")):
            target = value.get(name)
            if not isinstance(target, str) or (old is not None and json_text.equal(old.get(name), target)):
                continue
            if noun == "sessions" and lineage.leads_back(id, target, lambda id: self._links.get(id, (None, None))[0]):
                found.append(Issue(path=name, message=f"{target} is the session itself, or stems from it"))
            elif not known(noun, target):
                found.append(Issue(path=name, message=f"there is no {noun}/{target}"))
        return found

    def inherited(self, value: Record, known: Known) -> Record:
        """*value* of a new session with what its parent passes on."""
        parent = self.rows.get(str(value.get(lineage.PARENT)))
        return lineage.inherited(value, None if parent is None else parent.value, partial(known, "projects"))


@frozen
class Taken:
    """Ids that a new session is not given. promised: of sessions that are about to be made."""

    sessions: Sessions
    promised: Container[str]

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and (self.sessions.is_reserved(id) or id in self.promised)


def _put(many: Many, id: str, them: frozenset[str]) -> frozenset[str]:
    many[id] = them
    return them


def _links_of(row: SessionRow) -> tuple[str | None, str | None]:
    """Most are not parsed for that."""
    if not any(mark in row.header for mark in _MARKS):
        return None, None
    stored = row.stored
    return lineage.parent_of(stored), lineage.origin_of(stored)
