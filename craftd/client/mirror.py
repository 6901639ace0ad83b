"""A copy of records that stays equal to the daemon's: through lapses, lost connections and restarts.

Events are applied in the step in which they come, so when an answer is there, so is what it changed. What has to be
listed (at the beginning, and where something was missed) is listed anew beside the copy and then put in its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from craftd.client.copies import Record, Table, Transcript, Unlisted, is_omitted, kept
from craftd.client.events import Feed, Lapsed, Position, Reconnected, Told
from craftd.client.failures import CallFailed, ConnectionLost

if TYPE_CHECKING:
    from types import TracebackType

    from craftd.client.client import Client
    from craftd.client.events import Event

PAGE = 500
_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
"""Seconds until a transcript that changed while it was read, or what failed, is listed again."""


class Mirror:
    """Records of one workspace, or without one of the configuration: `async with Mirror(client, "notes") as mirror`.

    nouns: whose records are kept. sessions: whose messages are kept; more with `follow`.
    position: how far the scope had come when the mirror was told last.
    What it gives is the mirror's own: look, do not change.
    """

    def __init__(
        self,
        client: Client,
        workspace: str | None = None,
        *,
        nouns: Iterable[str] = ("sessions",),
        sessions: Iterable[str] = (),
    ) -> None:
        self._client = client
        self._workspace = workspace
        self._tables = {noun: Table() for noun in nouns}
        self._transcripts = {session: Transcript() for session in sessions}
        self._listener = Told(self._hear)
        self._choose()
        self._feed: Feed | None = None
        self._scope: dict[str, str] = {}
        self._unlisted: set[tuple[str, str]] = set()
        """What has to be listed: (noun, ""), ("messages", session); ("omitted", session): bodies to be fetched."""
        self._work = asyncio.Event()
        self._settled = asyncio.Event()
        self._lister: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._watchers: WeakSet[Changes] = WeakSet()

    # What it knows

    def items(self, noun: str) -> Mapping[str, Record]:
        """Records by id: `{id, version, value}`; of `info`, which is computed, no event tells, so it is not here."""
        return self._tables[noun].items

    def messages(self, session: str) -> list[Record]:
        """Messages of a session that is followed, in order; without the lines that cannot be read."""
        return self._transcripts[session].messages

    @property
    def position(self) -> Position | None:
        return self._listener.position

    async def at(self, revision: int) -> None:
        """Return when everything is in the mirror that had happened by *revision*, one that an answer or event named.

        Raises: what ended the mirror.
        """
        feed, position = self._entered(), self.position
        if position is None or position.revision < revision or not self._client.connected:
            await self._client.reach(feed)
        await self._until_settled()

    def changes(self) -> Changes:
        """What changes from now on, as an iterator of sets: (noun, id), and ("messages", session) for transcripts.

        It is in the mirror already. Nothing is missed, however slow the program is: what waits is one set.
        """
        changes = Changes()
        self._watchers.add(changes)
        return changes

    async def follow(self, session: str) -> None:
        """Keep the messages of *session* from now on; returns when they are there."""
        if session not in self._transcripts:
            self._transcripts[session] = Transcript()
            self._choose()
            self._settled.clear()
            await self._client.reach(self._entered())
            self._list_again("messages", session)
        await self._until_settled()

    def unfollow(self, session: str) -> None:
        """Keep the messages of *session* no longer."""
        self._transcripts.pop(session, None)
        self._unlisted.discard(("messages", session))

    # Its life

    def _choose(self) -> None:
        """What to be told of."""
        told = {*self._tables, *(("messages", "sessions") if self._transcripts else ())}
        self._listener.topics = frozenset(told)
        self._listener.sessions = None if "sessions" in self._tables else frozenset(self._transcripts)

    def _entered(self) -> Feed:
        if self._feed is None:
            raise RuntimeError("the mirror was not entered")
        return self._feed

    async def __aenter__(self) -> Self:
        self._feed = await self._client.listen(self._listener, self._workspace)
        self._scope = {} if self._feed.scope is None else {"workspace": self._feed.scope}
        self._lister = asyncio.create_task(self._list_what_is_missing())
        self._list_everything()
        try:
            await self._until_settled()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        if self._lister is not None:
            self._lister.cancel()
            await asyncio.wait([self._lister])
        if self._feed is not None:
            self._client.unlisten(self._listener, self._feed)
        self._fail(ConnectionLost("the mirror was left"))

    async def _until_settled(self) -> None:
        if self._failure is None:
            await self._settled.wait()
        if self._failure is not None:
            raise self._failure

    def _fail(self, failure: Exception) -> None:
        if self._failure is None:
            self._failure = failure
            self._settled.set()
            for watcher in self._watchers:
                watcher.fail(failure)

    # What it is told

    def _hear(self, event: Event | Exception) -> None:
        try:
            if self._failure is None:
                self._take(event)
        except Exception as failure:  # better no copy than one that is wrong, and the connection has other users
            self._fail(failure)

    def _take(self, event: Event | Exception) -> None:
        if isinstance(event, Exception):
            self._fail(event)
        elif isinstance(event, Lapsed) or (isinstance(event, Reconnected) and not event.replayed):
            self._list_everything()
        elif not isinstance(event, Reconnected):
            noun, _, what = event["method"].partition("/")
            self._apply(noun, what, event["params"])

    def _apply(self, noun: str, what: str, params: Mapping[str, Any]) -> None:
        if noun == "messages":
            self._apply_to_transcript(params["session"], what, params)
            return
        table = self._tables.get(noun)
        if table is None:
            return
        try:
            self._changed(noun, table.hear(what, params))
        except Unlisted:
            self._list_again(noun)
        if noun == "sessions" and what in ("didCreate", "didDelete"):  # deleted, and perhaps there again
            session = params["id"] if what == "didDelete" else params["item"]["id"]
            if session in self._transcripts:
                self._list_again("messages", session)

    def _apply_to_transcript(self, session: str, what: str, params: Mapping[str, Any]) -> None:
        transcript = self._transcripts.get(session)
        if transcript is None:
            return
        try:
            transcript.hear(what, params)
            bodiless = any(map(is_omitted, params.get("messages", ()))) or "omitted" in params.get("patch", {}).get(
                "set", ()
            )
            if transcript.coming is None and bodiless:
                self._list_again("omitted", session)
        except Unlisted:
            self._list_again("messages", session)
        self._changed("messages", {session})

    def _changed(self, noun: str, ids: Iterable[str]) -> None:
        for watcher in self._watchers:
            watcher.add(noun, ids)

    # What has to be listed

    def _list_everything(self) -> None:
        for noun in self._tables:
            self._list_again(noun)
        for session in self._transcripts:
            self._list_again("messages", session)
        if not self._unlisted:
            self._settled.set()

    def _list_again(self, what: str, session: str = "") -> None:
        self._unlisted.add((what, session))
        self._settled.clear()
        self._work.set()

    async def _list_what_is_missing(self) -> None:
        pause = _PAUSE
        while self._failure is None:
            if not self._unlisted:
                self._settled.set()
                self._work.clear()
                await self._work.wait()
            wanted = self._unlisted.pop()
            try:
                if await self._get(*wanted):
                    pause = _PAUSE
                    continue
            except CallFailed as failure:
                if not failure.retryable:
                    self._fail(failure)
            except ConnectionLost:
                pass  # it comes back, or the client says that it will not
            except Exception as failure:
                self._fail(failure)
                raise
            self._unlisted.add(wanted)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _get(self, what: str, session: str) -> bool:
        """False: it has to be done again."""
        try:
            if what == "messages":
                await self._list_messages(session)
            elif what == "omitted":
                await self._fetch_omitted(session)
            else:
                await self._list(what)
        except Unlisted:
            return False
        return True

    async def _list(self, noun: str) -> None:
        """Raises: Unlisted when it has to be done again."""
        table = self._tables[noun]
        coming: dict[str, Record] = {}
        table.coming = coming
        cursor: str | None = None

        def take(page: Mapping[str, Any]) -> None:
            coming.update((item["id"], kept(item)) for item in page["items"])

        while True:
            params = {"sort": "id", "fields": ["*"], "limit": PAGE, "cursor": cursor, **self._scope}
            page = await self._client.call(f"{noun}/list", params, then=take)
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        if (noun, "") in self._unlisted:  # missed something meanwhile
            raise Unlisted
        self._changed(noun, table.arrive())

    async def _list_messages(self, session: str) -> None:
        """Raises: Unlisted when it has to be done again."""
        transcript = self._transcripts.get(session)
        if transcript is None:
            return
        transcript.coming = []
        found: list[Record] = []
        try:
            async for item in self._client.pages("messages/list", {"session": session, "limit": PAGE, **self._scope}):
                if "raw" not in item.get("info", {}):
                    found.append(item["value"])
        except CallFailed as failure:
            if failure.name != "NotFound" or (failure.resource or {}).get("noun") == "workspaces":
                raise
        if ("messages", session) in self._unlisted:
            raise Unlisted
        transcript.arrive(found)
        if transcript.omitted:
            self._list_again("omitted", session)
        self._changed("messages", {session})

    async def _fetch_omitted(self, session: str) -> None:
        """Raises: Unlisted when it has to be done again."""
        transcript = self._transcripts.get(session)
        if transcript is None:
            return
        for id in transcript.omitted:
            transcript.touched.discard(id)
            params = {"session": session, "id": id, **self._scope}
            try:
                item = (await self._client.call("messages/get", params))["item"]
            except CallFailed as failure:
                if failure.name != "NotFound":
                    raise
                self._list_again("messages", session)
                return
            if transcript.coming is not None:
                return  # it is being listed
            place = transcript.place(id)
            if id in transcript.touched:
                raise Unlisted
            if is_omitted(transcript.messages[place]):
                transcript.messages[place] = item["value"]
        self._changed("messages", {session})


class Changes:
    """An iterator of what changed since the last time. Made by `Mirror.changes`."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._changed: set[tuple[str, str]] = set()
        self._failure: Exception | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> set[tuple[str, str]]:
        await self._news.wait()
        if self._failure is not None and not self._changed:
            raise self._failure
        changed, self._changed = self._changed, set()
        if self._failure is None:
            self._news.clear()
        return changed

    def add(self, noun: str, ids: Iterable[str]) -> None:
        self._changed.update((noun, id) for id in ids)
        if self._changed:
            self._news.set()

    def fail(self, failure: Exception) -> None:
        self._failure = failure
        self._news.set()
