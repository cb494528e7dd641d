"""Does a network use its memory? Measures of it, and a verdict with the numbers behind it.

The verdict is causal: what two runs hold is swapped (`swaps.py`). All else is measured on strings of the
network's test set, which are about twice as long as those it was trained on, unless a length is named.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softstack.formal.running import looks
from softstack.lab import tasks
from softstack.lab.explain.ablation import NOTHING, STATE, WHOLE, Network, edits, run
from softstack.lab.explain.swaps import COUNTER, EVERYTHING, IGNORED, Use, use
from softstack.lab.reports.scores import stacked
from softstack.lab.tasks.data import Dataset, Example, one_hot
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import encoded, examples, stream
from softstack.lab.training.population import accuracies
from softstack.memory import Choice, Head, Memory, Queue, Stack
from softstack.trace import Trace
from softstack.viewer.declared import columns, said

FALLS = 0.99  # the accuracy below which a network is said to fail at a length
FACTORS = (1, 2, 4, 8, 16, 32)


class Bin(NamedTuple):
    """Accuracy over scored positions whose depth, or distance, lies between two numbers."""

    least: int
    most: int
    right: int
    scored: int

    @property
    def name(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least}-{self.most}"


class Diagnosis(NamedTuple):
    """Accuracies and shares are in [0, 1]."""

    accuracy: float
    ablated: dict[str, float]  # accuracy under each edit
    agreement: dict[str, float]  # share of the network's answers that stay under each edit
    histogram: dict[str, list[int]]  # of each strength and action: counts in ten equal bins from 0 to 1
    drift: list[float]  # mean distance of strengths and choices from whole, added up to each step
    lengths: list[tuple[int, float]]  # symbols, and the accuracy on strings of so many
    use: Use  # the verdict in a word, `use.kind`, and what swaps did to the answers
    falls_at: float | None  # the length at which accuracy falls below FALLS; None where nothing says so
    falls_by: str  # how that is known
    depth: list[Bin]
    distance: list[Bin]
    verdict: str
    sentence: str

    @property
    def fall(self) -> str:
        """`falls_at` in words."""
        if self.falls_at is None:
            return f"Accuracy is not known to fall below {FALLS:.0%}: {self.falls_by}."
        length = f"{self.falls_at:,.0f}" if self.falls_at < 1e9 else f"{self.falls_at:.0e}"
        return f"Accuracy falls below {FALLS:.0%} at {length} symbols ({self.falls_by})."

    def as_dict(self) -> dict[str, Any]:
        plain = self._asdict()
        plain["drift"] = [value if isfinite(value) else None for value in self.drift]  # JSON has no NaN
        effects = {name: {**e._asdict(), "share": e.share} for name, e in self.use.effects.items()}
        plain["use"] = {"kind": self.use.kind, "swaps": effects}
        plain["depth"] = [bin._asdict() for bin in self.depth]
        plain["distance"] = [bin._asdict() for bin in self.distance]
        return plain


def verdict_on(kind: str, memory: Memory) -> str:
    """A class of use in words."""
    if kind == IGNORED:
        return "ignores it (it has no memory)" if memory.name == "none" else f"ignores its {memory.name}"
    return f"uses its {memory.name} as {'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def diagnose(network: Network, condition: Condition, seed: int, strings: int = 200) -> Diagnosis:
    """The whole diagnosis, on so many strings of the test set."""
    test_set = examples(condition, seed, "test")[:strings]
    data = encoded(condition, test_set, "test")
    memory = network.cell.memory
    x = one_hot(data.x, len(tasks.find(condition.task).alphabet), network.cell.heads.weight)
    runs = {name: run(network, x, edit) for name, edit in edits(memory).items()}
    answers = {name: ablated.y.argmax(-1) for name, ablated in runs.items()}  # (B, T)
    plain_answers, trace = answers[NOTHING], runs[NOTHING].trace

    def share(hits: Tensor) -> float:
        return float((hits & data.mask).sum() / data.mask.sum())

    ablated = {name: share(y == data.y) for name, y in answers.items()}
    agreement = {name: share(y == plain_answers) for name, y in answers.items()}
    live = _live(trace, data, test_set)
    drift = _drift(trace, live)
    lengths = _by_length(network, condition, seed)
    steps = condition.steps_per_symbol if condition.buffered else 1
    per_symbol = steps * drift[-1] / len(drift) if drift else 0.0
    usage = use(network, condition, seed)
    adds_up = isinstance(memory, Stack | Queue) and usage.kind in (memory.name, COUNTER)
    falls_at, falls_by = predict_fall(lengths, per_symbol if adds_up else None)
    depth, distance = _by_look(condition.task, test_set, (plain_answers == data.y).tolist())
    return Diagnosis(
        accuracy=ablated[NOTHING],
        ablated=ablated,
        agreement=agreement,
        histogram=_histogram(trace, live, condition.buffered),
        drift=drift,
        lengths=lengths,
        use=usage,
        falls_at=falls_at,
        falls_by=falls_by,
        depth=depth,
        distance=distance,
        verdict=verdict_on(usage.kind, memory),
        sentence=sentence(usage, ablated, agreement, memory),
    )


def sentence(usage: Use, accuracy: dict[str, float], agreement: dict[str, float], memory: Memory) -> str:
    """The verdict with the numbers behind it."""
    beneath = "behind the front" if memory.drawn == "line" else "beneath the top"
    swaps = {
        "whole": "all that another run holds",
        EVERYTHING: "that and its state",
        "contents": f"another run's vectors {beneath}",
        "height": f"more or less {beneath}",
    }
    shares = [f"{e.share:.1%} with {swaps[name]}" for name, e in usage.effects.items() if e.grafts]
    changes = f" Of its next answers, these change: {', '.join(shares)}." if shares else ""
    return (
        f"Verdict: it {verdict_on(usage.kind, memory)}. It is right {accuracy[NOTHING]:.1%} of the time."
        f"{changes} With its state zeroed {agreement[STATE]:.1%} of its answers stay, and "
        f"{agreement[WHOLE]:.1%} with strengths rounded to 0 or 1."
    )


def predict_fall(lengths: Sequence[tuple[int, float]], per_symbol: float | None) -> tuple[float | None, str]:
    """The length at which accuracy falls below FALLS, and how that is known. `lengths` are those
    that were measured, each with its accuracy.

    Between two measured lengths it is interpolated on the logarithm of the length. Where every measured
    length is fine, reads of a stack or queue go wrong when strengths that are off by `per_symbol` at each
    symbol have added up to 1/4: then the topmost unit of strength may be half another item (docs/compile.md).
    That is a bound and not a law, and it is not given where a longer length was measured to be fine. With
    None, for a memory that does not add strengths up, nothing is predicted.
    """
    longest, last = 0, 0.0  # the longest length that is fine so far, and its accuracy
    for length, accuracy in lengths:
        if accuracy < FALLS:
            if not longest:
                return float(length), f"measured: below {FALLS:.0%} at the shortest length"
            falls_at = longest * (length / longest) ** ((last - FALLS) / (last - accuracy))
            return falls_at, f"measured: {last:.1%} at {longest}, {accuracy:.1%} at {length}"
        longest, last = length, accuracy
    fine = f"every measured length is fine, up to {longest} symbols"
    if per_symbol is None or per_symbol <= 0 or 0.25 / per_symbol <= longest:
        return None, fine
    return 0.25 / per_symbol, f"predicted: {fine}, and strengths are off by {per_symbol:.1e} at each symbol"


def _live(trace: Trace, data: Dataset, strings: Sequence[Example]) -> Tensor:
    """(B, steps): the steps of each string itself, without those of its padding."""
    steps, T = trace.x.shape[1], data.x.shape[1]
    per_symbol = max(1, steps // max(1, T))
    ends = torch.tensor([len(example.input) for example in strings]) * per_symbol
    return torch.arange(steps) < ends.unsqueeze(1)


def _drift(trace: Trace, live: Tensor) -> list[float]:
    distances = torch.zeros_like(live, dtype=torch.float64)  # (B, steps)
    for name, head in trace.memory.heads.items():
        distances += distance_from_whole(head, trace.instructions[name])
    means = (distances * live).sum(0) / live.sum(0).clamp(min=1)
    return means[live.any(0)].cumsum(0).tolist()


def distance_from_whole(head: Head, values: Tensor) -> Tensor:
    """(B, T): how far values (B, T, ...) of a head are from the nearest whole ones. Of a choice it is the
    probability of all actions but the likeliest, of a vector 0."""
    off = (values - head.hardened(values)).abs().double()
    if isinstance(head, Choice):
        off = off / 2  # what the likeliest action lacks, the others have
    return off.reshape(*values.shape[:2], -1).sum(-1)


def _histogram(trace: Trace, live: Tensor, buffered: bool) -> dict[str, list[int]]:
    counts: dict[str, list[int]] = {}
    for column in columns(trace.memory, buffered=buffered):
        if column.kind in ("strength", "choice"):
            values = said(trace)[column.name][live]  # (n, ...)
            parts = values.float().cpu().reshape(len(values), -1).unbind(-1)
            for label, part in zip(column.labels, parts, strict=True):
                counts[f"{column.name} {label}".strip()] = torch.histc(part, 10, 0, 1).int().tolist()
    return counts


def accuracy_at(network: Network, condition: Condition, strings: Sequence[Example]) -> float:
    """The accuracy on strings of any length."""
    letters = len(tasks.find(condition.task).alphabet)
    return accuracies(network, stacked([network]), encoded(condition, strings).stacked(), letters).item()


def _by_length(network: Network, condition: Condition, seed: int) -> list[tuple[int, float]]:
    task = tasks.find(condition.task)
    base = task.length("train")
    rng = stream(seed, "test")
    longest = getattr(network.cell.memory, "longest", base * FACTORS[-1])
    lengths = []
    for factor in FACTORS:
        if factor * base > max(base, longest):
            break
        strings = tasks.of_length(task, rng, 50, factor * base)
        if strings:
            lengths.append((factor * base, accuracy_at(network, condition, strings)))
    return lengths


def _by_look(
    task: str, strings: Sequence[Example], hits: Sequence[Sequence[bool]]
) -> tuple[list[Bin], list[Bin]]:
    """Accuracy by how deep the stack of the task's machine is where it writes the answer, and by how long ago
    the symbol that it looks at was pushed. Nothing for a task without a machine, or for one that is itself a
    machine: that may write more or less than one symbol for each that it reads."""
    machine = tasks.machine_of(tasks.TASKS[task]) if task in tasks.TASKS else None
    if machine is None:
        return [], []
    depths: dict[int, list[bool]] = defaultdict(list)  # hits by the bits of a depth
    distances: dict[int, list[bool]] = defaultdict(list)
    for example, hits_in_string in zip(strings, hits, strict=True):
        for j, (depth, distance) in enumerate(looks(machine, example.input)):
            if example.target[j] is not None:
                depths[depth.bit_length()].append(hits_in_string[j])
                distances[distance.bit_length()].append(hits_in_string[j])
    return _bins(depths), _bins(distances)


def _bins(hits: Mapping[int, Sequence[bool]]) -> list[Bin]:
    """Hits by the number of bits of what is measured: 0, 1, 2 to 3, 4 to 7 and so on."""
    return [Bin(2**bits // 2, 2**bits - 1, sum(h), len(h)) for bits, h in sorted(hits.items())]
