"""What a network does step by step once its strengths are made whole, and how far from whole they were."""

from collections.abc import Sequence
from itertools import product
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softstack.cell import Edit
from softstack.formal.extraction import END, Seen
from softstack.lab import tasks
from softstack.lab.explain.ablation import Network, hardened, in_parts, run, steeper
from softstack.lab.explain.fidelity import Share, agreement, inputs, outputs, steps_of
from softstack.lab.tasks.data import Example
from softstack.lab.training.conditions import Condition
from softstack.memory import Memory

STAYS = 0.9  # share of answers that must stay when strengths are made whole, or multiples of a part
NEARLY_ALL = 0.99  # share at which no smaller parts are tried
PARTS = (2, 3, 4)  # with n, strengths may be multiples of 1/n
LEVELS = (0.15, 0.3, 0.5, 0.7, 0.85)  # thresholds that are tried
DEGREES = (2, 4, 8, 16)  # factors of pre-activations
BETWEEN = (0.1, 0.9)  # a strength between these is neither 0 nor 1


class Hardening(NamedTuple):
    """How strengths become 0 or 1, or multiples of a part of 1."""

    parts: int  # that make 1
    thresholds: dict[str, float]  # above which each strength is 1, where strengths become whole
    stays: Share  # symbols of the output that are the same then
    off: float  # mean distance of strengths from what they become
    degrees: dict[int, float]  # share that stays where pre-activations are so many times as large
    between: dict[str, tuple[float, float]]  # of each strength the share between, and its median

    def edit(self, memory: Memory) -> Edit:
        return hardened(memory, self.thresholds) if self.parts == 1 else in_parts(memory, self.parts)

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
    answers = outputs(network, condition, strings)
    x, sizes = inputs(network, condition, strings)
    trace = run(network, x, Edit(), sizes).trace
    live = torch.arange(trace.x.shape[1]) < steps_of(network, sizes).unsqueeze(1)
    names = ("u", "d", "i", "o") if condition.buffered else ("u", "d")
    strengths = {name: getattr(trace, name)[live] for name in names}

    def stay(edit: Edit) -> Share:
        return agreement(outputs(network, condition, strings, edit), answers, strings, every_position).symbols

    def off(parts: int) -> float:
        distances = [(s - (parts * s).round() / parts).abs() for s in strengths.values()]
        return float(torch.cat(distances).mean())

    halves = dict.fromkeys(strengths, 0.5)
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
    between = {name: _between(s) for name, s in strengths.items()}
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
    trace = run(network, x, hardening.edit(network.cell.memory), sizes).trace
    width = trace.h.shape[-1] if network.cell.core.init((1,), x) else 0  # of the state, if there is one
    discarded = int(condition.buffered and condition.discard_first)
    runs: list[Seen] = []
    for b, (example, steps) in enumerate(zip(strings, steps_of(network, sizes).tolist(), strict=True)):
        t = trace.map(itemgetter((b, slice(steps))))
        give = t.o.bool()
        places = (give.cumsum(0) - 1 - discarded).tolist()  # in the output
        weights, letters = t.x.max(-1)
        front = zip(weights.tolist(), letters.tolist(), strict=True)
        runs.append(
            Seen(
                x=[alphabet[k] if weight > 0.5 else END for weight, k in front],
                pop=(hardening.parts * t.u).round().long().numpy(),
                push=(hardening.parts * t.d).round().long().numpy(),
                take=t.i.bool().numpy(),
                give=give.numpy(),
                v=t.v.double().numpy(),
                h=t.h[:, :width].double().numpy(),
                write=[alphabet[k] for k in t.y.argmax(-1).tolist()],
                scored=np.array([every_position or _is_scored(example, place) for place in places]),
            )
        )
    return runs


def _is_scored(example: Example, place: int) -> bool:
    """Whether the output at a place is scored. What comes after the last target is, as wrong."""
    return place >= len(example.target) or (place >= 0 and example.target[place] is not None)
