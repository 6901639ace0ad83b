/** The examples of README.md, as a program: a test runs it, and compares the texts. */

import { connect, CraftdError, ConnectionLost, Mirror, type Client } from "@craftd/client/node";

export async function calls(client: Client, report: (...said: unknown[]) => void): Promise<string> {
  const { item } = await client.call("sessions/create", { value: { name: "Plan the move", labels: ["writing"] } });
  await client.api.messages.append({ session: item.id, messages: [{ type: "user", content: "Where do we begin?" }] });
  for await (const { id, value } of client.pages("sessions/list", { filter: { label: "content" } })) {
    report(id, value["name"]);
  }
  return item.id;
}

export async function conflicts(client: Client, id: string): Promise<void> {
  const { item } = await client.call("sessions/get", { id });
  const patch = { set: { sessionStatus: "done" }, add: { "/labels": ["priority::1"] } };
  try {
    await client.call("sessions/update", { id, expectedVersion: item.version, patch }, { timeoutMs: 5_000 });
  } catch (error) {
    if (error instanceof CraftdError && error.name === "VersionConflict") {
      // Somebody was faster: `error.data.current` has the record as it is now.
    } else if (error instanceof ConnectionLost && error.maybeDone) {
      // It was sent, and its answer went down with the daemon: read before you send it again.
    } else throw error;
  }
}

export async function events(client: Client, report: (...said: unknown[]) => void): Promise<void> {
  const subscription = await client.subscribe({ workspace: "notes", topics: ["sessions", "messages"] });
  for await (const event of subscription) {
    if (event.method === "messages/didAppend") {
      report(event.params.session, event.params.messages.length);
      if (event.params.count >= 2) break;
    } else if (event.method === "events/didLapse") {
      report("list again", event.params.reason);
    }
  }
}

export async function mirrors(client: Client, id: string, report: (...said: unknown[]) => void): Promise<Mirror> {
  const mirror = await Mirror.open(client, { workspace: "notes", nouns: ["sessions", "labels"], messages: [id] });
  mirror.on((change) => report(change));
  report(mirror.records("sessions").get(id)?.value["name"], mirror.messages(id)?.length);
  return mirror;
}

export async function main(): Promise<Client> {
  const client = await connect({ name: "board", workspaces: [{ id: "notes" }] });
  return client;
}
