/** A Unix socket between client and daemon whose connections can be cut, held up, and made to lose answers. */

import { once } from "node:events";
import net from "node:net";
import path from "node:path";

import { findDaemon } from "../src/node.js";
import type { Daemon } from "./daemon.js";

export class Proxy {
  readonly url: string;
  #server: net.Server;
  #pairs = new Set<[net.Socket, net.Socket]>();

  private constructor(daemon: Daemon, name: string) {
    this.url = `unix:${name}`;
    this.#server = net.createServer((near) => void this.#join(daemon, near)).listen(name);
  }

  static async before(daemon: Daemon, name = "proxy"): Promise<Proxy> {
    const proxy = new Proxy(daemon, path.join(daemon.base, name));
    await once(proxy.#server, "listening");
    return proxy;
  }

  async #join(daemon: Daemon, near: net.Socket): Promise<void> {
    near.on("error", () => {});
    const card = await findDaemon(daemon.config);
    const far = net.connect({ path: card?.socket ?? "/nowhere" });
    const pair: [net.Socket, net.Socket] = [near, far];
    this.#pairs.add(pair);
    const over = (): void => {
      near.destroy();
      far.destroy();
      this.#pairs.delete(pair);
    };
    near.on("close", over);
    far.on("error", over).on("close", over);
    near.pipe(far);
    far.pipe(near);
  }

  cut(): void {
    for (const [near] of [...this.#pairs]) near.destroy();
  }

  /** The daemon's words go nowhere from here on, until `cut`. Resolves when it has said something. */
  async lose(): Promise<void> {
    const heard = [...this.#pairs].map(([near, far]) => {
      far.unpipe(near);
      far.resume();
      return once(far, "data");
    });
    await Promise.race(heard);
  }

  /** The client reads nothing until `flow`. */
  hold(): void {
    for (const [near, far] of this.#pairs) {
      far.unpipe(near);
      far.pause();
    }
  }

  flow(): void {
    for (const [near, far] of this.#pairs) far.pipe(near);
  }

  end(): void {
    this.#server.close();
    this.cut();
  }
}
