"""§3: from a deterministic PDT to the weights of a network that computes it. docs/compile.md derives them.

The LSTM has one hidden unit for each move of the machine, or for several that do the same, and one that is on
from the first step. A unit's input gate is the AND of what its move needs: the state, which is the sum of the
units that lead to it, the symbol at the front of the input, and the symbol on top of the stack. Its cell
forgets at every step, so that c is 1 in the unit of the move just made and 0 elsewhere, and each head is an
OR of units.
"""

from collections.abc import Sequence
from math import tanh
from typing import NamedTuple

import torch

from softstack.buffered import BufferedStackRNN
from softstack.errors import BadInput, unknown
from softstack.formal import saturation
from softstack.formal.analysis import Steps, bound, problems
from softstack.formal.linear import linear_heads
from softstack.formal.moves import Unit, moves, units
from softstack.formal.recognising import is_recogniser, with_verdicts
from softstack.formal.transducer import BOTTOM, Transducer
from softstack.networks import StackRNN

ON = tanh(1.0)
"""The hidden state of a unit whose cell is 1."""
LOUD = 10.0
"""The score of the symbol that is written; the others have 0."""
CODES = ("onehot", "binary")


class Compiled(NamedTuple):
    """A network that computes a PDT, and what is known of it."""

    network: StackRNN | BufferedStackRNN
    machine: Transducer
    inputs: tuple[str, ...]  # the symbols that one-hot inputs stand for
    outputs: tuple[str, ...]  # the symbols that scores stand for
    codes: dict[str, tuple[int, ...]]  # the vectors that stand for symbols on the stack
    steps: Steps  # of the network, for T symbols
    saturation: float  # the least pre-activation of a gate or a strength, either way
    gain: float
    length: int  # up to which it is right
    warnings: tuple[str, ...]  # what is odd about the machine

    def error(self, dtype: torch.dtype | None = None, length: int | None = None) -> float:
        """How far a strength can be from 0 or 1 on an input of this length."""
        steps = self.steps(1) * (self.length if length is None else length)
        return saturation.error(self.saturation, steps, dtype)

    def transduce(self, symbols: Sequence[str]) -> tuple[str, ...]:
        """The network's answer to an input: the symbols that its output buffer holds."""
        return said(self.network, self.inputs, self.outputs, symbols)


def stack_codes(machine: Transducer, kind: str = "onehot") -> dict[str, tuple[int, ...]]:
    """A vector for each symbol on the stack; the empty stack, which reads 0, stands for the marker."""
    symbols = [s for s in machine.stack_symbols if s != BOTTOM]
    if kind == "onehot":
        width = max(1, len(symbols))
        codes = {s: tuple(int(j == k) for j in range(width)) for k, s in enumerate(symbols)}
    elif kind == "binary":
        width = max(1, len(symbols).bit_length())
        codes = {s: tuple(k >> j & 1 for j in range(width)) for k, s in enumerate(symbols, 1)}
    else:
        raise unknown("code", kind, CODES)
    return {BOTTOM: (0,) * width, **codes}


def compiled(
    machine: Transducer,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    controller: str = "lstm",
    buffered: bool = True,
    codes: str = "onehot",
    length: int = 10_000,
    tolerance: float | None = None,
    dtype: torch.dtype = torch.float32,
) -> Compiled:
    """A network that computes a PDT: right at every position of every input of at most `length` symbols.

    A network can only speak: of a PDT that writes nothing and accepts it writes the verdict, 1 or 0, after
    each symbol.

    Its strengths are exactly those of the PDT up to that length, in float32 and float64; with a `tolerance`
    gates are only so far saturated that strengths stay within it, and gradients are larger. One-hot inputs
    and scores follow `inputs` and `outputs`, by default the machine's own symbols in the order of its rules.
    """
    if is_recogniser(machine):
        machine = with_verdicts(machine)
    inputs = _alphabet("inputs", inputs, machine.alphabet)
    outputs = _alphabet("outputs", outputs, written(machine))
    _check(controller, length, tolerance)
    steps = bound(machine) if buffered else Steps(1, 0)
    if not buffered:
        _require_real_time(machine)
    vectors = stack_codes(machine, codes)
    width = len(vectors[BOTTOM])
    T = steps(1) * length  # at least steps(length)
    plan = units(moves(machine, waiting=buffered), share_tops=codes == "onehot")
    a = saturation.exact(T) if tolerance is None else saturation.within(T, tolerance)
    hidden = len(plan) + 1
    arguments = dict(
        input_size=len(inputs),
        output_size=len(outputs),
        controller=controller,
        hidden_size=hidden if controller == "lstm" else 1,
        memory="stack",
        memory_size=width,
        dtype=dtype,
    )
    network: StackRNN | BufferedStackRNN = (
        BufferedStackRNN(**arguments, steps=steps) if buffered else StackRNN(**arguments)  # type: ignore[arg-type]  # by name
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        weight = 1
        if controller == "linear":
            weight = linear_heads(network.cell.heads, machine, inputs, outputs, vectors)
        off = saturation.conditions_error(a, T, hidden, width * weight, dtype)
        if off > saturation.SLACK:
            raise BadInput(
                f"with a tolerance of {tolerance} conditions can be off by {off:.2g}, and {saturation.SLACK} "
                "is the most that gates forgive: give a smaller tolerance, or none"
            )
        gain = saturation.gain(a, off)
        if controller == "linear":
            scores = network.cell.heads.rows("y")
            for part in (network.cell.heads.weight, network.cell.heads.bias):
                part[: scores.start] *= gain
                part[scores] *= LOUD
        else:
            _gates(network, machine.start, plan, inputs, vectors, gain)
            _heads(network, plan, outputs, vectors, gain)
    return Compiled(
        network, machine, inputs, outputs, vectors, steps, a, gain, length, tuple(problems(machine))
    )


def _check(controller: str, length: int, tolerance: float | None) -> None:
    if controller not in ("lstm", "linear"):
        raise BadInput(f"controller must be 'lstm' or 'linear' to be compiled to; got {controller!r}")
    if length < 1:
        raise BadInput(f"length must be at least 1; got {length}")
    if tolerance is not None and not 0 < tolerance < 0.5:
        raise BadInput(f"tolerance must lie between 0 and 0.5, both excluded; got {tolerance}")


def written(machine: Transducer) -> tuple[str, ...]:
    """The symbols that some rule writes, in the order of the rules."""
    return tuple(dict.fromkeys(symbol for rule in machine.rules for symbol in rule.write))


def _gates(
    network: StackRNN | BufferedStackRNN,
    start: str,
    plan: Sequence[Unit],
    inputs: Sequence[str],
    codes: dict[str, tuple[int, ...]],
    gain: float,
) -> None:
    """The input gates compute when each move is made; the others are constant."""
    core, live = network.cell.core, len(plan)
    into, forget, new, out = core.from_input.bias.chunk(4)  # each (H,)
    of_input = core.from_input.weight.chunk(4)[0]  # (H, K + m)
    of_hidden = core.from_hidden.weight.chunk(4)[0]  # (H, H)
    forget.fill_(-gain)
    new.fill_(gain)
    out.fill_(gain)
    into[live] = gain
    stack = {symbol: len(inputs) + code.index(1) for symbol, code in codes.items() if sum(code) == 1}
    for j, unit in enumerate(plan):
        constant = 0.5 - unit.conditions
        if unit.after is not None:
            of_hidden[j, unit.after] += gain / ON
        else:
            for k, other in enumerate(plan):
                if other.move.next in unit.states:
                    of_hidden[j, k] += gain / ON
            if start in unit.states:  # where the machine is before any move: every unit is 0, `live` too
                of_hidden[j, live] -= gain / ON
                constant += 1
        for symbol in unit.reads:
            of_input[j, inputs.index(symbol)] += gain
        if unit.move.waits:
            of_input[j, : len(inputs)] -= gain
            constant += 1
        if len(unit.tops) == 1:
            code = codes[unit.tops[0]]
            of_input[j, len(inputs) :] += gain * (2 * torch.tensor(code).to(of_input) - 1)
            constant += 1 - sum(code)
        elif BOTTOM in unit.tops:  # one of these, as no other is there
            of_input[j, [place for symbol, place in stack.items() if symbol not in unit.tops]] -= gain
            constant += 1
        elif unit.tops:
            of_input[j, [stack[symbol] for symbol in unit.tops]] += gain
        into[j] = gain * constant


def _heads(
    network: StackRNN | BufferedStackRNN,
    plan: Sequence[Unit],
    outputs: Sequence[str],
    codes: dict[str, tuple[int, ...]],
    gain: float,
) -> None:
    """Each head is an OR of the units whose moves need it."""
    heads = network.cell.heads
    heads.bias[: heads.rows("v").stop] = -gain / 2
    weight = {name: heads.weight[heads.rows(name)] for name in heads.sizes}  # each (rows, H)
    for j, move in enumerate(unit.move for unit in plan):
        acts = {"u": move.pops, "d": bool(move.push), "i": move.takes, "o": bool(move.write)}
        for name, does in acts.items():
            if does and name in weight:
                weight[name][0, j] = gain / ON
        if move.push:
            weight["v"][:, j] = gain / ON * torch.tensor(codes[move.push]).to(heads.weight)
        if move.write:
            weight["y"][outputs.index(move.write), j] = LOUD / ON


def _alphabet(name: str, chosen: Sequence[str] | None, needed: tuple[str, ...]) -> tuple[str, ...]:
    symbols = tuple(needed if chosen is None else chosen) or ("_",)  # a network has at least one letter
    if missing := [s for s in needed if s not in symbols]:
        raise BadInput(f"{name} must hold every symbol of the rules: {missing[0]!r} is not in {symbols}")
    if len(set(symbols)) < len(symbols):
        raise BadInput(f"{name} holds a symbol twice: {symbols}")
    return symbols


def _require_real_time(machine: Transducer) -> None:
    """Without buffers a network reads one symbol and writes one at every step."""
    for rule in machine.rules:
        if not rule.read or len(rule.write) != 1:
            what = "reads nothing" if not rule.read else f"writes {len(rule.write)} symbols"
            raise BadInput(
                f"the rule `{rule}` {what}, and a network without buffers reads one symbol and writes one "
                "at every step: compile with buffers"
            )
    slow = next((move for move in moves(machine, waiting=False) if move.after is not None), None)
    if slow is not None:
        raise BadInput(
            f"a rule pushes several symbols, {slow.push} among them, and a network pushes one a step: "
            "compile with buffers"
        )


@torch.no_grad()
def said(
    network: StackRNN | BufferedStackRNN,
    inputs: Sequence[str],
    outputs: Sequence[str],
    symbols: Sequence[str],
) -> tuple[str, ...]:
    """The symbols that a network puts out; of a buffered one, as many as its output buffer holds."""
    for symbol in symbols:
        if symbol not in inputs:
            raise unknown("input symbol", symbol, inputs)
    weight = network.cell.heads.weight
    x = torch.zeros(len(symbols), len(inputs), dtype=weight.dtype, device=weight.device)
    x[range(len(symbols)), [inputs.index(s) for s in symbols]] = 1
    y, state = network(x)
    if isinstance(network, BufferedStackRNN):
        y = y[: round(float(state.output.s.sum()))]
    return tuple(outputs[k] for k in y.argmax(-1).tolist())
