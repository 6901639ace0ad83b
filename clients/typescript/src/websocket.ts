import { CraftdError, type ErrorAnswer } from "./errors.js";
import { ERROR_CODES } from "./protocol.js";
import type { Dial, Transport } from "./transport.js";

/** What is needed of a browser's `WebSocket`, or of the class of that name in the package `ws`. */
export interface WebSocketLike {
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
  send(data: string): void;
  close(code?: number, reason?: string): void;
}
export type WebSocketClass = new (url: string, protocols: string[]) => WebSocketLike;

/** Why the daemon closed, by the code it gave (protocol.md, Network). */
const REASONS: Readonly<Record<number, keyof typeof ERROR_CODES>> = {
  4401: "Unauthenticated",
  4403: "Forbidden",
  4409: "InvalidRequest",
  4413: "TooLarge",
  4429: "Busy",
};

/**
 * Dials `ws://` and `wss://` addresses. The token travels as a subprotocol, because a browser can set no headers and
 * an address ends up in logs.
 */
export function webSocket(url: string, token: string | undefined, Class: WebSocketClass | undefined): Dial {
  const Socket = Class ?? (globalThis as { WebSocket?: WebSocketClass }).WebSocket;
  if (Socket === undefined) throw new TypeError("there is no WebSocket here: give a class for it, as `ws` has one");
  const protocols = ["craftd.v1", ...(token === undefined ? [] : [`craftd.token.${base64url(token)}`])];
  return (signal) =>
    new Promise<Transport>((resolve, reject) => {
      signal.throwIfAborted();
      const socket = new Socket(url, protocols);
      const abort = (): void => {
        socket.close();
        reject(signal.reason);
      };
      signal.addEventListener("abort", abort, { once: true });
      const done = (): void => signal.removeEventListener("abort", abort);
      let said = "";
      socket.onerror = (event) => (said = event.message ? `: ${event.message}` : ""); // browsers say nothing; a close follows
      socket.onclose = (event) => {
        done();
        const failed = new Error(`no connection to ${url}${said}`);
        reject(said ? failed : (reasonOf(event) ?? failed));
      };
      socket.onopen = () => {
        done();
        resolve(over(socket));
      };
    });
}

function over(socket: WebSocketLike): Transport {
  // What arrives between the opening and `start` is kept: the promise in between takes a turn.
  const early: string[] = [];
  let ended: { reason: Error | undefined } | undefined;
  socket.onmessage = (event) => early.push(event.data);
  socket.onclose = (event) => (ended = { reason: reasonOf(event) });
  return {
    isRemote: true,
    start(events) {
      socket.onmessage = (event) => events.message(event.data);
      socket.onclose = (event) => events.closed(reasonOf(event));
      early.forEach((text) => events.message(text));
      if (ended) events.closed(ended.reason);
    },
    send: (text) => socket.send(text),
    close: () => socket.close(1000),
  };
}

function reasonOf(event: { code?: number; reason?: string }): Error | undefined {
  const code = event.code ?? 1006;
  const name = REASONS[code];
  if (name !== undefined) {
    const data = { code: name, retryable: name === "Busy" };
    const answer: ErrorAnswer = { code: ERROR_CODES[name], message: event.reason || name, data };
    return new CraftdError(answer);
  }
  return code === 1000 || code === 1001 || code === 1005 ? undefined : new Error(`WebSocket closed with code ${code}`);
}

function base64url(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}
