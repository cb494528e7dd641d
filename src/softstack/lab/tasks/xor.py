"""§4.2 XOR Evaluation: the XOR of the symbols so far, without the most recent one if delayed.

input              1 1 0 1
cumulative         1 0 0 1
delayed            0 1 0 0
"""

from dataclasses import dataclass
from itertools import accumulate
from operator import xor

import numpy as np

from softstack.formal.machines import PDTS
from softstack.formal.transducer import Transducer
from softstack.lab.tasks.data import Example, Split, uniform
from softstack.lab.tasks.page import Page, computed


@dataclass(frozen=True)
class Xor:
    name: str = "xor"
    delay: int = 0

    inputs = ("0", "1")
    outputs = ("0", "1")
    alphabet = ("0", "1", "_")
    padding = "_"
    loss = "step_mean"
    source = "Hao et al. 2018"

    @property
    def machine(self) -> Transducer | None:
        return {0: PDTS["xor"], 1: PDTS["delayed_xor"]}.get(self.delay)

    @property
    def page(self) -> Page:
        return computed("xor", range(2, 37, 2), 12, delay=self.delay)

    def length(self, split: Split) -> int:
        return 24 if split == "test" else 12

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """12 uniform bits for training; 23 or 24 to test."""
        lengths = rng.integers(23, 25, size=n) if split == "test" else np.full(n, 12)
        return [uniform(rng, self.inputs, int(k)) for k in lengths]

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        return uniform(rng, self.inputs, length)

    def example(self, symbols: tuple[str, ...]) -> Example:
        parity = accumulate((int(symbol) for symbol in symbols), xor)
        shifted = ([0] * self.delay + list(parity))[: len(symbols)]
        return Example(symbols, tuple(str(bit) for bit in shifted))
