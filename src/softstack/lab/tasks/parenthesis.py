"""§4.3 Parenthesis Prediction: say the next symbol, scored where that is a closing one.

input    [ ( [ ] ) ] ( )
target   _ _ ] ) ] _ ) _
"""

from dataclasses import dataclass

import numpy as np

from softstack.formal.grammar import Grammar
from softstack.formal.sampling import sample_derivations, sample_strings
from softstack.lab.tasks.data import Example, Split

GRAMMAR = Grammar.parse(
    """
    S -> S T | T S | T
    T -> ( T ) | ( )
    T -> [ T ] | [ ]
    """
)


@dataclass(frozen=True)
class Parenthesis:
    name: str = "parenthesis"

    inputs = ("(", ")", "[", "]")
    outputs = (")", "]")
    alphabet = (*inputs, "_")
    padding = "_"
    loss = "sum"

    def length(self, split: Split) -> int:
        return 110 if split == "test" else 20

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """Uniform over the distinct strings of depth 6 for training; over derivations of depth 12 to test."""
        if split == "test":
            return sample_derivations(GRAMMAR, rng, n, depth=12)
        return sample_strings(GRAMMAR, rng, n, depth=6)

    def example(self, symbols: tuple[str, ...]) -> Example:
        following = (*symbols[1:], None)
        return Example(symbols, tuple(s if s in self.outputs else None for s in following))
