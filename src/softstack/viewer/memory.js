// What a memory holds, drawn as the memory declares it: a pile with the last cell on top, a line with the
// first cell in front, or cells side by side.
//
// What a step leaves as it was stays where it is: cells have places of their own, and what holds them is
// moved as a whole.

const MEMORY_HEIGHT = 264; // of a memory that holds much, and of the page to play with
const LEAST_HEIGHT = 110;
const MOST_UNIT = 46; // pixels for a strength of 1
const LEAST_UNIT = 12;
const MOST_BESIDE = 48; // cells drawn side by side

const NOTES = { pile: "", line: "front on top", cells: "" };

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

const hasNone = (memory) => memory.name === "none";
const cellsHeld = ({ total, count }) => `holds ${two(total)} in ${count} ${count === 1 ? "cell" : "cells"}`;

// The card of a memory: its name, its cells, and how much it holds.
class MemoryView {
  constructor({ memory }) {
    this.memory = memory;
    this.view = hasNone(memory) ? null : memory.drawn === "cells" ? new Beside() : new Pile(memory);
    this.caption = el("p", { class: "caption" });
    const title = hasNone(memory) ? "No memory" : memory.name[0].toUpperCase() + memory.name.slice(1);
    const heading = el("h3", {}, title, el("small", {}, NOTES[memory.drawn]));
    this.node = el("div", { class: "card memory" }, heading, this.view && this.view.box, this.caption);
  }

  // `symbols` are those of the steps, where each has one.
  begin(run, symbols) {
    this.run = run;
    if (this.view) this.view.begin(run, symbols);
  }

  show(t) {
    if (!this.view) return set(this.caption, "Nothing is pushed, popped or read.", "caption");
    this.view.show(t);
    set(this.caption, cellsHeld(this.run.held(t)), "caption");
  }
}

// Cells one above the other, the nearest on top: a cell's height is its strength and its bands are its vector.
// Of a stack or a queue, what is read is marked, and each cell has the symbol with which it came.
class Pile {
  constructor(memory, mostUnit = MOST_UNIT, leastHeight = LEAST_HEIGHT) {
    Object.assign(this, { items: memory.items, mostUnit, leastHeight });
    this.bracket = el("div", { class: "bracket" }, el("span", {}, "read"));
    this.more = el("div", { class: "more" });
    this.pile = el("div", { class: "pile" });
    this.cells = new Keyed(this.pile);
    this.box = el("div", { class: "stack", "aria-hidden": "true" }, this.pile, this.bracket, this.more);
  }

  begin(run, symbols) {
    this.run = run;
    this.symbols = this.items && symbols ? symbols.map(spelled) : null;
    this.widest = this.symbols ? Math.max(...this.symbols.map((symbol) => symbol.length)) : 0;
    this.box.style.setProperty("--label", `${12 + 7.3 * (this.widest + (this.widest ? 2 : 0) + 4)}px`);
    let most = 1;
    for (let t = 0; t < run.steps; t++) most = Math.max(most, run.held(t).total || 0);
    this.unit = clipped((MEMORY_HEIGHT - 18) / most, LEAST_UNIT, this.mostUnit);
    this.height = clipped(Math.ceil(most * this.unit) + 18, this.leastHeight, MEMORY_HEIGHT); // the same in all steps
    this.box.style.height = `${this.height}px`;
    this.cells.keep(new Map());
  }

  show(t) {
    const { total, count } = this.run.held(t),
      { unit } = this;
    const floor = Math.max(0, total * unit - (this.height - 18)); // what is below is cut off
    const wanted = new Map(); // slot -> its strength, and the strength below it
    let [left, hidden] = [total, 0];
    for (const [slot, s] of this.run.cells(t)) {
      if (left * unit <= floor) break;
      left -= s;
      if (s * unit >= 0.6) wanted.set(slot, [s, Math.max(left, 0)]);
      else hidden += 1;
    }
    this.cells.keep(wanted, (slot) => this.cell(slot, t));
    for (const [slot, [s, below]] of wanted) this.place(slot, s, below, t);
    const reading = Math.min(1, total);
    this.pile.style.transform = `translateY(${floor.toFixed(1)}px)`;
    this.bracket.style.cssText =
      this.items && reading * unit > 8
        ? `height:${reading * unit}px;transform:translateY(${floor - (total - reading) * unit}px)`
        : "display:none";
    const below = count - wanted.size - hidden;
    set(this.more, floor > 0 && below > 0 ? `${below} more below` : "", "more");
  }

  cell(slot, t) {
    const fresh = this.items && slot - this.run.earlier === t;
    const node = el("div", { class: fresh ? "cell new" : "cell" }, el("i"), el("span", { class: "label" }));
    node.firstChild.style.background = strip(this.run.vector(slot, t));
    return node;
  }

  place(slot, s, below, t) {
    const node = this.cells.nodes.get(slot);
    if (!this.run.fixed) node.firstChild.style.background = strip(this.run.vector(slot, t));
    const style = `bottom:${(below * this.unit).toFixed(1)}px;height:${(s * this.unit).toFixed(1)}px`;
    if (node.dataset.place === style) return;
    node.style.cssText = node.dataset.place = style;
    const symbol = this.symbols && this.symbols[slot - this.run.earlier];
    const name = symbol ? `${symbol.padEnd(this.widest)}  ` : "";
    set(node.lastChild, s * this.unit >= 12 ? `${name}${two(s)}` : "", "label");
  }
}

// Cells side by side, the first on the left: each is filled as high as it is strong, and has its strength above
// it. An empty cell is drawn too: it has a place.
class Beside {
  constructor() {
    this.row = el("div", { class: "beside" });
    this.more = el("div", { class: "more" });
    const attributes = { class: "stack", "aria-hidden": "true", style: `height:${MEMORY_HEIGHT}px` };
    this.box = el("div", attributes, this.row, this.more);
    this.cells = new Keyed(this.row);
  }

  begin(run) {
    this.run = run;
    this.cells.keep(new Map());
  }

  show(t) {
    const cells = [...this.run.cells(t)],
      wanted = new Map(cells.slice(0, MOST_BESIDE));
    this.cells.keep(wanted, () => el("div", { class: "column" }, el("i", {}, el("b")), el("span")));
    for (const [slot, s] of wanted) {
      const node = this.cells.nodes.get(slot),
        { firstChild: box, lastChild: label } = node,
        vector = this.run.vector(slot, t);
      box.firstChild.style.height = `${(100 * clipped(s)).toFixed(1)}%`;
      box.firstChild.style.background = strip(vector);
      node.title = `(${Array.from(vector, two).join(", ")})`;
      set(label, two(s), "");
    }
    this.row.className = wanted.size > 12 ? "beside many" : "beside"; // where numbers need less room upright
    const hidden = cells.length - wanted.size;
    set(this.more, hidden ? `${hidden} more` : "", "more");
  }
}
