// @ts-check
/** Uses the example for browsers as a person would: opens the session, writes on the word, reads what is shown. */

import { createRequire } from "node:module";
import process from "node:process";

const CLIENT = process.env["CLIENT"] ?? "";
const { chromium } = createRequire(`${CLIENT}/package.json`)("playwright-core");
const { serve } = await import(`${CLIENT}/examples/browser/serve.mjs`);
const [port, url, token, own, everybody] = process.argv.slice(2);

const server = await serve(Number(port));
const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"], args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${port}/#${new URLSearchParams({ url: url ?? "", token: token ?? "" })}`);
await page.locator("#sessions button").click();
await page.locator("#composer").waitFor();
console.log("ready");

await page.locator("#name", { hasText: /^Go$/ }).waitFor();
for (let n = 0; n < Number(own); n++) {
  await page.fill("#text", `page ${n}`);
  await page.click("#composer button");
}
const rows = "#messages li";
await page.waitForFunction(([rows, count]) => document.querySelectorAll(rows).length >= count, [rows, Number(everybody)]);
const shown = await page.$$eval(rows, (/** @type {HTMLElement[]} */ rows) => rows.map((row) => row.lastChild?.textContent));
console.log(JSON.stringify(shown));
await browser.close();
server.close();
