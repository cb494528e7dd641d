"""Dyck-k: after each bracket say which bracket may close, or a full stop where none is open.

input    ( [ ] ) ( )
target   ) ] ) . ) .

What may come next is that bracket and any opening one, so that this says all that there is to say: Suzgun et
al. 2019 ask for the set. A string is right if all of it is.

They draw strings from S -> (i S )i | S S | ε, with the probabilities 1/2 (shared by the k brackets), 1/4 and
1/4, of 2 to 50 symbols for training and 52 to 100 to test. Two kinds are walks instead, in which each bracket
opens or closes with probability 1/2 where it may do both, drawn among the walks of a length:

- Dyck-(k, m) of Hewitt et al. 2020: at most m brackets are open at once. They count an end symbol: their
  lengths of up to 84 for training and 85 to 168 to test (if m = 3; if m = 5, 180 and 181 to 360) are 2 to 82
  and 86 to 166 brackets. Theirs end with probability 1/2 wherever nothing is open; here lengths are uniform.
- Strings that are deeper to test than in training, and no longer, as in Skachkova et al. 2018.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from math import sqrt

import numpy as np

from softstack.errors import BadInput
from softstack.formal.machines import dyck
from softstack.formal.transducer import Transducer
from softstack.formal.weighted import Weighted
from softstack.lab.tasks.data import Example, Split

END = "."
BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"), *((f"({k}", f"){k}") for k in range(5, 129)))

# Suzgun's grammar, with one kind of bracket and without empty strings inside, which it derives with the
# probability e = 1/4 + e²/4. S -> S S is S -> S with probability e/2; to do that any number of times before
# anything else multiplies what comes then by 1 / (1 - e/2).
_EMPTY = 2 - sqrt(3)
_AGAIN = 1 / (1 - _EMPTY / 2)
SHAPES = Weighted.of({"S": [(_AGAIN / 2, "( S )"), (_AGAIN * _EMPTY / 2, "( )"), (_AGAIN / 4, "S S")]})


@dataclass(frozen=True)
class Dyck:
    name: str
    kinds: int  # of brackets
    trained: tuple[int, int] = (2, 50)  # the shortest and the longest string
    tested: tuple[int, int] = (52, 100)
    depth: int = 0  # the most brackets that are open at once in training; 0: any number
    tested_depth: int = 0  # the same to test, where all strings are then deeper; 0: as in training
    source: str = "Suzgun et al. 2019"

    padding = "_"
    loss = "sum"
    metrics = ("strings",)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        return BRACKETS[: self.kinds]

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(symbol for pair in self.pairs for symbol in pair)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*(closing for _, closing in self.pairs), END)

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (*self.inputs, END, self.padding)

    @cached_property
    def machine(self) -> Transducer:
        return dyck(self.pairs, blank=END)

    def length(self, split: Split) -> int:
        return (self.tested if split == "test" else self.trained)[1]

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """Suzgun's strings as likely as in their grammar; walks of a uniform length."""
        low, high = self.tested if split == "test" else self.trained
        if not self.depth:
            return [self._bracketed(rng, SHAPES.draw_within(rng, low, high)) for _ in range(n)]
        most = (self.tested_depth or self.depth) if split == "test" else self.depth
        least = self.depth + 1 if split == "test" and self.tested_depth else 0
        halves = rng.integers(max(low // 2, least), high // 2 + 1, size=n)
        return [self._bracketed(rng, deep_walk(rng, 2 * int(half), least, most)) for half in halves]

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        length = max(2, length - length % 2)
        return self._bracketed(rng, walk(rng, length, self.depth) if self.depth else SHAPES.draw(rng, length))

    def example(self, symbols: tuple[str, ...]) -> Example:
        closings, open_brackets, target = dict(self.pairs), list[str](), list[str]()
        for position, symbol in enumerate(symbols, 1):
            if symbol in closings:
                open_brackets.append(closings[symbol])
            elif open_brackets[-1:] == [symbol]:
                open_brackets.pop()
            else:
                raise BadInput(
                    f"symbol {position} of {' '.join(symbols)!r}, {symbol}, closes a bracket that is not open"
                )
            target.append(open_brackets[-1] if open_brackets else END)
        return Example(symbols, tuple(target))

    def _bracketed(self, rng: np.random.Generator, shape: tuple[str, ...]) -> tuple[str, ...]:
        """With a uniform kind for each pair of brackets."""
        kinds = iter(rng.integers(self.kinds, size=len(shape) // 2))
        open_kinds, word = list[int](), list[str]()
        for symbol in shape:
            if symbol == "(":
                open_kinds.append(int(next(kinds)))
                word.append(self.pairs[open_kinds[-1]][0])
            else:
                word.append(self.pairs[open_kinds.pop()][1])
        return tuple(word)


def walk(rng: np.random.Generator, length: int, most: int) -> tuple[str, ...]:
    """Of the walks with at most `most` open brackets, one of this length: up or down with probability 1/2,
    up where nothing is open and down where as much is open as may be."""
    chances = _rising(1 << length.bit_length(), most)
    height, shape = 0, list[str]()
    for left, chance in zip(range(length - 1, -1, -1), rng.random(length), strict=True):
        rises = bool(chance < chances[left, height])
        height += 1 if rises else -1
        shape.append("(" if rises else ")")
    return tuple(shape)


def deep_walk(rng: np.random.Generator, length: int, least: int, most: int) -> tuple[str, ...]:
    """One that has `least` open brackets somewhere."""
    while depth_of(shape := walk(rng, length, most)) < least:
        pass
    return shape


def depth_of(shape: tuple[str, ...]) -> int:
    return int(np.cumsum([1 if symbol == "(" else -1 for symbol in shape]).max())


@cache
def _rising(length: int, most: int) -> np.ndarray:
    """(length, most + 1): the chance that a bracket opens, by the brackets left after it and the height."""
    ends = np.eye(1, most + 1)[0]  # how likely a walk from each height is at 0 after the steps that are left
    chances = np.zeros((length, most + 1))
    up = np.where(np.arange(most + 1) == 0, 1.0, 0.5)
    up[most] = 0
    for left in range(length):
        rise = up * np.append(ends[1:], 0)
        fall = (1 - up) * np.append(0, ends[:-1])
        ends = rise + fall
        chances[left] = np.divide(rise, ends, out=np.zeros(most + 1), where=ends > 0)
        ends /= ends.max()
    return chances
