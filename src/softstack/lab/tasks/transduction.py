"""Any pushdown transducer as a task: say what it writes, symbol by symbol, as an output buffer reads it off.

machine  Figure 4, right
input    ( [ ] ) (
target   ) ] ) ) _
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import chain

import numpy as np

from softstack.errors import BadInput
from softstack.formal.analysis import bound
from softstack.formal.compiler import written
from softstack.formal.running import transduced, walk
from softstack.formal.transducer import Transducer
from softstack.lab.tasks.data import Example, Split
from softstack.lab.tasks.page import Page, recorded


@dataclass(frozen=True)
class Transduction:
    """The task of a machine, whose text is the task's name in a Condition."""

    text: str

    loss = "step_mean"

    @cached_property
    def machine(self) -> Transducer:
        machine = Transducer.parse(self.text)
        bound(machine)  # refuses ε-moves without end
        if not machine.alphabet or not written(machine):
            raise BadInput(
                "a machine that reads nothing, or writes nothing, is no task: give it rules that do"
            )
        return machine

    @property
    def name(self) -> str:
        return "pdt-" + sha256(self.text.encode()).hexdigest()[:8]

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.machine.alphabet

    @property
    def outputs(self) -> tuple[str, ...]:
        return written(self.machine)

    @property
    def padding(self) -> str:
        return "_" if "_" not in self.inputs else "_" * (1 + max(map(len, self.inputs)))

    @property
    def alphabet(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.inputs, *self.outputs, self.padding]))

    @property
    def page(self) -> Page:
        return recorded(self, kind="machine")

    def length(self, split: Split) -> int:
        return 40 if split == "test" else 20

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """Random walks of 10 to 20 symbols, 20 to 40 to test; shorter where the machine can read no more."""
        longest, words, tries = self.length(split), list[tuple[str, ...]](), 0
        while len(words) < n:
            word = walk(self.machine, rng, int(rng.integers(longest // 2, longest + 1)))
            tries += 1
            if any(self.example(word).target):
                words.append(word)
            elif tries > 100 * (len(words) + 1):
                raise BadInput(
                    f"the machine of {self.name} hardly ever writes: random walks give no examples"
                )
        return words

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        word = walk(self.machine, rng, length)
        if not word:
            raise BadInput(f"the machine of {self.name} reads nothing: there are no strings of any length")
        return word

    def example(self, symbols: tuple[str, ...]) -> Example:
        whole = self.whole(symbols)
        return Example(symbols, whole.target[: len(symbols)])

    def whole(self, symbols: tuple[str, ...]) -> Example:
        """With all that the machine writes, which may be more than it reads: padding is read meanwhile."""
        output = list(chain.from_iterable(transduced(self.machine, symbols)))
        return Example(symbols, (*output, *[None] * (len(symbols) - len(output)))).padded(self.padding)


@lru_cache(maxsize=64)
def of_text(text: str) -> Transduction:
    return Transduction(text)
