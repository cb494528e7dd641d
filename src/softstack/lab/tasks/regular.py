"""Delétang et al. 2023, regular tasks: read a word, then say in which state an automaton is.

parity             input    1 0 1 1 #        is the number of 1s odd?
                   target   _ _ _ _ 1
even_pairs         input    0 0 1 1 0 #      is the number of 01s and 10s odd?
                   target   _ _ _ _ _ 0
cycle_navigation   input    right right stay left #      where on a circle of five are we?
                   target   _     _     _    _    1
"""

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from softstack.errors import BadInput
from softstack.formal.machines import answering
from softstack.formal.transducer import Transducer
from softstack.lab.tasks import hierarchy
from softstack.lab.tasks.answering import MARK, answered, word_of
from softstack.lab.tasks.data import Example, Split, uniform


@dataclass(frozen=True)
class Regular:
    """moves[state][letter] is the next state, answers[state] what is to be said of it; 0 is the first."""

    name: str
    letters: tuple[str, ...]
    moves: tuple[tuple[int, ...], ...]
    answers: tuple[str, ...]

    source = hierarchy.SOURCE
    padding = MARK
    loss = "sum"
    metrics = hierarchy.METRICS

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self.letters, MARK)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.answers))

    @property
    def alphabet(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.letters, *self.outputs, MARK]))

    @cached_property
    def machine(self) -> Transducer:
        return answering(self.moves, self.letters, self.answers, MARK)

    def length(self, split: Split) -> int:
        return hierarchy.longest(split) + 1

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """Words of uniform symbols, of uniform lengths."""
        return [uniform(rng, self.letters, length) for length in hierarchy.lengths(rng, n, split)]

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        return uniform(rng, self.letters, max(1, length - 1))

    def example(self, symbols: tuple[str, ...]) -> Example:
        word = word_of(symbols)
        if strangers := [symbol for symbol in word if symbol not in self.letters]:
            raise BadInput(f"{strangers[0]!r} is not one of {' '.join(self.letters)}")
        state = reduce(lambda state, symbol: self.moves[state][self.letters.index(symbol)], word, 0)
        return answered(symbols, self.answers[state : state + 1])


PARITY = Regular("parity", ("0", "1"), ((0, 1), (1, 0)), ("0", "1"))
# The number of changes is even where the last symbol is the first: the states are none, 00, 01, 10 and 11.
EVEN_PAIRS = Regular(
    "even_pairs", ("0", "1"), ((1, 4), (1, 2), (1, 2), (3, 4), (3, 4)), ("0", "0", "1", "1", "0")
)
CYCLE_NAVIGATION = Regular(
    "cycle_navigation",
    ("left", "stay", "right"),
    tuple(((place - 1) % 5, place, (place + 1) % 5) for place in range(5)),
    ("0", "1", "2", "3", "4"),
)
