"""DuSell and Chiang 2020: language models of context-free languages. A full stop begins and ends each string.

marked_reversal    w # w^R
    input    . 0 1 # 1 0
    target   0 1 # 1 0 .
unmarked_reversal  w w^R
padded_reversal    w a^p w^R, where a is 0 or 1
dyck_2_model       two kinds of brackets
hardest_cfl        Greibach's: `x,y,z;x,y,z;` with decoys x and z, whose y's make `$` and a Dyck-2 string
    input    . , $ ( ) , ;
    target   , $ ( ) , ; .

The length is uniform over those from 40 to 80 that have strings, and a string is as likely among those of its
length as their PCFG has it; test strings are drawn in the same way. The metric is the cross-entropy per
symbol, the full stop included, above that of the source on the same strings: no network is below it but by
chance. Of a longer string, the source's surprisal is that among the strings of its length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np

from softstack.errors import BadInput
from softstack.formal.weighted import Weighted
from softstack.lab.tasks.data import Example, Split

END = "."
SHORTEST, LONGEST = 40, 80


def going_on(mean: float) -> float:
    """The probability of one more, of which there are then so many on average."""
    return mean / (mean + 1)


@dataclass(frozen=True)
class LanguageModel:
    name: str
    letters: tuple[str, ...]
    weighted: Weighted

    source = "DuSell and Chiang 2020"
    padding = "_"
    loss = "sum"
    metrics = ("nats",)

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self.letters, END)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.inputs

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (*self.inputs, self.padding)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Those that have strings, without the full stop."""
        return tuple(length for length in range(SHORTEST, LONGEST + 1) if self.weighted.total(length))

    def length(self, split: Split) -> int:
        return LONGEST + 1

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        return [self.weighted.draw(rng, int(length)) for length in rng.choice(self.lengths, n)]

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        lengths = range(max(1, length - 1), max(1, length - 5), -1)
        longest = next((k for k in lengths if self.weighted.total(k)), None)
        if longest is None:
            raise BadInput(f"{self.name} has no string of {length} symbols, or a few less: ask for more")
        return self.weighted.draw(rng, longest)

    def example(self, symbols: tuple[str, ...]) -> Example:
        word = self._word(symbols)
        return Example((END, *word), (*word, END))

    def surprisals(self, strings: Sequence[tuple[str, ...]]) -> list[float]:
        """The nats that the source needs for each string and its full stop."""
        words = [self._word(symbols) for symbols in strings]
        surprisals = []
        for word, weight in zip(words, self.weighted.weigh(words), strict=True):
            if not weight:
                raise BadInput(f"{' '.join(word)!r} is not a string of {self.name}: it has no probability")
            nats = log(self.weighted.total(len(word))) - log(weight)
            surprisals.append(nats + (log(len(self.lengths)) if len(word) in self.lengths else 0))
        return surprisals

    def _word(self, symbols: tuple[str, ...]) -> tuple[str, ...]:
        word = symbols[1:] if symbols[:1] == (END,) else symbols
        if END in word or not word:
            raise BadInput(f"{' '.join(symbols)!r} is no string: a full stop may stand only at its beginning")
        return word


BITS = ("0", "1")
_CONTENT = going_on(60)  # 60 symbols on average before they are reversed, and 30 in between
_PADDING = going_on(30)
REVERSED = [(_CONTENT / 2, f"{bit} S {bit}") for bit in BITS]

MARKED_REVERSAL = LanguageModel(
    "marked_reversal", (*BITS, "#"), Weighted.of({"S": [*REVERSED, (1 - _CONTENT, "#")]})
)
UNMARKED_REVERSAL = LanguageModel(
    "unmarked_reversal", BITS, Weighted.of({"S": [*REVERSED, (1 - _CONTENT, "")]})
)
PADDED_REVERSAL = LanguageModel(
    "padded_reversal",
    BITS,
    Weighted.of(
        {
            "S": [*REVERSED, *(((1 - _CONTENT) / 2, f"T{bit}") for bit in BITS)],
            **{f"T{bit}": [(_PADDING, f"{bit} T{bit}"), (1 - _PADDING, "")] for bit in BITS},
        }
    ),
)

PAIRS = (("(", ")"), ("[", "]"))
_SPLIT, _NEST = going_on(1), going_on(39)  # a nest is 40 deep on average
DYCK_2_MODEL = LanguageModel(
    "dyck_2_model",
    ("(", ")", "[", "]"),
    Weighted.of(
        {
            "S": [(_SPLIT, "S T"), (1 - _SPLIT, "T")],
            "T": [(_NEST / 2, f"{a} S {b}") for a, b in PAIRS]
            + [((1 - _NEST) / 2, f"{a} {b}") for a, b in PAIRS],
        }
    ),
)

_COMMAS, _SHORT, _LONG, _CUT = going_on(0.5), going_on(0.5), going_on(1), 0.25
_SPLITS, _NESTS = going_on(1.5), going_on(3)
HARDEST_CFL = LanguageModel(
    "hardest_cfl",
    ("(", ")", "[", "]", ",", ";", "$"),
    Weighted.of(
        {
            "All": [(1, "R $ Q S L ;")],
            "L": [(1, "More , U")],  # decoys to the right of what counts, and to its left
            "More": [(_COMMAS, ", V More"), (1 - _COMMAS, "")],
            "R": [(1, "U , Less")],
            "Less": [(_COMMAS, "Less V ,"), (1 - _COMMAS, "")],
            "U": [(_SHORT, "W U"), (1 - _SHORT, "")],
            "V": [(_LONG, "W V"), (1 - _LONG, "W")],
            "W": [(1 / 5, symbol) for symbol in ("(", ")", "[", "]", "$")],
            "Q": [(_CUT, "L ; R"), (1 - _CUT, "")],  # what counts may be cut anywhere
            "S": [(_SPLITS, "S Q T"), (1 - _SPLITS, "T")],
            "T": [(_NESTS / 2, f"{a} Q S Q {b}") for a, b in PAIRS]
            + [((1 - _NESTS) / 2, f"{a} Q {b}") for a, b in PAIRS],
        }
    ),
)
