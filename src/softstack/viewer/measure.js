// Accuracy against length, on strings of the task of the first of some networks: fresh ones, or those that came
// with the page.

const STRINGS_OF_A_SIZE = 40;

// Draws into `place`, one size after another so that the page stays awake, until all are done or `stopped()`.
function measureAccuracy(place, shown, seed, stopped, done) {
  const [{ task }] = shown,
    random = randomFrom(seed * 104729);
  const series = shown.map(({ network }) => ({ name: network.label, points: [] }));
  const legend = el(
    "ul",
    { class: "legend" },
    ...series.map((line, n) => el("li", { class: `of${n}` }, line.name)),
  );
  const how = task.grammar
    ? "Strings are uniform over the grammar's derivations of a depth, and drawn at their mean length."
    : "";
  const note = el(
    "p",
    { class: "caption" },
    `${drawable(task, 1) ? "Up to " : ""}${STRINGS_OF_A_SIZE} strings for each point: the share of scored symbols ` +
      `said right. ${how}`,
  );
  const next = ([size, ...sizes]) => {
    if (stopped()) return;
    if (size === undefined) return done();
    const fresh = () => Array.from({ length: STRINGS_OF_A_SIZE }, () => sample(task, random, size));
    const strings = (drawable(task, size)?.slice(0, STRINGS_OF_A_SIZE) ?? fresh()).filter(Boolean);
    shown.forEach(({ network, task }, n) => {
      const scores = strings.map((symbols) => scored(network, task, exampleOfWord(task, symbols)));
      const sum = (of) => scores.reduce((total, score) => total + of(score), 0),
        total = sum((score) => score.scored);
      const length = strings.reduce((total, symbols) => total + symbols.length, 0) / strings.length;
      if (total) series[n].points.push({ length, accuracy: sum((score) => score.right) / total });
    });
    if (series.some((line) => line.points.length))
      place.replaceChildren(accuracyChart(series, task.trained), legend, note);
    setTimeout(next, 0, sizes);
  };
  next(task.sizes);
}
