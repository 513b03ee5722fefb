// What the page asks the server, and a sentence for each way in which that can fail.

let key = sessionStorage.getItem("vitrail-key") || "";

export function useKey(text) {
  key = text.trim();
  sessionStorage.setItem("vitrail-key", key);
}

export class Failure extends Error {
  constructor(sentence, status, content) {
    super(sentence);
    this.status = status;
    this.content = content;
  }
}

const SENTENCES = {
  401: "This server needs a key. Enter it above; it is kept in this tab only.",
  403: "The server refuses this page. Open it by the address that the server prints when it starts.",
  404: "The server has no such model any more. Reload this page.",
  408: "The image took too long to arrive. Try again, or use a smaller one.",
  413: "The image is too large for this server. Make it smaller and try again.",
  415: "This is not an image that can be read. JPEG, PNG, WEBP, BMP, GIF and TIFF can.",
  422: "The image is broken, or it is not what its name says. Try another one.",
  429: "The server is busy.",
  503: "The server did not answer in time, or is being stopped. Try again in a moment.",
};

function sentence(status, content, response) {
  const reason = content?.error?.message;
  let text = SENTENCES[status] || "The server could not answer.";
  const wait = response.headers.get("retry-after");
  if (status === 429) text += wait ? ` Try again in ${wait} seconds.` : " Try again in a moment.";
  return reason && status !== 401 ? `${text} The server's reason: ${reason}` : text;
}

async function ask(path, options = {}) {
  const headers = { ...(options.headers || {}) };
  if (key) headers.authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new Failure("The server cannot be reached. It may have been stopped; your image was not answered.", 0, null);
  }
  let content = null;
  try {
    content = await response.json();
  } catch {
    throw new Failure("The server gave an answer that cannot be read.", response.status, null);
  }
  if (!response.ok) throw new Failure(sentence(response.status, content, response), response.status, content);
  return content;
}

export async function readModels() {
  const { models } = await ask("/v1/models");
  return Promise.all(models.map((name) => ask(`/v1/models/${encodeURIComponent(name)}`)));
}

export function predictPath(model, settings) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(settings)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  return `/v1/models/${encodeURIComponent(model)}/predict?${query}`;
}

export async function predict(model, file, settings) {
  const body = new FormData();
  body.append("images", file, file.name || "image");
  const began = performance.now();
  const content = await ask(predictPath(model, settings), { method: "POST", body });
  return { content, milliseconds: performance.now() - began };
}

export function curl(model, file, settings) {
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const header = key ? " -H 'Authorization: Bearer KEY'" : "";
  const name = file.name || "image.png";
  return `curl${header} -F ${quoted(`images=@${name}`)} ${quoted(location.origin + predictPath(model, settings))}`;
}
