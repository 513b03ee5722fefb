// The description of the API, with examples that can be sent.

const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

const description = await (await fetch("/openapi.json")).json();
document.getElementById("about").textContent = description.info.description.trim();
const paths = document.getElementById("paths");
for (const [path, methods] of Object.entries(description.paths)) {
  for (const [method, operation] of Object.entries(methods)) paths.append(section(path, method, operation));
}

function section(path, method, operation) {
  const title = make("summary", {}, make("code", { textContent: `${method.toUpperCase()} ${path}` }), ` ${operation.description || operation.summary}`);
  const parts = [title];
  if (operation.parameters?.length) parts.push(table(["setting", "in", "what it is"], operation.parameters.map((one) => [one.name, one.in, one.description || ""])));
  parts.push(table(["status", "answer"], Object.entries(operation.responses).map(([status, one]) => [status, one.description])));
  const content = operation.requestBody?.content?.["application/json"];
  const examples = content ? Object.entries(content.examples || {}) : [["", null]];
  for (const [name, example] of examples) parts.push(trial(path, method, name, example?.value));
  return make("details", {}, ...parts);
}

function table(titles, rows) {
  const head = make("tr", {}, ...titles.map((title) => make("th", { scope: "col", textContent: title })));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", { textContent: cell }))));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
}

function trial(path, method, name, value) {
  const address = make("input", { type: "text", value: path, ariaLabel: "Address" });
  const body = make("textarea", { value: JSON.stringify(value, null, 1), ariaLabel: "Body" });
  const answer = make("pre", { hidden: true });
  answer.setAttribute("aria-live", "polite");
  const button = make("button", { type: "button", textContent: name ? `Send: ${name}` : "Send" });
  button.addEventListener("click", async () => {
    const key = document.getElementById("key").value;
    const headers = { ...(key && { authorization: `Bearer ${key}` }), ...(value && { "content-type": "application/json" }) };
    answer.hidden = false;
    try {
      const response = await fetch(address.value, { method: method.toUpperCase(), headers, body: value && body.value });
      answer.textContent = `${response.status}\n${readable(await response.text()).slice(0, 5000)}`;
    } catch {
      answer.textContent = "The server cannot be reached.";
    }
  });
  return make("div", { className: "trial" }, address, ...(value ? [body] : []), button, answer);
}

function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 1);
  } catch {
    return text; // figures for Prometheus
  }
}
