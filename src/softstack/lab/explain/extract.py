"""From a network to the pushdown transducer that it computes, and how well that explains it.

Strengths are rounded, so that the stack holds whole vectors; vectors and controller states are put into
groups; transitions are read off, merged and minimised (`formal.extraction`). What comes out is compared with
the network itself, on strings that it was not made from.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from softstack import checks
from softstack.buffered import BufferedStackRNN
from softstack.errors import BadInput
from softstack.formal.analysis import bound
from softstack.formal.clusters import Points, farthest_first, grouped
from softstack.formal.extraction import END, Seen, machine, tabulate
from softstack.formal.merging import merged
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.explain.ablation import NOTHING, READS, WHOLE, Network, edits, run
from softstack.lab.explain.fidelity import (
    Counterexample,
    Score,
    Share,
    agreement,
    inputs,
    measured,
    outputs,
    said_by,
)
from softstack.lab.tasks.data import Example
from softstack.lab.training.conditions import Condition
from softstack.memory import NoMemory, Stack

EXPLAINS = 0.99  # fidelity, at once and twice the length, of a machine that explains a network
STAYS = 0.9  # share of answers that must stay when strengths are rounded
RADIUS = 0.1  # points closer than this, in every component, are one
RAW = 64  # groups of states before merging
COARSE = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # groups tried where points do not fall into few


class Extraction(NamedTuple):
    machine: Transducer | None
    explained: bool  # whether the machine is small enough and says what the network says
    off: float  # how far strengths are from 0 or 1, on average
    stays: Share  # answers that stay when strengths are rounded
    consistent: float  # share of steps that did what was most often done at their key
    scores: list[Score]
    counterexample: Counterexample | None
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        def share(s: Share) -> dict[str, Any]:
            strings = s.total if s.strings is None else s.strings
            counts = {"right": s.right, "total": s.total, "strings": strings}
            return {"value": s.value, "interval": s.interval, **counts}

        m, c = self.machine, self.counterexample
        return {
            "machine": None if m is None else str(m),
            "size": None if m is None else m.size,
            "states": None if m is None else len(m.states),
            "rules": None if m is None else len(m.rules),
            "explained": self.explained,
            "off": self.off,
            "stays": share(self.stays),
            "consistent": self.consistent,
            "scores": [
                {
                    "factor": s.factor,
                    "fidelity": share(s.fidelity),
                    "symbols": share(s.symbols),
                    "accuracy": share(s.accuracy),
                }
                for s in self.scores
            ],
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
    memory = network.cell.memory
    if not isinstance(memory, Stack | NoMemory):
        sentence = (
            f"No PDT can be read off a network with the memory {memory.name!r}: a PDT has a stack, and only "
            "what a stack is told becomes its pushes and pops."
        )
        return Extraction(None, False, 0.0, Share(0, 0), 0.0, [], None, sentence)
    task = tasks.find(condition.task)
    rng = np.random.default_rng([seed, len(task.alphabet), strings])
    sample = _strings(condition.task, rng, strings)
    held = _strings(condition.task, rng, strings // 2 + 1)
    seen, off, stays = _observe(network, condition, sample, every_position)
    if every_position and condition.buffered:
        seen += _observe(network, condition, _wild(condition.task, rng, sample * 4), True)[0]
    if stays.value < STAYS:
        sentence = (
            f"The network is too far from saturated to extract: its strengths are {off:.3f} from 0 or 1 on "
            f"average, and with them rounded only {stays} of its answers stay, where {STAYS:.0%} are needed."
        )
        return Extraction(None, False, off, stays, 0.0, [], None, sentence)
    told = outputs(network, condition, held)
    most = symbols if _reads_matter(network, condition, sample[:100], every_position) else 0
    best: tuple[Transducer, float] | None = None
    best_rank: tuple[float, float, int, int] | None = None
    for candidate, consistent in _candidates(seen, most, states, task.padding):
        said = [said_by(candidate, example.input) for example in held]
        whole, symbol = agreement(said, told, held, every_position)
        rank = (whole.value, symbol.value, -len(candidate.states), -len(candidate.rules))
        if best_rank is None or rank > best_rank:
            best, best_rank = (candidate, consistent), rank
        if whole.value == 1:
            break
    if best is None:
        sentence = (
            f"No PDT of at most {states} states and {symbols} stack symbols could be read off the network."
        )
        return Extraction(None, False, off, stays, 0.0, [], None, sentence)
    pdt, consistent = best
    scores, counterexample = measured(network, condition, pdt, rng, strings // 2 + 1, every_position)
    explained = all(s.fidelity.value >= EXPLAINS for s in scores if s.factor <= 2)
    sentence = _sentence(pdt, explained, scores, states)
    return Extraction(pdt, explained, off, stays, consistent, scores, counterexample, sentence)


def _candidates(
    seen: Sequence[Seen], symbols: int, states: int, blank: str
) -> Iterable[tuple[Transducer, float]]:
    """Machines from each grouping, with the share of steps that they account for; coarse ones first."""
    for of_states, of_symbols in _groupings(seen, symbols):
        table, consistent = tabulate(seen, of_states, of_symbols)
        for evidence in (16, 8, 4, 2, 1):  # what has most in common is merged first
            table = merged(table, evidence)
        for small in (merged(table), table):  # with merges that nothing speaks for, and without
            try:
                pdt = machine(small, blank=blank)
                bound(pdt)
            except BadInput:
                continue  # no rules from its start, or ε-moves without end
            if len(pdt.states) <= states:
                yield pdt, consistent


def _reads_matter(
    network: Network, condition: Condition, sample: Sequence[Example], every_position: bool
) -> bool:
    """Whether answers change with every way of taking the information from what is read. Where they do not,
    a machine has no business with the stack, whatever lies on it."""
    x, sizes = inputs(network, condition, sample)
    asked = torch.zeros(x.shape[:2], dtype=torch.bool)
    for b, example in enumerate(sample):
        for j, target in enumerate(example.target):
            asked[b, j] = every_position or target is not None
    every = edits(network.cell.memory)
    own = run(network, x, every[NOTHING], sizes).y.argmax(-1)
    for name in READS:
        other = run(network, x, every[name], sizes).y.argmax(-1)
        if float((other == own)[asked].double().mean()) >= EXPLAINS:
            return False
    return True


def _sentence(pdt: Transducer, explained: bool, scores: Sequence[Score], states: int) -> str:
    shares = "; ".join(f"{s.fidelity} at {s.factor}x" for s in scores)
    if explained:
        return f"A PDT of {pdt.size} explains the network: it says what the network says, {shares}."
    return (
        f"No PDT of at most {states} states was found that explains the network: the best has {pdt.size}, "
        f"and says what the network says {shares}."
    )


def _strings(name: str, rng: np.random.Generator, n: int) -> list[Example]:
    """Two thirds like the training strings, one third about twice as long."""
    task = tasks.find(name)
    longer = n // 3 + 1
    short = [task.example(word) for word in task.sample(rng, n - longer, "train")]
    return short + [task.example(word) for word in task.sample(rng, longer, "test")]


def _wild(task: str, rng: np.random.Generator, sample: Sequence[Example]) -> list[Example]:
    """Beginnings of strings with any symbols after them: where the network is stuck, and that it stays so."""
    letters = tasks.find(task).inputs
    strings = []
    for example in sample:
        begin = example.input[: int(rng.integers(len(example.input)))]
        more = tuple(letters[k] for k in rng.integers(len(letters), size=3))
        strings.append(Example((*begin, *more), (None,) * (len(begin) + 3)))
    return strings


def _observe(
    network: Network, condition: Condition, sample: Sequence[Example], every_position: bool
) -> tuple[list[Seen], float, Share]:
    """What the network does with its strengths rounded; how far they were; and how many answers stay."""
    alphabet = tasks.find(condition.task).alphabet
    x, sizes = inputs(network, condition, sample)
    every = edits(network.cell.memory)
    plain = run(network, x, every[NOTHING], sizes).trace
    ran = run(network, x, every[WHOLE], sizes).trace
    remembers = bool(network.cell.core.init((1,), x))
    stays = agreement(
        outputs(network, condition, sample, every[WHOLE]),
        outputs(network, condition, sample),
        sample,
        every_position,
    ).symbols
    seen, off = [], []
    for b, example in enumerate(sample):
        steps = int(sizes[b])
        if isinstance(network, BufferedStackRNN):
            steps = network.steps(steps)
        scored = [every_position or target is not None for target in example.target]
        strengths = [plain.u, plain.d, *([plain.i, plain.o] if condition.buffered else [])]
        off.append(torch.stack([(s[b, :steps] - s[b, :steps].round()).abs() for s in strengths]).flatten())
        give = ran.o[b, :steps].bool()
        place = give.cumsum(0) - 1 - int(condition.buffered and condition.discard_first)
        front = ran.x[b, :steps]
        h = ran.h[b, :steps] if remembers else ran.h[b, :steps, :0]
        seen.append(
            Seen(
                x=[alphabet[k] if m > 0.5 else END for m, k in zip(*_max(front), strict=True)],
                pop=ran.u[b, :steps].bool().numpy(),
                push=ran.d[b, :steps].bool().numpy(),
                take=ran.i[b, :steps].bool().numpy(),
                give=give.numpy(),
                v=ran.v[b, :steps].double().numpy(),
                h=h.double().numpy(),
                write=[alphabet[k] for k in ran.y[b, :steps].argmax(-1).tolist()],
                scored=np.array(
                    [every_position or (0 <= p < len(scored) and scored[p]) for p in place.tolist()]
                ),
            )
        )
    return seen, float(torch.cat(off).mean()), stays


def _max(vectors: torch.Tensor) -> tuple[list[float], list[int]]:
    values, places = vectors.max(-1)
    return values.tolist(), places.tolist()


def _groupings(seen: Sequence[Seen], symbols: int) -> Iterable[tuple[Points | None, Points | None]]:
    """Centres for states and for symbols: where points fall into few groups by themselves, those; else more
    and more groups, few first. The first of all leaves the stack out."""
    states = np.unique(np.concatenate([run.h for run in seen]).round(4), axis=0)
    vectors = np.unique(np.concatenate([run.v[run.push] for run in seen]).round(4), axis=0)
    of_states: list[Points | None] = [None] if not states.shape[1] else list(_choices(states, RAW))
    of_symbols: list[Points | None] = [
        None,
        *(_choices(vectors, symbols) if symbols and len(vectors) else ()),
    ]
    pairs = [(a, b) for a in range(len(of_states)) for b in range(len(of_symbols))]
    for a, b in sorted(pairs, key=sum):
        yield of_states[a], of_symbols[b]


def _choices(points: Points, most: int) -> Iterable[Points]:
    centres, far = farthest_first(points, most, RADIUS)
    if far <= RADIUS:
        yield centres
        return
    rng = np.random.default_rng(0)
    some = points if len(points) <= 3000 else points[rng.permutation(len(points))[:3000]]
    for k in COARSE:
        if k <= most:
            yield grouped(some, k)
