"""Machines that a network might be, read from its runs, and the one that agrees best with it."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from softstack.errors import BadInput
from softstack.formal.analysis import bound
from softstack.formal.clusters import Points, farthest_first, grouped
from softstack.formal.extraction import Seen, machine, tabulate
from softstack.formal.merging import merged
from softstack.formal.minimal import minimised
from softstack.formal.parts import machine_in_parts
from softstack.formal.transducer import Transducer
from softstack.lab.explain.fidelity import Agreement, agreement, output_of
from softstack.lab.tasks.data import Example

RADIUS = 0.1  # points closer than this, in every component, are one group,
FEW = 64  # where that leaves at most so many groups;
TIGHT = 0.02  # else points as close as this,
MANY = 4096  # where that leaves at most so many,
OFTEN = 20  # each with so many points on average
COARSE = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # numbers of groups tried where points fall into none


class Limits(NamedTuple):
    """How large a machine may be, and what it must say."""

    states: int
    symbols: int
    stack: bool
    every_position: bool
    parts: int = 1  # of 1, that strengths are multiples of

    def hold(self, pdt: Transducer) -> bool:
        """Whether a machine is small enough. A symbol that stands for several parts counts as one part."""
        return len(pdt.states) <= self.states and len(pdt.stack_symbols) - 1 <= self.symbols * self.parts


class Candidate(NamedTuple):
    machine: Transducer
    agreement: Agreement  # with the network, on held-out strings
    consistent: float  # share of steps that the machine's table accounts for

    @property
    def score(self) -> tuple[float, float]:
        return self.agreement.strings.value, self.agreement.symbols.value

    @property
    def rank(self) -> tuple[float, float, int, int]:
        pdt = self.machine
        return *self.score, -len(pdt.states) - len(pdt.stack_symbols), -len(pdt.rules)


def best_candidate(
    runs: Sequence[Seen],
    strings: Sequence[Example],
    answers: Sequence[Sequence[str]],
    limits: Limits,
    blank: str,
) -> tuple[Candidate | None, Candidate | None]:
    """The candidate within the limits that agrees best with the network's answers to held-out strings, and
    the best one beyond them where that is better."""
    best: Candidate | None = None
    larger: Candidate | None = None
    for pdt, consistent in _candidates(runs, limits, blank):
        outputs = [output_of(pdt, example.input) for example in strings]
        candidate = Candidate(pdt, agreement(outputs, answers, strings, limits.every_position), consistent)
        if best is not None and candidate.score < best.score:
            continue
        if larger is not None and not limits.hold(pdt) and candidate.score < larger.score:
            continue
        candidate = candidate._replace(machine=minimised(pdt))
        if limits.hold(candidate.machine):
            best = candidate if best is None or candidate.rank > best.rank else best
        else:
            larger = candidate if larger is None or candidate.rank > larger.rank else larger
        if best is not None and best.agreement.strings.value == 1:
            return best, None
    if best is not None and larger is not None and larger.score <= best.score:
        larger = None
    return best, larger


def _candidates(runs: Sequence[Seen], limits: Limits, blank: str) -> Iterable[tuple[Transducer, float]]:
    """Machines from each grouping, with the share of steps that they account for; coarse ones first."""
    for states, symbols in _groupings(runs, limits):
        table, consistent = tabulate(runs, states, symbols, limits.parts)
        for evidence in (16, 8, 4, 2, 1):  # what has most in common is merged first
            table = merged(table, evidence)
        for small in (merged(table), table):  # with merges without evidence, and with none
            try:
                if limits.parts == 1:
                    pdt = machine(small, blank=blank)
                else:
                    pdt = machine_in_parts(small, limits.parts, blank=blank)
                bound(pdt)
            except BadInput:
                continue  # no rules from its start, or ε-moves without end
            yield pdt, consistent


def _groupings(runs: Sequence[Seen], limits: Limits) -> Iterable[tuple[Points | None, Points | None]]:
    """Centres for states and for symbols: where points fall into groups by themselves, those; else more and
    more groups, few first. The first of all leaves the stack out."""
    h = np.concatenate([run.h for run in runs])
    vectors = np.concatenate([run.v[run.push > 0] for run in runs])
    states: list[Points | None] = [*_centres(h, FEW)] if h.shape[1] else [None]
    symbols: list[Points | None] = [None]
    if limits.stack and len(vectors):
        symbols += _centres(vectors, limits.symbols)
    for a, b in sorted(product(range(len(states)), range(len(symbols))), key=sum):
        yield states[a], symbols[b]


def _centres(observed: Points, most: int) -> Iterable[Points]:
    """Centres of the groups into which points fall by themselves; else of more and more groups."""
    points = np.unique(observed.round(4), axis=0)
    sample = points[np.random.default_rng(0).permutation(len(points))[:3000]]
    crowded = max(1, min(MANY, len(observed) // OFTEN))
    for radius, number in ((RADIUS, most), (TIGHT, crowded)):
        if len(farthest_first(sample[:500], number + 1, radius)[0]) <= number:
            centres, far = farthest_first(points, number, radius)
            if far <= radius:
                yield centres
                return
    for k in COARSE:
        if k <= most:
            yield grouped(sample, k)
