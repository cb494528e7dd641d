"""PDTs of one state as linear controllers: each head is a threshold of one weight for the input symbol and
one for the top of the stack.

Whether a head f(x, s), wanted 1 or 0 at the pairs that can occur, is such a threshold is decided exactly:
a_x + b_s >= 1 or <= -1 are constraints on differences, a_x - (-b_s), and a system of those has a solution
unless its graph has a negative cycle (Bellman and Ford), and then a whole one.
"""

from collections.abc import Sequence

from softstack.controllers import Heads
from softstack.errors import BadInput
from softstack.formal.analysis import reachable, steps_of
from softstack.formal.moves import Move, moves
from softstack.formal.transducer import BOTTOM, Transducer

END = ""  # no input is left: x is 0
Pair = tuple[str, str]  # input symbol, or END, and top of the stack


def linear_heads(
    heads: Heads,
    machine: Transducer,
    inputs: Sequence[str],
    outputs: Sequence[str],
    codes: dict[str, tuple[int, ...]],
) -> int:
    """Fill the heads' map of [x; r], or say why a linear controller cannot be this machine: the largest of
    its whole weights."""
    acts = actions(machine, inputs)
    buffered = "i" in heads.sizes
    pairs = [pair for pair in acts if buffered or pair[0] != END]
    rows: dict[tuple[str, int], dict[Pair, bool]] = {
        ("u", 0): {p: acts[p].pops for p in pairs},
        ("d", 0): {p: bool(acts[p].push) for p in pairs},
    }
    if buffered:
        rows["i", 0] = {p: acts[p].takes for p in pairs}
        rows["o", 0] = {p: bool(acts[p].write) for p in pairs}
    for k in range(heads.sizes["v"]):  # where nothing is pushed, v does not matter
        rows["v", k] = {p: bool(codes[acts[p].push][k]) for p in pairs if acts[p].push}
    for k, symbol in enumerate(outputs):
        rows["y", k] = {p: acts[p].write == symbol for p in pairs if acts[p].write}
    if any(sum(code) != 1 for s, code in codes.items() if s != BOTTOM):
        raise BadInput("a linear controller needs one-hot codes on its stack: leave the codes as they are")
    largest = 0
    for (name, k), values in rows.items():
        weights = threshold(values)
        if weights is None:
            raise BadInput(
                f"the head {name}{k if heads.sizes[name] > 1 else ''} of this machine is no threshold of one "
                "weight for the input and one for the top of the stack, so that no linear controller with "
                "one-hot codes on its stack computes it; one with other codes might: use the lstm"
            )
        of_symbol, of_top = weights
        row = heads.rows(name).start + k
        constant = of_symbol.get(END, 0) + of_top.get(BOTTOM, 0)
        heads.bias[row] = constant
        for j, symbol in enumerate(inputs):
            heads.weight[row, j] = of_symbol.get(symbol, 0) - of_symbol.get(END, 0)
        for symbol, code in codes.items():
            if symbol != BOTTOM:
                column = len(inputs) + code.index(1)
                weight = of_top.get(symbol, 0) - of_top.get(BOTTOM, 0)
                heads.weight[row, column] = weight
                largest = max(largest, abs(weight))
    return largest


def actions(machine: Transducer, inputs: Sequence[str]) -> dict[Pair, Move]:
    """What a machine of one state does at each pair of input symbol and top; where the input ends it waits.

    Where it would be stuck there is nothing to be done: a controller without memory cannot stay stuck, and is
    compiled for the inputs that the machine reads to the end.
    """
    if len(machine.states) > 1:
        names = ", ".join(machine.states)
        raise BadInput(
            f"the machine has {len(machine.states)} states, {names}, and a linear controller remembers none: "
            "use the lstm"
        )
    if long := next((rule for rule in machine.rules if steps_of(rule) > 1), None):
        raise BadInput(
            f"the rule `{long}` takes {steps_of(long)} steps, and a linear controller cannot tell one from "
            "the next: use the lstm"
        )
    by_rule = {(m.read, m.top): m for m in moves(machine, waiting=False)}
    acts: dict[Pair, Move] = {}
    for _, top in reachable(machine):
        for symbol in (*inputs, END):
            rule = machine.enabled(machine.start, symbol, top)
            if rule is not None:
                acts[symbol, top] = by_rule[rule.read, rule.pop]
            elif symbol == END:
                acts[symbol, top] = Move(machine.start, "", top, machine.start, waits=True)
    return acts


def threshold(truth: dict[Pair, bool]) -> tuple[dict[str, int], dict[str, int]] | None:
    """Whole weights a and b with a[x] + b[s] >= 1 where true, <= -1 where not; None if there are none."""
    # a_x - c_s >= 1 or <= -1, with c = -b: an edge (from, to, w) says that to <= from + w
    edges = [((("a", x), ("c", s), -1) if on else (("c", s), ("a", x), -1)) for (x, s), on in truth.items()]
    value = {node: 0 for edge in edges for node in edge[:2]}
    for _ in range(len(value) + 1):
        changed = False
        for source, target, weight in edges:
            if value[target] > value[source] + weight:
                value[target], changed = value[source] + weight, True
        if not changed:
            a = {name: v for (kind, name), v in value.items() if kind == "a"}
            return a, {name: -v for (kind, name), v in value.items() if kind == "c"}
    return None
