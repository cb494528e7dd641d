// What is drawn: colours, heat maps and the chart of accuracy against length.

// viridis at 33 places: perceptually even, and told apart by colour-blind readers. Lighter is more.
const VIRIDIS = [
  [68, 1, 84], [71, 13, 96], [72, 24, 106], [72, 35, 116], [71, 45, 123], [69, 55, 129], [66, 64, 134],
  [62, 73, 137], [59, 82, 139], [55, 91, 141], [51, 99, 141], [47, 107, 142], [44, 114, 142], [41, 122, 142],
  [38, 130, 142], [35, 137, 142], [33, 145, 140], [31, 152, 139], [31, 160, 136], [34, 167, 133], [40, 174, 128],
  [50, 182, 122], [63, 188, 115], [78, 195, 107], [94, 201, 98], [112, 207, 87], [132, 212, 75], [152, 216, 62],
  [173, 220, 48], [194, 223, 35], [216, 226, 25], [236, 229, 27], [253, 231, 37],
];

function rgb(value) {
  const at = Math.max(0, Math.min(1, value)) * (VIRIDIS.length - 1), k = Math.min(Math.floor(at), VIRIDIS.length - 2);
  return VIRIDIS[k].map((low, c) => Math.round(low + (at - k) * (VIRIDIS[k + 1][c] - low)));
}

const PALETTE = Array.from({ length: 256 }, (_, k) => rgb(k / 255));
const SHADES = PALETTE.map((parts) => `rgb(${parts.join(",")})`);
const shade = (value) => Math.round(255 * Math.max(0, Math.min(1, value)));
const colour = (value) => SHADES[shade(value)];

// An element with attributes and children; an attribute that is null, undefined or false is left out.
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// Change an element only where it differs: a step touches few of a page's elements.
function set(node, text, name) {
  if (node.textContent !== text) node.textContent = text;
  if (node.className !== name) node.className = name;
  return node;
}

// A vector in one strip, a band for each number.
function strip(vector) {
  const n = vector.length, bands = Array.from(vector, (value, k) =>
    `${colour(value)} ${((100 * k) / n).toFixed(2)}% ${((100 * (k + 1)) / n).toFixed(2)}%`);
  return `linear-gradient(to right, ${bands.join(", ")})`;
}

const percent = (value) => `${Math.round(100 * value)} %`;
const two = (value) => value.toFixed(2);

const MOST_ROWS = 32; // of a group; more cannot be told apart, and the group is left out

// The run of Figures 5 and 6, time from left to right: groups of rows, each row one number at each step.
function heatRows(network, task, run) {
  const column = (name, values) => ({ name, rows: [{ name: "", values }] });
  const group = (name, names, vectors) => ({
    name, rows: names.map((row, k) => ({ name: row, values: vectors.map((vector) => vector[k]) })),
  });
  const vectors = Array.from(run.v[0] ?? [], (_, k) => `${k + 1}`);
  const groups = [column("pop", run.u), column("push", run.d), group("pushed", vectors, run.v)];
  if (network.buffered || network.gates) groups.push(column("take", run.i), column("give", run.o));
  groups.push(group("input", task.letters ?? task.alphabet, scaled(run.x)), group("output", task.alphabet, run.y.map(softmax)));
  if (network.buffered) groups.push(group("read off", task.alphabet, run.output.map(softmax)));
  return groups.filter(({ rows }) => rows.length <= MOST_ROWS);
}

// Vectors as they are where they lie in [0, 1]; else between the least and the largest of their numbers.
function scaled(vectors) {
  let least = 0, most = 1;
  for (const vector of vectors) for (const value of vector) (least = Math.min(least, value)), (most = Math.max(most, value));
  return least === 0 && most === 1 ? vectors : vectors.map((vector) => Array.from(vector, (value) => (value - least) / (most - least)));
}

function shades(rows, steps) {
  const image = new ImageData(steps, rows.length);
  rows.forEach(({ values }, k) => values.forEach((value, t) => {
    const [red, green, blue] = PALETTE[shade(value)];
    image.data.set([red, green, blue, 255], 4 * (k * steps + t));
  }));
  return image;
}

const HEAT = { row: 15, gap: 7, top: 20, least: 3, most: 44 };

// Draws groups of rows on a canvas, and gives the width of a step in CSS pixels.
function drawHeat(canvas, groups, symbols, width) {
  const steps = groups[0].rows[0].values.length;
  const step = Math.max(HEAT.least, Math.min(HEAT.most, Math.floor(width / Math.max(steps, 1))));
  const height = HEAT.top + groups.reduce((sum, g) => sum + g.rows.length * HEAT.row + HEAT.gap, 0) - HEAT.gap;
  const scale = Math.min(window.devicePixelRatio || 1, 32000 / (step * steps || 1));
  canvas.width = Math.ceil(step * steps * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.style.width = `${step * steps}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d"), small = document.createElement("canvas");
  pen.scale(scale, scale);
  pen.imageSmoothingEnabled = false;
  const gap = step >= 10 ? 1 : 0;
  let y = HEAT.top;
  for (const { rows } of groups) {
    small.width = Math.max(steps, 1);
    small.height = rows.length;
    small.getContext("2d").putImageData(shades(rows, small.width), 0, 0); // a pixel a number, then enlarged
    pen.drawImage(small, 0, y, step * steps, HEAT.row * rows.length);
    for (let k = 1; k <= rows.length; k++) pen.clearRect(0, y + k * HEAT.row - 1, step * steps, 1);
    y += rows.length * HEAT.row + HEAT.gap;
  }
  for (let t = 1; gap && t <= steps; t++) pen.clearRect(t * step - 1, 0, 1, height);
  pen.fillStyle = getComputedStyle(canvas).color;
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  pen.textAlign = "center";
  if (step >= 9 && symbols)
    symbols.slice(0, steps).forEach((symbol, t) => {
      if (pen.measureText(symbol).width <= step + 2) pen.fillText(symbol, (t + 0.5) * step - gap / 2, 14);
    });
  return { step, height };
}

// Accuracy against length, a line for each network; markers differ in shape as well as in colour.
function accuracyChart(series, trained) {
  const W = 620, H = 250, left = 44, right = 14, top = 14, bottom = 38;
  const longest = Math.max(...series.flatMap((s) => s.points.map((p) => p.length)), 1);
  const x = (length) => left + ((W - left - right) * length) / longest;
  const y = (accuracy) => top + (H - top - bottom) * (1 - accuracy);
  const said = series.map((s) => `${s.name}: ` + s.points.map((p) => `at ${Math.round(p.length)}, ${percent(p.accuracy)}`).join("; "));
  const chart = svg("svg", { viewBox: `0 0 ${W} ${H}`, class: "chart", role: "img", "aria-label": `Accuracy against length. ${said.join(". ")}` });
  for (const level of [0, 0.25, 0.5, 0.75, 1]) {
    chart.append(svg("line", { x1: left, x2: W - right, y1: y(level), y2: y(level), class: "grid" }));
    const label = svg("text", { x: left - 6, y: y(level) + 4, class: "end" });
    label.textContent = percent(level);
    chart.append(label);
  }
  const range = svg("rect", { x: x(0), width: x(Math.min(trained, longest)) - x(0), y: top, height: H - top - bottom, class: "trained" });
  const note = svg("text", { x: x(0) + 6, y: H - bottom - 7 });
  note.textContent = "lengths in training";
  chart.append(range, note);
  const apart = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((n) => longest / n <= 12) ?? 1000;
  for (let length = 0; length <= longest; length += apart) {
    const tick = svg("text", { x: x(length), y: H - bottom + 16, class: "middle" });
    tick.textContent = length;
    chart.append(tick);
  }
  const axis = svg("text", { x: (W + left) / 2, y: H - 5, class: "middle" });
  axis.textContent = "length of the string";
  chart.append(axis);
  series.forEach(({ points }, n) => {
    const path = points.map((p, k) => `${k ? "L" : "M"}${x(p.length)} ${y(p.accuracy)}`).join("");
    chart.append(svg("path", { d: path, class: `line line${n}` }));
    for (const p of points)
      chart.append(n ? svg("rect", { x: x(p.length) - 4, y: y(p.accuracy) - 4, width: 8, height: 8, class: "mark1" })
        : svg("circle", { cx: x(p.length), cy: y(p.accuracy), r: 4.5, class: "mark0" }));
  });
  return chart;
}
