"""Weighted grammars beside their definition: a sum over derivations, written as a recursion."""

import math
from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pytest

from softstack.errors import BadInput
from softstack.formal.weighted import Weighted

GRAMMARS = {
    "coin": {"S": [(0.75, "a S"), (0.25, "a")]},
    "brackets": {"S": [(0.2, "( S )"), (0.3, "( )"), (0.5, "S S")]},  # ambiguous
    "three": {"S": [(0.5, "A x A b A y"), (0.5, "A")], "A": [(0.6, "a"), (0.3, ""), (0.1, "x A")]},
    "palindromes": {"S": [(0.3, "0 S 0"), (0.3, "1 S 1"), (0.4, "T")], "T": [(0.7, "0 T"), (0.3, "")]},
}


def weighing(rules):
    """The weight of the derivations of a string from a sequence of symbols."""
    shortest = dict.fromkeys(rules, 100)

    def least(symbols):
        return sum(shortest.get(symbol, 1) for symbol in symbols)

    for _ in rules:
        shortest = {name: min(least(body.split()) for _, body in rules[name]) for name in rules}

    @cache
    def weight(symbols, string):
        if not symbols or least(symbols) > len(string):
            return float(not symbols and not string)
        first, rest = symbols[0], symbols[1:]
        if first not in rules:
            return weight(rest, string[1:]) if string[0] == first else 0.0
        return math.fsum(
            w * weight(tuple(body.split()), string[:k]) * weight(rest, string[k:])
            for k in range(least([first]), len(string) - least(rest) + 1)
            for w, body in rules[first]
        )

    return weight


@pytest.mark.parametrize("name", GRAMMARS)
def test_weights_are_sums_over_derivations(name):
    rules = GRAMMARS[name]
    grammar, weight = Weighted.of(rules), weighing(rules)
    for length in range(7):
        strings = list(product(grammar.grammar.terminals, repeat=length))
        expected = [weight((next(iter(rules)),), string) for string in strings]
        assert grammar.weigh(strings) == pytest.approx(expected, rel=1e-12, abs=1e-300)
        assert grammar.total(length) == pytest.approx(math.fsum(expected), rel=1e-12)


@pytest.mark.parametrize(("name", "length"), [("brackets", 6), ("three", 4), ("palindromes", 5)])
def test_strings_are_drawn_by_their_weight(name, length):
    grammar, rng = Weighted.of(GRAMMARS[name]), np.random.default_rng(0)
    drawn = Counter(grammar.draw(rng, length) for _ in range(4000))
    strings = list(product(grammar.grammar.terminals, repeat=length))
    weights = grammar.weigh(strings)
    for string, weight in zip(strings, weights, strict=True):
        p = weight / grammar.total(length)
        assert abs(drawn[string] - 4000 * p) <= 4.5 * math.sqrt(4000 * p * (1 - p))


def test_lengths_are_drawn_by_their_weight():
    grammar, rng = Weighted.of(GRAMMARS["coin"]), np.random.default_rng(0)
    drawn = Counter(len(grammar.draw_within(rng, 2, 4)) for _ in range(3700))
    for length, expected in ((2, 1600), (3, 1200), (4, 900)):
        assert abs(drawn[length] - expected) < 130


def test_long_strings():
    """Longer than those whose choices are kept, and tables that grow from the ones before."""
    grammar, rng = Weighted.of(GRAMMARS["brackets"]), np.random.default_rng(0)
    before = grammar.total(10)
    word = grammar.draw(rng, 600)
    assert len(word) == 600
    depths = np.cumsum([1 if symbol == "(" else -1 for symbol in word])
    assert depths.min() == depths[-1] == 0
    assert grammar.total(10) == before


def test_strings_of_several_lengths_and_strangers():
    grammar = Weighted.of(GRAMMARS["coin"])
    assert grammar.weigh([("a", "a"), ("b",), ("a",), ()]).tolist() == [0.75 * 0.25, 0, 0.25, 0]


def test_what_is_refused():
    with pytest.raises(BadInput, match="no string has length 3"):
        Weighted.of(GRAMMARS["brackets"]).draw(np.random.default_rng(0), 3)
    with pytest.raises(BadInput, match="S derives itself"):
        Weighted.of({"S": [(0.5, "S S"), (0.5, "")]}).total(2)
