"""Any grammar as a task: say the next symbol, scored where that is one of those to be predicted.

grammar  S -> ( S ) S | ε
predict  )
input    ( ( ) )
target   _ ) ) _
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import count

import numpy as np

from softstack.errors import BadInput, unknown
from softstack.formal.grammar import Grammar
from softstack.formal.sampling import ends_before, few_strings, longest, sample_derivations, sample_strings
from softstack.lab.tasks.data import UNSCORED, Example, Split, next_symbols
from softstack.lab.tasks.page import Page, computed, rules

MARK = "predict "  # what the text of such a task begins with
PLENTY = 2000  # distinct strings that are enough to train on
LONG = 50  # symbols of a training string, unless more are asked for
LONGER = 6  # how many times as long test strings may be, unless more is asked for
FEW = 10_000  # test strings, up to which each of them is as likely as the others
MOST_TEXT = 32 * 1024  # bytes: the text is a part of every run's configuration
MOST_LENGTH = 100_000  # symbols of a string
SIZES = 12  # depths on which the page measures accuracy


@dataclass(frozen=True)
class Prediction:
    """The task of a grammar. Its text is the task's name in a Condition: the symbols to be predicted, the
    depths of training and of testing, and the grammar."""

    text: str

    loss = "sum"

    @cached_property
    def _parts(self) -> tuple[tuple[str, ...], tuple[int, int], Grammar]:
        first, second, *grammar = self.text.split("\n")
        word, *depths = second.split()
        if word != "depths" or len(depths) != 2 or not all(depth.isdecimal() for depth in depths):
            raise BadInput(f"the second line of a task over a grammar is {second!r}: write  depths 6 12")
        return tuple(first.split()[1:]), (int(depths[0]), int(depths[1])), Grammar.parse("\n".join(grammar))

    @property
    def name(self) -> str:
        return "grammar-" + sha256(self.text.encode()).hexdigest()[:8]

    @property
    def grammar(self) -> Grammar:
        return self._parts[2]

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.grammar.terminals

    @property
    def outputs(self) -> tuple[str, ...]:
        return self._parts[0]

    @property
    def padding(self) -> str:
        return "_" if "_" not in self.inputs else "_" * (1 + max(map(len, self.inputs)))

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (*self.inputs, self.padding)

    @property
    def page(self) -> Page:
        trained, tested = self._parts[1]
        depths = [d for d in range(1, tested + 3) if longest(self.grammar, d) > 1]
        shown = depths[:: -(-len(depths) // SIZES)]
        return computed("next", shown, trained, grammar=rules(self.grammar))

    @property
    def sizes(self) -> dict[str, int]:
        """How many test strings there are, where the usual number is more than that."""
        strings = self._few(self.depth("test"))
        return {} if strings is None else {"test_size": min(1000, len(strings))}

    def depth(self, split: Split) -> int:
        return self._parts[1][split == "test"]

    def length(self, split: Split) -> int:
        return longest(self.grammar, self.depth(split))

    def _few(self, depth: int) -> list[tuple[str, ...]] | None:
        """All strings of a depth in which something is scored, where those are few."""
        strings = few_strings(self.grammar, depth, FEW)
        return None if strings is None else [word for word in strings if any(self.example(word).target)]

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """Uniform over the distinct strings of the depth of training; over derivations of that of testing or,
        where there are few strings, over those, each as often as the others. Something is scored in each."""
        depth = self.depth(split)
        if split == "test" and (strings := self._few(depth)):
            return [strings[k % len(strings)] for k in rng.permutation(max(n, len(strings)))[:n]]
        draw = sample_derivations if split == "test" else sample_strings
        words: list[tuple[str, ...]] = []
        for rounds in count(1):
            words += [word for word in draw(self.grammar, rng, n, depth) if any(self.example(word).target)]
            if len(words) >= n:
                break
            if rounds * n >= 1000 and len(words) * 1000 < rounds * n:
                raise BadInput(
                    f"hardly any string of {self.name} has one of {' '.join(self.outputs)} after another "
                    "symbol: predict other symbols, or give other depths"
                )
        return words[:n]

    def example(self, symbols: tuple[str, ...]) -> Example:
        return next_symbols(symbols, self.outputs)


@lru_cache(maxsize=64)
def of_grammar(text: str) -> Prediction:
    return Prediction(text)


def text_of(grammar: Grammar, predict: tuple[str, ...], depth: int | None, test_depth: int | None) -> str:
    """The task over a grammar as a Condition names it: with every terminal to be predicted if none is given,
    and usual depths."""
    symbols = tuple(dict.fromkeys(predict or grammar.terminals))
    for symbol in symbols:
        if symbol not in grammar.terminals:
            raise unknown("symbol to predict,", symbol, grammar.terminals)
    if UNSCORED in symbols:
        raise BadInput(f"{UNSCORED!r} cannot be predicted, because it stands for what is not scored")
    trained = usual_depth(grammar) if depth is None else depth
    tested = usual_test_depth(grammar, trained) if test_depth is None else test_depth
    for what, number in (("depth", trained), ("test depth", tested)):
        if longest(grammar, number) < 0:
            least = next(d for d in count(1) if longest(grammar, d) >= 0)
            raise BadInput(
                f"no string has a {what} of {number} or less: the smallest that has one is {least}"
            )
        if longest(grammar, number) > MOST_LENGTH:
            raise BadInput(
                f"strings of a {what} of {number} have up to {longest(grammar, number)} symbols: "
                "give a smaller one"
            )
    text = f"{MARK}{' '.join(symbols)}\ndepths {trained} {tested}\n{grammar}"
    if len(text.encode()) > MOST_TEXT:
        raise BadInput(f"the grammar has {len(text.encode())} bytes: at most {MOST_TEXT} can be used")
    of_grammar(text).sample(np.random.default_rng(0), 1, "train")  # refuses what cannot be drawn
    return text


def usual_depth(grammar: Grammar) -> int:
    """The smallest depth that has plenty of strings, unless they grow long before, or there are no more of
    them. For the paper's three grammars that is the paper's."""
    last = next(d for d in count(1) if longest(grammar, d) >= 0)  # with strings, and not too long
    for depth in count(last):
        if longest(grammar, depth) > LONG or ends_before(grammar, depth):
            return last
        strings = few_strings(grammar, depth, PLENTY)
        if strings is None:
            return depth
        if depth == last or len(strings) > len(few_strings(grammar, last, PLENTY) or ()):
            last = depth
    raise AssertionError("unreachable")


def usual_test_depth(grammar: Grammar, depth: int) -> int:
    """Twice that of training, unless strings grow much longer on the way."""
    most = LONGER * longest(grammar, depth)
    return max(d for d in range(depth, 2 * depth + 1) if d == depth or longest(grammar, d) <= most)
