// The numbers of a step as the paper writes them: each equation in letters, and under it the same in numbers.

const short = (value) => String(+value.toFixed(3)); // 0.3 and not 0.30000000000000004
const tuple = (vector) => `(${Array.from(vector, short).join(", ")})`;

// What is not broken at the end of a line, unless it is longer than one.
const whole = (text) => el("span", { class: "whole" }, text);

// A letter with what is below it and the item it is of: s_t[i].
const letter = (name, below, item, tag = "b") =>
  el(
    "span",
    { class: "letter" },
    el(tag, {}, name),
    el("sub", {}, String(below)),
    item === undefined ? "" : `[${item}]`,
  );

const capital = (word) => word[0].toUpperCase() + word.slice(1);
const line = (...parts) => el("p", {}, ...parts);
const section = (title, rule, ...lines) =>
  el("div", { class: "operation" }, el("h3", {}, title), el("div", { class: "rule" }, ...rule), ...lines);

// What the operations are called, and which item comes before another: the next nearer one.
const WRITTEN = {
  stack: {
    take: "pop",
    takes: "pops",
    taken: "popped",
    add: "push",
    adds: "pushes",
    added: "pushed",
    left: "u",
    rho: "ρ",
    nearer: "i + 1",
    first: "t − 1",
    top: "t",
    beyond: "≤",
  },
  queue: {
    take: "dequeue",
    takes: "dequeues",
    taken: "dequeued",
    add: "enqueue",
    adds: "enqueues",
    added: "enqueued",
    left: "ι",
    rho: "ξ",
    nearer: "i − 1",
    first: "1",
    top: "1",
    beyond: "≥",
  },
};

// `t` is the step, counted from 1; `before` and `after` are memories, `after` with all that `paperStep` gives.
function equations(kind, t, before, { u, d, v }, after) {
  const words = WRITTEN[kind];
  const left = (i, below = t) => letter(words.left, below, i, kind === "stack" ? "b" : "i"),
    rho = (i, below = t) => letter(words.rho, below, i, "i"),
    s = (i, below = t) => letter("s", below, i),
    V = (i, below = t) => letter("V", below, i);
  const nearer = (i) => (kind === "stack" ? i + 1 : i - 1);

  const popRule = [
    line(left(words.first, "t"), " = ", letter("u", "t", undefined, "i")),
    line(left("i", "t"), " = ReLU(", left(words.nearer, "t"), " − ", s(words.nearer, "t−1"), ")"),
    line(s("i", "t"), " = ReLU(", s("i", "t−1"), " − ", left("i", "t"), ")"),
  ];
  const pops = [];
  const items = nearestFirst(kind, before.s.length);
  for (const [n, i] of items.entries()) {
    if (n && after.left[i] === 0) {
      pops.push(line(left("i"), ` = 0 for i ${words.beyond} ${i + 1}: `, s("i"), " = ", s("i", t - 1)));
      break;
    }
    const j = nearer(i);
    pops.push(
      n
        ? line(
            left(i + 1),
            ` = ReLU(${short(after.left[j])} − ${short(before.s[j])}) = ${short(after.left[i])}`,
          )
        : line(left(i + 1), " = ", letter("u", t, undefined, "i"), ` = ${short(u)}`),
      line(
        s(i + 1),
        ` = ReLU(${short(before.s[i])} − ${short(after.left[i])}) = `,
        el("strong", {}, short(after.popped[i])),
      ),
    );
  }
  if (!items.length) pops.push(line(`The ${kind} is empty: there is nothing to ${words.take}.`));

  const pushes = [
    line(s(t), " = ", letter("d", t, undefined, "i"), " = ", el("strong", {}, short(d))),
    line(V(t), " = ", letter("v", t), " = ", whole(tuple(v))),
  ];

  const readRule = [
    line(rho(words.top, "t"), " = 1"),
    line(rho("i", "t"), " = ReLU(", rho(words.nearer, "t"), " − ", s(words.nearer, "t"), ")"),
    line(letter("r", "t"), " = Σ min(", s("i", "t"), ", ", rho("i", "t"), ") · ", V("i", "t")),
  ];
  const reads = [],
    sum = [];
  for (const [n, i] of nearestFirst(kind, after.s.length).entries()) {
    if (n && after.rho[i] === 0) {
      reads.push(line(rho("i"), ` = 0 for i ${words.beyond} ${i + 1}: nothing more is read`));
      break;
    }
    const j = nearer(i);
    reads.push(
      line(
        rho(i + 1),
        n ? ` = ReLU(${short(after.rho[j])} − ${short(after.s[j])}) = ${short(after.rho[i])}` : " = 1",
        el(
          "span",
          { class: "weight" },
          `min(${short(after.s[i])}, ${short(after.rho[i])}) = `,
          el("strong", {}, short(after.w[i])),
        ),
      ),
    );
    sum.push(`${sum.length ? " + " : ""}${short(after.w[i])} · `, V(i + 1));
  }
  reads.push(
    line(letter("r", t), " = ", ...sum),
    line(letter("r", t), " = ", el("strong", {}, tuple(after.r))),
  );

  return [
    section(capital(words.take), popRule, ...pops),
    section(
      capital(words.add),
      [
        line(s("t", "t"), " = ", letter("d", "t", undefined, "i")),
        line(V("t", "t"), " = ", letter("v", "t")),
      ],
      ...pushes,
    ),
    section("Read", readRule, ...reads),
  ];
}
