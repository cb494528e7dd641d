// A sequence of steps that is played: { kind, size, steps, at }, and the link that holds it.

const MOST_STEPS = 200;
const EXAMPLE = {
  kind: "stack",
  size: 3,
  steps: [
    { u: 0, d: 0.8, v: [1, 0, 0] },
    { u: 0.1, d: 0.5, v: [0, 1, 0] },
    { u: 0.9, d: 0.9, v: [0, 0, 1] },
  ],
};

const oneAt = (size, k) => Array.from({ length: size }, (_, j) => (j === k % size ? 1 : 0));
const fresh = (size, n) => ({ u: 0, d: 1, v: oneAt(size, n) });

// A sequence as the part of a link after #: u, d and the numbers of v for each step.
function asLink({ kind, size, steps, at }) {
  const texts = steps.map(({ u, d, v }) => [u, d, ...v].map(short).join(","));
  return `memory=${kind}&size=${size}&steps=${texts.join(";")}&step=${Math.min(at, steps.length) + 1}`;
}

function fromLink(text) {
  const parts = new URLSearchParams(text),
    kind = parts.get("memory") ?? "stack",
    size = Number(parts.get("size") ?? 3);
  if (!Object.hasOwn(WRITTEN, kind))
    throw new Error(`The link names the memory “${kind}”: it can be stack or queue.`);
  if (![1, 2, 3, 4, 5, 6].includes(size)) throw new Error("The link's vectors must have 1 to 6 numbers.");
  const steps = (parts.get("steps") ?? "")
    .split(";")
    .filter(Boolean)
    .map((step, n) => {
      const numbers = step.split(",").map((number) => (number.trim() === "" ? NaN : Number(number)));
      if (numbers.length !== size + 2 || !numbers.every((number) => number >= 0 && number <= 1))
        throw new Error(
          `Step ${n + 1} of the link must be ${size + 2} numbers from 0 to 1: u, d and those of v.`,
        );
      const [u, d, ...v] = numbers;
      return { u, d, v };
    });
  if (steps.length > MOST_STEPS)
    throw new Error(`The link has ${steps.length} steps: ${MOST_STEPS} at most.`);
  const at = Math.round(Number(parts.get("step") ?? steps.length + 1)) - 1;
  return { kind, size, steps, at: Math.max(0, Math.min(steps.length, at || 0)) };
}
