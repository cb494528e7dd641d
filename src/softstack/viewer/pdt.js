// §3: a deterministic pushdown transducer, run beside the network. A rule is {state, read, pop, next, write,
// push}; "" and [] are ε, `$` lies under everything, and the last symbol pushed is on top.

const MOST_EPSILON = 10000;

// One entry for each number of symbols read: where the machine stands then, and the moves that led there.
function configurations(pdt, symbols) {
  let state = pdt.start,
    stack = { symbol: "$", below: null, height: 0 };
  const path = [{ state, stack, moves: [], written: [] }];
  for (let position = 0, epsilons = 0; epsilons <= MOST_EPSILON;) {
    const x = symbols[position],
      fits = (rule) =>
        rule.state === state && (!rule.read || rule.read === x) && (!rule.pop || rule.pop === stack.symbol);
    const rule = pdt.rules.find(fits);
    if (!rule) break;
    if (rule.pop) stack = stack.below;
    for (const symbol of rule.push) stack = { symbol, below: stack, height: stack ? stack.height + 1 : 0 };
    state = rule.next;
    if (rule.read) ((position += 1), (epsilons = 0), path.push({ moves: [], written: [] }));
    else epsilons += 1;
    const here = path[path.length - 1];
    Object.assign(here, {
      state,
      stack,
      moves: [...here.moves, rule],
      written: [...here.written, ...rule.write],
    });
  }
  return path;
}

function ruleText(rule) {
  const word = (symbols) => symbols.join(" ") || "ε";
  const stack = rule.pop || rule.push.length ? `, ${rule.pop || "ε"} → ${word(rule.push)}` : "";
  return `${rule.read || "ε"} : ${word(rule.write)}${stack}`;
}

// §3: the transducer's configuration after as many symbols as the network has come to.
class TransducerView {
  constructor(pdt) {
    this.pdt = pdt;
    this.state = el("b");
    this.stack = el("div", { class: "symbols" });
    this.moves = el("div", { class: "moves" });
    this.node = el(
      "div",
      { class: "card transducer" },
      el("h3", {}, "Transducer", el("small", {}, "exact")),
      el("p", { class: "state" }, "state ", this.state),
      this.stack,
      this.moves,
    );
  }

  begin(symbols) {
    this.path = configurations(this.pdt, symbols);
    this.symbols = symbols;
  }

  show(position) {
    const stuck = position >= this.path.length,
      here = this.path[Math.min(position, this.path.length - 1)];
    this.state.textContent = here.state;
    const symbols = [];
    for (let cell = here.stack; cell && symbols.length < 12; cell = cell.below)
      symbols.push(el("span", {}, cell.symbol));
    if (here.stack.height >= 12) symbols.push(el("em", {}, `${here.stack.height - 11} more`));
    this.stack.replaceChildren(...symbols);
    this.stack.setAttribute("aria-label", `stack, top first: ${symbols.map((s) => s.textContent).join(" ")}`);
    const read = position > this.symbols.length ? "all is read" : "no rule fits: it has stopped";
    this.moves.replaceChildren(
      ...(stuck ? [el("span", {}, read)] : here.moves.map((rule) => el("code", {}, ruleText(rule)))),
    );
  }
}
