"""§4.5 Subject-Auxiliary Agreement: say the next word, scored where that is `has` or `have`.

input    the lobsters that the lobster has devoured have
target   _   _        _    _   has     _   have     _
"""

from dataclasses import dataclass

import numpy as np

from softstack.formal.grammar import Grammar
from softstack.formal.machines import PDTS
from softstack.formal.sampling import sample_strings
from softstack.lab.tasks.data import Example, Split, next_symbols
from softstack.lab.tasks.page import computed, rules

GRAMMAR = Grammar.parse(
    """
    S -> NPsing has | NPplur have
    NP -> NPsing | NPplur
    NPsing -> the lobster (PP | Relsing)
    NPplur -> the lobsters (PP | Relplur)
    PP -> in NP
    Relsing -> that has VP | Relobj
    Relplur -> that have VP | Relobj
    Relobj -> that NPsing has devoured
    Relobj -> that NPplur have devoured
    VP -> slept | devoured NP
    """
)


@dataclass(frozen=True)
class Agreement:
    name: str = "agreement"

    inputs = ("the", "lobster", "lobsters", "in", "that", "has", "have", "slept", "devoured")
    outputs = ("has", "have")
    alphabet = (*inputs, "_")
    padding = "_"
    loss = "sum"
    source = "Hao et al. 2018"
    machine = PDTS["agreement"]
    grammar = GRAMMAR
    page = computed("next", range(4, 49, 4), 16, grammar=rules(GRAMMAR))

    def length(self, split: Split) -> int:
        return 49 if split == "test" else 23

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """Uniform over the distinct strings of depth 16 for training, 32 to test."""
        return sample_strings(GRAMMAR, rng, n, depth=32 if split == "test" else 16)

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Noun phrases within noun phrases, each kind of nesting as likely as the others."""
        plural = bool(rng.integers(2))
        front = ["the", _noun(plural)]
        back = [_auxiliary(plural)]  # innermost last
        while len(front) + len(back) + 5 <= length:
            kind = rng.integers(3)
            outer, plural = plural, bool(rng.integers(2))
            if kind == 0:
                front += ["in", "the", _noun(plural)]
            elif kind == 1:
                front += ["that", _auxiliary(outer), "devoured", "the", _noun(plural)]
            else:
                front += ["that", "the", _noun(plural)]
                back += ["devoured", _auxiliary(plural)]
        return (*front, *reversed(back))

    def example(self, symbols: tuple[str, ...]) -> Example:
        return next_symbols(symbols, self.outputs)


def _noun(plural: bool) -> str:
    return "lobsters" if plural else "lobster"


def _auxiliary(plural: bool) -> str:
    return "have" if plural else "has"
