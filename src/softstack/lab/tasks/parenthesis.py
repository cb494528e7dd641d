"""§4.3 Parenthesis Prediction: say the next symbol, scored where that is a closing one.

input    [ ( [ ] ) ] ( )
target   _ _ ] ) ] _ ) _
"""

from dataclasses import dataclass

import numpy as np

from softstack.formal.grammar import Grammar
from softstack.formal.machines import dyck
from softstack.formal.sampling import sample_derivations, sample_strings
from softstack.lab.tasks.data import Example, Split, next_symbols
from softstack.lab.tasks.page import computed, rules

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
    source = "Hao et al. 2018"
    machine = dyck([("(", ")"), ("[", "]")], blank="_")
    grammar = GRAMMAR
    page = computed("next", range(3, 15), 6, grammar=rules(GRAMMAR))

    def length(self, split: Split) -> int:
        return 110 if split == "test" else 20

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """Uniform over the distinct strings of depth 6 for training; over derivations of depth 12 to test."""
        if split == "test":
            return sample_derivations(GRAMMAR, rng, n, depth=12)
        return sample_strings(GRAMMAR, rng, n, depth=6)

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Nests side by side, each of a depth that is uniform up to a quarter of the length."""
        string: list[str] = []
        while (left := (length - len(string)) // 2) > 0:
            depth = int(rng.integers(1, max(2, min(left, length // 4) + 1)))
            pairs = [("(", ")") if b else ("[", "]") for b in rng.integers(2, size=depth)]
            string += [a for a, _ in pairs] + [b for _, b in reversed(pairs)]
        return tuple(string)

    def example(self, symbols: tuple[str, ...]) -> Example:
        return next_symbols(symbols, self.outputs)
