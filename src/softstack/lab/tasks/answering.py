"""Tasks in which a network reads a word, and answers while it reads #s.

input    1 0 1 # # #
target   _ _ _ a b c
"""

from collections.abc import Sequence

from softstack.errors import BadInput
from softstack.lab.tasks.data import Example

MARK = "#"


def word_of(symbols: tuple[str, ...], what: str = "word") -> tuple[str, ...]:
    """What comes before the #s; `what` it is called if it is missing."""
    word = symbols[: symbols.index(MARK)] if MARK in symbols else symbols
    if not word:
        raise BadInput(f"the {what} is empty: give at least one symbol before the first #")
    if set(symbols[len(word) :]) - {MARK}:
        raise BadInput(
            f"only #s may follow the first # in {' '.join(symbols)!r}: they are where the answer goes"
        )
    return word


def answered(symbols: tuple[str, ...], answer: Sequence[str], blanks: int = 0) -> Example:
    """The example of a word, or of a word and its #s: at least `blanks` of them, and as many as the answer
    has symbols."""
    word = word_of(symbols)
    blanks = max(blanks, len(answer), len(symbols) - len(word))
    silence = [None] * (blanks - len(answer))
    return Example((*word, *[MARK] * blanks), (*[None] * len(word), *answer, *silence))
