"""Delétang et al. 2023: what a stack holds in the end, from the top, and a full stop.

input    0 1 1 PUSH-0 POP POP # # # # # # #
target   _ _ _ _      _   _   1 0 . _ _ _ _

The first symbols are what the stack holds at the beginning, from the bottom. A POP from the empty stack does
nothing. There is room for a stack as high as the word is long.
"""

from dataclasses import dataclass

import numpy as np

from softstack.errors import BadInput
from softstack.formal.machines import stack_program
from softstack.lab.tasks import hierarchy
from softstack.lab.tasks.answering import MARK, answered, word_of
from softstack.lab.tasks.data import Example, Split, uniform

BITS = ("0", "1")
ACTIONS = ("POP", "PUSH-0", "PUSH-1")
END = "."


@dataclass(frozen=True)
class StackManipulation:
    name: str = "stack_manipulation"

    source = hierarchy.SOURCE
    inputs = (*BITS, *ACTIONS, MARK)
    outputs = (*BITS, END)
    alphabet = (*BITS, *ACTIONS, END, MARK)
    padding = MARK
    loss = "sum"
    metrics = hierarchy.METRICS
    machine = stack_program(BITS, MARK, END)

    def length(self, split: Split) -> int:
        return 2 * hierarchy.longest(split) + 1

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        return [self._word(rng, length) for length in hierarchy.lengths(rng, n, split)]

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Half of it, and the other half are #s."""
        return self._word(rng, max(1, (length - 1) // 2))

    def example(self, symbols: tuple[str, ...]) -> Example:
        word = word_of(symbols)
        stack = list[str]()
        begun = False
        for position, symbol in enumerate(word, 1):
            if symbol in BITS:
                if begun:
                    raise BadInput(f"symbol {position} of {' '.join(word)!r} comes after an action: use PUSH")
                stack.append(symbol)
                continue
            begun = True
            if symbol == "POP":
                del stack[-1:]
            else:
                stack.append(symbol.removeprefix("PUSH-"))
        return answered(symbols, [*reversed(stack), END], len(word) + 1)

    def _word(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """How many of the symbols are the first stack's is uniform: at least one, and not all if there are
        several. Symbols and actions are uniform."""
        first = int(rng.integers(1, max(2, length)))
        return uniform(rng, BITS, first) + uniform(rng, ACTIONS, length - first)
