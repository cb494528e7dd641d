"""§4.1 String Reversal: read w, then say it backwards.

    input    1 0 0 1 1 1 # # # # # #
    target   _ _ _ _ _ _ 1 1 1 0 0 1

§6 has a variant in which only some symbols are to be said; the others are read and forgotten:

    input    2 0 3 1 1 # # # # #
    target   _ _ _ _ _ 1 1 0 _ _

The paper does not say how these are drawn. Here all symbols are equally likely, so a string may have none
that is to be said: then nothing is scored in it.
"""

from dataclasses import dataclass

import numpy as np

from softstack.formal.machines import reversal
from softstack.formal.transducer import Transducer
from softstack.lab.tasks.answering import answered, word_of
from softstack.lab.tasks.data import Example, Split, uniform
from softstack.lab.tasks.page import computed


@dataclass(frozen=True)
class Reversal:
    name: str = "reversal"
    kept: tuple[str, ...] = ("0", "1")
    dropped: tuple[str, ...] = ()

    padding = "#"
    loss = "step_mean"
    source = "Hao et al. 2018"
    page = computed("reversal", range(2, 37, 2), 12)

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (*self.kept, *self.dropped, "#")

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.alphabet

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.kept

    @property
    def machine(self) -> Transducer:
        return reversal(self.kept, self.dropped)

    def length(self, split: Split) -> int:
        return 48 if split == "test" else 24

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """Lengths int(gauss(10, 2)) within 1 to 12 for training, int(gauss(20, 4)) within 1 to 24 to test."""
        mean, spread, most = (20, 4, 24) if split == "test" else (10, 2, 12)
        lengths = rng.normal(mean, spread, n).astype(int).clip(1, most)
        symbols = np.array([*self.kept, *self.dropped])
        letters = symbols[rng.integers(len(symbols), size=lengths.sum())].tolist()
        ends = lengths.cumsum().tolist()
        return [tuple(letters[end - k : end]) for k, end in zip(lengths.tolist(), ends, strict=True)]

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Half as many uniform symbols: the other half of the length are #s."""
        return uniform(rng, (*self.kept, *self.dropped), max(1, length // 2))

    def example(self, symbols: tuple[str, ...]) -> Example:
        """w, or w and its #s, with as many #s after w as it has symbols."""
        word = word_of(symbols, "string to reverse")
        return answered(symbols, [symbol for symbol in reversed(word) if symbol in self.kept], len(word))
