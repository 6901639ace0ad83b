"""Search."""

from __future__ import annotations

from craftd.errors import InvalidParams
from craftd.model.search import Needle, needle
from craftd.protocol.methods.search import QuerySearch, SearchItem, SearchMatch, SearchResult
from craftd.server.dispatch import Call, handles
from craftd.workspace import search
from craftd.workspace.search import Found, Query
from craftd.workspace.workspace import Workspace


@handles
async def query(call: Call, params: QuerySearch) -> SearchResult:
    workspace: Workspace = call.scope
    epoch, revision = workspace.epoch, workspace.revision
    wanted = Query(
        text=params.query,
        needle=await workspace.in_pool(_needle, params),
        nouns=frozenset(search.OF_SESSIONS if params.in_ is None else params.in_),
        filter=params.filter,
        limit=_within("limit", params.limit, search.LIMIT, search.MOST),
        matches=_within("matches", params.matches, search.MATCHES, search.MOST_MATCHES),
        seconds=_within("budgetMs", params.budget_ms, int(search.SECONDS * 1000), int(search.MOST_SECONDS * 1000))
        / 1000,
    )
    if not params.query.strip():
        return SearchResult(items=(), searched=0, of=0, epoch=epoch, revision=revision)
    items: list[SearchItem] = []

    def tell(found: list[Found], searched: int, of: int) -> None:
        part = list(map(_item, found))
        if params.partial_result_token is None:
            items.extend(part)
        else:
            call.parts(params.partial_result_token, part)
        call.progress(params.work_done_token, {"kind": "report", "percentage": 100 * searched // max(of, 1)})

    with call.work(params.work_done_token, "Searching"):
        outcome = await search.search(workspace, wanted, params.cursor, tell)
    return SearchResult(
        items=tuple(items),
        next_cursor=outcome.next_cursor,
        searched=outcome.searched,
        of=outcome.of,
        stopped=outcome.stopped,
        epoch=epoch,
        revision=revision,
    )


def _needle(params: QuerySearch) -> Needle:
    return needle(params.query or " ", is_regex=params.regex)


def _within(member: str, given: int | None, default: int, most: int) -> int:
    if given is not None and given < 1:
        raise InvalidParams.of(member, "must be at least 1")
    return default if given is None else min(given, most)


def _item(found: Found) -> SearchItem:
    return SearchItem(
        noun=found.noun,
        id=found.id,
        title=found.title,
        matches=tuple(
            SearchMatch(
                noun=match.noun,
                id=match.id,
                field=match.field,
                start=match.place.start,
                end=match.place.end,
                snippet=match.place.snippet,
                at=match.place.at,
                type=match.type,
                timestamp=match.timestamp,
                path=match.path,
            )
            for match in found.matches
        ),
        count=found.count,
        more=found.more or None,
    )
