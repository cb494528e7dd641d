"""What a trial draws from its seed: strings, initial weights, and the order of its batches.

Each purpose has a random stream of its own, and trials share nothing, so the numbers of a trial do not
depend on who trains beside it.
"""

from collections.abc import Sequence

import numpy as np
import torch

from softstack.lab import tasks
from softstack.lab.tasks.data import SPLITS, Dataset, Example, Split, encode
from softstack.lab.training.conditions import Condition, Network, build

STREAMS = ("train", "dev", "test", "init", "order")


def stream(seed: int, purpose: str) -> np.random.Generator:
    return np.random.default_rng([seed, STREAMS.index(purpose)])


def examples(condition: Condition, seed: int, split: Split) -> list[Example]:
    size = {"train": condition.train_size, "dev": condition.dev_size, "test": condition.test_size}[split]
    return tasks.draw(tasks.find(condition.task), stream(seed, split), size, split)


def encoded(condition: Condition, strings: Sequence[Example], split: Split | None = None) -> Dataset:
    """Strings as the network of a condition reads them: those of a split, or of a file if there is none.

    A buffered network can tell how far strings are padded. A file is padded as the shortest split that is
    long enough.
    """
    task = tasks.find(condition.task)
    if not condition.buffered:
        return encode(task, strings).trimmed()
    longest = max(len(example.input) for example in strings)
    lengths = sorted(task.length(name) for name in ([split] if split else SPLITS))
    return encode(task, strings, next((length for length in lengths if length >= longest), longest))


def stacked(condition: Condition, seeds: Sequence[int], split: Split, device: torch.device | str) -> Dataset:
    """A split of each trial, (P, n, T), all padded alike."""
    strings = [example for seed in seeds for example in examples(condition, seed, split)]
    data = encoded(condition, strings, split)
    return Dataset(*(x.unflatten(0, (len(seeds), -1)).to(device) for x in data))


def initial(condition: Condition, seed: int, device: torch.device | str | None = None) -> Network:
    """The network with which a trial begins."""
    network = build(condition)
    generator = torch.Generator().manual_seed(int(stream(seed, "init").integers(2**63)))
    changed = condition.changed  # a memory's own biases hold unless the condition asks for others
    biases = {"u": "pop_bias", "i": "buffer_bias", "o": "buffer_bias"}
    network.reset_parameters(
        generator, {head: changed[field] for head, field in biases.items() if field in changed}
    )
    return network.to(device)
