"""§3 Deterministic pushdown transducers (PDTs): δ(q, x, s) = ⟨q', y, s'⟩.

A rule is enabled when the machine is in q, x is the next input symbol and s is on top of the stack. It reads
x, pops s, writes y, pushes s' and goes to q'. Each of x, y, s, s' may be ε: read, write, look at or push
nothing. The marker `$` lies under everything; a rule that pops it must push it back first.

Text form, one rule per line, the paper's arrow label `x:y, s → s'` after the arrow's two states:

    % Figure 3, for the symbol 0 alone
    start q0
    q0 -> q0   0 : # , ε -> 0
    q0 -> q0   # : 0 , 0 -> ε

- `start q` is required; `accept q r` is optional, and without it every state accepts.
- `input x y`, `output x y` and `stack s t` are optional: where one is given, rules read, write, or pop and
  push only the symbols that it declares (and `$`).
- The stack part may be left out, as in Figure 4 (left): `q -> r   0 : 1` is `q -> r   0 : 1 , ε -> ε`.
- Several symbols to write or push are separated by spaces. Pushes happen in the order written, so the last
  symbol ends on top: the order of `Configuration.stack`. After `$ -> $ a b` the stack is ($, a, b).
- `ε` or `eps` is the empty word, `->` or `→` the arrow. Spaces around `:` `,` and arrows are optional.
- A symbol or state is written bare unless it holds a space, `'` `:` `,` `->` or `→`, begins with `%`, or is
  `ε` or `eps` itself: then it is quoted, `':'`, and a quote within quotes is doubled, `''''`.
- A line that begins with `%` is a comment; a comment cannot follow a rule (`#` and `//` are symbols).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from softstack.errors import BadInput
from softstack.words import counted

BOTTOM = "$"
HEADERS = ("start", "accept", "input", "output", "stack")
_BARE = r"(?:(?!->)[^\s':,→])+"
_TOKEN = re.compile(rf"\s*(?:(?P<mark>->|[→:,])|(?P<quoted>'(?:[^']|'')+')|(?P<bare>{_BARE}))")
# One letter a token (s: symbol or ε, >: arrow), so that the groups' spans are positions in the token list.
_RULE = re.compile(r"s>ss:(s+)(?:,s>(s+))?")


def _text(symbol: str) -> str:
    """A symbol as the text form writes it; the empty string is ε."""
    if not symbol:
        return "ε"
    plain = re.fullmatch(_BARE, symbol) and symbol not in ("ε", "eps") and not symbol.startswith("%")
    return symbol if plain else "'" + symbol.replace("'", "''") + "'"


def _word(symbols: Iterable[str]) -> str:
    return " ".join(map(_text, symbols)) or "ε"


class Rule(NamedTuple):
    """One value of the transition function, δ(state, read, pop) = ⟨next, write, push⟩; "" and () are ε."""

    state: str
    read: str
    pop: str
    next: str
    write: tuple[str, ...]
    push: tuple[str, ...]  # last on top

    def __str__(self) -> str:
        stack = f" , {_text(self.pop)} -> {_word(self.push)}" if self.pop or self.push else ""
        arrow = f"{_text(self.state)} -> {_text(self.next)}"
        return f"{arrow}   {_text(self.read)} : {_word(self.write)}{stack}"


class Configuration(NamedTuple):
    """Where a run stands, with the move that led there."""

    state: str
    position: int  # input symbols read so far
    stack: tuple[str, ...]  # top last, BOTTOM first
    written: tuple[str, ...]  # by the move that led here
    rule: Rule | None  # that move; None before any


class Run(NamedTuple):
    """A whole run. It is accepted when all input was read and it came to rest in an accepting state."""

    configurations: tuple[Configuration, ...]  # the first is before any move
    accepted: bool
    stuck: str | None  # a sentence where input was left unread
    output: tuple[str, ...]
    emitted_at: tuple[int, ...]  # per output symbol, the last input position read; -1 before any


@dataclass(frozen=True, init=False)
class Transducer:
    """§3 A deterministic PDT. Its states are the start state and those that the rules mention."""

    start: str
    rules: tuple[Rule, ...]
    accepting: tuple[str, ...]  # in the order of `states`

    def __init__(self, start: str, rules: Iterable[Rule], accepting: Iterable[str] | None = None) -> None:
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "rules", tuple(rules))
        named = self.states if accepting is None else tuple(accepting)
        object.__setattr__(self, "accepting", tuple(q for q in self.states if q in named))
        for rule in self.rules:
            _check(rule)
        if not any(rule.state == start for rule in self.rules):
            raise BadInput(f"no rule leaves the start state {start!r}: give at least one rule that does")
        if strangers := [q for q in named if q not in self.states]:
            raise BadInput(f"accepting state {strangers[0]!r} is in no rule: the states are {self.states}")
        for a, b in combinations(self.rules, 2):
            # One configuration enables both; {x, y, ""} has three members unless x = y or one of them is ε.
            if a.state == b.state and len({a.read, b.read, ""}) < 3 and len({a.pop, b.pop, ""}) < 3:
                raise BadInput(f"the rules `{a}` and `{b}` clash: make them read or pop different symbols")

    @cached_property
    def states(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([self.start, *(q for r in self.rules for q in (r.state, r.next))]))

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        """The input symbols that some rule reads, in the order of the rules."""
        return tuple(dict.fromkeys(r.read for r in self.rules if r.read))

    @cached_property
    def stack_symbols(self) -> tuple[str, ...]:
        """BOTTOM, then what the rules pop and push."""
        return tuple(dict.fromkeys([BOTTOM, *(s for r in self.rules for s in (r.pop, *r.push) if s)]))

    @cached_property
    def _delta(self) -> dict[tuple[str, str, str], Rule]:
        return {(r.state, r.read, r.pop): r for r in self.rules}

    @classmethod
    def parse(cls, text: str) -> "Transducer":
        """The machine that a text describes; the syntax is in the module's docstring."""
        headers: dict[str, tuple[str, ...]] = {}
        rules: list[Rule] = []
        for number, line in enumerate(map(str.strip, text.split("\n")), 1):
            if not line or line.startswith("%"):
                continue
            kinds, symbols = _tokens(line, number)
            if symbols[0] in HEADERS and set(kinds) == {"s"}:
                if symbols[0] in headers:
                    raise BadInput(f"line {number} gives `{symbols[0]}` a second time: give it once")
                headers[symbols[0]] = tuple(symbols[1:])
            elif match := _RULE.fullmatch(kinds):
                write, push = symbols[slice(*match.span(1))], symbols[slice(*match.span(2))]
                pop = symbols[match.end(1) + 1] if push else ""
                words = [() if word == [""] else tuple(word) for word in (write, push)]
                rules.append(Rule(symbols[0], symbols[3], pop, symbols[2], *words))
            else:
                forms = "`q -> r   x : y , s -> t` (ε for nothing, symbols like ':' in quotes), `start q` "
                forms += "or `accept q r`"
                comment = ". A comment begins with %, since # can be a symbol" if line.startswith("#") else ""
                raise BadInput(f"line {number}, `{line}`, cannot be understood: write {forms}{comment}")
        for rule in rules:
            _check_declared(rule, headers)
        start = headers.get("start", ())
        if len(start) != 1:
            raise BadInput(f"the text names {len(start)} start states: give one line `start q`")
        return cls(start[0], rules, headers.get("accept"))

    def __str__(self) -> str:
        accept = [] if self.accepting == self.states else [" ".join(["accept", *map(_text, self.accepting)])]
        return "\n".join([f"start {_text(self.start)}", *accept, *map(str, self.rules)])

    @property
    def size(self) -> str:
        """How large it is, in words; the marker is not counted."""
        symbols = counted(len(self.stack_symbols) - 1, "stack symbol")
        return f"{counted(len(self.states), 'state')}, {symbols} and {counted(len(self.rules), 'rule')}"

    def steps(self, symbols: Iterable[str], max_epsilon: int = 10_000) -> Iterator[Configuration]:
        """Every configuration in turn, lazily, until no rule is enabled.

        Endless ε-moves are refused as soon as they are certain: a state and stack top come again and the
        stack was not lower in between, so what lies beneath was not seen and the same moves must follow.
        """
        word = tuple(symbols)
        for j, x in enumerate(word):
            if x not in self.alphabet:
                names = ", ".join(map(repr, self.alphabet)) or "nothing"
                raise BadInput(f"no rule reads the input symbol {x!r} at position {j}: accepted: {names}")
        state, position, stack = self.start, 0, [BOTTOM]
        written: tuple[str, ...] = ()
        rule: Rule | None = None
        epsilons = 0  # ε-moves since a symbol was read
        heights: dict[tuple[str, str], int] = {}  # (state, top) since then: stack height, which only rises
        while True:
            yield Configuration(state, position, tuple(stack), written, rule)
            if rule and rule.read:
                epsilons, heights = 0, {}
            while heights and next(reversed(heights.values())) > len(stack):
                heights.popitem()
            if (endless := (state, stack[-1]) in heights) or epsilons > max_epsilon:
                fault = "for ever" if endless else f"more than {max_epsilon} times in a row"
                cure = "make the loop read a symbol" if endless else "raise max_epsilon if that is meant"
                raise BadInput(
                    f"after {counted(position, 'symbol')} `{rule}` makes ε-moves go on {fault}: {cure}"
                )
            heights[state, stack[-1]] = len(stack)
            rule = self.enabled(state, word[position] if position < len(word) else "", stack[-1])
            if rule is None:
                return
            if rule.pop:
                stack.pop()
            stack.extend(rule.push)
            state, written = rule.next, rule.write
            position += bool(rule.read)
            epsilons += not rule.read

    def enabled(self, state: str, x: str, top: str) -> Rule | None:
        """δ at a configuration: at most one of the four is there, the machine being deterministic."""
        δ = self._delta.get
        return δ((state, x, top)) or δ((state, x, "")) or δ((state, "", top)) or δ((state, "", ""))

    def run(self, symbols: Iterable[str], max_epsilon: int = 10_000) -> Run:
        """The run on an input (a string is its characters), with the ε-moves that follow the last symbol."""
        word = tuple(symbols)
        path = tuple(self.steps(word, max_epsilon))
        last, stuck = path[-1], None
        if last.position < len(word):
            q, x, top = map(_text, (last.state, word[last.position], last.stack[-1]))
            read = counted(last.position, "symbol")
            stuck = f"after {read} no rule of state {q} reads {x} with {top} on the stack"
        emitted = [(y, c.position - 1) for c in path for y in c.written]
        accepted = stuck is None and last.state in self.accepting
        return Run(path, accepted, stuck, tuple(y for y, _ in emitted), tuple(j for _, j in emitted))

    def aligned(self, symbols: Iterable[str], max_epsilon: int = 10_000) -> tuple[str | None, ...]:
        """Per input position the last symbol written there; None where none was, and past where it stuck."""
        word = tuple(symbols)
        last = {c.position - 1: c.written[-1] for c in self.steps(word, max_epsilon) if c.written}
        return tuple(last.get(j) for j in range(len(word)))


def _check(rule: Rule) -> None:
    """Refuse a rule that has no text form or that would move the bottom marker."""
    if isinstance(rule.write, str) or isinstance(rule.push, str):
        raise BadInput(f"{tuple(rule)} writes or pushes a string: give a tuple, ('a',) for a and () for ε")
    if not all([rule.state, rule.next, *rule.write, *rule.push]):
        raise BadInput(f"the rule `{rule}` has ε for a state or beside other symbols: name or remove it")
    if not all(map(str.isprintable, (rule.state, rule.read, rule.pop, rule.next, *rule.write, *rule.push))):
        raise BadInput(f"the rule {tuple(rule)} has a symbol that cannot be printed: rename it")
    above = rule.push[1:] if rule.pop == BOTTOM else rule.push
    if BOTTOM in above or (rule.pop == BOTTOM and rule.push[:1] != (BOTTOM,)):
        raise BadInput(f"the rule `{rule}` moves the bottom marker $: write `$ -> $` or `$ -> $ a` and so on")


def _check_declared(rule: Rule, headers: dict[str, tuple[str, ...]]) -> None:
    """Refuse a symbol that its alphabet does not hold, where the text declares that."""
    used = {"input": (rule.read,), "output": rule.write, "stack": (rule.pop, *rule.push)}
    for kind, symbols in used.items():
        for symbol in symbols:
            if kind in headers and symbol not in (*headers[kind], "", BOTTOM if kind == "stack" else ""):
                declared = " ".join(map(_text, headers[kind]))
                raise BadInput(
                    f"the rule `{rule}` uses {_text(symbol)}, which `{kind} {declared}` does not declare: "
                    "declare it there, or mend the rule"
                )


def _tokens(line: str, number: int) -> tuple[str, list[str]]:
    """The line's tokens: their kinds, a letter each (see _RULE), and their symbols, "" for ε."""
    tokens = list(_TOKEN.finditer(line))
    if "".join(token[0] for token in tokens) != line:
        raise BadInput(f"line {number}, `{line}`, has a quote that is empty or not closed: write 'x'")
    kinds = "".join(token["mark"] or "s" for token in tokens).replace("->", ">").replace("→", ">")
    bare = [token["bare"] if token["bare"] not in (None, "ε", "eps") else "" for token in tokens]
    quoted = [(token["quoted"] or "")[1:-1].replace("''", "'") for token in tokens]
    return kinds, [q or b for q, b in zip(quoted, bare, strict=True)]
