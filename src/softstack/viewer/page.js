// The page: what is typed or chosen, which networks are shown, and the step that all of them are at.

const LONGEST = 5000; // symbols; beyond it a page is the wrong tool

function start(data) {
  for (const network of data.networks)
    for (const name in network.weights) network.weights[name] = decoded(network.weights[name]);
  const find = (id) => document.getElementById(id);
  const hash = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (hash.has(name) && data.networks[+hash.get(name)] ? +hash.get(name) : null);
  const page = {
    data,
    panels: [],
    strings: null, // those to choose from, where a network is played back
    t: 0,
    steps: 1,
    playing: 0,
    chosen: [
      number("left") ?? 0,
      hash.has("left") ? number("right") : data.networks.length > 1 && !data.gallery ? 1 : null,
    ],
  };
  const networkOf = (k) => data.networks[k],
    taskOf = (k) => data.tasks[networkOf(k).task],
    shownNow = () => page.chosen.filter((k) => k !== null);

  // Why two networks cannot be given the same strings; "" where they can.
  function apart(a, b) {
    const [one, other] = [taskOf(a), taskOf(b)];
    if (!same(one.inputs, other.inputs))
      return (
        `${one.title} reads ${asText(one.inputs)} and ${other.title} reads ${asText(other.inputs)}: no string is for ` +
        "both, so they are shown one at a time. Choose which."
      );
    const strings = recordedStrings([networkOf(a), networkOf(b)]);
    return strings === null || strings.length
      ? ""
      : "No string was recorded of both, so they are shown one at a time.";
  }

  function choose() {
    const reason = page.chosen[1] === null ? "" : apart(...page.chosen);
    if (reason) page.chosen[1] = null;
    find("apart").textContent = reason;
    const shown = shownNow();
    page.strings = recordedStrings(shown.map(networkOf));
    page.panels = shown.map((k) => new Panel(networkOf(k), taskOf(k), go));
    find("panels").replaceChildren(...page.panels.map((panel) => panel.node));
    find("panels").className = page.panels.length > 1 ? "two" : "one";
    find("task").textContent = [...new Set(shown.map((k) => taskOf(k).title))].join(" and ");
    options();
    inputs();
    find("measured").replaceChildren();
    find("origin").textContent = drawable(taskOf(page.chosen[0]), 1)
      ? "On the task's strings that came with this page."
      : "On strings drawn now, in this page.";
    seed += 1; // what is being measured stops
    if (gallery) gallery.show(page.chosen[0], type);
    load();
  }

  // From the beginning, on another input.
  function type(text) {
    page.text = text;
    page.t = 0;
    load();
  }

  function options() {
    const entry = (k) => el("option", { value: k }, networkOf(k).label);
    const every = data.networks.map((_, k) => k);
    find("left").replaceChildren(...every.map(entry));
    find("left").value = page.chosen[0];
    find("right").replaceChildren(el("option", { value: "" }, "nothing"), ...every.map(entry));
    find("right").value = page.chosen[1] ?? "";
    find("choice").hidden = data.networks.length < 2;
  }

  // A network that is played back is shown on the strings that were recorded, any other on what is typed.
  function inputs() {
    const { inputs, padding, examples } = taskOf(page.chosen[0]);
    // what the task adds to its strings by itself needs no key
    const typed = (symbol) => symbol !== padding || !examples || examples.some(([, , s]) => s.includes(symbol));
    find("form").classList.toggle("wordy", inputs.join("").length > 20); // then symbols have a line of their own
    const key = (symbol) => el("button", { type: "button", onclick: () => append(symbol) }, spelled(symbol));
    find("symbols").replaceChildren(...inputs.filter(typed).map(key));
    find("strings").replaceChildren(
      ...(page.strings ?? []).map((symbols) => el("option", { value: asText(symbols) }, asText(symbols))),
    );
    for (const id of ["input", "symbols", "erase", "random", "measuring"]) find(id).hidden = page.strings;
    find("strings").hidden = !page.strings;
  }

  function append(symbol) {
    page.text = `${page.text.trim()} ${spelled(symbol)}`.trim();
    load(true);
  }

  // Run what is typed; where it cannot be run, say why and keep what is shown. Where nothing is shown yet,
  // begin with a string that the first network can be shown on.
  function load(toTheEnd) {
    let starts = attempt(page.text);
    if (!starts && !page.panels[0].run) {
      page.text = asText(page.strings ? page.strings[0] : networkOf(page.chosen[0]).first);
      starts = attempt(page.text);
    }
    find("input").value = find("strings").value = page.text;
    if (!starts) return;
    page.panels.forEach((panel, k) => panel.begin(starts[k]));
    page.steps = Math.max(...page.panels.map((panel) => panel.steps));
    find("slider").max = page.steps;
    go(toTheEnd === true ? page.steps - 1 : Math.min(page.t, page.steps - 1));
  }

  function attempt(text) {
    try {
      const symbols = symbolsOf(taskOf(page.chosen[0]), text);
      if (symbols.length > LONGEST)
        throw new Error(`${symbols.length} symbols are too many for a page: ${LONGEST} at most.`);
      const starts = page.panels.map(({ network, task }) => started(network, task, symbols));
      complain("");
      return starts;
    } catch (error) {
      complain(error.message);
      return null;
    }
  }

  // What is wrong with what was typed: what is shown is then of another string, and stands back.
  function complain(sentence) {
    find("error").textContent = sentence;
    find("panels").classList.toggle("stale", sentence !== "");
    if (sentence) find("input").setAttribute("aria-invalid", "true");
    else find("input").removeAttribute("aria-invalid");
  }

  function go(t) {
    page.t = Math.max(0, Math.min(page.steps - 1, t));
    for (const panel of page.panels) panel.show(Math.min(page.t, panel.steps - 1));
    find("slider").value = page.t + 1;
    find("slider").setAttribute("aria-valuetext", `Step ${page.t + 1} of ${page.steps}`); // more is said below
    find("where").textContent = `${page.t + 1} / ${page.steps}`;
    clearTimeout(page.remembering);
    page.remembering = setTimeout(remember, 200);
  }

  function remember() {
    if (data.bare || !/^(file|https?):$/.test(location.protocol)) return;
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
      if (symbols) return type(asText(symbols));
    }
  }

  function measure() {
    const mine = (seed += 1),
      shown = shownNow().map((k) => ({ network: networkOf(k), task: taskOf(k) }));
    find("measure").disabled = true;
    const over = () => (find("measure").disabled = false);
    measureAccuracy(find("measured"), shown, mine, () => seed !== mine && (over(), true), over);
  }

  find("form").addEventListener("submit", (event) => {
    event.preventDefault();
    load();
    find("slider").focus();
  });
  find("input").addEventListener("input", () => ((page.text = find("input").value), load(true)));
  find("strings").addEventListener("change", () => type(find("strings").value));
  find("erase").addEventListener("click", () => {
    const text = page.text.trim();
    page.text = /\s/.test(text) ? text.replace(/\s*\S+$/, "") : text.slice(0, -1);
    load(true);
  });
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

  // A network of the gallery, alone and on an input that it gets right.
  function exhibit(k) {
    page.chosen = [k, null];
    page.text = asText(networkOf(k).first);
    page.t = 0;
    choose();
    const { top } = find("top").getBoundingClientRect();
    if (top > innerHeight / 2) find("top").scrollIntoView();
  }

  const gallery = data.gallery ? new GalleryView(data, exhibit) : null;
  if (data.bare) bare();
  else {
    page.text = hash.get("input") ?? asText(networkOf(page.chosen[0]).first);
    page.t = hash.has("step") ? +hash.get("step") - 1 : 0;
    choose();
  }

  // One run that was recorded elsewhere: nothing is typed or chosen, all else is the same.
  function bare() {
    document.body.classList.add("bare");
    page.panels = data.networks.map((network) => new Panel(network, data.tasks[network.task], go));
    find("panels").replaceChildren(...page.panels.map((panel) => panel.node));
    find("panels").className = "one";
    page.panels.forEach((panel) => panel.begin(begun(panel.network, panel.network.runs[0])));
    page.steps = Math.max(...page.panels.map((panel) => panel.steps));
    find("slider").max = page.steps;
    go(0);
  }

  return { page, go, load, choose };
}
