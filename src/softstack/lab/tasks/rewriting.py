"""Read a word, then say its symbols again, in another order.

Grefenstette et al. 2015: a word of 8 to 64 of 128 symbols for training and 65 to 128 to test, and a full stop
after the answer. In their networks each symbol of the answer is fed back as input; here #s are read.

    copy               input    a1 a2 a3 # # # #
                       target   _  _  _  a1 a2 a3 .
    long_reversal      input    a1 a2 a3 # # # #
                       target   _  _  _  a3 a2 a1 .
    bigram_flipping    input    a1 a2 a3 a4 # # # # #
                       target   _  _  _  _  a2 a1 a4 a3 .

Delétang et al. 2023: bits, 1 to 40 for training and 41 to 500 to test.

    reverse_string     input    0 0 1 # # #
                       target   _ _ _ 1 0 0

Here: bits as short as those of the paper's reversal, for a queue what that is for a stack.

    short_copy         input    0 0 1 # # #
                       target   _ _ _ 0 0 1
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softstack.errors import BadInput
from softstack.formal.machines import reversal
from softstack.formal.transducer import Transducer
from softstack.lab.tasks import hierarchy
from softstack.lab.tasks.answering import MARK, answered, word_of
from softstack.lab.tasks.data import Example, Split, uniform

LETTERS = tuple(f"a{k}" for k in range(1, 129))


@dataclass(frozen=True)
class Rewriting:
    name: str
    order: str  # "same", "reversed", or "pairs": each two symbols change places
    letters: tuple[str, ...] = LETTERS
    trained: tuple[int, int] = (8, 64)  # the shortest and the longest word
    tested: tuple[int, int] = (65, 128)
    end: str = "."
    source: str = "Grefenstette et al. 2015"
    metrics: tuple[str, ...] = ("strings", "before_error")

    padding = MARK
    loss = "sum"

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self.letters, MARK)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*self.letters, self.end) if self.end else self.letters

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (*self.outputs, MARK)

    @cached_property
    def machine(self) -> Transducer | None:
        return reversal(self.letters, end=self.end) if self.order == "reversed" else None

    @property
    def step(self) -> int:
        """Words have a multiple of this many symbols."""
        return 2 if self.order == "pairs" else 1

    def length(self, split: Split) -> int:
        return 2 * (self.tested if split == "test" else self.trained)[1] + len(self.end)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """Uniform symbols, of a length that is uniform over those that there are."""
        shortest, longest = self.tested if split == "test" else self.trained
        multiples = rng.integers(-(-shortest // self.step), longest // self.step + 1, size=n)
        return [uniform(rng, self.letters, self.step * int(k)) for k in multiples]

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Half of it, and the other half are #s."""
        return uniform(rng, self.letters, self.step * max(1, (length - len(self.end)) // (2 * self.step)))

    def example(self, symbols: tuple[str, ...]) -> Example:
        word = word_of(symbols)
        if self.order == "pairs":
            if len(word) % 2:
                raise BadInput(f"{' '.join(word)!r} has a symbol without another to change places with")
            answer = [symbol for k in range(0, len(word), 2) for symbol in (word[k + 1], word[k])]
        else:
            answer = list(reversed(word) if self.order == "reversed" else word)
        return answered(symbols, [*answer, *filter(None, [self.end])])


REVERSE_STRING = Rewriting(
    "reverse_string",
    "reversed",
    letters=("0", "1"),
    trained=(1, hierarchy.TRAINED),
    tested=(hierarchy.TRAINED + 1, hierarchy.LONGEST),
    end="",
    source=hierarchy.SOURCE,
    metrics=hierarchy.METRICS,
)
SHORT_COPY = Rewriting(
    "short_copy",
    "same",
    letters=("0", "1"),
    trained=(1, 12),
    tested=(13, 24),
    end="",
    source="here",
    metrics=("symbols",),
)
