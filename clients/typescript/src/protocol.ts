// Made by scripts/generate from craftd's registry of methods. Changes made by hand are lost.

/** A JSON object whose members this protocol does not fix. */
export type JsonObject = Record<string, unknown>;

/** What a client can do. protocol: major.minor; roles: viewer, executor. */
export interface Abilities {
  protocol?: string;
  approvals?: boolean;
  roles?: string[];
}

/** Ids and versions in the order given. */
export interface Appended {
  epoch: string;
  revision: number;
  messages: Changed[];
}

/** Part *index* of *size* of one commit; consecutive revisions. */
export interface Batch {
  index: number;
  size: number;
}

/** data: base64. size: bytes of the whole blob. eof: this reaches its end. */
export interface BlobRange {
  data: string;
  offset: number;
  size: number;
  eof: boolean;
}

/** Where a branch leaves its session: behind a message. */
export interface BranchPoint {
  session: string;
  message: string;
}

/** One changed record and its version now. */
export interface Changed {
  id: string;
  version: string;
}

/** decision: allow, ask or deny. code: why, in one word. reason: why, for people. */
export interface Checked {
  decision: string;
  code: string;
  reason: string;
  /** What allowed it: `{level, list, pattern, method?, comment?}`; level `built-in` is no file's. */
  rule?: JsonObject;
  /** The entry of `blockedCommandHints` for a command that was not allowed. */
  hint?: JsonObject;
}

/** state: to be given with the next check of this running session. answers: one for each step, null but for a call. */
export interface CheckedPrerequisites {
  state: JsonObject;
  answers: JsonObject[];
}

/** A workspace by registry id or by folder. */
export interface Choice {
  id?: string;
  path?: string;
}

/** What is true after a change: the scope's revision after its commit. */
export interface Committed {
  epoch: string;
  revision: number;
}

/** What a file shall hold: exactly one of these members. */
export interface Content {
  text?: string;
  base64?: string;
  /** Id from `blobs/create`; the first use that succeeds consumes it. */
  blob?: string;
  /** Absolute, on the daemon's machine, inside a workspace that the connection may open. */
  path?: string;
}

/** Answer of `create`. */
export interface Created {
  epoch: string;
  revision: number;
  item: Item;
}

/** chunk_bytes: what one `blobs/write` may carry at most. */
export interface CreatedBlob {
  blob: string;
  chunkBytes: number;
}

/** secret: what clients show; it is not told again. */
export interface CreatedToken {
  secret: string;
  token: ShownToken;
}

/** status: ready, expiring (within five minutes), expired, empty, damaged. expires_at: ms since 1970 UTC. */
export interface CredentialStatus {
  id: string;
  version: string;
  status: string;
  expiresAt?: number;
  refreshable?: boolean;
}

/** items: none where the file cannot be opened. */
export interface CredentialsStatus {
  epoch: string;
  revision: number;
  file: VaultStatus;
  items: CredentialStatus[];
}

/** trash: its id there. children, branches: sessions that stem from it, and stay. */
export interface DeletedSession {
  epoch: string;
  revision: number;
  trash?: string;
  children: string[];
  branches: string[];
}

/** removed: ids in the trash of what is gone for good. */
export interface Emptied {
  epoch: string;
  revision: number;
  removed: string[];
}

/** sessions: ids of those that match, the latest first. */
export interface Evaluated {
  epoch: string;
  revision: number;
  sessions: string[];
  /** Sessions for which the expression fails; they do not match. */
  failed: number;
  /** Why: of the expression as a whole, or the first of a session. */
  error?: ExpressionFault;
}

/** One notification, as it would have been sent. */
export interface Event {
  method: string;
  params: JsonObject;
}

/** Changes after the position asked for. status: stale = it is no longer known, list again. */
export interface Events {
  epoch: string;
  revision: number;
  events: Event[];
  status: "ok" | "stale";
}

/** blob: for `blobs/read`; or the bundle itself. size: bytes. warnings: what is not in the bundle, and why. */
export interface ExportedBundle {
  blob?: string;
  bundle?: JsonObject;
  size: number;
  sha256: string;
  warnings: Issue[];
}

/** blob: for `blobs/read`; or the text itself. size: bytes. redacted: how many secrets were taken out. */
export interface ExportedMarkdown {
  blob?: string;
  text?: string;
  size: number;
  sha256: string;
  redacted: number;
}

/** code: syntax, unknown-function, type, bad-pattern or too-slow. offset: characters before the place to blame. */
export interface ExpressionFault {
  code: string;
  message: string;
  offset: number;
}

/** error: as of an answer, by name. issues: where it is not valid. */
export interface FailedResource {
  id: string;
  error: string;
  message: string;
  issues?: Issue[];
}

/** length: bytes of the file that *data* stands for. eof: it reaches the end. Unchanged: only version. */
export interface FileRange {
  version: string;
  unchanged?: boolean;
  data?: string;
  offset?: number;
  length?: number;
  size?: number;
  eof?: boolean;
}

/** Something wrong with a session's file. remedy: what repairing makes of it; absent: it stays. */
export interface FoundDamage {
  code: string;
  line?: number;
  message: string;
  remedy?: string;
}

/** searched: how many names were looked at. stopped: why not all of them: limit, time, many. */
export interface FoundFiles {
  epoch: string;
  revision: number;
  items: Item[];
  searched: number;
  stopped?: string;
}

/** Answer of `get`. */
export interface Got {
  epoch: string;
  revision: number;
  item: Item;
}

/** messages: the last ones, if they were asked for. */
export interface GotSession {
  epoch: string;
  revision: number;
  item: Item;
  messages?: Item[];
}

/** config_dir: real path of the configuration folder. clients: how many other connections there are. */
export interface Hello {
  pid: number;
  version: string;
  protocol: string;
  configDir: string;
  readOnly: boolean;
  clients: number;
}

export interface ImportedBundle {
  epoch: string;
  revision: number;
  sources: ImportedResources;
  skills: ImportedResources;
  automations: ImportedResources;
  sessions: ImportedResources;
  /** What sessions refer to and is not here; paths are members of the session. */
  warnings: Issue[];
}

/** Ids as in the bundle, in its order. renamed: of those imported, which got another one. */
export interface ImportedResources {
  imported?: string[];
  skipped?: string[];
  failed?: FailedResource[];
  renamed?: RenamedResource[];
}

/** One thing that is wrong with a value or a file; what every validator returns. */
export interface Issue {
  path: string;
  message: string;
  severity?: string;
  code?: string;
  suggestion?: string;
  range?: JsonObject;
  noun?: string;
  id?: string;
}

/** path: relative to the workspace. */
export interface Issues {
  epoch: string;
  revision: number;
  items: Issue[];
}

/** What a client gets of one record: `value` as stored (paths expanded), `info` computed and read-only. */
export interface Item {
  id: string;
  version: string;
  value: JsonObject;
  info?: JsonObject;
  uri?: string;
}

/** kind: skill, source, file, folder. name: slug or path as written. start, end: UTF-16 units of the text. */
export interface Mentioned {
  kind: string;
  name: string;
  start: number;
  end: number;
  /** Whether there is such a skill or source; of files and folders nothing is looked up. */
  known: boolean;
  path?: string;
  title?: string;
}

/** One workspace of the connection and where it stands. */
export interface OpenWorkspace {
  id: string;
  name: string;
  path: string;
  epoch: string;
  revision: number;
  readOnly: boolean;
}

/** What a client asks for. open: existing, register (add a workspace folder to the known ones), never. */
export interface Options {
  workspaces?: Choice[];
  open?: "existing" | "register" | "never";
  token?: string;
}

/** Who caused a change. kind: client, disk, automation, run, daemon. client: connection id; key: its own key. */
export interface Origin {
  kind: string;
  client?: string;
  key?: string;
}

/** Answer of `list`. */
export interface Page {
  epoch: string;
  revision: number;
  items: Item[];
  nextCursor?: string;
  total?: number;
}

/** A moment of a scope: comparable only within the same epoch. */
export interface Position {
  epoch: string;
  revision: number;
}

/** sessions: ids of those that went to the trash, or would. */
export interface Purged {
  epoch: string;
  revision: number;
  sessions: string[];
}

/** sessions: how many were changed with it. */
export interface Removed {
  epoch: string;
  revision: number;
  sessions: number;
}

/** sessions: how many were changed with it. */
export interface Renamed {
  epoch: string;
  revision: number;
  item: Item;
  changed: boolean;
  sessions: number;
}

/** id: in the bundle. new_id: here. */
export interface RenamedResource {
  id: string;
  newId: string;
}

/** changed: the file was written anew. found: what was wrong before. kept: name of the file as it was, in the */
export interface Repaired {
  epoch: string;
  revision: number;
  item: Item;
  changed: boolean;
  found: FoundDamage[];
  kept?: string;
}

/** message: the text as a model gets it. enable: sources that the skills require and the session has not switched */
export interface ResolvedMentions {
  epoch: string;
  revision: number;
  message: string;
  mentions: Mentioned[];
  nearMisses: Unread[];
  enable: string[];
  skipped: Skipped[];
}

/** directory: whose `.agents/skills` was looked into. issues: why some skills were not. */
export interface ResolvedSkills {
  directory: string;
  skills: SessionSkill[];
  issues: Issue[];
}

/** value: as stored, the secret with it. */
export interface Revealed {
  epoch: string;
  revision: number;
  id: string;
  version: string;
  value: unknown;
}

/** A record in which something was found: a session for all that belongs to one. */
export interface SearchItem {
  noun: string;
  id: string;
  title?: string;
  matches: SearchMatch[];
  count: number;
  more?: boolean;
}

/** One place. noun, id: of the record; a message without an id has none. field: the member of its value. */
export interface SearchMatch {
  noun: string;
  id?: string;
  field: string;
  start: number;
  end: number;
  snippet: string;
  at: number;
  type?: string;
  timestamp?: number;
  path?: string;
}

/** searched, of: how many records were looked into, how many there were to look into. */
export interface SearchResult {
  epoch: string;
  revision: number;
  items: SearchItem[];
  nextCursor?: string;
  searched: number;
  of: number;
  stopped?: string;
}

/** level, path, value: of the one that counts, null and empty if none loads; value without `content`. */
export interface SessionSkill {
  id: string;
  level: string;
  path: string;
  value: JsonObject;
  sdkName: string;
  levels: SkillLevel[];
  unusable: Skipped[];
}

/** workspaces: registry ids that it is limited to. created_at: absent for the one in the file `craftd/token`. */
export interface ShownToken {
  id: string;
  name: string;
  rights: string[];
  workspaces?: string[];
  createdAt?: number;
}

export interface ShownTokens {
  tokens: ShownToken[];
}

/** id: of the credential that is stored now. account: whose it is, where the service says so. */
export interface SignedIn {
  epoch: string;
  revision: number;
  id: string;
  account?: string;
}

/** level: project, workspace, global. path: of the SKILL.md. loads: it can be used. */
export interface SkillLevel {
  level: string;
  path: string;
  loads: boolean;
  issues: Issue[];
}

/** reason: missing, disabled, needs-authentication. */
export interface Skipped {
  source: string;
  reason: string;
}

/** auth_url: to open in a browser. state: what comes back with the code. expires_at: ms since 1970 UTC. */
export interface StartedSignIn {
  flow: string;
  authUrl: string;
  state: string;
  redirectUri: string;
  expiresAt: number;
}

/** attachment: what the message gets in its `attachments`, with the name and type that were given. */
export interface StoredAttachment {
  epoch: string;
  revision: number;
  item: Item;
  attachment: JsonObject;
}

/** Where delivery begins. replay: complete = *count* missed changes follow; stale = list again. */
export interface Subscribed {
  epoch: string;
  revision: number;
  replay: "none" | "complete" | "stale";
  count?: number;
}

/** status: as written into the configuration. message: why it is not connected. written: whether it could be stored. */
export interface TestedSource {
  epoch: string;
  revision: number;
  status: "connected" | "needs_auth" | "failed";
  message?: string;
  written: boolean;
  found: JsonObject;
  searchPath?: string;
}

/** Text that looks like a mention and is none. */
export interface Unread {
  start: number;
  end: number;
}

/** Answer of `update`; changed: false when the record was like that already. */
export interface Updated {
  epoch: string;
  revision: number;
  item: Item;
  changed: boolean;
}

/** issues: what `issues/list` would have if the text were the file; ranges are those of the text. */
export interface Validated {
  issues: Issue[];
}

/** issues: what `issues/list` would have if the text were the file; ranges are those of the text. */
export interface ValidatedSkill {
  issues: Issue[];
}

/** state: absent, ready, undecryptable, corrupt, unreadable, unsupported. set_aside: what could not be opened. */
export interface VaultStatus {
  state: string;
  message?: string;
  setAside?: string[];
}

/** What the daemon announces. methods, notifications: complete, to be tested for membership. */
export interface Welcome {
  epoch: string;
  readOnly: boolean;
  workspaces?: OpenWorkspace[];
  features: JsonObject;
  protocol: string;
  clientId: string;
  pid: number;
  rights: string[];
  methods: string[];
  notifications: string[];
  limits: Record<string, number>;
}

/** received: how many bytes of the blob are there now. */
export interface WrittenBlob {
  received: number;
}

/** version: another one after every write. size: bytes. */
export interface WrittenFile {
  epoch: string;
  revision: number;
  version: string;
  size: number;
}

/** Every method: what it takes and what it answers. */
export interface Methods {
  /** Annotate a message, 200 times at most: `value: {target: {selectors}, body?, intent?, ...}`. */
  "annotations/create": {
    params: {
      value: JsonObject;
      session: string;
      /** What `messages/get` takes. */
      message: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      id?: string;
    };
    result: Created;
  };
  /** Take an annotation from its message. */
  "annotations/delete": {
    params: {
      id: string;
      session: string;
      message: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
    };
    result: Committed;
  };
  /** Change members of an annotation; its `updatedAt` follows. */
  "annotations/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      session: string;
      message: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** Store an upload; a name that is taken gets a number. `value: {name}`. */
  "assets/create": {
    params: {
      project: string;
      value: JsonObject;
      content: Content;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
    };
    result: Created;
  };
  /** Remove an upload. */
  "assets/delete": {
    params: {
      project: string;
      /** Its name. */
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
    };
    result: Committed;
  };
  /** One page of the uploads of a project, the newest first. */
  "assets/list": {
    params: {
      project: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** Store a file for a message that is about to be sent. `value: {name, mimeType?}`. */
  "attachments/create": {
    params: {
      session: string;
      value: JsonObject;
      content: Content;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
    };
    result: StoredAttachment;
  };
  /** Remove an attachment with what was made of it. */
  "attachments/delete": {
    params: {
      id: string;
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
    };
    result: Committed;
  };
  /** One attachment: what a message can have in its `attachments`. */
  "attachments/get": {
    params: {
      id: string;
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      fields?: string[];
    };
    result: Got;
  };
  /** One page of a session's attachments, the newest first. */
  "attachments/list": {
    params: {
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** What is wrong with the text of an `automations.json`, beside the labels of the workspace; nothing is stored. */
  "automations/validate": {
    params: {
      text: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: Validated;
  };
  /** Begin to stage bytes; size and sha256, if given, are checked when the blob is used. */
  "blobs/create": {
    params: {
      size?: number;
      /** 64 hexadecimal digits. */
      sha256?: string;
    };
    result: CreatedBlob;
  };
  /** Drop a blob that will not be used. */
  "blobs/delete": {
    params: {
      blob: string;
    };
    result: null;
  };
  /** A range of a blob, 1 MiB at most; it stays until it is deleted or idle for five minutes. */
  "blobs/read": {
    params: {
      blob: string;
      /** Bytes. */
      offset?: number;
      length?: number;
    };
    result: BlobRange;
  };
  /** Stage one piece; writing a range again is allowed. */
  "blobs/write": {
    params: {
      blob: string;
      offset: number;
      /** Base64. */
      data: string;
    };
    result: WrittenBlob;
  };
  /** Put resources into a bundle, without secrets. Sources and skills are named by their folders. */
  "bundles/export": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** This one alone, as the app's session bundle. */
      session?: string;
      /** With everything in them: what was said may hold secrets. */
      sessions?: string[] | "all";
      sources?: string[] | "all";
      skills?: string[] | "all";
      automations?: string[] | "all";
      /** Answer the bundle instead of a blob; up to 8 MiB. */
      inline?: boolean;
      workDoneToken?: number | string;
    };
    result: ExportedBundle;
  };
  /** Bring in what a bundle or a remote transfer holds: each resource whole or not at all, one after the other. */
  "bundles/import": {
    params: {
      content: Content;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** With a resource whose id is taken. What is overwritten goes into the trash, with the source's credentials. */
      onConflict?: "skip" | "overwrite" | "rename";
      workDoneToken?: number | string;
    };
    result: ImportedBundle;
  };
  /** A new connection; the first one is the default. Its secret is stored with `credentials/set`. */
  "connections/create": {
    params: {
      value: JsonObject;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      id?: string;
    };
    result: Created;
  };
  /** Remove a connection, first its credentials and what names it in workspaces. */
  "connections/delete": {
    params: {
      id: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
    };
    result: Committed;
  };
  /** One connection, by its slug. */
  "connections/get": {
    params: {
      id: string;
      fields?: string[];
    };
    result: Got;
  };
  /** One page of connections to providers; none holds a secret. */
  "connections/list": {
    params: {
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** Change members of a connection. */
  "connections/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** Remove a credential from the file; nobody who issued it is told. */
  "credentials/delete": {
    params: {
      id: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
    };
    result: Committed;
  };
  /** Identities and status of all credentials, never a secret. */
  "credentials/list": {
    params: {
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** The secret itself, for whoever calls the service it opens. */
  "credentials/reveal": {
    params: {
      id: string;
    };
    result: Revealed;
  };
  /** Store a credential, in the place of the one that is there. */
  "credentials/set": {
    params: {
      id: string;
      /** As the app stores it: `value`, and `refreshToken`, `expiresAt`, `clientId` and so on where they are known. */
      value: JsonObject;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** "" = there must be none. */
      expectedVersion?: string;
      /** Its token was refreshed: what *value* does not say stays as it is, but for `expiresAt`. */
      refreshed?: boolean;
    };
    result: Updated;
  };
  /** How it is with the file, and with one credential or all of them. */
  "credentials/status": {
    params: {
      id?: string;
    };
    result: CredentialsStatus;
  };
  /**
   * Learn who answers, before `initialize`. All members are optional, but a connection of the network needs `token`
   * here or there.
   */
  "daemon/hello": {
    params: {
      client?: string;
      version?: string;
      protocol?: string;
      configDir?: string;
      pid?: number;
      token?: string;
    };
    result: Hello;
  };
  /** Give back the Craft Agents app's lock at once, everything folded and flushed. */
  "daemon/release": {
    params: {};
    result: JsonObject;
  };
  /** How the daemon is: connections, open workspaces, locks, watches, environment. */
  "daemon/status": {
    params: {};
    result: JsonObject;
  };
  /** End the daemon after what runs has finished. reason: stop, upgrade. */
  "daemon/stop": {
    params: {
      reason?: string;
    };
    result: null;
  };
  /** Barrier: answers when every earlier file event and commit of the scope was processed and announced. */
  "daemon/sync": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: Position;
  };
  /** Forget the draft of a session. */
  "drafts/delete": {
    params: {
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
    };
    result: Committed;
  };
  /** The draft of a session: `value.text`, "" where there is none. */
  "drafts/get": {
    params: {
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: Got;
  };
  /** One page of the drafts of a workspace's sessions, without attachments unless they are asked for. */
  "drafts/list": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** Change the draft of a session; one that has neither text nor attachments any more is gone. */
  "drafts/update": {
    params: {
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      text?: string;
      /** All of them: `{path, name, content?}`. */
      attachments?: JsonObject[];
      /** "": there must be none. */
      expectedVersion?: string;
    };
    result: Updated;
  };
  /** The same changes by (long) polling. */
  "events/read": {
    params: {
      since: Position;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      topics?: string[] | "*";
      limit?: number;
      /** How long to wait for a first change. */
      waitMs?: number;
    };
    result: Events;
  };
  /** Be told every change of one scope. Subscribing again replaces the connection's subscription to it. */
  "events/subscribe": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Nouns; absent: all but `files`. */
      topics?: string[] | "*";
      /** Narrows the topics that belong to a session to these. */
      sessions?: string[];
      /** Also what executors publish and nobody stores (`sessions/didPublish`). */
      ephemeral?: boolean;
      /** What the client has seen: later changes that are still known are sent again. */
      since?: Position;
    };
    result: Subscribed;
  };
  /** Be told no more about one scope. */
  "events/unsubscribe": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: null;
  };
  /** Remove a file, or a link as a link. */
  "files/delete": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      path?: string;
      session?: string;
      uri?: string;
      expectedVersion?: string;
      missingOk?: boolean;
    };
    result: Committed;
  };
  /** What one folder holds, without hidden files. Sort by name, kind, size or modifiedAt. */
  "files/list": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
      /** From the workspace's folder, or from the session's; absent: that folder itself. */
      path?: string;
      session?: string;
      /** `file:` URI, instead of path and session. */
      uri?: string;
    };
    result: Page;
  };
  /** A range of a file, 1 MiB at most. As text it is whole characters, at least one. */
  "files/read": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      path?: string;
      session?: string;
      uri?: string;
      /** Bytes. */
      offset?: number;
      length?: number;
      encoding?: "utf-8" | "base64";
      /** Answer `unchanged: true` if the file still has it. */
      ifVersion?: string;
    };
    result: FileRange;
  };
  /** Files and folders below a folder by name, whatever its case; the nearest first, then by path. */
  "files/search": {
    params: {
      /** In the name; with a slash: in the path below the folder. */
      query: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      path?: string;
      session?: string;
      uri?: string;
      /** 50 default, 500 max. */
      limit?: number;
      partialResultToken?: number | string;
    };
    result: FoundFiles;
  };
  /** Give a file new content, or make it: the old content or the new is there, never a mix. */
  "files/write": {
    params: {
      content: Content;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      path?: string;
      session?: string;
      uri?: string;
      /** "": it must not be there; absent: whatever is there. */
      expectedVersion?: string;
    };
    result: WrittenFile;
  };
  /** What is wrong with the files of a workspace, or with one of them. */
  "issues/list": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      path?: string;
      partialResultToken?: number | string;
    };
    result: Issues;
  };
  /** A new record of labels. */
  "labels/create": {
    params: {
      value: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      id?: string;
    };
    result: Created;
  };
  /** Remove a label and those in it, from sessions first. */
  "labels/delete": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
      workDoneToken?: number | string;
    };
    result: Removed;
  };
  /** One record of labels. */
  "labels/get": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      fields?: string[];
    };
    result: Got;
  };
  /** One page of labels. */
  "labels/list": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** Give a label another id, also in sessions. */
  "labels/rename": {
    params: {
      id: string;
      newId: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      workDoneToken?: number | string;
    };
    result: Renamed;
  };
  /** Put the labels of one level in order. */
  "labels/reorder": {
    params: {
      /** All of the level, in order. */
      ids: string[];
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** The label they are in; absent: the topmost ones. */
      parent?: string;
    };
    result: Committed;
  };
  /** Change members of a record of labels. */
  "labels/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** What the MEMORY.md of a project says: `value.text`, "" where there is none. */
  "memory/get": {
    params: {
      project: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: Got;
  };
  /** Write the MEMORY.md of a project: the whole text, or something new on top of it. */
  "memory/update": {
    params: {
      project: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      text?: string;
      prepend?: string;
      /** "": there must be none. */
      expectedVersion?: string;
    };
    result: Updated;
  };
  /** What a text mentions. */
  "mentions/resolve": {
    params: {
      text: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Whose working directory and sources count. */
      session?: string;
      /** What paths are relative to, instead of the session's or workspace's. */
      directory?: string;
      /** Slugs of skills chosen beside the text: what they require counts too. */
      skills?: string[];
    };
    result: ResolvedMentions;
  };
  /** Append messages in one commit; one already stored with the same id and content is skipped. */
  "messages/append": {
    params: {
      session: string;
      messages: JsonObject[];
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Id of the message believed to be last; "" for an empty transcript. */
      expectedTail?: string;
      /** Header fields to set in the same commit. */
      set?: JsonObject;
    };
    result: Appended;
  };
  /** Take a message, or a damaged line, out of a transcript. */
  "messages/delete": {
    params: {
      id: string;
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
    };
    result: Committed;
  };
  /** One message: by its id, as `#<index>`, or a damaged line as `~<byte offset>`. */
  "messages/get": {
    params: {
      id: string;
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      fields?: string[];
    };
    result: Got;
  };
  /** One page of a transcript, by position. */
  "messages/list": {
    params: {
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
      /** backward: pages start at the end; the items of a page are in the order of the transcript all the same. */
      direction?: "forward" | "backward";
    };
    result: Page;
  };
  /** Leave the first *keep* messages, or those up to *afterMessage*; `keep: 0` clears the session and its usage. */
  "messages/truncate": {
    params: {
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      keep?: number;
      /** Id of the last message to stay. */
      afterMessage?: string;
    };
    result: Committed;
  };
  /** Change members of a message, in place; by its id or as `#<index>`. */
  "messages/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** The notes of a session: `value.text`, "" where there are none. */
  "notes/get": {
    params: {
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: Got;
  };
  /** Write the notes of a session. */
  "notes/update": {
    params: {
      session: string;
      text: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** "": there must be none. */
      expectedVersion?: string;
    };
    result: Updated;
  };
  /** Forget a flow. */
  "oauth/cancel": {
    params: {
      flow: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: null;
  };
  /** Have the code exchanged, store what it is worth, and mark the source. The flow ends with it, whatever comes. */
  "oauth/complete": {
    params: {
      flow: string;
      code: string;
      state: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: SignedIn;
  };
  /** Sign out here: the source's credentials go and it is marked. The service is not told. */
  "oauth/revoke": {
    params: {
      source: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: Committed;
  };
  /** Find out where to sign in for a source, and as what; the client opens the address and waits for the code. */
  "oauth/start": {
    params: {
      source: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Port of this machine on which the client listens: the browser comes back to `http://localhost:<port>/...`. */
      callbackPort?: number;
      /** HTTPS address to which the app's relay sends the browser on. */
      callbackUrl?: string;
    };
    result: StartedSignIn;
  };
  /** Whether a tool may be called, by the rules of all levels; nothing is run, asked or remembered. */
  "permissions/check": {
    params: {
      /** safe, ask, allow-all, or another spelling of them that the app knows. */
      mode: string;
      tool: string;
      input: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Its sources' rules count, it may write to its `plans/` and `data/`, and relative paths begin where it works. */
      session?: string;
    };
    result: Checked;
  };
  /** The rules of one level. */
  "permissions/get": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      fields?: string[];
    };
    result: Got;
  };
  /** The rules files of a workspace and its sources, or of the shared configuration. */
  "permissions/list": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** Change the rules of one level. */
  "permissions/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** Write a plan down: `value: {title?, text?}`. Without an id the day and the title make its file name. */
  "plans/create": {
    params: {
      value: JsonObject;
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      id?: string;
    };
    result: Created;
  };
  /** Remove a plan; if the session waits to carry it out, it waits no more. */
  "plans/delete": {
    params: {
      id: string;
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
    };
    result: Committed;
  };
  /** One plan with its text. */
  "plans/get": {
    params: {
      id: string;
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      fields?: string[];
    };
    result: Got;
  };
  /** One page of a session's plans without their texts, the newest first. */
  "plans/list": {
    params: {
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** Change the title or the text of a plan. */
  "plans/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** What the user said of themself: name, place, language, notes. */
  "preferences/get": {
    params: {
      fields?: string[];
    };
    result: Got;
  };
  /** Change preferences; the first change makes the file. */
  "preferences/update": {
    params: {
      patch: JsonObject;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** Whether tools may be called, by what was read before. Nothing is kept here: the state goes with the client. */
  "prerequisites/check": {
    params: {
      /**
       * In their order, each with one member: `{mention: [path of a SKILL.md]}`, `{read: path}` (a whole file, and it
       * worked), `{bash: command}` (it ran), `{call: tool}` (may it be made?), `{reset: true}` (compacted or cleared).
       */
      steps: JsonObject[];
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Of the answer before; absent: the session has just begun. */
      state?: JsonObject;
      /** The browser is on. */
      browser?: boolean;
    };
    result: CheckedPrerequisites;
  };
  /** A new record of projects. */
  "projects/create": {
    params: {
      value: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      id?: string;
    };
    result: Created;
  };
  /** Move a project to the trash; the sessions that belong to it are unbound first and stay. */
  "projects/delete": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
      workDoneToken?: number | string;
    };
    result: Removed;
  };
  /** One project. */
  "projects/get": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      fields?: string[];
      /** Answer `info.context` too: what its sessions are told of it. It is read from the disk. */
      context?: boolean;
    };
    result: Got;
  };
  /** One page of projects. */
  "projects/list": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** Change members of a record of projects. */
  "projects/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** Where a text is, the newest sessions first. Of blanks alone nothing is found. */
  "search/query": {
    params: {
      query: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      regex?: boolean;
      /** Absent: sessions (their names), messages, plans, notes. */
      in?: ("sessions" | "messages" | "plans" | "notes" | "projects" | "memory" | "sources" | "skills")[];
      /** Of sessions, as in `sessions/list`. */
      filter?: JsonObject;
      /** Items, 100 default, 500 max. */
      limit?: number;
      /** Places shown per item, 3 default, 20 max. */
      matches?: number;
      /** Time, 5 s default, 60 s max. */
      budgetMs?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: SearchResult;
  };
  /** A new session, empty or a branch of another one. */
  "sessions/create": {
    params: {
      value: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      id?: string;
      /** The branch begins with all messages up to this one, and the files that they name. */
      from?: BranchPoint;
    };
    result: Created;
  };
  /** Move a session to the trash. */
  "sessions/delete": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
      /** Remove it instead. */
      permanent?: boolean;
    };
    result: DeletedSession;
  };
  /** A copy of a session with its messages and files. */
  "sessions/duplicate": {
    params: {
      session: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** What it has that the other one has not. */
      value?: JsonObject;
      id?: string;
    };
    result: Created;
  };
  /** Remove deleted sessions for good: all, or some. */
  "sessions/emptyTrash": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** From the list of the trash. */
      ids?: string[];
      /** Only what was deleted before that. */
      olderThanDays?: number;
    };
    result: Emptied;
  };
  /** A session as Markdown for people, as it is stored at this moment. */
  "sessions/exportMarkdown": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Take out what looks like a secret, and the name of the home folder. */
      redact?: boolean;
      /** Also what tools were given and what they gave. */
      tools?: boolean;
      /** Answer the text instead of a blob; up to 8 MiB. */
      inline?: boolean;
      workDoneToken?: number | string;
    };
    result: ExportedMarkdown;
  };
  /** One session. */
  "sessions/get": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      fields?: string[];
      /** Also give the last n messages. */
      messages?: number;
      /** What is wanted for once: the members of `info.effective`; it goes before what the session says. */
      explicit?: JsonObject;
    };
    result: GotSession;
  };
  /** One page of sessions. */
  "sessions/list": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** Deleted sessions, the latest first. */
  "sessions/listTrash": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      limit?: number;
      cursor?: string;
    };
    result: Page;
  };
  /** Everything in these sessions was read: `hasUnread` false, `lastReadMessageId` the last final message. */
  "sessions/markRead": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      sessions?: string[];
      /** All unread ones that are neither hidden nor archived. */
      all?: boolean;
      workDoneToken?: number | string;
    };
    result: Committed;
  };
  /** Tell who listens what is not worth storing; for executors. */
  "sessions/publish": {
    params: {
      session: string;
      /** `{type, ...}`; `{type: "state", state}` is remembered while the connection lives. */
      event: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: null;
  };
  /** Move sessions to the trash that were archived long ago. */
  "sessions/purge": {
    params: {
      /** More than 0. A session without a certain time of archiving stays. */
      olderThanDays: number;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Only say which. */
      dryRun?: boolean;
      workDoneToken?: number | string;
    };
    result: Purged;
  };
  /** Mend the file of a session; what it was stays beside. */
  "sessions/repair": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Only say what is wrong and what would become of it. */
      dryRun?: boolean;
    };
    result: Repaired;
  };
  /** Give a deleted session back, with everything in its folder, under its old id. */
  "sessions/restore": {
    params: {
      /** From the list of the trash; or the session's, for its last deletion. */
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
    };
    result: Created;
  };
  /** Which sessions have unread messages, hidden and archived ones left out; of one or all open workspaces. */
  "sessions/unread": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: Unread;
  };
  /** Change members of a record of sessions. */
  "sessions/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** These sessions, and no others, are on the screen now; they do not become unread. May come as a notification. */
  "sessions/view": {
    params: {
      sessions: string[];
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: null;
  };
  /** The settings of a workspace, or of the whole configuration. */
  "settings/get": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      fields?: string[];
    };
    result: Got;
  };
  /** Change the settings of a workspace, or of the whole configuration. */
  "settings/update": {
    params: {
      patch: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** A new skill of the workspace. */
  "skills/create": {
    params: {
      value: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      id?: string;
      /** The others are read, never written: Forbidden. */
      level?: "project" | "workspace" | "global";
    };
    result: Created;
  };
  /** Remove a skill of the workspace. */
  "skills/delete": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
      /** The others are read, never written: Forbidden. */
      level?: "project" | "workspace" | "global";
    };
    result: Committed;
  };
  /** One skill: the workspace's, that of another level, or the one that a session has. */
  "skills/get": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      fields?: string[];
      /** Absent: with `session` the one that counts there, otherwise the workspace's. */
      level?: "project" | "workspace" | "global";
      /** Whose working directory has the level `project`; absent: that of one that has yet to begin. */
      session?: string;
    };
    result: Got;
  };
  /** One page of skills. */
  "skills/list": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** The skills of a session: of its directory, of the workspace, of the home folder, and which of them count. */
  "skills/resolve": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Absent: one that has yet to begin. */
      session?: string;
    };
    result: ResolvedSkills;
  };
  /** Change members of a skill of the workspace. */
  "skills/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
      /** The others are read, never written: Forbidden. */
      level?: "project" | "workspace" | "global";
    };
    result: Updated;
  };
  /** What is wrong with the text of a SKILL.md; nothing is read or stored. */
  "skills/validate": {
    params: {
      text: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Name of the one it is for, its id; absent: nothing is said about that. */
      folder?: string;
    };
    result: ValidatedSkill;
  };
  /** A new record of sources. */
  "sources/create": {
    params: {
      value: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      id?: string;
    };
    result: Created;
  };
  /** Remove a record of sources. */
  "sources/delete": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
    };
    result: Committed;
  };
  /** One record of sources. */
  "sources/get": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      fields?: string[];
    };
    result: Got;
  };
  /** One page of sources. */
  "sources/list": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** Really connect to a source, with the credential that is stored for it, and write down how it went. */
  "sources/test": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Switch it on if it was off and could be connected to. */
      autoEnable?: boolean;
      /** 1 to 300000; absent: 30 s, for an api 10 s. */
      timeoutMs?: number;
      workDoneToken?: number | string;
    };
    result: TestedSource;
  };
  /** Change members of a record of sources. */
  "sources/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** A new record of statuses. */
  "statuses/create": {
    params: {
      value: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      id?: string;
    };
    result: Created;
  };
  /** Remove a status; sessions that have it keep its id, or get another status first. */
  "statuses/delete": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
      /** Id of the status that sessions get. */
      moveTo?: string;
      workDoneToken?: number | string;
    };
    result: Removed;
  };
  /** One record of statuses. */
  "statuses/get": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      fields?: string[];
    };
    result: Got;
  };
  /** One page of statuses. */
  "statuses/list": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** Give a status another id, also in sessions. */
  "statuses/rename": {
    params: {
      id: string;
      newId: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      workDoneToken?: number | string;
    };
    result: Renamed;
  };
  /** Number the statuses anew. */
  "statuses/reorder": {
    params: {
      /** All of them, in order. */
      ids: string[];
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
    };
    result: Committed;
  };
  /** Change members of a record of statuses. */
  "statuses/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** What is wrong with the text of a `task.yaml`; nothing is stored. */
  "tasks/validate": {
    params: {
      text: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Name of the one it is for; absent: paths are `task.yaml`. */
      folder?: string;
    };
    result: Validated;
  };
  /** Make a token: for all workspaces, or for some, and then without the right `admin`. */
  "tokens/create": {
    params: {
      rights: ("read" | "write" | "execute" | "secrets" | "admin")[];
      /** For people. */
      name?: string;
      /** Registry ids, `ws_` ids, slugs or paths. */
      workspaces?: string[];
    };
    result: CreatedToken;
  };
  /** All tokens, without their secrets. */
  "tokens/list": {
    params: {};
    result: ShownTokens;
  };
  /** Make a token worthless and close its connections; `local`, the one in the file `craftd/token`, is replaced. */
  "tokens/revoke": {
    params: {
      id: string;
    };
    result: null;
  };
  /** A new record of views. */
  "views/create": {
    params: {
      value: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      id?: string;
    };
    result: Created;
  };
  /** Remove a record of views. */
  "views/delete": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
    };
    result: Committed;
  };
  /** Which sessions an expression matches, saved or not. */
  "views/evaluate": {
    params: {
      expression: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
    };
    result: Evaluated;
  };
  /** One record of views. */
  "views/get": {
    params: {
      id: string;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      fields?: string[];
    };
    result: Got;
  };
  /** One page of views. */
  "views/list": {
    params: {
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** Change members of a record of views. */
  "views/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
      workspace?: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
  /** Make a workspace folder, or register an existing one: `value: {name, path?}`. */
  "workspaces/create": {
    params: {
      value: JsonObject;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      id?: string;
      /** Take a folder that is neither empty nor a workspace. */
      adopt?: boolean;
      /** Answer what would be there, and do nothing. */
      dryRun?: boolean;
      workDoneToken?: number | string;
    };
    result: Created;
  };
  /** Take a workspace out of the registry; its files stay. */
  "workspaces/delete": {
    params: {
      id: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
      missingOk?: boolean;
    };
    result: Committed;
  };
  /** One workspace: its settings and `path`. */
  "workspaces/get": {
    params: {
      id: string;
      fields?: string[];
    };
    result: Got;
  };
  /** All registered workspaces. */
  "workspaces/list": {
    params: {
      filter?: JsonObject;
      /** Member of value, `-` in front for descending; ties by id. */
      sort?: string;
      /** Members of value to return; `["*"]` for all. */
      fields?: string[];
      limit?: number;
      cursor?: string;
      workDoneToken?: number | string;
      partialResultToken?: number | string;
    };
    result: Page;
  };
  /** Say where the folder of a workspace is, after somebody moved it; nothing is moved, and its id stays. */
  "workspaces/move": {
    params: {
      id: string;
      /** Absolute, or beginning with `~`. */
      path: string;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      expectedVersion?: string;
    };
    result: Updated;
  };
  /** Change the settings of a workspace. */
  "workspaces/update": {
    params: {
      id: string;
      /** `{unset?, set?, remove?, add?}`, applied in this order. */
      patch: JsonObject;
      /** Idempotency key, 16 to 128 characters, one per intended change. */
      key?: string;
      /** Absent: the patch applies to whatever is there now. */
      expectedVersion?: string;
      fields?: string[];
    };
    result: Updated;
  };
}

/** Every notification that the daemon sends, with its params. */
export interface Notifications {
  /** Records of connections changed: `patch` is what an `update` would need. */
  "connections/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** A record of connections is there. */
  "connections/didCreate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    item: Item;
  };
  /** A record of connections is gone. */
  "connections/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
  };
  /** A credential changed; where only its secret did, `patch` is empty and the version is another one. */
  "credentials/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** A credential is there: whose it is. */
  "credentials/didCreate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    item: Item;
  };
  /** A record of credentials is gone. */
  "credentials/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
  };
  /** Whether craftd may write, or the known workspaces, changed. */
  "daemon/didChange": {
    readOnly?: boolean;
    holder?: unknown;
    workspaces?: JsonObject[];
  };
  /** The daemon ends in *grace_ms*; reconnecting later is fine. reason: stop, upgrade, idle. */
  "daemon/willStop": {
    reason: string;
    graceMs: number;
  };
  /** Records of drafts changed: `patch` is what an `update` would need. */
  "drafts/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** A draft is there. */
  "drafts/didCreate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    item: Item;
  };
  /** A record of drafts is gone. */
  "drafts/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
  };
  /** The scope moved on without anything for this subscription. */
  "events/checkpoint": {
    epoch: string;
    revision: number;
    workspace?: string;
  };
  /** Changes were not delivered; from *revision* on delivery is live again: list now and nothing is missing. */
  "events/didLapse": {
    epoch: string;
    revision: number;
    workspace?: string;
    reason: "overflow" | "journal" | "epoch" | "reload";
  };
  /** A file that is no record is there, is another one, or is gone; told to who asked for the topic `files`. */
  "files/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    path: string;
    kind: "created" | "changed" | "deleted";
    version?: string;
  };
  /** The complete list of one file. */
  "issues/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    path: string;
    issues: Issue[];
  };
  /** Records of labels changed: `patch` is what an `update` would need. */
  "labels/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** A record of labels is there. */
  "labels/didCreate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    item: Item;
  };
  /** A record of labels is gone. */
  "labels/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
  };
  /** The labels in *parent* (absent: the topmost ones) stand in this order now. */
  "labels/didReorder": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    ids: string[];
    parent?: string;
  };
  /** Messages came to the end of a transcript. index: position of the first; count: how many there are now. */
  "messages/didAppend": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    session: string;
    index: number;
    messages: JsonObject[];
    count: number;
  };
  /** Records of messages changed: `patch` is what an `update` would need. */
  "messages/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
    session: string;
  };
  /** A record of messages is gone. */
  "messages/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
    session: string;
  };
  /** Only the first *keep* messages are left. */
  "messages/didTruncate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    session: string;
    keep: number;
  };
  /** Records of permissions changed: `patch` is what an `update` would need. */
  "permissions/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** A level is there: a source came. */
  "permissions/didCreate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    item: Item;
  };
  /** A level is gone with its source. */
  "permissions/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
  };
  /** Records of preferences changed: `patch` is what an `update` would need. */
  "preferences/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** Records of projects changed: `patch` is what an `update` would need. */
  "projects/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** A record of projects is there. */
  "projects/didCreate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    item: Item;
  };
  /** A record of projects is gone. */
  "projects/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
  };
  /** Records of sessions changed: `patch` is what an `update` would need. */
  "sessions/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** A record of sessions is there. */
  "sessions/didCreate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    item: Item;
  };
  /** A record of sessions is gone. */
  "sessions/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
  };
  /** An executor said something that is not stored; no revision. client: its connection. */
  "sessions/didPublish": {
    /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */
    workspace?: string;
    session: string;
    event: JsonObject;
    client: string;
  };
  /** Records of settings changed: `patch` is what an `update` would need. */
  "settings/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** Records of skills changed: `patch` is what an `update` would need. */
  "skills/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** A record of skills is there. */
  "skills/didCreate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    item: Item;
  };
  /** A record of skills is gone. */
  "skills/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
  };
  /** Records of sources changed: `patch` is what an `update` would need. */
  "sources/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** A record of sources is there. */
  "sources/didCreate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    item: Item;
  };
  /** A record of sources is gone. */
  "sources/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
  };
  /** Records of statuses changed: `patch` is what an `update` would need. */
  "statuses/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** A record of statuses is there. */
  "statuses/didCreate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    item: Item;
  };
  /** A record of statuses is gone. */
  "statuses/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
  };
  /** Records of views changed: `patch` is what an `update` would need. */
  "views/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** A record of views is there. */
  "views/didCreate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    item: Item;
  };
  /** A record of views is gone. */
  "views/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
  };
  /** The views stand in this order now. */
  "views/didReorder": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    ids: string[];
  };
  /** Records of workspaces changed: `patch` is what an `update` would need. */
  "workspaces/didChange": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    changes: Changed[];
    patch: JsonObject;
  };
  /** A record of workspaces is there. */
  "workspaces/didCreate": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    item: Item;
  };
  /** A record of workspaces is gone. */
  "workspaces/didDelete": {
    epoch: string;
    revision: number;
    workspace?: string;
    at: number;
    origin: Origin;
    batch?: Batch;
    id: string;
  };
}

/** Every error by its name, `data.code`. */
export const ERROR_CODES = {
  ParseError: -32700,
  InvalidRequest: -32600,
  MethodNotFound: -32601,
  InvalidParams: -32602,
  InternalError: -32603,
  NotInitialized: -32002,
  Cancelled: -32800,
  ServerCancelled: -32802,
  NotFound: 1001,
  AlreadyExists: 1002,
  VersionConflict: 1003,
  InvalidState: 1004,
  ValidationFailed: 1005,
  ReadOnly: 1006,
  Forbidden: 1007,
  Unauthenticated: 1008,
  TooLarge: 1009,
  Busy: 1010,
  Unsupported: 1011,
  StaleCursor: 1012,
  Corrupt: 1013,
  Unavailable: 1014,
  Timeout: 1015,
  IoError: 1016,
  Undecryptable: 1017,
} as const;

/** Methods that take a `key`: the same change sent again with the same key is made once. */
export const KEYED: ReadonlySet<string> = new Set([
  "annotations/create",
  "annotations/delete",
  "annotations/update",
  "assets/create",
  "assets/delete",
  "attachments/create",
  "attachments/delete",
  "bundles/import",
  "connections/create",
  "connections/delete",
  "connections/update",
  "credentials/delete",
  "credentials/set",
  "drafts/delete",
  "drafts/update",
  "files/delete",
  "files/write",
  "labels/create",
  "labels/delete",
  "labels/rename",
  "labels/reorder",
  "labels/update",
  "memory/update",
  "messages/append",
  "messages/delete",
  "messages/truncate",
  "messages/update",
  "notes/update",
  "permissions/update",
  "plans/create",
  "plans/delete",
  "plans/update",
  "preferences/update",
  "projects/create",
  "projects/delete",
  "projects/update",
  "sessions/create",
  "sessions/delete",
  "sessions/duplicate",
  "sessions/emptyTrash",
  "sessions/markRead",
  "sessions/purge",
  "sessions/repair",
  "sessions/restore",
  "sessions/update",
  "settings/update",
  "skills/create",
  "skills/delete",
  "skills/update",
  "sources/create",
  "sources/delete",
  "sources/update",
  "statuses/create",
  "statuses/delete",
  "statuses/rename",
  "statuses/reorder",
  "statuses/update",
  "views/create",
  "views/delete",
  "views/update",
  "workspaces/create",
  "workspaces/delete",
  "workspaces/move",
  "workspaces/update",
]);

/** Methods that change nothing: asking again is harmless. */
export const READS: ReadonlySet<string> = new Set([
  "assets/list",
  "attachments/get",
  "attachments/list",
  "automations/validate",
  "blobs/read",
  "bundles/export",
  "connections/get",
  "connections/list",
  "credentials/list",
  "credentials/status",
  "daemon/hello",
  "daemon/status",
  "daemon/sync",
  "drafts/get",
  "drafts/list",
  "events/read",
  "events/subscribe",
  "events/unsubscribe",
  "files/list",
  "files/read",
  "files/search",
  "issues/list",
  "labels/get",
  "labels/list",
  "memory/get",
  "mentions/resolve",
  "messages/get",
  "messages/list",
  "notes/get",
  "permissions/check",
  "permissions/get",
  "permissions/list",
  "plans/get",
  "plans/list",
  "preferences/get",
  "prerequisites/check",
  "projects/get",
  "projects/list",
  "search/query",
  "sessions/exportMarkdown",
  "sessions/get",
  "sessions/list",
  "sessions/listTrash",
  "sessions/unread",
  "sessions/view",
  "settings/get",
  "skills/get",
  "skills/list",
  "skills/resolve",
  "skills/validate",
  "sources/get",
  "sources/list",
  "statuses/get",
  "statuses/list",
  "tasks/validate",
  "views/evaluate",
  "views/get",
  "views/list",
  "workspaces/get",
  "workspaces/list",
]);
