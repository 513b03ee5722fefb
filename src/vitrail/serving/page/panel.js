// One model's answer for one image: bars, map, and what can be asked about it.

import { curl, predict } from "/page/api.js";
import { draw, outline, patchAt } from "/page/overlay.js";

export class Panel {
  constructor(model, entry, page) {
    this.model = model;
    this.entry = entry;
    this.page = page;
    this.heat = null;
    this.patch = null; // whose attention is shown
    this.cursor = null; // where the arrow keys are
    this.content = null;
    this.asked = 0;
    this.element = document.getElementById("panel").content.firstElementChild.cloneNode(true);
    this.fill();
    this.listen();
  }

  part(name) {
    return this.element.querySelector(`.${name}`);
  }

  fill() {
    const { model } = this;
    this.part("panel-title").textContent = `${this.entry.name}: ${model.name}`;
    options(this.part("method"), [["", "nothing"], ...model.methods.map((method) => [method, method])]);
    this.part("method").value = model.default_method;
    options(this.part("class"), [["", "most probable"]]);
    options(this.part("layer"), range(model.blocks).map((block) => [block, `${block + 1} of ${model.blocks}`]));
    this.part("layer").value = Math.max(model.blocks - 1, 0);
    options(this.part("head"), [["", "mean of all"], ...range(model.heads).map((head) => [head, `${head + 1}`])]);
    this.redraw();
  }

  listen() {
    for (const name of ["method", "class"]) this.part(name).addEventListener("change", () => this.explain(null));
    for (const name of ["layer", "head"]) this.part(name).addEventListener("change", () => this.explain(this.patch));
    this.part("strength").addEventListener("input", () => this.redraw());
    this.part("copy-json").addEventListener("click", () => this.page.copy(JSON.stringify(this.content, null, 2), "JSON"));
    this.part("copy-curl").addEventListener("click", () => this.page.copy(curl(this.model.name, this.entry.file, this.settings(this.patch)), "curl"));
    const canvas = this.part("picture");
    canvas.addEventListener("click", (event) => {
      if (!this.model.grid || !this.content) return;
      const patch = patchAt(canvas, this.window(), this.model.grid, event);
      if (patch !== null) this.ask(patch);
    });
    canvas.addEventListener("keydown", (event) => this.press(event));
    canvas.addEventListener("blur", () => { this.cursor = null; this.redraw(); });
  }

  press(event) {
    if (!this.model.grid || !this.content) return;
    const [rows, columns] = this.model.grid;
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const at = this.cursor ?? Math.floor(rows / 2) * columns + Math.floor(columns / 2);
    if (event.key in moves) {
      const [down, right] = this.cursor === null ? [0, 0] : moves[event.key];
      const row = Math.min(Math.max(Math.floor(at / columns) + down, 0), rows - 1);
      const column = Math.min(Math.max((at % columns) + right, 0), columns - 1);
      this.cursor = row * columns + column;
      this.page.say(`row ${row + 1}, column ${column + 1}`);
      this.redraw();
    } else if (event.key === "Enter" || event.key === " ") {
      this.cursor = at;
      this.ask(at);
    } else if (event.key === "Escape") {
      this.explain(null);
    } else return;
    event.preventDefault();
  }

  ask(patch) {
    if (!this.model.methods.includes("attention")) return;
    this.part("method").value = "attention";
    this.explain(patch === this.patch ? null : patch);
  }

  settings(patch) {
    const method = this.part("method").value;
    const attention = method === "attention";
    return {
      top: 5,
      explain: method,
      class: this.model.class_methods.includes(method) ? this.part("class").value : "",
      layer: attention ? this.part("layer").value : "",
      head: attention ? this.part("head").value : "",
      patch: attention ? patch : "",
    };
  }

  async explain(patch) {
    const asked = ++this.asked;
    const attention = this.part("method").value === "attention";
    for (const label of this.element.querySelectorAll(".attention-only")) label.hidden = !attention;
    this.part("class-only").hidden = !this.model.class_methods.includes(this.part("method").value);
    this.element.setAttribute("aria-busy", "true");
    try {
      const { content, milliseconds } = await predict(this.model.name, this.entry.file, this.settings(patch));
      if (asked !== this.asked) return; // a later question is on its way
      this.patch = attention ? patch : null;
      this.show(content, milliseconds);
    } catch (failure) {
      if (asked === this.asked) this.page.fail(failure);
    } finally {
      if (asked === this.asked) this.element.removeAttribute("aria-busy");
    }
  }

  show(content, milliseconds) {
    this.content = content;
    const [result] = content.results;
    const { timings } = content;
    this.heat = result.explanation ? { ...result.explanation, grid: this.model.grid } : null;
    this.page.clear();
    this.bars(result.top);
    this.part("latency").textContent =
      `${milliseconds.toFixed(0)} ms in all; on the server ${timings.total_ms.toFixed(0)} ms, of which ` +
      `${timings.decode_ms.toFixed(0)} decoding and ${timings.compute_ms.toFixed(0)} computing.`;
    const chosen = this.part("class").value;
    options(this.part("class"), [["", "most probable"], ...this.model.labels.slice(0, 2000).map((label, number) => [number, label])]);
    this.part("class").value = chosen;
    this.part("picture").classList.toggle("asks", this.model.methods.includes("attention"));
    this.part("hint").hidden = !this.model.methods.includes("attention");
    this.part("explained").textContent = this.sentence();
    this.part("picture").setAttribute("aria-label", `${this.entry.name}: ${result.top[0].label}, ${percent(result.top[0].probability)}. ${this.sentence()}`);
    this.entry.answer ??= `${result.top[0].label} ${percent(result.top[0].probability)}`;
    this.redraw();
    this.page.answered(this, result);
  }

  sentence() {
    if (!this.heat) return "";
    if (this.patch !== null) {
      const columns = this.model.grid[1];
      return `What the patch in row ${Math.floor(this.patch / columns) + 1}, column ${(this.patch % columns) + 1} attends to. Bright is strong.`;
    }
    const about = this.heat.label === null ? "for no class in particular" : `for ${this.heat.label}, which has ${percent(this.heat.probability)}`;
    return `${this.heat.method}, ${about}.${this.heat.signed ? " Orange speaks for it, blue against it." : " Bright is strong."}`;
  }

  bars(top) {
    const rows = top.map(({ label, probability }) => {
      const row = document.createElement("li");
      const name = Object.assign(document.createElement("span"), { className: "name", textContent: this.model.named ? label : `class ${label}` });
      const share = Object.assign(document.createElement("span"), { className: "share", textContent: percent(probability) });
      const track = Object.assign(document.createElement("div"), { className: "track" });
      const fill = Object.assign(document.createElement("div"), { className: "fill" });
      fill.style.width = `${100 * probability}%`;
      track.append(fill);
      row.append(name, share, track);
      return row;
    });
    this.part("bars").replaceChildren(...rows);
  }

  window() {
    return this.heat ? this.heat.window : [0, 0, 1, 1];
  }

  redraw() {
    const canvas = this.part("picture");
    draw(canvas, this.entry.picture, this.heat, this.part("strength").value / 100, this.patch);
    if (this.cursor !== null && this.model.grid) outline(canvas.getContext("2d"), canvas, this.window(), this.model.grid, this.cursor);
  }
}

function options(select, pairs) {
  select.replaceChildren(...pairs.map(([value, text]) => new Option(text, value)));
}

function range(count) {
  return [...Array(count).keys()];
}

export function percent(share) {
  return `${(100 * share).toFixed(1)}%`;
}
