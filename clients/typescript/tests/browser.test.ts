import { existsSync } from "node:fs";
import type http from "node:http";
import net, { type AddressInfo } from "node:net";

import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { serve } from "../examples/browser/serve.mjs";
import type { Client } from "../src/node.js";
import { Daemon } from "./daemon.js";

const CHROMIUM = "/usr/bin/chromium";

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe.skipIf(!existsSync(CHROMIUM))("the page in a browser", () => {
  let server: http.Server;
  let origin: string;
  let daemon: Daemon;
  let other: Client;
  let browser: Browser;
  let page: Page;
  const faults: string[] = [];

  beforeAll(async () => {
    server = await serve(0);
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    daemon = await Daemon.start("--ws", `127.0.0.1:${await freePort()}`, "--allow-origin", origin);
    other = await daemon.connect({ name: "other" });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
    page = await browser.newPage({ viewport: { width: 1100, height: 700 } });
    page.on("pageerror", (error) => faults.push(String(error)));
  });
  afterAll(async () => {
    await browser?.close();
    server?.close();
    await daemon?.end();
  });

  const newSession = async (name: string, ...texts: string[]): Promise<string> => {
    const { item } = await other.call("sessions/create", { value: { name } });
    const messages = texts.map((content, number) => ({ type: number % 2 ? "assistant" : "user", content }));
    if (messages.length > 0) await other.call("messages/append", { session: item.id, messages });
    return item.id;
  };
  const append = (session: string, content: string): Promise<unknown> =>
    other.call("messages/append", { session, messages: [{ type: "assistant", content }] });

  test("it lists sessions, follows one live, writes to it, and comes back after a restart of the daemon", async () => {
    const session = await newSession(
      "Plan the move",
      "What has to be done first?",
      "Give notice, measure the new rooms.",
    );
    await newSession("Recipe for forty guests", "Scale the lentil stew to forty people.");
    const { url, token } = await daemon.network("ws");
    await page.goto(`${origin}/#${new URLSearchParams({ url, token })}`);
    await page.getByRole("button", { name: "Plan the move" }).click();
    await page.getByRole("log").getByText("measure the new rooms").waitFor();
    expect(page.url()).not.toContain(token);

    await append(session, "Said by somebody else <b>live</b>");
    await page.getByRole("log").getByText("Said by somebody else <b>live</b>").waitFor();
    await page.getByRole("textbox", { name: "Message" }).fill("Written in the page");
    await page.getByRole("button", { name: "Append" }).click();
    await page.getByRole("log").getByText("Written in the page").waitFor();
    const { items } = await other.call("messages/list", { session, fields: ["*"] });
    expect(items.map(({ value }) => value["content"])).toContain("Written in the page");
    if (process.env["CRAFTD_SCREENSHOT"]) await page.screenshot({ path: process.env["CRAFTD_SCREENSHOT"] });

    await daemon.restart();
    await page.getByRole("status").getByText("connected", { exact: true }).waitFor();
    await append(session, "Said after the restart");
    await page.getByRole("log").getByText("Said after the restart").waitFor();
    await other.call("sessions/update", { id: session, patch: { set: { name: "Moved" } } });
    await page.getByRole("heading", { name: "Moved" }).waitFor();
    expect(await page.getByRole("log").getByRole("listitem").count()).toBe(5);
    expect(faults).toEqual([]);
  });

  test("with a wrong token it stays outside and says why", async () => {
    const { url } = await daemon.network("ws");
    const outside = await browser.newPage();
    await outside.goto(origin);
    await outside.getByLabel("Address").fill(url);
    await outside.getByLabel("Token").fill("not-the-token-of-anybody");
    await outside.getByRole("button", { name: "Connect" }).click();
    await outside.getByRole("alert").getByText("token").waitFor();
    await outside.close();
  });

  test("a page from somewhere else stays outside, whatever it knows", async () => {
    const elsewhere = await serve(0);
    const stranger = await browser.newPage();
    const known = new URLSearchParams(await daemon.network("ws"));
    await stranger.goto(`http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/#${known}`);
    await stranger.getByRole("alert").getByText("Origin").waitFor();
    await stranger.close();
    elsewhere.close();
  });
});
