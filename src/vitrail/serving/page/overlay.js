// A picture, and a map laid over the part of it that the model sees.

const LONGEST = 720;
const HEAT = [[20, 11, 52], [132, 32, 107], [229, 92, 48], [246, 215, 70]];
const FOR = [245, 130, 30];
const AGAINST = [40, 120, 245];

export async function readPicture(file) {
  try {
    const bitmap = await createImageBitmap(file, { imageOrientation: "from-image" });
    return bitmap;
  } catch {
    return null; // a format that this browser does not show, though the server may read it
  }
}

export function draw(canvas, picture, heat, strength, patch) {
  const width = picture ? picture.width : 400;
  const height = picture ? picture.height : 300;
  const factor = Math.min(LONGEST / Math.max(width, height), Math.max(1, Math.floor(320 / Math.max(width, height))));
  canvas.width = Math.max(Math.round(width * factor), 1);
  canvas.height = Math.max(Math.round(height * factor), 1);
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = factor < 1;
  if (picture) pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  else write(pen, canvas, "No preview");
  if (!heat) return;
  const [top, left, high, wide] = windowOf(canvas, heat.window);
  pen.imageSmoothingEnabled = true;
  pen.globalAlpha = strength;
  pen.drawImage(coloured(heat), left, top, wide, high);
  pen.globalAlpha = 1;
  if (patch !== null && patch !== undefined) outline(pen, canvas, heat.window, heat.grid, patch);
}

export function outline(pen, canvas, share, grid, patch) {
  const [top, left, high, wide] = windowOf(canvas, share);
  const [rows, columns] = grid;
  const x = left + ((patch % columns) * wide) / columns;
  const y = top + (Math.floor(patch / columns) * high) / rows;
  for (const [colour, thick] of [["#000", 4], ["#fff", 2]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = thick;
    pen.strokeRect(x, y, wide / columns, high / rows);
  }
}

export function patchAt(canvas, share, grid, event) {
  const box = canvas.getBoundingClientRect();
  const x = (event.clientX - box.left) / box.width;
  const y = (event.clientY - box.top) / box.height;
  const [top, left, high, wide] = share;
  const column = Math.floor(((x - left) / wide) * grid[1]);
  const row = Math.floor(((y - top) / high) * grid[0]);
  if (row < 0 || column < 0 || row >= grid[0] || column >= grid[1]) return null;
  return row * grid[1] + column;
}

function windowOf(canvas, share) {
  const [top, left, high, wide] = share;
  return [top * canvas.height, left * canvas.width, high * canvas.height, wide * canvas.width];
}

function coloured(heat) {
  const rows = heat.values.length;
  const columns = heat.values[0].length;
  const small = new OffscreenCanvas(columns, rows);
  const pen = small.getContext("2d");
  const image = pen.createImageData(columns, rows);
  const values = heat.values.flat();
  const [least, most] = bounds(values);
  const reach = Math.max(Math.abs(least), Math.abs(most)) || 1;
  values.forEach((value, place) => {
    const share = heat.signed ? Math.abs(value) / reach : (value - least) / (most - least || 1);
    const colour = heat.signed ? (value > 0 ? FOR : AGAINST) : colourOf(share);
    image.data.set([...colour, 255 * (0.15 + 0.85 * share ** 0.75)], 4 * place);
  });
  pen.putImageData(image, 0, 0);
  return small;
}

function bounds(values) {
  let least = Infinity;
  let most = -Infinity;
  for (const value of values) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return [least, most];
}

function colourOf(share) {
  const at = Math.min(share * (HEAT.length - 1), HEAT.length - 1.001);
  const low = Math.floor(at);
  return HEAT[low].map((value, channel) => value + (HEAT[low + 1][channel] - value) * (at - low));
}

function write(pen, canvas, text) {
  pen.fillStyle = "#888";
  pen.font = `${Math.round(canvas.width / 9)}px sans-serif`; // to be read in the small pictures of the history, too
  pen.textAlign = "center";
  pen.fillText(text, canvas.width / 2, canvas.height / 2);
}
