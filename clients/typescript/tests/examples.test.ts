import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, expect, test, vi } from "vitest";

import * as readme from "../examples/readme.js";
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
  const example = spawn(process.execPath, ["examples/node-follow.mjs", daemon.folder("ws")], {
    cwd: PACKAGE,
    env: daemon.env,
  });
  const lines: string[] = [];
  try {
    for await (const line of createInterface({ input: example.stdout })) {
      lines.push(line);
      if (line.startsWith("* following"))
        await client.call("messages/append", {
          session: item.id,
          messages: [{ type: "user", content: "Where do we begin?" }],
        });
      if (line.includes("begin")) break;
    }
  } finally {
    example.kill();
  }
  expect(lines).toEqual(["- Plan the move", "* following ws", "Plan the move > user: Where do we begin?"]);
});

test("what a browser loads needs nothing of Node", async () => {
  const code =
    'const { Client } = await import("@craftd/client"); console.log(typeof Client, process.moduleLoadList.filter((name) => /NativeModule (net|tls|child_process)$/.test(name)).length)';
  const run = spawn(process.execPath, ["--input-type=module", "-e", code], { cwd: PACKAGE });
  let said = "";
  for await (const chunk of run.stdout) said += chunk;
  expect(said.trim()).toBe("function 0");
});

test("the examples of README.md are those that are run", () => {
  const lines = readFileSync(`${PACKAGE}/examples/readme.ts`, "utf8").split("\n");
  const program = lines.map((line) => line.replace(/^ {2}/, "")).join("\n");
  const blocks = [...readFileSync(`${PACKAGE}/README.md`, "utf8").matchAll(/^```ts\n(.*?)^```$/gms)].map(
    ([, block]) => block,
  );
  expect(blocks).toHaveLength(5);
  for (const block of blocks) expect(program).toContain(block);
});

test("the examples of README.md do what it says", async () => {
  const client = await daemon.connect();
  await client.call("workspaces/create", { value: { name: "Notes", path: daemon.folder("notes") } }); // its slug is what they name
  vi.stubEnv("CRAFT_CONFIG_DIR", daemon.config);
  const notes = await readme.main();
  const said: unknown[][] = [];
  const report = (...words: unknown[]): unknown => said.push(words);
  const session = await readme.calls(notes, report);
  expect(said.splice(0)).toEqual([[session, "Plan the move"]]);
  await readme.conflicts(notes, session);
  const mirror = await readme.mirrors(notes, session, report);
  expect(said.splice(0)).toEqual([["Plan the move", 1]]);
  let heard = false;
  const listening = readme.events(notes, report).then(() => (heard = true));
  while (!heard) {
    // It may not have subscribed yet: what came before is not told again.
    await notes.call("messages/append", { session, messages: [{ type: "user", content: "And then?" }] });
  }
  await listening;
  expect(said).toContainEqual([session, 1]);
  expect(said).toContainEqual([{ noun: "messages", session }]);
  expect(mirror.records("sessions").get(session)?.value).toMatchObject({
    sessionStatus: "done",
    labels: ["writing", "priority::1"],
  });
  notes.close();
});
