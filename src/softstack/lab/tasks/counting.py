"""Joulin and Mikolov 2015, "counting": say the next symbol, scored where it can be known.

    a^n b^n            input    a a a b b b        after the last symbol comes the first of another string
                       target   _ _ _ b b a
    a^n b^m c^(n+m)    input    a b b c c c
                       target   _ _ _ c c a

They train on n < 20 (and n + m < 20), test on n up to 60, and count the n for which all that can be known is
said right. Theirs is one long text in which string follows string; here each string is an example.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from softstack.errors import BadInput
from softstack.formal.machines import counter
from softstack.formal.transducer import Transducer
from softstack.lab.tasks.data import Example, Split

LONGEST_TRAINED, LONGEST = 19, 60
RAISED = str.maketrans("23nm+", "²³ⁿᵐ⁺")


@dataclass(frozen=True)
class Counting:
    """Runs of letters, each so many times n, or m: `runs` has (letter, times n, times m) for each."""

    name: str
    runs: tuple[tuple[str, int, int], ...]

    source = "Joulin and Mikolov 2015"
    padding = "_"
    loss = "sum"
    metrics = ("strings",)
    repeats = True  # there are 60 test strings of a^n b^n

    @property
    def title(self) -> str:
        """As it is written: aⁿbᵐcⁿ⁺ᵐ."""
        written = ""
        for letter, *times in self.runs:
            terms = [f"{k if k > 1 else ''}{name}" for k, name in zip(times, "nm", strict=True) if k]
            written += letter + "+".join(terms).translate(RAISED)
        return written

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(letter for letter, _, _ in self.runs)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.inputs

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (*self.inputs, self.padding)

    @property
    def free(self) -> int:
        """How many numbers a string has: only n, or n and m. As many runs can have any length."""
        return 2 if any(m for _, _, m in self.runs) else 1

    @cached_property
    def machine(self) -> Transducer | None:
        """Where one run is to be foretold: with two, the stack would have to be counted twice."""
        if len(self.runs) != self.free + 1:
            return None
        return counter(self.inputs[: self.free], self.inputs[-1], max(self.runs[-1][1:]), self.padding)

    def length(self, split: Split) -> int:
        return len(self._string(*self._numbers(LONGEST if split == "test" else LONGEST_TRAINED)[0]))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """n, or n + m, is uniform over what there is, up to 19 for training and 60 to test. The test strings
        have each as often as any other, or once more."""
        totals = np.arange(self.free, 1 + (LONGEST if split == "test" else LONGEST_TRAINED))
        if split == "test":
            rounds = [rng.permutation(totals) for _ in range(-(-n // len(totals)))]
            numbers = rng.permutation(np.concatenate(rounds)[:n]) if n else totals[:0]
        else:
            numbers = rng.choice(totals, n)
        return [self._drawn(rng, int(total)) for total in numbers]

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        times = sum(n for _, n, _ in self.runs)  # a string of two numbers has twice their sum
        return self._drawn(rng, max(self.free, length // times))

    def example(self, symbols: tuple[str, ...]) -> Example:
        """Of a whole string, or of the beginning of one."""
        counts = [(letter, len(list(run))) for letter, run in groupby(symbols)]
        complete = len(counts) > self.free
        whole = self._string(*(count for _, count in counts[: self.free])) if complete else symbols
        if [a for a, _ in counts] != list(self.inputs[: len(counts)]) or whole[: len(symbols)] != symbols:
            raise BadInput(f"{' '.join(symbols)!r} is not the beginning of a string of {self.name}")
        first = sum(count for _, count in counts[: self.free])
        following = (*whole, self.inputs[0])[1 : len(symbols) + 1] if complete else ()
        return Example(symbols, (*[None] * min(first, len(symbols)), *following[first:]))

    def _drawn(self, rng: np.random.Generator, total: int) -> tuple[str, ...]:
        numbers = self._numbers(total)
        return self._string(*numbers[rng.integers(len(numbers))])

    def _numbers(self, total: int) -> list[tuple[int, int]]:
        """n and m that add up to it."""
        return [(total, 0)] if self.free == 1 else [(n, total - n) for n in range(1, total)]

    def _string(self, n: int, m: int = 0) -> tuple[str, ...]:
        return tuple(a for a, times_n, times_m in self.runs for _ in range(times_n * n + times_m * m))
