// One step of a stack (§2.1) or a queue (§2.3) as the paper writes it: left-over strength is passed from item to
// item by nested ReLUs. `forward.js` does the same faster.
//
// A memory is { V, s }: vectors and their strengths, the first pushed first. A step is { u, d, v }.

const NOTHING = { V: [], s: [] };
const relu = (a) => Math.max(0, a);

// The places of n items, the nearest first: the top of a stack is its last item, the front of a queue its first.
const nearestFirst = (kind, n) =>
  kind === "stack" ? Array.from({ length: n }, (_, k) => n - 1 - k) : Array.from({ length: n }, (_, k) => k);

// left   u_t[i], or ι_t[i]: the strength that is left to pop when item i is reached
// popped s_t[i] of the items that were there before
// V, s   what the memory holds after the step
// rho    ρ_t[i], or ξ_t[i]: the strength that is left to read there
// w      min(s_t[i], ρ_t[i])
// r      what is read
function paperStep(kind, before, { u, d, v }) {
  const left = [],
    popped = [],
    rho = [],
    w = [];
  let rest = u;
  for (const i of nearestFirst(kind, before.s.length)) {
    left[i] = rest;
    popped[i] = relu(before.s[i] - left[i]);
    rest = relu(left[i] - before.s[i]);
  }
  const V = [...before.V, v],
    s = [...popped, d];
  rest = 1;
  for (const i of nearestFirst(kind, s.length)) {
    rho[i] = rest;
    w[i] = Math.min(s[i], rho[i]);
    rest = relu(rho[i] - s[i]);
  }
  const r = v.map((_, k) => V.reduce((sum, item, i) => sum + w[i] * item[k], 0));
  return { left, popped, V, s, rho, w, r };
}

// The memory after each step of a sequence, and before the first.
function paperRun(kind, steps) {
  const states = [NOTHING];
  for (const step of steps) states.push(paperStep(kind, states[states.length - 1], step));
  return states;
}
