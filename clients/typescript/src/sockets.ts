/** Transports that only Node has: sockets and a child process. */

import { spawn } from "node:child_process";
import net from "node:net";
import tls from "node:tls";
import type { Duplex } from "node:stream";

import { Decoder, encode } from "./framing.js";
import type { Dial, Transport } from "./transport.js";

/** Milliseconds that the other side has to close in turn. */
const LINGER = 1000;

/** Dials a Unix socket or a TCP port. */
export function socket(to: net.NetConnectOpts): Dial {
  return (signal) => opened(net.connect(to), "connect", "port" in to, signal);
}

/** Dials a TCP port with TLS. */
export function tlsSocket(to: tls.ConnectionOptions): Dial {
  return (signal) => opened(tls.connect(to), "secureConnect", true, signal);
}

function opened(stream: net.Socket, event: string, isRemote: boolean, signal: AbortSignal): Promise<Transport> {
  return new Promise((resolve, reject) => {
    const abort = (): void => void stream.destroy(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    stream.once("error", reject);
    stream.once(event, () => {
      signal.removeEventListener("abort", abort);
      stream.off("error", reject);
      stream.setNoDelay(true);
      resolve(over(stream, isRemote));
    });
    if (signal.aborted) abort();
  });
}

/** Starts a program that speaks the protocol on its standard input and output, as `craftd stdio` does. */
export function child(command: readonly string[], env: NodeJS.ProcessEnv): Dial {
  return (signal) =>
    new Promise((resolve, reject) => {
      const [program = "", ...given] = command;
      const started = spawn(program, given, { env, stdio: ["pipe", "pipe", "pipe"] });
      let said = "";
      started.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-2000)));
      started.once("error", (error) => reject(new Error(`${program} cannot be started`, { cause: error })));
      started.once("spawn", () => {
        const abort = (): void => void started.kill();
        signal.addEventListener("abort", abort, { once: true });
        const { stdin, stdout } = started;
        const decoder = new Decoder();
        stdin.on("error", () => {}); // it ended; `close` follows
        resolve({
          isRemote: false,
          start(events) {
            stdout.on("data", (chunk: Buffer) => {
              try {
                decoder.feed(chunk).forEach((text) => events.message(text));
              } catch {
                started.kill();
              }
            });
            started.once("close", (code) => {
              signal.removeEventListener("abort", abort);
              events.closed(code === 0 ? undefined : new Error(said.trim() || `${program} ended with code ${code}`));
            });
          },
          send: (text) => void stdin.write(encode(text)),
          close: () => stdin.end(),
        });
      });
    });
}

function over(stream: Duplex, isRemote: boolean): Transport {
  const decoder = new Decoder();
  let failure: Error | undefined;
  stream.on("error", (error) => (failure ??= error));
  return {
    isRemote,
    start(events) {
      stream.on("data", (chunk: Buffer) => {
        try {
          decoder.feed(chunk).forEach((text) => events.message(text));
        } catch (error) {
          stream.destroy(error as Error);
        }
      });
      stream.once("close", () => events.closed(failure));
    },
    send: (text) => void stream.write(encode(text)),
    close() {
      stream.end();
      setTimeout(() => stream.destroy(), LINGER).unref();
    },
  };
}
