// One network in step: its tape, its controller and its output, with views of its memory and of the whole run.

const gauge = (name, title) => {
  const fill = el("i"),
    number = el("output", {});
  const node = el(
    "div",
    { class: "gauge", title },
    el("span", {}, name),
    el("span", { class: "track", "aria-hidden": "true" }, fill),
    number,
  );
  const show = (value) => {
    fill.style.transform = `scaleX(${Math.min(1, value).toFixed(4)})`;
    fill.style.background = colour(value);
    number.textContent = two(value);
  };
  return { node, show };
};

class Panel {
  constructor(network, task, onStep) {
    this.network = network;
    this.task = task;
    this.memory = new MemoryView(network);
    this.buffer = network.buffered ? new OutputBufferView(network, task) : null;
    this.gauges = {
      u: gauge("pop", "strength taken from the memory"),
      d: gauge("push", "strength with which the vector is pushed"),
    };
    if (network.buffered || network.gates) {
      this.gauges.i = gauge("take", "strength taken from the input buffer before the next step");
      this.gauges.o = gauge("give", "strength with which the output enters its buffer");
    }
    this.pushed = el("span", { class: "swatch", role: "img" });
    this.wasRead = el("span", { class: "swatch", role: "img" });
    const bars = (name, of) => ({ name, of, node: el("div", { class: "bars", role: "img" }) });
    this.states = ["linear", "mlp"].includes(network.controller) ? [] : [bars("state", (t) => this.run.h[t])];
    if (network.controller === "lstm") this.states.push(bars("cell", (t) => this.run.c[t]));
    this.tape = el("div", { class: "tape" });
    this.bars = task.alphabet
      .slice(0, MOST_ROWS)
      .map((symbol) => ({ name: el("span", {}, symbol), fill: el("i"), number: el("output") }));
    this.distribution = el(
      "div",
      { class: "distribution" },
      ...this.bars.flatMap(({ name, fill, number }) => [
        name,
        el("span", { class: "track", "aria-hidden": "true" }, fill),
        number,
      ]),
    );
    this.verdict = el("p", { class: "verdict" });
    this.words = el("p", { class: "words", "aria-live": "polite" });
    this.machine = task.pdt ? new TransducerView(task.pdt) : null;
    const controller = el(
      "div",
      { class: "card controller" },
      el("h3", {}, "Controller", el("small", {}, network.controller)),
      ...Object.values(this.gauges).map((g) => g.node),
      el("div", { class: "vector" }, el("span", {}, "pushes"), this.pushed),
      el("div", { class: "vector" }, el("span", {}, "reads"), this.wasRead),
      ...this.states.map(({ name, node }) => el("div", { class: "state" }, el("span", {}, name), node)),
    );
    const output = el(
      "div",
      { class: "card output" },
      el("h3", {}, network.buffered ? "Output of this step" : "Output"),
      this.distribution,
      this.verdict,
    );
    this.heat = new HeatView(network, task, onStep);
    this.node = el(
      "section",
      { class: "panel", "aria-label": network.title },
      el("header", {}, el("h2", {}, network.title), el("p", { class: "facts" }, network.facts)),
      this.tape,
      el(
        "div",
        { class: this.machine ? "machine" : "machine alone" },
        controller,
        this.memory.node,
        output,
        this.machine ? this.machine.node : null,
        this.buffer ? this.buffer.node : null,
      ),
      this.words,
      this.heat.node,
    );
  }

  // A new input: run it, or take the run that was recorded.
  begin(example, recorded) {
    this.example = example;
    this.given = padded(this.network, this.task, example.input);
    this.run = recorded ?? forward(this.network, oneHot(this.task.alphabet, this.given));
    this.says = this.run.output.map((y) => this.task.alphabet[largest(y)]);
    this.memory.begin(this.run, this.network.buffered ? null : this.given);
    if (this.machine) this.machine.begin(example.input);
    this.heat.begin(this.run, this.network.buffered ? null : this.given);
    const total = new Float64Array(this.run.steps + 1);
    this.run.o.forEach((o, t) => (total[t + 1] = total[t] + o));
    this.ends = total; // strength in the output buffer after each step
    if (this.buffer) this.buffer.begin(this.run, total, this.node.clientWidth);
    this.layTape();
  }

  // The page has another width now.
  resize() {
    this.layTape();
    this.heat.draw();
    if (this.buffer) this.buffer.begin(this.run, this.ends, this.node.clientWidth);
  }

  get steps() {
    return this.run.steps;
  }

  // Where the read head is after a step: the item at the front of the input buffer.
  head(t) {
    return this.network.buffered ? Math.min(this.run.input[t].front, this.given.length - 1) : t;
  }

  // Whether the j-th symbol of output has been said by step t.
  said(j, t) {
    if (!this.network.buffered) return j <= t;
    return t === this.steps - 1 || this.ends[t + 1] >= j + 1 + (this.network.discard_first ? 1 : 0) - 1e-9;
  }

  show(t) {
    const { run, network, task } = this;
    for (const [name, { show }] of Object.entries(this.gauges)) show(run[name][t]);
    for (const [swatch, vector, name] of [
      [this.pushed, run.v[t], "pushed vector"],
      [this.wasRead, run.r[t], "read vector"],
    ]) {
      swatch.style.background = strip(vector);
      swatch.setAttribute("aria-label", `${name}: ${Array.from(vector, two).join(", ")}`);
      swatch.title = `(${Array.from(vector, two).join(", ")})`;
    }
    this.showState(t);
    this.memory.show(t);
    if (this.buffer) this.buffer.show(t);
    if (this.machine) this.machine.show(this.head(t) + 1);
    this.showTape(t);
    this.showOutput(t);
    this.heat.show(t);
    this.words.textContent = this.sentence(t);
  }

  // h, and the LSTM's c: a bar from the middle line up, or turned over and down.
  showState(t) {
    for (const { name, node, of } of this.states) {
      const values = of(t);
      node.setAttribute("aria-label", `${name}: ${Array.from(values, two).join(", ")}`);
      if (node.children.length !== values.length)
        node.replaceChildren(...Array.from(values, () => el("i", {}, el("b"))));
      values.forEach((value, k) => {
        const bar = node.children[k].firstChild;
        bar.className = value < 0 ? "minus" : "plus";
        bar.style.transform = `scaleY(${Math.max(-1, Math.min(1, value)).toFixed(3)})`;
      });
    }
  }

  // The cells of the tape that there is room for: rows of input, of what is said, and of targets.
  layTape() {
    const widest = Math.max(...this.task.alphabet.map((symbol) => symbol.length)),
      width = Math.max(30, 12 + 9.1 * widest);
    const room = Math.max(3, Math.floor(((this.tape.clientWidth || 700) - 92) / width));
    this.room = Math.min(room, this.given.length);
    const cells = () => Array.from({ length: this.room }, () => el("td"));
    this.rows = { input: cells(), says: cells(), target: this.example.known ? cells() : [] };
    const row = (name, cells) => el("tr", {}, el("th", { scope: "row" }, name), ...cells);
    this.edges = [el("span", { class: "edge" }), el("span", { class: "edge" })];
    const table = el(
      "table",
      { style: `--cell:${width}px;width:${66 + this.room * width}px` },
      row(this.network.buffered ? "input buffer" : "input", this.rows.input),
      row("says", this.rows.says),
      this.example.known ? row("target", this.rows.target) : null,
    );
    this.tape.replaceChildren(this.edges[0], table, this.edges[1]);
  }

  showTape(t) {
    const { example, given, network, rows, room } = this,
      head = this.head(t);
    const from = Math.max(0, Math.min(head - Math.floor(room / 2), given.length - room));
    for (let k = 0; k < room; k++) {
      const j = from + k,
        target = example.target[j] ?? null,
        shown = this.said(j, t) && j < this.says.length;
      const right = target !== null && shown ? (this.says[j] === target ? "right" : "wrong") : "";
      const unscored = example.known && target === null ? "unscored" : "";
      const here = j === head ? "head" : "",
        beyond = j >= example.input.length ? "padding" : "";
      set(rows.input[k], given[j], `${here} ${beyond} ${network.buffered ? "buffered" : ""}`);
      if (network.buffered)
        rows.input[k].style.setProperty("--left", `${(100 * this.strengthLeft(j, t)).toFixed(1)}%`);
      set(
        rows.says[k],
        shown ? this.says[j] : "",
        `${right} ${unscored} ${here && !network.buffered ? "now" : ""}`,
      );
      if (rows.target.length) set(rows.target[k], target ?? "·", "target");
    }
    set(this.edges[0], from > 0 ? "‹" : "", "edge");
    set(this.edges[1], from + room < given.length ? "›" : "", "edge");
  }

  strengthLeft(j, t) {
    const { front, left } = this.run.input[t];
    return j < front ? 0 : j === front ? left : 1;
  }

  showOutput(t) {
    const { task, network } = this,
      p = softmax(this.run.y[t]),
      best = largest(p);
    const target = network.buffered ? null : (this.example.target[t] ?? null);
    const names = task.alphabet;
    this.bars.forEach(({ name, fill, number }, k) => {
      set(name, names[k], `name ${names[k] === target ? "target" : ""} ${k === best ? "best" : ""}`);
      fill.style.transform = `scaleX(${p[k].toFixed(4)})`;
      fill.style.background = colour(p[k]);
      set(number, percent(p[k]), "");
    });
    const right = target === null ? null : names[best] === target;
    this.verdict.className = `verdict ${right === null ? "" : right ? "right" : "wrong"}`;
    this.verdict.textContent =
      right === null
        ? network.buffered
          ? this.score()
          : this.example.known
            ? "not scored here"
            : ""
        : right
          ? `right: ${target}`
          : `wrong: the target is ${target}`;
  }

  // How the whole run did.
  score() {
    const places = this.example.target.flatMap((symbol, j) => (symbol === null ? [] : [j]));
    if (!places.length) return "";
    const right = places.filter((j) => this.says[j] === this.example.target[j]).length;
    return `${right} of ${places.length} right in the whole run`;
  }

  sentence(t) {
    const { run, network, task } = this,
      p = softmax(run.y[t]),
      best = largest(p),
      { total, count } = this.memory.held(t);
    const gives = network.buffered ? `, takes ${two(run.i[t])} and gives ${two(run.o[t])}` : "";
    const target = network.buffered ? null : (this.example.target[t] ?? null);
    const verdict =
      target === null ? "" : task.alphabet[best] === target ? ", right" : `, wrong, the target is ${target}`;
    const holds =
      network.memory === "none"
        ? ""
        : ` The ${network.memory} holds ${two(total)} in ${count} ${count === 1 ? "cell" : "cells"}.`;
    return (
      `Step ${t + 1} of ${run.steps}. Input ${this.given[this.head(t)]}. ` +
      `Pops ${two(run.u[t])}, pushes ${two(run.d[t])}${gives}.${holds} ` +
      `Says ${task.alphabet[best]} (${percent(p[best])})${verdict}.`
    );
  }
}
