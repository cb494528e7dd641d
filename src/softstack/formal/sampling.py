"""§4-5: exact counts of a grammar's derivations and strings, and uniform samples of either.

Depth is nltk's: a terminal has depth 1 and a tree is one deeper than its deepest child, so depth 6 means at
most 5 nested levels of nonterminals. (A node for ε has no child, and depth 1.)

    >>> count_derivations(parenthesis, depth=6), count_strings(parenthesis, depth=6)
    (51270, 31466)

A derivation is drawn by its rank: an integer below the number of derivations, whose quotients and remainders
choose the rules. A draw over distinct strings keeps such a derivation with probability exactly one in the
number that its string has. Tables make that fast: where a nonterminal has few strings within a depth, they
are listed once with their numbers of derivations, and looked up from then on.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import count

import numpy as np

from softstack.errors import BadInput
from softstack.formal.counting import Counts, Tables
from softstack.formal.grammar import BinaryForm, Grammar

String = tuple[str, ...]

TABLE_BUDGET = 1 << 17  # concatenations (of 100 symbols) spent on tables for sampling: some 50 ms
LIST_BUDGET = 1 << 22  # the same for listing every string: some seconds, and 500 MB
PATIENCE = 1000  # derivations drawn for each string kept, beyond which a sample of strings is given up
GLANCE = 20  # derivations after which it is given up if every string has more than HOPELESS of them
HOPELESS = 10**9


def count_derivations(grammar: Grammar, depth: int) -> int:
    """The number of derivation trees of at most this depth."""
    return _by_depth(grammar).row(_whole("depth", depth))[0]


def mean_length(grammar: Grammar, depth: int) -> float:
    """Of the strings of all derivation trees of at most this depth."""
    return _by_depth(grammar).lengths(_whole("depth", depth))[0]


def ends_before(grammar: Grammar, depth: int) -> bool:
    """Whether no derivation is as deep as this, or deeper. Nonterminals that nest in themselves give trees of
    more depths than there are nonterminals."""
    least = depth - 2 * len(grammar.rules) - 2
    return least > 0 and 0 < count_derivations(grammar, least) == count_derivations(grammar, depth)


def count_derivations_of_length(grammar: Grammar, length: int) -> int:
    """The number of derivation trees whose string has exactly this length."""
    return _by_length(grammar).row(_whole("length", length))[0]


def count_strings(grammar: Grammar, depth: int) -> int:
    """The number of distinct strings of at most this depth, found by listing them all."""
    return len(_all_strings(grammar, depth))


def enumerate_strings(grammar: Grammar, depth: int) -> Iterator[String]:
    """The distinct strings of at most this depth: shorter first, then in the order of `grammar.terminals`."""
    return (_decoded(grammar, w) for w in sorted(sorted(_all_strings(grammar, depth)), key=len))


def few_strings(grammar: Grammar, depth: int, most: int) -> list[String] | None:
    """The distinct strings of at most this depth; None if there are more than `most`, or if they cannot be
    listed quickly."""
    if listing := _tables(grammar).listing(0, _whole("depth", depth)):
        strings, _ = listing
        return [_decoded(grammar, w) for w in strings] if len(strings) <= most else None
    return None


def longest(grammar: Grammar, depth: int) -> int:
    """The length of the longest string of at most this depth; -1 if there is none."""
    return _tables(grammar).level(_whole("depth", depth)).longest[0]


def derivations(grammar: Grammar, string: Sequence[str], depth: int | None = None) -> int:
    """The number of derivations of a string, of at most this depth where one is given; 0 if it has none."""
    letters = BinaryForm.of(grammar).letters
    if depth is None:
        _by_length(grammar)  # refuses what derives itself
    if not all(symbol in letters for symbol in string):
        return 0
    w = "".join(letters[symbol] for symbol in string)
    return _tables(grammar).derivations(w, None if depth is None else _whole("depth", depth))


def sample_derivations(grammar: Grammar, rng: np.random.Generator, n: int, depth: int) -> list[String]:
    """The strings of n derivations, each uniform over the derivation trees of at most this depth."""
    draw = _drawing(grammar, rng, depth)
    return [_decoded(grammar, draw()) for _ in range(_whole("n", n))]


def sample_strings(grammar: Grammar, rng: np.random.Generator, n: int, depth: int) -> list[String]:
    """n strings, each uniform over the distinct strings of at most this depth."""
    draw = _drawing(grammar, rng, depth)
    tables = _tables(grammar)
    if listing := tables.listing(0, depth):
        strings, _ = listing
        return [_decoded(grammar, strings[randbelow(rng, len(strings))]) for _ in range(_whole("n", n))]
    strings = _thinned(rng, _whole("n", n), draw, lambda w: tables.derivations(w, depth))
    return [_decoded(grammar, w) for w in strings]


def sample_of_length(
    grammar: Grammar, rng: np.random.Generator, n: int, length: int, *, distinct: bool = True
) -> list[String]:
    """n strings of exactly this length, each uniform over the distinct ones, or else over derivations."""
    counts, total = _by_length(grammar), count_derivations_of_length(grammar, length)
    if not total:
        raise BadInput(f"no string has length {length}: try {_nearest_lengths(grammar, length)}")

    def draw() -> str:
        return counts.unrank(length, randbelow(rng, total))

    if not distinct:
        return [_decoded(grammar, draw()) for _ in range(_whole("n", n))]
    strings = _thinned(rng, _whole("n", n), draw, lambda w: _tables(grammar).derivations(w, None))
    return [_decoded(grammar, w) for w in strings]


def randbelow(rng: np.random.Generator, n: int) -> int:
    """An integer uniform over 0 ... n - 1, however large n is."""
    if n < 1 << 63:
        return int(rng.integers(n))
    bits = n.bit_length()
    size = (bits + 7) // 8
    while True:
        r = int.from_bytes(rng.bytes(size), "little") >> (8 * size - bits)
        if r < n:
            return r


def _drawing(grammar: Grammar, rng: np.random.Generator, depth: int) -> Callable[[], str]:
    """Draws the string of a uniform derivation of at most this depth."""
    counts, listing = _by_depth(grammar), _tables(grammar).listing
    total = count_derivations(grammar, depth)
    if not total:
        least = next(d for d in count(1) if counts.row(d)[0])
        raise BadInput(f"no string has depth {depth} or less: the smallest depth that has one is {least}")
    return lambda: counts.unrank(depth, randbelow(rng, total), listing)


def _thinned(
    rng: np.random.Generator, n: int, draw: Callable[[], str], number: Callable[[str], int]
) -> list[str]:
    """n of the strings drawn, each kept with probability one in its number of derivations."""
    strings: list[str] = []
    draws, expected, fewest = 0, 0.0, 0
    while len(strings) < n:
        w = draw()
        ways = number(w)
        if not randbelow(rng, ways):
            strings.append(w)
        draws += 1
        expected += 1 / ways
        fewest = min(fewest or ways, ways)
        hopeless = draws == GLANCE and fewest > HOPELESS
        if hopeless or (draws >= PATIENCE and expected * PATIENCE < draws):
            raise BadInput(
                f"strings have too many derivations here, and {expected / draws:.0e} of those drawn could be"
                " kept for a uniform sample: ask for shorter strings, or write an unambiguous grammar"
            )
    return strings


@lru_cache(maxsize=32)
def _by_depth(grammar: Grammar) -> Counts:
    return Counts(BinaryForm.of(grammar), by_length=False)


@lru_cache(maxsize=32)
def _by_length(grammar: Grammar) -> Counts:
    return Counts(BinaryForm.of(grammar), by_length=True)


@lru_cache(maxsize=32)
def _tables(grammar: Grammar) -> Tables:
    return Tables(BinaryForm.of(grammar), TABLE_BUDGET)


def _all_strings(grammar: Grammar, depth: int) -> dict[str, int]:
    for tables in (_tables(grammar), Tables(BinaryForm.of(grammar), LIST_BUDGET)):
        table = tables.level(_whole("depth", depth)).tables[0]
        if table is not None:
            return table
    raise BadInput(f"depth {depth} has too many strings to list: ask for a smaller depth, or take a sample")


def _nearest_lengths(grammar: Grammar, length: int) -> str:
    shortest = _tables(grammar).shortest()[0]
    if length < shortest:
        return f"{shortest}, the shortest that has one"

    def has_one(n: int) -> bool:
        return count_derivations_of_length(grammar, n) > 0

    below = next(filter(has_one, range(length, -1, -1)))
    above = next(filter(has_one, range(length, length + 100)), None)
    return f"{below}, the longest that has one" if above is None else f"{below} or {above}, the nearest"


def _decoded(grammar: Grammar, w: str) -> String:
    return tuple([grammar.terminals[ord(letter)] for letter in w])


def _whole(what: str, value: int) -> int:
    try:
        value = operator.index(value)
    except TypeError:
        raise BadInput(f"{what} is {value!r}: give a whole number") from None
    if value < 0:
        raise BadInput(f"{what} is {value}: give 0 or more")
    return value
