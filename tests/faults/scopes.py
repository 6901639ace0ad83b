"""The scopes of a daemon without its sockets: `workspace` and `store` alone, called by the names of methods."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from craftd.model import json_text
from craftd.model.records import Item, Record
from craftd.store.locks import AppLock
from craftd.workspace import branching, files, reading, trash
from craftd.workspace.annotations import CreateAnnotation
from craftd.workspace.changes import check_patch
from craftd.workspace.commit import Done
from craftd.workspace.guard import Guard
from craftd.workspace.home import Home
from craftd.workspace.index import Page
from craftd.workspace.journal import Origin
from craftd.workspace.messages import AppendMessages, DeleteMessage, TruncateMessages, UpdateMessage
from craftd.workspace.record_files import EditText
from craftd.workspace.registry import Unregister, UpdateSettings
from craftd.workspace.session_files import NOTES, folder_of
from craftd.workspace.sessions import MarkRead, SessionCommit
from craftd.workspace.workspace import Surroundings, Workspace

ORIGIN = Origin(kind="client")


@frozen
class Scopes:
    """home: of an open configuration folder. A failed call raises its CraftdError."""

    home: Home

    @classmethod
    @asynccontextmanager
    async def open(cls, config: Path, **around: Any) -> AsyncIterator[Scopes]:
        async with asyncio.TaskGroup() as group:
            with ThreadPoolExecutor(4) as pool:
                guard = Guard(AppLock(config), time.monotonic)
                home = Home.of(
                    config,
                    Surroundings(
                        guard=guard,
                        pool=pool,
                        spawn=group.create_task,
                        home=os.path.expanduser("~"),
                        cache=config / "craftd" / "cache",
                        **around,
                    ),
                )
                await home.start()
                try:
                    yield cls(home)
                finally:
                    await home.close()
                    guard.give_back()

    async def workspace(self, name: str) -> Workspace:
        found = self.home.workspace(name)
        return found if isinstance(found, Workspace) else await found

    async def call(self, method: str, params: Record) -> Any:
        noun, _, verb = method.partition("/")
        connection = params.get("connection")
        if noun == "workspaces":
            return await self._on_home(verb, params)
        workspace = await self.workspace(params["workspace"])
        if method == "daemon/sync":
            return await workspace.sync()
        if method == "issues/list":
            return {"items": [issue.as_json() for issues in workspace.issues().values() for issue in issues]}
        if method == "messages/append":
            commit = AppendMessages(
                origin=ORIGIN,
                connection=connection,
                labels=workspace.labels,
                id=params["session"],
                messages=params["messages"],
                expected_tail=params.get("expectedTail"),
                set=params.get("set"),
            )
            return _answer(await workspace.commit(commit))
        if noun == "messages" and verb in ("update", "delete", "truncate"):
            return _answer(await workspace.commit(_edit(verb, params, connection)))
        if method == "annotations/create":
            annotate = CreateAnnotation(
                origin=ORIGIN,
                connection=connection,
                id=params["session"],
                message=params["message"],
                annotation=params["id"],
                value=params["value"],
            )
            return _answer(await workspace.commit(annotate))
        if method == "notes/update":
            parts, text = folder_of(params["session"], NOTES), params["text"]
            write = EditText(
                origin=ORIGIN, connection=connection, parts=parts, expected=None, edit=lambda there: text, what="notes"
            )
            await workspace.commit(write)
            return {}
        if method == "sessions/restore":
            restore = trash.Restore.named(params["id"], workspace.place, ORIGIN, connection)
            return _answer(await workspace.commit(restore))
        if method == "sessions/emptyTrash":
            reads = frozenset({"sessions/"})
            empty = trash.EmptyTrash(origin=ORIGIN, connection=connection, reads=reads, names=None)
            return await trash.empty(workspace, empty)
        if method == "sessions/duplicate" or (method == "sessions/create" and "from" in params):
            point = params.get("from", {"session": params.get("session"), "message": None})
            source, value = (point["session"], point["message"]), params.get("value", {})
            return _answer(await branching.copy(workspace, *source, value, params.get("id"), ORIGIN, connection))
        if method == "sessions/markRead":
            return [await workspace.commit(MarkRead(origin=ORIGIN, id=id)) for id in params["sessions"]]
        if method == "messages/list":
            return _page(await reading.page(workspace, params["session"], limit=500, cursor=params.get("cursor")))
        if noun == "files":
            return await self._on_file(workspace, verb, params)
        if verb == "list":
            fields = tuple(params["fields"]) if "fields" in params else None
            return _page(workspace.verbs.index(noun).page(fields=fields, limit=500, cursor=params.get("cursor")))
        verbs, id, expected = workspace.verbs, params.get("id"), params.get("expectedVersion")
        if verb == "create":
            return _answer(await verbs.create(noun, params["value"], id, ORIGIN, connection))
        assert id is not None
        if verb == "update":
            return _answer(await verbs.update(noun, id, params["patch"], expected, ORIGIN, connection))
        permanent = params.get("permanent", False)
        assert verb == "delete"
        return _answer(
            await verbs.delete(
                noun, id, expected, ORIGIN, connection, missing_ok=params.get("missingOk", False), permanent=permanent
            )
        )

    @staticmethod
    async def _on_file(workspace: Workspace, verb: str, params: Record) -> Any:
        parts = tuple(params["path"].split("/"))
        if verb == "delete":
            return _answer(await workspace.commit(files.DeleteFile(origin=ORIGIN, parts=parts)))
        assert verb == "write"
        source = files.Given(params["content"]["text"].encode())
        return _answer(await workspace.commit(files.WriteFile(origin=ORIGIN, parts=parts, source=source)))

    async def _on_home(self, verb: str, params: Record) -> Any:
        home, id = self.home, params.get("id")
        if verb == "list":
            await home.look()
            return _page(home.index.page(limit=500, cursor=params.get("cursor")))
        if verb == "create":
            planned = home.plan_creation(params["value"], adopt=False)
            return _answer(await home.commit(evolve(planned, origin=ORIGIN, id=id or planned.id)))
        assert id is not None
        if verb == "update":
            patch = check_patch(params["patch"])
            return _answer(await home.commit(UpdateSettings(origin=ORIGIN, id=id, patch=patch, facts=home.facts())))
        assert verb == "delete"
        return _answer(await home.unregister(Unregister(origin=ORIGIN, id=id)))


def _edit(verb: str, params: Record, connection: object) -> SessionCommit:
    session, message = params["session"], params.get("id", "")
    if verb == "update":
        patch = check_patch(params["patch"])
        return UpdateMessage(origin=ORIGIN, connection=connection, id=session, message=message, patch=patch)
    if verb == "delete":
        return DeleteMessage(origin=ORIGIN, connection=connection, id=session, message=message)
    keep, after = params.get("keep"), params.get("afterMessage")
    return TruncateMessages(origin=ORIGIN, connection=connection, id=session, keep=keep, after=after)


def _answer(done: Done) -> Record:
    answer: Record = {"epoch": done.epoch, "revision": done.revision}
    if isinstance(done.answer, Item):
        answer["item"] = done.answer.as_json()
    elif hasattr(done.answer, "changed"):
        answer |= {"item": done.answer.item.as_json(), "changed": done.answer.changed}
    return answer


def _page(page: Page) -> Record:
    return {"items": [json_text.loads(text) for text in page.items], "nextCursor": page.next_cursor}
