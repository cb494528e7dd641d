"""Whether two PDTs say the same: equal, different with a shortest word, or undecided up to a bound.

Compared is, on every input, what each symbol makes a machine write, ε-moves included, whether it can be read
at all, and whether the machine accepts there.

Both are run at once as one pushdown machine (`product.py`). That decides exactly whenever the heights of the
two stacks stay within a bound of each other: always for visibly pushdown machines with the same calls and
returns, and for many more. Where they do not, words are tried, short ones first.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from softstack.formal.analysis import bound
from softstack.formal.minimal import minimised
from softstack.formal.product import Product, Word
from softstack.formal.running import Live
from softstack.formal.transducer import Transducer
from softstack.words import counted

WORK = 1_000_000  # symbols on the stacks of the configurations that are followed breadth first
FACTS = 200_000  # that the product may find out
SUFFIXES, SUFFIX = 3, 8  # words, and symbols of each, that show where a move led


class Difference(NamedTuple):
    """An input to which two machines say different things; None where one is stuck."""

    word: Word
    first: Word | None  # what each writes at the last symbol
    second: Word | None
    accepted: tuple[bool, bool] = (True, True)  # whether each accepts there


class Comparison(NamedTuple):
    """One of three answers."""

    answer: Literal["equal", "different", "undecided"]
    difference: Difference | None  # for a shortest word
    length: int | None  # undecided: no word of at most so many symbols tells them apart
    reason: str  # how that is known, or why not

    def __str__(self) -> str:
        if self.difference is not None:
            word = " ".join(self.difference.word) or "the empty word"
            return f"different: {word}, {_told(self.difference)}"
        if self.answer == "equal":
            return f"equal: {self.reason}"
        if not self.length:
            return f"undecided: {self.reason}"
        upto = counted(self.length, "symbol")
        return f"undecided: no word of at most {upto} tells them apart, and {self.reason}"


def compare(a: Transducer, b: Transducer, *, within_first: bool = False, drift: int = 8) -> Comparison:
    """Whether two machines say the same to every input.

    `within_first`: to every input that the first reads; what the second does beyond that is left out. `drift`
    is the most by which the heights of the two stacks may differ for the answer to be exact.
    """
    for machine in (a, b):
        bound(machine)  # refuses ε-moves without end
    product = Product(a, b, within_first, drift, FACTS)
    word = product.shortest()
    if product.failed:  # what drifts may be symbols that are pushed and never looked at
        product = Product(minimised(a), minimised(b), within_first, drift, FACTS)
        word = product.shortest()
    if word is not None:
        return Comparison("different", _at(a, b, word), None, "both were run at once, as one machine")
    if not product.failed:
        reason = "both were run at once, as one machine, and say the same everywhere"
        return Comparison("equal", None, None, reason)
    tried = 0
    for difference, length in _by_length(a, b, WORK, within_first):
        if difference is not None:
            return Comparison("different", difference, None, "every shorter word was tried")
        if length is None:
            return Comparison("equal", None, None, "every pair of configurations was compared")
        tried = length
    return Comparison("undecided", None, tried, product.failed)


def difference(a: Transducer, b: Transducer, length: int) -> Difference | None:
    """A shortest input of at most `length` symbols that tells the machines apart; None if there is none."""
    for word, tried in _by_length(a, b, None, False):
        if word is not None:
            return word if len(word.word) <= length else None
        if tried is None or tried >= length:
            return None
    return None


def covering(machine: Transducer, rng: np.random.Generator) -> list[Word]:
    """Words that try every input symbol in every situation, state and top of the stack, that some input leads
    to, where the machine can read it and where it cannot; a few symbols more show where that led."""
    product = Product(machine, machine, False, 0, FACTS)
    product.shortest()
    words = []
    for access in product.situations().values():
        for symbol in machine.alphabet:
            for _ in range(SUFFIXES):
                live = Live(machine)
                live.settle()
                for x in (*access, symbol):
                    live.feed(x)
                words.append((*access, symbol, *live.wander(rng, SUFFIX)))
    return words


def _by_length(
    a: Transducer, b: Transducer, most: int | None, within_first: bool
) -> Iterator[tuple[Difference | None, int | None]]:
    """For each length in turn a word that tells them apart, or None and the length that is done with; None
    for that too where no configurations are left. Ends, within a length, after `most` work."""
    one, two = Live(a), Live(b)
    outputs = one.settle(), two.settle()
    if outputs[0] != outputs[1] or _accepts(one) != _accepts(two):
        yield Difference((), *outputs, (_accepts(one), _accepts(two))), 0
        return
    alphabet = tuple(dict.fromkeys([*a.alphabet, *b.alphabet]))
    pairs: list[tuple[Live, Live, Word]] = [(one, two, ())]
    keys = {_key(one, two)}
    length = work = 0
    while pairs:
        following = []
        for one, two, word in pairs:
            for symbol in alphabet:
                then = one.copy(), two.copy()
                written = then[0].feed(symbol), then[1].feed(symbol)
                if within_first and written[0] is None:
                    continue
                accepted = _accepts(then[0]), _accepts(then[1])
                if written[0] != written[1] or (written[0] is not None and accepted[0] != accepted[1]):
                    yield Difference((*word, symbol), *written, accepted), length + 1
                    return
                key = _key(*then)
                if written[0] is not None and key not in keys:
                    keys.add(key)
                    work += 10 + len(then[0].stack) + len(then[1].stack)
                    if most is not None and work > most:
                        return
                    following.append((*then, (*word, symbol)))
        length += 1
        pairs = following
        yield None, length if pairs else None


def _key(a: Live, b: Live) -> tuple[str, Word, str, Word]:
    return a.state, tuple(a.stack), b.state, tuple(b.stack)


def _accepts(live: Live) -> bool:
    return live.state in live.machine.accepting


def _at(a: Transducer, b: Transducer, word: Word) -> Difference:
    """What both machines say at the last symbol of a word that tells them apart."""
    machines = Live(a), Live(b)
    written: list[Word | None] = [live.settle() for live in machines]
    for symbol in word:
        written = [live.feed(symbol) for live in machines]
    return Difference(word, written[0], written[1], (_accepts(machines[0]), _accepts(machines[1])))


def _told(difference: Difference) -> str:
    if difference.first == difference.second:
        one, two = ("accepts" if accepted else "does not accept" for accepted in difference.accepted)
        return f"which the first {one} and the second {two}"
    one, two = (
        "cannot read its last symbol" if output is None else f"then writes {' '.join(output) or 'nothing'}"
        for output in (difference.first, difference.second)
    )
    return f"where the first {one} and the second {two}"
