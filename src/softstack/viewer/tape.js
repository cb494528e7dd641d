// The tape: the input with the head that reads it, what the network says, and the targets if they are known.

class Tape {
  constructor(network, task) {
    Object.assign(this, { network, task });
    this.node = el("div", { class: "tape" });
  }

  // `says` are the symbols of output, `ends` what the output buffer holds before each step and after the last.
  begin({ example, fed, run }, says, ends) {
    Object.assign(this, { example, fed, run, says, ends });
    this.lay();
  }

  // The cells that there is room for: rows of input, of what is said, and of targets.
  lay() {
    const shown = new Set([...this.task.alphabet, ...this.fed]),
      widest = Math.max(...[...shown].map((symbol) => symbol.length)),
      width = Math.max(30, 12 + 9.1 * widest);
    const room = Math.max(3, Math.floor(((this.node.clientWidth || 700) - 92) / width));
    this.room = Math.min(room, this.fed.length);
    const cells = () => Array.from({ length: this.room }, () => el("td"));
    const speaks = this.task.alphabet.length > 0;
    this.rows = {
      input: cells(),
      says: speaks ? cells() : [],
      target: this.example.known ? cells() : [],
    };
    const row = (name, cells) => el("tr", {}, el("th", { scope: "row" }, name), ...cells);
    this.edges = [el("span", { class: "edge" }), el("span", { class: "edge" })];
    const table = el(
      "table",
      { style: `--cell:${width}px;width:${66 + this.room * width}px` },
      row(this.network.buffered ? "input buffer" : "input", this.rows.input),
      speaks ? row("says", this.rows.says) : null,
      this.example.known ? row("target", this.rows.target) : null,
    );
    this.node.replaceChildren(this.edges[0], table, this.edges[1]);
  }

  // Where the read head is after a step: the item at the front of the input buffer.
  head(t) {
    return this.network.buffered ? Math.min(this.run.input[t].front, this.fed.length - 1) : t;
  }

  // Whether the j-th symbol of output has been said by step t.
  said(j, t) {
    if (!this.network.buffered) return j <= t;
    const last = t === this.run.steps - 1;
    return last || this.ends[t + 1] >= j + 1 + (this.network.discard_first ? 1 : 0) - 1e-9;
  }

  show(t) {
    const { example, fed, network, rows, room } = this,
      head = this.head(t);
    const from = Math.max(0, Math.min(head - Math.floor(room / 2), fed.length - room));
    for (let k = 0; k < room; k++) {
      const j = from + k,
        target = example.target[j] ?? null,
        shown = this.said(j, t) && j < this.says.length;
      const right = target !== null && shown ? (this.says[j] === target ? "right" : "wrong") : "";
      const unscored = example.known && target === null ? "unscored" : "";
      const here = j === head ? "head" : "",
        beyond = j >= example.input.length ? "padding" : "",
        outside = example.left !== null && j >= example.left && !beyond ? "outside" : "";
      set(
        rows.input[k],
        spelled(fed[j]),
        `${here} ${beyond} ${outside} ${network.buffered ? "buffered" : ""}`,
      );
      if (network.buffered)
        rows.input[k].style.setProperty("--left", `${(100 * this.strengthLeft(j, t)).toFixed(1)}%`);
      if (rows.says.length)
        set(
          rows.says[k],
          shown ? spelled(this.says[j]) : "",
          `${right} ${unscored} ${here && !network.buffered ? "now" : ""}`,
        );
      if (rows.target.length) set(rows.target[k], target === null ? "·" : spelled(target), "target");
    }
    set(this.edges[0], from > 0 ? "‹" : "", "edge");
    set(this.edges[1], from + room < fed.length ? "›" : "", "edge");
  }

  strengthLeft(j, t) {
    const { front, left } = this.run.input[t];
    return j < front ? 0 : j === front ? left : 1;
  }
}
