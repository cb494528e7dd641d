"""Delétang et al. 2023, "Neural networks and the Chomsky hierarchy": what their tasks have in common.

A network reads a word of up to 40 symbols and then answers; its score is the accuracy at each length from 41
to 500, averaged over the lengths.
"""

import numpy as np

from softstack.lab.tasks.data import Split

SOURCE = "Delétang et al. 2023"
METRICS = ("lengths",)
TRAINED, LONGEST = 40, 500  # the lengths of words


def longest(split: Split) -> int:
    return LONGEST if split == "test" else TRAINED


def lengths(rng: np.random.Generator, n: int, split: Split, shortest: int = 1) -> list[int]:
    """Of n words: uniform."""
    low = TRAINED + 1 if split == "test" else shortest
    sizes: list[int] = rng.integers(low, longest(split) + 1, size=n).tolist()
    return sizes
