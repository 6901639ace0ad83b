// @ts-check
/**
 * Serves this page and the built client, and nothing else. `npm run example` prints the address to open, with the token
 * of this machine in its fragment if the daemon listens for WebSockets.
 */

import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const DIST = path.join(HERE, "../../dist");
const TYPES = /** @type {Record<string, string>} */ ({
  ".html": "text/html",
  ".css": "text/css",
  ".js": "text/javascript",
  ".map": "application/json",
});

/** @param {number} port @returns {Promise<http.Server>} */
export function serve(port) {
  const server = http.createServer(async (request, response) => {
    const asked = (request.url ?? "").replace(/[?#].*/, "");
    const [known, folder, name = "index.html"] = /^\/(client\/)?([a-z]+\.(?:html|css|js|js\.map))?$/.exec(asked) ?? [];
    const file = path.join(folder ? DIST : HERE, name);
    try {
      if (known === undefined) throw new Error("no such file");
      const content = await readFile(file);
      response
        .writeHead(200, { "content-type": `${TYPES[path.extname(file)]}; charset=utf-8`, "cache-control": "no-store" })
        .end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(server)));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { findDaemon, localToken } = await import("@craftd/client/node");
  await serve(8765);
  const origin = "http://127.0.0.1:8765";
  const listener = (await findDaemon())?.listeners?.find(({ kind }) => kind === "ws");
  if (listener) {
    const known = new URLSearchParams({ url: `ws://${listener.address}`, token: (await localToken()) ?? "" });
    console.log(`Open ${origin}/#${known}`);
  }
  console.log(`${listener ? "If it is refused, or later" : `Open ${origin} after`}: craftd serve --ws 127.0.0.1:4712 --allow-origin ${origin}`);
}
