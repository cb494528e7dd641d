"""How well a machine explains a network, and a task: whole outputs compared, and a counterexample.

Strings are independent and the symbols of one string are not, so every interval is over strings.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
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
    """How often two say the same."""

    strings: Share  # their whole outputs are the same
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


def steps_of(network: Network, sizes: torch.Tensor) -> list[int]:
    """That it makes on strings of these sizes (B,)."""
    steps = network.steps if isinstance(network, BufferedStackRNN) else int
    return [steps(size) for size in sizes.tolist()]


@torch.no_grad()
def outputs(
    network: Network, condition: Condition, strings: Sequence[Example], edit: Edit | None = None
) -> list[list[str]]:
    """All that the network says to each string: a symbol for each symbol or, of a buffered network, as many
    as its output buffer holds, however long the string is."""
    x, sizes = inputs(network, condition, strings)
    y, state = network(x, lengths=sizes, edit=edit)
    return to_symbols(condition, y, state, sizes)


def to_symbols(
    condition: Condition, y: torch.Tensor, state: AnyState | BufferedState, sizes: torch.Tensor
) -> list[list[str]]:
    """What a network has said, y (B, n, K), in the state in which it ended."""
    alphabet = tasks.find(condition.task).alphabet
    held = sizes
    if isinstance(state, BufferedState):
        held = state.output.s.sum(-1).round().int() - int(condition.discard_first)
    scores = y.argmax(-1).tolist()
    return [[alphabet[k] for k in row[: max(0, n)]] for row, n in zip(scores, held.tolist(), strict=True)]


def said_by(pdt: Transducer, word: Sequence[str]) -> list[str]:
    return list(chain.from_iterable(transduced(pdt, word)))


def compared(
    said: Sequence[str], told: Sequence[str], target: Sequence[str | None], every_position: bool
) -> tuple[list[int], list[int]]:
    """Where two outputs differ, and the positions that were compared.

    A position that the task does not score is compared only with `every_position`, or where one of the two
    says something and the other nothing. Everything after the last target is compared.
    """
    different: list[int] = []
    positions: list[int] = []
    for j in range(max(len(said), len(told), len(target))):
        one_is_silent = (j < len(said)) != (j < len(told))
        if every_position or one_is_silent or j >= len(target) or target[j] is not None:
            positions.append(j)
            if one_is_silent or (j < len(said) and said[j] != told[j]):
                different.append(j)
    return different, positions


def agreement(
    said: Sequence[Sequence[str]],
    told: Sequence[Sequence[str]],
    strings: Sequence[Example],
    every_position: bool,
) -> Agreement:
    """How often two outputs to the same strings are the same."""
    whole = same = total = 0
    for ours, theirs, example in zip(said, told, strings, strict=True):
        different, positions = compared(ours, theirs, example.target, every_position)
        whole += not different
        same += len(positions) - len(different)
        total += len(positions)
    return Agreement(Share(whole, len(strings)), Share(same, total, len(strings)))


def accuracy(said: Sequence[Sequence[str]], strings: Sequence[Example]) -> Share:
    """How many of the symbols that a task asks for are said."""
    right = total = 0
    for symbols, example in zip(said, strings, strict=True):
        for j, target in enumerate(example.target):
            if target is not None:
                right += j < len(symbols) and symbols[j] == target
                total += 1
    return Share(right, total, len(strings))


def differences(
    said: Sequence[Sequence[str]],
    told: Sequence[Sequence[str]],
    strings: Sequence[Example],
    condition: Condition,
    every_position: bool,
) -> Iterator[Counterexample]:
    """The strings on which machine and network differ."""
    for ours, theirs, example in zip(said, told, strings, strict=True):
        places, _ = compared(ours, theirs, example.target, every_position)
        if places:
            j = places[0]
            word = example.input if condition.buffered else example.input[: j + 1]
            pair = (output[j] if j < len(output) else "" for output in (ours, theirs))
            yield Counterexample(word, j, *pair)


def strings_of(condition: Condition, rng: np.random.Generator, n: int, factor: int) -> list[Example]:
    """New strings of a task: as in training, as in testing, or longer, of which there may be none."""
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
    different: list[Counterexample] = []
    for factor in FACTORS:
        strings = strings_of(condition, rng, n, factor)
        if not strings:
            continue
        told = outputs(network, condition, strings)
        said = [said_by(machine, example.input) for example in strings]
        whole, symbols = agreement(said, told, strings, every_position)
        scores.append(Score(factor, whole, symbols, accuracy(said, strings)))
        different += differences(said, told, strings, condition, every_position)
    return scores, min(different, key=lambda c: (len(c.symbols), c.position), default=None)
