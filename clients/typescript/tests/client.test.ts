import { readFileSync } from "node:fs";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { WebSocket } from "ws";

import {
  CraftdError,
  ConnectionLost,
  findDaemon,
  newKey,
  type Client,
  type ConnectOptions,
  type ScopeEvent,
} from "../src/node.js";
import { CRAFTD, Daemon, ROOT } from "./daemon.js";

let daemon: Daemon;

beforeAll(async () => {
  daemon = await Daemon.start("--tcp", "127.0.0.1:0", "--ws", "127.0.0.1:0");
});
afterAll(() => daemon.end());

const WAYS: Record<string, () => Promise<Partial<ConnectOptions>>> = {
  "the Unix socket": async () => ({}),
  "an address of the Unix socket": async () => ({ url: `unix:${(await findDaemon(daemon.config))!.socket}` }),
  "standard input and output": async () => ({
    configDir: "/nowhere",
    command: ["env", `CRAFT_CONFIG_DIR=${daemon.config}`, ...CRAFTD, "stdio"],
  }),
  TCP: () => daemon.network("tcp"),
  "a WebSocket": async () => ({ ...(await daemon.network("ws")), WebSocket }),
};

test("certificates are checked, and then it is a connection like any other", async () => {
  const [cert, key] = ["cert", "key"].map((name) => `${ROOT}tests/tls/${name}.pem`) as [string, string];
  const ca = readFileSync(cert);
  const secured = await Daemon.start("--tcp", "127.0.0.1:0", "--ws", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key);
  class Trusting extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols, { ca });
    }
  }
  try {
    for (const [kind, trust] of [
      ["tcp", { tls: { ca } }],
      ["ws", { WebSocket: Trusting }],
    ] as const) {
      const { url, token } = await secured.network(kind);
      const secure = { url: url.replace("://", "s://"), token };
      await expect(secured.connect({ ...secure, WebSocket, patienceMs: 2000 })).rejects.toThrow(/certificate/);
      const client = await secured.connect({ ...secure, ...trust });
      const { item } = await client.call("sessions/create", { value: { name: "Over TLS" } });
      expect((await client.call("sessions/get", { id: item.id })).item.version).toBe(item.version);
    }
  } finally {
    await secured.end();
  }
});

describe.each(Object.entries(WAYS))("over %s", (_, way) => {
  let client: Client;
  beforeAll(async () => {
    client = await daemon.connect(await way());
  });

  test("the daemon says who it is and which workspaces are open", () => {
    expect(client.welcome.methods).toContain("sessions/list");
    expect(client.welcome.workspaces?.map(({ id, path }) => [id, path])).toEqual([["ws", daemon.folder("ws")]]);
  });

  test("a call gives what the registry says, by its name or below its noun", async () => {
    const { item } = await client.call("sessions/create", { value: { name: "Plan the move" } });
    expect(item.value["name"]).toBe("Plan the move");
    expect((await client.api.sessions.get({ id: item.id })).item.version).toBe(item.version);
  });

  test("text of every kind comes back as it was", async () => {
    const text = 'äöü € 𝄞 \ud800 "\\ \u0000 \u2028' + "ß".repeat(100_000);
    const { item } = await client.call("sessions/create", { value: { name: "x" } });
    const value = JSON.parse(`{"__proto__": {"a": null}, "text": ${JSON.stringify(text)}}`);
    await client.call("messages/append", {
      session: item.id,
      messages: [{ type: "tool", content: text, toolInput: value }],
    });
    const { items } = await client.call("messages/list", { session: item.id, fields: ["*"] });
    expect(JSON.stringify(items[0]!.value["toolInput"])).toBe(JSON.stringify(value));
  });

  test("an error has its name, its number and what the daemon said about it", async () => {
    const failure = await client.call("sessions/get", { id: "260704-no-such" }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(CraftdError);
    const { name, code, retryable, data } = failure as CraftdError;
    expect({ name, code, retryable }).toEqual({ name: "NotFound", code: 1001, retryable: false });
    expect(data["resource"]).toEqual({ noun: "sessions", id: "260704-no-such", workspace: "ws" });
  });

  test("thirty calls at once are answered each with its own", async () => {
    const names = Array.from({ length: 30 }, (_, number) => `Number ${number}`);
    const made = await Promise.all(names.map((name) => client.call("sessions/create", { value: { name } })));
    expect(made.map(({ item }) => item.value["name"])).toEqual(names);
  });

  test("the event of a change comes before its answer and carries its key", async () => {
    const heard: ScopeEvent[] = [];
    const subscription = await client.subscribe({ workspace: "ws", topics: ["labels"] }, (event) => heard.push(event));
    const key = newKey();
    const { item } = await client.call("labels/create", { value: { name: "Home" }, key });
    expect(heard).toHaveLength(1);
    const [event] = heard;
    if (event?.method !== "labels/didCreate") throw new Error(`not ${event?.method}`);
    expect([event.params.item.id, event.params.origin.key]).toEqual([item.id, key]);
    subscription.close();
  });
});

test.each(["tcp", "ws"] as const)(
  "over %s the token of this machine is taken by itself, and another one is refused",
  async (kind) => {
    const { url } = await daemon.network(kind);
    expect((await daemon.connect({ url, WebSocket })).welcome.rights).toContain("admin");
    const refused = daemon.connect({ url, WebSocket, token: "not-the-token-of-anybody" });
    await expect(refused).rejects.toMatchObject({ name: "Unauthenticated", code: 1008, retryable: false });
  },
);

test("parts of a list come before its answer", async () => {
  const client = await daemon.connect();
  const parts: unknown[] = [];
  await Promise.all(["A", "B", "C"].map((name) => client.call("sessions/create", { value: { name } })));
  const { items, revision } = await client.call(
    "sessions/list",
    { limit: 3 },
    { onPart: (part) => parts.push(...(part["items"] as unknown[])) },
  );
  expect([parts.length, items.length]).toEqual([3, 0]);
  expect(revision).toBeGreaterThan(0);
});

test("a change sent again with its key is made once", async () => {
  const client = await daemon.connect();
  const change = { value: { name: "Once" }, key: newKey() };
  const [one, other] = [await client.call("sessions/create", change), await client.call("sessions/create", change)];
  expect(one.item.id).toBe(other.item.id);
});

test("all items of a list come page by page", async () => {
  const client = await daemon.connect();
  const ids = new Set<string>();
  for await (const item of client.pages("sessions/list", { limit: 7 })) ids.add(item.id);
  const { total } = await client.call("sessions/list", { limit: 1 });
  expect(ids.size).toBe(total);
});

test("two subscriptions of one scope get each what it asked for", async () => {
  const client = await daemon.connect();
  const labels: string[] = [];
  const sessions: string[] = [];
  const one = await client.subscribe({ workspace: "ws", topics: ["labels"] }, ({ method }) => labels.push(method));
  const two = await client.subscribe({ workspace: daemon.folder("ws"), topics: ["sessions"] }, ({ method }) =>
    sessions.push(method),
  );
  await client.call("labels/create", { value: { name: "Two" } });
  await client.call("sessions/create", { value: { name: "Two" } });
  one.close();
  await client.call("labels/create", { value: { name: "Three" } });
  await client.call("sessions/create", { value: { name: "Three" } });
  expect([labels, sessions]).toEqual([["labels/didCreate"], ["sessions/didCreate", "sessions/didCreate"]]);
  two.close();
});

test("events are iterated until somebody closes the subscription", async () => {
  const client = await daemon.connect();
  const subscription = await client.subscribe({ workspace: "ws", topics: ["sessions"] });
  await client.call("sessions/create", { value: { name: "One" } });
  await client.call("sessions/create", { value: { name: "Two" } });
  const names: unknown[] = [];
  for await (const event of subscription) {
    if (event.method === "sessions/didCreate") names.push(event.params.item.value["name"]);
    if (names.length === 2) break;
  }
  expect(names).toEqual(["One", "Two"]);
});

test("who narrows to sessions hears of no others", async () => {
  const client = await daemon.connect();
  const made = await Promise.all(["a", "b"].map((name) => client.call("sessions/create", { value: { name } })));
  const [a = "", b = ""] = made.map(({ item }) => item.id);
  const heard: string[] = [];
  await client.subscribe({ workspace: "ws", topics: ["sessions", "messages"], sessions: [a] }, ({ method }) =>
    heard.push(method),
  );
  await client.subscribe({ workspace: "ws", topics: ["sessions"] }, () => {});
  for (const session of [b, a])
    await client.call("messages/append", { session, messages: [{ type: "user", content: "x" }] });
  expect(heard).toEqual(["messages/didAppend", "sessions/didChange"]);
});

test("what executors publish is told to who asks for it, and nobody else", async () => {
  const client = await daemon.connect();
  const executor = await daemon.connect({ roles: ["executor"] });
  const session = (await client.call("sessions/create", { value: { name: "Relay" } })).item.id;
  const heard: string[] = [];
  const quiet: string[] = [];
  const wanted = { workspace: "ws", topics: ["sessions", "messages"], sessions: [session] };
  await client.subscribe({ ...wanted, ephemeral: true }, ({ method }) => heard.push(method));
  const subscription = await client.subscribe(wanted, ({ method }) => quiet.push(method));
  await executor.call("sessions/publish", { session, event: { type: "tool_start", name: "x" } });
  await executor.call("messages/append", { session, messages: [{ type: "user", content: "the stored fact" }] });
  await subscription.reach();
  expect(heard).toEqual(["sessions/didPublish", "messages/didAppend", "sessions/didChange"]);
  expect(quiet).toEqual(["messages/didAppend", "sessions/didChange"]);
});

test("a call that is given up rejects with the reason, and the connection works on", async () => {
  const client = await daemon.connect();
  const stop = new AbortController();
  const waiting = client.call(
    "events/read",
    { workspace: "ws", since: { epoch: client.welcome.workspaces![0]!.epoch, revision: 1e6 }, waitMs: 60_000 },
    { signal: stop.signal },
  );
  stop.abort(new Error("never mind"));
  await expect(waiting).rejects.toThrow("never mind");
  await expect(client.call("sessions/list", {}, { signal: AbortSignal.abort(new Error("too late")) })).rejects.toThrow(
    "too late",
  );
  expect((await client.call("sessions/list", { limit: 1 })).items).toHaveLength(1);
});

test("a call has its time", async () => {
  const client = await daemon.connect();
  const { epoch, revision } = await client.call("daemon/sync", { workspace: "ws" });
  const waiting = client.call(
    "events/read",
    { workspace: "ws", topics: ["labels"], since: { epoch, revision }, waitMs: 60_000 },
    { timeoutMs: 50 },
  );
  await expect(waiting).rejects.toMatchObject({ name: "TimeoutError" });
});

test("what the daemon would hang up on is refused before it is sent", async () => {
  const client = await daemon.connect();
  let deep: unknown = 1;
  for (let level = 0; level < 250; level++) deep = [deep];
  await expect(client.call("sessions/create", { value: { deep } })).rejects.toMatchObject({ name: "TooLarge" });
  await expect(client.call("sessions/create", { value: { big: "x".repeat(17 << 20) } })).rejects.toMatchObject({
    name: "TooLarge",
  });
  expect(client.connected).toBe(true);
});

test("a client that was closed refuses, and what waited for it ends", async () => {
  const client = await daemon.connect();
  const subscription = await client.subscribe({ workspace: "ws" });
  const reading = (async () => {
    for await (const _ of subscription);
  })();
  client.close();
  await reading;
  await expect(client.call("sessions/list")).rejects.toBeInstanceOf(ConnectionLost);
});

test("a client without a daemon starts one through the bridge", async () => {
  const lonely = await Daemon.start();
  await lonely.kill("SIGTERM");
  const env = Object.entries(lonely.env)
    .filter(([name]) => ["HOME", "XDG_RUNTIME_DIR"].includes(name))
    .map(([name, value]) => `${name}=${value}`);
  const client = await lonely.connect({ command: ["env", ...env, ...CRAFTD, "stdio"] });
  expect((await client.call("workspaces/list")).items.map(({ id }) => id)).toEqual(["ws"]);
  await client.call("daemon/stop", {});
  await lonely.end();
});

test("without a daemon and without a bridge it is said what is missing", async () => {
  await expect(daemon.connect({ configDir: "/nowhere", command: ["no-such-craftd"] })).rejects.toThrow(
    "no-such-craftd cannot be started",
  );
});
