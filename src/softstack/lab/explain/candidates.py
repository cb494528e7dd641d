"""Machines that a network might be, from what it was seen to do, and the one that agrees best with it."""

from collections.abc import Iterable, Sequence
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
from softstack.lab.explain.fidelity import Agreement, agreement, said_by
from softstack.lab.tasks.data import Example

RADIUS = 0.1  # points closer than this, in every component, are one,
FEW = 64  # if there are no more than so many then;
TIGHT = 0.02  # points that are as close as this are one,
MANY = 4096  # if there are no more than so many,
OFTEN = 20  # and each was seen so many times, on average
COARSE = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # groups tried where points do not fall into any


class Limits(NamedTuple):
    """What a machine may have, and must say."""

    states: int
    symbols: int
    stack: bool
    every_position: bool
    parts: int = 1  # of 1, that strengths are multiples of

    def hold(self, pdt: Transducer) -> bool:
        """A symbol that stands for several parts counts as a part of a symbol."""
        most = self.symbols * self.parts
        return len(pdt.states) <= self.states and len(pdt.stack_symbols) - 1 <= most


class Candidate(NamedTuple):
    machine: Transducer
    agreement: Agreement  # with the network, on held-out strings
    consistent: float

    @property
    def rank(self) -> tuple[float, float, int, int]:
        pdt, (strings, symbols) = self.machine, self.agreement
        return strings.value, symbols.value, -len(pdt.states) - len(pdt.stack_symbols), -len(pdt.rules)


def best_candidate(
    seen: Sequence[Seen], held: Sequence[Example], told: Sequence[Sequence[str]], limits: Limits, blank: str
) -> tuple[Candidate | None, Candidate | None]:
    """The candidate that agrees best with the network among those within the limits, and the best beyond them
    where that is better."""
    best: Candidate | None = None
    larger: Candidate | None = None
    for pdt, consistent in _candidates(seen, limits, blank):
        said = [said_by(pdt, example.input) for example in held]
        agreed = agreement(said, told, held, limits.every_position)
        candidate = Candidate(pdt, agreed, consistent)
        if best is not None and candidate.rank[:2] < best.rank[:2]:
            continue
        if larger is not None and not limits.hold(pdt) and candidate.rank[:2] < larger.rank[:2]:
            continue
        candidate = candidate._replace(machine=minimised(pdt))
        if limits.hold(candidate.machine):
            best = candidate if best is None or candidate.rank > best.rank else best
        else:
            larger = candidate if larger is None or candidate.rank > larger.rank else larger
        if best is not None and best.agreement.strings.value == 1:
            return best, None
    if best is not None and larger is not None and larger.rank[:2] <= best.rank[:2]:
        larger = None
    return best, larger


def _candidates(seen: Sequence[Seen], limits: Limits, blank: str) -> Iterable[tuple[Transducer, float]]:
    """Machines from each grouping, with the share of steps that they account for; coarse ones first."""
    for of_states, of_symbols in _groupings(seen, limits):
        table, consistent = tabulate(seen, of_states, of_symbols, limits.parts)
        for evidence in (16, 8, 4, 2, 1):  # what has most in common is merged first
            table = merged(table, evidence)
        for small in (merged(table), table):  # with merges that nothing speaks for, and without
            try:
                if limits.parts == 1:
                    pdt = machine(small, blank=blank)
                else:
                    pdt = machine_in_parts(small, limits.parts, blank=blank)
                bound(pdt)
            except BadInput:
                continue  # no rules from its start, or ε-moves without end
            yield pdt, consistent


def _groupings(seen: Sequence[Seen], limits: Limits) -> Iterable[tuple[Points | None, Points | None]]:
    """Centres for states and for symbols: where points fall into groups by themselves, those; else more and
    more groups, few first. The first of all leaves the stack out."""
    states = np.concatenate([run.h for run in seen])
    vectors = np.concatenate([run.v[run.push > 0] for run in seen])
    of_states: list[Points | None] = [None] if not states.shape[1] else list(_choices(states, FEW))
    of_symbols: list[Points | None] = [None]
    if limits.stack and len(vectors):
        of_symbols += _choices(vectors, limits.symbols)
    pairs = [(a, b) for a in range(len(of_states)) for b in range(len(of_symbols))]
    for a, b in sorted(pairs, key=sum):
        yield of_states[a], of_symbols[b]


def _choices(observed: Points, most: int) -> Iterable[Points]:
    """Centres of groups: each of those into which points fall by themselves was seen many times."""
    points = np.unique(observed.round(4), axis=0)
    some = points[np.random.default_rng(0).permutation(len(points))[:3000]]
    crowded = max(1, min(MANY, len(observed) // OFTEN))
    for radius, number in ((RADIUS, most), (TIGHT, crowded)):
        if len(farthest_first(some[:500], number + 1, radius)[0]) <= number:
            centres, far = farthest_first(points, number, radius)
            if far <= radius:
                yield centres
                return
    for k in COARSE:
        if k <= most:
            yield grouped(some, k)
