"""What the daemon answers and says, as types: the JSON as it is on the wire.

Made by scripts/generate from craftd's registry of methods. Changes made by hand are lost.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class Item(TypedDict):
    """One record. value: as stored; info: computed."""

    id: str
    version: str
    value: dict[str, Any]
    info: NotRequired[dict[str, Any]]
    uri: NotRequired[str]


class Abilities(TypedDict):
    """What a client can do. protocol: major.minor; roles: viewer, executor."""

    protocol: NotRequired[str]
    approvals: NotRequired[bool]
    roles: NotRequired[list[str]]


class Appended(TypedDict):
    """Ids and versions in the order given."""

    epoch: str
    revision: int
    messages: list[Changed]


class Batch(TypedDict):
    """Part *index* of *size* of one commit; consecutive revisions."""

    index: int
    size: int


class BlobRange(TypedDict):
    """data: base64. size: bytes of the whole blob. eof: this reaches its end."""

    data: str
    offset: int
    size: int
    eof: bool


class BranchPoint(TypedDict):
    """Where a branch leaves its session: behind a message."""

    session: str
    message: str


class Changed(TypedDict):
    """One changed record and its version now."""

    id: str
    version: str


class Checked(TypedDict):
    """decision: allow, ask or deny. code: why, in one word. reason: why, for people."""

    decision: str
    code: str
    reason: str
    # What allowed it: `{level, list, pattern, method?, comment?}`; level `built-in` is no file's.
    rule: NotRequired[dict[str, Any]]
    # The entry of `blockedCommandHints` for a command that was not allowed.
    hint: NotRequired[dict[str, Any]]


class CheckedPrerequisites(TypedDict):
    """state: to be given with the next check of this running session. answers: one for each step, null but for a
    call.
    """

    state: dict[str, Any]
    answers: list[dict[str, Any]]


class Choice(TypedDict):
    """A workspace by registry id or by folder."""

    id: NotRequired[str]
    path: NotRequired[str]


class Committed(TypedDict):
    """What is true after a change: the scope's revision after its commit."""

    epoch: str
    revision: int


class Content(TypedDict):
    """What a file shall hold: exactly one of these members."""

    text: NotRequired[str]
    base64: NotRequired[str]
    # Id from `blobs/create`; the first use that succeeds consumes it.
    blob: NotRequired[str]
    # Absolute, on the daemon's machine, inside a workspace that the connection may open.
    path: NotRequired[str]


class Created(TypedDict):
    """Answer of `create`."""

    epoch: str
    revision: int
    item: Item


class CreatedBlob(TypedDict):
    """chunk_bytes: what one `blobs/write` may carry at most."""

    blob: str
    chunkBytes: int


class CreatedToken(TypedDict):
    """secret: what clients show; it is not told again."""

    secret: str
    token: ShownToken


class CredentialStatus(TypedDict):
    """status: ready, expiring (within five minutes), expired, empty, damaged. expires_at: ms since 1970 UTC."""

    id: str
    version: str
    status: str
    expiresAt: NotRequired[int]
    refreshable: NotRequired[bool]


class CredentialsStatus(TypedDict):
    """items: none where the file cannot be opened."""

    epoch: str
    revision: int
    file: VaultStatus
    items: list[CredentialStatus]


class DeletedSession(TypedDict):
    """trash: its id there. children, branches: sessions that stem from it, and stay."""

    epoch: str
    revision: int
    trash: NotRequired[str]
    children: list[str]
    branches: list[str]


class Emptied(TypedDict):
    """removed: ids in the trash of what is gone for good."""

    epoch: str
    revision: int
    removed: list[str]


class Evaluated(TypedDict):
    """sessions: ids of those that match, the latest first."""

    epoch: str
    revision: int
    sessions: list[str]
    # Sessions for which the expression fails; they do not match.
    failed: int
    # Why: of the expression as a whole, or the first of a session.
    error: NotRequired[ExpressionFault]


class Event(TypedDict):
    """One notification, as it would have been sent."""

    method: str
    params: dict[str, Any]


class Events(TypedDict):
    """Changes after the position asked for. status: stale = it is no longer known, list again."""

    epoch: str
    revision: int
    events: list[Event]
    status: Literal["ok", "stale"]


class ExportedBundle(TypedDict):
    """blob: for `blobs/read`; or the bundle itself. size: bytes. warnings: what is not in the bundle, and why."""

    blob: NotRequired[str]
    bundle: NotRequired[dict[str, Any]]
    size: int
    sha256: str
    warnings: list[Issue]


class ExportedMarkdown(TypedDict):
    """blob: for `blobs/read`; or the text itself. size: bytes. redacted: how many secrets were taken out."""

    blob: NotRequired[str]
    text: NotRequired[str]
    size: int
    sha256: str
    redacted: int


class ExpressionFault(TypedDict):
    """code: syntax, unknown-function, type, bad-pattern or too-slow. offset: characters before the place to
    blame.
    """

    code: str
    message: str
    offset: int


class FailedResource(TypedDict):
    """error: as of an answer, by name. issues: where it is not valid."""

    id: str
    error: str
    message: str
    issues: NotRequired[list[Issue]]


class FileRange(TypedDict):
    """length: bytes of the file that *data* stands for. eof: it reaches the end. Unchanged: only version."""

    version: str
    unchanged: NotRequired[bool]
    data: NotRequired[str]
    offset: NotRequired[int]
    length: NotRequired[int]
    size: NotRequired[int]
    eof: NotRequired[bool]


class FoundDamage(TypedDict):
    """Something wrong with a session's file. remedy: what repairing makes of it; absent: it stays."""

    code: str
    line: NotRequired[int]
    message: str
    remedy: NotRequired[str]


class FoundFiles(TypedDict):
    """searched: how many names were looked at. stopped: why not all of them: limit, time, many."""

    epoch: str
    revision: int
    items: list[Item]
    searched: int
    stopped: NotRequired[str]


class Got(TypedDict):
    """Answer of `get`."""

    epoch: str
    revision: int
    item: Item


class GotSession(TypedDict):
    """messages: the last ones, if they were asked for."""

    epoch: str
    revision: int
    item: Item
    messages: NotRequired[list[Item]]


class Hello(TypedDict):
    """config_dir: real path of the configuration folder. clients: how many other connections there are."""

    pid: int
    version: str
    protocol: str
    configDir: str
    readOnly: bool
    clients: int


class ImportedBundle(TypedDict):
    """"""

    epoch: str
    revision: int
    sources: ImportedResources
    skills: ImportedResources
    automations: ImportedResources
    sessions: ImportedResources
    # What sessions refer to and is not here; paths are members of the session.
    warnings: list[Issue]


class ImportedResources(TypedDict):
    """Ids as in the bundle, in its order. renamed: of those imported, which got another one."""

    imported: NotRequired[list[str]]
    skipped: NotRequired[list[str]]
    failed: NotRequired[list[FailedResource]]
    renamed: NotRequired[list[RenamedResource]]


class Issue(TypedDict):
    """One thing that is wrong with a value or a file; what every validator returns."""

    path: str
    message: str
    severity: NotRequired[str]
    code: NotRequired[str]
    suggestion: NotRequired[str]
    range: NotRequired[dict[str, Any]]
    noun: NotRequired[str]
    id: NotRequired[str]


class Issues(TypedDict):
    """path: relative to the workspace."""

    epoch: str
    revision: int
    items: list[Issue]


class Mentioned(TypedDict):
    """kind: skill, source, file, folder. name: slug or path as written. start, end: UTF-16 units of the text."""

    kind: str
    name: str
    start: int
    end: int
    # Whether there is such a skill or source; of files and folders nothing is looked up.
    known: bool
    path: NotRequired[str]
    title: NotRequired[str]


class OpenWorkspace(TypedDict):
    """One workspace of the connection and where it stands."""

    id: str
    name: str
    path: str
    epoch: str
    revision: int
    readOnly: bool


class Options(TypedDict):
    """What a client asks for. open: existing, register (add a workspace folder to the known ones), never."""

    workspaces: NotRequired[list[Choice]]
    open: NotRequired[Literal["existing", "register", "never"]]
    token: NotRequired[str]


class Origin(TypedDict):
    """Who caused a change. kind: client, disk, automation, run, daemon. client: connection id; key: its own key."""

    kind: str
    client: NotRequired[str]
    key: NotRequired[str]


class Page(TypedDict):
    """Answer of `list`."""

    epoch: str
    revision: int
    items: list[Item]
    nextCursor: NotRequired[str]
    total: NotRequired[int]


class Position(TypedDict):
    """A moment of a scope: comparable only within the same epoch."""

    epoch: str
    revision: int


class Purged(TypedDict):
    """sessions: ids of those that went to the trash, or would."""

    epoch: str
    revision: int
    sessions: list[str]


class Removed(TypedDict):
    """sessions: how many were changed with it."""

    epoch: str
    revision: int
    sessions: int


class Renamed(TypedDict):
    """sessions: how many were changed with it."""

    epoch: str
    revision: int
    item: Item
    changed: bool
    sessions: int


class RenamedResource(TypedDict):
    """id: in the bundle. new_id: here."""

    id: str
    newId: str


class Repaired(TypedDict):
    """changed: the file was written anew. found: what was wrong before. kept: name of the file as it was, in the"""

    epoch: str
    revision: int
    item: Item
    changed: bool
    found: list[FoundDamage]
    kept: NotRequired[str]


class ResolvedMentions(TypedDict):
    """message: the text as a model gets it. enable: sources that the skills require and the session has not
    switched
    """

    epoch: str
    revision: int
    message: str
    mentions: list[Mentioned]
    nearMisses: list[Unread]
    enable: list[str]
    skipped: list[Skipped]


class ResolvedSkills(TypedDict):
    """directory: whose `.agents/skills` was looked into. issues: why some skills were not."""

    directory: str
    skills: list[SessionSkill]
    issues: list[Issue]


class Revealed(TypedDict):
    """value: as stored, the secret with it."""

    epoch: str
    revision: int
    id: str
    version: str
    value: Any


class SearchItem(TypedDict):
    """A record in which something was found: a session for all that belongs to one."""

    noun: str
    id: str
    title: NotRequired[str]
    matches: list[SearchMatch]
    count: int
    more: NotRequired[bool]


class SearchMatch(TypedDict):
    """One place. noun, id: of the record; a message without an id has none. field: the member of its value."""

    noun: str
    id: NotRequired[str]
    field: str
    start: int
    end: int
    snippet: str
    at: int
    type: NotRequired[str]
    timestamp: NotRequired[int]
    path: NotRequired[str]


class SearchResult(TypedDict):
    """searched, of: how many records were looked into, how many there were to look into."""

    epoch: str
    revision: int
    items: list[SearchItem]
    nextCursor: NotRequired[str]
    searched: int
    of: int
    stopped: NotRequired[str]


class SessionSkill(TypedDict):
    """level, path, value: of the one that counts, null and empty if none loads; value without `content`."""

    id: str
    level: str
    path: str
    value: dict[str, Any]
    sdkName: str
    levels: list[SkillLevel]
    unusable: list[Skipped]


class ShownToken(TypedDict):
    """workspaces: registry ids that it is limited to. created_at: absent for the one in the file `craftd/token`."""

    id: str
    name: str
    rights: list[str]
    workspaces: NotRequired[list[str]]
    createdAt: NotRequired[int]


class ShownTokens(TypedDict):
    """"""

    tokens: list[ShownToken]


class SignedIn(TypedDict):
    """id: of the credential that is stored now. account: whose it is, where the service says so."""

    epoch: str
    revision: int
    id: str
    account: NotRequired[str]


class SkillLevel(TypedDict):
    """level: project, workspace, global. path: of the SKILL.md. loads: it can be used."""

    level: str
    path: str
    loads: bool
    issues: list[Issue]


class Skipped(TypedDict):
    """reason: missing, disabled, needs-authentication."""

    source: str
    reason: str


class StartedSignIn(TypedDict):
    """auth_url: to open in a browser. state: what comes back with the code. expires_at: ms since 1970 UTC."""

    flow: str
    authUrl: str
    state: str
    redirectUri: str
    expiresAt: int


class StoredAttachment(TypedDict):
    """attachment: what the message gets in its `attachments`, with the name and type that were given."""

    epoch: str
    revision: int
    item: Item
    attachment: dict[str, Any]


class Subscribed(TypedDict):
    """Where delivery begins. replay: complete = *count* missed changes follow; stale = list again."""

    epoch: str
    revision: int
    replay: Literal["none", "complete", "stale"]
    count: NotRequired[int]


class TestedSource(TypedDict):
    """status: as written into the configuration. message: why it is not connected. written: whether it could be
    stored.
    """

    epoch: str
    revision: int
    status: Literal["connected", "needs_auth", "failed"]
    message: NotRequired[str]
    written: bool
    found: dict[str, Any]
    searchPath: NotRequired[str]


class Unread(TypedDict):
    """Text that looks like a mention and is none."""

    start: int
    end: int


class Updated(TypedDict):
    """Answer of `update`; changed: false when the record was like that already."""

    epoch: str
    revision: int
    item: Item
    changed: bool


class Validated(TypedDict):
    """issues: what `issues/list` would have if the text were the file; ranges are those of the text."""

    issues: list[Issue]


class ValidatedSkill(TypedDict):
    """issues: what `issues/list` would have if the text were the file; ranges are those of the text."""

    issues: list[Issue]


class VaultStatus(TypedDict):
    """state: absent, ready, undecryptable, corrupt, unreadable, unsupported. set_aside: what could not be
    opened.
    """

    state: str
    message: NotRequired[str]
    setAside: NotRequired[list[str]]


class Welcome(TypedDict):
    """What the daemon announces. methods, notifications: complete, to be tested for membership."""

    epoch: str
    readOnly: bool
    workspaces: NotRequired[list[OpenWorkspace]]
    features: dict[str, Any]
    protocol: str
    clientId: str
    pid: int
    rights: list[str]
    methods: list[str]
    notifications: list[str]
    limits: dict[str, int]


class WrittenBlob(TypedDict):
    """received: how many bytes of the blob are there now."""

    received: int


class WrittenFile(TypedDict):
    """version: another one after every write. size: bytes."""

    epoch: str
    revision: int
    version: str
    size: int


class ConnectionsDidChange(TypedDict):
    """Records of connections changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class ConnectionsDidChangeEvent(TypedDict):
    method: Literal["connections/didChange"]
    params: ConnectionsDidChange


class ConnectionsDidCreate(TypedDict):
    """A record of connections is there."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    item: Item


class ConnectionsDidCreateEvent(TypedDict):
    method: Literal["connections/didCreate"]
    params: ConnectionsDidCreate


class ConnectionsDidDelete(TypedDict):
    """A record of connections is gone."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str


class ConnectionsDidDeleteEvent(TypedDict):
    method: Literal["connections/didDelete"]
    params: ConnectionsDidDelete


class CredentialsDidChange(TypedDict):
    """A credential changed; where only its secret did, `patch` is empty and the version is another one."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class CredentialsDidChangeEvent(TypedDict):
    method: Literal["credentials/didChange"]
    params: CredentialsDidChange


class CredentialsDidCreate(TypedDict):
    """A credential is there: whose it is."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    item: Item


class CredentialsDidCreateEvent(TypedDict):
    method: Literal["credentials/didCreate"]
    params: CredentialsDidCreate


class CredentialsDidDelete(TypedDict):
    """A record of credentials is gone."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str


class CredentialsDidDeleteEvent(TypedDict):
    method: Literal["credentials/didDelete"]
    params: CredentialsDidDelete


class DaemonDidChange(TypedDict):
    """Whether craftd may write, or the known workspaces, changed."""

    readOnly: NotRequired[bool]
    holder: NotRequired[Any]
    workspaces: NotRequired[list[dict[str, Any]]]


class DaemonDidChangeEvent(TypedDict):
    method: Literal["daemon/didChange"]
    params: DaemonDidChange


class DaemonWillStop(TypedDict):
    """The daemon ends in *grace_ms*; reconnecting later is fine. reason: stop, upgrade, idle."""

    reason: str
    graceMs: int


class DaemonWillStopEvent(TypedDict):
    method: Literal["daemon/willStop"]
    params: DaemonWillStop


class DraftsDidChange(TypedDict):
    """Records of drafts changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class DraftsDidChangeEvent(TypedDict):
    method: Literal["drafts/didChange"]
    params: DraftsDidChange


class DraftsDidCreate(TypedDict):
    """A draft is there."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    item: Item


class DraftsDidCreateEvent(TypedDict):
    method: Literal["drafts/didCreate"]
    params: DraftsDidCreate


class DraftsDidDelete(TypedDict):
    """A record of drafts is gone."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str


class DraftsDidDeleteEvent(TypedDict):
    method: Literal["drafts/didDelete"]
    params: DraftsDidDelete


class EventsCheckpoint(TypedDict):
    """The scope moved on without anything for this subscription."""

    epoch: str
    revision: int
    workspace: NotRequired[str]


class EventsCheckpointEvent(TypedDict):
    method: Literal["events/checkpoint"]
    params: EventsCheckpoint


class EventsDidLapse(TypedDict):
    """Changes were not delivered; from *revision* on delivery is live again: list now and nothing is missing."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    reason: Literal["overflow", "journal", "epoch", "reload"]


class EventsDidLapseEvent(TypedDict):
    method: Literal["events/didLapse"]
    params: EventsDidLapse


class FilesDidChange(TypedDict):
    """A file that is no record is there, is another one, or is gone; told to who asked for the topic `files`."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    path: str
    kind: Literal["created", "changed", "deleted"]
    version: NotRequired[str]


class FilesDidChangeEvent(TypedDict):
    method: Literal["files/didChange"]
    params: FilesDidChange


class IssuesDidChange(TypedDict):
    """The complete list of one file."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    path: str
    issues: list[Issue]


class IssuesDidChangeEvent(TypedDict):
    method: Literal["issues/didChange"]
    params: IssuesDidChange


class LabelsDidChange(TypedDict):
    """Records of labels changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class LabelsDidChangeEvent(TypedDict):
    method: Literal["labels/didChange"]
    params: LabelsDidChange


class LabelsDidCreate(TypedDict):
    """A record of labels is there."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    item: Item


class LabelsDidCreateEvent(TypedDict):
    method: Literal["labels/didCreate"]
    params: LabelsDidCreate


class LabelsDidDelete(TypedDict):
    """A record of labels is gone."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str


class LabelsDidDeleteEvent(TypedDict):
    method: Literal["labels/didDelete"]
    params: LabelsDidDelete


class LabelsDidReorder(TypedDict):
    """The labels in *parent* (absent: the topmost ones) stand in this order now."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    ids: list[str]
    parent: NotRequired[str]


class LabelsDidReorderEvent(TypedDict):
    method: Literal["labels/didReorder"]
    params: LabelsDidReorder


class MessagesDidAppend(TypedDict):
    """Messages came to the end of a transcript. index: position of the first; count: how many there are now."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    session: str
    index: int
    messages: list[dict[str, Any]]
    count: int


class MessagesDidAppendEvent(TypedDict):
    method: Literal["messages/didAppend"]
    params: MessagesDidAppend


class MessagesDidChange(TypedDict):
    """Records of messages changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]
    session: str


class MessagesDidChangeEvent(TypedDict):
    method: Literal["messages/didChange"]
    params: MessagesDidChange


class MessagesDidDelete(TypedDict):
    """A record of messages is gone."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str
    session: str


class MessagesDidDeleteEvent(TypedDict):
    method: Literal["messages/didDelete"]
    params: MessagesDidDelete


class MessagesDidTruncate(TypedDict):
    """Only the first *keep* messages are left."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    session: str
    keep: int


class MessagesDidTruncateEvent(TypedDict):
    method: Literal["messages/didTruncate"]
    params: MessagesDidTruncate


class PermissionsDidChange(TypedDict):
    """Records of permissions changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class PermissionsDidChangeEvent(TypedDict):
    method: Literal["permissions/didChange"]
    params: PermissionsDidChange


class PermissionsDidCreate(TypedDict):
    """A level is there: a source came."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    item: Item


class PermissionsDidCreateEvent(TypedDict):
    method: Literal["permissions/didCreate"]
    params: PermissionsDidCreate


class PermissionsDidDelete(TypedDict):
    """A level is gone with its source."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str


class PermissionsDidDeleteEvent(TypedDict):
    method: Literal["permissions/didDelete"]
    params: PermissionsDidDelete


class PreferencesDidChange(TypedDict):
    """Records of preferences changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class PreferencesDidChangeEvent(TypedDict):
    method: Literal["preferences/didChange"]
    params: PreferencesDidChange


class ProjectsDidChange(TypedDict):
    """Records of projects changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class ProjectsDidChangeEvent(TypedDict):
    method: Literal["projects/didChange"]
    params: ProjectsDidChange


class ProjectsDidCreate(TypedDict):
    """A record of projects is there."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    item: Item


class ProjectsDidCreateEvent(TypedDict):
    method: Literal["projects/didCreate"]
    params: ProjectsDidCreate


class ProjectsDidDelete(TypedDict):
    """A record of projects is gone."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str


class ProjectsDidDeleteEvent(TypedDict):
    method: Literal["projects/didDelete"]
    params: ProjectsDidDelete


class SessionsDidChange(TypedDict):
    """Records of sessions changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class SessionsDidChangeEvent(TypedDict):
    method: Literal["sessions/didChange"]
    params: SessionsDidChange


class SessionsDidCreate(TypedDict):
    """A record of sessions is there."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    item: Item


class SessionsDidCreateEvent(TypedDict):
    method: Literal["sessions/didCreate"]
    params: SessionsDidCreate


class SessionsDidDelete(TypedDict):
    """A record of sessions is gone."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str


class SessionsDidDeleteEvent(TypedDict):
    method: Literal["sessions/didDelete"]
    params: SessionsDidDelete


class SessionsDidPublish(TypedDict):
    """An executor said something that is not stored; no revision. client: its connection."""

    # Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection.
    workspace: NotRequired[str]
    session: str
    event: dict[str, Any]
    client: str


class SessionsDidPublishEvent(TypedDict):
    method: Literal["sessions/didPublish"]
    params: SessionsDidPublish


class SettingsDidChange(TypedDict):
    """Records of settings changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class SettingsDidChangeEvent(TypedDict):
    method: Literal["settings/didChange"]
    params: SettingsDidChange


class SkillsDidChange(TypedDict):
    """Records of skills changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class SkillsDidChangeEvent(TypedDict):
    method: Literal["skills/didChange"]
    params: SkillsDidChange


class SkillsDidCreate(TypedDict):
    """A record of skills is there."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    item: Item


class SkillsDidCreateEvent(TypedDict):
    method: Literal["skills/didCreate"]
    params: SkillsDidCreate


class SkillsDidDelete(TypedDict):
    """A record of skills is gone."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str


class SkillsDidDeleteEvent(TypedDict):
    method: Literal["skills/didDelete"]
    params: SkillsDidDelete


class SourcesDidChange(TypedDict):
    """Records of sources changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class SourcesDidChangeEvent(TypedDict):
    method: Literal["sources/didChange"]
    params: SourcesDidChange


class SourcesDidCreate(TypedDict):
    """A record of sources is there."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    item: Item


class SourcesDidCreateEvent(TypedDict):
    method: Literal["sources/didCreate"]
    params: SourcesDidCreate


class SourcesDidDelete(TypedDict):
    """A record of sources is gone."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str


class SourcesDidDeleteEvent(TypedDict):
    method: Literal["sources/didDelete"]
    params: SourcesDidDelete


class StatusesDidChange(TypedDict):
    """Records of statuses changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class StatusesDidChangeEvent(TypedDict):
    method: Literal["statuses/didChange"]
    params: StatusesDidChange


class StatusesDidCreate(TypedDict):
    """A record of statuses is there."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    item: Item


class StatusesDidCreateEvent(TypedDict):
    method: Literal["statuses/didCreate"]
    params: StatusesDidCreate


class StatusesDidDelete(TypedDict):
    """A record of statuses is gone."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str


class StatusesDidDeleteEvent(TypedDict):
    method: Literal["statuses/didDelete"]
    params: StatusesDidDelete


class ViewsDidChange(TypedDict):
    """Records of views changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class ViewsDidChangeEvent(TypedDict):
    method: Literal["views/didChange"]
    params: ViewsDidChange


class ViewsDidCreate(TypedDict):
    """A record of views is there."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    item: Item


class ViewsDidCreateEvent(TypedDict):
    method: Literal["views/didCreate"]
    params: ViewsDidCreate


class ViewsDidDelete(TypedDict):
    """A record of views is gone."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str


class ViewsDidDeleteEvent(TypedDict):
    method: Literal["views/didDelete"]
    params: ViewsDidDelete


class ViewsDidReorder(TypedDict):
    """The views stand in this order now."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    ids: list[str]


class ViewsDidReorderEvent(TypedDict):
    method: Literal["views/didReorder"]
    params: ViewsDidReorder


class WorkspacesDidChange(TypedDict):
    """Records of workspaces changed: `patch` is what an `update` would need."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    changes: list[Changed]
    patch: dict[str, Any]


class WorkspacesDidChangeEvent(TypedDict):
    method: Literal["workspaces/didChange"]
    params: WorkspacesDidChange


class WorkspacesDidCreate(TypedDict):
    """A record of workspaces is there."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    item: Item


class WorkspacesDidCreateEvent(TypedDict):
    method: Literal["workspaces/didCreate"]
    params: WorkspacesDidCreate


class WorkspacesDidDelete(TypedDict):
    """A record of workspaces is gone."""

    epoch: str
    revision: int
    workspace: NotRequired[str]
    at: int
    origin: Origin
    batch: NotRequired[Batch]
    id: str


class WorkspacesDidDeleteEvent(TypedDict):
    method: Literal["workspaces/didDelete"]
    params: WorkspacesDidDelete


Notification: TypeAlias = (
    ConnectionsDidChangeEvent
    | ConnectionsDidCreateEvent
    | ConnectionsDidDeleteEvent
    | CredentialsDidChangeEvent
    | CredentialsDidCreateEvent
    | CredentialsDidDeleteEvent
    | DaemonDidChangeEvent
    | DaemonWillStopEvent
    | DraftsDidChangeEvent
    | DraftsDidCreateEvent
    | DraftsDidDeleteEvent
    | EventsCheckpointEvent
    | EventsDidLapseEvent
    | FilesDidChangeEvent
    | IssuesDidChangeEvent
    | LabelsDidChangeEvent
    | LabelsDidCreateEvent
    | LabelsDidDeleteEvent
    | LabelsDidReorderEvent
    | MessagesDidAppendEvent
    | MessagesDidChangeEvent
    | MessagesDidDeleteEvent
    | MessagesDidTruncateEvent
    | PermissionsDidChangeEvent
    | PermissionsDidCreateEvent
    | PermissionsDidDeleteEvent
    | PreferencesDidChangeEvent
    | ProjectsDidChangeEvent
    | ProjectsDidCreateEvent
    | ProjectsDidDeleteEvent
    | SessionsDidChangeEvent
    | SessionsDidCreateEvent
    | SessionsDidDeleteEvent
    | SessionsDidPublishEvent
    | SettingsDidChangeEvent
    | SkillsDidChangeEvent
    | SkillsDidCreateEvent
    | SkillsDidDeleteEvent
    | SourcesDidChangeEvent
    | SourcesDidCreateEvent
    | SourcesDidDeleteEvent
    | StatusesDidChangeEvent
    | StatusesDidCreateEvent
    | StatusesDidDeleteEvent
    | ViewsDidChangeEvent
    | ViewsDidCreateEvent
    | ViewsDidDeleteEvent
    | ViewsDidReorderEvent
    | WorkspacesDidChangeEvent
    | WorkspacesDidCreateEvent
    | WorkspacesDidDeleteEvent
)
