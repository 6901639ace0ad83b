import { expect, test } from "vitest";

import { Decoder, encode } from "../src/framing.js";

const TEXTS = [
  '{"a":"plain"}',
  '{"a":"äöü € 𝄞 \\ud800"}',
  "{}",
  JSON.stringify({ long: "ß".repeat(70_000) }),
  '{"a":"\\r\\n\\r\\nContent-Length: 3\\r\\n\\r\\n"}',
];

function bytes(texts: string[]): Uint8Array {
  return Uint8Array.from(texts.flatMap((text) => [...encode(text)]));
}

test("the length counts bytes, not characters", () => {
  expect(new TextDecoder().decode(encode('"€"'))).toBe('Content-Length: 5\r\n\r\n"€"');
});

test("what is a lone surrogate in a string travels escaped", () => {
  const text = JSON.stringify({ a: "x\ud800y" });
  expect(new Decoder().feed(encode(text))).toEqual([text]);
  expect(JSON.parse(text)).toEqual({ a: "x\ud800y" });
});

test.each([1, 2, 3, 7, 1000, 1 << 20])("messages are found in chunks of %i bytes", (size) => {
  const stream = bytes(size < 1000 ? TEXTS.filter((text) => text.length < 1000) : TEXTS);
  const decoder = new Decoder();
  const found: string[] = [];
  for (let at = 0; at < stream.length; at += size) found.push(...decoder.feed(stream.slice(at, at + size)));
  expect(found).toEqual(size < 1000 ? TEXTS.filter((text) => text.length < 1000) : TEXTS);
});

test("other headers and any case are read over", () => {
  const stream = new TextEncoder().encode("content-type: x; charset=utf-8\r\ncontent-length : 2\r\n\r\n{}");
  expect(new Decoder().feed(stream)).toEqual(["{}"]);
});

test.each([
  "HTTP/1.1 400 Bad Request\r\n\r\n",
  "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
  "Content-Length: -1\r\n\r\n",
  "Content-Length: 9999999999\r\n\r\n",
  "x".repeat(5000),
])("what is no message is refused: %j", (text) => {
  expect(() => new Decoder().feed(new TextEncoder().encode(text))).toThrow("holds no messages");
});

test("invalid UTF-8 is refused", () => {
  const stream = Uint8Array.from([...new TextEncoder().encode("Content-Length: 1\r\n\r\n"), 0xff]);
  expect(() => new Decoder().feed(stream)).toThrow();
});
