// @ts-check
/** Writes on the word into one session and prints what its mirror holds in the end. */

import { once } from "node:events";
import process from "node:process";

const { connect, Mirror } = await import(`${process.env["CLIENT"]}/dist/node.js`);
const [session, own, everybody] = process.argv.slice(2);

const client = await connect({ name: "node script", workspaces: [{ id: "notes" }] });
const mirror = await Mirror.open(client, { workspace: "notes", nouns: ["sessions"] });
await mirror.follow(session);
/** @param {() => boolean} holds */
const until = (holds) =>
  new Promise((resolve) => {
    const look = () => holds() && resolve(undefined);
    mirror.on(look);
    look();
  });

console.log("ready");
await until(() => mirror.records("sessions").get(session)?.value["name"] === "Go");
for (let n = 0; n < Number(own); n++) {
  await client.call("messages/append", { session, messages: [{ id: `node-${n}`, type: "user", content: `node ${n}` }] });
}
await until(() => mirror.messages(session).length >= Number(everybody));
process.stdout.write(`${JSON.stringify(mirror.messages(session).map((/** @type {any} */ { content }) => content))}\n`);
client.close();
if (process.stdout.writableLength > 0) await once(process.stdout, "drain");
