/**
 * One list that events keep current. While it is listed, events are kept; an answer says which of them it has in it.
 *
 * Every part knows the revision it was read at, and an event that is not later changes nothing. An event that does not
 * fit what is there means that something was missed: the list is made again.
 */

import type { Client } from "./client.js";
import { CraftdError } from "./errors.js";
import type { Mirrored, Noun } from "./mirror.js";
import { apply, PatchError, type Patch } from "./patch.js";
import type { Changed, Item, JsonObject, Page } from "./protocol.js";
import type { ScopeEvent } from "./subscription.js";

/** Records of a page. The daemon ends a page at about 1 MiB too. */
const LIMIT = 500;

interface Event {
  method: string;
  params: any;
}

export abstract class Listed {
  #kept: Event[] | undefined;
  /** The list has in it what happened up to this revision of this epoch. */
  protected epoch = "";
  protected from = -1;

  /** Events are kept from here on. */
  begin(): void {
    this.#kept = [];
  }

  /** False: it does not fit, list again. */
  take(event: ScopeEvent): boolean {
    if (this.#kept) {
      this.#kept.push(event);
      return true;
    }
    return this.#apply(event);
  }

  /** Reads everything. The function in the result puts it in place, kept events on top; false: list again. */
  async list(client: Client, scope: { workspace?: string }): Promise<() => boolean> {
    const place = await this.read(client, scope);
    return () => {
      const kept = this.#kept ?? [];
      this.#kept = undefined;
      place();
      return kept.every((event) => this.#apply(event));
    };
  }

  protected abstract read(client: Client, scope: { workspace?: string }): Promise<() => void>;

  protected abstract change(event: Event): boolean;

  #apply(event: Event): boolean {
    if (!this.concerns(event)) return true;
    if (event.params.epoch !== this.epoch) return false;
    if (event.params.revision <= this.from) return true;
    try {
      return this.change(event);
    } catch (error) {
      if (error instanceof PatchError) return false;
      throw error;
    }
  }

  protected abstract concerns(event: Event): boolean;
}

/** The records of one noun. */
export class ListedNoun extends Listed {
  readonly items = new Map<string, Mirrored>();
  #revisions = new Map<string, number>();
  #noun: Noun;
  #changed: (id?: string) => void;

  constructor(noun: Noun, changed: (id?: string) => void) {
    super();
    this.#noun = noun;
    this.#changed = changed;
  }

  protected override async read(client: Client, scope: { workspace?: string }): Promise<() => void> {
    const found: [Item, number][] = [];
    const pages = eachPage(client, `${this.#noun}/list`, { ...scope, sort: "id" });
    const first = await pages.next();
    for (let page = first; !page.done; page = await pages.next()) {
      for (const item of page.value.items) found.push([item, page.value.revision]);
    }
    return () => {
      this.epoch = first.value?.epoch ?? "";
      this.from = first.value?.revision ?? -1;
      this.items.clear();
      this.#revisions.clear();
      for (const [item, revision] of found) this.#put(item, revision);
      this.#changed();
    };
  }

  protected override concerns({ method }: Event): boolean {
    return method.startsWith(`${this.#noun}/did`);
  }

  protected override change({ method, params }: Event): boolean {
    const { revision } = params;
    if (method.endsWith("/didCreate")) {
      if (this.#isOlder(params.item.id, revision)) this.#put(params.item, revision, true);
    } else if (method.endsWith("/didDelete")) {
      if (this.items.has(params.id) && this.#isOlder(params.id, revision)) {
        this.items.delete(params.id);
        this.#revisions.delete(params.id);
        this.#changed(params.id);
      }
    } else if (method.endsWith("/didChange")) {
      for (const { id, version } of params.changes as Changed[]) {
        const known = this.items.get(id);
        if (!known) return false;
        if (this.#isOlder(id, revision))
          this.#put({ id, version, value: apply(known.value, params.patch) }, revision, true);
      }
    }
    return true;
  }

  #isOlder(id: string, revision: number): boolean {
    return (this.#revisions.get(id) ?? -1) < revision;
  }

  #put({ id, version, value }: Mirrored, revision: number, isNews = false): void {
    this.items.set(id, { id, version, value });
    this.#revisions.set(id, revision);
    if (isNews) this.#changed(id);
  }
}

/** The messages of one session. Lines that cannot be read are no messages. */
export class ListedTranscript extends Listed {
  messages: readonly JsonObject[] | undefined;
  readonly session: string;
  #changed: () => void;
  #fetch: (id: string) => void;
  /** Changes of messages that are being fetched. */
  #patches = new Map<string, { patch: Patch; revision: number }[]>();

  /** fetch: get the message and hand it to `fill`. */
  constructor(session: string, changed: () => void, fetch: (id: string) => void) {
    super();
    this.session = session;
    this.#changed = changed;
    this.#fetch = fetch;
  }

  /** The whole of a message that an event only named, as it was at *revision*. */
  fill(id: string, value: JsonObject, revision: number): void {
    const at = this.messages?.findIndex((message) => message["id"] === id && isOmitted(message)) ?? -1;
    if (!this.messages || at === -1) return;
    const later = this.#patches.get(id)?.filter((change) => change.revision > revision) ?? [];
    this.#patches.delete(id);
    const whole = later.reduce((message, { patch }) => apply(message, patch), value);
    this.#show(this.messages.with(at, whole));
  }

  protected override async read(client: Client, scope: { workspace?: string }): Promise<() => void> {
    const found: JsonObject[] = [];
    let first: Page | undefined;
    try {
      for await (const page of eachPage(client, "messages/list", { ...scope, session: this.session })) {
        first ??= page;
        found.push(...page.items.filter(({ info }) => !info || !("raw" in info)).map(({ value }) => value));
      }
    } catch (error) {
      if (!(error instanceof CraftdError && error.name === "NotFound")) throw error;
      first = undefined;
    }
    return () => {
      this.epoch = first?.epoch ?? this.epoch;
      this.from = first?.revision ?? -1;
      this.#patches.clear();
      this.#show(first && found);
    };
  }

  protected override concerns({ method, params }: Event): boolean {
    if (method.startsWith("messages/did")) return params.session === this.session;
    return (
      (method === "sessions/didDelete" && params.id === this.session) ||
      (method === "sessions/didCreate" && params.item.id === this.session)
    );
  }

  /** The list may have been read a little later than it says: what is there already is not made twice. */
  protected override change({ method, params }: Event): boolean {
    const known = this.messages;
    if (method === "sessions/didDelete") {
      this.#show(undefined);
      return true;
    }
    if (!known) return false;
    switch (method) {
      case "messages/didAppend":
        return this.#append(known, params);
      case "messages/didTruncate":
        this.#show(known.slice(0, params.keep));
        return true;
      case "messages/didDelete": {
        const id = params.id as string;
        if (id.startsWith("~")) return true;
        const at = placeOf(known, id);
        if (at !== -1) this.#show(known.toSpliced(at, 1));
        return at !== -1 || !id.startsWith("#");
      }
      case "messages/didChange":
        return (params.changes as { id: string }[]).every(({ id }) => this.#change(id, params));
      default:
        return false;
    }
  }

  #change(id: string, change: { patch: Patch; revision: number }): boolean {
    const known = this.messages ?? [];
    const at = placeOf(known, id);
    const found = known[at];
    if (!found) return false;
    if (isOmitted(found)) {
      this.#patches.get(id)?.push(change);
      return true;
    }
    const changed = apply(found, change.patch);
    if (isOmitted(changed) && changed["id"] !== id) return false;
    this.#show(known.with(at, changed));
    if (isOmitted(changed)) {
      this.#patches.set(id, []);
      this.#fetch(id);
    }
    return true;
  }

  #append(
    known: readonly JsonObject[],
    { index, messages, count }: { index: number; messages: JsonObject[]; count: number },
  ): boolean {
    if (index > known.length || messages.some((message) => isOmitted(message) && typeof message["id"] !== "string"))
      return false;
    const overlap = messages.slice(0, known.length - index);
    const isThere = overlap.every(({ id }, offset) => id !== undefined && known[index + offset]?.["id"] === id);
    const added = messages.slice(overlap.length);
    const ids = new Set(known.map(({ id }) => id));
    if (!isThere || added.some(({ id }) => ids.has(id))) return false;
    if (added.length > 0) this.#show([...known, ...added]);
    for (const { id } of added.filter(isOmitted)) {
      this.#patches.set(id as string, []);
      this.#fetch(id as string);
    }
    return (this.messages?.length ?? 0) >= count;
  }

  #show(messages: readonly JsonObject[] | undefined): void {
    this.messages = messages;
    this.#changed();
  }
}

/** Of equal ids the first is meant; `#<index>` names a message that has none. */
function placeOf(messages: readonly JsonObject[], id: string): number {
  const at = messages.findIndex((message) => message["id"] === id);
  const index = at === -1 && /^#\d+$/.test(id) ? Number(id.slice(1)) : at;
  return index < messages.length ? index : -1;
}

/** Events only name a message that is too large for everybody (protocol.md, Events). */
function isOmitted(message: JsonObject): boolean {
  return typeof message["omitted"] === "number" && Object.keys(message).length === 3;
}

async function* eachPage(client: Client, method: string, params: object): AsyncGenerator<Page, undefined, undefined> {
  for (let cursor: string | undefined; ;) {
    const asked = { ...params, fields: ["*"], limit: LIMIT, ...(cursor === undefined ? {} : { cursor }) };
    const page = (await client.request(method, asked)) as Page;
    yield page;
    if (page.nextCursor === undefined) return undefined;
    cursor = page.nextCursor;
  }
}
