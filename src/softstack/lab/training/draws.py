"""What a trial draws from its seed: strings, initial weights, the order of its batches, and noise.

Each purpose has a random stream of its own, and trials share nothing, so the numbers of a trial do not
depend on who trains beside it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from softstack.lab import tasks
from softstack.lab.tasks import Task
from softstack.lab.tasks.data import SPLITS, Dataset, Example, Split, encode
from softstack.lab.training.conditions import Condition, Network, build

SEEDS = 2**63  # there are as many: each fits into the index of runs
STREAMS = ("train", "dev", "test", "init", "order", "noise")


class Member(NamedTuple):
    """A network of a population: one restart of the trial with a seed. Restarts share the trial's strings."""

    seed: int
    restart: int = 0


def members(condition: Condition, seeds: Sequence[int]) -> list[Member]:
    """The members of all trials, one after the other."""
    return [Member(seed, restart) for seed in seeds for restart in range(condition.restarts)]


def stream(seed: int, purpose: str, restart: int = 0) -> np.random.Generator:
    """The random stream of a network of a trial; its first restart has the trial's own."""
    return np.random.default_rng([seed, STREAMS.index(purpose), *([restart] if restart else [])])


def examples(condition: Condition, seed: int, split: Split) -> list[Example]:
    size = {"train": condition.train_size, "dev": condition.dev_size, "test": condition.test_size}[split]
    return tasks.draw(tasks.find(condition.task), stream(seed, split), size, split)


def encoded(condition: Condition, strings: Sequence[Example], split: Split | None = None) -> Dataset:
    """Strings as the network of a condition reads them: those of a split, or of a file if there is none.

    A buffered network can tell how far strings are padded: all of these are padded alike, see
    `padded_length`.
    """
    task = tasks.find(condition.task)
    if not condition.buffered:
        return encode(task, strings).trimmed()
    longest = max(len(example.input) for example in strings)
    return encode(task, strings, padded_length(task, longest, [split] if split else SPLITS))


def padded_length(task: Task, length: int, splits: Sequence[Split] = SPLITS) -> int:
    """To how many symbols a string is padded for a buffered network: as in the shortest split that holds it;
    not at all where none does."""
    return min((steps for split in splits if (steps := task.length(split)) >= length), default=length)


def padded_alike(condition: Condition, strings: Sequence[Example]) -> list[list[Example]]:
    """Strings in groups, so that `encoded` pads each as if it were alone; without buffers, in one group."""
    task, groups = tasks.find(condition.task), dict[int, list[Example]]()
    for example in strings:
        length = padded_length(task, len(example.input)) if condition.buffered else 0
        groups.setdefault(length, []).append(example)
    return list(groups.values())


def fed(condition: Condition, symbols: Sequence[str]) -> tuple[str, ...]:
    """One string as the network of a condition is given it: padded for a buffered one, which can tell."""
    task = tasks.find(condition.task)
    length = padded_length(task, len(symbols)) if condition.buffered else len(symbols)
    return (*symbols, *[task.padding] * (length - len(symbols)))


def stacked(condition: Condition, seeds: Sequence[int], split: Split, device: torch.device | str) -> Dataset:
    """A split for each seed, (P, n, T), all padded alike. A seed may be there several times."""
    trials = sorted(set(seeds))
    strings = [example for seed in trials for example in examples(condition, seed, split)]
    data = encoded(condition, strings, split)
    places = [trials.index(seed) for seed in seeds]
    return Dataset(*(x.unflatten(0, (len(trials), -1))[places].to(device) for x in data))


def initial(
    condition: Condition, seed: int, device: torch.device | str | None = None, restart: int = 0
) -> Network:
    """The network with which a trial begins."""
    network = build(condition)
    generator = torch.Generator().manual_seed(int(stream(seed, "init", restart).integers(2**63)))
    changed = condition.changed  # a memory's own biases hold unless the condition asks for others
    fields = {"u": "pop_bias", "d": "push_bias", "i": "buffer_bias", "o": "buffer_bias"}
    biases = {head: field for head, field in fields.items() if head in network.cell.heads.sizes}
    network.reset_parameters(
        generator, {head: changed[field] for head, field in biases.items() if field in changed}
    )
    if condition.weight_width != 1:
        with torch.no_grad():
            for parameter in network.parameters():
                if parameter.ndim > 1:  # biases, and scales such as a LayerNorm's, stay
                    parameter.mul_(condition.weight_width)
    return network.to(device)
