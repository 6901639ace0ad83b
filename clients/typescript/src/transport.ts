/** One connection that carries texts, each a JSON-RPC message. */
export interface Transport {
  /** Whether the other end may go without a word: over a network nobody tells that a machine fell asleep. */
  readonly isRemote: boolean;
  /** Called once, before anything can arrive. `closed` comes once, after the last message. */
  start(events: TransportEvents): void;
  send(text: string): void;
  /** End it; `closed` follows. */
  close(): void;
}

export interface TransportEvents {
  message(text: string): void;
  closed(reason: Error | undefined): void;
}

/**
 * Makes a new connection, each time it is asked. Rejects when there is none to be had, or when `signal` is aborted.
 * mayStart: false where the daemon was stopped on purpose, so that it is not for us to start another.
 */
export type Dial = (signal: AbortSignal, mayStart: boolean) => Promise<Transport>;
