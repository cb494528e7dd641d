// A buffered network's output buffer.

const OUTPUT_UNIT = 52; // pixels for a strength of 1

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
        whole && this.run.output[n - off]
          ? spelled(this.task.alphabet[largest(this.run.output[n - off])])
          : "…";
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
      width > 15 ? el("b", {}, spelled(this.task.alphabet[largest(p)])) : null,
    );
  }
}
