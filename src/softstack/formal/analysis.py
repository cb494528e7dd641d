"""What holds of a PDT on every input: which rules can be enabled, whether ε-moves end, how long it takes.

A *head* is a state and the symbol on top of the stack: with the next input symbol it decides the next move.
Everything here is a fixed point over the heads, of which there are finitely many.
"""

from typing import NamedTuple

from softstack.errors import BadInput
from softstack.formal.transducer import BOTTOM, Rule, Transducer

Head = tuple[str, str]  # state, top of the stack

MOST_MOVES = 10_000  # ε-moves in a row, beyond which a machine is refused as too slow to compile


def in_place_of(rule: Rule, top: str) -> tuple[str, ...]:
    """What lies where `top` lay, after the rule."""
    return rule.push if rule.pop else (top, *rule.push)


def new_symbols(rule: Rule) -> tuple[str, ...]:
    """What the rule really pushes: not the symbol that it pops and puts back."""
    return rule.push[1:] if rule.pop and rule.push[:1] == (rule.pop,) else rule.push


def really_pops(rule: Rule) -> bool:
    return bool(rule.pop) and rule.push[:1] != (rule.pop,)


def steps_of(rule: Rule) -> int:
    """The steps of a network that make this move: one pushes, and writes, one symbol at most."""
    return max(1, len(rule.write), len(new_symbols(rule)))


def reachable(machine: Transducer) -> tuple[Head, ...]:
    """The heads that some input leads to, in the order in which they are found. Exact."""
    rules_of = {state: [rule for rule in machine.rules if rule.state == state] for state in machine.states}
    at: dict[Head, list[Rule]] = {
        (state, top): [rule for rule in rules if rule.pop in ("", top)]
        for state, rules in rules_of.items()
        for top in machine.stack_symbols
    }
    ends: dict[Head, dict[str, None]] = {head: {} for head in at}  # the states in which its top is just gone

    def after(state: str, pile: tuple[str, ...]) -> list[list[str]]:
        """The states in which each symbol of the pile is on top, last first, and then those beneath it."""
        states = [[state]]
        for symbol in reversed(pile):
            states.append(list(dict.fromkeys(end for q in states[-1] for end in ends[q, symbol])))
        return states

    changed = True
    while changed:
        before = sum(map(len, ends.values()))
        for (state, top), rules in at.items():
            for rule in rules:
                ends[state, top].update(dict.fromkeys(after(rule.next, in_place_of(rule, top))[-1]))
        changed = sum(map(len, ends.values())) > before
    heads: dict[Head, None] = {(machine.start, BOTTOM): None}
    queue = list(heads)
    for state, top in queue:  # grows as it is read
        for rule in at[state, top]:
            pile = in_place_of(rule, top)
            for states, symbol in zip(after(rule.next, pile), reversed(pile), strict=False):
                queue += [(q, symbol) for q in states if (q, symbol) not in heads]
                heads.update({(q, symbol): None for q in states})
    return tuple(heads)


class Quiet(NamedTuple):
    """The ε-moves from a head, until its symbol is gone or only input can go on."""

    state: str
    pile: tuple[str, ...]  # what then lies where the symbol lay; () if it is gone
    steps: int  # of a network


def quiet(machine: Transducer, head: Head) -> Quiet:
    """Refuses ε-moves without end: a state and a top that come again, the stack not lower in between."""
    (state, top), steps, moves = head, 0, 0
    pile = [top]
    heights: dict[Head, int] = {}  # the height of the pile, which only rises
    while pile:
        while heights and next(reversed(heights.values())) > len(pile):
            heights.popitem()
        rule = machine.enabled(state, "", pile[-1])
        if rule is None:
            break
        if (state, pile[-1]) in heights:
            raise BadInput(
                f"ε-cycle: from state {head[0]} with {head[1]} on the stack the ε-moves never end, and "
                f"`{rule}` comes again and again: make the loop read a symbol"
            )
        if moves == MOST_MOVES:
            raise BadInput(
                f"from state {head[0]} with {head[1]} on the stack there are more than {MOST_MOVES} ε-moves "
                f"in a row, `{rule}` among them: a network would need as many steps a symbol"
            )
        heights[state, pile[-1]] = len(pile)
        pile[-1:] = in_place_of(rule, pile[-1])
        state, steps, moves = rule.next, steps + steps_of(rule), moves + 1
    return Quiet(state, tuple(pile), steps)


class Steps(NamedTuple):
    """A network that makes a machine's moves needs at most `a` T + `b` steps for T symbols."""

    a: int
    b: int

    def __call__(self, length: int) -> int:
        return self.a * length + self.b


def bound(machine: Transducer) -> Steps:
    """How many steps suffice, on every input.

    Each symbol on the stack is given, when it is pushed, a credit that pays for the ε-moves which will one
    day remove it. Apart from those, every symbol read is followed by one run of ε-moves that comes to rest.
    """
    heads = reachable(machine)
    runs = {head: quiet(machine, head) for head in heads}
    credit = dict.fromkeys(machine.stack_symbols, 0)
    for (_, top), run in runs.items():
        if not run.pile:
            credit[top] = max(credit[top], run.steps)

    def cost(steps: int, top: str, pile: tuple[str, ...]) -> int:
        return steps + sum(credit[s] for s in (pile[1:] if pile[:1] == (top,) else pile))

    rest = {head: cost(run.steps, head[1], run.pile) for head, run in runs.items() if run.pile}
    reads = [
        cost(steps_of(rule), top, in_place_of(rule, top))
        for state, top in heads
        for rule in machine.rules
        if rule.read and rule.state == state and rule.pop in ("", top)
    ]
    return Steps(max(reads, default=0) + max(rest.values()), rest[machine.start, BOTTOM])


def problems(machine: Transducer) -> list[str]:
    """What is odd about a machine that can run all the same, a sentence each, with the rule named."""
    heads = reachable(machine)
    states = {state for state, _ in heads}
    notes = [f"state {q} cannot be reached from the start" for q in machine.states if q not in states]
    if machine.accepting != machine.states:
        names = ", ".join(machine.accepting) or "no state"
        notes.append(f"it accepts in {names} only, which a network cannot show: let it write that")
    pushed = {symbol for rule in machine.rules for symbol in new_symbols(rule)} | {BOTTOM}
    for rule in machine.rules:
        if rule.state not in states:
            continue
        if rule.pop and rule.pop not in pushed:
            notes.append(f"the rule `{rule}` pops {rule.pop}, which no rule pushes: it is never enabled")
        elif not any(rule.state == state and rule.pop in ("", top) for state, top in heads):
            tops = ", ".join(top for state, top in heads if state == rule.state)
            notes.append(
                f"the rule `{rule}` is never enabled: in state {rule.state} the top of the stack is "
                f"always one of {tops}" + (", the empty stack" if tops == BOTTOM else "")
            )
    return notes
