// One network in step: its tape, its controller, its memory and its output, and the whole run.

class Panel {
  constructor(network, task, onStep) {
    this.network = network;
    this.task = task;
    this.tape = new Tape(network, task);
    this.controller = new ControllerView(network);
    this.memory = new MemoryView(network);
    this.buffer = network.buffered ? new OutputBufferView(network, task) : null;
    this.machine = task.pdt ? new TransducerView(task.pdt) : null;
    this.heat = new HeatView(network, task, onStep);
    this.bars = task.alphabet
      .slice(0, MOST_ROWS)
      .map((symbol) => ({ name: el("span", {}, spelled(symbol)), fill: el("i"), number: el("output") }));
    const distribution = this.bars.flatMap(({ name, fill, number }) => [
      name,
      el("span", { class: "track", "aria-hidden": "true" }, fill),
      number,
    ]);
    this.verdict = el("p", { class: "verdict" });
    this.words = el("p", { class: "words", "aria-live": "polite" });
    this.left = el("p", { class: "left", role: "status" });
    const output = this.bars.length
      ? el(
          "div",
          { class: "card output" },
          el("h3", {}, network.buffered ? "Output of this step" : "Output"),
          el("div", { class: "distribution" }, ...distribution),
          this.verdict,
        )
      : null; // of a cell that hands its features on
    const kinds = {
      alone: !this.machine,
      wordy: task.alphabet.some((symbol) => symbol.length > 4),
      silent: !output,
      tall: this.bars.length > 8,
    };
    this.node = el(
      "section",
      { class: "panel", "aria-label": network.title },
      el("header", {}, el("h2", {}, network.title), el("p", { class: "facts" }, network.facts)),
      network.note ? el("p", { class: "note" }, network.note) : null,
      this.tape.node,
      this.left,
      el(
        "div",
        { class: ["machine", ...Object.keys(kinds).filter((kind) => kinds[kind])].join(" ") },
        this.controller.node,
        this.memory.node,
        output,
        this.machine ? this.machine.node : null,
        this.buffer ? this.buffer.node : null,
      ),
      this.words,
      this.heat.node,
    );
  }

  // A new input, as `started` gives it.
  begin(start) {
    Object.assign(this, start);
    const { example, fed, run, network } = this;
    const symbols = network.buffered ? null : fed;
    this.says = run.output.map((y) => this.task.alphabet[largest(y)]);
    this.ends = new Float64Array(run.steps + 1); // strength in the output buffer after each step
    run.said.o.forEach((o, t) => (this.ends[t + 1] = this.ends[t] + o));
    this.memory.begin(run, symbols);
    if (this.machine) this.machine.begin(example.input);
    this.heat.begin(run, symbols);
    if (this.buffer) this.buffer.begin(run, this.ends, this.node.clientWidth);
    this.tape.begin(start, this.says, this.ends);
    set(this.left, this.remark(), example.known ? "left" : "left soft");
  }

  // What there is to say of the targets, as lab/tasks has it. Of a trace that was recorded elsewhere there are none.
  remark() {
    const { input, left, known } = this.example;
    if (!known && this.task.inputs.length)
      return "The targets of this string are not known: nothing is scored.";
    if (left === null) return "";
    return (
      `The string leaves the task's language at symbol ${left + 1}, ` +
      `${spelled(input[left])}: nothing is scored from there on.`
    );
  }

  // The page has another width now.
  resize() {
    this.tape.lay();
    this.heat.draw();
    if (this.buffer) this.buffer.begin(this.run, this.ends, this.node.clientWidth);
  }

  get steps() {
    return this.run.steps;
  }

  show(t) {
    this.controller.show(this.run, t);
    this.memory.show(t);
    if (this.buffer) this.buffer.show(t);
    if (this.machine) this.machine.show(this.tape.head(t) + 1);
    this.tape.show(t);
    this.showOutput(t);
    this.heat.show(t);
    this.words.textContent = this.sentence(t);
  }

  // The target at a step, where one is known: a buffered network's targets are not those of its steps.
  target(t) {
    return this.network.buffered ? null : (this.example.target[t] ?? null);
  }

  showOutput(t) {
    if (!this.bars.length) return;
    const names = this.task.alphabet,
      p = softmax(this.run.y[t]),
      best = largest(p),
      target = this.target(t);
    this.bars.forEach(({ name, fill, number }, k) => {
      set(name, spelled(names[k]), `name ${names[k] === target ? "target" : ""} ${k === best ? "best" : ""}`);
      fill.style.transform = `scaleX(${clipped(p[k]).toFixed(4)})`;
      fill.style.background = colour(p[k]);
      set(number, percent(p[k]), "");
    });
    const right = target === null ? null : names[best] === target;
    this.verdict.className = `verdict ${right === null ? "" : right ? "right" : "wrong"}`;
    this.verdict.textContent =
      right === null
        ? this.unscored()
        : right
          ? `right: ${spelled(target)}`
          : `wrong: the target is ${spelled(target)}`;
  }

  // What is said of a step that is not scored: of a buffered network, how the whole run did.
  unscored() {
    if (!this.network.buffered) return this.example.known ? "not scored here" : "";
    const places = this.example.target.flatMap((symbol, j) => (symbol === null ? [] : [j]));
    if (!places.length) return "";
    const right = places.filter((j) => this.says[j] === this.example.target[j]).length;
    return `${right} of ${places.length} right in the whole run`;
  }

  sentence(t) {
    const { run, network, task } = this,
      p = softmax(run.y[t]),
      best = largest(p),
      target = this.target(t);
    const verdict =
      target === null
        ? ""
        : task.alphabet[best] === target
          ? ", right"
          : `, wrong, the target is ${spelled(target)}`;
    const { memory } = network,
      held = hasNone(memory) ? "" : `The ${memory.name} ${cellsHeld(run.held(t))}.`;
    return [
      `Step ${t + 1} of ${run.steps}.`,
      `Input ${spelled(this.fed[this.tape.head(t)])}.`,
      headsSaid(network, run, t),
      held,
      this.bars.length ? `Says ${spelled(task.alphabet[best])} (${percent(p[best])})${verdict}.` : "",
    ]
      .filter(Boolean)
      .join(" ");
  }
}
