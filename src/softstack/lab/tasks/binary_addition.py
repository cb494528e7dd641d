"""Joulin and Mikolov 2015: add two binary numbers; the sum is asked for in reverse, lowest bit first.

input    1 0 1 + 1 = 0 1 1        101 + 1 = 110
target   _ _ _ _ _ 0 1 1 .

The numbers begin with 1, and have n bits together: less than 20 for training, up to 60 to test. A string is
right when the whole sum is. It is a stack's task but not one stack's: both numbers are wanted from the end.
"""

from dataclasses import dataclass

import numpy as np

from softstack.errors import BadInput
from softstack.lab.tasks.data import Example, Split


@dataclass(frozen=True)
class BinaryAddition:
    name: str = "binary_addition"

    source = "Joulin and Mikolov 2015"
    inputs = ("0", "1", "+", "=")
    outputs = ("0", "1", ".")
    alphabet = (*inputs, ".", "_")
    padding = "_"
    loss = "sum"
    metrics = ("strings",)

    def length(self, split: Split) -> int:
        """1 bit and n - 1 bits have the longest sum, of n bits."""
        return 2 * (60 if split == "test" else 19) + 2

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """The number of bits is uniform, and so is how many of them are the first number's."""
        totals = rng.integers(2, 61 if split == "test" else 20, size=n)
        return [self._sum(rng, int(total), int(rng.integers(1, total))) for total in totals]

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """The sum has about as many bits as the longer number."""
        share = rng.random()
        bits = max(2, int((length - 3) / (1 + max(share, 1 - share))))
        return self._sum(rng, bits, min(max(1, round(share * bits)), bits - 1))

    def example(self, symbols: tuple[str, ...]) -> Example:
        """Of two numbers and as much of their sum as there is."""
        text = "".join(symbols)
        first, plus, rest = text.partition("+")
        second, equals, digits = rest.partition("=")
        if not (plus and equals and first and second) or not set(first + second + digits) <= {"0", "1"}:
            raise BadInput(f"{' '.join(symbols)!r} is not a sum: write one like 1 0 1 + 1 =")
        answer = f"{int(first, 2) + int(second, 2):b}"[::-1] + "."
        if digits != answer[: len(digits)] or digits == answer:
            raise BadInput(f"the sum in {' '.join(symbols)!r} should be {' '.join(answer[:-1])}, in reverse")
        question = [None] * (len(symbols) - len(digits) - 1)
        return Example(symbols, (*question, *answer[: len(digits) + 1]))

    def _sum(self, rng: np.random.Generator, bits: int, first: int) -> tuple[str, ...]:
        words = ["1" + "".join("01"[b] for b in rng.integers(2, size=k - 1)) for k in (first, bits - first)]
        total = f"{sum(int(word, 2) for word in words):b}"[::-1]
        return (*words[0], "+", *words[1], "=", *total)
