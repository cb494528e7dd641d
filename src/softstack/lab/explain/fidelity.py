"""How well a machine explains a network, and a task: shares with their intervals, and a counterexample."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch

from softstack.buffered import BufferedStackRNN
from softstack.formal.running import transduced
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.explain.ablation import Network
from softstack.lab.runs.compare import wilson
from softstack.lab.tasks.data import Example
from softstack.lab.training.conditions import Condition

FACTORS = (1, 2, 10)


class Share(NamedTuple):
    """A proportion, and its 95 % interval by Wilson's score."""

    right: int
    total: int

    @property
    def value(self) -> float:
        return self.right / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        _, low, high = wilson(self.right, self.total) if self.total else (0.0, 0.0, 1.0)
        return low, high

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.1%} [{low:.1%}, {high:.1%}]"


class Score(NamedTuple):
    """A machine beside its network on strings of a length."""

    factor: int  # times the length of the training strings
    fidelity: Share  # agreement with the network
    accuracy: Share  # agreement with the task


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


@torch.no_grad()
def answers(network: Network, condition: Condition, strings: Sequence[Example]) -> list[list[str]]:
    """What the network says at each position of each string; "" where its output buffer holds no more."""
    alphabet = tasks.find(condition.task).alphabet
    x, sizes = inputs(network, condition, strings)
    y, state = network(x, lengths=sizes)
    held = sizes
    if isinstance(network, BufferedStackRNN):
        held = torch.minimum(sizes, state.output.s.sum(-1).round().int() - int(condition.discard_first))
    said = zip(y[:, : x.shape[1]].argmax(-1).tolist(), held.tolist(), sizes.tolist(), strict=True)
    return [[alphabet[k] if j < n else "" for j, k in enumerate(places[:size])] for places, n, size in said]


def said_by(pdt: Transducer, word: Sequence[str]) -> list[str]:
    return list(chain.from_iterable(transduced(pdt, word)))


def agreement(
    pdt: Transducer, strings: Sequence[Example], told: Sequence[Sequence[str]], every_position: bool
) -> Share:
    """How often a machine says what the network told, `told`, on some strings."""
    right = total = 0
    for example, answer in zip(strings, told, strict=True):
        said = said_by(pdt, example.input)
        for j, target in enumerate(example.target):
            if every_position or target is not None:
                right += (said[j] if j < len(said) else "") == answer[j]
                total += 1
    return Share(right, total)


def measured(
    network: Network,
    condition: Condition,
    machine: Transducer,
    rng: np.random.Generator,
    n: int,
    every_position: bool,
) -> tuple[list[Score], Counterexample | None]:
    """Fidelity and accuracy on new strings of each length, and the shortest where the two differ."""
    task = tasks.find(condition.task)
    scores: list[Score] = []
    different: list[Counterexample] = []
    for factor in FACTORS:
        if factor == 10:
            strings = tasks.of_length(task, rng, max(10, n // 5), factor * task.length("train"))
            if not strings:
                continue  # the task has no strings as long
        else:
            strings = [task.example(w) for w in task.sample(rng, n, "train" if factor == 1 else "test")]
        told = answers(network, condition, strings)
        right = total = 0
        for example, row in zip(strings, told, strict=True):
            said = [*said_by(machine, example.input), *[""] * len(row)]
            for j, target in enumerate(example.target):
                if target is not None:
                    right += said[j] == target
                    total += 1
                if (every_position or target is not None) and said[j] != row[j]:
                    word = example.input if condition.buffered else example.input[: j + 1]
                    different.append(Counterexample(word, j, said[j], row[j]))
        scores.append(Score(factor, agreement(machine, strings, told, every_position), Share(right, total)))
    return scores, min(different, key=lambda c: (len(c.symbols), c.position), default=None)
