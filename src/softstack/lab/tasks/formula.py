"""§4.4 Boolean Formula Evaluation: in reverse Polish notation, the value of the formula that ends here.

input    T F | T &
target   1 0 1 1 1
"""

from dataclasses import dataclass

import numpy as np

from softstack.errors import BadInput
from softstack.formal.grammar import Grammar
from softstack.formal.machines import PDTS
from softstack.formal.sampling import sample_strings
from softstack.lab.tasks.data import Example, Split
from softstack.lab.tasks.page import computed, rules

GRAMMAR = Grammar.parse(
    """
    S -> S S '|' | S S &
    S -> 'T' | 'F'
    """
)


@dataclass(frozen=True)
class Formula:
    name: str = "formula"

    inputs = ("T", "F", "&", "|")
    outputs = ("0", "1")
    alphabet = (*inputs, *outputs, "_")
    padding = "_"
    loss = "step_mean"
    source = "Hao et al. 2018"
    version = 2  # the first was trained on the sum, which the authors did not do
    machine = PDTS["formula"]
    grammar = GRAMMAR
    page = computed("formula", range(2, 9), 5, grammar=rules(GRAMMAR))

    def length(self, split: Split) -> int:
        return 31 if split == "test" else 15

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """Uniform over the strings of at most 4 nested S for training, 5 to test.

        The paper's depths, 6 and 7, count a level on top that the grammar as printed does not have.
        """
        return sample_strings(GRAMMAR, rng, n, depth=6 if split == "test" else 5)

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Uniform over the shapes of formulas of this length, or one more: of the rotations of n values and
        n - 1 operators exactly one is a formula (the cycle lemma)."""
        n = length // 2 + 1
        values = np.array(["T", "F"])[rng.integers(2, size=n)]
        operators = np.array(["&", "|"])[rng.integers(2, size=n - 1)]
        string = rng.permutation(np.concatenate([values, operators]))
        height = np.cumsum(np.where(np.isin(string, ["T", "F"]), 1, -1))
        # begin behind the last lowest point: from there the height stays above 0
        lowest = len(height) - 1 - int(np.argmin(height[::-1]))
        return tuple(np.roll(string, -(lowest + 1)).tolist())

    def example(self, symbols: tuple[str, ...]) -> Example:
        values: list[bool] = []
        target = []
        for position, symbol in enumerate(symbols, 1):
            if symbol in ("&", "|"):
                if len(values) < 2:
                    raise BadInput(
                        f"symbol {position} of {' '.join(symbols)!r} is {symbol!r} with fewer than two "
                        "formulas before it: write formulas in reverse Polish notation, as in 'T F | T &'"
                    )
                right, left = values.pop(), values.pop()
                values.append(left and right if symbol == "&" else left or right)
            else:
                values.append(symbol == "T")
            target.append("1" if values[-1] else "0")
        return Example(symbols, tuple(target))
