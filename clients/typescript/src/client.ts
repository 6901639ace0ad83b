import {
  isKnownAgain,
  newKey,
  nouns,
  type Api,
  type Arguments,
  type CallOptions,
  type Method,
  type Params,
  type Result,
} from "./calls.js";
import { Connection } from "./connection.js";
import { ConnectionLost, CraftdError } from "./errors.js";
import {
  KEYED,
  READS,
  type Choice,
  type Item,
  type JsonObject,
  type Options,
  type Position,
  type Subscribed,
  type Welcome,
} from "./protocol.js";
import { connectionClosed, lapse, Subscription, tell, union, type ScopeEvent, type Wanted } from "./subscription.js";
import type { Dial } from "./transport.js";

export const PROTOCOL = "1.0";

export interface ClientOptions {
  /** Name of the program; a change sent again after a lapse is known by it and by its key. */
  name: string;
  version?: string;
  /** Workspaces to work with. If it is one, `workspace` may be left out of params. */
  workspaces?: Choice[];
  open?: Options["open"];
  /** `["executor"]`: may publish what sessions are doing. */
  roles?: string[];
  token?: string | undefined;
  /**
   * false: the client ends with its connection. Default: it connects again, as long as it takes; at once if there are
   * subscriptions, else with the next call.
   */
  reconnect?: boolean;
  /** How long a call waits for a connection. Default: 30 seconds. */
  patienceMs?: number;
}

export interface ClientEvents {
  /** Whether there is a connection now. error: why there is none; closed: and there will be none. */
  state(state: "open" | "lost" | "closed", error?: Error): void;
  /** Every notification of the daemon, whatever it is about. */
  notification(method: string, params: JsonObject): void;
}

/** Milliseconds until the connection is made anew, at most: doubled with every failure, and cut at random. */
const FIRST_PAUSE = 200;
const LONGEST_PAUSE = 5_000;
const DIAL_PATIENCE = 15_000;
const PATIENCE = 30_000;
const STOP_PATIENCE = 10_000;

interface Link {
  connection: Connection;
  welcome: Welcome;
}

interface Scope {
  workspace: string | undefined;
  members: Set<Subscription>;
  /** What the daemon was asked for last, as text. */
  asked: string;
  /** Up to where events have come. */
  at: Position | undefined;
}

/**
 * The other end of a daemon, through any number of connections one after the other.
 *
 * A call made while there is no connection waits for the next one. One that was under way when a connection was lost is
 * made again where that is the same as making it once: reads; changes, by their key, as long as the daemon is the same
 * one; messages that have ids, because every daemon knows them by these. Every other one rejects with ConnectionLost,
 * and `maybeDone` says that it may have been carried out.
 */
export class Client {
  readonly api: Api = nouns((method, params, options) => this.request(method, params, options));
  #dial: Dial;
  #options: ClientOptions;
  #link: Link | undefined;
  #welcome!: Welcome;
  #isReconnecting = false;
  #mayStart = true;
  #waiting: { resolve(link: Link): void; reject(error: Error): void }[] = [];
  #end = new AbortController();
  #scopes = new Map<string | undefined, Scope>();
  #parts = new Map<string, (value: JsonObject) => void>();
  #tokens = 0;
  #listeners = { state: new Set<ClientEvents["state"]>(), notification: new Set<ClientEvents["notification"]>() };

  private constructor(dial: Dial, options: ClientOptions) {
    this.#dial = dial;
    this.#options = options;
  }

  /** A client whose first connection stands. Rejects if that one cannot be made. */
  static async connect(dial: Dial, options: ClientOptions): Promise<Client> {
    const client = new Client(dial, options);
    client.#open(await client.#establish());
    return client;
  }

  /** What the daemon said about itself at the last connection: methods, rights, limits, workspaces. */
  get welcome(): Welcome {
    return this.#welcome;
  }

  get connected(): boolean {
    return this.#link !== undefined;
  }

  /** Calls a method. Rejects with CraftdError when the daemon refuses. */
  call<M extends Method>(method: M, ...[params, options]: Arguments<M>): Promise<Result<M>> {
    return this.request(method, params, options) as Promise<Result<M>>;
  }

  /** The same for any name, for what this version of the client does not know. */
  async request(method: string, params: object = {}, options: CallOptions = {}): Promise<unknown> {
    const { onPart, onProgress, timeoutMs } = options;
    const signals = [options.signal, timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)].filter(
      (s) => s !== undefined,
    );
    const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
    const sent: Record<string, unknown> = { ...params };
    if (KEYED.has(method)) sent["key"] ??= newKey();
    let heard = false;
    const tokens = [
      onPart && this.#token(sent, "partialResultToken", (value) => ((heard = true), onPart(value))),
      onProgress && this.#token(sent, "workDoneToken", onProgress),
    ];
    try {
      for (;;) {
        const link = this.#link ?? (await this.#linked(signal));
        try {
          return await link.connection.request(method, sent, signal);
        } catch (error) {
          if (this.#options.reconnect === false) throw error;
          // A daemon that stops does nothing more: the next one will.
          if (
            error instanceof CraftdError &&
            error.name === "ServerCancelled" &&
            (await link.connection.endsWithin(STOP_PATIENCE))
          )
            continue;
          if (!(error instanceof ConnectionLost)) throw error;
          if (!error.maybeDone || (READS.has(method) && !heard) || isKnownAgain(method, sent)) continue;
          if (!KEYED.has(method) || !isSame(await this.#linked(signal), link)) throw error;
        }
      }
    } finally {
      for (const token of tokens) if (token) this.#parts.delete(token);
    }
  }

  /** Tells the daemon something that has no answer. */
  notify<M extends Method>(method: M, params: Params<M>): void {
    this.#link?.connection.notify(method, params);
  }

  /** All items of a `list`, page by page. */
  async *pages(
    method: Extract<Method, `${string}/list`>,
    params: object = {},
    options?: CallOptions,
  ): AsyncGenerator<Item, void, undefined> {
    for (let cursor: string | undefined; ;) {
      const page = (await this.request(
        method,
        cursor === undefined ? params : { ...params, cursor },
        options,
      )) as Result<"sessions/list">;
      yield* page.items;
      if (page.nextCursor === undefined) return;
      cursor = page.nextCursor;
    }
  }

  /** Be told what happens in one scope. Without *listener* the events wait in the subscription to be iterated. */
  async subscribe(wanted: Wanted, listener?: (event: ScopeEvent) => void): Promise<Subscription> {
    const workspace = await this.#canonical(wanted.workspace);
    const found = this.#scopes.get(workspace);
    const scope: Scope = found ?? { workspace, members: new Set(), asked: "", at: undefined };
    this.#scopes.set(workspace, scope);
    const own = workspace === undefined ? wanted : { ...wanted, workspace };
    const subscription: Subscription = new Subscription(own, listener, {
      leave: () => this.#leave(scope, subscription),
      reach: () => this.#reach(scope),
    });
    scope.members.add(subscription);
    try {
      subscription.start = await this.#ask(scope, (request) => this.request("events/subscribe", request));
    } catch (error) {
      subscription.close();
      throw error;
    }
    return subscription;
  }

  /** Calls *listener* from now on; the function that is returned ends that. */
  on<E extends keyof ClientEvents>(event: E, listener: ClientEvents[E]): () => void {
    const listeners = this.#listeners[event] as Set<ClientEvents[E]>;
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** Ends the connection and everything that waits. The daemon stays, and carries out what it was sent. */
  close(): void {
    this.#finish(undefined);
  }

  // The connection

  async #establish(): Promise<Link> {
    const signal = AbortSignal.any([this.#end.signal, AbortSignal.timeout(DIAL_PATIENCE)]);
    const { name, version, workspaces, open, token, roles } = this.#options;
    const connection: Connection = new Connection(await this.#dial(signal, this.#mayStart), {
      notification: (method, params) => this.#heard(method, params),
      closed: (reason) => this.#lost(connection, reason),
    });
    const craft = Object.fromEntries(
      Object.entries({ workspaces, open, token }).filter(([, value]) => value !== undefined),
    );
    try {
      const answer = (await connection.request(
        "initialize",
        {
          processId: null,
          rootUri: null,
          capabilities: { experimental: { craft: { protocol: PROTOCOL, ...(roles && { roles }) } } },
          clientInfo: version === undefined ? { name } : { name, version },
          initializationOptions: { craft },
        },
        signal,
      )) as { capabilities: { experimental: { craft: Welcome } } };
      connection.notify("initialized", {});
      const link = { connection, welcome: answer.capabilities.experimental.craft };
      await this.#resume(link);
      return link;
    } catch (error) {
      connection.close();
      throw error instanceof ConnectionLost && error.cause instanceof CraftdError ? error.cause : error;
    }
  }

  /** Asks a new connection for what the last one was asked for. */
  async #resume({ connection }: Link): Promise<void> {
    for (const scope of this.#scopes.values()) {
      try {
        await this.#ask(scope, (request) => connection.request("events/subscribe", request));
      } catch (error) {
        if (!(error instanceof CraftdError) || error.retryable) throw error;
        this.#scopes.delete(scope.workspace); // the workspace is gone, or is no longer ours to read
        for (const member of [...scope.members]) member.end(error);
      }
    }
  }

  #open(link: Link): void {
    this.#link = link;
    this.#welcome = link.welcome;
    this.#mayStart = true;
    if (link.connection.ended) {
      this.#lost(link.connection, undefined);
      return;
    }
    for (const waiting of this.#waiting.splice(0)) waiting.resolve(link);
    this.#tell("state", "open");
  }

  #lost(connection: Connection, reason: Error | undefined): void {
    if (this.#link?.connection !== connection) return; // it never came into use
    this.#link = undefined;
    if (this.#options.reconnect === false)
      this.#finish(reason ?? new ConnectionLost("the daemon closed the connection"));
    else {
      this.#tell("state", "lost", reason);
      if (this.#scopes.size > 0) void this.#reconnect();
    }
  }

  async #reconnect(): Promise<void> {
    if (this.#isReconnecting) return;
    this.#isReconnecting = true;
    for (
      let pause = FIRST_PAUSE;
      !this.#link && !this.#end.signal.aborted;
      pause = Math.min(pause * 2, LONGEST_PAUSE)
    ) {
      await sleep(pause * (0.5 + Math.random() / 2), this.#end.signal);
      if (this.#end.signal.aborted) break;
      try {
        const link = await this.#establish();
        if (this.#end.signal.aborted) link.connection.close();
        else this.#open(link);
      } catch (error) {
        if (error instanceof CraftdError && !error.retryable) this.#finish(error); // it would be the same next time
      }
    }
    this.#isReconnecting = false;
  }

  #finish(error: Error | undefined): void {
    if (this.#end.signal.aborted) return;
    this.#end.abort(error ?? connectionClosed());
    const link = this.#link;
    this.#link = undefined;
    link?.connection.close();
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error ?? connectionClosed());
    for (const scope of this.#scopes.values()) for (const member of scope.members) member.end(error);
    this.#scopes.clear();
    this.#tell("state", "closed", error);
  }

  /** The present connection, or the next one. */
  #linked(signal?: AbortSignal): Promise<Link> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      this.#end.signal.throwIfAborted();
      if (this.#link) {
        resolve(this.#link);
        return;
      }
      const giveUp = (reason: Error): void => {
        this.#waiting = this.#waiting.filter((one) => one !== waiting);
        waiting.reject(reason);
      };
      const abort = (): void => giveUp(signal?.reason);
      const patience = setTimeout(
        () => giveUp(new ConnectionLost("there is no connection to the daemon")),
        this.#options.patienceMs ?? PATIENCE,
      );
      const done = (): void => {
        clearTimeout(patience);
        signal?.removeEventListener("abort", abort);
      };
      const waiting = {
        resolve: (link: Link) => (done(), resolve(link)),
        reject: (error: Error) => (done(), reject(error)),
      };
      this.#waiting.push(waiting);
      signal?.addEventListener("abort", abort, { once: true });
      void this.#reconnect();
    });
  }

  // Events

  #heard(method: string, params: JsonObject): void {
    if (method === "$/progress") {
      const listener = this.#parts.get(String(params["token"]));
      if (listener) tell(listener, params["value"] as JsonObject);
    }
    if (method === "daemon/willStop") this.#mayStart = false;
    this.#tell("notification", method, params);
    const scope = this.#scopes.get(params["workspace"] as string | undefined);
    if (!scope || method.startsWith("$/") || method.startsWith("daemon/")) return;
    if (typeof params["revision"] === "number" && !this.#isNews(scope, method, params as unknown as Position)) return;
    for (const member of [...scope.members]) member.offer({ method, params } as unknown as ScopeEvent);
  }

  /** Every change has a revision of its own, so one that was reached was told. Lapses and checkpoints only name one. */
  #isNews(scope: Scope, method: string, { epoch, revision }: Position): boolean {
    const told = scope.at?.epoch === epoch && revision <= scope.at.revision;
    if (!told) scope.at = { epoch, revision };
    return !told || method.startsWith("events/");
  }

  /** Asks for what the scope's subscriptions want together, from where they have come to; where delivery then is. */
  async #ask(scope: Scope, send: (request: object) => Promise<unknown>): Promise<Position> {
    const before = scope.at;
    const { asked, request } = subscribing(scope);
    scope.asked = asked;
    const answer = (await send(before ? { ...request, since: before } : request)) as Subscribed;
    if (answer.replay !== "complete" && (scope.at?.epoch !== answer.epoch || scope.at.revision < answer.revision)) {
      scope.at = { epoch: answer.epoch, revision: answer.revision };
    }
    if (answer.replay === "stale" && before) {
      const notice = lapse(answer, request, answer.epoch === before.epoch ? "journal" : "epoch");
      for (const member of [...scope.members]) member.offer(notice);
    }
    return { epoch: answer.epoch, revision: answer.revision };
  }

  /** What was missed, if anything was, follows the first answer and comes before the second. */
  async #reach(scope: Scope): Promise<void> {
    const since = await this.#ask(scope, (request) => this.request("events/subscribe", request));
    const { workspace } = scope;
    await this.request("events/read", { since, topics: [], ...(workspace === undefined ? {} : { workspace }) });
  }

  #leave(scope: Scope, subscription: Subscription): void {
    scope.members.delete(subscription);
    if (this.#scopes.get(scope.workspace) !== scope) return;
    if (scope.members.size > 0) {
      const { connection } = this.#link ?? {}; // none: it is asked with the next one
      if (connection && subscribing(scope).asked !== scope.asked) {
        this.#ask(scope, (request) => connection.request("events/subscribe", request)).catch(() => {});
      }
      return;
    }
    this.#scopes.delete(scope.workspace);
    const { workspace } = scope;
    this.#link?.connection.request("events/unsubscribe", workspace === undefined ? {} : { workspace }).catch(() => {});
  }

  /** Notifications carry the registry id, so that is what a scope goes by. */
  async #canonical(name: string | undefined): Promise<string | undefined> {
    if (name === undefined) return undefined;
    const known = this.#welcome.workspaces?.find(({ id, path }) => id === name || path === name);
    if (known) return known.id;
    const { item } = await this.call("workspaces/get", { id: name, fields: [] });
    return String(item.info?.["aliasOf"] ?? item.id);
  }

  #token(sent: JsonObject, member: string, listener: (value: JsonObject) => void): string {
    const token = String((sent[member] ??= `part-${++this.#tokens}`));
    this.#parts.set(token, listener);
    return token;
  }

  #tell<E extends keyof ClientEvents>(event: E, ...given: Parameters<ClientEvents[E]>): void {
    for (const listener of [...this.#listeners[event]])
      tell(listener as (...given: Parameters<ClientEvents[E]>) => void, ...given);
  }
}

/** What the daemon is asked for on behalf of all members of *scope*. */
function subscribing(scope: Scope): { asked: string; request: Wanted } {
  const wanted = union([...scope.members].map((member) => member.wanted));
  const request = scope.workspace === undefined ? wanted : { workspace: scope.workspace, ...wanted };
  return { asked: JSON.stringify(request), request };
}

function isSame(one: Link, other: Link): boolean {
  return one.welcome.pid === other.welcome.pid && one.welcome.epoch === other.welcome.epoch;
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}
