// §3: a deterministic pushdown transducer, run beside the network. A rule is {state, read, pop, next, write,
// push}; "" and [] are ε, `$` lies under everything, and the last symbol pushed is on top.

const MOST_EPSILON = 10000;

// One entry for each number of symbols read: where the machine stands then, and the moves that led there.
function configurations(pdt, symbols) {
  let state = pdt.start, stack = { symbol: "$", below: null, height: 0 };
  const path = [{ state, stack, moves: [], written: [] }];
  for (let position = 0, epsilons = 0; epsilons <= MOST_EPSILON; ) {
    const x = symbols[position], fits = (rule) =>
      rule.state === state && (!rule.read || rule.read === x) && (!rule.pop || rule.pop === stack.symbol);
    const rule = pdt.rules.find(fits);
    if (!rule) break;
    if (rule.pop) stack = stack.below;
    for (const symbol of rule.push) stack = { symbol, below: stack, height: stack ? stack.height + 1 : 0 };
    state = rule.next;
    if (rule.read) (position += 1), (epsilons = 0), path.push({ moves: [], written: [] });
    else epsilons += 1;
    const here = path[path.length - 1];
    Object.assign(here, { state, stack, moves: [...here.moves, rule], written: [...here.written, ...rule.write] });
  }
  return path;
}

function ruleText(rule) {
  const word = (symbols) => symbols.join(" ") || "ε";
  const stack = rule.pop || rule.push.length ? `, ${rule.pop || "ε"} → ${word(rule.push)}` : "";
  return `${rule.read || "ε"} : ${word(rule.write)}${stack}`;
}
