// Memories as they are drawn: the stack or queue, and a buffered network's output buffer.
//
// What a step leaves as it was stays where it is: cells and items have places of their own, and what holds them
// is moved as a whole.

const STACK_HEIGHT = 264;
const MOST_UNIT = 46; // pixels for a strength of 1
const LEAST_UNIT = 12;
const OUTPUT_UNIT = 52;

// Children by key: those that are wanted are made once and kept, the others are removed.
class Keyed {
  constructor(parent) {
    this.parent = parent;
    this.nodes = new Map();
  }

  keep(wanted, make) {
    for (const [key, node] of this.nodes) if (!wanted.has(key)) (node.remove(), this.nodes.delete(key));
    for (const key of wanted.keys())
      if (!this.nodes.has(key)) (this.nodes.set(key, make(key)), this.parent.append(this.nodes.get(key)));
  }
}

// A stack drawn as a stack: each cell's height its strength, its bands its vector, and what is read marked.
class MemoryView {
  constructor(network) {
    this.network = network;
    this.bracket = el("div", { class: "bracket" }, el("span", {}, "read"));
    this.more = el("div", { class: "more" });
    this.pile = el("div", { class: "pile" });
    this.cells = new Keyed(this.pile);
    const attributes = { class: "stack", "aria-hidden": "true", style: `height:${STACK_HEIGHT}px` };
    this.box = el("div", attributes, this.pile, this.bracket, this.more);
    this.caption = el("p", { class: "caption" });
    const title = { stack: "Stack", queue: "Queue", none: "No memory" }[network.memory];
    const note = el("small", {}, network.memory === "queue" ? "front on top" : "");
    this.node = el("div", { class: "card memory" }, el("h3", {}, title, note), this.box, this.caption);
  }

  begin(run, symbols) {
    this.run = run;
    this.symbols = symbols;
    this.widest = symbols ? Math.max(...symbols.map((symbol) => symbol.length)) : 0;
    this.box.style.setProperty("--label", `${12 + 7.3 * (this.widest + (this.widest ? 2 : 0) + 4)}px`);
    let most = 1;
    for (let t = 0; t < run.steps; t++) most = Math.max(most, this.held(t).total);
    this.unit = Math.max(LEAST_UNIT, Math.min(MOST_UNIT, (STACK_HEIGHT - 18) / most));
    this.cells.keep(new Map());
  }

  // How much the memory holds after a step, in how many cells.
  held(t) {
    const state = this.run.memory[t];
    if (this.network.memory === "stack" && !this.run.recorded) return state ?? { total: 0, count: 0 };
    let [total, count] = [0, 0];
    for (const [, s] of this.run.cells(t)) ((total += s), (count += s > 0));
    return { total, count };
  }

  show(t) {
    const { total, count } = this.held(t);
    const { unit, network } = this;
    const floor = Math.max(0, total * unit - (STACK_HEIGHT - 18)); // what is below is cut off
    const wanted = new Map(); // slot -> its strength, and the strength below it
    let [left, hidden] = [total, 0];
    for (const [slot, s] of this.run.cells(t)) {
      if (left * unit <= floor) break;
      left -= s;
      if (s * unit >= 0.6) wanted.set(slot, [s, Math.max(left, 0)]);
      else hidden += 1;
    }
    this.cells.keep(wanted, (slot) => this.cell(slot, t));
    for (const [slot, [s, below]] of wanted) this.place(slot, s, below);
    const reading = Math.min(1, total);
    const marked = reading * unit > 8 && network.memory !== "none";
    this.pile.style.transform = `translateY(${floor.toFixed(1)}px)`;
    this.bracket.style.cssText = marked
      ? `height:${reading * unit}px;transform:translateY(${floor - (total - reading) * unit}px)`
      : "display:none";
    const below = count - wanted.size - hidden;
    set(this.more, floor > 0 && below > 0 ? `${below} more below` : "", "more");
    const holds = `holds ${two(total)} in ${count} ${count === 1 ? "cell" : "cells"}`;
    set(this.caption, network.memory === "none" ? "Reads 0 at every step." : holds, "caption");
  }

  cell(slot, t) {
    const node = el(
      "div",
      { class: slot === t ? "cell new" : "cell" },
      el("i"),
      el("span", { class: "label" }),
    );
    const vector = this.run.v[slot];
    node.firstChild.style.background = vector ? strip(vector) : "var(--hatch)";
    return node;
  }

  place(slot, s, below) {
    const node = this.cells.nodes.get(slot);
    const style = `bottom:${(below * this.unit).toFixed(1)}px;height:${(s * this.unit).toFixed(1)}px`;
    if (node.dataset.place === style) return;
    node.style.cssText = node.dataset.place = style;
    const symbol = this.symbols && this.symbols[slot];
    const name = symbol ? `${symbol.padEnd(this.widest)}  ` : "";
    set(node.lastChild, s * this.unit >= 12 ? `${name}${two(s)}` : "", "label");
  }
}

// §2.3: what has been given so far, laid end to end: each whole unit of strength is one symbol of output.
class OutputBufferView {
  constructor(network, task) {
    this.network = network;
    this.task = task;
    this.row = el("div", { class: "row" });
    this.items = new Keyed(this.row);
    this.units = new Keyed(this.row);
    const note = el("small", {}, "one symbol for each whole unit of strength");
    const line = el("div", { class: "line", "aria-hidden": "true" }, this.row);
    this.node = el("div", { class: "card wide buffer" }, el("h3", {}, "Output buffer", note), line);
  }

  // `ends` is the strength in the buffer after each step, and before the first.
  begin(run, ends, width) {
    this.run = run;
    this.ends = ends;
    this.room = Math.max(4, Math.floor(((width || 600) - 80) / OUTPUT_UNIT) - 1); // whole units that are drawn
    this.items.keep(new Map());
    this.units.keep(new Map());
  }

  show(t) {
    const { ends, room } = this;
    const total = ends[t + 1];
    const from = Math.max(0, Math.floor(total) - room + 1); // the first whole unit drawn
    const items = new Map();
    for (let k = t; k >= 0 && ends[k + 1] > from; k--) if (ends[k + 1] - ends[k] > 0.005) items.set(k);
    this.items.keep(items, (k) => this.item(k));
    const units = new Map();
    for (let n = from; n < Math.ceil(total - 1e-9); n++) units.set(n, n + 1 <= total + 1e-9);
    this.units.keep(units, (n) => el("div", { style: `left:${n * OUTPUT_UNIT}px;width:${OUTPUT_UNIT}px` }));
    const off = this.network.discard_first ? 1 : 0;
    for (const [n, whole] of units) {
      const says =
        whole && this.run.output[n - off] ? this.task.alphabet[largest(this.run.output[n - off])] : "…";
      set(this.units.nodes.get(n), n < off ? "thrown away" : says, n < off ? "unit thrown" : "unit");
    }
    this.row.style.transform = `translateX(${-from * OUTPUT_UNIT}px)`;
  }

  item(k) {
    const p = softmax(this.run.y[k]);
    const width = (this.ends[k + 1] - this.ends[k]) * OUTPUT_UNIT;
    const style = `left:${this.ends[k] * OUTPUT_UNIT}px;width:${width}px;background:${strip(p)}`;
    return el(
      "div",
      { class: "item", style },
      width > 15 ? el("b", {}, this.task.alphabet[largest(p)]) : null,
    );
  }
}
