"""Does a network use its stack? Measures of it, and a verdict with the numbers behind it.

Everything is measured on strings of the network's test set, which are about twice as long as those it was
trained on, unless a length is named.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from softstack.formal.running import looks
from softstack.lab import tasks
from softstack.lab.explain.ablation import EDITS, Ablated, Network, run
from softstack.lab.tasks.data import Dataset, Example
from softstack.lab.training.conditions import Condition
from softstack.lab.training.train import accuracies, encoded, examples, stream

MATTERS = 0.01  # accuracy that must be lost for something to matter
WHOLE = 0.95  # of the answers that must stay when strengths are rounded, for a stack to be one
FALLS = 0.99  # the accuracy below which a network is said to fail at a length
FACTORS = (1, 2, 4, 8, 16, 32)
VERDICTS = ("uses its stack as a stack", "uses it as unstructured memory", "ignores it")


class Bin(NamedTuple):
    """Accuracy over scored positions whose depth or distance lies between two numbers."""

    least: int
    most: int
    right: int
    scored: int


class Diagnosis(NamedTuple):
    """Accuracies and shares are in [0, 1]."""

    accuracy: float
    ablated: dict[str, float]  # accuracy under each edit
    agreement: dict[str, float]  # share of the network's answers that stay under each edit
    histogram: dict[str, list[int]]  # u, d and, with buffers, i and o: counts in ten equal bins from 0 to 1
    drift: list[float]  # after each step, the mean of all that u and d were off a whole number, added up
    lengths: list[tuple[int, float]]  # symbols, accuracy there
    falls_at: float | None  # the length from which on accuracy is below 99 %; None where nothing says so
    falls_by: str  # how that is known
    depth: list[Bin]
    distance: list[Bin]
    verdict: str
    sentence: str

    @property
    def falls(self) -> str:
        """`falls_at` in words."""
        if self.falls_at is None:
            return "no length, as far as is known"
        return f"{self.falls_at:,.0f} symbols" if self.falls_at < 1e9 else f"{self.falls_at:.0e} symbols"

    def as_dict(self) -> dict[str, Any]:
        plain = self._asdict()
        plain["depth"] = [bin._asdict() for bin in self.depth]
        plain["distance"] = [bin._asdict() for bin in self.distance]
        return plain


def diagnose(network: Network, condition: Condition, seed: int, strings: int = 200) -> Diagnosis:
    """The whole diagnosis, on so many strings of the test set."""
    given = examples(condition, seed, "test")[:strings]
    data = encoded(condition, given, "test")
    task = tasks.find(condition.task)
    x = one_hot(data.x, len(task.alphabet)).to(network.cell.heads.weight)
    runs = {name: run(network, x, edit) for name, edit in EDITS.items()}
    answers = {name: ablated.y.argmax(-1) for name, ablated in runs.items()}  # (B, T)
    scored = data.mask.sum()
    ablated = {n: float(((a == data.y) & data.mask).sum() / scored) for n, a in answers.items()}
    own = answers["nothing"]
    agreement = {n: float(((a == own) & data.mask).sum() / scored) for n, a in answers.items()}
    plain = runs["nothing"]
    live = _live(plain, data, given)
    drift = _drift(plain, live)
    measured = _by_length(network, condition, seed)
    steps = condition.steps_per_symbol if condition.buffered else 1
    falls_at, falls_by = predict_fall(measured, steps * drift[-1] / len(drift) if drift else 0.0)
    right = ((own == data.y) & data.mask).tolist()
    depth, distance = _by_look(condition.task, given, right)
    verdict, sentence = judge(ablated, agreement, condition.memory)
    return Diagnosis(
        accuracy=ablated["nothing"],
        ablated=ablated,
        agreement=agreement,
        histogram=_histogram(plain, live, condition.buffered),
        drift=drift,
        lengths=measured,
        falls_at=falls_at,
        falls_by=falls_by,
        depth=depth,
        distance=distance,
        verdict=verdict,
        sentence=sentence,
    )


def judge(ablated: dict[str, float], agreement: dict[str, float], memory: str = "stack") -> tuple[str, str]:
    """One of VERDICTS, and a sentence with the numbers behind it.

    A stack is used if reads without information cost accuracy, whichever way they lose it. It is used as a
    stack if also what lies beneath its top matters, and its strengths can be rounded to pushes and pops.
    """
    base = ablated["nothing"]
    reads = base - max(ablated[name] for name in ("reads zeroed", "reads of others", "reads averaged"))
    beneath = base - ablated["beneath the top hidden"]
    whole = agreement["strengths rounded"]
    if memory == "none" or reads < MATTERS:
        verdict = VERDICTS[2]
    elif beneath >= MATTERS and whole >= WHOLE:
        verdict = VERDICTS[0]
    else:
        verdict = VERDICTS[1]
    kind = "" if memory == "stack" else f" (its memory is {'a queue' if memory == 'queue' else 'none'})"
    return verdict, (
        f"Verdict: it {verdict}{kind}. It is right {base:.1%} of the time, reads without information cost it "
        f"{100 * reads:.1f} points, hiding what lies beneath the top {100 * beneath:.1f}, zeroing its state "
        f"{100 * (base - ablated['state zeroed']):.1f}, and {whole:.1%} of its answers stay when strengths "
        "are rounded to 0 or 1."
    )


def predict_fall(measured: Sequence[tuple[int, float]], per_symbol: float) -> tuple[float | None, str]:
    """The length at which accuracy falls below FALLS, and how that is known.

    Between two measured lengths it is interpolated on the logarithm of the length. Where every measured
    length is fine, reads go wrong when strengths that are off by `per_symbol` a symbol have added up to 1/4:
    then the topmost unit of strength may be half another item (docs/compile.md).
    """
    before: tuple[int, float] | None = None
    for length, accuracy in measured:
        if accuracy < FALLS:
            if before is None:
                return float(length), "measured: below 99 % at the shortest length"
            (short, better), share = before, (before[1] - FALLS) / (before[1] - accuracy)
            return short * (
                length / short
            ) ** share, f"measured: {better:.1%} at {short}, {accuracy:.1%} at {length}"
        before = (length, accuracy)
    if per_symbol <= 0:
        return None, "every measured length is fine, and strengths are not off at all"
    return 0.25 / per_symbol, f"predicted: strengths are off by {per_symbol:.1e} a symbol"


def _live(plain: Ablated, data: Dataset, given: Sequence[Example]) -> Tensor:
    """(B, steps): the steps of each string itself, without those of its padding."""
    steps, T = plain.u.shape[1], data.x.shape[1]
    per_symbol = max(1, steps // max(1, T))
    ends = torch.tensor([len(example.input) for example in given]) * per_symbol
    return torch.arange(steps) < ends.unsqueeze(1)


def _drift(plain: Ablated, live: Tensor) -> list[float]:
    off = (plain.u - plain.u.round()).abs() + (plain.d - plain.d.round()).abs()  # (B, steps)
    counts = live.sum(0).clamp(min=1)
    mean = (off * live).double().sum(0) / counts
    return mean[live.any(0)].cumsum(0).tolist()


def _histogram(plain: Ablated, live: Tensor, buffered: bool) -> dict[str, list[int]]:
    names = ("u", "d", "i", "o") if buffered else ("u", "d")
    return {
        name: torch.histc(getattr(plain, name)[live].float().cpu(), 10, 0, 1).int().tolist() for name in names
    }


def accuracy_at(network: Network, condition: Condition, given: Sequence[Example]) -> float:
    parameters = {name: p.detach().unsqueeze(0) for name, p in network.named_parameters()}
    letters = len(tasks.find(condition.task).alphabet)
    return accuracies(network, parameters, encoded(condition, given).stacked(), letters).item()


def _by_length(network: Network, condition: Condition, seed: int) -> list[tuple[int, float]]:
    task = tasks.find(condition.task)
    base = task.length("train")
    rng = stream(seed, "test")
    measured = []
    for factor in FACTORS:
        given = tasks.of_length(task, rng, 50, factor * base)
        if given:
            measured.append((factor * base, accuracy_at(network, condition, given)))
    return measured


def _by_look(
    task: str, given: Sequence[Example], right: Sequence[Sequence[bool]]
) -> tuple[list[Bin], list[Bin]]:
    """Accuracy by how deep the stack of the task's machine is where it writes the answer, and by how long ago
    the symbol that it looks at was pushed. Nothing for a task without a machine, or one that is a machine:
    that may write more or less than one symbol for each that it reads."""
    machine = tasks.machine_of(tasks.TASKS[task]) if task in tasks.TASKS else None
    if machine is None:
        return [], []
    found: tuple[dict[int, list[bool]], dict[int, list[bool]]] = (defaultdict(list), defaultdict(list))
    for example, row in zip(given, right, strict=True):
        for j, look in enumerate(looks(machine, example.input)):
            if example.target[j] is not None:
                for measure, into in zip(look, found, strict=True):
                    into[measure.bit_length()].append(row[j])
    depth, distance = (
        [
            Bin(2 ** (k - 1) if k else 0, 2**k - 1 if k else 0, sum(rows), len(rows))
            for k, rows in sorted(into.items())
        ]
        for into in found
    )
    return depth, distance
