// §2 of the paper, in plain JavaScript: the forward pass of every controller, memory and buffered network.
//
// State is passed, never changed: a stack is a list that shares its tail with the stack of the step before, a
// queue is a place in what was pushed, so all steps of a run are kept and none costs more than what it touched.
// Numbers are doubles; weights are those of the network, embedded in the page as they were saved.

const sigmoid = (a) => 1 / (1 + Math.exp(-a));

// W z + b, with W (rows, columns) as one array, row after row.
function affine(W, b, z) {
  const rows = b.length,
    columns = z.length,
    out = new Float64Array(rows);
  for (let i = 0, k = 0; i < rows; i++) {
    let sum = b[i];
    for (let j = 0; j < columns; j++, k++) sum += W[k] * z[j];
    out[i] = sum;
  }
  return out;
}

function joined(a, b) {
  const out = new Float64Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}

const layer = (network, name, z) =>
  affine(network.weights[`core.${name}.weight`], network.weights[`core.${name}.bias`], z);
const zeros = (n) => new Float64Array(n);

// §2.2: a core turns [x; r] and its recurrent state h into features and the next h.
const CORES = {
  linear: { init: () => [], step: (network, z, h) => [z, h] },
  mlp: { init: () => [], step: (network, z, h) => [layer(network, "layer", z).map(Math.tanh), h] },
  rnn: {
    init: (network) => [zeros(network.hidden_size)],
    step(network, z, [h]) {
      const a = layer(network, "from_input", z),
        b = layer(network, "from_hidden", h);
      const next = a.map((value, k) => Math.tanh(value + b[k]));
      return [next, [next]];
    },
  },
  gru: {
    init: (network) => [zeros(network.hidden_size)],
    step(network, z, [h]) {
      const n = h.length,
        a = layer(network, "from_input", z),
        b = layer(network, "from_hidden", h);
      const next = h.map((old, k) => {
        const reset = sigmoid(a[k] + b[k]),
          update = sigmoid(a[n + k] + b[n + k]);
        const fresh = Math.tanh(a[2 * n + k] + reset * b[2 * n + k]);
        return fresh + update * (old - fresh);
      });
      return [next, [next]];
    },
  },
  lstm: {
    init: (network) => [zeros(network.hidden_size), zeros(network.hidden_size)],
    step(network, z, [h, c]) {
      const n = h.length,
        a = layer(network, "from_input", z),
        b = layer(network, "from_hidden", h);
      const gate = (part, k) => a[part * n + k] + b[part * n + k];
      const cell = c.map((old, k) => sigmoid(gate(1, k)) * old + sigmoid(gate(0, k)) * Math.tanh(gate(2, k)));
      const hidden = cell.map((value, k) => sigmoid(gate(3, k)) * Math.tanh(value));
      return [hidden, [hidden, cell]];
    },
  },
};

// §2.1: a stack is its top cell, {slot, s, below}, or null; `count` and `total` are of it and all below it.
const cell = (slot, s, below) => ({
  slot,
  s,
  below,
  count: (below ? below.count : 0) + 1,
  total: (below ? below.total : 0) + s,
});

const STACK = {
  empty: null,
  pop(top, u) {
    while (top && u >= top.s) {
      u -= top.s;
      top = top.below;
    }
    return top && u > 0 ? cell(top.slot, top.s - u, top.below) : top;
  },
  push: (top, slot, d) => cell(slot, d, top),
  *cells(top) {
    for (; top; top = top.below) yield [top.slot, top.s];
  },
  held: (top) => top ?? { total: 0, count: 0 },
};

// §2.3: a queue is where its front is in what was pushed, and how much is left there; `strengths` holds what
// every item had when it was pushed, and is only ever added to.
const QUEUE = {
  empty: { front: 0, left: 0, end: 0, strengths: [] },
  pop(queue, u) {
    let { front, left } = queue;
    const { end, strengths } = queue;
    while (front < end && u >= left) {
      u -= left;
      front += 1;
      left = front < end ? strengths[front] : 0;
    }
    return { front, left: left - (front < end ? u : 0), end, strengths };
  },
  push({ front, left, end, strengths }, slot, d) {
    const added = strengths.length === end && end ? strengths : strengths.slice(0, end);
    added.push(d);
    return { front, left: front === end ? d : left, end: end + 1, strengths: added };
  },
  *cells({ front, left, end, strengths }) {
    if (front < end) yield [front, left];
    for (let j = front + 1; j < end; j++) yield [j, strengths[j]];
  },
  held(queue) {
    let [total, count] = [0, 0];
    for (const [, s] of QUEUE.cells(queue)) ((total += s), (count += s > 0));
    return { total, count };
  },
};

const NO_MEMORY = {
  empty: null,
  pop: () => null,
  push: () => null,
  *cells() {},
  held: () => ({ total: 0, count: 0 }),
};
const MEMORIES = { stack: STACK, queue: QUEUE, none: NO_MEMORY };

// §2.1, §2.3: the nearest items whose strengths add up to 1, each with the part of it that is read.
function* inWindow(memory, state) {
  let rho = 1;
  for (const [slot, s] of memory.cells(state)) {
    yield [slot, Math.min(s, rho)];
    rho -= s;
    if (rho <= 0) return;
  }
}

function read(memory, state, vectors, size) {
  const r = zeros(size);
  for (const [slot, w] of inWindow(memory, state)) {
    const v = vectors[slot];
    for (let k = 0; k < size; k++) r[k] += w * v[k];
  }
  return r;
}

// §2.2: everything a controller does in a step, from one linear map; i and o are 1 without buffers.
function act(network, features) {
  const raw = affine(network.weights["heads.weight"], network.weights["heads.bias"], features);
  const strengths = network.buffered ? 4 : 2,
    m = network.memory_size;
  const squashed = raw.subarray(0, strengths + m).map(sigmoid);
  const [u, d, i = 1, o = 1] = squashed.subarray(0, strengths);
  return { u, d, i, o, v: squashed.subarray(strengths), y: raw.subarray(strengths + m) };
}

// x, an array of input vectors -> all that the network did, step by step, and its output. As every run it has
// `said`, what the controller said by head, and says what the memory holds: cells, nearest first, how much in
// how many, and the vector in a cell.
function forward(network, x) {
  const core = CORES[network.controller],
    memory = MEMORIES[network.memory.name],
    m = network.memory_size;
  const steps = network.buffered ? network.steps_per_symbol * x.length : x.length;
  const run = {
    steps,
    x: [],
    y: [],
    v: [],
    u: [],
    d: [],
    r: [],
    h: [],
    c: [],
    i: [],
    o: [],
    memory: [],
    input: [],
  };
  let h = core.init(network),
    state = memory.empty,
    r = zeros(m),
    taken = 0;
  let input = x.reduce((queue, item, j) => QUEUE.push(queue, j, 1), QUEUE.empty);
  for (let t = 0; t < steps; t++) {
    input = QUEUE.pop(input, taken);
    const x_t = network.buffered ? read(QUEUE, input, x, network.input_size) : x[t];
    let features;
    [features, h] = core.step(network, joined(x_t, r), h);
    const { u, d, i, o, v, y } = act(network, features);
    run.v.push(v);
    state = memory.push(memory.pop(state, u), t, d);
    r = read(memory, state, run.v, m);
    taken = i;
    const kept = { x: x_t, y, u, d, r, i, o, h: features, c: h[1] || null, memory: state, input };
    for (const name in kept) run[name].push(kept[name]);
  }
  run.said = { u: run.u, d: run.d, v: run.v, i: run.i, o: run.o };
  run.cells = (t) => memory.cells(run.memory[t]);
  run.held = (t) => memory.held(run.memory[t]);
  run.vector = (slot) => run.v[slot];
  run.fixed = true;
  run.earlier = 0;
  run.output = network.buffered ? readOff(run.y, run.o, network.discard_first, network.output_size) : run.y;
  return run;
}

// §2.3: the output sequence, whole items taken from the front of the output buffer until nothing is left.
function readOff(y, o, discardFirst, size) {
  let queue = o.reduce((queue, strength, j) => QUEUE.push(queue, j, strength), QUEUE.empty);
  return y.map((_, n) => {
    queue = QUEUE.pop(queue, n || discardFirst ? 1 : 0);
    return read(QUEUE, queue, y, size);
  });
}

function softmax(y) {
  const most = Math.max(...y),
    e = Array.from(y, (a) => Math.exp(a - most)),
    sum = e.reduce((a, b) => a + b, 0);
  return e.map((a) => a / sum);
}

const largest = (y) => y.reduce((best, a, k) => (a > y[best] ? k : best), 0);

// Symbols as the network is given them, one-hot in the order of the alphabet.
function oneHot(alphabet, symbols) {
  const rows = new Map(alphabet.map((symbol, k) => [symbol, zeros(alphabet.length).fill(1, k, k + 1)]));
  return symbols.map((symbol) => rows.get(symbol));
}

// Weights as the page holds them: float32, little-endian, in base64.
function decoded(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return Float64Array.from(new Float32Array(bytes.buffer));
}
