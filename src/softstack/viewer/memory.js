// Memories as they are drawn: the stack or queue, and a buffered network's output buffer.

const STACK_HEIGHT = 264,
  MOST_UNIT = 46,
  LEAST_UNIT = 12;

// A stack drawn as a stack: each cell's height its strength, its bands its vector, and what is read marked.
class MemoryView {
  constructor(network) {
    this.network = network;
    this.box = el("div", { class: "stack", "aria-hidden": "true", style: `height:${STACK_HEIGHT}px` });
    this.bracket = el("div", { class: "bracket" }, el("span", {}, "read"));
    this.more = el("div", { class: "more" });
    this.box.append(this.bracket, this.more);
    this.cells = new Map(); // slot -> its element
    this.caption = el("p", { class: "caption" });
    const title = { stack: "Stack", queue: "Queue", none: "No memory" }[network.memory];
    this.node = el(
      "div",
      { class: "card memory" },
      el("h3", {}, title, el("small", {}, network.memory === "queue" ? "front on top" : "")),
      this.box,
      this.caption,
    );
  }

  begin(run, symbols) {
    this.run = run;
    this.symbols = symbols;
    this.widest = symbols ? Math.max(...symbols.map((symbol) => symbol.length)) : 0;
    this.box.style.setProperty("--label", `${12 + 7.3 * (this.widest + (this.widest ? 2 : 0) + 4)}px`);
    let most = 1;
    for (let t = 0; t < run.steps; t++) most = Math.max(most, this.held(t).total);
    this.unit = Math.max(LEAST_UNIT, Math.min(MOST_UNIT, (STACK_HEIGHT - 18) / most));
    for (const node of this.cells.values()) node.remove();
    this.cells.clear();
  }

  // How much the memory holds after a step, in how many cells.
  held(t) {
    const state = this.run.memory[t];
    if (this.network.memory === "stack" && !this.run.recorded) return state ?? { total: 0, count: 0 };
    let total = 0,
      count = 0;
    for (const [, s] of this.run.cells(t)) ((total += s), (count += s > 0));
    return { total, count };
  }

  show(t) {
    const { total, count } = this.held(t),
      unit = this.unit;
    const floor = Math.max(0, total * unit - (STACK_HEIGHT - 18)); // what is below is cut off
    const seen = new Set();
    let top = total * unit - floor,
      hidden = 0;
    if (this.network.memory !== "none")
      for (const [slot, s] of this.run.cells(t)) {
        const height = s * unit;
        if (top <= 0) break;
        if (height >= 0.6) {
          seen.add(slot);
          this.place(slot, s, top - height, height, t);
        } else hidden += 1;
        top -= height;
      }
    for (const [slot, node] of this.cells) if (!seen.has(slot)) (node.remove(), this.cells.delete(slot));
    const reading = Math.min(1, total);
    this.bracket.style.display = reading * unit > 8 && this.network.memory !== "none" ? "" : "none";
    this.bracket.style.height = `${reading * unit}px`;
    this.bracket.style.bottom = `${total * unit - floor - reading * unit}px`;
    const below = count - seen.size - hidden;
    this.more.textContent = floor > 0 && below > 0 ? `${below} more below` : "";
    this.caption.textContent =
      this.network.memory === "none"
        ? "Reads 0 at every step."
        : `holds ${two(total)} in ${count} ${count === 1 ? "cell" : "cells"}`;
  }

  place(slot, s, bottom, height, t) {
    let node = this.cells.get(slot);
    if (!node) {
      const label = el("span", { class: "label" });
      node = el("div", { class: slot === t ? "cell new" : "cell" }, el("i"), label);
      const vector = this.run.v[slot];
      node.firstChild.style.background = vector ? strip(vector) : "var(--hatch)";
      this.cells.set(slot, node);
      this.box.append(node);
    }
    node.style.bottom = `${bottom}px`;
    node.style.height = `${height}px`;
    const symbol = this.symbols && this.symbols[slot];
    node.lastChild.textContent =
      height >= 12 ? `${symbol ? `${symbol.padEnd(this.widest)}  ` : ""}${two(s)}` : "";
  }
}

// §2.3: what has been given so far, laid end to end: each whole unit of strength is one symbol of output.
class OutputBufferView {
  constructor(network, task) {
    this.network = network;
    this.task = task;
    this.line = el("div", { class: "line", "aria-hidden": "true" });
    this.node = el(
      "div",
      { class: "card wide buffer" },
      el("h3", {}, "Output buffer", el("small", {}, "one symbol for each whole unit of strength")),
      this.line,
    );
  }

  begin(run, width) {
    this.run = run;
    this.unit = 52;
    this.room = Math.max(4, Math.floor(((width || 600) - 80) / this.unit) - 1); // whole units that can be drawn
  }

  show(t) {
    const { run, task, unit, room } = this;
    let total = 0;
    for (let k = 0; k <= t; k++) total += run.o[k];
    const from = Math.max(0, Math.floor(total) - room + 1); // the first whole unit drawn
    const items = [];
    let at = 0;
    for (let k = 0; k <= t; k++) {
      const begin = Math.max(at, from),
        end = at + run.o[k];
      if (end > from && end - begin > 0.005) {
        const p = softmax(run.y[k]),
          symbol = task.alphabet[largest(p)],
          width = (end - begin) * unit;
        items.push(
          el(
            "div",
            {
              class: "item",
              style: `left:${(begin - from) * unit}px;width:${width}px;background:${strip(p)}`,
            },
            width > 15 ? el("b", {}, symbol) : null,
          ),
        );
      }
      at = end;
    }
    const off = this.network.discard_first ? 1 : 0;
    for (let n = from; n < Math.min(Math.ceil(total - 1e-9), from + room + 1); n++) {
      const thrown = n < off,
        whole = n + 1 <= total + 1e-9;
      const says = thrown
        ? "thrown away"
        : whole && run.output[n - off]
          ? task.alphabet[largest(run.output[n - off])]
          : "…";
      items.push(
        el(
          "div",
          { class: `unit${thrown ? " thrown" : ""}`, style: `left:${(n - from) * unit}px;width:${unit}px` },
          says,
        ),
      );
    }
    this.line.replaceChildren(...items);
  }
}
