/** A real `craftd serve` in folders of its own. */

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { connect, findDaemon, localToken, type Client, type ConnectOptions } from "../src/node.js";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
export const CRAFTD = [path.join(ROOT, ".venv/bin/python"), "-P", "-m", "craftd"];

const PATIENCE = 20_000;

export class Daemon {
  /** Short, because a socket's name may have 104 bytes. */
  readonly base = mkdtempSync("/tmp/ct-");
  readonly config = path.join(this.base, "cfg");
  readonly env: NodeJS.ProcessEnv;
  #given: string[];
  #process: ChildProcess | undefined;
  #clients: Client[] = [];

  private constructor(given: string[]) {
    this.#given = given;
    for (const name of ["cfg", "run", "home"]) mkdirSync(path.join(this.base, name), { mode: 0o700 });
    const run = path.join(this.base, "run");
    this.env = {
      ...process.env,
      HOME: path.join(this.base, "home"),
      CRAFT_CONFIG_DIR: this.config,
      XDG_RUNTIME_DIR: run,
      TZ: "UTC",
    };
  }

  /** A daemon with one workspace, `ws`. */
  static async start(...given: string[]): Promise<Daemon> {
    const daemon = new Daemon(given);
    daemon.register("ws");
    await daemon.start();
    return daemon;
  }

  /** Writes the list of workspaces as the app would. Before the start. */
  register(...ids: string[]): void {
    const workspaces = ids.map((id) => ({
      id,
      name: id,
      slug: id,
      rootPath: this.folder(id),
      createdAt: 1767225600000,
    }));
    for (const id of ids) {
      mkdirSync(path.join(this.folder(id), "sessions"), { recursive: true });
      writeFileSync(
        path.join(this.folder(id), "config.json"),
        JSON.stringify({ id: `own_${id}`, name: id, slug: id }, null, 2),
      );
    }
    writeFileSync(
      path.join(this.config, "config.json"),
      JSON.stringify({ workspaces, activeWorkspaceId: ids[0], activeSessionId: null }),
    );
  }

  folder(workspace: string): string {
    return path.join(this.base, workspace);
  }

  async start(): Promise<void> {
    const errors = openSync(path.join(this.base, "stderr"), "a");
    const started = spawn(CRAFTD[0]!, [...CRAFTD.slice(1), "serve", ...this.#given], {
      env: this.env,
      stdio: ["ignore", errors, errors],
    });
    this.#process = started;
    for (const end = Date.now() + PATIENCE; (await findDaemon(this.config))?.pid !== started.pid;) {
      if (started.exitCode !== null || Date.now() > end) throw new Error(`the daemon did not start: ${this.said}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  get said(): string {
    return readFileSync(path.join(this.base, "stderr"), "utf8");
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    if (!running || running.exitCode !== null || running.signalCode !== null) return;
    const gone = once(running, "exit");
    running.kill(signal);
    await gone;
  }

  async restart(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.kill(signal);
    await this.start();
  }

  /** A client on the Unix socket, or as *options* say, that works with the workspace `ws`. */
  async connect(options: Partial<ConnectOptions> = {}): Promise<Client> {
    const client = await connect({
      name: "test",
      workspaces: [{ id: "ws" }],
      configDir: this.config,
      command: ["false"],
      ...options,
    });
    this.#clients.push(client);
    return client;
  }

  /** Where it listens for *kind*, as an address for `connect`, and the token for it. */
  async network(kind: "tcp" | "ws"): Promise<{ url: string; token: string }> {
    const listener = (await findDaemon(this.config))?.listeners?.find((one) => one.kind === kind);
    const token = await localToken(this.config);
    if (!listener || !token) throw new Error(`it does not listen for ${kind}`);
    return { url: `${kind}://${listener.address}`, token };
  }

  async end(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.kill("SIGTERM");
    const log = path.join(this.config, "craftd", "log");
    const said = existsSync(log) ? readFileSync(log, "utf8") : "";
    // A daemon that was told to stop by a client may still be writing its last words.
    await rm(this.base, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
    if (said.includes("Traceback")) throw new Error(said);
  }
}

/** The first thing that passes through *listen* and is *wanted*. */
export function first<T>(
  listen: (listener: (given: T) => void) => () => void,
  wanted: (given: T) => boolean,
): Promise<T> {
  return new Promise((resolve) => {
    const stop = listen((given) => {
      if (!wanted(given)) return;
      queueMicrotask(() => stop());
      resolve(given);
    });
  });
}
