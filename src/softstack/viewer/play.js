// The page to play with: a sequence of steps, one of them in view, and the next one as the sliders have it.

function startPlaying() {
  const find = (id) => document.getElementById(id);
  const page = { kind: "stack", size: 3, steps: [], at: 0, draft: fresh(3, 0), undone: [], moving: false };
  const memory = { name: "stack", items: true };
  const [before, after] = [BeforePile, Pile].map((kind) => new kind(memory, LARGE_UNIT, MEMORY_HEIGHT));

  // All steps, the one that is not made yet with them.
  const all = () => [...page.steps, page.draft];
  const isNew = () => page.at === page.steps.length;
  const kept = () => JSON.stringify([page.kind, page.size, page.steps, page.at, page.draft]);

  function keep() {
    page.undone.push(kept());
    if (page.undone.length > 500) page.undone.shift();
  }

  function undo() {
    if (!page.undone.length) return;
    [page.kind, page.size, page.steps, page.at, page.draft] = JSON.parse(page.undone.pop());
    show();
  }

  function begin({ kind, size, steps, at }) {
    Object.assign(page, { kind, size, steps: structuredClone(steps), at, draft: fresh(size, steps.length) });
    show();
  }

  // The step in view with some of its numbers changed. While a slider moves, that is one change to undo.
  function change(numbers) {
    if (!page.moving && !isNew()) keep();
    page.moving = true;
    Object.assign(isNew() ? page.draft : page.steps[page.at], numbers);
    show();
  }

  function rest() {
    page.moving = false;
    show();
  }

  function make() {
    if (!isNew()) return look(page.at + 1);
    if (page.steps.length >= MOST_STEPS)
      return (find("error").textContent = `${MOST_STEPS} steps are the most.`);
    keep();
    page.steps.push(page.draft);
    page.at += 1;
    page.draft = fresh(page.size, page.steps.length);
    show();
  }

  function look(at) {
    page.at = Math.max(0, Math.min(page.steps.length, at));
    page.moving = false;
    show();
  }

  function choose(kind) {
    if (kind !== page.kind) (keep(), (page.kind = kind), show());
  }

  function show() {
    const steps = all(),
      states = paperRun(page.kind, steps),
      step = steps[page.at],
      [was, is] = [states[page.at], states[page.at + 1]],
      t = page.at + 1;
    find("error").textContent = "";
    for (const radio of document.getElementsByName("kind")) radio.checked = radio.value === page.kind;
    find("size").value = page.size;
    speak(WRITTEN[page.kind]);
    knobs(step);
    set(find("next"), isNew() ? `Step ${t}, not made yet` : `Step ${t} of ${page.steps.length}`, "");
    set(find("make"), isNew() ? "Make step" : "Next step", isNew() ? "primary" : "");
    find("undo").disabled = !page.undone.length;
    find("back").disabled = page.at === 0;
    find("forward").disabled = isNew();
    drawPiles(states, is);
    find("numbers").replaceChildren(...equations(page.kind, t, was, step, is));
    listSteps(states);
    const held = is.s.reduce((sum, s) => sum + s, 0);
    const { takes, adds } = WRITTEN[page.kind];
    find("words").replaceChildren(
      `Step ${t}${isNew() ? ", not made yet" : ""}: ${takes} ${short(step.u)}, ${adds} ${short(step.d)}, ` +
        `then holds ${short(held)} and reads `,
      whole(`${tuple(is.r)}.`),
    );
    clearTimeout(page.remembering);
    page.remembering = setTimeout(remember, 200);
  }

  // The headings, in the words of a stack or of a queue.
  function speak({ take, takes, add, adds, added }) {
    document.title = `softstack: a ${page.kind} in your hands`;
    set(find("title"), `A ${page.kind} in your hands`, "");
    set(find("does"), `A differentiable ${page.kind} ${takes}, ${adds} and reads by degrees.`, "");
    for (const [name, word] of Object.entries({ take, add, added }))
      for (const node of document.querySelectorAll(`[data-word=${name}]`)) set(node, word, "");
  }

  function drawPiles(states, is) {
    const order = (t) => nearestFirst(page.kind, states[t].s.length);
    const run = {
      steps: states.length,
      fixed: true,
      earlier: -1, // the item of the first step comes with the second of the states
      vector: (slot, t) => states[t].V[slot],
      cells: (t) => order(t).map((i) => [i, states[t].s[i]]),
      held: (t) => ({
        total: states[t].s.reduce((sum, s) => sum + s, 0),
        count: states[t].s.filter((s) => s > 0).length,
      }),
    };
    const names = states.map((_, n) => (n ? `v${subscript(n)}` : ""));
    for (const pile of [before, after]) pile.begin(run, names);
    before.show(page.at);
    before.mark(is.left.map((left, i) => Math.min(left, states[page.at].s[i])));
    after.show(page.at + 1);
    const newest = after.cells.nodes.get(page.at);
    if (newest) newest.classList.add("pushed");
    const front = page.kind === "queue" ? "front on top; " : "",
      { taken, added } = WRITTEN[page.kind];
    for (const [id, pile, title, note] of [
      ["before", before, "Before", `hatched: ${taken}`],
      ["after", after, "After", `outlined: ${added}`],
    ])
      find(id).replaceChildren(el("h3", {}, title, el("small", {}, `${front}${note}`)), pile.box);
  }

  function listSteps(states) {
    find("none").hidden = page.steps.length > 0;
    find("steps").replaceChildren(
      ...page.steps.map((step, n) => {
        const { r, s } = states[n + 1],
          vector = (values) =>
            el(
              "td",
              {},
              el("span", { class: "swatch", style: `background:${strip(values)}` }),
              tuple(values),
            );
        const button = el(
          "button",
          { type: "button", onclick: () => look(n), "aria-label": `Look at step ${n + 1}` },
          String(n + 1),
        );
        return el(
          "tr",
          { class: n === page.at ? "now" : null },
          el("td", {}, button),
          el("td", {}, short(step.u)),
          el("td", {}, short(step.d)),
          vector(step.v),
          vector(r),
          el("td", {}, short(s.reduce((sum, value) => sum + value, 0))),
        );
      }),
    );
  }

  // The sliders: made anew for another memory or another size of vectors, else moved.
  let strengths = null,
    entries = [];
  function knobs(step) {
    if (strengths?.kind !== page.kind) {
      const { take, add } = WRITTEN[page.kind],
        named = (word, name) =>
          numberSlider(
            [`${word} `, el("i", {}, name)],
            `${word} strength ${name}`,
            name,
            (value) => change({ [name]: value }),
            rest,
          );
      strengths = { kind: page.kind, u: named(take, "u"), d: named(add, "d") };
      find("strengths").replaceChildren(strengths.u.node, strengths.d.node);
    }
    if (entries.length !== page.size) {
      const entry = (k) =>
        numberSlider(
          [el("b", {}, "v"), `[${k + 1}]`],
          `pushed vector v, number ${k + 1}`,
          `v${k + 1}`,
          (value) => {
            const v = [...all()[page.at].v];
            v[k] = value;
            change({ v });
          },
          rest,
        );
      entries = Array.from({ length: page.size }, (_, k) => entry(k));
      find("vector").replaceChildren(...entries.map(({ node }) => node));
      const preset = (k) => {
        const v = oneAt(page.size, k),
          attributes = {
            type: "button",
            class: "swatch",
            style: `background:${strip(v)}`,
            "aria-label": `v = ${tuple(v)}`,
            title: `v = ${tuple(v)}`,
          };
        return el("button", { ...attributes, onclick: () => (change({ v }), rest()) });
      };
      find("presets").replaceChildren(...entries.map((_, k) => preset(k)));
    }
    strengths.u.show(step.u);
    strengths.d.show(step.d);
    entries.forEach(({ show }, k) => show(step.v[k]));
  }

  function remember() {
    if (/^(file|https?):$/.test(location.protocol)) history.replaceState(null, "", `#${asLink(page)}`);
  }

  async function copy() {
    remember();
    const link = find("link");
    link.value = location.href;
    try {
      await navigator.clipboard.writeText(link.value);
      find("copied").textContent = "Copied.";
    } catch {
      link.hidden = false; // the browser does not let a page copy: the link is there to be copied by hand
      link.focus();
      link.select();
    }
    setTimeout(() => (find("copied").textContent = ""), 3000);
  }

  function raise(name, by) {
    const step = all()[page.at];
    change({ [name]: +clipped(step[name] + by).toFixed(2) });
    rest();
  }

  function nextVector() {
    const { v } = all()[page.at];
    change({ v: oneAt(page.size, v.indexOf(Math.max(...v)) + 1) });
    rest();
  }

  const actions = {
    example: () => (keep(), begin({ ...EXAMPLE, at: 0 })),
    clear: () => (keep(), begin({ kind: page.kind, size: page.size, steps: [], at: 0 })),
    undo,
    make,
    copy,
    back: () => look(page.at - 1),
    forward: () => look(page.at + 1),
  };
  for (const [id, act] of Object.entries(actions)) find(id).addEventListener("click", act);
  for (const radio of document.getElementsByName("kind"))
    radio.addEventListener("change", () => choose(radio.value));
  find("size").addEventListener("change", () => {
    keep();
    begin({ kind: page.kind, size: +find("size").value, steps: [], at: 0 });
  });

  const keys = {
    u: () => raise("u", 0.1),
    U: () => raise("u", -0.1),
    d: () => raise("d", 0.1),
    D: () => raise("d", -0.1),
    v: nextVector,
    z: undo,
    s: () => choose("stack"),
    q: () => choose("queue"),
    e: actions.example,
    n: actions.clear,
    ArrowLeft: actions.back,
    ArrowRight: actions.forward,
    Home: () => look(0),
    End: () => look(page.steps.length),
    Enter: make,
  };
  document.addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (event.altKey || event.metaKey || (event.ctrlKey && key !== "z")) return;
    const typing = target.closest("input[type=number], input[type=text], select"),
      moving = target.closest("input[type=range], input[type=radio]");
    if (key === "Enter" ? target.closest("button, a, select") : typing && key !== "Enter") return;
    if (moving && (key.startsWith("Arrow") || key === "Home" || key === "End")) return;
    if (!keys[key]) return;
    if (key === "Enter" && typing) target.blur(); // what was typed is taken first
    keys[key]();
    event.preventDefault();
  });
  window.addEventListener("hashchange", open);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);

  function open() {
    if (location.hash.slice(1) === asLink(page)) return;
    try {
      begin(fromLink(location.hash.slice(1)));
    } catch (error) {
      show();
      find("error").textContent = error.message;
    }
  }

  open();
  if (!find("make").textContent) show();
  return { page, begin, look, make, undo, change };
}
