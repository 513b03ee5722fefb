// The page in a real Chromium: what a person does with it, and what they see when it goes wrong.
// Usage: node page.mjs URL FOLDER; FOLDER has good.png, broken.png, huge.png, big.png and gets screenshots.
// Prints a line of JSON for each scenario; ends with 1 if one failed. A line "stop" on stdout asks for the server's end.

import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [url, folder] = process.argv.slice(2);
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];
const SECONDS = 60_000;

const context = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "vitrail-page-")), {
  executablePath: "/usr/bin/chromium", args: FLAGS, viewport: { width: 1200, height: 900 }, permissions: ["clipboard-read", "clipboard-write", "camera"],
});
const strangers = [];
let failed = 0;

async function scenario(name, act, { viewport = { width: 1200, height: 900 }, colours = "light" } = {}) {
  const page = await context.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => { if (!request.url().startsWith(url) && !/^(blob|data):/.test(request.url())) strangers.push(request.url()); });
  page.setDefaultTimeout(SECONDS);
  await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme: colours });
  try {
    await page.bringToFront();
    await page.goto(url);
    await page.waitForFunction(() => document.querySelectorAll("#model option").length > 0);
    await act(page);
    assert.deepEqual(complaints, []);
    console.log(JSON.stringify({ scenario: name, ok: true }));
  } catch (error) {
    failed += 1;
    console.log(JSON.stringify({ scenario: name, ok: false, error: String(error.stack || error).slice(0, 800) }));
    await page.screenshot({ path: join(folder, `failed-${name.replaceAll(" ", "-")}.png`) }).catch(() => {});
  }
  await page.close();
}

const give = (page, ...names) => page.setInputFiles("#files", names.map((name) => join(folder, name)));
const answered = (page, panels = 1) => page.waitForFunction((count) => document.querySelectorAll(".bars li").length >= 5 * count, panels);
const message = async (page, pattern) => {
  await page.waitForSelector("#message:not([hidden])");
  assert.match(await page.textContent("#message"), pattern);
};
const pixels = (page) => page.$eval(".picture", (canvas) => canvas.toDataURL());
const shot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
const contrast = (page) => page.evaluate(() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/rgba\(.*, 0\)|transparent/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const low = [];
  for (const element of document.querySelectorAll("h1, h2, p, label, button, select, li span, legend, a, footer")) {
    if (!element.checkVisibility() || !element.textContent.trim()) continue;
    const [one, two] = [light(getComputedStyle(element).color), light(ground(element))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (two + 0.05);
    if (ratio < 4.5) low.push([element.tagName, element.textContent.trim().slice(0, 30), ratio]);
  }
  return low;
});

await scenario("a good image", async (page) => {
  await give(page, "good.png");
  await answered(page);
  assert.equal(await page.locator(".bars li").count(), 5);
  assert.match(await page.textContent(".latency"), /\d+ ms in all/);
  await page.waitForFunction(() => /^occlusion/.test(document.querySelector(".explained").textContent)); // of small models
  await shot(page, "page");
});

await scenario("overlay, slider, method, class and patch", async (page) => {
  await give(page, "good.png");
  await answered(page);
  await page.waitForFunction(() => document.querySelector(".explained").textContent);
  const strong = await pixels(page);
  await page.fill(".strength", "0");
  const bare = await pixels(page);
  assert.notEqual(bare, strong);
  await page.fill(".strength", "90");
  await page.selectOption(".method", "rollout");
  await page.waitForFunction(() => document.querySelector(".explained").textContent.startsWith("rollout"));
  await page.selectOption(".method", "gradient-attention");
  await page.selectOption(".class", "2");
  await page.waitForFunction(() => /gradient-attention, for /.test(document.querySelector(".explained").textContent));
  const other = await pixels(page);
  await page.locator(".picture").click({ position: { x: 60, y: 60 } });
  await page.waitForFunction(() => /What the patch in row \d+, column \d+ attends to/.test(document.querySelector(".explained").textContent));
  assert.notEqual(await pixels(page), other);
  assert.equal(await page.isVisible(".layer"), true);
  assert.equal(await page.isVisible(".class"), false); // attention knows no classes
  const last = await pixels(page);
  await page.selectOption(".layer", "0");
  await page.waitForFunction((before) => document.querySelector(".picture").toDataURL() !== before, last);
  assert.match(await page.textContent(".explained"), /^What the patch/);
  await page.locator(".picture").click({ position: { x: 60, y: 60 } });
  await page.waitForFunction(() => document.querySelector(".explained").textContent.startsWith("attention"));
  await page.locator(".picture").click({ position: { x: 60, y: 60 } });
  await page.waitForFunction(() => document.querySelector(".explained").textContent.startsWith("What the patch"));
  await shot(page, "page-patch");
});

await scenario("a broken image", async (page) => {
  await give(page, "broken.png");
  await message(page, /broken/);
});

await scenario("not an image", async (page) => {
  await give(page, "text.png");
  await message(page, /not an image/);
});

await scenario("an image of too many pixels", async (page) => {
  await give(page, "huge.png");
  await message(page, /too large.*pixels/);
  await shot(page, "page-error");
});

await scenario("a file of too many bytes", async (page) => {
  await give(page, "big.png");
  await message(page, /too large.*MiB/);
});

await scenario("drop and paste", async (page) => {
  for (const event of ["drop", "paste"]) {
    await page.evaluate(async (kind) => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 40, height: 30 });
      canvas.getContext("2d").fillRect(5, 5, 20, 10);
      const blob = await new Promise((done) => canvas.toBlob(done));
      const transfer = new DataTransfer();
      transfer.items.add(new File([blob], `${kind}.png`, { type: "image/png" }));
      const options = { bubbles: true, cancelable: true };
      document.body.dispatchEvent(kind === "drop" ? new DragEvent("drop", { ...options, dataTransfer: transfer }) : new ClipboardEvent("paste", { ...options, clipboardData: transfer }));
    }, event);
    await page.waitForFunction((name) => document.querySelector(".panel-title")?.textContent.startsWith(`${name}.png`) && document.querySelector(".bars li"), event);
  }
  assert.equal(await page.locator("#history li").count(), 2);
  await page.locator("#history button").last().click();
  await page.waitForFunction(() => document.querySelector(".panel-title").textContent.startsWith("drop.png"));
});

await scenario("the camera", async (page) => {
  await page.click("#camera");
  await page.waitForFunction(() => document.getElementById("video").videoWidth > 0);
  await page.click("#snap");
  await answered(page);
  assert.match(await page.textContent(".panel-title"), /^camera/);
});

await scenario("two models side by side", async (page) => {
  await page.selectOption("#compare", { index: 2 });
  await give(page, "good.png");
  await answered(page, 2);
  assert.equal(await page.locator(".panel").count(), 2);
  await shot(page, "page-compare");
});

await scenario("copy as JSON and curl", async (page) => {
  await give(page, "good.png");
  await answered(page);
  await page.click(".copy-json");
  await page.waitForFunction(() => document.getElementById("status").textContent.includes("JSON"));
  const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
  assert.equal(copied.results[0].top.length, 5);
  await page.click(".copy-curl");
  await page.waitForFunction(() => document.getElementById("status").textContent.includes("curl"));
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^curl -F 'images=@good.png' 'http:\/\/127/);
});

await scenario("keyboard only", async (page) => {
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.className);
  for (let count = 0; count < 12 && (await focused()) !== "pick"; count += 1) await page.keyboard.press("Tab");
  assert.equal(await focused(), "pick");
  const choose = () => Promise.all([page.waitForEvent("filechooser", { timeout: 20_000 }), page.keyboard.press("Enter")]);
  const [chooser] = await choose().catch(choose); // on a very busy machine the permission of the key press runs out
  await chooser.setFiles(join(folder, "good.png"));
  await answered(page);
  for (let count = 0; count < 20 && !(await focused()).includes("picture"); count += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".explained").textContent.startsWith("What the patch"));
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "method");
});

await scenario("labels and contrast", async (page) => {
  await give(page, "good.png");
  await answered(page);
  const nameless = await page.$$eval("button, select, input, canvas[role], video", (all) =>
    all.filter((one) => one.checkVisibility() && !one.ariaLabel && !one.labels?.length && !one.textContent.trim()).map((one) => one.outerHTML));
  assert.deepEqual(nameless, []);
  assert.deepEqual(await contrast(page), []);
  await page.click("#theme");
  assert.deepEqual(await contrast(page), []);
  assert.match(await page.getAttribute(".picture", "aria-label"), /good.png: .*%/);
});

await scenario("dark", async (page) => {
  await give(page, "good.png");
  await answered(page);
  assert.deepEqual(await contrast(page), []);
  await shot(page, "page-dark");
}, { colours: "dark" });

await scenario("a narrow screen", async (page) => {
  await give(page, "good.png");
  await answered(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.equal(wide, 0);
  const small = await page.$$eval("button, select", (all) => all.filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 40).map((one) => one.outerHTML));
  assert.deepEqual(small, []);
  await shot(page, "page-phone");
}, { viewport: { width: 360, height: 740 } });

await scenario("the description sends its examples", async (page) => {
  await page.goto(`${url}/docs`);
  const section = page.locator("details").filter({ hasText: "POST /v1/predict" }).first();
  await section.locator("summary").click();
  await section.getByRole("button", { name: "Send: one image" }).click();
  await page.waitForFunction(() => [...document.querySelectorAll("pre")].some((one) => one.textContent.startsWith("200")));
  await shot(page, "page-docs");
});

await scenario("server gone", async (page) => {
  await give(page, "good.png");
  await answered(page);
  console.log("stop");
  const lines = createInterface({ input: process.stdin });
  await new Promise((done) => lines.once("line", done));
  lines.close();
  await give(page, "good.png");
  await message(page, /cannot be reached/);
});

await context.close();
if (strangers.length) console.log(JSON.stringify({ scenario: "no third-party network", ok: false, error: strangers.join(" ") }));
process.exit(failed || strangers.length ? 1 : 0);
