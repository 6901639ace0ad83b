import { ConnectionLost } from "./errors.js";
import type { JsonObject, Methods, Notifications, Position } from "./protocol.js";

/** Every notification of a scope as `{method, params}`; a `switch` over `method` knows the params. */
export type ScopeEvent = {
  [M in keyof Notifications]: { readonly method: M; readonly params: Notifications[M] };
}[keyof Notifications];

/** What to be told. workspace absent: the configuration that all workspaces share. */
export type Wanted = Omit<Methods["events/subscribe"]["params"], "since">;

/** Events that wait for a reader; beyond, they are dropped and the reader is told to list again. */
const MOST_WAITING = 4096;

/**
 * The events of one scope, in order, from `start` on: iterated with `for await`, or given to a listener.
 *
 * Lapses of the connection are bridged. What was missed meanwhile comes as if nothing had been; where it is no longer
 * known, `events/didLapse` comes in its place, once: list again then, events go on from its position.
 */
export class Subscription implements AsyncIterable<ScopeEvent> {
  /** Where the events begin; from there on nothing is missing. */
  start: Position = { epoch: "", revision: 0 };
  readonly wanted: Wanted;
  /** Resolves when there will be no more events: with why, unless somebody closed it. */
  readonly closed: Promise<Error | undefined>;
  #listener: ((event: ScopeEvent) => void) | undefined;
  #waiting: ScopeEvent[] = [];
  #wake: (() => void) | undefined;
  #ended = false;
  #failure: Error | undefined;
  #close!: (failure: Error | undefined) => void;
  #client: { leave(): void; reach(): Promise<void> };

  /** Made by `Client.subscribe`. */
  constructor(
    wanted: Wanted,
    listener: ((event: ScopeEvent) => void) | undefined,
    client: { leave(): void; reach(): Promise<void> },
  ) {
    this.wanted = wanted;
    this.closed = new Promise((resolve) => (this.#close = resolve));
    this.#listener = listener;
    this.#client = client;
  }

  /** Resolves when everything that had happened by now was told, also what was held back from a slow reader. */
  reach(): Promise<void> {
    return this.#client.reach();
  }

  /** Be told no more; a loop over the events ends. */
  close(): void {
    if (!this.#ended) {
      this.end();
      this.#client.leave();
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ScopeEvent, void, undefined> {
    if (this.#listener) throw new TypeError("the events of this subscription go to a listener");
    try {
      for (;;) {
        const event = this.#waiting.shift();
        if (event) yield event;
        else if (this.#failure) throw this.#failure;
        else if (this.#ended) return;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.close();
    }
  }

  /** For the client alone, like `end`: takes what this subscription asked for and drops what it did not. */
  offer(event: ScopeEvent): void {
    if (this.#ended || !this.#wants(event)) return;
    if (this.#listener) {
      tell(this.#listener, event);
      return;
    }
    if (this.#waiting.length < MOST_WAITING) this.#waiting.push(event);
    else if (event.method !== "sessions/didPublish")
      this.#waiting = [lapse(event.params as Partial<Position>, this.wanted)];
    this.#wake?.();
  }

  end(failure?: Error): void {
    this.#ended = true;
    this.#failure = failure;
    this.#close(failure);
    this.#wake?.();
  }

  #wants({ method, params }: ScopeEvent): boolean {
    const topic = method.slice(0, method.indexOf("/"));
    if (topic === "events") return method === "events/didLapse";
    const { topics, sessions, ephemeral } = this.wanted;
    if (method === "sessions/didPublish" && !ephemeral) return false;
    if (topics === undefined ? topic === "files" : topics !== "*" && !topics.includes(topic)) return false;
    return sessions === undefined || sessionsOf(topic, params).every((id) => sessions.includes(id));
  }
}

/** What a subscription of the whole connection has to ask for so that each of *wishes* gets its part. */
export function union(wishes: readonly Wanted[]): Wanted {
  const together: Wanted = {};
  if (wishes.some(({ topics }) => topics === "*")) together.topics = "*";
  else if (wishes.some(({ topics }) => topics === undefined)) {
    if (wishes.some(({ topics }) => topics?.includes("files"))) together.topics = "*";
  } else together.topics = [...new Set(wishes.flatMap(({ topics }) => topics ?? []))].sort();
  if (wishes.every(({ sessions }) => sessions !== undefined)) {
    together.sessions = [...new Set(wishes.flatMap(({ sessions }) => sessions ?? []))].sort();
  }
  if (wishes.some(({ ephemeral }) => ephemeral)) together.ephemeral = true;
  return together;
}

/** The notice that events are missing before a position. */
export function lapse(
  at: Partial<Position>,
  { workspace }: Wanted,
  reason: Notifications["events/didLapse"]["reason"] = "overflow",
): ScopeEvent {
  const params = { epoch: at.epoch ?? "", revision: at.revision ?? 0, reason };
  return { method: "events/didLapse", params: workspace === undefined ? params : { workspace, ...params } };
}

/** A listener's fault is its own: it is reported, and the others are told all the same. */
export function tell<A extends unknown[]>(listener: (...given: A) => void, ...given: A): void {
  try {
    listener(...given);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

export function connectionClosed(): ConnectionLost {
  return new ConnectionLost("the client was closed");
}

/** The sessions that an event is about; none for what belongs to no session. */
function sessionsOf(topic: string, params: object): string[] {
  const { session, id, item, changes } = params as JsonObject & {
    session?: string;
    id?: string;
    item?: { id: string };
    changes?: { id: string }[];
  };
  if (session !== undefined) return [session];
  if (topic !== "sessions") return [];
  return changes?.map((change) => change.id) ?? [item?.id ?? id ?? ""];
}
