import { expect, test } from "vitest";

import {
  ConnectionLost,
  CraftdError,
  type Client,
  type Item,
  type JsonObject,
  type Page,
  type ScopeEvent,
} from "../src/index.js";
import { ListedNoun, ListedTranscript, type Listed } from "../src/listed.js";

const EPOCH = "e1";

/** Lists what it is given, and lets something happen after each page. */
function listing(pages: { revision: number; items: Item[]; then?: () => void }[]): Client {
  const asked: JsonObject[] = [];
  const request = async (_: string, params: JsonObject): Promise<Page> => {
    const number = Number(params["cursor"] ?? 0);
    asked.push(params);
    const { revision, items, then } = pages[number]!;
    queueMicrotask(() => then?.());
    const page = { epoch: EPOCH, revision, items };
    return number + 1 < pages.length ? { ...page, nextCursor: String(number + 1) } : page;
  };
  return { request } as unknown as Client;
}

function event(method: string, revision: number, params: JsonObject, epoch = EPOCH): ScopeEvent {
  return { method, params: { workspace: "ws", epoch, revision, ...params } } as unknown as ScopeEvent;
}

function item(id: string, value: JsonObject): Item {
  return { id, version: `v-${JSON.stringify(value)}`, value };
}

function change(id: string, revision: number, patch: JsonObject): ScopeEvent {
  return event("labels/didChange", revision, { changes: [{ id, version: "new" }], patch });
}

async function listed<L extends Listed>(list: L, client: Client): Promise<boolean> {
  list.begin();
  return (await list.list(client, {}))();
}

function labels(): ListedNoun {
  return new ListedNoun("labels", () => {});
}

function messages(): ListedTranscript {
  return new ListedTranscript(
    "s",
    () => {},
    () => {},
  );
}

const said = (...ids: string[]): Item[] => ids.map((id) => item(id, { id }));
const ids = (list: ListedTranscript): unknown[] | undefined => list.messages?.map(({ id }) => id);

test("an event that came between two pages is applied to what was listed before it, and not to what was after", async () => {
  const list = labels();
  const happens = (): void => {
    list.take(change("a", 6, { set: { n: 2 } }));
    list.take(change("z", 7, { remove: { "/l": [1] }, add: { "/l": [1] } }));
  };
  const fits = await listed(
    list,
    listing([
      { revision: 5, items: [item("a", { n: 1 })], then: happens },
      { revision: 7, items: [item("z", { l: [1, 2] })] },
    ]),
  );
  expect(fits).toBe(true);
  expect([...list.items.values()].map(({ value }) => value)).toEqual([{ n: 2 }, { l: [1, 2] }]);
});

test("what was made and deleted between two pages is there and not there", async () => {
  const list = labels();
  const happens = (): void => {
    list.take(event("labels/didCreate", 6, { item: item("b", {}) }));
    list.take(event("labels/didDelete", 7, { id: "a" }));
    list.take(event("labels/didDelete", 8, { id: "z" }));
    list.take(event("labels/didCreate", 9, { item: item("z", { again: true }) }));
  };
  await listed(
    list,
    listing([
      { revision: 5, items: [item("a", {})], then: happens },
      { revision: 9, items: [item("z", { again: true })] },
    ]),
  );
  expect([...list.items.keys()].sort()).toEqual(["b", "z"]);
});

test("an event from before the list changes nothing", async () => {
  const list = labels();
  await listed(list, listing([{ revision: 5, items: [] }]));
  expect(list.take(event("labels/didCreate", 5, { item: item("a", {}) }))).toBe(true);
  expect(list.items.size).toBe(0);
});

test.each([
  ["a record that is not there", change("b", 6, { set: {} })],
  ["another epoch", event("labels/didDelete", 6, { id: "a" }, "e2")],
  ["something that is no array", change("a", 6, { add: { "/n": [1] } })],
])("an event about %s asks for the list again", async (_, wrong) => {
  const list = labels();
  await listed(list, listing([{ revision: 5, items: [item("a", { n: 1 })] }]));
  expect(list.take(wrong)).toBe(false);
});

test("messages that are on a page already are not put there twice", async () => {
  const list = messages();
  const append = (revision: number, index: number, ...added: string[]): ScopeEvent =>
    event("messages/didAppend", revision, {
      session: "s",
      index,
      messages: added.map((id) => ({ id })),
      count: index + added.length,
    });
  const happens = (): void => {
    list.take(append(5, 1, "b"));
    list.take(append(6, 2, "c", "d"));
    list.take(append(7, 4, "e"));
  };
  const fits = await listed(
    list,
    listing([
      { revision: 5, items: said("a", "b"), then: happens },
      { revision: 5, items: said("c") },
    ]),
  );
  expect([fits, ids(list)]).toEqual([true, ["a", "b", "c", "d", "e"]]);
});

test.each([
  ["a gap", { index: 3, messages: [{ id: "x" }], count: 4 }],
  ["another message in its place", { index: 1, messages: [{ id: "x" }], count: 2 }],
  ["a message that is there elsewhere", { index: 2, messages: [{ id: "a" }], count: 3 }],
])("messages with %s ask for the list again", async (_, wrong) => {
  const list = messages();
  await listed(list, listing([{ revision: 5, items: said("a", "b") }]));
  expect(list.take(event("messages/didAppend", 6, { session: "s", ...wrong }))).toBe(false);
});

test("lines that cannot be read are no messages, and a session that is not there has none", async () => {
  const list = messages();
  await listed(list, listing([{ revision: 5, items: [...said("a"), { ...item("~12", {}), info: { raw: "{" } }] }]));
  expect(ids(list)).toEqual(["a"]);
  const missing = new CraftdError({ code: 1001, message: "gone" });
  await listed(list, { request: () => Promise.reject(missing) } as unknown as Client);
  expect(list.messages).toBeUndefined();
  await expect(
    listed(list, { request: () => Promise.reject(new ConnectionLost("x")) } as unknown as Client),
  ).rejects.toThrow("x");
});

test("a message that was only named is filled, with what changed meanwhile on top", async () => {
  const list = messages();
  await listed(list, listing([{ revision: 5, items: [] }]));
  list.take(
    event("messages/didAppend", 6, {
      session: "s",
      index: 0,
      messages: [{ id: "m", type: "user", omitted: 300_000 }],
      count: 1,
    }),
  );
  for (const [revision, n] of [
    [7, 1],
    [9, 2],
  ]) {
    list.take(
      event("messages/didChange", revision!, {
        session: "s",
        changes: [{ id: "m", version: "v" }],
        patch: { set: { [`n${n}`]: n } },
      }),
    );
  }
  list.fill("m", { id: "m", content: "long", n1: 1 }, 8);
  expect(list.messages).toEqual([{ id: "m", content: "long", n1: 1, n2: 2 }]);
  list.fill("m", { id: "m", content: "late" }, 8);
  expect(list.messages).toHaveLength(1);
  expect(list.messages?.[0]?.["content"]).toBe("long");
});

test("messages are changed and deleted by their first id or their place, damaged lines are none", async () => {
  const list = messages();
  await listed(list, listing([{ revision: 5, items: said("a", "b", "a") }]));
  const change = (revision: number, id: string, patch: object) =>
    list.take(event("messages/didChange", revision, { session: "s", changes: [{ id, version: "v" }], patch }));
  const remove = (revision: number, id: string) =>
    list.take(event("messages/didDelete", revision, { session: "s", id }));
  expect(change(6, "a", { set: { n: 1 } })).toBe(true);
  expect(change(7, "#2", { set: { n: 2 } })).toBe(true);
  expect(list.messages?.map(({ n }) => n)).toEqual([1, undefined, 2]);
  expect([remove(8, "a"), remove(9, "~120"), remove(10, "#1")]).toEqual([true, true, true]);
  expect(ids(list)).toEqual(["b"]);
  expect([change(11, "x", {}), remove(12, "#7"), remove(13, "gone already")]).toEqual([false, false, true]);
});

test("a change that is too large to be sent leaves a name to fetch", async () => {
  const list = messages();
  await listed(list, listing([{ revision: 5, items: [item("m", { id: "m", type: "user", content: "short" })] }]));
  const patch = { unset: ["/content"], set: { omitted: 300_000 } };
  list.take(event("messages/didChange", 6, { session: "s", changes: [{ id: "m", version: "v" }], patch }));
  expect(list.messages).toEqual([{ id: "m", type: "user", omitted: 300_000 }]);
  list.fill("m", { id: "m", type: "user", content: "long" }, 6);
  expect(list.messages).toEqual([{ id: "m", type: "user", content: "long" }]);
});
