// The page: images come in by drop, paste, picker or camera; each model's answer is a panel; a visit has a history.

import { Failure, readModels, useKey } from "/page/api.js";
import { draw, readPicture } from "/page/overlay.js";
import { Panel } from "/page/panel.js";

const find = (name) => document.getElementById(name);
const MOST_HISTORY = 50;

const page = {
  models: [],
  entries: [],
  panels: [],

  say(text) { find("status").textContent = text; },
  clear() { find("message").hidden = true; },

  fail(failure) {
    if (!(failure instanceof Failure)) throw failure;
    find("key-box").hidden = failure.status !== 401;
    find("message").textContent = failure.message;
    find("message").hidden = false;
    page.say("");
    if (failure.status === 401) find("key").focus();
  },

  answered(panel, result) {
    const by = page.panels.length > 1 ? ` by ${panel.model.name}` : "";
    page.say(`${panel.entry.name}${by}: ${result.top[0].label}`);
    page.showHistory();
  },

  async copy(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      page.say(`Copied as ${what}.`);
    } catch {
      page.say("This browser does not let pages copy.");
    }
  },

  async start() {
    try {
      page.models = await readModels();
    } catch (failure) {
      page.fail(failure);
      return;
    }
    page.clear();
    find("key-box").hidden = true;
    const names = page.models.map((model) => new Option(model.name, model.name));
    find("model").replaceChildren(...names);
    find("compare").replaceChildren(new Option("nothing", ""), ...names.map((option) => option.cloneNode(true)));
    find("compare-label").hidden = page.models.length < 2;
  },

  chosen() {
    const names = [find("model").value, find("compare").value].filter((name) => name);
    return [...new Set(names)].map((name) => page.models.find((model) => model.name === name));
  },

  async take(files) {
    const images = [...files];
    if (!images.length) return;
    if (!page.models.length) await page.start();
    if (!page.models.length) return;
    for (const file of images) {
      const name = file.name || `image ${page.entries.length + 1}`;
      const entry = { file, name, picture: await readPicture(file), answer: null };
      page.entries.unshift(entry);
      page.entries.length = Math.min(page.entries.length, MOST_HISTORY);
      await page.open(entry);
    }
  },

  async open(entry) {
    page.clear();
    page.say(`Looking at ${entry.name} ...`);
    page.panels = page.chosen().map((model) => new Panel(model, entry, page));
    find("results").classList.toggle("two", page.panels.length > 1);
    find("results").replaceChildren(...page.panels.map((panel) => panel.element));
    await Promise.all(page.panels.map((panel) => panel.explain(null)));
    if (page.panels.every((panel) => !panel.content)) find("results").replaceChildren();
    page.showHistory();
  },

  showHistory() {
    const items = page.entries.map((entry) => {
      const item = document.createElement("li");
      const button = Object.assign(document.createElement("button"), { type: "button" });
      const canvas = document.createElement("canvas");
      canvas.setAttribute("aria-hidden", "true");
      draw(canvas, entry.picture, null, 0, null);
      const name = Object.assign(document.createElement("span"), { textContent: entry.name });
      const answer = Object.assign(document.createElement("span"), { textContent: entry.answer || "not answered" });
      button.append(canvas, name, answer);
      button.addEventListener("click", () => page.open(entry));
      item.append(button);
      return item;
    });
    find("history").replaceChildren(...items);
    find("history-box").hidden = !items.length;
  },
};

function listen() {
  find("pick").addEventListener("click", () => find("files").click());
  find("files").addEventListener("change", (event) => { page.take(event.target.files); event.target.value = ""; });
  document.addEventListener("paste", (event) => page.take([...event.clipboardData.files]));
  document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    page.take(event.dataTransfer.files);
  });
  for (const name of ["model", "compare"]) {
    find(name).addEventListener("change", () => { if (page.entries.length) page.open(page.panels[0]?.entry || page.entries[0]); });
  }
  find("key-box").addEventListener("submit", (event) => { event.preventDefault(); useKey(find("key").value); page.start(); });
  find("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
    document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  });
  listenToCamera();
}

function listenToCamera() {
  let stream = null;
  const video = find("video");
  const close = () => {
    stream?.getTracks().forEach((track) => track.stop());
    stream = null;
    find("camera-box").hidden = true;
  };
  find("camera").addEventListener("click", async () => {
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    } catch {
      page.fail(new Failure("The camera cannot be used: there is none, or this page was not allowed to.", -1, null));
      return;
    }
    page.clear();
    video.srcObject = stream;
    find("camera-box").hidden = false;
    await video.play();
    find("snap").focus();
  });
  find("snap").addEventListener("click", () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: video.videoWidth, height: video.videoHeight });
    canvas.getContext("2d").drawImage(video, 0, 0);
    canvas.toBlob((blob) => page.take([new File([blob], `camera ${page.entries.length + 1}.jpg`, { type: "image/jpeg" })]), "image/jpeg", 0.95);
    close();
  });
  find("camera-off").addEventListener("click", close);
}

listen();
page.start();
