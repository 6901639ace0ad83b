import type { Client } from "./client.js";
import { CraftdError } from "./errors.js";
import { ListedNoun, ListedTranscript, type Listed } from "./listed.js";
import type { Item, JsonObject, Methods, Notifications, Position } from "./protocol.js";
import { connectionClosed, tell, type ScopeEvent, type Subscription, type Wanted } from "./subscription.js";

/** Nouns whose records can be listed and are announced. */
export type Noun = {
  [M in keyof Methods]: M extends `${infer N}/list`
    ? `${N}/didCreate` extends keyof Notifications
      ? N
      : never
    : never;
}[keyof Methods];

export interface MirrorOptions {
  /** Absent: the configuration that all workspaces share. */
  workspace?: string;
  nouns?: readonly Noun[];
  /** Ids of sessions whose messages are wanted. */
  messages?: readonly string[];
}

/** A record as the daemon has it. What is computed (`info`) is not mirrored: no event tells its changes. */
export type Mirrored = Readonly<Pick<Item, "id" | "version" | "value">>;

/** What is another one now. id absent: everything was listed again. */
export type MirrorChange =
  { readonly noun: Noun; readonly id?: string } | { readonly noun: "messages"; readonly session: string };

/** Between two tries of a list that failed for a reason that may pass. */
const PAUSE = 200;

/**
 * Records of some nouns, and messages of some sessions, of one scope: listed once and kept equal to the daemon's by its
 * events. Where events were lost it lists again by itself; until that is done it shows what it knew.
 *
 * When the answer to a change arrives that was made by the same client, the mirror has the change.
 */
export class Mirror {
  #client: Client;
  #workspace: string | undefined;
  #nouns = new Map<Noun, ListedNoun>();
  #transcripts = new Map<string, ListedTranscript>();
  #subscription: Subscription | undefined;
  #at: Position | undefined;
  #listeners = new Set<(change: MirrorChange) => void>();
  /** Lists and messages that are being read, and the how manieth time. */
  #loading = new Map<object, number>();
  #waiting: { resolve(): void; reject(error: Error): void }[] = [];
  #failure: Error | undefined;

  private constructor(client: Client, { workspace, nouns = [], messages = [] }: MirrorOptions) {
    this.#client = client;
    this.#workspace = workspace;
    for (const noun of nouns)
      this.#nouns.set(noun, new ListedNoun(noun, (id) => this.#tell(id === undefined ? { noun } : { noun, id })));
    for (const session of messages) this.#transcripts.set(session, this.#transcript(session));
  }

  /** A mirror that has listed everything. */
  static async open(client: Client, options: MirrorOptions): Promise<Mirror> {
    const mirror = new Mirror(client, options);
    try {
      await mirror.#subscribe();
      mirror.#loadAll();
      await mirror.settled();
    } catch (error) {
      mirror.close();
      throw error;
    }
    return mirror;
  }

  /** Records by id, as they are now: the same map, changed in place. The records in it are never changed. */
  records(noun: Noun): ReadonlyMap<string, Mirrored> {
    const listed = this.#nouns.get(noun);
    if (!listed) throw new RangeError(`${noun} are not mirrored here`);
    return listed.items;
  }

  /** Messages of a followed session, in order; undefined while there is no such session. A new array after each change. */
  messages(session: string): readonly JsonObject[] | undefined {
    const listed = this.#transcripts.get(session);
    if (!listed) throw new RangeError(`the messages of ${session} are not followed here`);
    return listed.messages;
  }

  /** Mirror the messages of one more session; resolves when they are there. */
  async follow(session: string): Promise<void> {
    if (!this.#transcripts.has(session)) {
      const listed = this.#transcript(session);
      this.#transcripts.set(session, listed);
      await this.#subscribe();
      this.#load(listed);
    }
    await this.settled();
  }

  async unfollow(session: string): Promise<void> {
    const listed = this.#transcripts.get(session);
    if (!listed) return;
    this.#transcripts.delete(session);
    this.#loaded(listed);
    await this.#subscribe();
  }

  /** Calls *listener* after each change; the function that is returned ends that. */
  on(listener: (change: MirrorChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Why it is not kept true any longer, if it is not: the workspace is gone, or the client has ended. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Resolves when nothing is being listed; rejects when the mirror cannot go on. */
  settled(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#failure) reject(this.#failure);
      else if (this.#loading.size === 0) resolve();
      else this.#waiting.push({ resolve, reject });
    });
  }

  /** Resolves when everything that was done before, edits of files too, is here. */
  async sync(): Promise<void> {
    await this.#client.call("daemon/sync", this.#scope());
    await this.#subscription?.reach();
    await this.settled();
  }

  close(): void {
    this.#fail(connectionClosed());
  }

  #scope(): { workspace?: string } {
    return this.#workspace === undefined ? {} : { workspace: this.#workspace };
  }

  #transcript(session: string): ListedTranscript {
    const changed = (): void => this.#tell({ noun: "messages", session });
    const listed: ListedTranscript = new ListedTranscript(session, changed, (id) => void this.#fetch(listed, id));
    return listed;
  }

  async #fetch(listed: ListedTranscript, id: string): Promise<void> {
    const task = {};
    this.#loading.set(task, 1);
    try {
      const { item, revision } = await this.#client.call("messages/get", {
        ...this.#scope(),
        session: listed.session,
        id,
        fields: ["*"],
      });
      listed.fill(id, item.value, revision);
    } catch {
      if (this.#transcripts.get(listed.session) === listed && !this.#failure) this.#load(listed);
    }
    this.#loaded(task);
  }

  /** Subscribes to what is mirrored now. For a moment the old subscription and the new one tell the same. */
  async #subscribe(): Promise<void> {
    const topics: string[] = [...this.#nouns.keys()];
    if (this.#transcripts.size > 0) topics.push("messages", ...(this.#nouns.has("sessions") ? [] : ["sessions"]));
    const wanted: Wanted = { ...this.#scope(), topics };
    if (!this.#nouns.has("sessions")) wanted.sessions = [...this.#transcripts.keys()];
    const before = this.#subscription;
    const subscription = await this.#client.subscribe(wanted, (event) => this.#heard(event));
    if (this.#failure) subscription.close();
    else this.#subscription = subscription;
    void subscription.closed.then((failure) => failure && this.#fail(failure));
    before?.close();
  }

  #heard(event: ScopeEvent): void {
    if (event.method === "events/didLapse") {
      this.#at = event.params;
      this.#loadAll();
      return;
    }
    const { epoch, revision } = event.params as Position;
    if (this.#at?.epoch === epoch && revision <= this.#at.revision) return;
    this.#at = { epoch, revision };
    for (const listed of this.#all()) if (!listed.take(event)) this.#load(listed);
  }

  #all(): Listed[] {
    return [...this.#nouns.values(), ...this.#transcripts.values()];
  }

  #loadAll(): void {
    for (const listed of this.#all()) this.#load(listed);
  }

  /** List it again. What is under way for it is given up. */
  #load(listed: Listed): void {
    const run = (this.#loading.get(listed) ?? 0) + 1;
    this.#loading.set(listed, run);
    listed.begin();
    const isCurrent = (): boolean => this.#loading.get(listed) === run && !this.#failure;
    void (async () => {
      for (;;) {
        try {
          const show = await listed.list(this.#client, this.#scope());
          if (!isCurrent()) return;
          if (!show()) this.#load(listed);
          else this.#loaded(listed);
          return;
        } catch (error) {
          if (!isCurrent()) return;
          if (!(error instanceof CraftdError && error.retryable)) return this.#fail(error as Error);
          listed.begin();
          await new Promise((resolve) => setTimeout(resolve, PAUSE));
          if (!isCurrent()) return;
        }
      }
    })();
  }

  #loaded(task: object): void {
    this.#loading.delete(task);
    if (this.#loading.size === 0) for (const waiting of this.#waiting.splice(0)) waiting.resolve();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#loading.clear();
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error);
    this.#subscription?.close();
  }

  #tell(change: MirrorChange): void {
    for (const listener of [...this.#listeners]) tell(listener, change);
  }
}
