/** What calls look like: types from the registry, and what a change says about itself. */

import type { JsonObject, Methods } from "./protocol.js";

export type Method = keyof Methods;
export type Params<M extends Method> = Methods[M]["params"];
export type Result<M extends Method> = Methods[M]["result"];
/** Params may be left out where none is required. */
export type Arguments<M extends Method> =
  {} extends Params<M> ? [params?: Params<M>, options?: CallOptions] : [params: Params<M>, options?: CallOptions];
/** `client.api.sessions.list({...})`: every method below its noun. */
export type Api = {
  readonly [N in Method as N extends `${infer Noun}/${string}` ? Noun : never]: {
    readonly [
      M in Method as M extends `${N extends `${infer Noun}/${string}` ? Noun : never}/${infer Verb}` ? Verb : never
    ]: (...given: Arguments<M>) => Promise<Result<M>>;
  };
};

export interface CallOptions {
  /** Aborted: the daemon is asked to take the request back, and the call rejects with the signal's reason. */
  signal?: AbortSignal;
  /** The same after so many milliseconds, with a `TimeoutError`. */
  timeoutMs?: number;
  /** Parts of the result as they come (`partialResultToken`); the result then has what is left. */
  onPart?: (value: JsonObject) => void;
  /** How far the work has come (`workDoneToken`). */
  onProgress?: (value: JsonObject) => void;
}

export function nouns(request: (method: string, params?: object, options?: CallOptions) => Promise<unknown>): Api {
  const verbs = (noun: string): object =>
    new Proxy(
      {},
      {
        get: (_, verb) => (params?: object, options?: CallOptions) =>
          request(`${noun}/${String(verb)}`, params, options),
      },
    );
  return new Proxy({}, { get: (_, noun) => verbs(String(noun)) }) as Api;
}

/** Whether any daemon knows this change by what it says. */
export function isKnownAgain(method: string, { expectedTail, set, messages }: JsonObject): boolean {
  if (method !== "messages/append" || expectedTail !== undefined || set !== undefined || !Array.isArray(messages))
    return false;
  return messages.every((message) => typeof message?.id === "string");
}

/** An idempotency key. Not `crypto.randomUUID`, which a page has only when it came over TLS or from this machine. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
