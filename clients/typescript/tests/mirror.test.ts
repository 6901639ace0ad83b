import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import {
  canonical,
  ConnectionLost,
  CraftdError,
  Mirror,
  type Client,
  type JsonObject,
  type MirrorChange,
  type Noun,
} from "../src/node.js";
import { Daemon, first } from "./daemon.js";
import { Proxy } from "./proxy.js";

const NOUNS: Noun[] = ["sessions", "labels", "statuses", "skills"];

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

async function newSession(name: string): Promise<string> {
  return (await other.call("sessions/create", { value: { name } })).item.id;
}

async function append(session: string, ...texts: string[]): Promise<void> {
  await other.call("messages/append", { session, messages: texts.map((content) => ({ type: "user", content })) });
}

/** What a client that has never heard an event is told. */
async function fresh(noun: Noun): Promise<string[]> {
  const found: string[] = [];
  for await (const { id, version, value } of other.pages(`${noun}/list`, { fields: ["*"] }))
    found.push(canonical({ id, version, value }));
  return found.sort();
}

async function transcript(session: string): Promise<JsonObject[] | undefined> {
  const found: JsonObject[] = [];
  try {
    for await (const { value, info } of other.pages("messages/list", { session, fields: ["*"] }))
      if (!info?.["raw"]) found.push(value);
  } catch (error) {
    if ((error as CraftdError).name === "NotFound") return undefined;
    throw error;
  }
  return found;
}

async function expectEqual(mirror: Mirror, sessions: string[]): Promise<void> {
  await mirror.sync();
  for (const noun of NOUNS)
    expect([...mirror.records(noun).values()].map(canonical).sort(), noun).toEqual(await fresh(noun));
  for (const session of sessions) expect(mirror.messages(session), session).toEqual(await transcript(session));
}

test("what was listed is changed by events, and listeners are told which", async () => {
  const session = await newSession("Before");
  await append(session, "one");
  const mirror = await Mirror.open(client, { workspace: "ws", nouns: ["sessions"], messages: [session] });
  expect(mirror.records("sessions").get(session)?.value["name"]).toBe("Before");
  const changes: MirrorChange[] = [];
  mirror.on((change) => changes.push(change));
  await client.call("sessions/update", { id: session, patch: { set: { name: "After" }, add: { "/labels": ["bug"] } } });
  await client.call("messages/append", { session, messages: [{ type: "user", content: "two" }] });
  expect(mirror.records("sessions").get(session)?.value).toMatchObject({
    name: "After",
    labels: ["bug"],
    messageCount: 2,
  });
  expect(mirror.messages(session)?.map(({ content }) => content)).toEqual(["one", "two"]);
  expect(changes.slice(0, 2)).toEqual([
    { noun: "sessions", id: session },
    { noun: "messages", session },
  ]);
  mirror.close();
});

test("a message that events only name is fetched whole", async () => {
  const session = await newSession("Long");
  const mirror = await Mirror.open(client, { workspace: "ws", messages: [session] });
  await append(session, "short", "x".repeat(300_000), "after");
  await mirror.sync();
  expect(mirror.messages(session)?.map(({ content }) => String(content).length)).toEqual([5, 300_000, 5]);
});

test("messages of a session can be followed later, and are gone with it", async () => {
  const [one, two] = [await newSession("One"), await newSession("Two")];
  await append(two, "there");
  const mirror = await Mirror.open(client, { workspace: "ws", messages: [one] });
  expect(() => mirror.messages(two)).toThrow(RangeError);
  await mirror.follow(two);
  expect(mirror.messages(two)).toHaveLength(1);
  await append(two, "more");
  await mirror.sync();
  expect(mirror.messages(two)).toHaveLength(2);
  await other.call("sessions/delete", { id: two });
  await mirror.sync();
  expect(mirror.messages(two)).toBeUndefined();
  await mirror.unfollow(two);
  expect(() => mirror.messages(two)).toThrow(RangeError);
});

test("a client that was not reading is told so by the daemon and lists again", async () => {
  const session = await newSession("Flood");
  const mirror = await Mirror.open(client, { workspace: "ws", nouns: NOUNS, messages: [session] });
  const lapses: unknown[] = [];
  client.on("notification", (method, params) => method === "events/didLapse" && lapses.push(params["reason"]));
  proxy.hold();
  for (let round = 0; round < 4; round++)
    await append(session, ...Array.from({ length: 15 }, () => "x".repeat(200_000)));
  await other.call("labels/create", { value: { name: "After the flood" } });
  proxy.flow();
  await expectEqual(mirror, [session]);
  expect(lapses).toEqual(["overflow"]);
});

test("the configuration that all workspaces share is mirrored too", async () => {
  const mirror = await Mirror.open(client, { nouns: ["workspaces"] });
  expect([...mirror.records("workspaces").keys()]).toEqual(["ws"]);
  await other.call("workspaces/update", { id: "ws", patch: { set: { name: "Renamed" } } });
  await mirror.sync();
  expect(mirror.records("workspaces").get("ws")?.value["name"]).toBe("Renamed");
});

test("a mirror of a workspace that was taken away says so", async () => {
  await other.call("workspaces/create", { value: { name: "Away", path: daemon.folder("away") } });
  const mirror = await Mirror.open(client, { workspace: "away", nouns: ["labels"] });
  const back = first<string>(
    (listener) => client.on("state", listener),
    (state) => state === "open",
  );
  await other.call("workspaces/delete", { id: String((await other.call("workspaces/get", { id: "away" })).item.id) });
  proxy.cut();
  await back;
  await expect(mirror.settled()).rejects.toMatchObject({ name: "NotFound" });
  expect(mirror.failure).toBeInstanceOf(CraftdError);
});

/** Numbers that follow from a seed (mulberry32), so that a failure can be had again. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** More of them: `CRAFTD_SEEDS=100 npx vitest run tests/mirror.test.ts`. */
const SEEDS = Array.from({ length: Number(process.env["CRAFTD_SEEDS"] ?? 3) }, (_, number) => number + 1);

test.each(SEEDS)(
  "after changes of all kinds and ends of all kinds the mirror is what a fresh list is (seed %i)",
  async (seed) => {
    const random = randomFrom(seed);
    const sessions = [await newSession("A"), await newSession("B"), await newSession("C")];
    const mirror = await Mirror.open(client, { workspace: "ws", nouns: NOUNS, messages: sessions });
    const own = (...names: string[]): string => path.join(daemon.folder("ws"), ...names);
    let count = 0;
    const next = (what: string): string => `${what} ${seed}.${++count}`;
    const any = <T>(choices: readonly T[]): T => choices[random(choices.length)]!;
    const idOf = (message: JsonObject | undefined): string => String(message?.["id"] ?? "none");
    const save = (file: string, text: string): void => {
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    };

    const steps: (() => unknown)[] = [
      () =>
        any([client, other]).call("messages/append", {
          session: any(sessions),
          messages: [{ type: "user", content: next("text") }],
        }),
      () =>
        any([client, other]).call("messages/append", {
          session: any(sessions),
          messages: [{ type: "user", content: next("x".repeat(270_000)) }],
        }),
      () =>
        any([client, other]).call("sessions/update", {
          id: any(sessions),
          patch: { set: { name: next("Name"), labels: [...mirror.records("labels").keys()].slice(count % 3, 5) } },
        }),
      () =>
        any([client, other]).call("sessions/update", {
          id: any(sessions),
          patch: { unset: ["/labels"], add: { "/enabledSourceSlugs": [next("s")] } },
        }),
      () => other.call("labels/create", { value: { name: next("Label") } }),
      () => other.call("labels/delete", { id: any([...mirror.records("labels").keys(), "none"]), missingOk: true }),
      () => client.call("sessions/create", { value: { name: next("Session") } }),
      () =>
        other.request("messages/update", {
          session: sessions[0],
          id: idOf(mirror.messages(sessions[0]!)?.at(-1)),
          patch: { set: { content: next("new") } },
        }),
      () => other.request("messages/delete", { session: sessions[1], id: idOf(mirror.messages(sessions[1]!)?.[0]) }),
      () =>
        existsSync(own("sessions", sessions[2]!)) &&
        appendFileSync(
          own("sessions", sessions[2]!, "session.jsonl"),
          `${JSON.stringify({ id: next("m"), type: "user", content: "theirs", timestamp: 1 })}\n`,
        ),
      () => {
        const file = own("sessions", sessions[1]!, "session.jsonl");
        const [head = "", ...lines] = readFileSync(file, "utf8").split("\n").filter(Boolean);
        save(
          file,
          [JSON.stringify({ ...JSON.parse(head), name: next("Their name") }), ...lines.slice(random(2)), ""].join("\n"),
        );
      },
      () => {
        const file = own("labels", "config.json");
        if (existsSync(file))
          save(
            file,
            JSON.stringify({
              ...JSON.parse(readFileSync(file, "utf8")),
              labels: [{ id: `their-${count}`, name: next("Theirs") }],
            }),
          );
      },
      () => {
        const folder = own("skills", `skill-${random(3)}`);
        if (random(3) === 0) return rmSync(folder, { recursive: true, force: true });
        mkdirSync(folder, { recursive: true });
        writeFileSync(path.join(folder, "SKILL.md"), `---\nname: n\ndescription: ${next("d")}\n---\nText\n`);
      },
      () => proxy.cut(),
      () => mirror.sync(),
    ];

    const running: Promise<unknown>[] = [];
    for (let number = 0; number < 50; number++) {
      if (number === 25 || random(60) === 0) await daemon.restart(any(["SIGKILL", "SIGTERM"]));
      const step = any(steps);
      const done = (async () => step())().catch((error: unknown) => {
        // Refused, or gone down with a daemon: what is in the mirror has to be true all the same.
        if (!(error instanceof CraftdError || error instanceof ConnectionLost)) throw error;
      });
      running.push(done);
      if (random(3) === 0) await done;
    }
    await Promise.all(running);
    await expectEqual(mirror, sessions);
  },
  120_000,
);
