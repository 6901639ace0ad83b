"""Search: where a text is."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from craftd.model.records import Record
from craftd.protocol.contract import Position, Ref
from craftd.protocol.registry import method

Searchable = Literal["sessions", "messages", "plans", "notes", "projects", "memory", "sources", "skills"]


@frozen(kw_only=True)
class SearchMatch:
    """One place. noun, id: of the record; a message without an id has none. field: the member of its value.

    start, end: UTF-16 units of the whole text. at: where the match begins in *snippet*, UTF-16 units. type, timestamp:
    of a message. path: of the file that has the result, if it was kept out of its line; start and end are of its text.
    """

    noun: str
    id: str | None = None
    field: str
    start: int
    end: int
    snippet: str
    at: int
    type: str | None = None
    timestamp: int | None = None
    path: str | None = None


@frozen(kw_only=True)
class SearchItem:
    """A record in which something was found: a session for all that belongs to one.

    title: its name. matches: the first of them, in a session its name's and then the newest message's first. count: of
    all; more: there may be more than were counted.
    """

    noun: str
    id: str
    title: str | None = None
    matches: tuple[SearchMatch, ...]
    count: int
    more: bool | None = None


@frozen(kw_only=True)
class SearchResult(Position):
    """searched, of: how many records were looked into, how many there were to look into.

    stopped: why not all of them: limit, time, bytes; nextCursor goes on behind the last one.
    """

    items: tuple[SearchItem, ...]
    next_cursor: str | None = None
    searched: int
    of: int
    stopped: str | None = None


@method("search/query", result=SearchResult, right="read")
@frozen(kw_only=True)
class QuerySearch(Ref):
    """Where a text is, the newest sessions first. Of blanks alone nothing is found."""

    query: str
    regex: bool = False
    in_: tuple[Searchable, ...] | None = None
    """Absent: sessions (their names), messages, plans, notes."""
    filter: Record | None = None
    """Of sessions, as in `sessions/list`."""
    limit: int | None = None
    """Items, 100 default, 500 max."""
    matches: int | None = None
    """Places shown per item, 3 default, 20 max."""
    budget_ms: int | None = None
    """Time, 5 s default, 60 s max."""
    cursor: str | None = None
    work_done_token: int | str | None = None
    partial_result_token: int | str | None = None
