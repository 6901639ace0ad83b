"""list, get, create, update, delete: once, for every noun of a workspace."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from craftd.errors import AlreadyExists, InvalidParams, NotFound, Ref, ValidationFailed
from craftd.model.conflict_copies import could_be
from craftd.model.noun import Noun
from craftd.model.nouns import NOUNS
from craftd.model.records import Item, Record
from craftd.store.folders import FOLDER_NAME, Folders
from craftd.workspace import effective
from craftd.workspace.changes import CreateRecord, DeleteRecord, UpdateRecord, check_patch
from craftd.workspace.commit import Done
from craftd.workspace.index import Index
from craftd.workspace.journal import Origin
from craftd.workspace.lineage import reads_of
from craftd.workspace.sessions import CreateSession, DeleteSession, UpdateSession

if TYPE_CHECKING:
    from craftd.workspace.tables import Table
    from craftd.workspace.workspace import Workspace

NAMES_TRIED = 20
"""Chosen names that may turn out to be taken by somebody else's folder."""


class Verbs:
    """The five verbs on one workspace. Ids have not been looked at by anybody before."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._promised: dict[str, Counter[str]] = defaultdict(Counter)

    def index(self, noun: str) -> Index:
        return self._workspace.sessions if noun == "sessions" else self._table(noun).index

    def item(self, noun: str, id: str) -> Item:
        """Raises: InvalidParams (no id of this noun at all), NotFound."""
        if noun == "sessions":
            return self._workspace.session(id).item()
        row = self._table(noun).find(id)
        if row is None:
            self.check_name(NOUNS[noun], id)
            raise NotFound(Ref(noun, id, self._workspace.id))
        return row.item()

    async def create(
        self,
        noun: str,
        value: Record,
        id: str | None,
        origin: Origin,
        connection: object,
        session: Callable[..., CreateSession] = CreateSession,
    ) -> Done:
        """The answer is the new Item. *session* makes the commit of a session.

        Raises: AlreadyExists only for an *id* that was given.
        """
        if id is not None:
            self._check_id(NOUNS[noun], id)
            if noun == "sessions" and could_be(id):
                raise InvalidParams.of("id", "is what a file synchroniser calls the copy of another session")
        for _ in range(NAMES_TRIED):
            commit = self._creation(noun, value, id, origin, connection, session)
            try:
                with self._promise(noun, commit.id, commit.unit.rpartition("/")[2]):
                    return await self._workspace.commit(commit)
            except AlreadyExists:
                if id is not None:
                    raise
            except ValidationFailed as error:
                # A folder that we chose and that somebody else was given in the meantime.
                if "slug" in value or [issue.code for issue in error.issues] != ["slug-taken"]:
                    raise
        raise AlreadyExists(Ref(noun, "", self._workspace.id))

    def promised(self, noun: str) -> Counter[str]:
        """Names of records that are about to be made."""
        return self._promised[noun]

    @contextmanager
    def _promise(self, noun: str, *names: str) -> Iterator[None]:
        """Choose none of *names* for another record inside of it: trying again would be out of turn."""
        promised = self._promised[noun]
        promised.update(names)
        try:
            yield
        finally:
            for name in names:
                promised[name] -= 1
                if not promised[name]:
                    del promised[name]

    def _creation(
        self,
        noun: str,
        value: Record,
        id: str | None,
        origin: Origin,
        connection: object,
        session: Callable[..., CreateSession],
    ) -> CreateSession | CreateRecord:
        workspace = self._workspace
        if noun == "sessions":
            reads = reads_of(value) if "parentSessionId" not in value else {"projects/", "sessions/"}
            return session(
                origin=origin,
                connection=connection,
                id=id or workspace.new_session_id(self._promised[noun]),
                value=value,
                known=workspace.has,
                levels=partial(effective.levels, workspace),
                labels=workspace.labels,
                reads=frozenset(reads | {"labels/"} if "labels" in value else reads),
            )
        table = self._table(noun)
        new = table.noun.new
        if new is None:
            raise InvalidParams.of("value", f"{noun} are not created")
        facts = workspace.facts(table, id, self._promised[noun])
        chosen, whole = new(value, facts)
        key = table.shelf.key_for(chosen, whole)
        room, _, folder = key.rpartition("/")
        # Where the folder is not called like the record, another folder may hold a record of this id.
        elsewhere = id is not None and isinstance(table.shelf, Folders) and folder != chosen
        return CreateRecord(
            origin=origin,
            connection=connection,
            reads=frozenset({f"{room}/"}) if elsewhere else frozenset(),
            noun=table.noun,
            key=key,
            id=chosen,
            workspace=workspace.id,
            facts=facts,
            value=whole,
        )

    async def update(
        self, noun: str, id: str, patch: Any, expected: str | None, origin: Origin, connection: object
    ) -> Done:
        """The answer is Updated."""
        patch = check_patch(patch)
        if noun == "sessions":
            self._workspace.check_session_id(id)
            workspace = self._workspace
            return await workspace.commit(
                UpdateSession(
                    origin=origin,
                    connection=connection,
                    reads=frozenset({"labels/"}) | reads_of(patch.get("set") or ()),
                    id=id,
                    patch=patch,
                    known=workspace.has,
                    labels=workspace.labels,
                    mode=partial(effective.permission_mode, workspace),
                    expected=expected,
                )
            )
        table, id, key = self.place(noun, id)
        return await self._workspace.commit(
            UpdateRecord(
                origin=origin,
                connection=connection,
                noun=table.noun,
                key=key,
                id=id,
                workspace=self._workspace.id,
                facts=self._workspace.facts(),
                patch=patch,
                expected=expected,
            )
        )

    async def delete(
        self,
        noun: str,
        id: str,
        expected: str | None,
        origin: Origin,
        connection: object,
        *,
        missing_ok: bool,
        permanent: bool = False,
    ) -> Done:
        if noun == "sessions":
            self._workspace.check_session_id(id)
            return await self._workspace.commit(
                DeleteSession(
                    origin=origin,
                    connection=connection,
                    reads=frozenset({"sessions/"}),  # it answers who stems from it
                    id=id,
                    permanent=permanent,
                    expected=expected,
                    missing_ok=missing_ok,
                )
            )
        table, id, key = self.place(noun, id)
        return await self._workspace.commit(
            DeleteRecord(
                origin=origin,
                connection=connection,
                noun=table.noun,
                key=key,
                id=id,
                workspace=self._workspace.id,
                facts=self._workspace.facts(),
                expected=expected,
                missing_ok=missing_ok,
            )
        )

    def _table(self, noun: str) -> Table:
        return self._workspace.tables[noun]

    def place(self, noun: str, id: str) -> tuple[Table, str, str]:
        """Table, id and document of a record. One that is not there (yet: an earlier change may be about to make it)
        is looked for where it would be."""
        table = self._table(noun)
        row = table.find(id)
        if row is not None:
            return table, row.id, row.unit
        self.check_name(table.noun, id)
        return table, id, table.shelf.key_for(id, {table.noun.id_member or "id": id, "slug": id})

    def check_name(self, noun: Noun, name: str) -> None:
        """Raises: InvalidParams for what neither an id nor, where a folder's name is as good, such a name can be."""
        if not noun.aliases or FOLDER_NAME.fullmatch(name) is None:
            self._check_id(noun, name)

    @staticmethod
    def _check_id(noun: Noun, id: str) -> None:
        if noun.id_pattern.fullmatch(id) is None:
            raise InvalidParams.of("id", f"is no id of {noun.name}: it must match {noun.id_pattern.pattern}")
