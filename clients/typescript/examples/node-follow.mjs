// @ts-check
/**
 * Prints the sessions of a workspace and then every message as it comes, whoever writes it:
 *
 *     node examples/node-follow.mjs ~/notes
 *
 * In the main process of an Electron app it is the same, with `follow(folder, (line) => window.webContents.send(...))`.
 * The connection stays there: a renderer needs neither the socket nor a token.
 */

import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

import { connect, Mirror } from "@craftd/client/node";

/**
 * @param {string} folder a workspace folder
 * @param {(line: string) => void} show
 * @param {Partial<import("@craftd/client/node").ConnectOptions>} [options]
 * @returns {Promise<() => void>} what ends it
 */
export async function follow(folder, show, options = {}) {
  const client = await connect({ name: "follow", workspaces: [{ path: path.resolve(folder) }], ...options });
  const [workspace] = client.welcome.workspaces ?? [];
  if (!workspace) throw new Error(`${folder} is no workspace that the daemon knows`);
  client.on("state", (state, error) => show(`* ${state}${error ? `: ${error.message}` : ""}`));

  // A copy of all sessions that stays true by itself, and the messages as events.
  const mirror = await Mirror.open(client, { workspace: workspace.id, nouns: ["sessions"] });
  const nameOf = (/** @type {string} */ id) => String(mirror.records("sessions").get(id)?.value["name"] ?? id);
  for (const id of mirror.records("sessions").keys()) show(`- ${nameOf(id)}`);

  await client.subscribe({ workspace: workspace.id, topics: ["messages"] }, (event) => {
    if (event.method === "messages/didAppend") {
      for (const { type, content } of event.params.messages)
        show(`${nameOf(event.params.session)} > ${type}: ${content}`);
    } else if (event.method === "events/didLapse") {
      show(`* some messages were missed (${event.params.reason})`); // whoever shows all of them lists them again here
    }
  });
  show(`* following ${workspace.name}`);
  return () => client.close();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  // Names and messages are other people's text: nothing of it may steer the terminal.
  const show = (/** @type {string} */ line) => console.log(line.replace(/[\p{Cc}\p{Cf}]/gu, "\ufffd"));
  await follow(process.argv[2] ?? ".", show).catch((error) => {
    console.error(`follow: ${error.message}`);
    process.exit(1);
  });
}
