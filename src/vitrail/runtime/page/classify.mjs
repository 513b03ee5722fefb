// Runs a model of `vitrail export` in the browser: an image in, its most probable classes out.

const RUNTIME = "./node_modules/onnxruntime-web/dist/";
const [drop, file, message, picture, answers] = ["drop", "file", "message", "picture", "answers"].map((id) => document.getElementById(id));
const say = (text) => { message.textContent = text; };

// The fields of an ONNX file: number, start and end of each. Field 14 has the properties, a key (1) and a value (2) each.
function* fields(bytes, place, end) {
  const number = () => {
    for (let value = 0, factor = 1; ; factor *= 128) {
      const byte = bytes[place++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      if (byte === undefined) throw new Error("model.onnx is cut short.");
    }
  };
  while (place < end) {
    const tag = number();
    const kind = tag % 8;
    if (kind === 0) { number(); continue; }
    const length = kind === 2 ? number() : kind === 1 ? 8 : 4;
    yield [Math.floor(tag / 8), place, place + length];
    place += length;
  }
}

function readFacts(bytes) {
  const text = new TextDecoder();
  for (const [number, start, end] of fields(bytes, 0, bytes.length)) {
    if (number !== 14) continue;
    const entry = Object.fromEntries([...fields(bytes, start, end)].map(([part, from, to]) => [part, text.decode(bytes.subarray(from, to))]));
    if (entry[1] === "vitrail") return JSON.parse(entry[2]);
  }
  throw new Error("model.onnx has no facts of `vitrail export`.");
}

// Whole pixels as predict reads them: turned upright, on white where they are transparent, colours as they are stored.
async function readPixels(blob, channels) {
  const bitmap = await createImageBitmap(blob, { imageOrientation: "from-image", colorSpaceConversion: "none" });
  const canvas = Object.assign(document.createElement("canvas"), { width: bitmap.width, height: bitmap.height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  const pixels = new Uint8Array(canvas.width * canvas.height * channels);
  for (let at = 0; at < canvas.width * canvas.height; at++) {
    const [red, green, blue] = data.subarray(4 * at, 4 * at + 3);
    if (channels === 1) pixels[at] = (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16;
    else pixels.set([red, green, blue], 3 * at);
  }
  return { pixels, height: canvas.height, width: canvas.width };
}

async function load() {
  const ort = await import(`${RUNTIME}ort.wasm.bundle.min.mjs`).catch(() => {
    throw new Error("onnxruntime-web is not here; run `npm install` in the folder of this page.");
  });
  ort.env.wasm.wasmPaths = new URL(RUNTIME, document.baseURI).href;
  ort.env.wasm.numThreads = 1; // more need headers that plain file servers do not send
  const reply = await fetch("model.onnx");
  if (!reply.ok) throw new Error(`model.onnx cannot be read (${reply.status}).`);
  const bytes = new Uint8Array(await reply.arrayBuffer());
  const facts = readFacts(bytes);
  return { ort, facts, session: await ort.InferenceSession.create(bytes) };
}

async function classify(blob) {
  const { ort, facts, session } = await model;
  const channels = facts.preprocessing.mean.length;
  const image = await readPixels(blob, channels).catch(() => { throw new Error(`${blob.name || "It"} is not an image that this browser reads.`); });
  const images = new ort.Tensor("uint8", image.pixels, [1, image.height, image.width, channels]);
  const start = performance.now();
  const { top_classes: classes, top_probabilities: shares } = await session.run({ images }, ["top_classes", "top_probabilities"]);
  const rows = [...classes.data].map((number, at) => [facts.labels ? facts.labels[Number(number)] : String(number), shares.data[at]]);
  answers.replaceChildren(...rows.map(([label, share]) => {
    const [row, name, part] = ["li", "span", "span"].map((tag) => document.createElement(tag));
    name.textContent = label;
    part.textContent = `${(100 * share).toFixed(1)}%`;
    row.append(name, part);
    return row;
  }));
  if (picture.src) URL.revokeObjectURL(picture.src);
  picture.src = URL.createObjectURL(blob);
  picture.alt = `${blob.name || "the image"}: ${rows[0][0]}`;
  picture.hidden = false;
  say(`${blob.name || "The image"}: ${Math.round(performance.now() - start)} ms.`);
}

const take = (blob) => blob && classify(blob).catch((error) => say(error.message));
file.addEventListener("change", () => take(file.files[0]));
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind === "drop") take(event.dataTransfer.files[0]);
  });
}

const model = load();
model.then(({ facts }) => say(`Ready: ${facts.num_classes} classes.`), (error) => say(error.message));
