"""Every method of the protocol as a typed call: `client.sessions.list(workspace="notes")`.

Made by scripts/generate from craftd's registry of methods. Changes made by hand are lost.
Names are snake_case here and camelCase on the wire; None stands for absence. What comes back is the JSON as sent.
"""

from __future__ import annotations

TYPE_CHECKING = False  # programs that only call need neither `typing` nor the shapes
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from typing import Any, Literal, Protocol

    from craftd.client.shapes import (
        Appended,
        BlobRange,
        BranchPoint,
        Checked,
        CheckedPrerequisites,
        Committed,
        Content,
        Created,
        CreatedBlob,
        CreatedToken,
        CredentialsStatus,
        DeletedSession,
        Emptied,
        Evaluated,
        Events,
        ExportedBundle,
        ExportedMarkdown,
        FileRange,
        FoundFiles,
        Got,
        GotSession,
        Hello,
        ImportedBundle,
        Issues,
        Item,
        Page,
        Position,
        Purged,
        Removed,
        Renamed,
        Repaired,
        ResolvedMentions,
        ResolvedSkills,
        Revealed,
        SearchResult,
        ShownTokens,
        SignedIn,
        StartedSignIn,
        StoredAttachment,
        Subscribed,
        TestedSource,
        Unread,
        Updated,
        Validated,
        ValidatedSkill,
        WrittenBlob,
        WrittenFile,
    )

    class Door(Protocol):
        """What carries the calls out. `params`: by wire name, None where absent."""

        async def call(
            self,
            method: str,
            params: Mapping[str, Any] | None = None,
            *,
            on_progress: Callable[[Any], None] | None = None,
            on_part: Callable[[Any], None] | None = None,
        ) -> Any: ...

        def pages(self, method: str, params: Mapping[str, Any]) -> AsyncIterator[Any]: ...


class Noun:
    """Calls of one noun."""

    __slots__ = ("_door",)

    def __init__(self, door: Door) -> None:
        self._door = door


class AnnotationsCalls(Noun):
    """The methods `annotations/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        value: Mapping[str, Any],
        session: str,
        message: str,
        workspace: str | None = None,
        key: str | None = None,
        id: str | None = None,
    ) -> Created:
        """Annotate a message, 200 times at most: `value: {target: {selectors}, body?, intent?, ...}`.

        message: What `messages/get` takes.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Created = await self._door.call(
            "annotations/create",
            {
                "value": value,
                "session": session,
                "message": message,
                "workspace": workspace,
                "key": key,
                "id": id,
            },
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        session: str,
        message: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
    ) -> Committed:
        """Take an annotation from its message.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "annotations/delete",
            {
                "id": id,
                "session": session,
                "message": message,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
        )
        return result

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        session: str,
        message: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change members of an annotation; its `updatedAt` follows.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        """
        result: Updated = await self._door.call(
            "annotations/update",
            {
                "id": id,
                "patch": patch,
                "session": session,
                "message": message,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class AssetsCalls(Noun):
    """The methods `assets/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        project: str,
        value: Mapping[str, Any],
        content: Content,
        workspace: str | None = None,
        key: str | None = None,
    ) -> Created:
        """Store an upload; a name that is taken gets a number. `value: {name}`.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Created = await self._door.call(
            "assets/create",
            {
                "project": project,
                "value": value,
                "content": content,
                "workspace": workspace,
                "key": key,
            },
        )
        return result

    async def delete(
        self,
        *,
        project: str,
        id: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
    ) -> Committed:
        """Remove an upload.

        id: Its name.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "assets/delete",
            {
                "project": project,
                "id": id,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
        )
        return result

    async def list(
        self,
        *,
        project: str,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of the uploads of a project, the newest first.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "assets/list",
            {
                "project": project,
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        project: str,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "assets/list",
            {
                "project": project,
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )


class AttachmentsCalls(Noun):
    """The methods `attachments/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        session: str,
        value: Mapping[str, Any],
        content: Content,
        workspace: str | None = None,
        key: str | None = None,
    ) -> StoredAttachment:
        """Store a file for a message that is about to be sent. `value: {name, mimeType?}`.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: StoredAttachment = await self._door.call(
            "attachments/create",
            {
                "session": session,
                "value": value,
                "content": content,
                "workspace": workspace,
                "key": key,
            },
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        session: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
    ) -> Committed:
        """Remove an attachment with what was made of it.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "attachments/delete",
            {
                "id": id,
                "session": session,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
        )
        return result

    async def get(
        self,
        *,
        id: str,
        session: str,
        workspace: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Got:
        """One attachment: what a message can have in its `attachments`.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Got = await self._door.call(
            "attachments/get",
            {
                "id": id,
                "session": session,
                "workspace": workspace,
                "fields": fields,
            },
        )
        return result

    async def list(
        self,
        *,
        session: str,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of a session's attachments, the newest first.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "attachments/list",
            {
                "session": session,
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        session: str,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "attachments/list",
            {
                "session": session,
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )


class AutomationsCalls(Noun):
    """The methods `automations/...`."""

    __slots__ = ()

    async def validate(
        self,
        *,
        text: str,
        workspace: str | None = None,
    ) -> Validated:
        """What is wrong with the text of an `automations.json`, beside the labels of the workspace; nothing is
        stored.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Validated = await self._door.call(
            "automations/validate",
            {
                "text": text,
                "workspace": workspace,
            },
        )
        return result


class BlobsCalls(Noun):
    """The methods `blobs/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        size: int | None = None,
        sha256: str | None = None,
    ) -> CreatedBlob:
        """Begin to stage bytes; size and sha256, if given, are checked when the blob is used.

        sha256: 64 hexadecimal digits.
        """
        result: CreatedBlob = await self._door.call(
            "blobs/create",
            {
                "size": size,
                "sha256": sha256,
            },
        )
        return result

    async def delete(
        self,
        *,
        blob: str,
    ) -> None:
        """Drop a blob that will not be used."""
        await self._door.call(
            "blobs/delete",
            {
                "blob": blob,
            },
        )

    async def read(
        self,
        *,
        blob: str,
        offset: int | None = None,
        length: int | None = None,
    ) -> BlobRange:
        """A range of a blob, 1 MiB at most; it stays until it is deleted or idle for five minutes.

        offset: Bytes.
        """
        result: BlobRange = await self._door.call(
            "blobs/read",
            {
                "blob": blob,
                "offset": offset,
                "length": length,
            },
        )
        return result

    async def write(
        self,
        *,
        blob: str,
        offset: int,
        data: str,
    ) -> WrittenBlob:
        """Stage one piece; writing a range again is allowed.

        data: Base64.
        """
        result: WrittenBlob = await self._door.call(
            "blobs/write",
            {
                "blob": blob,
                "offset": offset,
                "data": data,
            },
        )
        return result


class BundlesCalls(Noun):
    """The methods `bundles/...`."""

    __slots__ = ()

    async def export(
        self,
        *,
        workspace: str | None = None,
        session: str | None = None,
        sessions: Sequence[str] | Literal["all"] | None = None,
        sources: Sequence[str] | Literal["all"] | None = None,
        skills: Sequence[str] | Literal["all"] | None = None,
        automations: Sequence[str] | Literal["all"] | None = None,
        inline: bool | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> ExportedBundle:
        """Put resources into a bundle, without secrets. Sources and skills are named by their folders.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        session: This one alone, as the app's session bundle.
        sessions: With everything in them: what was said may hold secrets.
        inline: Answer the bundle instead of a blob; up to 8 MiB.
        """
        result: ExportedBundle = await self._door.call(
            "bundles/export",
            {
                "workspace": workspace,
                "session": session,
                "sessions": sessions,
                "sources": sources,
                "skills": skills,
                "automations": automations,
                "inline": inline,
            },
            on_progress=on_progress,
        )
        return result

    async def import_(
        self,
        *,
        content: Content,
        workspace: str | None = None,
        key: str | None = None,
        on_conflict: Literal["skip", "overwrite", "rename"] | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> ImportedBundle:
        """Bring in what a bundle or a remote transfer holds: each resource whole or not at all, one after the
        other.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        on_conflict: With a resource whose id is taken. What is overwritten goes into the trash, with the
        source's credentials.
        """
        result: ImportedBundle = await self._door.call(
            "bundles/import",
            {
                "content": content,
                "workspace": workspace,
                "key": key,
                "onConflict": on_conflict,
            },
            on_progress=on_progress,
        )
        return result


class ConnectionsCalls(Noun):
    """The methods `connections/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        value: Mapping[str, Any],
        key: str | None = None,
        id: str | None = None,
    ) -> Created:
        """A new connection; the first one is the default. Its secret is stored with `credentials/set`.

        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Created = await self._door.call(
            "connections/create",
            {
                "value": value,
                "key": key,
                "id": id,
            },
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
    ) -> Committed:
        """Remove a connection, first its credentials and what names it in workspaces.

        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "connections/delete",
            {
                "id": id,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
        )
        return result

    async def get(
        self,
        *,
        id: str,
        fields: Sequence[str] | None = None,
    ) -> Got:
        """One connection, by its slug."""
        result: Got = await self._door.call(
            "connections/get",
            {
                "id": id,
                "fields": fields,
            },
        )
        return result

    async def list(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of connections to providers; none holds a secret.

        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "connections/list",
            {
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "connections/list",
            {
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change members of a connection.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        """
        result: Updated = await self._door.call(
            "connections/update",
            {
                "id": id,
                "patch": patch,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class CredentialsCalls(Noun):
    """The methods `credentials/...`."""

    __slots__ = ()

    async def delete(
        self,
        *,
        id: str,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
    ) -> Committed:
        """Remove a credential from the file; nobody who issued it is told.

        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "credentials/delete",
            {
                "id": id,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
        )
        return result

    async def list(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """Identities and status of all credentials, never a secret.

        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "credentials/list",
            {
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "credentials/list",
            {
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def reveal(
        self,
        *,
        id: str,
    ) -> Revealed:
        """The secret itself, for whoever calls the service it opens."""
        result: Revealed = await self._door.call(
            "credentials/reveal",
            {
                "id": id,
            },
        )
        return result

    async def set(
        self,
        *,
        id: str,
        value: Mapping[str, Any],
        key: str | None = None,
        expected_version: str | None = None,
        refreshed: bool | None = None,
    ) -> Updated:
        """Store a credential, in the place of the one that is there.

        value: As the app stores it: `value`, and `refreshToken`, `expiresAt`, `clientId` and so on where they
        are known.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: "" = there must be none.
        refreshed: Its token was refreshed: what *value* does not say stays as it is, but for `expiresAt`.
        """
        result: Updated = await self._door.call(
            "credentials/set",
            {
                "id": id,
                "value": value,
                "key": key,
                "expectedVersion": expected_version,
                "refreshed": refreshed,
            },
        )
        return result

    async def status(
        self,
        *,
        id: str | None = None,
    ) -> CredentialsStatus:
        """How it is with the file, and with one credential or all of them."""
        result: CredentialsStatus = await self._door.call(
            "credentials/status",
            {
                "id": id,
            },
        )
        return result


class DaemonCalls(Noun):
    """The methods `daemon/...`."""

    __slots__ = ()

    async def hello(
        self,
        *,
        client: str | None = None,
        version: str | None = None,
        protocol: str | None = None,
        config_dir: str | None = None,
        pid: int | None = None,
        token: str | None = None,
    ) -> Hello:
        """Learn who answers, before `initialize`. All members are optional, but a connection of the network
        needs `token`
        here or there.
        """
        result: Hello = await self._door.call(
            "daemon/hello",
            {
                "client": client,
                "version": version,
                "protocol": protocol,
                "configDir": config_dir,
                "pid": pid,
                "token": token,
            },
        )
        return result

    async def release(self) -> dict[str, Any]:
        """Give back the Craft Agents app's lock at once, everything folded and flushed."""
        result: dict[str, Any] = await self._door.call(
            "daemon/release",
            {},
        )
        return result

    async def status(self) -> dict[str, Any]:
        """How the daemon is: connections, open workspaces, locks, watches, environment."""
        result: dict[str, Any] = await self._door.call(
            "daemon/status",
            {},
        )
        return result

    async def stop(
        self,
        *,
        reason: str | None = None,
    ) -> None:
        """End the daemon after what runs has finished. reason: stop, upgrade."""
        await self._door.call(
            "daemon/stop",
            {
                "reason": reason,
            },
        )

    async def sync(
        self,
        *,
        workspace: str | None = None,
    ) -> Position:
        """Barrier: answers when every earlier file event and commit of the scope was processed and announced.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Position = await self._door.call(
            "daemon/sync",
            {
                "workspace": workspace,
            },
        )
        return result


class DraftsCalls(Noun):
    """The methods `drafts/...`."""

    __slots__ = ()

    async def delete(
        self,
        *,
        session: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
    ) -> Committed:
        """Forget the draft of a session.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "drafts/delete",
            {
                "session": session,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
        )
        return result

    async def get(
        self,
        *,
        session: str,
        workspace: str | None = None,
    ) -> Got:
        """The draft of a session: `value.text`, "" where there is none.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Got = await self._door.call(
            "drafts/get",
            {
                "session": session,
                "workspace": workspace,
            },
        )
        return result

    async def list(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of the drafts of a workspace's sessions, without attachments unless they are asked for.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "drafts/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "drafts/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def update(
        self,
        *,
        session: str,
        workspace: str | None = None,
        key: str | None = None,
        text: str | None = None,
        attachments: Sequence[Mapping[str, Any]] | None = None,
        expected_version: str | None = None,
    ) -> Updated:
        """Change the draft of a session; one that has neither text nor attachments any more is gone.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        attachments: All of them: `{path, name, content?}`.
        expected_version: "": there must be none.
        """
        result: Updated = await self._door.call(
            "drafts/update",
            {
                "session": session,
                "workspace": workspace,
                "key": key,
                "text": text,
                "attachments": attachments,
                "expectedVersion": expected_version,
            },
        )
        return result


class EventsCalls(Noun):
    """The methods `events/...`."""

    __slots__ = ()

    async def read(
        self,
        *,
        since: Position,
        workspace: str | None = None,
        topics: Sequence[str] | Literal["*"] | None = None,
        limit: int | None = None,
        wait_ms: int | None = None,
    ) -> Events:
        """The same changes by (long) polling.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        wait_ms: How long to wait for a first change.
        """
        result: Events = await self._door.call(
            "events/read",
            {
                "since": since,
                "workspace": workspace,
                "topics": topics,
                "limit": limit,
                "waitMs": wait_ms,
            },
        )
        return result

    async def subscribe(
        self,
        *,
        workspace: str | None = None,
        topics: Sequence[str] | Literal["*"] | None = None,
        sessions: Sequence[str] | None = None,
        ephemeral: bool | None = None,
        since: Position | None = None,
    ) -> Subscribed:
        """Be told every change of one scope. Subscribing again replaces the connection's subscription to it.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        topics: Nouns; absent: all but `files`.
        sessions: Narrows the topics that belong to a session to these.
        ephemeral: Also what executors publish and nobody stores (`sessions/didPublish`).
        since: What the client has seen: later changes that are still known are sent again.
        """
        result: Subscribed = await self._door.call(
            "events/subscribe",
            {
                "workspace": workspace,
                "topics": topics,
                "sessions": sessions,
                "ephemeral": ephemeral,
                "since": since,
            },
        )
        return result

    async def unsubscribe(
        self,
        *,
        workspace: str | None = None,
    ) -> None:
        """Be told no more about one scope.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        await self._door.call(
            "events/unsubscribe",
            {
                "workspace": workspace,
            },
        )


class FilesCalls(Noun):
    """The methods `files/...`."""

    __slots__ = ()

    async def delete(
        self,
        *,
        workspace: str | None = None,
        key: str | None = None,
        path: str | None = None,
        session: str | None = None,
        uri: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
    ) -> Committed:
        """Remove a file, or a link as a link.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "files/delete",
            {
                "workspace": workspace,
                "key": key,
                "path": path,
                "session": session,
                "uri": uri,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
        )
        return result

    async def list(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        path: str | None = None,
        session: str | None = None,
        uri: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """What one folder holds, without hidden files. Sort by name, kind, size or modifiedAt.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        path: From the workspace's folder, or from the session's; absent: that folder itself.
        uri: `file:` URI, instead of path and session.
        """
        result: Page = await self._door.call(
            "files/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
                "path": path,
                "session": session,
                "uri": uri,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        path: str | None = None,
        session: str | None = None,
        uri: str | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "files/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "path": path,
                "session": session,
                "uri": uri,
            },
        )

    async def read(
        self,
        *,
        workspace: str | None = None,
        path: str | None = None,
        session: str | None = None,
        uri: str | None = None,
        offset: int | None = None,
        length: int | None = None,
        encoding: Literal["utf-8", "base64"] | None = None,
        if_version: str | None = None,
    ) -> FileRange:
        """A range of a file, 1 MiB at most. As text it is whole characters, at least one.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        offset: Bytes.
        if_version: Answer `unchanged: true` if the file still has it.
        """
        result: FileRange = await self._door.call(
            "files/read",
            {
                "workspace": workspace,
                "path": path,
                "session": session,
                "uri": uri,
                "offset": offset,
                "length": length,
                "encoding": encoding,
                "ifVersion": if_version,
            },
        )
        return result

    async def search(
        self,
        *,
        query: str,
        workspace: str | None = None,
        path: str | None = None,
        session: str | None = None,
        uri: str | None = None,
        limit: int | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> FoundFiles:
        """Files and folders below a folder by name, whatever its case; the nearest first, then by path.

        query: In the name; with a slash: in the path below the folder.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        limit: 50 default, 500 max.
        """
        result: FoundFiles = await self._door.call(
            "files/search",
            {
                "query": query,
                "workspace": workspace,
                "path": path,
                "session": session,
                "uri": uri,
                "limit": limit,
            },
            on_part=on_part,
        )
        return result

    async def write(
        self,
        *,
        content: Content,
        workspace: str | None = None,
        key: str | None = None,
        path: str | None = None,
        session: str | None = None,
        uri: str | None = None,
        expected_version: str | None = None,
    ) -> WrittenFile:
        """Give a file new content, or make it: the old content or the new is there, never a mix.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: "": it must not be there; absent: whatever is there.
        """
        result: WrittenFile = await self._door.call(
            "files/write",
            {
                "content": content,
                "workspace": workspace,
                "key": key,
                "path": path,
                "session": session,
                "uri": uri,
                "expectedVersion": expected_version,
            },
        )
        return result


class IssuesCalls(Noun):
    """The methods `issues/...`."""

    __slots__ = ()

    async def list(
        self,
        *,
        workspace: str | None = None,
        path: str | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Issues:
        """What is wrong with the files of a workspace, or with one of them.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Issues = await self._door.call(
            "issues/list",
            {
                "workspace": workspace,
                "path": path,
            },
            on_part=on_part,
        )
        return result


class LabelsCalls(Noun):
    """The methods `labels/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        value: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        id: str | None = None,
    ) -> Created:
        """A new record of labels.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Created = await self._door.call(
            "labels/create",
            {
                "value": value,
                "workspace": workspace,
                "key": key,
                "id": id,
            },
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Removed:
        """Remove a label and those in it, from sessions first.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Removed = await self._door.call(
            "labels/delete",
            {
                "id": id,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
            on_progress=on_progress,
        )
        return result

    async def get(
        self,
        *,
        id: str,
        workspace: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Got:
        """One record of labels.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Got = await self._door.call(
            "labels/get",
            {
                "id": id,
                "workspace": workspace,
                "fields": fields,
            },
        )
        return result

    async def list(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of labels.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "labels/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "labels/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def rename(
        self,
        *,
        id: str,
        new_id: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Renamed:
        """Give a label another id, also in sessions.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Renamed = await self._door.call(
            "labels/rename",
            {
                "id": id,
                "newId": new_id,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
            },
            on_progress=on_progress,
        )
        return result

    async def reorder(
        self,
        *,
        ids: Sequence[str],
        workspace: str | None = None,
        key: str | None = None,
        parent: str | None = None,
    ) -> Committed:
        """Put the labels of one level in order.

        ids: All of the level, in order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        parent: The label they are in; absent: the topmost ones.
        """
        result: Committed = await self._door.call(
            "labels/reorder",
            {
                "ids": ids,
                "workspace": workspace,
                "key": key,
                "parent": parent,
            },
        )
        return result

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change members of a record of labels.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        """
        result: Updated = await self._door.call(
            "labels/update",
            {
                "id": id,
                "patch": patch,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class MemoryCalls(Noun):
    """The methods `memory/...`."""

    __slots__ = ()

    async def get(
        self,
        *,
        project: str,
        workspace: str | None = None,
    ) -> Got:
        """What the MEMORY.md of a project says: `value.text`, "" where there is none.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Got = await self._door.call(
            "memory/get",
            {
                "project": project,
                "workspace": workspace,
            },
        )
        return result

    async def update(
        self,
        *,
        project: str,
        workspace: str | None = None,
        key: str | None = None,
        text: str | None = None,
        prepend: str | None = None,
        expected_version: str | None = None,
    ) -> Updated:
        """Write the MEMORY.md of a project: the whole text, or something new on top of it.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: "": there must be none.
        """
        result: Updated = await self._door.call(
            "memory/update",
            {
                "project": project,
                "workspace": workspace,
                "key": key,
                "text": text,
                "prepend": prepend,
                "expectedVersion": expected_version,
            },
        )
        return result


class MentionsCalls(Noun):
    """The methods `mentions/...`."""

    __slots__ = ()

    async def resolve(
        self,
        *,
        text: str,
        workspace: str | None = None,
        session: str | None = None,
        directory: str | None = None,
        skills: Sequence[str] | None = None,
    ) -> ResolvedMentions:
        """What a text mentions.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        session: Whose working directory and sources count.
        directory: What paths are relative to, instead of the session's or workspace's.
        skills: Slugs of skills chosen beside the text: what they require counts too.
        """
        result: ResolvedMentions = await self._door.call(
            "mentions/resolve",
            {
                "text": text,
                "workspace": workspace,
                "session": session,
                "directory": directory,
                "skills": skills,
            },
        )
        return result


class MessagesCalls(Noun):
    """The methods `messages/...`."""

    __slots__ = ()

    async def append(
        self,
        *,
        session: str,
        messages: Sequence[Mapping[str, Any]],
        workspace: str | None = None,
        key: str | None = None,
        expected_tail: str | None = None,
        set: Mapping[str, Any] | None = None,
    ) -> Appended:
        """Append messages in one commit; one already stored with the same id and content is skipped.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_tail: Id of the message believed to be last; "" for an empty transcript.
        set: Header fields to set in the same commit.
        """
        result: Appended = await self._door.call(
            "messages/append",
            {
                "session": session,
                "messages": messages,
                "workspace": workspace,
                "key": key,
                "expectedTail": expected_tail,
                "set": set,
            },
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        session: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
    ) -> Committed:
        """Take a message, or a damaged line, out of a transcript.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "messages/delete",
            {
                "id": id,
                "session": session,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
        )
        return result

    async def get(
        self,
        *,
        id: str,
        session: str,
        workspace: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Got:
        """One message: by its id, as `#<index>`, or a damaged line as `~<byte offset>`.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Got = await self._door.call(
            "messages/get",
            {
                "id": id,
                "session": session,
                "workspace": workspace,
                "fields": fields,
            },
        )
        return result

    async def list(
        self,
        *,
        session: str,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        direction: Literal["forward", "backward"] | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of a transcript, by position.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        direction: backward: pages start at the end; the items of a page are in the order of the transcript
        all the same.
        """
        result: Page = await self._door.call(
            "messages/list",
            {
                "session": session,
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
                "direction": direction,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        session: str,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        direction: Literal["forward", "backward"] | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "messages/list",
            {
                "session": session,
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "direction": direction,
            },
        )

    async def truncate(
        self,
        *,
        session: str,
        workspace: str | None = None,
        key: str | None = None,
        keep: int | None = None,
        after_message: str | None = None,
    ) -> Committed:
        """Leave the first *keep* messages, or those up to *afterMessage*; `keep: 0` clears the session and its
        usage.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        after_message: Id of the last message to stay.
        """
        result: Committed = await self._door.call(
            "messages/truncate",
            {
                "session": session,
                "workspace": workspace,
                "key": key,
                "keep": keep,
                "afterMessage": after_message,
            },
        )
        return result

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        session: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change members of a message, in place; by its id or as `#<index>`.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        """
        result: Updated = await self._door.call(
            "messages/update",
            {
                "id": id,
                "patch": patch,
                "session": session,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class NotesCalls(Noun):
    """The methods `notes/...`."""

    __slots__ = ()

    async def get(
        self,
        *,
        session: str,
        workspace: str | None = None,
    ) -> Got:
        """The notes of a session: `value.text`, "" where there are none.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Got = await self._door.call(
            "notes/get",
            {
                "session": session,
                "workspace": workspace,
            },
        )
        return result

    async def update(
        self,
        *,
        session: str,
        text: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
    ) -> Updated:
        """Write the notes of a session.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: "": there must be none.
        """
        result: Updated = await self._door.call(
            "notes/update",
            {
                "session": session,
                "text": text,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
            },
        )
        return result


class OauthCalls(Noun):
    """The methods `oauth/...`."""

    __slots__ = ()

    async def cancel(
        self,
        *,
        flow: str,
        workspace: str | None = None,
    ) -> None:
        """Forget a flow.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        await self._door.call(
            "oauth/cancel",
            {
                "flow": flow,
                "workspace": workspace,
            },
        )

    async def complete(
        self,
        *,
        flow: str,
        code: str,
        state: str,
        workspace: str | None = None,
    ) -> SignedIn:
        """Have the code exchanged, store what it is worth, and mark the source. The flow ends with it, whatever
        comes.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: SignedIn = await self._door.call(
            "oauth/complete",
            {
                "flow": flow,
                "code": code,
                "state": state,
                "workspace": workspace,
            },
        )
        return result

    async def revoke(
        self,
        *,
        source: str,
        workspace: str | None = None,
    ) -> Committed:
        """Sign out here: the source's credentials go and it is marked. The service is not told.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Committed = await self._door.call(
            "oauth/revoke",
            {
                "source": source,
                "workspace": workspace,
            },
        )
        return result

    async def start(
        self,
        *,
        source: str,
        workspace: str | None = None,
        callback_port: int | None = None,
        callback_url: str | None = None,
    ) -> StartedSignIn:
        """Find out where to sign in for a source, and as what; the client opens the address and waits for the
        code.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        callback_port: Port of this machine on which the client listens: the browser comes back to
        `http://localhost:<port>/...`.
        callback_url: HTTPS address to which the app's relay sends the browser on.
        """
        result: StartedSignIn = await self._door.call(
            "oauth/start",
            {
                "source": source,
                "workspace": workspace,
                "callbackPort": callback_port,
                "callbackUrl": callback_url,
            },
        )
        return result


class PermissionsCalls(Noun):
    """The methods `permissions/...`."""

    __slots__ = ()

    async def check(
        self,
        *,
        mode: str,
        tool: str,
        input: Mapping[str, Any],
        workspace: str | None = None,
        session: str | None = None,
    ) -> Checked:
        """Whether a tool may be called, by the rules of all levels; nothing is run, asked or remembered.

        mode: safe, ask, allow-all, or another spelling of them that the app knows.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        session: Its sources' rules count, it may write to its `plans/` and `data/`, and relative paths begin
        where it works.
        """
        result: Checked = await self._door.call(
            "permissions/check",
            {
                "mode": mode,
                "tool": tool,
                "input": input,
                "workspace": workspace,
                "session": session,
            },
        )
        return result

    async def get(
        self,
        *,
        id: str,
        workspace: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Got:
        """The rules of one level.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Got = await self._door.call(
            "permissions/get",
            {
                "id": id,
                "workspace": workspace,
                "fields": fields,
            },
        )
        return result

    async def list(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """The rules files of a workspace and its sources, or of the shared configuration.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "permissions/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "permissions/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change the rules of one level.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        """
        result: Updated = await self._door.call(
            "permissions/update",
            {
                "id": id,
                "patch": patch,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class PlansCalls(Noun):
    """The methods `plans/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        value: Mapping[str, Any],
        session: str,
        workspace: str | None = None,
        key: str | None = None,
        id: str | None = None,
    ) -> Created:
        """Write a plan down: `value: {title?, text?}`. Without an id the day and the title make its file name.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Created = await self._door.call(
            "plans/create",
            {
                "value": value,
                "session": session,
                "workspace": workspace,
                "key": key,
                "id": id,
            },
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        session: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
    ) -> Committed:
        """Remove a plan; if the session waits to carry it out, it waits no more.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "plans/delete",
            {
                "id": id,
                "session": session,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
        )
        return result

    async def get(
        self,
        *,
        id: str,
        session: str,
        workspace: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Got:
        """One plan with its text.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Got = await self._door.call(
            "plans/get",
            {
                "id": id,
                "session": session,
                "workspace": workspace,
                "fields": fields,
            },
        )
        return result

    async def list(
        self,
        *,
        session: str,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of a session's plans without their texts, the newest first.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "plans/list",
            {
                "session": session,
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        session: str,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "plans/list",
            {
                "session": session,
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        session: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change the title or the text of a plan.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        """
        result: Updated = await self._door.call(
            "plans/update",
            {
                "id": id,
                "patch": patch,
                "session": session,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class PreferencesCalls(Noun):
    """The methods `preferences/...`."""

    __slots__ = ()

    async def get(
        self,
        *,
        fields: Sequence[str] | None = None,
    ) -> Got:
        """What the user said of themself: name, place, language, notes."""
        result: Got = await self._door.call(
            "preferences/get",
            {
                "fields": fields,
            },
        )
        return result

    async def update(
        self,
        *,
        patch: Mapping[str, Any],
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change preferences; the first change makes the file.

        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Updated = await self._door.call(
            "preferences/update",
            {
                "patch": patch,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class PrerequisitesCalls(Noun):
    """The methods `prerequisites/...`."""

    __slots__ = ()

    async def check(
        self,
        *,
        steps: Sequence[Mapping[str, Any]],
        workspace: str | None = None,
        state: Mapping[str, Any] | None = None,
        browser: bool | None = None,
    ) -> CheckedPrerequisites:
        """Whether tools may be called, by what was read before. Nothing is kept here: the state goes with the
        client.

        steps: In their order, each with one member: `{mention: [path of a SKILL.md]}`, `{read: path}` (a
        whole file, and it
        worked), `{bash: command}` (it ran), `{call: tool}` (may it be made?), `{reset: true}` (compacted or
        cleared).
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        state: Of the answer before; absent: the session has just begun.
        browser: The browser is on.
        """
        result: CheckedPrerequisites = await self._door.call(
            "prerequisites/check",
            {
                "steps": steps,
                "workspace": workspace,
                "state": state,
                "browser": browser,
            },
        )
        return result


class ProjectsCalls(Noun):
    """The methods `projects/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        value: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        id: str | None = None,
    ) -> Created:
        """A new record of projects.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Created = await self._door.call(
            "projects/create",
            {
                "value": value,
                "workspace": workspace,
                "key": key,
                "id": id,
            },
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Removed:
        """Move a project to the trash; the sessions that belong to it are unbound first and stay.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Removed = await self._door.call(
            "projects/delete",
            {
                "id": id,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
            on_progress=on_progress,
        )
        return result

    async def get(
        self,
        *,
        id: str,
        workspace: str | None = None,
        fields: Sequence[str] | None = None,
        context: bool | None = None,
    ) -> Got:
        """One project.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        context: Answer `info.context` too: what its sessions are told of it. It is read from the disk.
        """
        result: Got = await self._door.call(
            "projects/get",
            {
                "id": id,
                "workspace": workspace,
                "fields": fields,
                "context": context,
            },
        )
        return result

    async def list(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of projects.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "projects/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "projects/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change members of a record of projects.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        """
        result: Updated = await self._door.call(
            "projects/update",
            {
                "id": id,
                "patch": patch,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class SearchCalls(Noun):
    """The methods `search/...`."""

    __slots__ = ()

    async def query(
        self,
        *,
        query: str,
        workspace: str | None = None,
        regex: bool | None = None,
        in_: Sequence[Literal["sessions", "messages", "plans", "notes", "projects", "memory", "sources", "skills"]]
        | None = None,
        filter: Mapping[str, Any] | None = None,
        limit: int | None = None,
        matches: int | None = None,
        budget_ms: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> SearchResult:
        """Where a text is, the newest sessions first. Of blanks alone nothing is found.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        in_: Absent: sessions (their names), messages, plans, notes.
        filter: Of sessions, as in `sessions/list`.
        limit: Items, 100 default, 500 max.
        matches: Places shown per item, 3 default, 20 max.
        budget_ms: Time, 5 s default, 60 s max.
        """
        result: SearchResult = await self._door.call(
            "search/query",
            {
                "query": query,
                "workspace": workspace,
                "regex": regex,
                "in": in_,
                "filter": filter,
                "limit": limit,
                "matches": matches,
                "budgetMs": budget_ms,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result


class SessionsCalls(Noun):
    """The methods `sessions/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        value: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        id: str | None = None,
        from_: BranchPoint | None = None,
    ) -> Created:
        """A new session, empty or a branch of another one.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        from_: The branch begins with all messages up to this one, and the files that they name.
        """
        result: Created = await self._door.call(
            "sessions/create",
            {
                "value": value,
                "workspace": workspace,
                "key": key,
                "id": id,
                "from": from_,
            },
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
        permanent: bool | None = None,
    ) -> DeletedSession:
        """Move a session to the trash.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        permanent: Remove it instead.
        """
        result: DeletedSession = await self._door.call(
            "sessions/delete",
            {
                "id": id,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
                "permanent": permanent,
            },
        )
        return result

    async def duplicate(
        self,
        *,
        session: str,
        workspace: str | None = None,
        key: str | None = None,
        value: Mapping[str, Any] | None = None,
        id: str | None = None,
    ) -> Created:
        """A copy of a session with its messages and files.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        value: What it has that the other one has not.
        """
        result: Created = await self._door.call(
            "sessions/duplicate",
            {
                "session": session,
                "workspace": workspace,
                "key": key,
                "value": value,
                "id": id,
            },
        )
        return result

    async def empty_trash(
        self,
        *,
        workspace: str | None = None,
        key: str | None = None,
        ids: Sequence[str] | None = None,
        older_than_days: float | None = None,
    ) -> Emptied:
        """Remove deleted sessions for good: all, or some.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        ids: From the list of the trash.
        older_than_days: Only what was deleted before that.
        """
        result: Emptied = await self._door.call(
            "sessions/emptyTrash",
            {
                "workspace": workspace,
                "key": key,
                "ids": ids,
                "olderThanDays": older_than_days,
            },
        )
        return result

    async def export_markdown(
        self,
        *,
        id: str,
        workspace: str | None = None,
        redact: bool | None = None,
        tools: bool | None = None,
        inline: bool | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> ExportedMarkdown:
        """A session as Markdown for people, as it is stored at this moment.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        redact: Take out what looks like a secret, and the name of the home folder.
        tools: Also what tools were given and what they gave.
        inline: Answer the text instead of a blob; up to 8 MiB.
        """
        result: ExportedMarkdown = await self._door.call(
            "sessions/exportMarkdown",
            {
                "id": id,
                "workspace": workspace,
                "redact": redact,
                "tools": tools,
                "inline": inline,
            },
            on_progress=on_progress,
        )
        return result

    async def get(
        self,
        *,
        id: str,
        workspace: str | None = None,
        fields: Sequence[str] | None = None,
        messages: int | None = None,
        explicit: Mapping[str, Any] | None = None,
    ) -> GotSession:
        """One session.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        messages: Also give the last n messages.
        explicit: What is wanted for once: the members of `info.effective`; it goes before what the session
        says.
        """
        result: GotSession = await self._door.call(
            "sessions/get",
            {
                "id": id,
                "workspace": workspace,
                "fields": fields,
                "messages": messages,
                "explicit": explicit,
            },
        )
        return result

    async def list(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of sessions.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "sessions/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "sessions/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def list_trash(
        self,
        *,
        workspace: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page:
        """Deleted sessions, the latest first.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Page = await self._door.call(
            "sessions/listTrash",
            {
                "workspace": workspace,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return result

    async def mark_read(
        self,
        *,
        workspace: str | None = None,
        key: str | None = None,
        sessions: Sequence[str] | None = None,
        all: bool | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Committed:
        """Everything in these sessions was read: `hasUnread` false, `lastReadMessageId` the last final message.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        all: All unread ones that are neither hidden nor archived.
        """
        result: Committed = await self._door.call(
            "sessions/markRead",
            {
                "workspace": workspace,
                "key": key,
                "sessions": sessions,
                "all": all,
            },
            on_progress=on_progress,
        )
        return result

    async def publish(
        self,
        *,
        session: str,
        event: Mapping[str, Any],
        workspace: str | None = None,
    ) -> None:
        """Tell who listens what is not worth storing; for executors.

        event: `{type, ...}`; `{type: "state", state}` is remembered while the connection lives.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        await self._door.call(
            "sessions/publish",
            {
                "session": session,
                "event": event,
                "workspace": workspace,
            },
        )

    async def purge(
        self,
        *,
        older_than_days: float,
        workspace: str | None = None,
        key: str | None = None,
        dry_run: bool | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Purged:
        """Move sessions to the trash that were archived long ago.

        older_than_days: More than 0. A session without a certain time of archiving stays.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        dry_run: Only say which.
        """
        result: Purged = await self._door.call(
            "sessions/purge",
            {
                "olderThanDays": older_than_days,
                "workspace": workspace,
                "key": key,
                "dryRun": dry_run,
            },
            on_progress=on_progress,
        )
        return result

    async def repair(
        self,
        *,
        id: str,
        workspace: str | None = None,
        key: str | None = None,
        dry_run: bool | None = None,
    ) -> Repaired:
        """Mend the file of a session; what it was stays beside.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        dry_run: Only say what is wrong and what would become of it.
        """
        result: Repaired = await self._door.call(
            "sessions/repair",
            {
                "id": id,
                "workspace": workspace,
                "key": key,
                "dryRun": dry_run,
            },
        )
        return result

    async def restore(
        self,
        *,
        id: str,
        workspace: str | None = None,
        key: str | None = None,
    ) -> Created:
        """Give a deleted session back, with everything in its folder, under its old id.

        id: From the list of the trash; or the session's, for its last deletion.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Created = await self._door.call(
            "sessions/restore",
            {
                "id": id,
                "workspace": workspace,
                "key": key,
            },
        )
        return result

    async def unread(
        self,
        *,
        workspace: str | None = None,
    ) -> Unread:
        """Which sessions have unread messages, hidden and archived ones left out; of one or all open workspaces.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Unread = await self._door.call(
            "sessions/unread",
            {
                "workspace": workspace,
            },
        )
        return result

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change members of a record of sessions.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        """
        result: Updated = await self._door.call(
            "sessions/update",
            {
                "id": id,
                "patch": patch,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result

    async def view(
        self,
        *,
        sessions: Sequence[str],
        workspace: str | None = None,
    ) -> None:
        """These sessions, and no others, are on the screen now; they do not become unread. May come as a
        notification.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        await self._door.call(
            "sessions/view",
            {
                "sessions": sessions,
                "workspace": workspace,
            },
        )


class SettingsCalls(Noun):
    """The methods `settings/...`."""

    __slots__ = ()

    async def get(
        self,
        *,
        workspace: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Got:
        """The settings of a workspace, or of the whole configuration.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Got = await self._door.call(
            "settings/get",
            {
                "workspace": workspace,
                "fields": fields,
            },
        )
        return result

    async def update(
        self,
        *,
        patch: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change the settings of a workspace, or of the whole configuration.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Updated = await self._door.call(
            "settings/update",
            {
                "patch": patch,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class SkillsCalls(Noun):
    """The methods `skills/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        value: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        id: str | None = None,
        level: Literal["project", "workspace", "global"] | None = None,
    ) -> Created:
        """A new skill of the workspace.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        level: The others are read, never written: Forbidden.
        """
        result: Created = await self._door.call(
            "skills/create",
            {
                "value": value,
                "workspace": workspace,
                "key": key,
                "id": id,
                "level": level,
            },
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
        level: Literal["project", "workspace", "global"] | None = None,
    ) -> Committed:
        """Remove a skill of the workspace.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        level: The others are read, never written: Forbidden.
        """
        result: Committed = await self._door.call(
            "skills/delete",
            {
                "id": id,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
                "level": level,
            },
        )
        return result

    async def get(
        self,
        *,
        id: str,
        workspace: str | None = None,
        fields: Sequence[str] | None = None,
        level: Literal["project", "workspace", "global"] | None = None,
        session: str | None = None,
    ) -> Got:
        """One skill: the workspace's, that of another level, or the one that a session has.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        level: Absent: with `session` the one that counts there, otherwise the workspace's.
        session: Whose working directory has the level `project`; absent: that of one that has yet to begin.
        """
        result: Got = await self._door.call(
            "skills/get",
            {
                "id": id,
                "workspace": workspace,
                "fields": fields,
                "level": level,
                "session": session,
            },
        )
        return result

    async def list(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of skills.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "skills/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "skills/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def resolve(
        self,
        *,
        workspace: str | None = None,
        session: str | None = None,
    ) -> ResolvedSkills:
        """The skills of a session: of its directory, of the workspace, of the home folder, and which of them
        count.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        session: Absent: one that has yet to begin.
        """
        result: ResolvedSkills = await self._door.call(
            "skills/resolve",
            {
                "workspace": workspace,
                "session": session,
            },
        )
        return result

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
        level: Literal["project", "workspace", "global"] | None = None,
    ) -> Updated:
        """Change members of a skill of the workspace.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        level: The others are read, never written: Forbidden.
        """
        result: Updated = await self._door.call(
            "skills/update",
            {
                "id": id,
                "patch": patch,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
                "level": level,
            },
        )
        return result

    async def validate(
        self,
        *,
        text: str,
        workspace: str | None = None,
        folder: str | None = None,
    ) -> ValidatedSkill:
        """What is wrong with the text of a SKILL.md; nothing is read or stored.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        folder: Name of the one it is for, its id; absent: nothing is said about that.
        """
        result: ValidatedSkill = await self._door.call(
            "skills/validate",
            {
                "text": text,
                "workspace": workspace,
                "folder": folder,
            },
        )
        return result


class SourcesCalls(Noun):
    """The methods `sources/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        value: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        id: str | None = None,
    ) -> Created:
        """A new record of sources.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Created = await self._door.call(
            "sources/create",
            {
                "value": value,
                "workspace": workspace,
                "key": key,
                "id": id,
            },
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
    ) -> Committed:
        """Remove a record of sources.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "sources/delete",
            {
                "id": id,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
        )
        return result

    async def get(
        self,
        *,
        id: str,
        workspace: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Got:
        """One record of sources.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Got = await self._door.call(
            "sources/get",
            {
                "id": id,
                "workspace": workspace,
                "fields": fields,
            },
        )
        return result

    async def list(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of sources.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "sources/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "sources/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def test(
        self,
        *,
        id: str,
        workspace: str | None = None,
        auto_enable: bool | None = None,
        timeout_ms: int | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> TestedSource:
        """Really connect to a source, with the credential that is stored for it, and write down how it went.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        auto_enable: Switch it on if it was off and could be connected to.
        timeout_ms: 1 to 300000; absent: 30 s, for an api 10 s.
        """
        result: TestedSource = await self._door.call(
            "sources/test",
            {
                "id": id,
                "workspace": workspace,
                "autoEnable": auto_enable,
                "timeoutMs": timeout_ms,
            },
            on_progress=on_progress,
        )
        return result

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change members of a record of sources.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        """
        result: Updated = await self._door.call(
            "sources/update",
            {
                "id": id,
                "patch": patch,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class StatusesCalls(Noun):
    """The methods `statuses/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        value: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        id: str | None = None,
    ) -> Created:
        """A new record of statuses.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Created = await self._door.call(
            "statuses/create",
            {
                "value": value,
                "workspace": workspace,
                "key": key,
                "id": id,
            },
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
        move_to: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Removed:
        """Remove a status; sessions that have it keep its id, or get another status first.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        move_to: Id of the status that sessions get.
        """
        result: Removed = await self._door.call(
            "statuses/delete",
            {
                "id": id,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
                "moveTo": move_to,
            },
            on_progress=on_progress,
        )
        return result

    async def get(
        self,
        *,
        id: str,
        workspace: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Got:
        """One record of statuses.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Got = await self._door.call(
            "statuses/get",
            {
                "id": id,
                "workspace": workspace,
                "fields": fields,
            },
        )
        return result

    async def list(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of statuses.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "statuses/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "statuses/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def rename(
        self,
        *,
        id: str,
        new_id: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Renamed:
        """Give a status another id, also in sessions.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Renamed = await self._door.call(
            "statuses/rename",
            {
                "id": id,
                "newId": new_id,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
            },
            on_progress=on_progress,
        )
        return result

    async def reorder(
        self,
        *,
        ids: Sequence[str],
        workspace: str | None = None,
        key: str | None = None,
    ) -> Committed:
        """Number the statuses anew.

        ids: All of them, in order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "statuses/reorder",
            {
                "ids": ids,
                "workspace": workspace,
                "key": key,
            },
        )
        return result

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change members of a record of statuses.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        """
        result: Updated = await self._door.call(
            "statuses/update",
            {
                "id": id,
                "patch": patch,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class TasksCalls(Noun):
    """The methods `tasks/...`."""

    __slots__ = ()

    async def validate(
        self,
        *,
        text: str,
        workspace: str | None = None,
        folder: str | None = None,
    ) -> Validated:
        """What is wrong with the text of a `task.yaml`; nothing is stored.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        folder: Name of the one it is for; absent: paths are `task.yaml`.
        """
        result: Validated = await self._door.call(
            "tasks/validate",
            {
                "text": text,
                "workspace": workspace,
                "folder": folder,
            },
        )
        return result


class TokensCalls(Noun):
    """The methods `tokens/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        rights: Sequence[Literal["read", "write", "execute", "secrets", "admin"]],
        name: str | None = None,
        workspaces: Sequence[str] | None = None,
    ) -> CreatedToken:
        """Make a token: for all workspaces, or for some, and then without the right `admin`.

        name: For people.
        workspaces: Registry ids, `ws_` ids, slugs or paths.
        """
        result: CreatedToken = await self._door.call(
            "tokens/create",
            {
                "rights": rights,
                "name": name,
                "workspaces": workspaces,
            },
        )
        return result

    async def list(self) -> ShownTokens:
        """All tokens, without their secrets."""
        result: ShownTokens = await self._door.call(
            "tokens/list",
            {},
        )
        return result

    async def revoke(
        self,
        *,
        id: str,
    ) -> None:
        """Make a token worthless and close its connections; `local`, the one in the file `craftd/token`, is
        replaced.
        """
        await self._door.call(
            "tokens/revoke",
            {
                "id": id,
            },
        )


class ViewsCalls(Noun):
    """The methods `views/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        value: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        id: str | None = None,
    ) -> Created:
        """A new record of views.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Created = await self._door.call(
            "views/create",
            {
                "value": value,
                "workspace": workspace,
                "key": key,
                "id": id,
            },
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
    ) -> Committed:
        """Remove a record of views.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "views/delete",
            {
                "id": id,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
        )
        return result

    async def evaluate(
        self,
        *,
        expression: str,
        workspace: str | None = None,
    ) -> Evaluated:
        """Which sessions an expression matches, saved or not.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Evaluated = await self._door.call(
            "views/evaluate",
            {
                "expression": expression,
                "workspace": workspace,
            },
        )
        return result

    async def get(
        self,
        *,
        id: str,
        workspace: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Got:
        """One record of views.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        """
        result: Got = await self._door.call(
            "views/get",
            {
                "id": id,
                "workspace": workspace,
                "fields": fields,
            },
        )
        return result

    async def list(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """One page of views.

        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "views/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        workspace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "views/list",
            {
                "workspace": workspace,
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        workspace: str | None = None,
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change members of a record of views.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        workspace: Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        """
        result: Updated = await self._door.call(
            "views/update",
            {
                "id": id,
                "patch": patch,
                "workspace": workspace,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class WorkspacesCalls(Noun):
    """The methods `workspaces/...`."""

    __slots__ = ()

    async def create(
        self,
        *,
        value: Mapping[str, Any],
        key: str | None = None,
        id: str | None = None,
        adopt: bool | None = None,
        dry_run: bool | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Created:
        """Make a workspace folder, or register an existing one: `value: {name, path?}`.

        key: Idempotency key, 16 to 128 characters, one per intended change.
        adopt: Take a folder that is neither empty nor a workspace.
        dry_run: Answer what would be there, and do nothing.
        """
        result: Created = await self._door.call(
            "workspaces/create",
            {
                "value": value,
                "key": key,
                "id": id,
                "adopt": adopt,
                "dryRun": dry_run,
            },
            on_progress=on_progress,
        )
        return result

    async def delete(
        self,
        *,
        id: str,
        key: str | None = None,
        expected_version: str | None = None,
        missing_ok: bool | None = None,
    ) -> Committed:
        """Take a workspace out of the registry; its files stay.

        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Committed = await self._door.call(
            "workspaces/delete",
            {
                "id": id,
                "key": key,
                "expectedVersion": expected_version,
                "missingOk": missing_ok,
            },
        )
        return result

    async def get(
        self,
        *,
        id: str,
        fields: Sequence[str] | None = None,
    ) -> Got:
        """One workspace: its settings and `path`."""
        result: Got = await self._door.call(
            "workspaces/get",
            {
                "id": id,
                "fields": fields,
            },
        )
        return result

    async def list(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
        on_part: Callable[[Any], None] | None = None,
    ) -> Page:
        """All registered workspaces.

        sort: Member of value, `-` in front for descending; ties by id.
        fields: Members of value to return; `["*"]` for all.
        """
        result: Page = await self._door.call(
            "workspaces/list",
            {
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
                "cursor": cursor,
            },
            on_progress=on_progress,
            on_part=on_part,
        )
        return result

    def iterate(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Item]:
        """All items of `list`, page after page."""
        return self._door.pages(
            "workspaces/list",
            {
                "filter": filter,
                "sort": sort,
                "fields": fields,
                "limit": limit,
            },
        )

    async def move(
        self,
        *,
        id: str,
        path: str,
        key: str | None = None,
        expected_version: str | None = None,
    ) -> Updated:
        """Say where the folder of a workspace is, after somebody moved it; nothing is moved, and its id stays.

        path: Absolute, or beginning with `~`.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        """
        result: Updated = await self._door.call(
            "workspaces/move",
            {
                "id": id,
                "path": path,
                "key": key,
                "expectedVersion": expected_version,
            },
        )
        return result

    async def update(
        self,
        *,
        id: str,
        patch: Mapping[str, Any],
        key: str | None = None,
        expected_version: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> Updated:
        """Change the settings of a workspace.

        patch: `{unset?, set?, remove?, add?}`, applied in this order.
        key: Idempotency key, 16 to 128 characters, one per intended change.
        expected_version: Absent: the patch applies to whatever is there now.
        """
        result: Updated = await self._door.call(
            "workspaces/update",
            {
                "id": id,
                "patch": patch,
                "key": key,
                "expectedVersion": expected_version,
                "fields": fields,
            },
        )
        return result


class Calls:
    """All nouns."""

    def __init__(self, door: Door) -> None:
        self.annotations = AnnotationsCalls(door)
        self.assets = AssetsCalls(door)
        self.attachments = AttachmentsCalls(door)
        self.automations = AutomationsCalls(door)
        self.blobs = BlobsCalls(door)
        self.bundles = BundlesCalls(door)
        self.connections = ConnectionsCalls(door)
        self.credentials = CredentialsCalls(door)
        self.daemon = DaemonCalls(door)
        self.drafts = DraftsCalls(door)
        self.events = EventsCalls(door)
        self.files = FilesCalls(door)
        self.issues = IssuesCalls(door)
        self.labels = LabelsCalls(door)
        self.memory = MemoryCalls(door)
        self.mentions = MentionsCalls(door)
        self.messages = MessagesCalls(door)
        self.notes = NotesCalls(door)
        self.oauth = OauthCalls(door)
        self.permissions = PermissionsCalls(door)
        self.plans = PlansCalls(door)
        self.preferences = PreferencesCalls(door)
        self.prerequisites = PrerequisitesCalls(door)
        self.projects = ProjectsCalls(door)
        self.search = SearchCalls(door)
        self.sessions = SessionsCalls(door)
        self.settings = SettingsCalls(door)
        self.skills = SkillsCalls(door)
        self.sources = SourcesCalls(door)
        self.statuses = StatusesCalls(door)
        self.tasks = TasksCalls(door)
        self.tokens = TokensCalls(door)
        self.views = ViewsCalls(door)
        self.workspaces = WorkspacesCalls(door)
