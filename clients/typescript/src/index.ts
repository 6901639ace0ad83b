/** What runs everywhere: over WebSocket, in a browser or not. The entry `@craftd/client/node` has all of it and more. */

import { Client, type ClientOptions } from "./client.js";
import { webSocket, type WebSocketClass } from "./websocket.js";

export { newKey } from "./calls.js";
export type { Api, Arguments, CallOptions, Method, Params, Result } from "./calls.js";
export { Client, PROTOCOL } from "./client.js";
export type { ClientEvents, ClientOptions } from "./client.js";
export { Mirror } from "./mirror.js";
export type { Mirrored, MirrorChange, MirrorOptions, Noun } from "./mirror.js";
export { ConnectionLost, CraftdError } from "./errors.js";
export type { ErrorName } from "./errors.js";
export { apply, canonical, equal, PatchError } from "./patch.js";
export type { Patch } from "./patch.js";
export * from "./protocol.js";
export { Subscription } from "./subscription.js";
export type { ScopeEvent, Wanted } from "./subscription.js";
export type { Dial, Transport, TransportEvents } from "./transport.js";
export { webSocket } from "./websocket.js";
export type { WebSocketClass, WebSocketLike } from "./websocket.js";

export interface ConnectOptions extends ClientOptions {
  /** `ws://127.0.0.1:4711` or `wss://...`. */
  url: string;
  /** Instead of the global class, where there is none (Node 20). */
  WebSocket?: WebSocketClass;
}

/** Connects to a daemon that listens for WebSockets (`craftd serve --ws`). */
export function connect({ url, WebSocket, ...options }: ConnectOptions): Promise<Client> {
  return Client.connect(webSocket(url, options.token, WebSocket), options);
}
