import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, expect, test } from "vitest";

import { Daemon } from "./daemon.js";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

let daemon: Daemon;

beforeAll(async () => {
  daemon = await Daemon.start();
});
afterAll(() => daemon.end());

test("the example for Node prints sessions and then messages as they come", async () => {
  const client = await daemon.connect();
  const { item } = await client.call("sessions/create", { value: { name: "Plan the move" } });
  const example = spawn(process.execPath, ["examples/node-follow.mjs", daemon.folder("ws")], { cwd: PACKAGE, env: daemon.env });
  const lines: string[] = [];
  try {
    for await (const line of createInterface({ input: example.stdout })) {
      lines.push(line);
      if (line.startsWith("* following")) await client.call("messages/append", { session: item.id, messages: [{ type: "user", content: "Where do we begin?" }] });
      if (line.includes("begin")) break;
    }
  } finally {
    example.kill();
  }
  expect(lines).toEqual(["- Plan the move", "* following ws", "Plan the move > user: Where do we begin?"]);
});

test("what a browser loads needs nothing of Node", async () => {
  const code = 'const { Client } = await import("@craftd/client"); console.log(typeof Client, process.moduleLoadList.filter((name) => /NativeModule (net|tls|child_process)$/.test(name)).length)';
  const run = spawn(process.execPath, ["--input-type=module", "-e", code], { cwd: PACKAGE });
  let said = "";
  for await (const chunk of run.stdout) said += chunk;
  expect(said.trim()).toBe("function 0");
});
