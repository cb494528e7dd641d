// What drawing needs: colours, elements, and the chart of accuracy against length.

// viridis at 33 places: perceptually even, and told apart by colour-blind readers. Lighter is more.
const VIRIDIS = (
  "440154 470d60 48186a 482374 472d7b 453781 424086 3e4989 3b528b 375b8d 33638d 2f6b8e 2c728e 297a8e " +
  "26828e 23898e 21918c 1f988b 1fa088 22a785 28ae80 32b67a 3fbc73 4ec36b 5ec962 70cf57 84d44b 98d83e " +
  "addc30 c2df23 d8e219 ece51b fde725"
)
  .split(" ")
  .map((hex) => [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16)));

function rgb(value) {
  const at = Math.max(0, Math.min(1, value)) * (VIRIDIS.length - 1),
    k = Math.min(Math.floor(at), VIRIDIS.length - 2);
  return VIRIDIS[k].map((low, c) => Math.round(low + (at - k) * (VIRIDIS[k + 1][c] - low)));
}

const PALETTE = [...Array.from({ length: 256 }, (_, k) => rgb(k / 255)), [128, 128, 128]]; // the last for NaN
const SHADES = PALETTE.map((parts) => `rgb(${parts.join(",")})`);
const shade = (value) => (Number.isNaN(value) ? 256 : Math.round(255 * Math.max(0, Math.min(1, value))));
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
  const n = vector.length,
    bands = Array.from(
      vector,
      (value, k) => `${colour(value)} ${((100 * k) / n).toFixed(2)}% ${((100 * (k + 1)) / n).toFixed(2)}%`,
    );
  return `linear-gradient(to right, ${bands.join(", ")})`;
}

const percent = (value) => `${Math.round(100 * value)} %`;
const two = (value) => value.toFixed(2);
const clipped = (value, least = 0, most = 1) => Math.max(least, Math.min(most, value)) || 0; // NaN as 0

// Accuracy against length, a line for each network; markers differ in shape as well as in colour.
function accuracyChart(series, trained) {
  const W = 620,
    H = 250,
    left = 44,
    right = 14,
    top = 14,
    bottom = 38;
  const longest = Math.max(...series.flatMap((s) => s.points.map((p) => p.length)), 1);
  const x = (length) => left + ((W - left - right) * length) / longest;
  const y = (accuracy) => top + (H - top - bottom) * (1 - accuracy);
  const said = series.map(
    (s) =>
      `${s.name}: ` + s.points.map((p) => `at ${Math.round(p.length)}, ${percent(p.accuracy)}`).join("; "),
  );
  const chart = svg("svg", {
    viewBox: `0 0 ${W} ${H}`,
    class: "chart",
    role: "img",
    "aria-label": `Accuracy against length. ${said.join(". ")}`,
  });
  for (const level of [0, 0.25, 0.5, 0.75, 1]) {
    chart.append(svg("line", { x1: left, x2: W - right, y1: y(level), y2: y(level), class: "grid" }));
    const label = svg("text", { x: left - 6, y: y(level) + 4, class: "end" });
    label.textContent = percent(level);
    chart.append(label);
  }
  const range = svg("rect", {
    x: x(0),
    width: x(Math.min(trained, longest)) - x(0),
    y: top,
    height: H - top - bottom,
    class: "trained",
  });
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
      chart.append(
        n
          ? svg("rect", { x: x(p.length) - 4, y: y(p.accuracy) - 4, width: 8, height: 8, class: "mark1" })
          : svg("circle", { cx: x(p.length), cy: y(p.accuracy), r: 4.5, class: "mark0" }),
      );
  });
  return chart;
}
