// What a controller says in a step, head by head as its memory asks for it, what was read, and its state.

const gauge = (name, note) => {
  const fill = el("i"),
    number = el("output", {});
  const node = el(
    "div",
    { class: "gauge", title: note },
    el("span", { title: name }, name),
    el("span", { class: "track", "aria-hidden": "true" }, fill),
    number,
  );
  const show = (value) => {
    fill.style.transform = `scaleX(${clipped(value).toFixed(4)})`;
    fill.style.background = colour(value);
    number.textContent = two(value);
  };
  return { node, show };
};

// A vector as a strip of colours; `said` is what a screen reader is told that it is.
const swatch = (name, said, note) => {
  const band = el("span", { class: "swatch", role: "img" });
  const node = el("div", { class: "vector", title: note }, el("span", {}, name), band);
  const show = (vector) => {
    const text = Array.from(vector, two).join(", ");
    band.style.background = strip(vector);
    band.setAttribute("aria-label", `${said}: ${text}`);
    band.title = `(${text})`;
  };
  return { node, show };
};

// Numbers of either sign: a bar from the middle line up, or turned over and down.
const bars = (name) => {
  const drawn = el("div", { class: "bars", role: "img" });
  const node = el("div", { class: "state" }, el("span", {}, name), drawn);
  const show = (values) => {
    const text = Array.from(values, two).join(", ");
    drawn.setAttribute("aria-label", `${name}: ${text}`);
    drawn.title = `(${text})`;
    if (drawn.children.length !== values.length)
      drawn.replaceChildren(...Array.from(values, () => el("i", {}, el("b"))));
    values.forEach((value, k) => {
      const bar = drawn.children[k].firstChild;
      bar.className = value < 0 ? "minus" : "plus";
      bar.style.transform = `scaleY(${clipped(value, -1).toFixed(3)})`;
    });
  };
  return { node, show };
};

// One gauge for each of several numbers, under their title.
const gauges = (title, labels, note) => {
  const parts = labels.map((label) => gauge(label, note));
  const node = el("div", { class: "several" }, el("span", {}, title), ...parts.map((part) => part.node));
  return { node, show: (values) => parts.forEach((part, k) => part.show(values[k])) };
};

// How each kind of head is drawn.
const HEADS = {
  strength: ({ title, note, labels }) =>
    same(labels, [""]) ? gauge(title, note) : gauges(title, labels, note),
  choice: ({ title, note, labels }) => gauges(title, labels, note),
  vector: ({ title, verb, note }) => swatch(verb, title, note),
  scores: ({ title }) => bars(title),
};

// A head in a sentence: a strength as a number, a choice as its likeliest action. Vectors are not said.
const HEADS_SAID = {
  strength: ({ verb }, value) => `${verb} ${[value].flat().map(two).join(" and ")}`,
  choice({ verb, labels }, value) {
    const best = largest(value);
    return `${verb} ${labels[best]} (${percent(value[best])})`;
  },
};

function headsSaid(network, run, t) {
  const said = network.heads.filter(({ kind }) => HEADS_SAID[kind]);
  if (!said.length) return "";
  const text = said.map((head) => HEADS_SAID[head.kind](head, run.said[head.name][t])).join(", ");
  const named = said[0].verb === said[0].name; // a name stays as it is
  return `${named ? text[0] : text[0].toUpperCase()}${text.slice(1)}.`;
}

// The state that is drawn: of forward.js's own controllers what they keep, of others their features.
const STATES = {
  linear: {},
  mlp: {},
  rnn: { state: "h" },
  gru: { state: "h" },
  lstm: { state: "h", cell: "c" },
};

class ControllerView {
  constructor(network) {
    const heads = network.heads.map((head) => ({ of: head.name, ...HEADS[head.kind](head) }));
    const narrow = heads.filter((_, k) => ["strength", "choice"].includes(network.heads[k].kind));
    const broad = heads.filter((head) => !narrow.includes(head));
    this.heads = [...narrow, ...broad];
    this.wasRead = hasNone(network.memory) ? null : swatch("reads", "read vector");
    const states = network.runs ? { features: "h" } : STATES[network.controller];
    this.states = Object.entries(states).map(([name, of]) => ({ of, ...bars(name) }));
    const names = network.heads.flatMap(({ kind, title, verb, labels }) =>
      kind === "choice" ? labels : [kind === "vector" ? verb : title],
    );
    const widest = Math.max(...[...names, ...Object.keys(states)].map((name) => name.length), 0);
    this.node = el(
      "div",
      { class: "card controller", style: `--name:${clipped(0.62 * widest, 3.6, 7)}rem` },
      el("h3", {}, "Controller", el("small", {}, network.controller)),
      ...[...this.heads, this.wasRead, ...this.states].map((part) => part && part.node),
      heads.length || this.states.length ? null : el("p", { class: "caption" }, "It has no state."),
    );
  }

  show(run, t) {
    for (const { of, show } of this.heads) show(run.said[of][t]);
    if (this.wasRead) this.wasRead.show(run.r[t]);
    for (const { of, show } of this.states) show(run[of][t]);
  }
}
