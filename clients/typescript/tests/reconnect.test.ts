import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { ConnectionLost, newKey, type Client, type ScopeEvent } from "../src/node.js";
import { Daemon, first } from "./daemon.js";
import { Proxy } from "./proxy.js";

let daemon: Daemon;
let proxy: Proxy;
let client: Client;
let other: Client;

beforeAll(async () => {
  daemon = await Daemon.start();
  proxy = await Proxy.before(daemon);
  other = await daemon.connect({ name: "other" });
});
beforeEach(async () => {
  client = await daemon.connect({ url: proxy.url });
});
afterEach(() => client.close());
afterAll(async () => {
  proxy.end();
  await daemon.end();
});

const opened = (): Promise<unknown> =>
  first<string>(
    (listener) => client.on("state", listener),
    (state) => state === "open",
  );

test("what happened while the connection was cut comes when it is back, once", async () => {
  const heard: string[] = [];
  const subscription = await client.subscribe({ workspace: "ws", topics: ["labels"] }, (event) =>
    heard.push(describe(event)),
  );
  await other.call("labels/create", { value: { name: "Before" } });
  await client.call("daemon/sync", { workspace: "ws" });
  const back = opened();
  proxy.cut();
  await other.call("labels/create", { value: { name: "Meanwhile" } });
  await back;
  await other.call("labels/create", { value: { name: "After" } });
  await client.call("daemon/sync", { workspace: "ws" });
  expect(heard).toEqual(["labels/didCreate Before", "labels/didCreate Meanwhile", "labels/didCreate After"]);
  subscription.close();
});

test("after a restart it is said that the list has to be read again", async () => {
  const heard: string[] = [];
  await client.subscribe({ workspace: "ws", topics: ["labels"] }, (event) => heard.push(describe(event)));
  const back = opened();
  await daemon.restart();
  await back;
  await client.call("labels/create", { value: { name: "After" } });
  expect(heard).toEqual(["events/didLapse epoch", "labels/didCreate After"]);
});

test("a call made while there is no connection is answered by the next one", async () => {
  const lost = first<string>(
    (listener) => client.on("state", listener),
    (state) => state === "lost",
  );
  await daemon.kill();
  await lost;
  const waiting = client.call("labels/create", { value: { name: "Patience" } });
  await daemon.start();
  expect((await waiting).item.value["name"]).toBe("Patience");
});

test("a change whose answer was lost is made once and answered", async () => {
  const made = client.call("sessions/create", { value: { name: "Once" } });
  await proxy.lose();
  proxy.cut();
  const { item } = await made;
  const { items } = await other.call("sessions/list", { filter: { name: "Once" } });
  expect(items.map(({ id }) => id)).toEqual([item.id]);
});

test("a change whose answer was lost with the daemon is not made again, and that is said", async () => {
  const made = client.call("sessions/create", { value: { name: "Perhaps" } }).catch((error: unknown) => error);
  await proxy.lose();
  await daemon.kill();
  proxy.cut();
  await daemon.start();
  const failure = await made;
  expect(failure).toBeInstanceOf(ConnectionLost);
  expect((failure as ConnectionLost).maybeDone).toBe(true);
});

test("a read whose answer was lost is read again, and what is neither is not", async () => {
  const read = client.call("sessions/list");
  await proxy.lose();
  proxy.cut();
  expect((await read).total).toBeGreaterThan(0);
  const release = client.call("daemon/release");
  await proxy.lose();
  proxy.cut();
  await expect(release).rejects.toMatchObject({ name: "ConnectionLost", maybeDone: true });
});

test("without reconnecting, the end of the connection is the end of the client", async () => {
  const once = await daemon.connect({ url: proxy.url, reconnect: false });
  const closed = first<string>(
    (listener) => once.on("state", listener),
    (state) => state === "closed",
  );
  const subscription = await once.subscribe({ workspace: "ws" });
  proxy.cut();
  await closed;
  await expect(once.call("sessions/list")).rejects.toBeInstanceOf(ConnectionLost);
  await expect(subscription[Symbol.asyncIterator]().next()).rejects.toBeInstanceOf(ConnectionLost);
});

test("a key that the caller gave is the one that is used", async () => {
  const key = newKey();
  const heard: unknown[] = [];
  await client.subscribe({ workspace: "ws", topics: ["labels"] }, (event) =>
    heard.push((event.params as { origin?: { key?: string } }).origin?.key),
  );
  await client.call("labels/create", { value: { name: "Keyed" }, key });
  await client.call("labels/create", { value: { name: "Keyed by itself" } });
  expect(heard[0]).toBe(key);
  expect(heard[1]).toMatch(/^[0-9a-f]{32}$/);
});

function describe(event: ScopeEvent): string {
  if (event.method === "events/didLapse") return `${event.method} ${event.params.reason}`;
  return event.method === "labels/didCreate"
    ? `${event.method} ${String(event.params.item.value["name"])}`
    : event.method;
}
