/** For Node (20.3 and newer): finds the daemon of this machine or starts it, and dials every kind of address. */

import { lstat, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import process from "node:process";
import type { ConnectionOptions } from "node:tls";

import { Client, type ClientOptions } from "./client.js";
import { child, socket, tlsSocket } from "./sockets.js";
import type { Dial } from "./transport.js";
import { webSocket, type WebSocketClass } from "./websocket.js";

export * from "./index.js";

export interface ConnectOptions extends ClientOptions {
  /**
   * `unix:/path`, `tcp://host:port`, `tcps://host:port` (TLS), `ws://host:port` or `wss://host:port`. Absent: the
   * daemon of the configuration folder on its Unix socket; if none runs, `command` starts it.
   */
  url?: string;
  /**
   * For `tcp:` and `ws:`, and their like with TLS. Default, for addresses of this machine: the one that lies in the
   * configuration folder.
   */
  token?: string;
  /** The configuration folder. Default: `$CRAFT_CONFIG_DIR`, else `~/.craft-agent`. */
  configDir?: string;
  /** Connects its standard input and output to the daemon, which it starts if need be. Default: `craftd stdio`. */
  command?: readonly string[];
  /** For `tcps:`, such as `ca` for a certificate of one's own. */
  tls?: ConnectionOptions;
  /** For `ws:` and `wss:` where there is no global one (Node 20): the class of that name in the package `ws`. */
  WebSocket?: WebSocketClass;
}

/** What a daemon says about itself in `<configuration folder>/craftd/daemon.json`. Perhaps it has ended since. */
export interface DaemonCard {
  pid: number;
  /** Name of its Unix socket. */
  socket: string;
  version: string;
  protocol: string;
  /** Where else it listens. */
  listeners?: { kind: "unix" | "tcp" | "ws"; address: string; tls?: boolean }[];
}

export async function connect(options: ConnectOptions): Promise<Client> {
  const { url, configDir } = options;
  const token = options.token ?? (url !== undefined && isHere(url) ? await localToken(configDir) : undefined);
  const given = { ...options, token };
  return Client.connect(dialer(given), given);
}

/** The card of the daemon of a configuration folder; undefined if there is none. */
export async function findDaemon(configDir?: string): Promise<DaemonCard | undefined> {
  const card = await readOrNothing(path.join(folderOf(configDir), "craftd", "daemon.json"));
  try {
    return card === undefined ? undefined : (JSON.parse(card) as DaemonCard);
  } catch {
    return undefined;
  }
}

/** The token with all rights that a daemon with a network listener leaves for its own user; undefined if there is none. */
export async function localToken(configDir?: string): Promise<string | undefined> {
  return (await readOrNothing(path.join(folderOf(configDir), "craftd", "token")))?.trim();
}

function isHere(url: string): boolean {
  return !url.startsWith("unix:") && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);
}

function dialer(options: Omit<ConnectOptions, "token"> & { token: string | undefined }): Dial {
  const { url, token, WebSocket } = options;
  if (url === undefined) return local(options);
  if (url.startsWith("unix:"))
    return socket({ path: decodeURIComponent(url.slice("unix:".length).replace(/^\/\/(?=\/)/, "")) });
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  switch (protocol) {
    case "tcp:":
      return socket({ host, port: Number(port) });
    case "tcps:":
      return tlsSocket({
        host,
        port: Number(port),
        ...(/^[\d.:]+$/.test(host) ? {} : { servername: host }),
        ...options.tls,
      });
    case "ws:":
    case "wss:":
      return webSocket(url, token, WebSocket);
    default:
      throw new TypeError(`${url} is no address of a daemon`);
  }
}

/** The daemon's socket, looked up at every dial because a new daemon may have another; else the bridge, which starts one. */
function local({ configDir, command = ["craftd", "stdio"] }: Pick<ConnectOptions, "configDir" | "command">): Dial {
  return async (signal, mayStart) => {
    const card = await findDaemon(configDir);
    if (card !== undefined && (await isOurs(card.socket))) {
      try {
        return await socket({ path: card.socket })(signal, mayStart);
      } catch {
        signal.throwIfAborted(); // else: it has ended
      }
    }
    if (!mayStart) throw new Error(`no daemon is running for ${folderOf(configDir)}`);
    const env = configDir === undefined ? process.env : { ...process.env, CRAFT_CONFIG_DIR: folderOf(configDir) };
    return child(command, env)(signal, mayStart);
  };
}

/** Whether the socket's folder belongs to this user and nobody else may enter it: else anybody could listen there. */
async function isOurs(name: string): Promise<boolean> {
  try {
    const folder = await lstat(path.dirname(name));
    return folder.isDirectory() && folder.uid === process.getuid?.() && (folder.mode & 0o077) === 0;
  } catch {
    return false;
  }
}

function folderOf(configDir: string | undefined): string {
  const named = configDir ?? (process.env["CRAFT_CONFIG_DIR"] || path.join("~", ".craft-agent"));
  return path.resolve(named.replace(/^~(?=\/|$)/, homedir()));
}

async function readOrNothing(file: string): Promise<string | undefined> {
  return readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw error;
  });
}
