"""How well a machine explains a network, and a task: whole outputs compared, and a counterexample.

Strings are independent and the symbols of one string are not, so every interval is over strings.
"""

from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np
import torch

from softstack.buffered import BufferedStackRNN, BufferedState
from softstack.cell import Edit
from softstack.formal.running import transduced
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.explain.ablation import Network
from softstack.lab.runs.compare import wilson
from softstack.lab.tasks.data import Example
from softstack.lab.training.conditions import Condition
from softstack.networks import AnyState

FACTORS = (1, 2, 10)


class Share(NamedTuple):
    """A proportion, and its 95 % interval by Wilson's score over strings.

    Where symbols are counted, a string's share of right ones lies in [0, 1] and so varies at most as much as
    a coin with the same mean: Wilson's interval for as many coins as there are strings is wide enough.
    """

    right: int
    total: int
    strings: int | None = None  # where `total` counts symbols; by default it counts strings

    @property
    def trials(self) -> int:
        """What is independent: strings."""
        return self.total if self.strings is None else self.strings

    @property
    def value(self) -> float:
        return self.right / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        if not self.total:
            return 0.0, 1.0
        _, low, high = wilson(self.value * self.trials, self.trials)
        return low, high

    def as_dict(self) -> dict[str, Any]:
        counts = {"right": self.right, "total": self.total, "strings": self.trials}
        return {"value": self.value, "interval": self.interval, **counts}

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.1%} [{low:.1%}, {high:.1%}]"


class Agreement(NamedTuple):
    """How often two outputs are the same."""

    strings: Share  # of whole outputs
    symbols: Share


class Score(NamedTuple):
    """A machine beside its network on strings of a length."""

    factor: int  # times the length of the training strings
    fidelity: Share  # strings on which it puts out all that the network does, and nothing else
    symbols: Share  # symbols of the network's output
    accuracy: Share  # symbols that the task asks for

    def as_dict(self) -> dict[str, Any]:
        shares = {name: getattr(self, name).as_dict() for name in ("fidelity", "symbols", "accuracy")}
        return {"factor": self.factor, **shares}


class Counterexample(NamedTuple):
    """Where machine and network differ."""

    symbols: tuple[str, ...]
    position: int
    machine: str  # "" where it says nothing
    network: str


def inputs(
    network: Network, condition: Condition, strings: Sequence[Example]
) -> tuple[torch.Tensor, torch.Tensor]:
    """x (B, T, K), 0 after the end of a string, and lengths (B,)."""
    alphabet = tasks.find(condition.task).alphabet
    sizes = torch.tensor([len(example.input) for example in strings])
    x = torch.zeros(len(strings), int(sizes.max()), len(alphabet)).to(network.cell.heads.weight)
    for b, example in enumerate(strings):
        x[b, range(len(example.input)), [alphabet.index(s) for s in example.input]] = 1
    return x, sizes


def steps_of(network: Network, sizes: torch.Tensor) -> torch.Tensor:
    """(B,): the steps that a network makes on strings of these sizes."""
    if not isinstance(network, BufferedStackRNN):
        return sizes
    return torch.tensor([network.steps(size) for size in sizes.tolist()])


@torch.no_grad()
def outputs(
    network: Network, condition: Condition, strings: Sequence[Example], edit: Edit | None = None
) -> list[list[str]]:
    """The network's whole answer to each string: a symbol for each symbol or, of a buffered network, as many
    as its output buffer holds in the end."""
    x, sizes = inputs(network, condition, strings)
    y, state = network(x, lengths=sizes, edit=edit)
    return to_symbols(condition, y, state, sizes)


def to_symbols(
    condition: Condition, y: torch.Tensor, state: AnyState | BufferedState, sizes: torch.Tensor
) -> list[list[str]]:
    """Outputs y (B, n, K) as symbols, given the state in which the network ended."""
    alphabet = tasks.find(condition.task).alphabet
    counts = sizes
    if isinstance(state, BufferedState):
        counts = state.output.s.sum(-1).round().int() - int(condition.discard_first)
    rows = zip(y.argmax(-1).tolist(), counts.tolist(), strict=True)
    return [[alphabet[k] for k in row[: max(0, n)]] for row, n in rows]


def output_of(pdt: Transducer, word: Sequence[str]) -> list[str]:
    """A machine's whole answer to a word."""
    return list(chain.from_iterable(transduced(pdt, word)))


def compared(
    output: Sequence[str], other: Sequence[str], target: Sequence[str | None], every_position: bool
) -> tuple[list[int], list[int]]:
    """Where two outputs differ, and the positions that were compared.

    A position that the task does not score is compared only with `every_position`, or where one of the two
    says something and the other nothing. Everything after the last target is compared.
    """
    different: list[int] = []
    positions: list[int] = []
    for j, (ours, theirs, symbol) in enumerate(zip_longest(output, other, target)):
        one_is_silent = (ours is None) != (theirs is None)
        if every_position or one_is_silent or j >= len(target) or symbol is not None:
            positions.append(j)
            if ours != theirs:
                different.append(j)
    return different, positions


def agreement(
    outputs: Sequence[Sequence[str]],
    others: Sequence[Sequence[str]],
    strings: Sequence[Example],
    every_position: bool,
) -> Agreement:
    """How often two outputs to the same strings are the same."""
    whole = same = total = 0
    for output, other, example in zip(outputs, others, strings, strict=True):
        different, positions = compared(output, other, example.target, every_position)
        whole += not different
        same += len(positions) - len(different)
        total += len(positions)
    return Agreement(Share(whole, len(strings)), Share(same, total, len(strings)))


def accuracy(outputs: Sequence[Sequence[str]], strings: Sequence[Example]) -> Share:
    """How many of the symbols that a task asks for are said."""
    pairs = [
        (symbol, target)
        for output, example in zip(outputs, strings, strict=True)
        for symbol, target in zip_longest(output, example.target)
        if target is not None
    ]
    return Share(sum(symbol == target for symbol, target in pairs), len(pairs), len(strings))


def strings_of(condition: Condition, rng: np.random.Generator, n: int, factor: int) -> list[Example]:
    """New strings of a task: like those of training, like those of the test, or longer, where it has such."""
    task = tasks.find(condition.task)
    if factor > 2:
        return tasks.of_length(task, rng, max(10, n // 5), factor * task.length("train"))
    return [task.example(w) for w in task.sample(rng, n, "train" if factor == 1 else "test")]


def measured(
    network: Network,
    condition: Condition,
    machine: Transducer,
    rng: np.random.Generator,
    n: int,
    every_position: bool,
) -> tuple[list[Score], Counterexample | None]:
    """Fidelity and accuracy on new strings of each length, and the shortest where the two differ."""
    scores: list[Score] = []
    counterexamples: list[Counterexample] = []
    for factor in FACTORS:
        strings = strings_of(condition, rng, n, factor)
        if not strings:
            continue
        theirs = outputs(network, condition, strings)
        ours = [output_of(machine, example.input) for example in strings]
        whole, symbols = agreement(ours, theirs, strings, every_position)
        scores.append(Score(factor, whole, symbols, accuracy(ours, strings)))
        for example, our, their in zip(strings, ours, theirs, strict=True):
            different, _ = compared(our, their, example.target, every_position)
            if different:
                j = different[0]
                word = example.input if condition.buffered else example.input[: j + 1]
                pair = ("".join(output[j : j + 1]) for output in (our, their))
                counterexamples.append(Counterexample(word, j, *pair))
    return scores, min(counterexamples, key=lambda c: (len(c.symbols), c.position), default=None)
