// The page: what is typed, which networks are shown, and the step that all of them are at.

const LONGEST = 5000; // symbols; beyond it a page is the wrong tool

function start(data) {
  for (const network of data.networks)
    for (const name in network.weights) network.weights[name] = decoded(network.weights[name]);
  const find = (id) => document.getElementById(id);
  const page = {
    data,
    panels: [],
    t: 0,
    steps: 1,
    playing: 0,
    chosen: [0, data.networks.length > 1 ? 1 : null],
  };
  const hash = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (hash.has(name) && data.networks[+hash.get(name)] ? +hash.get(name) : null);
  page.chosen = [number("left") ?? 0, hash.has("left") ? number("right") : page.chosen[1]];
  page.text = hash.get("input") ?? data.input;
  const networkOf = (k) => data.networks[k],
    taskOf = (k) => data.tasks[networkOf(k).task];

  // Networks that can be given the same strings.
  const alike = (a, b) => taskOf(a).inputs.join(" ") === taskOf(b).inputs.join(" ");

  function choose() {
    if (page.chosen[1] !== null && !alike(...page.chosen)) page.chosen[1] = null;
    const kinds = page.chosen.filter((k) => k !== null);
    page.panels = kinds.map((k) => new Panel(networkOf(k), taskOf(k), go));
    find("panels").replaceChildren(...page.panels.map((panel) => panel.node));
    find("panels").className = page.panels.length > 1 ? "two" : "one";
    find("task").textContent = [...new Set(kinds.map((k) => taskOf(k).title))].join(" and ");
    options();
    buttons();
    find("measured").replaceChildren();
    load();
  }

  function options() {
    const entry = (k) => el("option", { value: k }, networkOf(k).label);
    const every = data.networks.map((_, k) => k);
    find("left").replaceChildren(...every.map(entry));
    find("left").value = page.chosen[0];
    find("right").replaceChildren(
      el("option", { value: "" }, "nothing"),
      ...every.filter((k) => alike(k, page.chosen[0])).map(entry),
    );
    find("right").value = page.chosen[1] ?? "";
    find("choice").hidden = data.networks.length < 2;
  }

  function buttons() {
    const type = (symbol) => el("button", { type: "button", onclick: () => append(symbol) }, symbol);
    find("symbols").replaceChildren(...taskOf(page.chosen[0]).inputs.map(type));
  }

  function append(symbol) {
    page.text = `${page.text.trim()} ${symbol}`.trim();
    load(true);
  }

  // Run what is typed; where it cannot be run, say why and keep what is shown.
  function load(toTheEnd) {
    find("input").value = page.text;
    const task = taskOf(page.chosen[0]);
    try {
      const symbols = symbolsOf(task, page.text);
      if (symbols.length > LONGEST)
        throw new Error(`${symbols.length} symbols are too many for a page: ${LONGEST} at most.`);
      const examples = page.panels.map(({ task }) => ({
        ...example(task, symbols),
        known: knows(task, symbols),
      }));
      page.panels.forEach((panel, k) => panel.begin(examples[k]));
      page.steps = Math.max(...page.panels.map((panel) => panel.steps));
      find("error").textContent = "";
      find("input").removeAttribute("aria-invalid");
    } catch (error) {
      find("error").textContent = error.message;
      find("input").setAttribute("aria-invalid", "true");
      if (!page.panels[0].run) ((page.text = data.input), load());
      return;
    }
    find("slider").max = page.steps;
    go(toTheEnd === true ? page.steps - 1 : Math.min(page.t, page.steps - 1));
  }

  function go(t) {
    page.t = Math.max(0, Math.min(page.steps - 1, t));
    for (const panel of page.panels) panel.show(Math.min(page.t, panel.steps - 1));
    find("slider").value = page.t + 1;
    find("slider").setAttribute("aria-valuetext", `Step ${page.t + 1} of ${page.steps}`); // the rest is said below
    find("where").textContent = `${page.t + 1} / ${page.steps}`;
    clearTimeout(page.remembering);
    page.remembering = setTimeout(remember, 200);
  }

  function remember() {
    if (!/^(file|https?):$/.test(location.protocol)) return;
    const place = new URLSearchParams({
      input: page.text,
      step: page.t + 1,
      left: page.chosen[0],
      ...(page.chosen[1] === null ? {} : { right: page.chosen[1] }),
    });
    history.replaceState(null, "", `#${place}`);
  }

  function play(on = !page.playing) {
    clearInterval(page.playing);
    page.playing = 0;
    if (on) {
      if (page.t === page.steps - 1) go(0);
      page.playing = setInterval(
        () => (page.t < page.steps - 1 ? go(page.t + 1) : play(false)),
        +find("speed").value,
      );
    }
    for (const panel of page.panels) panel.words.setAttribute("aria-live", page.playing ? "off" : "polite");
    find("play")
      .querySelector("path")
      .setAttribute("d", page.playing ? "M3 2h4v12H3zM9 2h4v12H9z" : "M4 2v12l9-6z");
    find("play").setAttribute("aria-label", page.playing ? "Pause" : "Play");
  }

  function keys(event) {
    if (
      event.altKey ||
      event.ctrlKey ||
      event.metaKey ||
      event.target.closest("input[type=text], select, textarea")
    )
      return;
    const far = event.shiftKey ? 10 : 1;
    const moves = {
      ArrowRight: () => go(page.t + far),
      ArrowLeft: () => go(page.t - far),
      Home: () => go(0),
      End: () => go(page.steps - 1),
    };
    if (moves[event.key]) {
      play(false);
      moves[event.key]();
    } else if (event.key === " " && !event.target.closest("button, summary")) play();
    else return;
    event.preventDefault();
  }

  let seed = 1;
  function random() {
    const task = taskOf(page.chosen[0]),
      next = randomFrom((seed += 1) * 7919);
    const sizes = task.sizes.filter((size) => size <= task.trained_size);
    for (let tries = 0; tries < 50; tries++) {
      const symbols = sample(task, next, sizes[Math.floor(((1 + next()) * sizes.length) / 2)]);
      if (symbols) return ((page.text = symbols.join(" ")), (page.t = 0), load());
    }
  }

  // Accuracy against length on fresh strings, a size at a time so that the page stays awake.
  function measure() {
    const kinds = page.chosen.filter((k) => k !== null),
      task = taskOf(page.chosen[0]),
      each = 40,
      mine = (seed += 1);
    const series = kinds.map((k) => ({ name: networkOf(k).label, points: [] })),
      next = randomFrom(mine * 104729);
    const legend = el(
      "ul",
      { class: "legend" },
      ...series.map((s, n) => el("li", { class: `of${n}` }, s.name)),
    );
    const how = task.grammar
      ? "Strings are uniform over the grammar's derivations of a depth, and drawn at their mean length."
      : "";
    const note = el(
      "p",
      { class: "caption" },
      `${each} strings a point: the share of scored symbols said right. ${how}`,
    );
    const one = ([size, ...rest]) => {
      find("measure").disabled = size !== undefined;
      if (size === undefined || seed !== mine) return;
      const strings = Array.from({ length: each }, () => sample(task, next, size)).filter(
        (symbols) => symbols,
      );
      kinds.forEach((k, n) => {
        const scores = strings.map((symbols) => scored(networkOf(k), taskOf(k), example(taskOf(k), symbols)));
        const sum = (of) => scores.reduce((total, score) => total + of(score), 0),
          total = sum((s) => s.scored);
        const length = strings.reduce((total, symbols) => total + symbols.length, 0) / strings.length;
        if (total) series[n].points.push({ length, accuracy: sum((s) => s.right) / total });
      });
      if (series.some((s) => s.points.length))
        find("measured").replaceChildren(accuracyChart(series, task.trained), legend, note);
      setTimeout(one, 0, rest);
    };
    one(task.sizes);
  }

  find("form").addEventListener("submit", (event) => {
    event.preventDefault();
    load();
    find("slider").focus();
  });
  find("input").addEventListener("input", () => ((page.text = find("input").value), load(true)));
  find("erase").addEventListener(
    "click",
    () => (
      (page.text =
        page.text.trim().split(/\s+/).length > 1
          ? page.text.trim().replace(/\s*\S+$/, "")
          : page.text.trim().slice(0, -1)),
      load(true)
    ),
  );
  find("random").addEventListener("click", random);
  find("measure").addEventListener("click", measure);
  find("slider").addEventListener("input", () => (play(false), go(+find("slider").value - 1)));
  find("speed").addEventListener("change", () => page.playing && play(true));
  for (const [id, move] of Object.entries({
    first: () => go(0),
    back: () => go(page.t - 1),
    forward: () => go(page.t + 1),
    last: () => go(page.steps - 1),
  }))
    find(id).addEventListener("click", () => (play(false), move()));
  find("play").addEventListener("click", () => play());
  for (const [side, id] of ["left", "right"].entries())
    find(id).addEventListener(
      "change",
      (event) => ((page.chosen[side] = event.target.value === "" ? null : +event.target.value), choose()),
    );
  document.addEventListener("keydown", keys);
  const redraw = () => {
    for (const panel of page.panels) panel.resize();
    go(page.t);
  };
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  if (data.recorded) record();
  else {
    page.t = hash.has("step") ? +hash.get("step") - 1 : 0;
    choose();
  }

  // A run that was recorded elsewhere: nothing is typed, all else is the same.
  function record() {
    document.body.classList.add("recorded");
    page.panels = data.networks.map((network) => new Panel(network, data.tasks[network.task], go));
    find("panels").replaceChildren(...page.panels.map((panel) => panel.node));
    find("panels").className = "one";
    page.panels.forEach((panel) =>
      panel.begin({ input: data.recorded.symbols, target: [], known: false }, played(data.recorded)),
    );
    page.steps = Math.max(...page.panels.map((panel) => panel.steps));
    find("slider").max = page.steps;
    go(0);
  }

  return { page, go, load, choose };
}

// A recorded run. Slots filled before it began come first in its strengths, and their vectors are not known.
function played({ run, earlier, queue }) {
  const order = (n) => Array.from({ length: n }, (_, k) => (queue ? k : n - 1 - k));
  const result = { ...run, steps: run.u.length, recorded: true, output: run.y, memory: run.s };
  result.cells = function* (t) {
    for (const slot of order(Math.min(earlier + t + 1, run.s[t].length)))
      if (run.s[t][slot] > 0) yield [slot - earlier, run.s[t][slot]];
  };
  return result;
}
