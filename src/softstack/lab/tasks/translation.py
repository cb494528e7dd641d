"""Grefenstette et al. 2015: two inversion transduction grammars, of 8 to 64 words for training and 65 to 128
to test. A translation ends with a full stop.

svo_to_sov: the verb of the sentence goes to its end; those of relative clauses stay.

    input    si1 vi28 oi5 si15 rpi si19 vi16 # # # # # # # #
    target   _   _    _   _    _   _    _    so1 oo5 so15 rpo so19 vo16 vo28 .

gender_conjugation: articles get the gender of their noun, masculine, feminine or neuter.

    input    the me4 and a fe9 we11 # # # # # # #
    target   _   _   _   _ _   _    der mg4 und eine fg9 wg11 .

The answer is wanted in the order of the words, or nearly: that is a queue's task, and no stack's.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softstack.errors import BadInput
from softstack.formal.weighted import Weighted
from softstack.lab.tasks.answering import MARK, answered, word_of
from softstack.lab.tasks.data import Example, Split

END = "."
TRAINED, TESTED = (8, 64), (65, 128)

# Table 1 of the paper, with one word for each class of words. The grammars generate the source; what its
# translation is follows from it.
SVO = Weighted.of(
    {
        "A": [(1, "S vi O")],
        "S": [(1 / 5, "S S"), (1 / 5, "S rpi S vi"), (3 / 5, "si")],
        "O": [(1 / 5, "O O"), (1 / 5, "S rpi S vi"), (3 / 5, "oi")],
    }
)
GENDERS = Weighted.of(
    {
        "A": [(1, "B")],
        "B": [(1 / 4, "B or B"), (1 / 4, "N and N"), (1 / 2, "B V")],
        "V": [(3 / 4, "we B"), (1 / 4, "we")],
        "N": [(1 / 6, f"{article} {noun}") for article in ("the", "a") for noun in ("me", "fe", "ne")],
    }
)
ARTICLES = {
    ("the", "me"): "der", ("the", "fe"): "die", ("the", "ne"): "das",
    ("a", "me"): "ein", ("a", "fe"): "eine", ("a", "ne"): "ein",
}  # fmt: skip


@dataclass(frozen=True)
class Translation:
    name: str
    weighted: Weighted
    vocabulary: tuple[tuple[str, str], ...]  # classes of words and of their translations
    size: int  # words of a class
    single: tuple[tuple[str, str], ...]  # other words, and what they may become
    translated: Callable[[tuple[str, ...]], list[str]]

    source = "Grefenstette et al. 2015"
    padding = MARK
    loss = "sum"
    metrics = ("strings", "before_error")

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self._words(0), MARK)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*self._words(1), END)

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (*self._words(0), *self.outputs, MARK)

    def _words(self, side: int) -> tuple[str, ...]:
        classes = [f"{pair[side]}{k}" for pair in self.vocabulary for k in range(1, self.size + 1)]
        return (*classes, *dict.fromkeys(pair[side] for pair in self.single))

    def length(self, split: Split) -> int:
        return 2 * (TESTED if split == "test" else TRAINED)[1] + 1

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """As likely as in the grammar, among the sentences of these lengths."""
        low, high = TESTED if split == "test" else TRAINED
        return [self._worded(rng, self.weighted.draw_within(rng, low, high)) for _ in range(n)]

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Half of it, and the other half are #s."""
        return self._worded(rng, self.weighted.draw(rng, max(5, (length - 1) // 2)))

    def example(self, symbols: tuple[str, ...]) -> Example:
        return answered(symbols, [*self.translated(word_of(symbols)), END])

    def _worded(self, rng: np.random.Generator, shape: tuple[str, ...]) -> tuple[str, ...]:
        """With a uniform word of each class."""
        classes = {source for source, _ in self.vocabulary}
        numbers = rng.integers(1, self.size + 1, size=len(shape))
        return tuple(f"{s}{k}" if s in classes else s for s, k in zip(shape, numbers, strict=True))


def sov(word: tuple[str, ...]) -> list[str]:
    """The verb of the sentence is the first that no relative pronoun before it has a claim to."""
    open_clauses = 0
    for place, symbol in enumerate(word):
        if symbol == "rpi":
            open_clauses += 1
        elif symbol.startswith("vi"):
            open_clauses -= 1
            if open_clauses < 0:
                return [_translated(s) for s in (*word[:place], *word[place + 1 :], symbol)]
    raise BadInput(f"{' '.join(word)!r} has no verb outside its relative clauses")


def _translated(symbol: str) -> str:
    return symbol.replace("i", "o", 1) if symbol != "rpi" else "rpo"


def gendered(word: tuple[str, ...]) -> list[str]:
    """Each article is followed by its noun."""
    answer = []
    for symbol, following in zip(word, (*word[1:], ""), strict=True):
        if symbol in ("the", "a"):
            if (symbol, following[:2]) not in ARTICLES:
                raise BadInput(f"the article {symbol} in {' '.join(word)!r} has no noun after it")
            answer.append(ARTICLES[symbol, following[:2]])
        else:
            answer.append({"or": "oder", "and": "und"}.get(symbol) or symbol.replace("e", "g", 1))
    return answer


SVO_TO_SOV = Translation(
    "svo_to_sov", SVO, (("si", "so"), ("vi", "vo"), ("oi", "oo")), 33, (("rpi", "rpo"),), sov
)
GENDER_CONJUGATION = Translation(
    "gender_conjugation",
    GENDERS,
    (("we", "wg"), ("me", "mg"), ("fe", "fg"), ("ne", "ng")),
    25,
    (("or", "oder"), ("and", "und"), *((article, german) for (article, _), german in ARTICLES.items())),
    gendered,
)
