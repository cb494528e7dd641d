// How far a string can be the beginning of a word of a grammar: Earley's recogniser, the twin of
// formal/beginnings.py.
//
// An item is a rule of which `read` symbols are read. `begun` are the places where it may have begun: bit j
// stands for the place after j symbols.

// How many of the symbols, from the first one on, are the beginning of a word.
function beginning(grammar, symbols) {
  const empty = derivingNothing(grammar),
    chart = [];
  let items = rulesOf(grammar, grammar.start, 1n);
  for (const [place, symbol] of symbols.entries()) {
    chart.push(underWay(grammar, empty, chart, items));
    const waited = chart[place].get(symbol);
    if (!waited) return place;
    items = [...waited.values()].map(oneFurther);
  }
  return symbols.length;
}

const rulesOf = ({ rules }, name, begun) =>
  rules[name].map((body, n) => ({ rule: `${n} ${name}`, name, body, read: 0, begun }));
const oneFurther = (item) => ({ ...item, read: item.read + 1 });

// All items that may be under way where these are, by the symbol that they want: what they want begins here,
// and where a rule is read to its end, those that waited for it go on.
function underWay(grammar, empty, chart, items) {
  const waiting = new Map(),
    here = 1n << BigInt(chart.length);
  while (items.length) {
    const item = items.pop(),
      wanted = item.body[item.read] ?? "",
      key = `${item.read} ${item.rule}`;
    if (!waiting.has(wanted)) waiting.set(wanted, new Map());
    const known = waiting.get(wanted),
      before = known.get(key)?.begun ?? 0n,
      begun = item.begun & ~before;
    if (!begun) continue;
    known.set(key, { ...item, begun: begun | before });
    if (Object.hasOwn(grammar.rules, wanted)) {
      items.push(...rulesOf(grammar, wanted, here));
      if (empty.has(wanted)) items.push({ ...oneFurther(item), begun });
    } else if (!wanted) {
      for (let place = 0; place < chart.length; place++)
        if ((begun >> BigInt(place)) & 1n)
          items.push(...[...(chart[place].get(item.name)?.values() ?? [])].map(oneFurther));
    }
  }
  return waiting;
}

// The nonterminals that derive the empty string.
function derivingNothing({ rules }) {
  const empty = new Set(),
    names = Object.keys(rules);
  for (const _ of names)
    for (const name of names)
      if (rules[name].some((body) => body.every((symbol) => empty.has(symbol)))) empty.add(name);
  return empty;
}
