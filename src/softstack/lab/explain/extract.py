"""From a network to the pushdown transducer that it computes, and how well that explains it.

Strengths are made whole, or multiples of a half, a third or a quarter, so that the stack holds whole parts of
vectors; vectors and controller states are put into groups; transitions are read off, merged and minimised
(`formal`). Strings on which the machine differs from the network are added to what is read, until so many new
ones agree that others are probably rare.
"""

from collections.abc import Sequence
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np

from softstack import checks
from softstack.formal.equivalence import covering
from softstack.formal.extraction import Seen
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.explain.ablation import Network
from softstack.lab.explain.candidates import Candidate, Limits, best_candidate
from softstack.lab.explain.fidelity import (
    Counterexample,
    Score,
    compared,
    measured,
    output_of,
    outputs,
    strings_of,
)
from softstack.lab.explain.observing import STAYS, Hardening, harden, observe
from softstack.lab.explain.probes import like_training, outside, probes
from softstack.lab.explain.swaps import EVERYTHING, use
from softstack.lab.tasks.data import Example
from softstack.lab.tasks.transduction import Transduction
from softstack.lab.training.conditions import Condition
from softstack.memory import NoMemory, Stack

EXPLAINS = 0.99  # fidelity, at once and twice the length, of a machine that explains a network
HARDLY = 0.005  # share of answers that swaps change, up to which a machine needs no stack
EXACT = 1e-3  # distance of strengths from whole, below which a network should be right at any length
LONGEST = 200  # symbols of a word that leads into a situation
ROUNDS = 8  # in which counterexamples are added to what is read
RETURNED = 60  # counterexamples of a round
WORTH = 0.5  # fidelity of a machine that is worth refining
ERROR, DOUBT = 0.01, 0.05  # share of strings that may differ, and the chance that more do


class Extraction(NamedTuple):
    sentence: str
    hardening: Hardening | None = None  # how strengths were made whole; None where nothing was tried
    machine: Transducer | None = None
    explained: bool = False  # whether the machine is small enough and says what the network says
    consistent: float = 0.0  # share of steps that did what was most often done at their key
    agreed: int = 0  # new strings of the last round, on all of which the two agreed; 0 if they differed
    scores: Sequence[Score] = ()
    counterexample: Counterexample | None = None

    def as_dict(self) -> dict[str, Any]:
        m, c, h = self.machine, self.counterexample, self.hardening
        return {
            "machine": None if m is None else str(m),
            "size": None if m is None else m.size,
            "states": None if m is None else len(m.states),
            "rules": None if m is None else len(m.rules),
            "explained": self.explained,
            "off": 0.0 if h is None else h.off,
            "stays": None if h is None else h.stays.as_dict(),
            "hardening": None if h is None else {**h._asdict(), "stays": h.stays.as_dict()},
            "consistent": self.consistent,
            "agreed": self.agreed,
            "scores": [score.as_dict() for score in self.scores],
            "counterexample": None if c is None else c._asdict(),
            "sentence": self.sentence,
        }


def extract(
    network: Network,
    condition: Condition,
    seed: int,
    *,
    states: int = 20,
    symbols: int = 16,
    strings: int = 400,
    every_position: bool = False,
) -> Extraction:
    """The smallest machine, of at most so many states and stack symbols, that explains the network best.

    With `every_position` it must also say what the network says where the task scores nothing.
    """
    for name, size in (("states", states), ("symbols", symbols), ("strings", strings)):
        checks.positive(name, size)
    memory, cells = network.cell.memory, len(network.cells)
    if cells > 1:
        return Extraction(
            f"No PDT can be read off {cells} layers: each has a memory, and a PDT has one stack."
        )
    if not isinstance(memory, Stack | NoMemory):
        return Extraction(
            f"No PDT can be read off a network with the memory {memory.name!r}: a PDT has a stack, and only "
            "what a stack is told becomes its pushes and pops."
        )
    task = tasks.find(condition.task)
    every_position |= condition.buffered and isinstance(task, Transduction)  # a machine says all of it
    rng = np.random.default_rng([seed, len(task.alphabet), strings])
    wild = condition.buffered and every_position  # outside the language too: there it can fall silent
    sample = _strings(condition, rng, strings, wild)
    hardening = harden(network, condition, sample[:100], every_position)
    if hardening.stays.value < STAYS:
        sentence = (
            f"The network is too far from saturated to extract: made whole as well as may be, only "
            f"{hardening.stays} of its answers stay, where {STAYS:.0%} are needed. Its {hardening}."
        )
        return Extraction(sentence, hardening)
    effects = use(network, condition, seed).effects
    changes = [effect.share for name, effect in effects.items() if name != EVERYTHING]
    limits = Limits(states, symbols, max(changes, default=0.0) > HARDLY, every_position, hardening.parts)
    runs: list[Seen] = []
    held_out = _strings(condition, rng, strings // 2 + 1, wild)
    agreed = 0
    for repeat in range(ROUNDS):
        runs += observe(network, condition, sample, every_position, hardening)
        answers = outputs(network, condition, held_out)
        best, larger = best_candidate(runs, held_out, answers, limits, task.padding)
        choice = best or larger
        if choice is None or choice.agreement.strings.value < WORTH:
            break
        fresh = _strings(condition, rng, enough(repeat), wild)
        count = len(fresh)
        if wild:
            words = covering(choice.machine, rng)
            fresh += [Example(word, (None,) * len(word)) for word in words if len(word) <= LONGEST]
        if hardening.off < EXACT:
            fresh += strings_of(condition, rng, 50, 10)
        different = [
            example
            for example, answer in zip(fresh, outputs(network, condition, fresh), strict=True)
            if compared(output_of(choice.machine, example.input), answer, example.target, every_position)[0]
        ]
        if not different:
            agreed = count
            break
        sample = different[:RETURNED]
        if wild:
            sample += outside(condition.task, rng, sample)
        held_out += sample
    if best is None:
        reason = "no PDT could be read off it"
        if larger is not None:
            reason = f"what could be read off has {larger.machine.size}: "
            reason += "ask for more with --states or --symbols"
        sentence = f"No PDT of at most {states} states and {symbols} stack symbols explains it: {reason}."
        return Extraction(sentence, hardening)
    pdt = best.machine
    scores, counterexample = measured(network, condition, pdt, rng, strings // 2 + 1, every_position)
    explained = all(s.fidelity.value >= EXPLAINS for s in scores if s.factor <= 2)
    sentence = _sentence(best, larger, explained, scores, limits, agreed)
    if explained and limits.parts > 1:
        parts = limits.parts
        sentence += f" Its strengths are multiples of 1/{parts}: it reads the {parts} nearest parts at once."
    return Extraction(sentence, hardening, pdt, explained, best.consistent, agreed, scores, counterexample)


def enough(repeat: int) -> int:
    """Strings that must all agree for a machine to be probably right: if it differed from the network on more
    than ERROR of such strings, this would happen with probability DOUBT at most, over all rounds."""
    return ceil((log(1 / DOUBT) + (repeat + 1) * log(2)) / ERROR)


def _strings(condition: Condition, rng: np.random.Generator, n: int, wild: bool) -> list[Example]:
    """Strings like those of training, deep ones, and with `wild` as many words outside the language."""
    deep = n // 4
    strings = like_training(condition.task, rng, n - deep) + probes(condition, rng, deep)
    order = rng.permutation(len(strings))
    if not wild:
        return [strings[k] for k in order]
    words = outside(condition.task, rng, strings)
    return [example for k in order for example in (strings[k], words[k])]


def _sentence(
    best: Candidate,
    larger: Candidate | None,
    explained: bool,
    scores: Sequence[Score],
    limits: Limits,
    agreed: int,
) -> str:
    def shares(scores: Sequence[Score]) -> str:
        return "; ".join(f"{s.fidelity} of strings at {s.factor}x" for s in scores)

    if explained:
        alike = [s for s in scores if s.fidelity.value >= EXPLAINS]
        apart = [s for s in scores if s.fidelity.value < EXPLAINS]
        sure = f" All of {agreed} new strings agreed: with 95 % confidence 99 % of such strings do."
        longer = f" On longer strings the two differ: they say the same to {shares(apart)}."
        return (
            f"A PDT of {best.machine.size} explains the network: it says what the network says to "
            f"{shares(alike)}.{sure if agreed else ''}{longer if apart else ''}"
        )
    more = f" One of {larger.machine.size} does better: raise --states or --symbols." if larger else ""
    return (
        f"No PDT of at most {limits.states} states and {limits.symbols} stack symbols was found that "
        f"explains the network: the best has {best.machine.size}, and says what the network says to "
        f"{shares(scores)}.{more}"
    )
