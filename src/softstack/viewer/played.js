// Runs that were recorded: of networks whose memory or controller is not in forward.js, and for `ss.show`.

// JSON has no infinity and no NaN: they come as text.
const numbers = (value) => (Array.isArray(value) ? value.map(numbers) : Number(value));

// A recorded run with all that a run of forward.js is asked for.
function played(network, record) {
  const run = { steps: record.steps, fixed: record.fixed, earlier: record.earlier, said: {} };
  for (const name of ["x", "y", "r", "h", "s", "V"]) run[name] = numbers(record[name]);
  for (const [name, values] of Object.entries(record.said)) run.said[name] = numbers(values);
  run.output = record.output ? numbers(record.output) : run.y;
  run.vector = (slot, t) => (run.fixed ? run.V[slot] : run.V[t][slot]);
  run.cells = function* (t) {
    const cells = run.s[t].length,
      { drawn } = network.memory;
    for (let k = 0; k < cells; k++) {
      const slot = drawn === "pile" ? cells - 1 - k : k;
      if (drawn === "cells" || run.s[t][slot] !== 0) yield [slot, run.s[t][slot]];
    }
  };
  run.held = (t) => ({
    total: run.s[t].reduce((sum, s) => sum + s, 0),
    count: run.s[t].filter((s) => s > 0).length,
  });
  if (network.buffered) run.input = inputBuffer(record.fed.length, run.said.i);
  return run;
}

// §2.3: the input buffer at each step; `taken` is what each step takes from it before the next.
function inputBuffer(length, taken) {
  let queue = Array.from({ length }).reduce((queue, _, j) => QUEUE.push(queue, j, 1), QUEUE.empty);
  return taken.map((_, t) => (queue = QUEUE.pop(queue, t ? taken[t - 1] : 0)));
}

// A record as a panel begins with it.
function begun(network, record) {
  const { input, target, fed, left = null } = record;
  const example = { input, target: target ?? [], known: target !== null, left };
  return { example, fed, run: (record.played ??= played(network, record)) };
}

// A network on a string: run here, or as it was recorded.
function started(network, task, symbols) {
  if (network.runs) {
    const record = network.runs.find((record) => same(record.symbols, symbols));
    if (!record) throw new Error(`${asText(symbols)} was not recorded: choose one of the strings that were.`);
    return begun(network, record);
  }
  const typed = example(task, symbols),
    fed = padded(network, task, typed.input);
  return { example: typed, fed, run: forward(network, oneHot(task.alphabet, fed)) };
}

// The strings that some networks can be shown on: null where all of them run here, on any string.
function recordedStrings(networks) {
  const records = networks.flatMap((network) => (network.runs ? [network.runs] : []));
  if (!records.length) return null;
  const shared = (symbols) => records.every((runs) => runs.some((record) => same(record.symbols, symbols)));
  return records[0].map((record) => record.symbols).filter(shared);
}
