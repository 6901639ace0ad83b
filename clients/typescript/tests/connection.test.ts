import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Client, type JsonObject, type ScopeEvent, type Transport, type TransportEvents } from "../src/index.js";
import { lapse, Subscription, union } from "../src/subscription.js";

/** A daemon that says what the test wants. */
class Fake implements Transport {
  readonly sent: any[] = [];
  #events!: TransportEvents;
  isAlive = true;

  constructor(readonly isRemote = false) {}

  start(events: TransportEvents): void {
    this.#events = events;
  }

  send(text: string): void {
    const message = JSON.parse(text);
    this.sent.push(message);
    if (!this.isAlive) return;
    if (message.method === "initialize") {
      this.answer(message.id, { capabilities: { experimental: { craft: { epoch: "e", pid: 1 } } } });
    } else if (message.method === "daemon/hello") this.answer(message.id, {});
  }

  close(): void {
    queueMicrotask(() => this.#events.closed(undefined));
  }

  say(message: JsonObject): void {
    this.sayText(JSON.stringify({ jsonrpc: "2.0", ...message }));
  }

  sayText(text: string): void {
    this.#events.message(text);
  }

  answer(id: number, result: unknown): void {
    queueMicrotask(() => this.say({ id, result }));
  }

  last(method: string): any {
    return this.sent.findLast((message) => message.method === method);
  }
}

let fake: Fake;
let client: Client;
let dials: Fake[];

beforeEach(async () => {
  dials = [];
  client = await Client.connect(
    async () => {
      dials.push((fake = new Fake(true)));
      return fake;
    },
    { name: "test", token: "secret" },
  );
});
afterEach(() => {
  vi.useRealTimers();
  client.close();
});

test("what initialize is sent is what the options say", () => {
  expect(fake.sent.map(({ method }) => method)).toEqual(["initialize", "initialized"]);
  expect(fake.sent[0].params).toMatchObject({
    clientInfo: { name: "test" },
    initializationOptions: { craft: { token: "secret" } },
  });
});

test("requests of the daemon are answered, those that nobody knows with an error", () => {
  fake.say({ id: "a", method: "client/registerCapability", params: {} });
  fake.say({ id: 7, method: "window/showDocument", params: {} });
  expect(fake.sent.slice(-2)).toMatchObject([
    { id: "a", result: null },
    { id: 7, error: { code: -32601 } },
  ]);
});

test("a call that is given up is taken back by its id", async () => {
  const stop = new AbortController();
  const call = client.call("sessions/list", {}, { signal: stop.signal });
  const { id } = fake.last("sessions/list");
  stop.abort(new Error("enough"));
  await expect(call).rejects.toThrow("enough");
  expect(fake.last("$/cancelRequest").params).toEqual({ id });
  fake.say({ id, error: { code: -32800, message: "cancelled" } }); // nobody waits for it
});

test("parts and progress go to the call that asked for them, and to no other", async () => {
  const [parts, progress, others]: JsonObject[][] = [[], [], []];
  const call = client.call(
    "sessions/list",
    {},
    { onPart: (value) => parts!.push(value), onProgress: (value) => progress!.push(value) },
  );
  const other = client.call("sessions/list", {}, { onPart: (value) => others!.push(value) });
  const [one, two] = fake.sent.filter(({ method }) => method === "sessions/list");
  fake.say({ method: "$/progress", params: { token: one.params.partialResultToken, value: { items: [1] } } });
  fake.say({ method: "$/progress", params: { token: one.params.workDoneToken, value: { kind: "begin" } } });
  fake.answer(one.id, { items: [] });
  fake.answer(two.id, { items: [] });
  await Promise.all([call, other]);
  fake.say({ method: "$/progress", params: { token: one.params.partialResultToken, value: { items: [2] } } });
  expect([parts, progress, others]).toEqual([[{ items: [1] }], [{ kind: "begin" }], []]);
});

test("an error that names no request reaches all that wait", async () => {
  const call = client.call("sessions/list");
  fake.say({ id: null, error: { code: -32700, message: "no JSON", data: { code: "ParseError", retryable: false } } });
  await expect(call).rejects.toMatchObject({ name: "ParseError", code: -32700 });
});

test("what is no JSON ends the connection, and the call goes to the next one", async () => {
  const call = client.call("sessions/list");
  fake.sayText("{");
  await vi.waitFor(() => expect(dials).toHaveLength(2));
  await vi.waitFor(() => expect(fake.last("sessions/list")).toBeDefined());
  fake.answer(fake.last("sessions/list").id, { items: [] });
  expect((await call).items).toEqual([]);
});

test("a remote daemon that says nothing is asked, and given up when it says nothing then", async () => {
  vi.useFakeTimers();
  client.close();
  client = await Client.connect(async () => (fake = new Fake(true)), { name: "test", reconnect: false });
  const states: string[] = [];
  client.on("state", (state) => states.push(state));
  await vi.advanceTimersByTimeAsync(300_000);
  expect(fake.sent.filter(({ method }) => method === "daemon/hello").length).toBeGreaterThan(3);
  expect(states).toEqual([]);
  fake.isAlive = false;
  await vi.advanceTimersByTimeAsync(90_000);
  expect(states).toEqual(["closed"]);
});

test("a call does not wait for a connection for ever", async () => {
  client.close();
  let isFirst = true;
  const dial = async (): Promise<Transport> => {
    if (!isFirst) throw new Error("nobody there");
    isFirst = false;
    return (fake = new Fake());
  };
  client = await Client.connect(dial, { name: "test", patienceMs: 50 });
  fake.close();
  await vi.waitFor(() => expect(client.connected).toBe(false));
  await expect(client.call("sessions/list")).rejects.toMatchObject({ name: "ConnectionLost", maybeDone: false });
});

test("what a daemon refuses because it stops is done by the next one", async () => {
  const call = client.call("labels/create", { value: { name: "x" } });
  const refusal = { code: -32802, message: "the daemon stops", data: { code: "ServerCancelled", retryable: true } };
  fake.say({ id: fake.last("labels/create").id, error: refusal });
  fake.close();
  await vi.waitFor(() => expect(dials).toHaveLength(2));
  await vi.waitFor(() => expect(fake.last("labels/create")).toBeDefined());
  fake.answer(fake.last("labels/create").id, { revision: 1 });
  expect(await call).toEqual({ revision: 1 });
});

test("messages that have ids are sent again to another daemon, others are not", async () => {
  let epoch = 0;
  client.close();
  client = await Client.connect(
    async () => {
      const next = new Fake();
      const number = ++epoch;
      const send = next.send.bind(next);
      next.send = (text) => {
        const message = JSON.parse(text);
        if (message.method !== "initialize") return send(text);
        next.sent.push(message);
        next.answer(message.id, { capabilities: { experimental: { craft: { epoch: `e${number}`, pid: number } } } });
      };
      return (fake = next);
    },
    { name: "test" },
  );
  const known = client.call("messages/append", { session: "s", messages: [{ id: "m1" }] });
  const unknown = client
    .call("messages/append", { session: "s", messages: [{ content: "x" }] })
    .catch((error: unknown) => error);
  fake.close();
  await vi.waitFor(() => expect(epoch).toBe(2));
  await vi.waitFor(() => expect(fake.last("messages/append")).toBeDefined());
  fake.answer(fake.last("messages/append").id, { messages: [] });
  await known;
  expect(await unknown).toMatchObject({ name: "ConnectionLost", maybeDone: true });
  expect(fake.sent.filter(({ method }) => method === "messages/append")).toHaveLength(1);
});

test("a listener that throws does not keep events from others", async () => {
  const faults: unknown[] = [];
  const catcher = (error: unknown): void => void faults.push(error);
  const before = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException").on("uncaughtException", catcher);
  const heard: string[] = [];
  client.on("notification", () => {
    throw new Error("mine");
  });
  client.on("notification", (method) => heard.push(method));
  fake.say({ method: "daemon/didChange", params: {} });
  await vi.waitFor(() => expect(faults).toHaveLength(1));
  process.removeAllListeners("uncaughtException");
  for (const listener of before) process.on("uncaughtException", listener);
  expect(heard).toEqual(["daemon/didChange"]);
});

test("a loop that falls too far behind is told so, instead of keeping everything", async () => {
  const subscription = new Subscription({ topics: ["labels"] }, undefined, { leave: () => {}, reach: async () => {} });
  for (let revision = 1; revision <= 5000; revision++) {
    subscription.offer({
      method: "labels/didDelete",
      params: { epoch: "e", revision, at: 0, origin: { kind: "disk" }, id: "x" },
    });
  }
  const [first, second] = [
    await subscription[Symbol.asyncIterator]().next(),
    await subscription[Symbol.asyncIterator]().next(),
  ];
  expect(first.value).toEqual({
    method: "events/didLapse",
    params: { epoch: "e", revision: 4097, reason: "overflow" },
  });
  expect((second.value as ScopeEvent).params).toMatchObject({ revision: 4098 });
});

test("one subscription asks for what several want", () => {
  expect(
    union([
      { topics: ["b"], sessions: ["1"] },
      { topics: ["a", "b"], sessions: ["2"] },
    ]),
  ).toEqual({ topics: ["a", "b"], sessions: ["1", "2"] });
  expect(union([{ topics: ["a"], sessions: ["1"] }, {}])).toEqual({});
  expect(union([{}, { topics: ["files"] }])).toEqual({ topics: "*" });
  expect(union([{ topics: "*" }, { topics: ["a"], ephemeral: true }])).toEqual({ topics: "*", ephemeral: true });
  expect(lapse({ epoch: "e", revision: 3 }, { workspace: "ws" }, "journal").params).toEqual({
    workspace: "ws",
    epoch: "e",
    revision: 3,
    reason: "journal",
  });
});
