// §4: the tasks in the page: the targets of a typed string, and fresh strings of a given size.
//
// A task that has no entry here can still be looked at: its examples come with the page, or a script of its own.

const KINDS = {
  // w, then its kept symbols backwards while reading #.
  reversal: {
    example(task, symbols) {
      const end = symbols.includes("#") ? symbols.indexOf("#") : symbols.length,
        word = symbols.slice(0, end);
      if (!word.length)
        throw new Error("The string to reverse is empty: give at least one symbol before the first #.");
      if (symbols.slice(end).some((symbol) => symbol !== "#"))
        throw new Error("Only #s may follow the first #: they are where the answer goes.");
      const answer = word.filter((symbol) => task.outputs.includes(symbol)).reverse();
      const blanks = Math.max(word.length, symbols.length - word.length);
      const rest = Array(blanks - answer.length).fill(null);
      return {
        input: [...word, ...Array(blanks).fill("#")],
        target: [...word.map(() => null), ...answer, ...rest],
      };
    },
    sample: (task, random, length) =>
      uniform(
        task.inputs.filter((symbol) => symbol !== "#"),
        random,
        length,
      ),
  },
  // The XOR of the symbols so far, without the last `delay` of them.
  xor: {
    example(task, symbols) {
      let parity = 0;
      const parities = symbols.map((symbol) => String((parity ^= symbol === "1")));
      const target = [...Array(task.delay).fill("0"), ...parities].slice(0, symbols.length);
      return { input: symbols, target };
    },
    sample: (task, random, length) => uniform(task.inputs, random, length),
  },
  // The next symbol, where that is one of the task's outputs.
  next: {
    example(task, symbols) {
      const following = [...symbols.slice(1), null];
      return {
        input: symbols,
        target: following.map((symbol) => (task.outputs.includes(symbol) ? symbol : null)),
      };
    },
    sample: derived,
  },
  // What a pushdown transducer writes, symbol after symbol.
  machine: {
    example(task, symbols) {
      const written = configurations(task.pdt, symbols).flatMap((here) => here.written);
      return { input: symbols, target: symbols.map((_, j) => written[j] ?? null) };
    },
    // All that it writes, which may be more than it reads: padding is read meanwhile.
    whole(task, { input, target }) {
      const written = configurations(task.pdt, input).flatMap((here) => here.written),
        more = written.slice(target.length);
      return { input: [...input, ...more.map(() => task.padding)], target: [...target, ...more] };
    },
    sample: drawn,
  },
  // The value of the formula, in reverse Polish notation, that ends here.
  formula: {
    example(task, symbols) {
      const values = [];
      const target = symbols.map((symbol, at) => {
        if (symbol === "&" || symbol === "|") {
          if (values.length < 2)
            throw new Error(
              `Symbol ${at + 1} is ${symbol} with fewer than two formulas before it: ` +
                "write formulas in reverse Polish notation, as in T F | T &.",
            );
          const right = values.pop(),
            left = values.pop();
          values.push(symbol === "&" ? left && right : left || right);
        } else values.push(symbol === "T");
        return values[values.length - 1] ? "1" : "0";
      });
      return { input: symbols, target };
    },
    sample: derived,
  },
};

// A task's example for symbols that were typed: targets are null where nothing is scored, or where the page knows
// none, which `known` says; `left` is the place of the symbol with which the string leaves the task's language, null
// where it does not.
function example(task, symbols) {
  const kind = KINDS[task.kind];
  if (!kind) return { ...exampleOfWord(task, symbols), left: null };
  const typed = withinLanguage(task, kind.example(task, symbols));
  return { ...typed, ...(kind.whole ? kind.whole(task, typed) : {}), known: true };
}

// The same for a string that is known not to leave the language.
function exampleOfWord(task, symbols) {
  if (KINDS[task.kind]) return KINDS[task.kind].example(task, symbols);
  const ended = withEnding(task, symbols),
    record = stored(task, symbols) ?? stored(task, ended);
  const [input, target] = record ?? [ended, ended.map(() => null)];
  return { input, target, known: Boolean(record) };
}

// A task may end its strings with a symbol that is repeated, as often as is said for a string of n symbols.
function withEnding({ ending }, symbols) {
  if (!ending) return symbols;
  const last = symbols.findLastIndex((symbol) => symbol !== ending.symbol) + 1,
    word = symbols.slice(0, last);
  if (!word.length || word.includes(ending.symbol)) return symbols;
  const count = Math.max(ending.each * word.length + ending.more, symbols.length - last);
  return [...word, ...Array(count).fill(ending.symbol)];
}

// The task's machine, if it has one, knows where a string leaves its language: nothing is scored from there on,
// and if the network was asked for the symbol with which it does, the right answer is what the machine says.
// So does the grammar whose next symbols are asked for, but it leaves the answer open. The padding symbol may
// always follow.
function withinLanguage(task, { input, target }) {
  const said = saidAsFarAsRead(task, input),
    read = said.length;
  if (input.slice(read).every((symbol) => symbol === task.padding)) return { input, target, left: null };
  if (said.some((written) => written.length !== 1)) return { input, target, left: read };
  const scored = target.map((symbol, j) => (j < read ? symbol : null));
  if (read && scored[read - 1] === input[read]) {
    const [right] = said[read - 1];
    scored[read - 1] = task.outputs.includes(right) ? right : null;
  }
  return { input, target: scored, left: read };
}

// What is known to be right at each symbol, as far as the machine or the grammar reads.
function saidAsFarAsRead(task, input) {
  if (task.pdt)
    return configurations(task.pdt, input)
      .slice(1)
      .map((here) => here.written);
  if (task.kind === "next" && task.grammar) return Array(beginning(task.grammar, input)).fill([""]);
  return input.map(() => []);
}

const same = (some, others) => JSON.stringify(some) === JSON.stringify(others);
// An example that came with the page, by what the network is given or by the string that was drawn.
const stored = (task, symbols) =>
  task.examples.find(([input, , word]) => same(input, symbols) || same(word, symbols));

// A fresh string of a size: a length, or for a grammar a depth; null where the task has none.
const sample = (task, random, size) => (KINDS[task.kind]?.sample ?? drawn)(task, random, size);

// One of the strings that come with the page.
function drawn(task, random, length) {
  const fitting = drawable(task, length);
  return fitting.length ? fitting[Math.floor(random() * fitting.length)] : null;
}

// All of them that give the network so many symbols, as one types them; null where the page draws its own.
const drawable = (task, length) =>
  (KINDS[task.kind]?.sample ?? drawn) === drawn
    ? task.examples.flatMap(([input, , word]) => (input.length === length ? [word] : []))
    : null;

function uniform(symbols, random, length) {
  return Array.from({ length }, () => symbols[Math.floor(random() * symbols.length)]);
}

// A symbol as it is typed and shown: spaces are between symbols, so that one within a symbol is written ␣.
const spelled = (symbol) => symbol.replace(/\s/g, "␣");
const asText = (symbols) => symbols.map(spelled).join(" ");

// What was typed, as symbols: words between spaces, and within a word the longest symbols that fit.
function symbolsOf(task, text) {
  const bySize = task.inputs.filter(Boolean).sort((a, b) => b.length - a.length),
    symbols = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    for (let at = 0; at < word.length;) {
      const symbol = bySize.find((s) => word.startsWith(spelled(s), at));
      if (!symbol)
        throw new Error(`“${word.slice(at)}” is not made of this task's symbols: ${asText(task.inputs)}`);
      symbols.push(symbol);
      at += symbol.length;
    }
  }
  if (!symbols.length) throw new Error(`Type at least one of ${asText(task.inputs)}`);
  return symbols;
}

// Random numbers in [0, 1) from a seed: the same seed, the same strings. A counter, with its bits mixed.
function randomFrom(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x9e3779b9) >>> 0;
    let t = a ^ (a >>> 16);
    t = Math.imul(t, 0x21f0aaad);
    t ^= t >>> 15;
    t = Math.imul(t, 0x735a2d97);
    return ((t ^ (t >>> 15)) >>> 0) / 4294967296;
  };
}

// The string of a derivation of a grammar, uniform over those of at most this depth. A terminal has depth 1
// and a tree is one deeper than its deepest child.
function derived(task, random, depth) {
  const { start, rules } = task.grammar,
    known = (task.counts ||= new Map());
  const product = (body, left) => body.reduce((ways, symbol) => ways * count(symbol, left), 1);
  function count(symbol, left) {
    if (left < 1 || !rules[symbol]) return left < 1 ? 0 : 1;
    const key = `${symbol} ${left}`;
    if (!known.has(key))
      known.set(
        key,
        rules[symbol].reduce((sum, body) => sum + product(body, left - 1), 0),
      );
    return known.get(key);
  }
  function draw(symbol, left) {
    if (!rules[symbol]) return [symbol];
    let rank = random() * count(symbol, left);
    const body = rules[symbol].find((body) => (rank -= product(body, left - 1)) < 0);
    return body.flatMap((part) => draw(part, left - 1));
  }
  const all = count(start, depth);
  return all > 0 && all < Infinity ? draw(start, depth) : null;
}

// Right and scored positions of a network on an example, and what it said.
function scored(network, task, { input, target }) {
  const run = forward(network, oneHot(task.alphabet, padded(network, task, input)));
  const says = target.map((_, j) => task.alphabet[largest(run.output[j])]);
  const places = target.flatMap((symbol, j) => (symbol === null ? [] : [j]));
  return { run, says, scored: places.length, right: places.filter((j) => says[j] === target[j]).length };
}

// Buffered networks can tell how far a string is padded: as far as in training or testing, whichever holds it.
function padded(network, task, symbols) {
  if (!network.buffered) return symbols;
  const length = task.lengths.find((n) => n >= symbols.length) ?? symbols.length;
  return [...symbols, ...Array(length - symbols.length).fill(task.padding)];
}
