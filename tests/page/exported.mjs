// The page of `vitrail export --page` in a real Chromium. Usage: node exported.mjs URL FILE...
// Prints a line of JSON for each file: its name, and the labels and shares on the page, or the message.

import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { chromium } from "playwright-core";

const [url, ...files] = process.argv.slice(2);
const context = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "vitrail-exported-")), {
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await context.newPage();
page.setDefaultTimeout(120_000);
const strangers = [];
page.on("request", (request) => { if (!request.url().startsWith(url) && !/^(blob|data):/.test(request.url())) strangers.push(request.url()); });
page.on("pageerror", (error) => strangers.push(String(error)));
await page.goto(url);
const says = (pattern) => page.waitForFunction((text) => new RegExp(text).test(document.getElementById("message").textContent), pattern);
await says("^(Ready|onnxruntime-web is not|model.onnx)");
for (const [place, path] of files.entries()) {
  const name = basename(path);
  if (place === 0) { // dropped; the others are chosen
    await page.evaluate(([label, content]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))], label));
      document.body.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: transfer }));
    }, [name, readFileSync(path).toString("base64")]);
  } else {
    await page.setInputFiles("#file", path);
  }
  await says(`^${name.replaceAll(".", "[.]")}`);
  const rows = await page.$$eval("#answers li", (all) => all.map((row) => [...row.children].map((part) => part.textContent)));
  console.log(JSON.stringify({ name, rows, message: await page.textContent("#message") }));
}
console.log(JSON.stringify({ strangers }));
await context.close();
