// The whole run as the heat map of Figures 5 and 6.

const MOST_ROWS = 32; // of a group; more cannot be told apart, and the group is left out

// The run of Figures 5 and 6, time from left to right: groups of rows, each row one number at each step.
function heatRows(network, task, run) {
  const group = (title, labels, vectors) => {
    const [least, most] = range(vectors),
      whole = least === 0 && most === 1,
      name = whole ? title : `${title} (${two(least)} to ${two(most)})`,
      shade = (value) => (whole ? value : (value - least) / (most - least));
    const drawn = labels.length <= MOST_ROWS ? vectors : [];
    const values = (k) => drawn.map((vector) => (vector ? shade(vector[k]) : null));
    return { name, rows: labels.map((label, k) => ({ name: label, values: values(k) })) };
  };
  const ofHead = ({ name, title, labels }) =>
    group(title, labels, same(labels, [""]) ? run.said[name].map((value) => [value]) : run.said[name]);
  const groups = [
    ...network.heads.map(ofHead),
    group("input", (task.letters ?? task.alphabet).map(spelled), run.x),
    group("output", task.alphabet.map(spelled), run.y.map(softmax)),
  ];
  if (network.buffered) groups.push(group("read off", task.alphabet.map(spelled), whenWhole(network, run)));
  return groups.filter(({ rows }) => rows.length && rows.length <= MOST_ROWS);
}

// §2.3: what is read off the output buffer, at the steps at which it was whole; null at the others.
function whenWhole(network, run) {
  const first = network.discard_first ? 1 : 0;
  let given = 0,
    count = -first;
  return run.said.o.map((o) => {
    given += o;
    if (given < count + first + 1 - 1e-9) return null;
    count += 1;
    return count > 0 && run.output[count - 1] ? softmax(run.output[count - 1]) : null;
  });
}

// What the darkest and the lightest colour stand for: 0 and 1, or less and more where numbers need it.
function range(vectors) {
  let least = 0,
    most = 1;
  for (const vector of vectors)
    for (const value of vector ?? [])
      if (Number.isFinite(value)) ((least = Math.min(least, value)), (most = Math.max(most, value)));
  return [least, most];
}

function shades(rows, steps) {
  const image = new ImageData(steps, rows.length);
  rows.forEach(({ values }, k) =>
    values.forEach((value, t) => {
      if (value === null) return;
      const [red, green, blue] = PALETTE[shade(value)];
      image.data.set([red, green, blue, 255], 4 * (k * steps + t));
    }),
  );
  return image;
}

const HEAT = { row: 15, gap: 7, numbers: 16, top: 20, least: 3, word: 13, most: 44, longest: 90, wide: 16000 };

// The width of a step: all steps fit, if that leaves them wide enough. Words are kept readable, and scroll.
function stepWidth(steps, symbols, width) {
  const wordy = symbols && symbols.some((symbol) => symbol.length > 1 && isNaN(symbol)),
    least = wordy && HEAT.word * steps <= HEAT.wide ? HEAT.word : HEAT.least;
  return Math.max(least, Math.min(HEAT.most, Math.floor(width / Math.max(steps, 1))));
}

// How far apart the numbers of steps stand, so that they do not meet.
const stepsApart = (step, steps) =>
  [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((n) => n * step >= 12 + 6.5 * String(steps).length);

// The symbols above the steps, and the height that they need: upright where one is wider than its step.
function heatHeadings(pen, symbols, step) {
  const texts = step >= 9 && symbols ? symbols.map(spelled) : [],
    widest = Math.ceil(Math.max(0, ...[...new Set(texts)].map((text) => pen.measureText(text).width)));
  if (!texts.length) return { texts, upright: false, height: 4 };
  const upright = widest > step + 1;
  return { texts, upright, height: upright ? Math.min(widest, HEAT.longest) + 8 : HEAT.top };
}

function drawHeadings(pen, { texts, upright }, step, top) {
  texts.forEach((text, t) => {
    const x = (t + 0.5) * step;
    if (!upright) return pen.fillText(text, x, top - 6);
    pen.save();
    pen.translate(x + 4, top - 5);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "left";
    pen.fillText(text, 0, 0, HEAT.longest);
    pen.restore();
  });
}

function drawNumbers(pen, step, steps) {
  const apart = stepsApart(step, steps);
  for (let n = 1; n <= steps; n++)
    if (n % apart === 0 || (n === 1 && apart !== 2)) pen.fillText(n, (n - 0.5) * step, 11);
}

// Draws groups of rows on a canvas, and gives the width of a step in CSS pixels, the height of all and where the
// rows begin.
function drawHeat(canvas, groups, steps, symbols, width) {
  const step = stepWidth(steps, symbols, width);
  const pen = canvas.getContext("2d"),
    font = `12px ${getComputedStyle(document.body).fontFamily}`;
  pen.font = font;
  const headings = heatHeadings(pen, symbols && symbols.slice(0, steps), step),
    top = HEAT.numbers + headings.height;
  const height = top + groups.reduce((sum, g) => sum + g.rows.length * HEAT.row + HEAT.gap, 0) - HEAT.gap;
  const scale = Math.min(window.devicePixelRatio || 1, 32000 / (step * steps || 1));
  canvas.width = Math.ceil(step * steps * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.style.width = `${step * steps}px`;
  canvas.style.height = `${height}px`;
  const small = document.createElement("canvas");
  pen.scale(scale, scale);
  pen.imageSmoothingEnabled = false;
  const gap = step >= 10 ? 1 : 0;
  let y = top;
  for (const { rows } of groups) {
    small.width = Math.max(steps, 1);
    small.height = rows.length;
    small.getContext("2d").putImageData(shades(rows, small.width), 0, 0); // a pixel for each number
    pen.drawImage(small, 0, y, step * steps, HEAT.row * rows.length);
    for (let k = 1; k <= rows.length; k++) pen.clearRect(0, y + k * HEAT.row - 1, step * steps, 1);
    y += rows.length * HEAT.row + HEAT.gap;
  }
  for (let t = 1; gap && t <= steps; t++) pen.clearRect(t * step - 1, 0, 1, height);
  const { color, borderTopColor } = getComputedStyle(canvas); // of symbols, and of numbers
  pen.textAlign = "center";
  pen.fillStyle = color;
  pen.font = font;
  drawHeadings(pen, headings, step, top);
  pen.fillStyle = borderTopColor;
  pen.font = font.replace("12px", "10.5px");
  drawNumbers(pen, step, steps);
  return { step, height, top };
}

// The whole run. Click or drag to go to a step.
class HeatView {
  constructor(network, task, onStep) {
    Object.assign(this, { network, task });
    this.canvas = el("canvas", { role: "img" });
    this.cursor = el("div", { class: "cursor" });
    this.scroller = el("div", { class: "scroller" }, el("div", { class: "inner" }, this.canvas, this.cursor));
    this.labels = el("div", { class: "labels", "aria-hidden": "true" });
    this.sign = el("p", { class: "scrolls", "aria-hidden": "true" });
    this.node = el("div", { class: "heat" }, this.labels, this.scroller, this.sign);
    this.left = 0; // asking the scroller would make the browser lay the page out in every step
    this.scroller.addEventListener("scroll", () => {
      this.left = this.scroller.scrollLeft;
      this.showSign();
    });
    const go = (event) => {
      const t = Math.floor((event.clientX - this.canvas.getBoundingClientRect().left) / this.size.step);
      onStep(Math.max(0, Math.min(this.steps - 1, t)));
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      go(event);
    });
    this.canvas.addEventListener("pointermove", (event) => event.buttons && go(event));
  }

  begin(run, symbols) {
    this.steps = run.steps;
    this.symbols = symbols;
    this.groups = heatRows(this.network, this.task, run);
    this.canvas.setAttribute(
      "aria-label",
      `The whole run, ${run.steps} steps from left to right, lighter is more: ` +
        this.groups.map((group) => group.name).join(", "),
    );
    this.labels.replaceChildren(
      ...this.groups.map(({ name, rows }) =>
        el(
          "div",
          { class: "group" },
          el("span", { title: name }, name),
          el("div", {}, ...rows.map((row) => el("span", {}, row.name))),
        ),
      ),
    );
    this.draw();
  }

  draw() {
    this.width = (this.scroller.clientWidth || 700) - 6;
    this.size = drawHeat(this.canvas, this.groups, this.steps, this.symbols, this.width);
    this.labels.style.paddingTop = `${this.size.top}px`;
    this.showSign();
    this.cursor.style.width = `${Math.max(this.size.step - (this.size.step >= 10 ? 1 : 0), 3)}px`;
    this.cursor.style.height = `${this.size.height}px`;
  }

  // Where not all steps fit: which are in view, and that it scrolls.
  showSign() {
    const { step } = this.size,
      hidden = step * this.steps - this.width;
    this.node.classList.toggle("before", hidden > 1 && this.left > 1);
    this.node.classList.toggle("after", hidden > 1 && this.left < hidden - 1);
    const first = Math.floor(this.left / step) + 1,
      last = Math.min(this.steps, Math.floor((this.left + this.width) / step));
    set(
      this.sign,
      hidden > 1 ? `‹ steps ${first} to ${last} of ${this.steps}: scroll for the others ›` : "",
      "scrolls",
    );
  }

  show(t) {
    const x = t * this.size.step,
      room = this.width;
    this.cursor.style.transform = `translateX(${x}px)`;
    if (x < this.left || x + this.size.step > this.left + room)
      this.scroller.scrollLeft = this.left = Math.max(0, x - room / 2);
  }
}
