"""What a network with whole strengths is seen to do, step by step, and how far from whole it is by itself."""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softstack.cell import Edit
from softstack.formal.extraction import END, Seen
from softstack.lab import tasks
from softstack.lab.explain.ablation import NOTHING, Network, edits, hardened, in_parts, run, steeper
from softstack.lab.explain.fidelity import Share, agreement, inputs, outputs, steps_of
from softstack.lab.tasks.data import Example
from softstack.lab.training.conditions import Condition

STAYS = 0.9  # share of answers that must stay when strengths are made whole, or multiples of a part
NEARLY_ALL = 0.99  # share with which no smaller parts are tried
PARTS = (2, 3, 4)  # of 1, that strengths may be multiples of
LEVELS = (0.15, 0.3, 0.5, 0.7, 0.85)  # thresholds that are tried
DEGREES = (2, 4, 8, 16)
BETWEEN = (0.1, 0.9)  # a strength that is neither


class Hardening(NamedTuple):
    """How strengths become 0 or 1, or multiples of a part of 1."""

    parts: int  # that make 1
    thresholds: dict[str, float]  # of each strength, where it is whole; above it is 1
    stays: Share  # symbols of the output that are the same then
    off: float  # how far strengths are from that, on average
    degrees: dict[int, float]  # how many stay where pre-activations are so many times as large
    between: dict[str, tuple[float, float]]  # of each strength the share that is neither, and its median

    def __str__(self) -> str:
        names = {"u": "pops", "d": "pushes", "i": "takes", "o": "gives"}
        parts = [
            f"{share:.0%} of {names.get(name, name)} (around {middle:.2f})"
            for name, (share, middle) in self.between.items()
            if share > 0.01
        ]
        steps = ", ".join(f"{share:.0%} at {degree} times" for degree, share in self.degrees.items())
        low, high = BETWEEN
        return (
            f"strengths are {self.off:.3f} from 0 or 1 on average; between {low} and {high} lie "
            f"{', '.join(parts) or 'none'}; with gates made steeper by degrees there stay {steps or 'all'}"
        )


def harden(
    network: Network, condition: Condition, strings: Sequence[Example], every_position: bool
) -> Hardening:
    """Whole strengths, if nearly all answers stay; then halves, thirds or quarters, if with them; otherwise
    that with which most stay, other thresholds of whole strengths included.

    A buffered network takes and gives whole symbols, so its strengths are always made whole.
    """
    memory = network.cell.memory
    own = outputs(network, condition, strings)
    x, sizes = inputs(network, condition, strings)
    plain = run(network, x, edits(memory)[NOTHING], sizes).trace

    def stay(edit: Edit) -> Share:
        return agreement(outputs(network, condition, strings, edit), own, strings, every_position).symbols

    strengths = {"u": plain.u, "d": plain.d, **({"i": plain.i, "o": plain.o} if condition.buffered else {})}
    live = torch.arange(plain.x.shape[1]) < torch.tensor(steps_of(network, sizes)).unsqueeze(1)
    values = {name: s[live] for name, s in strengths.items()}

    def off(parts: int) -> float:
        distances = [(s - (parts * s).round() / parts).abs() for s in values.values()]
        return float(torch.cat(distances).mean())

    halves = dict.fromkeys(values, 0.5)
    best = Hardening(1, halves, stay(hardened(memory, halves)), off(1), {}, {})
    for parts in () if condition.buffered else PARTS:
        if best.stays.value >= NEARLY_ALL:
            break
        share = stay(in_parts(memory, parts))
        if share.value > best.stays.value:
            best = Hardening(parts, {}, share, off(parts), {}, {})
    if best.stays.value >= STAYS:
        return best
    for u, d in product(LEVELS, LEVELS):
        thresholds = {**halves, "u": u, "d": d}
        share = stay(hardened(memory, thresholds))
        if share.value > best.stays.value:
            best = Hardening(1, thresholds, share, off(1), {}, {})
    degrees = {degree: stay(steeper(memory, degree)).value for degree in DEGREES}
    between = {name: _between(s) for name, s in values.items()}
    return best._replace(off=off(1), degrees=degrees, between=between)


def _between(strengths: Tensor) -> tuple[float, float]:
    neither = strengths[(strengths > BETWEEN[0]) & (strengths < BETWEEN[1])]
    share = len(neither) / max(1, len(strengths))
    return share, float(neither.median()) if len(neither) else 0.0


def observe(
    network: Network,
    condition: Condition,
    strings: Sequence[Example],
    every_position: bool,
    hardening: Hardening,
) -> list[Seen]:
    """What the network does on strings with its strengths made whole, or multiples of a part."""
    alphabet = tasks.find(condition.task).alphabet
    x, sizes = inputs(network, condition, strings)
    memory, parts = network.cell.memory, hardening.parts
    edit = hardened(memory, hardening.thresholds) if parts == 1 else in_parts(memory, parts)
    trace = run(network, x, edit, sizes).trace
    remembers = bool(network.cell.core.init((1,), x))
    lost = int(condition.buffered and condition.discard_first)
    seen: list[Seen] = []
    for b, (example, steps) in enumerate(zip(strings, steps_of(network, sizes), strict=True)):
        scored = [every_position or target is not None for target in example.target]
        give = trace.o[b, :steps].bool()
        places = (give.cumsum(0) - 1 - lost).tolist()
        most, letter = trace.x[b, :steps].max(-1)
        seen.append(
            Seen(
                x=[
                    alphabet[k] if m > 0.5 else END
                    for m, k in zip(most.tolist(), letter.tolist(), strict=True)
                ],
                pop=(parts * trace.u[b, :steps]).round().long().numpy(),
                push=(parts * trace.d[b, :steps]).round().long().numpy(),
                take=trace.i[b, :steps].bool().numpy(),
                give=give.numpy(),
                v=trace.v[b, :steps].double().numpy(),
                h=(trace.h[b, :steps] if remembers else trace.h[b, :steps, :0]).double().numpy(),
                write=[alphabet[k] for k in trace.y[b, :steps].argmax(-1).tolist()],
                scored=np.array(
                    [every_position or p >= len(scored) or (p >= 0 and scored[p]) for p in places]
                ),
            )
        )
    return seen
