/**
 * Changes to a record as data: `{unset, set, remove, add}`, applied in that order (protocol.md, Records).
 *
 * `unset` takes pointers away; `set` merges objects deeply and replaces everything else; `remove` and `add` treat arrays
 * as sets. Records are never changed in place; results share their unchanged parts. Any key is a key like any other,
 * `__proto__` too, so members are only ever looked up and made as own members.
 */

import type { JsonObject } from "./protocol.js";

export interface Patch {
  unset?: readonly string[];
  set?: JsonObject;
  remove?: Readonly<Record<string, readonly unknown[]>>;
  add?: Readonly<Record<string, readonly unknown[]>>;
}

/** `remove` or `add` met something that is no array, or led through something that is no object. */
export class PatchError extends Error {
  override readonly name = "PatchError";
}

/** *record* after *patch*. What is not there is not unset or removed, which is no error. Throws PatchError. */
export function apply(record: JsonObject, patch: Patch): JsonObject {
  let result = record;
  for (const pointer of patch.unset ?? []) result = without(result, tokensOf(pointer));
  if (patch.set) result = merged(result, patch.set);
  for (const [pointer, elements] of Object.entries(patch.remove ?? {})) {
    const tokens = tokensOf(pointer);
    const found = find(result, tokens, pointer);
    if (found !== undefined) result = replaced(result, tokens, subtract(arrayAt(found, pointer), elements));
  }
  for (const [pointer, elements] of Object.entries(patch.add ?? {})) {
    const tokens = tokensOf(pointer);
    const found = find(result, tokens, pointer);
    result = replaced(result, tokens, unite(found === undefined ? [] : arrayAt(found, pointer), elements));
  }
  return result;
}

/** Whether two JSON values are equal; the order of members is no difference. */
export function equal(one: unknown, other: unknown): boolean {
  return one === other || canonical(one) === canonical(other);
}

/** JSON text with sorted keys: equal texts, equal values. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (isObject(value)) {
    const members = Object.keys(value)
      .sort()
      .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
    return `{${members.join(",")}}`;
  }
  return JSON.stringify(value);
}

function tokensOf(pointer: string): string[] {
  if (!/^(?:\/(?:[^~/]|~[01])*)+$/s.test(pointer))
    throw new PatchError(`${JSON.stringify(pointer)} is no JSON pointer`);
  return pointer
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A copy of *record* with *key*. The spread and a computed key make own members, even of `__proto__`. */
function withMember(record: JsonObject, key: string, value: unknown): JsonObject {
  return { ...record, [key]: value };
}

function without(record: JsonObject, tokens: readonly string[]): JsonObject {
  const [key = "", ...rest] = tokens;
  if (!Object.hasOwn(record, key)) return record;
  if (rest.length === 0) return Object.fromEntries(Object.entries(record).filter(([name]) => name !== key));
  const inner = record[key];
  if (!isObject(inner)) return record;
  const member = without(inner, rest);
  return member === inner ? record : withMember(record, key, member);
}

function merged(old: JsonObject, changes: JsonObject): JsonObject {
  const entries = Object.entries(changes).map(([key, value]): [string, unknown] => {
    const present = Object.hasOwn(old, key) ? old[key] : undefined;
    return [key, isObject(value) && isObject(present) ? merged(present, value) : value];
  });
  return { ...old, ...Object.fromEntries(entries) };
}

function find(record: JsonObject, tokens: readonly string[], pointer: string): unknown {
  let value: unknown = record;
  for (const token of tokens) {
    if (!isObject(value)) throw new PatchError(`${pointer} leads through something that is no object`);
    if (!Object.hasOwn(value, token)) return undefined;
    value = value[token];
  }
  return value;
}

function replaced(record: JsonObject, tokens: readonly string[], value: unknown): JsonObject {
  const [key = "", ...rest] = tokens;
  if (rest.length === 0) return withMember(record, key, value);
  const inner = Object.hasOwn(record, key) ? record[key] : undefined;
  return withMember(record, key, replaced(isObject(inner) ? inner : {}, rest, value));
}

function arrayAt(value: unknown, pointer: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new PatchError(`there is no array at ${pointer}`);
  return value;
}

function subtract(array: readonly unknown[], elements: readonly unknown[]): unknown[] {
  const gone = new Set(elements.map(canonical));
  return array.filter((element) => !gone.has(canonical(element)));
}

function unite(array: readonly unknown[], elements: readonly unknown[]): unknown[] {
  const seen = new Set(array.map(canonical));
  const united = [...array];
  for (const element of elements) {
    const text = canonical(element);
    if (!seen.has(text)) {
      seen.add(text);
      united.push(element);
    }
  }
  return united;
}
