import { ConnectionLost, CraftdError, type ErrorAnswer } from "./errors.js";
import type { JsonObject } from "./protocol.js";
import type { Transport } from "./transport.js";

/** Arrays and objects in one another that the daemon reads; the envelope is two of them. */
const MOST_DEPTH = 200;
const MOST_BYTES = 16 * 1024 * 1024;

/** Requests of the daemon that want no more than a word that they came. */
const HARMLESS = new Set([
  "client/registerCapability",
  "client/unregisterCapability",
  "window/showMessageRequest",
  "window/workDoneProgress/create",
]);

/** Milliseconds without a word after which a remote daemon is asked whether it is there, and those it has to answer. */
const QUIET = 30_000;

interface Pending {
  method: string;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

export interface ConnectionEvents {
  notification(method: string, params: JsonObject): void;
  closed(reason: Error | undefined): void;
}

/** JSON-RPC over one transport, from its opening to its end. */
export class Connection {
  #transport: Transport;
  #events: ConnectionEvents;
  #pending = new Map<number, Pending>();
  #number = 0;
  #ended = false;
  #heard = true;
  #asked = false;
  #left!: () => void;
  #gone = new Promise<void>((resolve) => (this.#left = resolve));
  #watch: ReturnType<typeof setInterval> | undefined;

  constructor(transport: Transport, events: ConnectionEvents) {
    this.#transport = transport;
    this.#events = events;
    transport.start({
      message: (text) => this.#receive(text),
      closed: (reason) => this.#end(reason),
    });
    if (transport.isRemote && !this.#ended) {
      this.#watch = setInterval(() => this.#look(), QUIET);
      (this.#watch as { unref?: () => void }).unref?.();
    }
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Whether the daemon, which says that it stops, hangs up. */
  endsWithin(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(this.#ended), ms);
      void this.#gone.then(() => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }

  /**
   * The result. Rejects with CraftdError, with ConnectionLost when the connection ends first, or with the signal's
   * reason; then the daemon is told that nobody waits any longer.
   */
  request(method: string, params: object, signal?: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#ended) throw new ConnectionLost("the connection has ended");
      signal?.throwIfAborted();
      const id = ++this.#number;
      const text = JSON.stringify({ jsonrpc: "2.0", id, method, params });
      refuseTooLarge(text, params);
      const cancel = (): void => {
        this.#pending.delete(id);
        if (!this.#ended) this.notify("$/cancelRequest", { id });
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", cancel, { once: true });
      const settled = (): void => signal?.removeEventListener("abort", cancel);
      this.#pending.set(id, {
        method,
        resolve: (result) => (settled(), resolve(result)),
        reject: (error) => (settled(), reject(error)),
      });
      this.#transport.send(text);
    });
  }

  notify(method: string, params: object): void {
    if (!this.#ended) this.#transport.send(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  close(): void {
    this.#transport.close();
    this.#end(undefined);
  }

  #receive(text: string): void {
    if (this.#ended) return;
    this.#heard = true;
    let message: any;
    try {
      message = JSON.parse(text);
    } catch (error) {
      this.#transport.close();
      this.#end(new Error("the daemon sent something that is no JSON", { cause: error }));
      return;
    }
    if (typeof message?.method === "string") {
      if (message.id === undefined) this.#events.notification(message.method, message.params ?? {});
      else this.#answer(message.id, message.method);
    } else if (typeof message?.id === "number") {
      this.#settle(message.id, message);
    } else if (message?.error) {
      // It could not read one of our messages and cannot say which.
      const error = new CraftdError(message.error);
      for (const pending of this.#take()) pending.reject(error);
    }
  }

  /** Nothing heard since the last look: ask, and at the next look it has answered or is gone. */
  #look(): void {
    if (!this.#heard && this.#asked) {
      this.#transport.close();
      this.#end(new Error("the daemon does not answer"));
      return;
    }
    this.#asked = !this.#heard;
    this.#heard = false;
    if (this.#asked) this.request("daemon/hello", {}).catch(() => {});
  }

  #settle(id: number, message: { result?: unknown; error?: ErrorAnswer }): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (message.error) pending?.reject(new CraftdError(message.error));
    else pending?.resolve(message.result ?? null);
  }

  /** Every request of the daemon gets an answer, or it would wait for one. */
  #answer(id: unknown, method: string): void {
    const answer = HARMLESS.has(method)
      ? { result: null }
      : { error: { code: -32601, message: `this client has no ${method}` } };
    this.#transport.send(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  }

  #end(reason: Error | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#watch);
    this.#left();
    for (const pending of this.#take()) {
      pending.reject(
        new ConnectionLost(`the connection ended before ${pending.method} was answered`, true, { cause: reason }),
      );
    }
    this.#events.closed(reason);
  }

  #take(): Pending[] {
    const all = [...this.#pending.values()];
    this.#pending.clear();
    return all;
  }
}

/** Refuses here what the daemon would answer by closing the connection, with everybody else's requests on it. */
function refuseTooLarge(text: string, params: object): void {
  if (text.length > MOST_BYTES / 3) {
    const actual = new TextEncoder().encode(text).length;
    if (actual > MOST_BYTES) {
      const data = { code: "TooLarge", retryable: false, limit: MOST_BYTES, actual };
      throw new CraftdError({ code: 1009, message: `a message is larger than ${MOST_BYTES} bytes`, data });
    }
  }
  if (isDeeper(params, MOST_DEPTH - 1)) {
    const data = { code: "TooLarge", retryable: false, limit: MOST_DEPTH };
    throw new CraftdError({ code: 1009, message: `a message nests deeper than ${MOST_DEPTH}`, data });
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((member) => isDeeper(member, levels - 1));
}
