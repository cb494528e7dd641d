"""Whether two PDTs say the same: a bisimulation on the configurations that inputs lead to, up to a bound."""

from collections import deque
from typing import NamedTuple

from softstack.formal.running import Live
from softstack.formal.transducer import Transducer


class Difference(NamedTuple):
    """An input to which two machines say different things; None where one is stuck."""

    word: tuple[str, ...]
    first: tuple[str, ...] | None  # what each writes at the last symbol
    second: tuple[str, ...] | None


def difference(a: Transducer, b: Transducer, length: int, configurations: int = 100_000) -> Difference | None:
    """A shortest input of at most `length` symbols that tells the machines apart; None if there is none.

    Pairs of configurations are followed breadth first, each once, and at most so many. Compared is what each
    symbol makes a machine write, ε-moves included, and whether it can be read at all.
    """
    one, two = Live(a), Live(b)
    before = one.settle(), two.settle()
    if before[0] != before[1]:
        return Difference((), *before)
    alphabet = tuple(dict.fromkeys([*a.alphabet, *b.alphabet]))
    queue: deque[tuple[Live, Live, tuple[str, ...]]] = deque([(one, two, ())])
    seen = {_key(one, two)}
    while queue:
        one, two, word = queue.popleft()
        if len(word) == length:
            continue
        for symbol in alphabet:
            then = one.copy(), two.copy()
            said = then[0].feed(symbol), then[1].feed(symbol)
            if said[0] != said[1]:
                return Difference((*word, symbol), *said)
            key = _key(*then)
            if said[0] is not None and key not in seen and len(seen) < configurations:
                seen.add(key)
                queue.append((*then, (*word, symbol)))
    return None


def _key(a: Live, b: Live) -> tuple[str, tuple[str, ...], str, tuple[str, ...]]:
    return a.state, tuple(a.stack), b.state, tuple(b.stack)
