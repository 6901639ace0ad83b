import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { apply, canonical, equal, PatchError, type JsonObject, type Patch } from "../src/index.js";

/** The same that the daemon's own tests run. */
const VECTORS = new URL("../../../tests/vectors/patches.json", import.meta.url);

interface Vector {
  name: string;
  record: JsonObject;
  patch: Patch;
  result?: JsonObject;
}

describe("what a patch does", () => {
  const vectors: Vector[] = JSON.parse(readFileSync(VECTORS, "utf8"));
  test.each(vectors.map((vector) => [vector.name, vector] as const))("%s", (_, { record, patch, result }) => {
    const before = canonical(record);
    if (result === undefined) expect(() => apply(record, patch)).toThrow(PatchError);
    else expect(canonical(apply(record, patch))).toBe(canonical(result));
    expect(canonical(record)).toBe(before);
  });
});

test("no key reaches a prototype", () => {
  const record = JSON.parse('{"a": {"__proto__": {"b": 1}}}');
  const patch = JSON.parse(
    '{"set": {"__proto__": {"polluted": true}, "a": {"__proto__": {"c": 2}}}, "add": {"/constructor/prototype/l": [1]}}',
  );
  const result = apply(record, patch);
  expect(canonical(result)).toBe(
    '{"__proto__":{"polluted":true},"a":{"__proto__":{"b":1,"c":2}},"constructor":{"prototype":{"l":[1]}}}',
  );
  expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
  expect(({} as JsonObject)["polluted"]).toBeUndefined();
  expect(({} as JsonObject)["l"]).toBeUndefined();
});

test("inherited names are not there until somebody sets them", () => {
  expect(canonical(apply({}, { unset: ["/toString"], add: { "/valueOf": ["x"] } }))).toBe('{"valueOf":["x"]}');
});

test("the order of members is no difference, that of elements is one", () => {
  expect(equal({ a: 1, b: [1, 2] }, { b: [1, 2], a: 1 })).toBe(true);
  expect(equal([1, 2], [2, 1])).toBe(false);
  expect(equal({ a: null }, {})).toBe(false);
});
